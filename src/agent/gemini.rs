//! Gemini CLI: `--output-format json` and `stream-json`. Errors are an object on stdout or, in some versions, on stderr.

use serde_json::Value;

use super::stream::note;
use super::{Said, claude, count, document, error, hear, objects, status, text, text_at};
use crate::model::agent_record::{AgentError, AgentKind, AgentRecord, Tokens};
use crate::model::failure::EvidenceSource;

/// Reads the one document, or the stream's `result` and `error` events.
pub(super) fn read(stdout: &[u8], stderr: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Gemini);
    for (line, object) in objects(stdout) {
        hear(&mut record, &object);
        match text(&object, "type") {
            Some("init") => record.structured = true,
            Some("result") => {
                record.structured = true;
                record.is_success = text(&object, "status") == Some("success");
                record.tokens = object.get("stats").and_then(tokens);
                failed(&mut record, &object, EvidenceSource::Stdout, line);
            }
            // What the model says after it is its last word.
            Some("tool_use") => record.final_text = None,
            // Only severity "error" ends a run; the others are notes.
            Some("error") if text(&object, "severity") != Some("warning") => {
                record.structured = true;
                failed(&mut record, &object, EvidenceSource::Stdout, line);
            }
            _ => {}
        }
    }
    if record.structured {
        return record;
    }
    for (source, output) in [
        (EvidenceSource::Stdout, stdout),
        (EvidenceSource::Stderr, stderr),
    ] {
        let Some((line, object)) = document(output) else {
            continue;
        };
        if object.get("response").is_none() && object.get("error").is_none() {
            continue;
        }
        record.structured = true;
        record.session_id = text(&object, "session_id")
            .or(record.session_id.as_deref())
            .map(str::to_owned);
        record.final_text = text(&object, "response").map(str::to_owned);
        record.tokens = object.get("stats").and_then(tokens).or(record.tokens);
        failed(&mut record, &object, source, line);
        record.is_success = record.final_error.is_none();
        if record.final_error.is_some() {
            break;
        }
    }
    record
}

/// What a record says, for whoever reads it as it comes.
pub(super) fn said<'a>(name: &str, what: &str, record: &'a Value) -> Option<Said<'a>> {
    match what {
        "message" if text(record, "role") == Some("assistant") => {
            let is_piece = record.get("delta").is_some();
            text(record, "content").map(if is_piece { Said::Piece } else { Said::Text })
        }
        "tool_use" => Some(Said::Call {
            id: text(record, "tool_id"),
            tool: text(record, "tool_name")?,
            input: record.get("parameters"),
        }),
        "tool_result" => {
            let said = text_at(record, "/error/message").unwrap_or_default();
            let is_failed = text(record, "status") == Some("error");
            Some(Said::Ended {
                id: text(record, "tool_id"),
                result: ["status", "output", "error"]
                    .map(|name| record.get(name))
                    .to_vec(),
                failed: is_failed.then_some(said),
            })
        }
        "error" => text(record, "message").map(|message| Said::Note(note(name, message))),
        _ => None,
    }
}

/// The statistics: of a stream in one object, of a document by model. What came from the cache is among the input; what
/// the model thought and read of its tools is only in the total.
fn tokens(stats: &Value) -> Option<Tokens> {
    if stats.get("input_tokens").is_some() {
        return Some(of_model(
            stats,
            "input_tokens",
            "output_tokens",
            "total_tokens",
        ));
    }
    let models = stats.get("models").and_then(Value::as_object)?.values();
    let counted = models.filter_map(|model| model.get("tokens"));
    counted
        .map(|tokens| of_model(tokens, "prompt", "candidates", "total"))
        .reduce(|one, other| one + other)
}

fn of_model(tokens: &Value, input: &str, output: &str, total: &str) -> Tokens {
    let (read, cached) = (count(tokens, input), count(tokens, "cached"));
    let rest = count(tokens, total).saturating_sub(read);
    Tokens::new(
        read.saturating_sub(cached),
        rest.max(count(tokens, output)),
        cached,
        0,
    )
}

fn failed(record: &mut AgentRecord, object: &Value, source: EvidenceSource, line: u64) {
    let named = object
        .get("error")
        .filter(|error| error.is_object())
        .unwrap_or(object);
    let Some(message) = text(named, "message") else {
        return;
    };
    let code = named.get("code");
    record.is_success = false;
    record.interrupted |= code.and_then(Value::as_u64) == Some(130);
    record.final_error = Some(AgentError {
        source,
        ..error(message, text(named, "type"), status(code), line)
    });
}

/// Qwen Code came from Gemini CLI: its records are those of Claude Code now, earlier versions have those here.
pub(super) fn read_qwen(stdout: &[u8], stderr: &[u8]) -> AgentRecord {
    let streamed = claude::read(stdout);
    let mut record = if streamed.structured {
        streamed
    } else {
        read(stdout, stderr)
    };
    if record.kind == AgentKind::Claude {
        // Of the input some came from the cache.
        // Without a result they are the sum of this attempt's answers.
        record.is_of_session = record.own_tokens.is_some();
        record.own_tokens = None;
        // Qwen's prices are others.
        record.cost_usd = record.cost_usd.filter(|_| !record.is_estimated);
        record.tokens = record.tokens.map(|tokens| {
            let input = tokens.input.saturating_sub(tokens.cache_read);
            Tokens::new(input, tokens.output, tokens.cache_read, tokens.cache_write)
        });
    }
    record.kind = AgentKind::Qwen;
    record
}
