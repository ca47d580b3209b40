//! Gemini CLI: `--output-format json` and `stream-json`. Errors are an object on stdout or, in some versions, on stderr.

use serde_json::Value;

use super::{claude, count, document, error, objects, status, text, text_at};
use crate::model::agent_record::{AgentError, AgentKind, AgentRecord, Tokens};
use crate::model::failure::EvidenceSource;

/// Reads the one document, or the stream's `result` and `error` events.
pub(super) fn read(stdout: &[u8], stderr: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Gemini);
    for (line, object) in objects(stdout) {
        match text(&object, "type") {
            Some("init") => {
                record.structured = true;
                record.session_id = text(&object, "session_id").map(str::to_owned);
            }
            Some("result") => {
                record.structured = true;
                record.is_success = text(&object, "status") == Some("success");
                record.tokens = object.get("stats").and_then(tokens);
                failed(&mut record, &object, EvidenceSource::Stdout, line);
            }
            Some("message") if text(&object, "role") == Some("assistant") => {
                record.answered = true;
                let said = text(&object, "content").unwrap_or_default();
                let earlier = record
                    .final_text
                    .take()
                    .filter(|_| object.get("delta").is_some());
                record.final_text = Some(earlier.unwrap_or_default() + said);
            }
            Some("tool_use") => {
                record.answered = true;
                record.final_text = None;
            }
            Some("tool_result") if text(&object, "status") == Some("error") => {
                record.tool_error = text_at(&object, "/error/message").map(str::to_owned);
            }
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
