//! Reads records of agents that have no reader of their own: one JSON object a line, errors under names that say so.

use serde_json::{Map, Value};

use crate::model::agent_record::{AgentError, AgentKind, AgentRecord};
use crate::model::failure::EvidenceSource;
use crate::policy::text::Text;

/// How many of the last lines are read: an error that ended the run is at its end.
const LAST_LINES: usize = 12;
/// How deep an error may be in a record.
const MAX_DEPTH: usize = 4;

/// The last error that the records at the end of an output name, if they name one.
pub(super) fn last_error(stdout: &Text) -> Option<AgentRecord> {
    let error = stdout.lines().rev().take(LAST_LINES).find_map(|line| {
        let text = line.bytes.trim_ascii();
        let record: Value = text
            .starts_with(b"{")
            .then(|| serde_json::from_slice(text).ok())
            .flatten()?;
        error_in(&record, MAX_DEPTH).map(|error| AgentError {
            line: line.number,
            ..error
        })
    })?;
    // The kind is of no account: what counts is the error.
    Some(AgentRecord {
        final_error: Some(error),
        ..AgentRecord::new(AgentKind::Claude)
    })
}

fn error_in(value: &Value, depth: usize) -> Option<AgentError> {
    let (record, deeper) = (value.as_object()?, depth.checked_sub(1)?);
    let text = |name: &str| record.get(name).and_then(Value::as_str);
    // What a tool reported is the agent's business, not its end.
    let of_tool = |name: &str| name.to_ascii_lowercase().contains("tool");
    if text("type").is_some_and(of_tool) || text("role").is_some_and(of_tool) {
        return None;
    }
    let is_error = |name: &str| name.to_ascii_lowercase().contains("error");
    let named =
        record
            .iter()
            .filter(|(name, _)| is_error(name))
            .find_map(|(_, error)| match error {
                Value::String(message) if !message.trim().is_empty() => {
                    Some(error_of(message, record))
                }
                Value::Object(error) => error
                    .get("message")
                    .and_then(Value::as_str)
                    .map(|message| error_of(message, error)),
                _ => None,
            });
    let own = || {
        text("message")
            .filter(|_| text("type").is_some_and(is_error))
            .map(|said| error_of(said, record))
    };
    let inner = || {
        ["message", "data", "event", "payload", "result"]
            .iter()
            .find_map(|name| error_in(record.get(*name)?, deeper))
    };
    let last = || error_in(record.get("messages")?.as_array()?.last()?, deeper);
    named.or_else(own).or_else(inner).or_else(last)
}

/// The words of an error, and the code and status that stand beside them.
fn error_of(message: &str, beside: &Map<String, Value>) -> AgentError {
    let code = ["code", "name", "type"]
        .iter()
        .find_map(|name| beside.get(*name)?.as_str())
        .map(str::to_owned);
    let status = ["status", "statusCode", "status_code", "code"]
        .iter()
        .find_map(|name| beside.get(*name)?.as_u64());
    let status = status.and_then(|status| u16::try_from(status).ok());
    AgentError {
        message: message.to_owned(),
        code,
        status,
        source: EvidenceSource::Record,
        line: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(output: &str) -> Option<(String, Option<u16>)> {
        let error = last_error(&Text::new(output.as_bytes()))?.final_error?;
        Some((error.message, error.status))
    }

    #[test]
    fn errors_are_found_under_many_names() {
        for (output, expected) in [
            (
                r#"{"type":"end","finalError":"529 busy"}"#,
                Some(("529 busy", None)),
            ),
            (
                r#"{"type":"x","error":{"message":"no","status":401}}"#,
                Some(("no", Some(401))),
            ),
            (r#"{"type":"error","message":"late"}"#, Some(("late", None))),
            (
                r#"{"messages":[{"role":"user"},{"role":"assistant","errorMessage":"cut"}]}"#,
                Some(("cut", None)),
            ),
            (
                r#"{"type":"tool_result","error":"permission denied"}"#,
                None,
            ),
            (r#"{"type":"end","isError":true,"text":"x"}"#, None),
            ("{broken", None),
            ("plain error: words", None),
        ] {
            let expected = expected.map(|(message, status)| (message.to_owned(), status));
            assert_eq!(error(output), expected, "{output}");
        }
    }
}
