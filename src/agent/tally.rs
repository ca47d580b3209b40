//! What an agent's records add up to while they come: tool calls that are open or repeat each other, and what was used up.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stream::{Estimate, call};
use super::{Said, acp, read, said};
use crate::model::agent_record::{AgentKind, AgentRecord};

/// A call that is over later than this after the one before it repeats nothing: whatever it waits for may still come.
const SOON: Duration = Duration::from_secs(10);
/// Longer texts of a record say nothing of what was used.
const LONGEST_TEXT: usize = 128;

/// A tally of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Whose records they are, once that is known.
    pub kind: Option<AgentKind>,
    open: HashMap<String, Call>,
    last: Option<Repeated>,
    used: Option<Used>,
}

/// A call of a tool.
#[derive(Clone, Debug)]
struct Call {
    line: String,
    hash: u64,
}

#[derive(Debug)]
struct Repeated {
    line: String,
    hash: u64,
    times: u32,
    at: Instant,
}

/// The records that say what was used, without what they are about.
#[derive(Debug, Default)]
struct Used {
    records: Vec<u8>,
    estimate: Estimate,
    is_new: bool,
}

impl Tally {
    /// An empty one; `counts`: what is used up matters.
    pub(crate) fn new(kind: Option<AgentKind>, counts: bool) -> Self {
        Self {
            kind,
            used: counts.then(Used::default),
            ..Self::default()
        }
    }

    /// Takes a record that came at `now`.
    pub(crate) fn take(&mut self, kind: AgentKind, record: &Value, now: Instant) {
        self.kind = Some(kind);
        let said = match kind {
            AgentKind::Acp => acp::called(record).into_iter().collect(),
            _ => said(kind, record),
        };
        for said in said {
            match said {
                Said::Call {
                    id: Some(id),
                    tool,
                    input,
                } => {
                    let hash = hash_of(&(tool, input.map(Value::to_string)));
                    let line = call(tool, input);
                    self.open.insert(id.to_owned(), Call { line, hash });
                }
                Said::Ended {
                    id: Some(id),
                    result,
                    ..
                } => {
                    if let Some(call) = self.open.remove(id) {
                        let result = result.iter().map(|part| part.map(Value::to_string));
                        self.count(call, hash_of(&result.collect::<Vec<_>>()), now);
                    }
                }
                _ => {}
            }
        }
        if let Some(used) = &mut self.used {
            used.take(kind, record);
        }
    }

    fn count(&mut self, call: Call, result: u64, now: Instant) {
        let hash = hash_of(&(call.hash, result));
        let last = self
            .last
            .take()
            .filter(|last| last.hash == hash && now.saturating_duration_since(last.at) <= SOON);
        self.last = Some(Repeated {
            line: call.line,
            hash,
            times: last.map_or(1, |last| last.times + 1),
            at: now,
        });
    }

    /// Whether a tool is at work.
    pub(crate) fn is_calling(&self) -> bool {
        !self.open.is_empty()
    }

    /// The call that was made last, in a line, and how often in a row with the same result.
    pub(crate) fn repeated(&self) -> Option<(&str, u32)> {
        let last = self.last.as_ref()?;
        Some((&last.line, last.times))
    }

    /// What the records say of cost and tokens so far, where that is another than when it was asked last.
    pub(crate) fn used(&mut self) -> Option<AgentRecord> {
        let kind = self.kind?;
        let used = self.used.as_mut()?;
        if !std::mem::take(&mut used.is_new) {
            return None;
        }
        let mut record = read(kind, &used.records, b"");
        record.tokens = record
            .tokens
            .filter(|_| !record.is_estimated || record.cost_usd.is_some());
        record.tokens = record.tokens.or(used.estimate.tokens());
        Some(record)
    }
}

impl Used {
    fn take(&mut self, kind: AgentKind, record: &Value) {
        self.estimate.take(kind, record);
        let mut record = record.clone();
        trim(&mut record);
        let text = record.to_string();
        // A session's name is how some records are known for what they are.
        let says = ["usage", "tokens", "cost", "thread_id", "\"result\":"];
        if says.iter().any(|word| text.contains(word)) {
            self.records.extend_from_slice(text.as_bytes());
            self.records.push(b'\n');
        }
        self.is_new = true;
    }
}

