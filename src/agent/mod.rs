//! Readers of agents' records, one for each program; `stream` shows those that are at work, of all of them.
//!
//! A reader takes only what the program says of itself (its terminal record and its API errors). Tool results and the
//! model's prose pass by unread, whatever they quote. Records may be cut: lines that do not parse are skipped.

pub(crate) mod acp;
mod aider;
mod claude;
mod codex;
mod copilot;
mod gemini;
pub(crate) mod hooks;
mod opencode;
mod stream;
mod tally;

use serde_json::Value;

use crate::model::agent_record::{AgentError, AgentKind, AgentRecord, is_session_id};
use crate::model::failure::EvidenceSource;
use crate::policy::program::of_line;

pub use stream::Stream;
pub(crate) use tally::Tally;

/// Finds out which agent ran: by what the caller says, else by the command line, else by the look of the records.
pub fn detect(command: Option<&str>, hint: Option<&str>, stdout: &[u8]) -> Option<AgentKind> {
    if hint == Some("none") {
        return None;
    }
    hint.and_then(AgentKind::from_name)
        .or_else(|| command.and_then(named_in))
        .or_else(|| kind_of(stdout))
}

/// Reads the records of `kind` from what a run printed.
pub fn read(kind: AgentKind, stdout: &[u8], stderr: &[u8]) -> AgentRecord {
    let mut record = match kind {
        AgentKind::Claude => claude::read(stdout),
        AgentKind::Qwen => gemini::read_qwen(stdout, stderr),
        AgentKind::Copilot => copilot::read(stdout),
        AgentKind::Codex => codex::read(stdout),
        AgentKind::Gemini => gemini::read(stdout, stderr),
        AgentKind::Opencode => opencode::read(stdout),
        AgentKind::Aider => aider::read(stdout),
        AgentKind::Acp => acp::read(stdout),
    };
    record.answered |= record.is_success || record.tokens.is_some_and(|used| used.output > 0);
    if record.tokens.is_none() && record.answered && kind.tells_tokens() {
        record.tokens = stream::estimated_tokens(kind, stdout);
        record.is_estimated = record.tokens.is_some();
    }
    // It becomes a word of a command line.
    record.session_id = record.session_id.filter(|id| is_session_id(id));
    record
}

/// Something that a record says and that all agents say in ways of their own.
pub(super) enum Said<'a> {
    /// The model's words.
    Text(&'a str),
    /// A piece of them, which more may follow.
    Piece(&'a str),
    /// A tool is called.
    Call {
        id: Option<&'a str>,
        tool: &'a str,
        input: Option<&'a Value>,
    },
    /// A call has ended.
    Ended {
        id: Option<&'a str>,
        result: Vec<Option<&'a Value>>,
        /// The tool's words, where it failed.
        failed: Option<&'a str>,
    },
    /// The program itself has something to say, in a line.
    Note(String),
}

/// What a record says; nothing of the Agent Client Protocol, whose calls come in several records, and of aider.
pub(super) fn said(kind: AgentKind, record: &Value) -> Vec<Said<'_>> {
    let (name, what) = (kind.as_str(), text(record, "type").unwrap_or_default());
    match kind {
        AgentKind::Claude | AgentKind::Qwen => claude::said(name, what, record),
        AgentKind::Codex => codex::said(name, what, record),
        AgentKind::Gemini => gemini::said(name, what, record).into_iter().collect(),
        AgentKind::Opencode => opencode::said(name, what, record),
        AgentKind::Copilot => copilot::said(name, what, record).into_iter().collect(),
        AgentKind::Acp | AgentKind::Aider => Vec::new(),
    }
}

/// Takes what a record says of the session, the model and its tools into what is known of the run.
fn hear(record: &mut AgentRecord, object: &Value) {
    if let Some(session) = stream::session_of(object) {
        record.session_id = Some(session.to_owned());
    }
    for said in said(record.kind, object) {
        record.answered |= matches!(said, Said::Text(_) | Said::Piece(_) | Said::Call { .. });
        match said {
            Said::Text(text) => record.final_text = Some(text.to_owned()),
            Said::Piece(piece) => record.final_text.get_or_insert_default().push_str(piece),
            Said::Ended {
                failed: Some(failed),
                ..
            } if !failed.is_empty() => record.tool_error = Some(failed.to_owned()),
            _ => {}
        }
    }
}

/// The agent among the programs that a command line starts.
fn named_in(command: &str) -> Option<AgentKind> {
    of_line(command)
        .iter()
        .find_map(|program| AgentKind::from_name(program.first()?))
}

