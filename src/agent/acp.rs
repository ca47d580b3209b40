//! The Agent Client Protocol: JSON-RPC messages, a line each, of which an agent's own are its records.
//!
//! The conversation has three requests of ours, each with a number of its own: so its records are read without them.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{Said, count, error, items, objects, status, text, text_at};
use crate::model::agent_record::{AgentKind, AgentRecord, Tokens};

/// The version of the protocol that is spoken here.
pub(crate) const VERSION: u64 = 1;
/// The numbers of our requests, in their order.
pub(crate) const INITIALIZE: u64 = 1;
pub(crate) const SESSION: u64 = 2;
pub(crate) const PROMPT: u64 = 3;

/// A call of a tool, as far as a message says something of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCall {
    #[serde(rename = "toolCallId")]
    pub id: String,
    pub title: Option<String>,
    pub kind: Option<String>,
    pub status: Option<String>,
    locations: Option<Vec<Place>>,
    content: Option<Vec<Value>>,
    raw_input: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Place {
    path: String,
}

/// Members of a tool's input that name a file.
const PATHS: [&str; 5] = ["file_path", "filePath", "absolute_path", "path", "fileName"];

impl ToolCall {
    /// The edit of a file that an agent has written for it.
    pub(crate) fn edit(path: &Path) -> Self {
        let path = path.to_string_lossy().into_owned();
        Self {
            id: format!("write {path}"),
            kind: Some("edit".to_owned()),
            locations: Some(vec![Place { path }]),
            ..Self::default()
        }
    }

    /// The call of a `session/update` that is about one.
    pub(crate) fn of_update(params: &Value) -> Option<Self> {
        let update = params.get("update")?;
        let is_call = |what: &str| matches!(what, "tool_call" | "tool_call_update");
        text(update, "sessionUpdate").filter(|what| is_call(what))?;
        Self::deserialize(update).ok()
    }

    /// The same call with what a later message says of it.
    #[must_use]
    pub(crate) fn updated(self, later: Self) -> Self {
        let says = |input: &Value| input.as_object().is_none_or(|input| !input.is_empty());
        Self {
            id: self.id,
            title: later.title.or(self.title),
            kind: later.kind.or(self.kind),
            status: later.status.or(self.status),
            locations: later
                .locations
                .filter(|all| !all.is_empty())
                .or(self.locations),
            content: later.content.filter(|all| !all.is_empty()).or(self.content),
            raw_input: later.raw_input.filter(says).or(self.raw_input),
        }
    }

    /// Whether it has ended.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed"))
    }

    /// What kind of tool it is, `other` where nothing says.
    pub(crate) fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("other")
    }

    /// Every file that it names.
    pub(crate) fn paths(&self) -> Vec<&str> {
        let places = self.locations.iter().flatten();
        let changes = self.content.iter().flatten();
        let input = PATHS
            .iter()
            .filter_map(|name| text(self.raw_input.as_ref()?, name));
        places
            .map(|place| place.path.as_str())
            .chain(changes.filter_map(|change| text(change, "path")))
            .chain(input)
            .collect()
    }

    /// The command that it runs.
    pub(crate) fn command(&self) -> Option<&str> {
        let input = self.raw_input.as_ref();
        let given = input.and_then(|input| text(input, "command"));
        given.or_else(|| self.title.as_deref().filter(|_| self.kind() == "execute"))
    }
}

/// Whether the conversation is open with this record: what comes before is what a session said in the past.
pub(super) fn opens(record: &Value) -> bool {
    answers(record) == Some(SESSION) && record.get("error").is_none()
}

/// Whether a record is about something in the session. What it used in all is no part of that.
pub(super) fn is_update(record: &Value) -> bool {
    update(record).is_some_and(|(what, _)| what != "usage_update")
}

/// The session that a record names.
pub(super) fn session_of(record: &Value) -> Option<&str> {
    text_at(record, "/result/sessionId").or(text_at(record, "/params/sessionId"))
}

