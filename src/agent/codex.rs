//! Codex, `codex exec --json`.

use serde_json::Value;

use super::stream::{call_line, note, retries};
use super::{Said, count, error, hear, items, objects, text, text_at};
use crate::model::agent_record::{AgentKind, AgentRecord, Tokens};
use crate::policy::text::escape;

/// Reads thread and turn events. A "Reconnecting" event is not final, a later completed turn clears an error.
pub(super) fn read(stdout: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Codex);
    let mut turns = 0;
    for (line, object) in objects(stdout) {
        record.structured = true;
        hear(&mut record, &object);
        match text(&object, "type") {
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
                record.answered |= text_at(&object, "/item/type") != Some("error");
            }
            _ => {}
        }
    }
    record.turns = record.structured.then_some(turns);
    record
}

/// What a record says, for whoever reads it as it comes.
pub(super) fn said<'a>(name: &str, what: &str, record: &'a Value) -> Vec<Said<'a>> {
    let item = record.get("item").unwrap_or(&Value::Null);
    let id = text(item, "id");
    let called = |tool: &'a str, input| Said::Call { id, tool, input };
    let first = match (what, text(item, "type")) {
        ("item.completed", Some("agent_message" | "assistant_message")) => {
            text(item, "text").map(Said::Text)
        }
        ("item.started", Some("command_execution")) => Some(called("shell", item.get("command"))),
        ("item.started", _) => text(item, "tool").map(|tool| called(tool, item.get("arguments"))),
        ("item.completed", Some("file_change")) => {
            let paths = items(item, "/changes").filter_map(|change| text(change, "path"));
            let paths: Vec<&str> = paths.collect();
            Some(Said::Note(call_line("edit", &paths.join(", "))))
        }
        // Only now it is known what was searched for.
        ("item.completed", Some("web_search")) => Some(called("search", item.get("query"))),
        ("item.completed", Some("error")) => {
            text(item, "message").map(|message| Said::Note(note(name, message)))
        }
        ("error", _) => {
            text(record, "message").map(|message| Said::Note(reconnecting(name, message)))
        }
        ("turn.failed", _) => {
            text_at(record, "/error/message").map(|why| Said::Note(note(name, why)))
        }
        _ => None,
    };
    let code = item.get("exit_code").and_then(Value::as_i64);
    let output = text(item, "aggregated_output").unwrap_or_default();
    let result = [
        "aggregated_output",
        "exit_code",
        "status",
        "result",
        "error",
    ];
    let ended = (what == "item.completed").then(|| Said::Ended {
        id,
        result: result.map(|name| item.get(name)).to_vec(),
        failed: code.is_some_and(|code| code != 0).then_some(output),
    });
    first.into_iter().chain(ended).collect()
}

/// `Reconnecting... 1/5 (why)`.
fn reconnecting(name: &str, message: &str) -> String {
    let counted = message.strip_prefix("Reconnecting... ").and_then(|rest| {
        let (count, why) = rest.split_once(' ').unwrap_or((rest, ""));
        let (number, most) = count.split_once('/')?;
        Some(retries(
            name,
            number.parse().ok()?,
            most.parse().ok()?,
            &escape(why.trim_matches(['(', ')'])),
        ))
    });
    counted.unwrap_or_else(|| note(name, message))
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
