//! An agent's records as they come: their session, what a person reads of them, what they cost where they break off.

use serde_json::Value;

use super::{Said, acp, items, kind_of, objects, said, text, text_at};
use crate::model::agent_record::{AgentKind, Tokens, is_session_id};
use crate::policy::text::{escape, escape_lines};

/// A longer line is no record that anybody wants to read; it is not held in memory.
const MAX_LINE: usize = 8 << 20;
/// Bytes without a record after which none is looked for any more.
const PATIENCE: usize = 256 << 10;
/// Characters of a tool call that are shown.
const MAX_CALL: usize = 160;
/// Members of a tool's input that say what it is about, the best one first.
const TELLING: [&str; 12] = [
    "command",
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "path",
    "pattern",
    "query",
    "url",
    "dir_path",
    "description",
    "prompt",
];

type Observer = Box<dyn FnMut(AgentKind, &Value) + Send>;

/// What the stream of one attempt said so far.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Stream {
    kind: Option<AgentKind>,
    /// The line that has not ended.
    line: Vec<u8>,
    /// One that is no record is under way: it is shown as it comes.
    is_plain_line: bool,
    /// It is too long and left out.
    skips: bool,
    session: Option<String>,
    /// How often the model has answered.
    answers: usize,
    /// Bytes that came while nothing was known of whose they are.
    unknown: usize,
    /// Text was shown that did not end its line.
    is_open: bool,
    /// What comes is new, and not what was said in a session before.
    is_new: bool,
    /// The model's turn has failed: what comes is not its answer.
    is_failing: bool,
    /// The call of a tool that was shown last, where several records are about one.
    call: Option<String>,
    observer: Option<Observer>,
}

impl Stream {
    /// The stream of an agent of `kind`, where that is known.
    pub fn new(kind: Option<AgentKind>) -> Self {
        Self {
            kind,
            line: Vec::new(),
            is_plain_line: false,
            skips: false,
            session: None,
            answers: 0,
            unknown: 0,
            is_open: false,
            is_new: kind != Some(AgentKind::Acp),
            is_failing: false,
            call: None,
            observer: None,
        }
    }

    /// The same, whose records `observer` gets as well.
    #[must_use]
    pub(crate) fn observed(self, observer: impl FnMut(AgentKind, &Value) + Send + 'static) -> Self {
        Self {
            observer: Some(Box::new(observer)),
            ..self
        }
    }