/// A piece of what the model says.
pub(super) fn piece(record: &Value) -> Option<&str> {
    let (what, update) = update(record)?;
    text_at(update, "/content/text").filter(|_| what == "agent_message_chunk")
}

/// Whether a piece is no word of the model: Copilot CLI and the adapter of Codex say so what they do themselves, and what went
/// wrong.
pub(super) fn is_note(piece: &str) -> bool {
    piece.starts_with("Info: ") || piece.starts_with("Warning: ") || piece.starts_with(ERROR)
}

/// Whether the adapter of Codex says that the model's turn has failed: the next piece says why. `None` where a record says
/// nothing of that.
pub(super) fn has_failed(record: &Value) -> Option<bool> {
    let (_, update) = update(record)?;
    let status = text_at(update, "/_meta/codex/threadStatus/type")?;
    Some(status == "systemError")
}

/// What such a piece begins with that says what went wrong.
const ERROR: &str = "Error: ";

/// A call of a tool that a record is about: one of the session, or one that permission is asked for.
pub(super) fn call(record: &Value) -> Option<&Value> {
    let asked = || record.pointer("/params/toolCall");
    update(record).map(|(_, update)| update).or_else(asked)
}

/// The beginning or the end of a call of a tool.
pub(super) fn called(record: &Value) -> Option<Said<'_>> {
    let update = call(record)?;
    let id = text(update, "toolCallId");
    if matches!(text(update, "status"), Some("completed" | "failed")) {
        let result = ["status", "content", "rawOutput"].map(|name| update.get(name));
        return Some(Said::Ended {
            id,
            result: result.to_vec(),
            failed: None,
        });
    }
    Some(Said::Call {
        id,
        tool: text(update, "title").or(text(update, "kind"))?,
        input: update.get("rawInput"),
    })
}

/// Bytes of what a record says that the model has written or will read.
pub(super) fn size(record: &Value) -> usize {
    let is_call = call(record).is_some_and(|call| call.get("toolCallId").is_some());
    match piece(record) {
        Some(piece) => piece.len(),
        None if is_call => record.to_string().len(),
        None => 0,
    }
}

/// What a `session/update` is, and what it says.
pub(super) fn update(record: &Value) -> Option<(&str, &Value)> {
    let update = record.pointer("/params/update")?;
    Some((text(update, "sessionUpdate")?, update))
}

/// The number of our request that a record answers.
pub(super) fn answers(record: &Value) -> Option<u64> {
    record
        .get("id")
        .filter(|_| record.get("method").is_none())?
        .as_u64()
}

/// Why an answer ends the conversation, with a code; `None` where it goes on, or ended well.
pub(crate) fn refusal(record: &Value) -> Option<(String, Option<&'static str>)> {
    let number = answers(record)?;
    let result = record.get("result").unwrap_or(&Value::Null);
    if let Some(said) = record.get("error") {
        let message = message_of(said);
        let is_login = said.get("code").and_then(Value::as_i64) == Some(-32000)
            && message.to_ascii_lowercase().contains("auth");
        return Some((message, is_login.then_some("authentication_failed")));
    }
    match number {
        INITIALIZE => {
            let version = result.get("protocolVersion").unwrap_or(&Value::Null);
            let is_ours = version.as_u64() == Some(VERSION);
            let message =
                format!("the agent speaks version {version} of the protocol, not {VERSION}");
            (!is_ours).then_some((message, None))
        }
        PROMPT => match text(result, "stopReason") {
            Some("end_turn") => None,
            Some("max_tokens") => Some(("max_tokens".to_owned(), Some("max_output_tokens"))),
            Some("max_turn_requests") => {
                Some(("max_turn_requests".to_owned(), Some("error_max_turns")))
            }
            Some(reason) => Some((format!("the agent stopped: {reason}"), None)),
            None => Some(("the agent names no stop reason".to_owned(), None)),
        },
        _ => None,
    }
}

