//! Codex, `codex exec --json`.

use serde_json::Value;

use super::{count, error, objects, text};
use crate::model::agent_record::{AgentKind, AgentRecord, Tokens};

/// Reads thread and turn events. A "Reconnecting" event is not final, a later completed turn clears an error.
pub(super) fn read(stdout: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Codex);
    let mut turns = 0;
    for (line, object) in objects(stdout) {
        record.structured = true;
        match text(&object, "type") {
            Some("thread.started") => {
                record.session_id = text(&object, "thread_id").map(str::to_owned);
            }
            Some("turn.started") => {
                turns += 1;
                record.is_success = false;
            }
            Some("turn.completed") => {
                record.is_success = true;
                record.final_error = None;
                if let Some(used) = object
                    .get("usage")
                    .filter(|usage| usage.get("input_tokens").is_some())
                {
                    record.tokens = Some(tokens(used));
                    record.is_of_session = true;
                }
            }
            Some("turn.failed") => {
                failed(&mut record, object.get("error").unwrap_or(&object), line);
            }
            Some("error") => {
                let reconnecting =
                    text(&object, "message").is_some_and(|it| it.starts_with("Reconnecting"));
                if !reconnecting {
                    failed(&mut record, &object, line);
                }
            }
            Some("turn.aborted") => record.interrupted = true,
            Some("item.completed") => {
                let item = object.get("item").unwrap_or(&Value::Null);
                record.answered |= text(item, "type") != Some("error");
                let code = item.get("exit_code").and_then(Value::as_i64);
                if matches!(
                    text(item, "type"),
                    Some("agent_message" | "assistant_message")
                ) {
                    record.final_text = text(item, "text").map(str::to_owned);
                } else if code.is_some_and(|code| code != 0) {
                    record.tool_error = text(item, "aggregated_output").map(str::to_owned);
                }
            }
            _ => {}
        }
    }
    record.turns = record.structured.then_some(turns);
    record
}

/// The thread's tokens so far. Those from and to the cache are among the input.
fn tokens(usage: &Value) -> Tokens {
    let cached = count(usage, "cached_input_tokens");
    let written = count(usage, "cache_write_input_tokens");
    let input = count(usage, "input_tokens")
        .saturating_sub(cached)
        .saturating_sub(written);
    Tokens::new(input, count(usage, "output_tokens"), cached, written)
}

fn failed(record: &mut AgentRecord, said: &Value, line: u64) {
    record.is_success = false;
    if let Some(message) = text(said, "message") {
        let code = text(said, "code").or_else(|| text(said, "codex_error_info"));
        record.final_error = Some(error(message, code, None, line));
    }
}
