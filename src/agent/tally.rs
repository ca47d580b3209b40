//! What an agent's records add up to while they come: tool calls that are open or repeat each other, and what was used up.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::stream::{Estimate, call};
use super::{acp, items, read, text, text_at};
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

/// What a record says of a tool.
enum Event<'a> {
    Begun(&'a str, Call),
    Ended(&'a str, u64),
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
        for event in events(kind, record) {
            match event {
                Event::Begun(id, call) => drop(self.open.insert(id.to_owned(), call)),
                Event::Ended(id, result) => {
                    if let Some(call) = self.open.remove(id) {
                        self.count(call, result, now);
                    }
                }
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

fn begun<'a>(id: Option<&'a str>, tool: Option<&str>, input: Option<&Value>) -> Option<Event<'a>> {
    let (id, tool) = (id?, tool?);
    let hash = hash_of(&(tool, input.map(Value::to_string)));
    let line = call(tool, input);
    Some(Event::Begun(id, Call { line, hash }))
}

fn ended<'a>(id: Option<&'a str>, result: &[Option<&Value>]) -> Option<Event<'a>> {
    let said: Vec<_> = result
        .iter()
        .map(|part| part.map(Value::to_string))
        .collect();
    Some(Event::Ended(id?, hash_of(&said)))
}

fn events(kind: AgentKind, record: &Value) -> Vec<Event<'_>> {
    let what = text(record, "type").unwrap_or_default();
    let of = |name: &str| record.get(name);
    let events: Vec<Option<Event<'_>>> = match (kind, what) {
        (AgentKind::Claude | AgentKind::Qwen, "assistant" | "user") => {
            items(record, "/message/content")
                .map(|part| match text(part, "type") {
                    Some("tool_use") => {
                        begun(text(part, "id"), text(part, "name"), part.get("input"))
                    }
                    Some("tool_result") => ended(text(part, "tool_use_id"), &[part.get("content")]),
                    _ => None,
                })
                .collect()
        }
        (AgentKind::Codex, "item.started" | "item.completed") => {
            let item = of("item").unwrap_or(&Value::Null);
            codex(what, item)
        }
        (AgentKind::Gemini, "tool_use") => vec![begun(
            text(record, "tool_id"),
            text(record, "tool_name"),
            of("parameters"),
        )],
        (AgentKind::Gemini, "tool_result") => {
            let result = [of("status"), of("output"), of("error")];
            vec![ended(text(record, "tool_id"), &result)]
        }
        (AgentKind::Opencode, "tool_use") => {
            // It comes when the tool has ended.
            let id = text_at(record, "/part/callID");
            let state = |name: &str| record.pointer(&format!("/part/state/{name}"));
            let result = [state("status"), state("output"), state("error")];
            vec![
                begun(id, text_at(record, "/part/tool"), state("input")),
                ended(id, &result),
            ]
        }
        (AgentKind::Copilot, "tool.execution_start") => vec![begun(
            text_at(record, "/data/toolCallId"),
            text_at(record, "/data/toolName"),
            record.pointer("/data/arguments"),
        )],
        (AgentKind::Copilot, "tool.execution_complete") => {
            let data = |name: &str| record.pointer(&format!("/data/{name}"));
            let result = [data("success"), data("result"), data("error")];
            vec![ended(text_at(record, "/data/toolCallId"), &result)]
        }
        (AgentKind::Acp, _) => acp::call(record).map_or_else(Vec::new, |update| {
            let id = text(update, "toolCallId");
            let of = |name: &str| update.get(name);
            if matches!(text(update, "status"), Some("completed" | "failed")) {
                vec![ended(id, &[of("status"), of("content"), of("rawOutput")])]
            } else {
                let tool = text(update, "title").or(text(update, "kind"));
                vec![begun(id, tool, of("rawInput"))]
            }
        }),
        _ => Vec::new(),
    };
    events.into_iter().flatten().collect()
}

/// An item of Codex that is a tool's call: one that names a command, a tool or a query.
fn codex<'a>(what: &str, item: &'a Value) -> Vec<Option<Event<'a>>> {
    let id = text(item, "id");
    let input = ["command", "arguments", "query"];
    let input = input.iter().find_map(|name| item.get(*name));
    let tool = text(item, "tool").or(match text(item, "type") {
        Some("command_execution") => Some("shell"),
        Some("web_search") => Some("search"),
        _ => None,
    });
    if what == "item.started" {
        return vec![begun(id, tool, input)];
    }
    let result = [
        "aggregated_output",
        "exit_code",
        "status",
        "result",
        "error",
    ];
    vec![ended(id, &result.map(|name| item.get(name)))]
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