/// What an error says: programs put what an API said beside a message of their own.
fn message_of(said: &Value) -> String {
    let message = text(said, "message").unwrap_or("error");
    let data = said.get("data").unwrap_or(&Value::Null);
    let more = data.as_str().or_else(|| {
        ["details", "message", "error"]
            .iter()
            .find_map(|name| text(data, name))
    });
    match more.filter(|more| !message.contains(more)) {
        Some(more) => format!("{message}: {more}"),
        None => message.to_owned(),
    }
}

/// Reads the answers to our requests and what was said in the session since it was open.
pub(super) fn read(stdout: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Acp);
    let mut is_open = false;
    let (mut has_notes, mut is_failing) = (false, false);
    // What it says last, where that says what went wrong.
    let mut note = None;
    for (line, object) in objects(stdout) {
        if object.get("jsonrpc").is_none() {
            continue;
        }
        record.structured = true;
        if let Some(session) = session_of(&object) {
            record.session_id = Some(session.to_owned());
        }
        record.cost_usd = cost_of(&object).or(record.cost_usd);
        is_open |= opens(&object);
        has_notes |= text_at(&object, "/result/agentInfo/name")
            .is_some_and(|name| name == "Copilot" || name.ends_with("codex-acp"));
        is_failing = has_failed(&object).unwrap_or(is_failing);
        match answers(&object) {
            Some(PROMPT) if !is_open => {}
            Some(number) => ended(&mut record, number, &object, line),
            None if is_open => {
                let own = piece(&object).filter(|piece| is_failing || has_notes && is_note(piece));
                if own.is_none() {
                    said(&mut record, &object);
                }
                if piece(&object).is_some() {
                    let failed = own.filter(|own| is_failing || own.starts_with(ERROR));
                    note = failed.map(|failed| (failed.to_owned(), line));
                }
            }
            None => {}
        }
    }
    // It ends its turn as if all were well.
    if let Some((note, line)) = note.filter(|_| record.final_error.is_none()) {
        let message = note.strip_prefix(ERROR).unwrap_or(&note).trim_end();
        record.is_success = false;
        record.final_error = Some(error(message, None, None, line));
    }
    record
}

/// What the session has cost in US dollars, from its beginning.
fn cost_of(record: &Value) -> Option<f64> {
    let (what, update) = update(record)?;
    let cost = update.get("cost").filter(|_| what == "usage_update")?;
    let is_dollars = text(cost, "currency").is_none_or(|currency| currency == "USD");
    cost.get("amount").filter(|_| is_dollars)?.as_f64()
}

fn ended(record: &mut AgentRecord, number: u64, object: &Value, line: u64) {
    let result = object.get("result").unwrap_or(&Value::Null);
    if number == PROMPT {
        record.interrupted = text(result, "stopReason") == Some("cancelled");
        record.tokens = tokens(result).or(record.tokens);
    }
    let refusal = refusal(object);
    record.is_success = number == PROMPT && refusal.is_none();
    let said = object.get("error").unwrap_or(&Value::Null);
    let data = said.get("data").unwrap_or(&Value::Null);
    let status = status(said.get("code"))
        .or_else(|| status(data.get("status")))
        .or_else(|| status(data.get("statusCode")));
    record.final_error = refusal.map(|(message, code)| error(&message, code, status, line));
}

/// What a prompt used, where its answer says.
fn tokens(result: &Value) -> Option<Tokens> {
    let used = result.get("usage").or(result.pointer("/_meta/usage"));
    used.and_then(counted).or_else(|| {
        let quota = result.pointer("/_meta/quota/token_count")?;
        quota.get("input_tokens")?;
        let (input, output) = (count(quota, "input_tokens"), count(quota, "output_tokens"));
        Some(Tokens::new(input, output, 0, 0))
    })
}