    /// Takes output as it comes, and answers with what is to be read of it. Lines that are no records are shown as they
    /// are.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::new();
        if self.kind.is_none() {
            self.unknown += bytes.len();
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.is_plain_line
                || (self.line.is_empty() && !self.skips && !piece.starts_with(b"{"))
            {
                self.close(&mut shown);
                shown.extend_from_slice(piece);
                self.is_plain_line = !piece.ends_with(b"\n");
                continue;
            }
            if self.line.len() + piece.len() > MAX_LINE {
                self.skips = true;
                self.line.clear();
            }
            if !self.skips {
                self.line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                self.end_line(&mut shown);
            }
        }
        shown
    }

    /// Whether this is no agent's output, as far as can be known: nothing more need be given to it once it has ended.
    pub fn is_plain(&self) -> bool {
        self.kind.is_none() && self.unknown > PATIENCE
    }

    /// What is left to read when the output has ended.
    pub fn end(&mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        self.end_line(&mut shown);
        self.close(&mut shown);
        shown
    }

    /// The session that the records name.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// Whether the model has answered.
    pub fn has_answered(&self) -> bool {
        self.answers > 0
    }

    fn end_line(&mut self, shown: &mut Vec<u8>) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.skips) || line.is_empty() {
            return;
        }
        let record = serde_json::from_slice::<Value>(&line)
            .ok()
            .filter(Value::is_object);
        let kind = self.kind.or_else(|| kind_of(&line));
        let (Some(record), Some(kind)) = (record, kind) else {
            self.close(shown);
            shown.extend_from_slice(&line);
            return;
        };
        self.kind = Some(kind);
        self.is_new |= acp::opens(&record);
        if !self.is_new && acp::is_update(&record) {
            return;
        }
        self.is_failing = acp::has_failed(&record).unwrap_or(self.is_failing);
        // An error of the API is given in the place of an answer, too.
        if is_answer(kind, &record) && record.get("error").is_none() && !self.is_failing {
            self.answers += 1;
        }
        if let Some(observer) = &mut self.observer {
            observer(kind, &record);
        }
        if let Some(session) = session_of(&record).filter(|session| is_session_id(session)) {
            self.session = Some(session.to_owned());
        }
        if kind == AgentKind::Acp {
            return self.show_acp(&record, shown);
        }
        for said in said(kind, &record) {
            match said {
                Said::Piece(piece) => self.show_piece(piece, shown),
                Said::Text(text) => {
                    let text = text.trim_matches('\n');
                    if !text.trim().is_empty() {
                        self.show_line(&escape_lines(text), shown);
                    }
                }
                Said::Call { tool, input, .. } => self.show_line(&call(tool, input), shown),
                Said::Ended {
                    failed: Some(failed),
                    ..
                } => self.show_line(&failed_tool(failed), shown),
                Said::Ended { .. } => {}
                Said::Note(note) => self.show_line(&note, shown),
            }
        }
    }

    fn show_acp(&mut self, record: &Value, shown: &mut Vec<u8>) {
        if let Some(piece) = acp::piece(record) {
            if acp::is_note(piece) {
                return self.show_line(&escape_lines(piece), shown);
            }
            return self.show_piece(piece, shown);
        }
        let line = match acp_call(record) {
            Some((id, _)) if self.call.as_ref() == Some(&id) => return,
            Some((id, line)) => {
                self.call = Some(id);
                Some(line)
            }
            None => acp_line(record),
        };
        if let Some(line) = line {
            self.show_line(&line, shown);
        }
    }

    /// Shows what goes on where the piece before it ended.
    fn show_piece(&mut self, piece: &str, shown: &mut Vec<u8>) {
        let said = escape_lines(piece);
        self.is_open = !said.is_empty() && !said.ends_with('\n');
        shown.extend_from_slice(said.as_bytes());
    }

    fn show_line(&mut self, line: &str, shown: &mut Vec<u8>) {
        self.close(shown);
        shown.extend_from_slice(line.as_bytes());
        shown.push(b'\n');
    }

    fn close(&mut self, shown: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_open) {
            shown.push(b'\n');
        }
    }
}

/// Bytes of a record that are a token or so.
const BYTES_A_TOKEN: u64 = 4;

/// About how many tokens a run used whose records break off before they say: each answer of the model read all that came
/// before it. What they do not show, the agent's own instructions for one, is not in it.
#[derive(Debug, Default)]
pub(super) struct Estimate {
    used: Option<Tokens>,
    before: u64,
}

impl Estimate {
    pub(super) fn take(&mut self, kind: AgentKind, record: &Value) {
        let is_acp = kind == AgentKind::Acp;
        let size = if is_acp {
            acp::size(record)
        } else {
            record.to_string().len()
        };
        let size = size as u64 / BYTES_A_TOKEN;
        let is_piece = is_acp && acp::piece(record).is_some();
        let is_last = is_acp && acp::answers(record) == Some(acp::PROMPT);
        if is_answer(kind, record) && !is_piece || is_last {
            let sum = Tokens::new(0, size, self.before, 0) + self.used.unwrap_or_default();
            self.used = Some(sum);
        }
        self.before += size;
    }

    pub(super) fn tokens(&self) -> Option<Tokens> {
        self.used
    }
}

/// The estimate of a whole output.
pub(super) fn estimated_tokens(kind: AgentKind, output: &[u8]) -> Option<Tokens> {
    let mut estimate = Estimate::default();
    objects(output).for_each(|(_, record)| estimate.take(kind, &record));
    estimate.tokens()
}

/// Whether the model said this: a text or a call of a tool.
fn is_answer(kind: AgentKind, record: &Value) -> bool {
    let what = text(record, "type").unwrap_or_default();
    match kind {
        AgentKind::Claude | AgentKind::Qwen => what == "assistant",
        AgentKind::Codex => {
            what == "item.completed" && text_at(record, "/item/type") != Some("error")
        }
        AgentKind::Gemini => {
            what == "tool_use" || what == "message" && text(record, "role") == Some("assistant")
        }
        AgentKind::Opencode => matches!(what, "text" | "tool_use"),
        AgentKind::Copilot => what == "assistant.message",
        AgentKind::Acp => {
            let is_call = acp::update(record).is_some_and(|(what, _)| what == "tool_call");
            is_call || acp::piece(record).is_some_and(|piece| !acp::is_note(piece))
        }
        AgentKind::Aider => false,
    }
}

