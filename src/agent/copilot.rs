//! GitHub Copilot CLI, `--output-format json`. Its records say neither cost nor tokens.

use serde_json::Value;

use super::stream::note;
use super::{Said, error, hear, objects, status, text, text_at};
use crate::model::agent_record::{AgentKind, AgentRecord};

/// Reads the events; a later answer of the model means that an error was overcome.
pub(super) fn read(stdout: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Copilot);
    let mut turns = 0;
    for (line, object) in objects(stdout) {
        record.structured = true;
        hear(&mut record, &object);
        let data = object.get("data").unwrap_or(&Value::Null);
        match text(&object, "type") {
            Some("assistant.turn_start") => turns += 1,
            Some("assistant.message") => {
                record.final_error = None;
                record.answered = true;
            }
            Some("session.error") => {
                let (code, status) = (text(data, "errorType"), status(data.get("statusCode")));
                record.final_error =
                    text(data, "message").map(|message| error(message, code, status, line));
            }
            Some("tool.execution_complete") if data.get("success") == Some(&Value::Bool(false)) => {
                let said = text_at(data, "/error/message").unwrap_or_default();
                if said.contains("ermission denied") {
                    let tool = text(data, "toolName").unwrap_or("a tool");
                    record.permission_denials.push(tool.to_owned());
                }
            }
            Some("abort") => record.interrupted = true,
            Some("result") => {
                record.is_success = object.get("exitCode").and_then(Value::as_i64) == Some(0);
            }
            _ => {}
        }
    }
    record.turns = record.structured.then_some(turns);
    record
}

/// What a record says, for whoever reads it as it comes.
pub(super) fn said<'a>(name: &str, what: &str, record: &'a Value) -> Option<Said<'a>> {
    let data = record.get("data").unwrap_or(&Value::Null);
    match what {
        "assistant.message" => {
            let said = text(data, "content").filter(|said| !said.is_empty());
            said.map(Said::Text)
        }
        "tool.execution_start" => Some(Said::Call {
            id: text(data, "toolCallId"),
            tool: text(data, "toolName")?,
            input: data.get("arguments"),
        }),
        "tool.execution_complete" => {
            let said = text_at(data, "/error/message").unwrap_or_default();
            let is_failed = data.get("success") == Some(&Value::Bool(false));
            Some(Said::Ended {
                id: text(data, "toolCallId"),
                result: ["success", "result", "error"]
                    .map(|name| data.get(name))
                    .to_vec(),
                failed: is_failed.then_some(said),
            })
        }
        "session.error" => text(data, "message").map(|message| Said::Note(note(name, message))),
        _ => None,
    }
}
