//! GitHub Copilot CLI, `--output-format json`. Its records say neither cost nor tokens.

use serde_json::Value;

use super::{error, objects, status, text, text_at};
use crate::model::agent_record::{AgentKind, AgentRecord};

/// Reads the events; a later answer of the model means that an error was overcome.
pub(super) fn read(stdout: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Copilot);
    let mut turns = 0;
    for (line, object) in objects(stdout) {
        record.structured = true;
        let data = object.get("data").unwrap_or(&Value::Null);
        match text(&object, "type") {
            Some("session.start") => record.session_id = text(data, "sessionId").map(str::to_owned),
            Some("assistant.turn_start") => turns += 1,
            Some("assistant.message") => {
                record.final_error = None;
                record.answered = true;
                if let Some(said) = text(data, "content").filter(|said| !said.is_empty()) {
                    record.final_text = Some(said.to_owned());
                }
            }
            Some("session.error") => {
                let (code, status) = (text(data, "errorType"), status(data.get("statusCode")));
                record.final_error =
                    text(data, "message").map(|message| error(message, code, status, line));
            }
            Some("tool.execution_complete") if data.get("success") == Some(&Value::Bool(false)) => {
                let said = text_at(data, "/error/message");
                if said.is_some_and(|said| said.contains("ermission denied")) {
                    record
                        .permission_denials
                        .push(text(data, "toolName").unwrap_or("a tool").to_owned());
                }
                record.tool_error = said.map(str::to_owned);
            }
            Some("abort") => record.interrupted = true,
            Some("result") => {
                record.session_id = text(&object, "sessionId")
                    .or(record.session_id.as_deref())
                    .map(str::to_owned);
                record.is_success = object.get("exitCode").and_then(Value::as_i64) == Some(0);
            }
            _ => {}
        }
    }
    record.turns = record.structured.then_some(turns);
    record
}
