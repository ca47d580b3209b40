//! Readers of agents' records, one for each program; `stream` shows those that are at work, of all of them.
//!
//! A reader takes only what the program says of itself (its terminal record and its API errors). Tool results and the
//! model's prose pass by unread, whatever they quote. Records may be cut: lines that do not parse are skipped.

mod aider;
mod claude;
mod codex;
mod copilot;
mod gemini;
pub(crate) mod hooks;
mod opencode;
mod qwen;
mod stream;

#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::model::agent_record::{AgentKind, AgentRecord, is_session_id};
use crate::policy::program::of_line;

pub use stream::Stream;

/// Finds out which agent ran: by what the caller says, else by the command line, else by the look of the records.
pub fn detect(command: Option<&str>, hint: Option<&str>, stdout: &[u8]) -> Option<AgentKind> {
    if hint == Some("none") {
        return None;
    }
    let by_hint = hint.and_then(AgentKind::from_name);
    by_hint
        .or_else(|| command.and_then(named_in))
        .or_else(|| look(stdout))
}

/// Reads the records of `kind` from what a run printed.
pub fn read(kind: AgentKind, stdout: &[u8], stderr: &[u8]) -> AgentRecord {
    let mut record = match kind {
        AgentKind::Claude => claude::read(stdout),
        AgentKind::Qwen => qwen::read(stdout, stderr),
        AgentKind::Copilot => copilot::read(stdout),
        AgentKind::Codex => codex::read(stdout),
        AgentKind::Gemini => gemini::read(stdout, stderr),
        AgentKind::Opencode => opencode::read(stdout),
        AgentKind::Aider => aider::read(stdout),
    };
    // It becomes a word of a command line.
    record.session_id = record.session_id.filter(|id| is_session_id(id));
    record
}

/// The agent among the programs that a command line starts.
fn named_in(command: &str) -> Option<AgentKind> {
    of_line(command)
        .iter()
        .find_map(|program| AgentKind::from_name(program.first()?))
}

/// Looks at the first records.
fn look(stdout: &[u8]) -> Option<AgentKind> {
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

/// A count at this member; 0 where there is none.
pub(super) fn count(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// An HTTP status, given as a number or as text.
pub(super) fn status(value: Option<&Value>) -> Option<u16> {
    let value = value?;
    let number = value
        .as_u64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()))?;
    u16::try_from(number)
        .ok()
        .filter(|status| (100..600).contains(status))
}