/// Whose the first records are.
fn kind_of(stdout: &[u8]) -> Option<AgentKind> {
    let (_, record) = objects(stdout)
        .take(5)
        .find(|(_, record)| record.get("type").is_some())?;
    let kind = text(&record, "type")?;
    if record.get("sessionID").is_some() {
        return Some(AgentKind::Opencode);
    }
    match kind {
        "thread.started" | "turn.started" | "turn.completed" | "turn.failed" => {
            Some(AgentKind::Codex)
        }
        kind if kind.starts_with("session.") && record.get("data").is_some() => {
            Some(AgentKind::Copilot)
        }
        "system" | "assistant" | "result" if record.get("session_id").is_some() => {
            Some(AgentKind::Claude)
        }
        _ => None,
    }
}

/// Longer lines are skipped unread: no terminal record is that long, a tool result may be.
const MAX_RECORD_BYTES: usize = 8 << 20;

/// The JSON objects in `output` with their 1-based line numbers; lines that are no object, or are cut, are skipped.
pub(super) fn objects(output: &[u8]) -> impl Iterator<Item = (u64, Value)> + '_ {
    let lines = output.split(|byte| *byte == b'\n').zip(1_u64..);
    lines.filter_map(|(line, number)| {
        let line = line.trim_ascii();
        let plausible =
            line.starts_with(b"{") && line.ends_with(b"}") && line.len() <= MAX_RECORD_BYTES;
        let value = plausible
            .then(|| serde_json::from_slice::<Value>(line).ok())
            .flatten()?;
        value.is_object().then_some((number, value))
    })
}

/// The one object that all of `output` is, or that it ends with: programs print warnings before it and indent it.
pub(super) fn document(output: &[u8]) -> Option<(u64, Value)> {
    let mut starts: Vec<(u64, usize)> = Vec::new();
    let mut offset = 0;
    for (line, number) in output.split(|byte| *byte == b'\n').zip(1_u64..) {
        if line.starts_with(b"{") {
            starts.push((number, offset));
        }
        offset += line.len() + 1;
    }
    // A bounded number of candidates keeps this linear.
    starts.iter().rev().take(8).find_map(|(number, start)| {
        let mut values =
            serde_json::Deserializer::from_slice(&output[*start..]).into_iter::<Value>();
        let value = values.next()?.ok()?;
        value.is_object().then_some((*number, value))
    })
}

/// A text member.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// A text at a place below.
pub(super) fn text_at<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

/// What a list at a place below holds.
pub(super) fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// An error that a record on stdout names.
pub(super) fn error(
    message: &str,
    code: Option<&str>,
    status: Option<u16>,
    line: u64,
) -> AgentError {
    AgentError {
        message: message.to_owned(),
        code: code.map(str::to_owned),
        status,
        source: EvidenceSource::Stdout,
        line,
    }
}

/// A count at this member; 0 where there is none.
pub(super) fn count(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// An HTTP status, given as a number or as text.
pub(super) fn status(value: Option<&Value>) -> Option<u16> {
    let value = value?;
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number)
        .ok()
        .filter(|status| (100..600).contains(status))
}

#[cfg(test)]
mod tests {
    use super::{detect, read};
    use crate::model::agent_record::{AgentKind, Tokens};

    #[test]
    fn an_agent_is_found_in_a_command_line() {
        for (command, kind) in [
            ("claude -p x", Some(AgentKind::Claude)),
            (
                "cd app && FOO=1 timeout 30m codex exec --json x",
                Some(AgentKind::Codex),
            ),
            ("npx -y @google/gemini-cli -p x", Some(AgentKind::Gemini)),
            ("/usr/local/bin/opencode run x", Some(AgentKind::Opencode)),
            ("cargo test claude", None),
            ("grep codex README.md", None),
        ] {
            assert_eq!(detect(Some(command), None, b""), kind, "{command}");
        }
        assert_eq!(
            detect(Some("./loop.sh"), Some("aider"), b""),
            Some(AgentKind::Aider)
        );
        assert_eq!(
            detect(
                None,
                None,
                b"{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n"
            ),
            Some(AgentKind::Codex)
        );
    }