/// Takes long texts out of a record.
fn trim(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > LONGEST_TEXT => text.clear(),
        Value::Array(all) => all.iter_mut().for_each(trim),
        Value::Object(all) => all.values_mut().for_each(trim),
        _ => {}
    }
}

fn hash_of(value: &impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A call and its end in the records of each agent.
    fn calls(kind: AgentKind, said: &str) -> Vec<Value> {
        let input = json!({"command": "npm test"});
        match kind {
            AgentKind::Claude | AgentKind::Qwen => vec![
                json!({"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "1", "name": "Bash", "input": input}]}}),
                json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "1", "content": said}]}}),
            ],
            AgentKind::Codex => vec![
                json!({"type": "item.started", "item": {"id": "1", "type": "command_execution", "command": "npm test"}}),
                json!({"type": "item.completed", "item": {"id": "1", "type": "command_execution", "command": "npm test", "aggregated_output": said, "exit_code": 1}}),
            ],
            AgentKind::Gemini => vec![
                json!({"type": "tool_use", "tool_id": "1", "tool_name": "run_shell_command", "parameters": input}),
                json!({"type": "tool_result", "tool_id": "1", "status": "success", "output": said}),
            ],
            AgentKind::Opencode => vec![
                json!({"type": "tool_use", "part": {"tool": "bash", "callID": "1", "state": {"status": "completed", "input": input, "output": said}}}),
            ],
            AgentKind::Copilot => vec![
                json!({"type": "tool.execution_start", "data": {"toolCallId": "1", "toolName": "bash", "arguments": input}}),
                json!({"type": "tool.execution_complete", "data": {"toolCallId": "1", "success": true, "result": {"content": said}}}),
            ],
            AgentKind::Acp => {
                let update = |update: Value| json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
                vec![
                    update(
                        json!({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "npm test", "kind": "execute", "status": "pending", "rawInput": input}),
                    ),
                    update(
                        json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed", "content": [{"type": "content", "content": {"type": "text", "text": said}}]}),
                    ),
                ]
            }
            AgentKind::Aider => Vec::new(),
        }
    }

    #[test]
    fn calls_of_each_agent_are_open_until_they_end_and_counted_in_a_row() {
        let now = Instant::now();
        for kind in AgentKind::ALL
            .iter()
            .filter(|kind| **kind != AgentKind::Aider)
        {
            let mut tally = Tally::default();
            for _ in 0..3 {
                let records = calls(*kind, "1 failed");
                if records.len() > 1 {
                    tally.take(*kind, &records[0], now);
                    assert!(tally.is_calling(), "{kind:?}");
                }
                for record in records {
                    tally.take(*kind, &record, now);
                }
                assert!(!tally.is_calling(), "{kind:?}");
            }
            let (line, times) = tally.repeated().unwrap();
            assert_eq!(times, 3, "{kind:?}");
            assert!(line.ends_with("npm test"), "{line}");
            let others = calls(*kind, "2 failed");
            for record in &others {
                tally.take(*kind, record, now);
            }
            assert_eq!(tally.repeated().unwrap().1, 1, "another result: {kind:?}");
            let late = now + SOON + Duration::from_millis(1);
            for record in &others {
                tally.take(*kind, record, late);
            }
            assert_eq!(tally.repeated().unwrap().1, 1, "too late: {kind:?}");
        }
    }

    #[test]
    fn what_is_used_is_what_the_records_say_else_an_estimate() {
        let now = Instant::now();
        let mut tally = Tally::new(None, true);
        let said = "x".repeat(4000);
        let answer = json!({"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": said}});
        tally.take(AgentKind::Codex, &answer, now);
        let estimated = tally.used().unwrap().tokens.unwrap();
        assert!((1000..1100).contains(&estimated.total), "{estimated:?}");
        assert_eq!(tally.used(), None, "nothing new");
        let end =
            json!({"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 5}});
        tally.take(AgentKind::Codex, &end, now);
        assert_eq!(tally.used().unwrap().tokens.unwrap().total, 15);
    }
}
