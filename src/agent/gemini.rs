//! Gemini CLI: `--output-format json` and `stream-json`. Errors are an object on stdout or, in some versions, on stderr.

use serde_json::Value;

use super::records::{document, objects, status, text};
use crate::model::agent_record::{AgentError, AgentKind, AgentRecord};
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
                failed(&mut record, &object, EvidenceSource::Stdout, line);
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
    for (source, output) in [(EvidenceSource::Stdout, stdout), (EvidenceSource::Stderr, stderr)] {
        let Some((line, object)) = document(output) else { continue };
        if object.get("response").is_none() && object.get("error").is_none() {
            continue;
        }
        record.structured = true;
        record.session_id = text(&object, "session_id").or(record.session_id.as_deref()).map(str::to_owned);
        record.final_text = text(&object, "response").map(str::to_owned);
        failed(&mut record, &object, source, line);
        record.is_success = record.final_error.is_none();
        if record.final_error.is_some() {
            break;
        }
    }
    record
}

fn failed(record: &mut AgentRecord, object: &Value, source: EvidenceSource, line: u64) {
    let error = object.get("error").filter(|error| error.is_object()).unwrap_or(object);
    let Some(message) = text(error, "message") else { return };
    let kind = text(error, "type").map(str::to_owned);
    let code = error.get("code");
    record.is_success = false;
    record.interrupted |= code.and_then(Value::as_u64) == Some(130);
    record.final_error =
        Some(AgentError { message: message.to_owned(), code: kind, status: status(code), source, line });
}