    #[test]
    fn is_error_beats_the_subtype_and_quotes_are_not_read() {
        let stdout = br#"{"type":"user","message":{"content":[{"type":"tool_result","content":"[Request interrupted by user]"}]},"session_id":"s"}
    {"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1790000000}}
    {"type":"assist
    {"type":"result","subtype":"success","is_error":true,"api_error_status":429,"num_turns":3,"total_cost_usd":0.5,"result":"limit","session_id":"s","permission_denials":[{"tool_name":"Bash"}]}
    "#;
        let record = read(AgentKind::Claude, stdout, b"");
        let error = record.final_error.unwrap();
        assert_eq!((error.status, error.line), (Some(429), 4));
        assert!(!record.is_success && !record.interrupted);
        assert_eq!(record.resets_at, Some(1_790_000_000));
        assert_eq!(
            (record.turns, record.session_id.as_deref()),
            (Some(3), Some("s"))
        );
        assert_eq!(record.permission_denials, ["Bash"]);
    }

    #[test]
    fn an_error_that_was_overcome_is_none() {
        let stdout = br#"{"type":"thread.started","thread_id":"t1"}
    {"type":"turn.started"}
    {"type":"error","message":"stream disconnected before completion"}
    {"type":"turn.completed","usage":{}}"#;
        let record = read(AgentKind::Codex, stdout, b"");
        assert!(record.is_success && record.final_error.is_none());
        let only_reconnecting = read(
            AgentKind::Codex,
            br#"{"type":"error","message":"Reconnecting... 1/5"}"#,
            b"",
        );
        assert!(only_reconnecting.final_error.is_none());
    }

    #[test]
    fn gemini_and_opencode_errors() {
        let stdout = b"Loaded cached credentials.\n{\n  \"session_id\": \"g\",\n  \"error\": {\"type\": \"FatalAuthenticationError\", \"message\": \"no\", \"code\": 41}\n}\n";
        let record = read(AgentKind::Gemini, stdout, b"");
        let error = record.final_error.unwrap();
        assert_eq!(
            (error.code.as_deref(), error.line),
            (Some("FatalAuthenticationError"), 2)
        );
        let stdout = br#"{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"Overloaded","statusCode":529}}}"#;
        let record = read(AgentKind::Opencode, stdout, b"");
        assert_eq!(record.final_error.unwrap().status, Some(529));
        assert_eq!(record.session_id.as_deref(), Some("ses_1"));
        assert_eq!(
            read(
                AgentKind::Aider,
                b"Tokens: 2k sent. Cost: $0.01 message, $0.30 session.\n",
                b""
            )
            .cost_usd,
            Some(0.3)
        );
    }

    #[test]
    fn tokens_are_read_from_each_agents_records() {
        let used = |kind, stdout: &[u8]| read(kind, stdout, b"").tokens;
        let claude = br#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","total_cost_usd":0.0588915,"usage":{"input_tokens":6450,"cache_creation_input_tokens":9,"cache_read_input_tokens":42633,"output_tokens":213},"modelUsage":{"claude-opus-4-8[1m]":{"inputTokens":6450,"outputTokens":213,"cacheReadInputTokens":42633,"cacheCreationInputTokens":9},"claude-haiku-4-5":{"inputTokens":100,"outputTokens":20,"cacheReadInputTokens":0,"cacheCreationInputTokens":0}}}"#;
        assert_eq!(
            used(AgentKind::Claude, claude),
            Some(Tokens::new(6550, 233, 42633, 9))
        );
        let only_usage = br#"{"type":"result","subtype":"success","is_error":false,"session_id":"s","usage":{"input_tokens":21,"cache_creation_input_tokens":18233,"cache_read_input_tokens":74120,"output_tokens":913}}"#;
        assert_eq!(
            used(AgentKind::Claude, only_usage),
            Some(Tokens::new(21, 913, 74120, 18233))
        );
        // Killed: an answer comes in several records, with the same usage each time.
        let killed = br#"{"type":"assistant","message":{"id":"msg_1","content":[{"type":"text","text":"a"}],"usage":{"input_tokens":5,"output_tokens":7}},"session_id":"s"}
    {"type":"assistant","message":{"id":"msg_1","content":[{"type":"tool_use"}],"usage":{"input_tokens":5,"output_tokens":7}},"session_id":"s"}
    {"type":"assistant","message":{"id":"msg_2","content":[],"usage":{"input_tokens":1,"output_tokens":1,"cache_read_input_tokens":5}},"session_id":"s"}"#;
        assert_eq!(
            used(AgentKind::Claude, killed),
            Some(Tokens::new(6, 8, 5, 0))
        );
        let codex = br#"{"type":"turn.completed","usage":{"input_tokens":70021,"cached_input_tokens":57088,"output_tokens":2374,"reasoning_output_tokens":1000}}"#;
        assert_eq!(
            used(AgentKind::Codex, codex),
            Some(Tokens::new(12933, 2374, 57088, 0))
        );
        let gemini = br#"{"session_id":"g","response":"done","stats":{"models":{"gemini-3-pro":{"api":{"totalRequests":2},"tokens":{"prompt":900,"candidates":40,"total":1000,"cached":300,"thoughts":50,"tool":10}}}}}"#;
        assert_eq!(
            used(AgentKind::Gemini, gemini),
            Some(Tokens::new(600, 100, 300, 0))
        );
        let stream = br#"{"type":"init","session_id":"g","model":"gemini-3-pro"}
    {"type":"result","status":"success","stats":{"total_tokens":1000,"input_tokens":900,"output_tokens":60,"cached":300,"duration_ms":5,"tool_calls":1}}"#;
        assert_eq!(
            used(AgentKind::Gemini, stream),
            Some(Tokens::new(600, 100, 300, 0))
        );
        let opencode = br#"{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","cost":0.01,"tokens":{"input":10,"output":4,"reasoning":1,"cache":{"read":100,"write":7}}}}
    {"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","cost":0.02,"tokens":{"input":1,"output":1,"reasoning":0,"cache":{"read":0,"write":0}}}}"#;
        assert_eq!(
            used(AgentKind::Opencode, opencode),
            Some(Tokens::new(11, 6, 100, 7))
        );
        let aider = b"Tokens: 2.4k sent, 512 cache write, 3k cache hit, 99 received. Cost: $0.01 message, $0.30 session.\nTokens: 1.1k sent, 1 received.\n";
        assert_eq!(
            used(AgentKind::Aider, aider),
            Some(Tokens::new(3500, 100, 3000, 512))
        );
        assert_eq!(
            used(AgentKind::Codex, br#"{"type":"turn.completed","usage":{}}"#),
            None
        );
        assert_eq!(used(AgentKind::Aider, b"Tokens: unknown\n"), None);
    }

    #[test]
    fn qwen_and_copilot_records() {
        let stdout = br#"Ripgrep not available. Falling back to built-in grep.
    {"type":"system","subtype":"init","uuid":"8bd3","session_id":"8bd3","cwd":"/p","tools":["edit"],"model":"m","permission_mode":"auto-edit"}
    {"type":"assistant","uuid":"c673","session_id":"8bd3","parent_tool_use_id":null,"message":{"id":"c673","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"I changed nothing."}],"stop_reason":null,"usage":{"input_tokens":120,"output_tokens":30,"cache_read_input_tokens":20,"total_tokens":150}}}
    {"type":"result","subtype":"success","uuid":"acae","session_id":"8bd3","is_error":false,"duration_ms":2098,"num_turns":1,"result":"I changed nothing.","usage":{"input_tokens":240,"output_tokens":60,"cache_read_input_tokens":40,"total_tokens":300},"permission_denials":[]}
    "#;
        let record = read(AgentKind::Qwen, stdout, b"");
        assert_eq!((record.kind, record.is_success), (AgentKind::Qwen, true));
        assert_eq!(
            (record.session_id.as_deref(), record.tokens),
            (Some("8bd3"), Some(Tokens::new(200, 60, 40, 0)))
        );
        let stdout = br#"{"type":"session.tools_updated","data":{"model":"m"},"ephemeral":true,"id":"d5ac"}
    {"type":"assistant.turn_start","data":{"turnId":"0"},"id":"c2f7"}
    {"type":"assistant.message","data":{"messageId":"34c7","model":"m","content":"I changed nothing.","toolRequests":[]},"id":"012e"}
    {"type":"result","timestamp":"2026-11-23T16:03:54.602Z","sessionId":"8b67","exitCode":0,"usage":{"premiumRequests":0,"totalApiDurationMs":158,"codeChanges":{"linesAdded":0}}}
    "#;
        assert_eq!(
            detect(Some("./loop.sh"), None, stdout),
            Some(AgentKind::Copilot)
        );
        let record = read(AgentKind::Copilot, stdout, b"");
        assert!(record.is_success && record.tokens.is_none() && record.cost_usd.is_none());
        assert_eq!(
            (record.session_id.as_deref(), record.turns),
            (Some("8b67"), Some(1))
        );
        assert_eq!(record.final_text.as_deref(), Some("I changed nothing."));
    }
}
