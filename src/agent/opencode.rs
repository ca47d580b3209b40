//! opencode, `run --format json`.

use serde_json::Value;

use super::{count, objects, status, text};
use crate::model::agent_record::Tokens;
use crate::model::agent_record::{AgentError, AgentKind, AgentRecord};
use crate::model::failure::EvidenceSource;

/// Reads the event lines; a finished step after an error means that it was overcome.
pub(super) fn read(stdout: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Opencode);
    let mut turns = 0;
    for (line, object) in objects(stdout) {
        record.structured = true;
        if let Some(session) = text(&object, "sessionID") {
            record.session_id = Some(session.to_owned());
        }
        match text(&object, "type") {
            Some("step_start") => turns += 1,
            Some("step_finish") => {
                record.is_success =
                    object.pointer("/part/reason").and_then(Value::as_str) == Some("stop");
                record.final_error = None;
                let cost = object.pointer("/part/cost").and_then(Value::as_f64);
                record.cost_usd = cost
                    .map(|cost| cost + record.cost_usd.unwrap_or(0.0))
                    .or(record.cost_usd);
                if let Some(used) = object.pointer("/part/tokens") {
                    record.tokens = Some(record.tokens.unwrap_or_default() + tokens(used));
                }
            }
            Some("text") => {
                record.final_text = object
                    .pointer("/part/text")
                    .and_then(Value::as_str)
                    .map(str::to_owned);
            }
            Some("tool_use") => {
                if let Some(said) = object.pointer("/part/state/error").and_then(Value::as_str) {
                    record.tool_error = Some(said.to_owned());
                    let tool = object.pointer("/part/tool").and_then(Value::as_str);
                    if said.contains("rejected permission") {
                        record.permission_denials.extend(tool.map(str::to_owned));
                    }
                }
            }
            Some("error" | "session.error") => failed(&mut record, &object, line),
            _ => {}
        }
    }
    record.turns = record.structured.then_some(turns);
    record
}

/// What one step used; what the model thought is part of what it wrote.
fn tokens(used: &Value) -> Tokens {
    let output = count(used, "output").saturating_add(count(used, "reasoning"));
    let cache = used.get("cache").unwrap_or(&Value::Null);
    Tokens::new(
        count(used, "input"),
        output,
        count(cache, "read"),
        count(cache, "write"),
    )
}

fn failed(record: &mut AgentRecord, object: &Value, line: u64) {
    let error = object
        .get("error")
        .or_else(|| object.pointer("/properties/error"))
        .unwrap_or(object);
    let name = text(error, "name").map(str::to_owned);
    let data = error.get("data").unwrap_or(error);
    let message = text(data, "message")
        .or(error.as_str())
        .or(name.as_deref())
        .unwrap_or("error")
        .to_owned();
    record.is_success = false;
    record.interrupted |= name.as_deref() == Some("MessageAbortedError");
    let status = status(data.get("statusCode").or_else(|| data.get("status")));
    record.final_error = Some(AgentError {
        message,
        code: name,
        status,
        source: EvidenceSource::Stdout,
        line,
    });
}