/// The id under which the program can go on.
pub(super) fn session_of(record: &Value) -> Option<&str> {
    if record.get("jsonrpc").is_some() {
        return acp::session_of(record);
    }
    text(record, "type")?;
    let nested = record.get("data").and_then(|data| text(data, "sessionId"));
    ["session_id", "thread_id", "sessionID", "sessionId"]
        .into_iter()
        .find_map(|name| text(record, name))
        .or(nested)
}

/// A call of a tool that has not ended, in a line, once a record says what it is about.
fn acp_call(record: &Value) -> Option<(String, String)> {
    let update = acp::call(record)?;
    let id = text(update, "toolCallId")?.to_owned();
    let (kind, status) = (
        text(update, "kind").unwrap_or("tool"),
        text(update, "status"),
    );
    if matches!(status, Some("completed" | "failed")) {
        return None;
    }
    let input = update.get("rawInput");
    let is_told = |input: &Value| TELLING.iter().any(|name| text(input, name).is_some());
    if input.is_some_and(is_told) {
        return Some((id, call(kind, input)));
    }
    let place = text_at(update, "/locations/0/path").filter(|_| kind != "execute");
    let is_asked = record.get("id").is_some() || status == Some("in_progress");
    let title = text(update, "title").filter(|_| is_asked);
    Some((id, call_line(kind, place.or(title)?)))
}

fn acp_line(record: &Value) -> Option<String> {
    match acp::update(record) {
        Some((_, update)) if text(update, "status") == Some("failed") => {
            let said = items(update, "/content").find_map(|part| text_at(part, "/content/text"));
            Some(failed_tool(said.unwrap_or_default()))
        }
        Some(("plan", update)) => {
            let entries = || items(update, "/entries");
            let is =
                |status: &'static str| move |entry: &&Value| text(entry, "status") == Some(status);
            let done = entries().filter(is("completed")).count();
            let at = entries().find(is("in_progress"));
            let at = at
                .and_then(|entry| text(entry, "content"))
                .unwrap_or_default();
            Some(format!(
                "[plan, {done} of {} done: {}]",
                entries().count(),
                one_line(at)
            ))
        }
        Some(_) => None,
        None => acp::refusal(record).map(|(message, _)| note(AgentKind::Acp.as_str(), &message)),
    }
}

/// `claude retries, 7 of 10: 401`.
pub(super) fn retries(name: &str, number: u64, most: u64, why: &str) -> String {
    let why = if why.is_empty() {
        String::new()
    } else {
        format!(": {why}")
    };
    format!("[{name} retries, {number} of {most}{why}]")
}

/// What the program itself says.
pub(super) fn note(name: &str, message: &str) -> String {
    format!("[{name}: {}]", one_line(message))
}

/// A tool call in one line.
pub(super) fn call(tool: &str, input: Option<&Value>) -> String {
    let telling = input.and_then(|input| TELLING.iter().find_map(|name| text(input, name)));
    match (telling.or(input.and_then(Value::as_str)), input) {
        (Some(about), _) => call_line(tool, about),
        (None, Some(Value::Object(input))) if !input.is_empty() => {
            call_line(tool, &Value::Object(input.clone()).to_string())
        }
        _ => format!("> {}", one_line(tool)),
    }
}

pub(super) fn call_line(tool: &str, about: &str) -> String {
    format!("> {}: {}", one_line(tool), one_line(about))
}

fn failed_tool(said: &str) -> String {
    format!("  failed: {}", one_line(said))
}

fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut cut: String = words.chars().take(MAX_CALL).collect();
    if cut.len() < words.len() {
        cut.push('…');
    }
    escape(&cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: Option<AgentKind>, output: &str) -> (String, Option<String>) {
        // In pieces as a pipe gives them.
        let mut stream = Stream::new(kind);
        let mut text: Vec<u8> = output
            .as_bytes()
            .chunks(7)
            .flat_map(|piece| stream.take(piece))
            .collect();
        text.extend(stream.end());
        (
            String::from_utf8(text).unwrap(),
            stream.session().map(str::to_owned),
        )
    }

    #[test]
    fn claude_is_read_as_text_and_one_line_a_tool() {
        let output = r#"{"type":"system","subtype":"init","session_id":"s-1","tools":["Bash"]}
a warning of its own
{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"Let me run\nthe tests.\u001b[2J"},{"type":"tool_use","name":"Bash","input":{"description":"d","command":"cargo test \\\n  --lib"}}]},"session_id":"s-1"}
{"type":"user","message":{"content":[{"type":"tool_result","content":"quoted output"}]},"session_id":"s-1"}
{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":"exit 101\nboom"}]},"session_id":"s-1"}
{"type":"system","subtype":"api_retry","attempt":7,"max_retries":10,"retry_delay_ms":1000,"error_status":401,"error":"authentication_failed","session_id":"s-1"}
{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key","session_id":"s-1"}"#;
        let (text, session) = shown(None, output);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "a warning of its own",
                "Let me run",
                "the tests.\\u{1b}[2J",
                "> Bash: cargo test \\ --lib",
                "  failed: exit 101 boom",
                "[claude retries, 7 of 10: 401]",
                "[claude: Invalid API key]",
            ]
        );
        assert_eq!(session.as_deref(), Some("s-1"));
    }

    #[test]
    fn other_agents_are_read_the_same_way() {
        let codex = r#"{"type":"thread.started","thread_id":"t-1"}
{"type":"error","message":"Reconnecting... 1/5 (exceeded retry limit, last status: 429 Too Many Requests)"}
{"type":"item.started","item":{"id":"i","type":"command_execution","command":"bash -lc 'cargo test'"}}
{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}
"#;
        let (text, session) = shown(None, codex);
        assert_eq!(
            text,
            "[codex retries, 1 of 5: exceeded retry limit, last status: 429 Too Many Requests]\n> shell: bash -lc 'cargo test'\nDone.\n"
        );
        assert_eq!(session.as_deref(), Some("t-1"));
        let gemini = r#"{"type":"init","session_id":"g-1","model":"m"}
{"type":"message","role":"user","content":"Fix it."}
{"type":"message","role":"assistant","content":"I will ","delta":true}
{"type":"message","role":"assistant","content":"look.","delta":true}
{"type":"tool_use","tool_name":"read_file","tool_id":"1","parameters":{"file_path":"src/a.rs"}}
{"type":"result","status":"success","stats":{}}
"#;
        let (text, session) = shown(Some(AgentKind::Gemini), gemini);
        assert_eq!(
            (text.as_str(), session.as_deref()),
            ("I will look.\n> read_file: src/a.rs\n", Some("g-1"))
        );
        let opencode = r#"{"type":"tool_use","sessionID":"ses_1","part":{"tool":"edit","state":{"input":{"filePath":"a.rs"}}}}
{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"Overloaded"}}}
"#;
        assert_eq!(
            shown(None, opencode).0,
            "> edit: a.rs\n[opencode: Overloaded]\n"
        );
    }

    #[test]
    fn of_a_protocol_a_call_is_one_line_and_what_was_said_before_is_none() {
        let lines = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Before."}}}}
{"jsonrpc":"2.0","id":2,"result":{}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"Shell","kind":"execute","status":"pending","rawInput":{}}}}
{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s-1","toolCall":{"toolCallId":"c","title":"ls (Run it)","kind":"execute","status":"pending","rawInput":{"command":"ls"}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","kind":"execute","status":"in_progress","rawInput":{"command":"ls"}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed","content":[{"type":"content","content":{"type":"text","text":"no\nway"}}]}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Do"}}}}
{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"ne."}}}}
{"jsonrpc":"2.0","id":3,"error":{"code":429,"message":"Too many"}}
"#;
        let (text, session) = shown(Some(AgentKind::Acp), lines);
        assert_eq!(
            text,
            "> execute: ls\n  failed: no way\nDone.\n[acp: Too many]\n"
        );
        assert_eq!(session.as_deref(), Some("s-1"));
    }

    #[test]
    fn what_is_no_record_is_shown_as_it_is() {
        let plain = "{\"a\": 1}\nbuilding…\n{broken\nno end";
        assert_eq!(shown(None, plain).0, plain);
        let mut stream = Stream::new(None);
        assert_eq!(
            stream.take("größ".as_bytes().split_at(3).0),
            "größ".as_bytes()[..3],
            "at once"
        );
    }
}
