//! opencode, `run --format json`.

use serde_json::Value;

use super::stream::note;
use super::{Said, count, error, hear, objects, status, text, text_at};
use crate::model::agent_record::{AgentKind, AgentRecord, Tokens};

/// Reads the event lines; a finished step after an error means that it was overcome.
pub(super) fn read(stdout: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Opencode);
    let mut turns = 0;
    for (line, object) in objects(stdout) {
        record.structured = true;
        hear(&mut record, &object);
        match text(&object, "type") {
            Some("step_start") => turns += 1,
            Some("step_finish") => {
                record.is_success = text_at(&object, "/part/reason") == Some("stop");
                record.final_error = None;
                let cost = object.pointer("/part/cost").and_then(Value::as_f64);
                record.cost_usd = cost
                    .map(|cost| cost + record.cost_usd.unwrap_or(0.0))
                    .or(record.cost_usd);
                if let Some(used) = object.pointer("/part/tokens") {
                    record.tokens = Some(record.tokens.unwrap_or_default() + tokens(used));
                }
            }
            Some("tool_use") => {
                let said = text_at(&object, "/part/state/error").unwrap_or_default();
                let tool = text_at(&object, "/part/tool");
                let tool = tool.filter(|_| said.contains("rejected permission"));
                record.permission_denials.extend(tool.map(str::to_owned));
            }
            Some("error" | "session.error") => failed(&mut record, &object, line),
            _ => {}
        }
    }
    record.turns = record.structured.then_some(turns);
    record
}

/// What a record says, for whoever reads it as it comes. A call comes when it has ended.
pub(super) fn said<'a>(name: &str, what: &str, record: &'a Value) -> Vec<Said<'a>> {
    let part = record.get("part").unwrap_or(&Value::Null);
    let state = |name: &str| part.pointer(&format!("/state/{name}"));
    let said = match what {
        "text" => text(part, "text").map(Said::Text),
        "tool_use" => {
            let (id, tool) = (text(part, "callID"), text(part, "tool"));
            let input = state("input");
            let call = tool.map(|tool| Said::Call { id, tool, input });
            let ended = Said::Ended {
                id,
                result: ["status", "output", "error"].map(state).to_vec(),
                failed: state("error").and_then(Value::as_str),
            };
            return call.into_iter().chain([ended]).collect();
        }
        "error" => {
            let error = record.get("error").unwrap_or(&Value::Null);
            let message = text_at(error, "/data/message").or(text(error, "name"));
            message.map(|message| Said::Note(note(name, message)))
        }
        _ => None,
    };
    said.into_iter().collect()
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
    let named = object.get("error");
    let named = named
        .or_else(|| object.pointer("/properties/error"))
        .unwrap_or(object);
    let name = text(named, "name");
    let data = named.get("data").unwrap_or(named);
    let message = text(data, "message")
        .or(named.as_str())
        .or(name)
        .unwrap_or("error");
    record.is_success = false;
    record.interrupted |= name == Some("MessageAbortedError");
    let wait = data.pointer("/responseHeaders/retry-after");
    record.retry_after_seconds = wait.and_then(|wait| wait.as_str()?.parse().ok());
    let status = status(data.get("statusCode").or_else(|| data.get("status")));
    record.final_error = Some(error(message, name, status, line));
}