fn counted(used: &Value) -> Option<Tokens> {
    used.get("inputTokens")?;
    let of = |name: &str| count(used, name);
    let (read, written) = (of("cachedReadTokens"), of("cachedWriteTokens"));
    let (input, thought) = (of("inputTokens"), of("thoughtTokens"));
    let output = of("outputTokens").saturating_add(thought);
    // Some count what came from the cache among what was read.
    let is_apart = of("totalTokens") >= input.saturating_add(output).saturating_add(read).max(1);
    let input = if is_apart {
        input
    } else {
        input.saturating_sub(read.saturating_add(written))
    };
    Some(Tokens::new(input, output, read, written))
}

fn said(record: &mut AgentRecord, object: &Value) {
    let Some((what, update)) = update(object) else {
        return;
    };
    if let Some(piece) = piece(object) {
        record.answered = true;
        record.final_text.get_or_insert_default().push_str(piece);
    }
    // Some say it of each answer of the model, and not of all.
    if let Some(used) = update.pointer("/_meta/usage").and_then(counted) {
        record.tokens = Some(record.tokens.unwrap_or_default() + used);
    }
    if what == "tool_call" {
        record.answered = true;
        record.final_text = None;
    }
    if text(update, "status") == Some("failed") {
        let said = items(update, "/content").find_map(|part| text_at(part, "/content/text"));
        record.tool_error = said.map(str::to_owned).or(record.tool_error.take());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What programs said, shortened: Gemini CLI 0.61, Qwen Code 0.24, Copilot CLI 1.0, opencode 1.18, codex-acp 2.6.
    const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}"#;
    const OPENED: &str = r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"ses_dd5e"}}"#;

    fn record(lines: &[&str]) -> AgentRecord {
        let all = [&[INITIALIZED, OPENED], lines].concat();
        read(all.join("\n").as_bytes())
    }

    #[test]
    fn what_a_turn_used_is_read_in_the_words_of_each() {
        let gemini = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":90,"output_tokens":21},"model_usage":[]}}}}"#;
        let copilot = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":90,"outputTokens":21,"totalTokens":111,"cachedReadTokens":15,"cachedWriteTokens":0}}}"#;
        let opencode = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":25,"outputTokens":7,"totalTokens":37,"cachedReadTokens":5},"_meta":{}}}"#;
        let answer = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"f540","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":30,"outputTokens":7,"totalTokens":37,"thoughtTokens":0,"cachedReadTokens":5},"durationMs":61}}}}"#;
        let qwen = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","_meta":{"qwen.branchPoint":{}}}}"#;
        let codex = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"totalTokens":111,"inputTokens":75,"cachedReadTokens":15,"cachedWriteTokens":0,"outputTokens":21,"thoughtTokens":0},"_meta":{"quota":{"token_count":{"totalTokens":111,"inputTokens":75}}}}}"#;
        for (lines, used) in [
            (vec![gemini], Tokens::new(90, 21, 0, 0)),
            (vec![codex], Tokens::new(75, 21, 15, 0)),
            (vec![copilot], Tokens::new(75, 21, 15, 0)),
            (vec![opencode], Tokens::new(25, 7, 5, 0)),
            (vec![answer, answer, qwen], Tokens::new(50, 14, 10, 0)),
        ] {
            let record = record(&lines);
            assert!(record.is_success && record.final_error.is_none());
            assert_eq!(record.tokens, Some(used), "{lines:?}");
        }
        let cost = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"ses_dd5e","update":{"sessionUpdate":"usage_update","used":30,"size":200000,"cost":{"amount":0.000117,"currency":"USD"}}}}"#;
        let record = record(&[cost, gemini]);
        assert_eq!(record.cost_usd, Some(0.000_117));
        assert_eq!(record.session_id.as_deref(), Some("ses_dd5e"));
    }

    #[test]
    fn errors_say_what_an_api_said() {
        for (line, message, status, code) in [
            (
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":500,"message":"exception TypeError: fetch failed sending request"}}"#,
                "exception TypeError: fetch failed sending request",
                Some(500),
                None,
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Internal error","data":{"details":"Connection error."}}}"#,
                "Internal error: Connection error.",
                None,
                None,
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Authentication required"}}"#,
                "Authentication required",
                None,
                Some("authentication_failed"),
            ),
            (
                r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"max_turn_requests"}}"#,
                "max_turn_requests",
                None,
                Some("error_max_turns"),
            ),
        ] {
            let record = record(&[line]);
            let error = record.final_error.expect("an error");
            assert!(!record.is_success);
            assert_eq!((error.message.as_str(), error.status), (message, status));
            assert_eq!(error.code.as_deref(), code);
            assert_eq!(error.line, 3);
        }
        let cancelled =
            record(&[r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}"#]);
        assert!(cancelled.interrupted && !cancelled.is_success);
        let early = read(br#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}"#);
        assert!(!early.is_success, "nothing was asked yet");
    }

    /// codex-acp 2.6: it ends its turn as if all were well.
    #[test]
    fn a_turn_that_failed_is_no_success() {
        let update = |update: Value| {
            json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "ses_dd5e", "update": update}})
                .to_string()
        };
        let status = |kind: &str| {
            update(
                json!({"sessionUpdate": "session_info_update", "_meta": {"codex": {"threadStatus": {"type": kind}}}}),
            )
        };
        let says = |text: &str| {
            update(
                json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}),
            )
        };
        let limit = "exceeded retry limit, last status: 429 Too Many Requests\n\n";
        let end = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":null,"_meta":{"quota":{"token_count":null}}}}"#;
        let (active, failed, said) = (status("active"), status("systemError"), says(limit));
        let one = record(&[&active, &failed, &said, end]);
        let error = one.final_error.expect("an error");
        assert_eq!((error.message.as_str(), error.line), (limit.trim_end(), 5));
        assert!(!one.is_success && !one.answered && one.tokens.is_none());
        let refused = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"Authentication required"}}"#;
        let login = record(&[&says("Warning: unknown"), &failed, refused]);
        let login = login.final_error.expect("an error");
        assert_eq!(login.message, "Authentication required");
        let other = record(&[&failed, &said, &active, &says("Done."), end]);
        assert!(other.is_success && other.answered && other.final_error.is_none());
    }

    #[test]
    fn a_call_is_what_all_its_messages_say() {
        let of = |update: Value| {
            ToolCall::of_update(&json!({"sessionId": "s", "update": update})).expect("a call")
        };
        let begun = of(
            json!({"sessionUpdate": "tool_call", "toolCallId": "call_2", "title": "bash", "kind": "execute",
            "status": "pending", "locations": [{"path": "/p"}], "rawInput": {}}),
        );
        assert_eq!((begun.command(), begun.paths()), (Some("bash"), vec!["/p"]));
        let told = begun.updated(of(json!({"sessionUpdate": "tool_call_update", "toolCallId": "call_2", "title": "rm -rf old",
            "status": "in_progress", "locations": [], "rawInput": {"command": "rm -rf old"}})));
        assert_eq!(
            (told.command(), told.kind()),
            (Some("rm -rf old"), "execute")
        );
        assert!(!told.is_over());
        let ended = told.updated(of(json!({"sessionUpdate": "tool_call_update", "toolCallId": "call_2", "status": "failed"})));
        assert!(ended.is_over() && ended.command() == Some("rm -rf old"));
        let edit = of(
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "kind": "edit", "locations": [{"path": "/a"}],
            "content": [{"type": "diff", "path": "/b"}], "rawInput": {"file_path": "/c"}}),
        );
        assert_eq!(edit.paths(), ["/a", "/b", "/c"]);
        let text = json!({"update": {"sessionUpdate": "agent_message_chunk"}});
        assert_eq!(ToolCall::of_update(&text), None);
    }
}
