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
mod records;
mod stream;

#[cfg(test)]
mod tests;

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
    let (_, record) = records::objects(stdout)
        .take(5)
        .find(|(_, record)| record.get("type").is_some())?;
    let kind = records::text(&record, "type")?;
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
