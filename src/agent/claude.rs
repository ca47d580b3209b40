//! Claude Code, `--output-format json` and `stream-json`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::stream::{note, retries};
use super::{Said, count, document, error, hear, items, objects, status, text, text_at};
use crate::model::Timestamp;
use crate::model::agent_record::{AgentError, AgentKind, AgentRecord, LimitLeft, Tokens};
use crate::policy::text::escape;

/// Reads the result record; without one, the last API error that an assistant record carries.
pub(super) fn read(stdout: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Claude);
    let mut api_error: Option<AgentError> = None;
    // By answer of the model: what is known where no terminal record sums it up.
    let mut answers: BTreeMap<String, (Tokens, f64)> = BTreeMap::new();
    for (line, object) in objects(stdout) {
        record.structured = true;
        // A later answer of the model means that the error was overcome.
        let is_answer = text(&object, "type") == Some("assistant");
        let code = text(&object, "error").filter(|_| is_answer);
        if code.is_none() {
            hear(&mut record, &object);
            record.answered |= is_answer;
        }
        match text(&object, "type") {
            Some("result") => result(&mut record, &object, line),
            Some("assistant") => {
                api_error = code.map(|code| assistant_error(&object, code, line));
                if let Some(message) = object.get("message")
                    && let (Some(id), Some(usage)) = (text(message, "id"), message.get("usage"))
                {
                    let used = tokens(usage);
                    let cost = dollars(text(message, "model").unwrap_or_default(), used);
                    answers.insert(id.to_owned(), (used, cost));
                }
            }
            Some("user") => record.interrupted = is_interrupt_notice(&object),
            Some("rate_limit_event") => rate_limit(&mut record, &object),
            _ => {}
        }
    }
    if !record.structured
        && let Some((line, object)) = document(stdout)
        && text(&object, "type") == Some("result")
    {
        record.structured = true;
        record.session_id = text(&object, "session_id").map(str::to_owned);
        result(&mut record, &object, line);
    }
    if record.tokens.is_none() && !answers.is_empty() {
        let sum = answers
            .into_values()
            .reduce(|(one, cost), (other, more)| (one + other, cost + more));
        record.tokens = sum.map(|(used, _)| used);
        let cost = sum.filter(|(used, _)| used.total > 0 && record.cost_usd.is_none());
        record.is_estimated = cost.is_some();
        record.cost_usd = cost.map(|(_, cost)| cost).or(record.cost_usd);
    }
    match (&mut record.final_error, api_error) {
        (Some(last), Some(earlier))
            if last.code.as_deref().is_none_or(|code| code == "success") =>
        {
            last.code = earlier.code;
        }
        (last @ None, earlier) if !record.is_success => *last = earlier,
        _ => {}
    }
    record
}

/// About what an answer of a model cost, by its list prices for a million tokens read and written. What comes from the cache
/// costs a tenth, what goes into it a quarter more.
fn dollars(model: &str, used: Tokens) -> f64 {
    // Of the end of 2026.
    const PRICES: [(&str, f64, f64); 3] = [
        ("haiku", 1.0, 5.0),
        ("sonnet", 3.0, 15.0),
        ("opus-4-1", 15.0, 75.0),
    ];
    // Later Opus models, and whatever has no price here.
    const OTHERS: (&str, f64, f64) = ("", 5.0, 25.0);
    let price = PRICES.iter().find(|(name, ..)| model.contains(name));
    let (_, input, output) = price.unwrap_or(&OTHERS);
    let read = used.input as f64 + used.cache_read as f64 / 10.0 + used.cache_write as f64 * 1.25;
    (read * input + used.output as f64 * output) / 1e6
}

/// The terminal record. `is_error` beats `subtype`, which may say "success" of a failed run.
fn result(record: &mut AgentRecord, object: &Value, line: u64) {
    let subtype = text(object, "subtype").unwrap_or_default();
    let is_error = object
        .get("is_error")
        .and_then(Value::as_bool)
        .unwrap_or(subtype != "success");
    record.cost_usd = object.get("total_cost_usd").and_then(Value::as_f64);
    // The sums by model, and the cost with them, go on from those of the session; what is beside them is the run's own.
    record.own_tokens = object.get("usage").map(tokens);
    record.tokens = of_models(object);
    record.is_of_session = record.tokens.is_some();
    record.tokens = record.tokens.or(record.own_tokens);
    record.turns = object.get("num_turns").and_then(Value::as_u64);
    let said = text(object, "result").filter(|said| !said.is_empty());
    record.final_text = said.map(str::to_owned).or(record.final_text.take());
    record.is_success = !is_error;
    let tools = items(object, "/permission_denials").filter_map(|denial| text(denial, "tool_name"));
    record.permission_denials = tools.map(str::to_owned).collect();
    if !is_error {
        record.final_error = None;
        return;
    }
    let errors: Vec<&str> = items(object, "/errors")
        .filter_map(|error| error.as_str().or_else(|| text(error, "message")))
        .collect();
    let message = match said {
        Some(said) => said.to_owned(),
        None if errors.is_empty() => {
            let nested = text_at(object, "/error/message");
            text(object, "error")
                .or(nested)
                .unwrap_or(subtype)
                .to_owned()
        }
        None => errors.join("; "),
    };
    record.interrupted |= message.contains("interrupted by user");
    let code = Some(subtype).filter(|code| !code.is_empty());
    let status = status(object.get("api_error_status"));
    record.final_error = Some(error(&message, code, status, line));
}

/// What all models used, those of subagents too.
fn of_models(object: &Value) -> Option<Tokens> {
    let models = object
        .get("modelUsage")
        .and_then(Value::as_object)?
        .values();
    let of_model = |usage| {
        tokens_of(
            usage,
            [
                "inputTokens",
                "outputTokens",
                "cacheReadInputTokens",
                "cacheCreationInputTokens",
            ],
        )
    };
    models.map(of_model).reduce(|one, other| one + other)
}

/// What the API says of one answer, or of a run.
fn tokens(usage: &Value) -> Tokens {
    tokens_of(
        usage,
        [
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        ],
    )
}

fn tokens_of(usage: &Value, names: [&str; 4]) -> Tokens {
    let [input, output, read, written] = names.map(|name| count(usage, name));
    Tokens::new(input, output, read, written)
}

fn assistant_error(object: &Value, code: &str, line: u64) -> AgentError {
    let message = parts(object)
        .find_map(|part| text(part, "text"))
        .unwrap_or(code);
    error(
        message,
        Some(code),
        status(object.get("api_error_status")),
        line,
    )
}

/// What a message is made of.
fn parts(object: &Value) -> impl Iterator<Item = &Value> {
    items(object, "/message/content")
}

/// What a record says, for whoever reads it as it comes.
pub(super) fn said<'a>(name: &str, what: &str, record: &'a Value) -> Vec<Said<'a>> {
    let of_part = |part: &'a Value| match text(part, "type")? {
        "text" => Some(Said::Text(text(part, "text")?)),
        "tool_use" => Some(Said::Call {
            id: text(part, "id"),
            tool: text(part, "name")?,
            input: part.get("input"),
        }),
        "tool_result" => {
            let content = part.get("content");
            let said = content.and_then(|content| {
                let parts = || items(content, "").find_map(|part| text(part, "text"));
                content.as_str().or_else(parts)
            });
            let is_failed = part.get("is_error") == Some(&Value::Bool(true));
            Some(Said::Ended {
                id: text(part, "tool_use_id"),
                result: vec![content],
                failed: is_failed.then(|| said.unwrap_or_default()),
            })
        }
        _ => None,
    };
    let note = match (what, text(record, "subtype")) {
        ("assistant" | "user", _) => return parts(record).filter_map(of_part).collect(),
        ("system", Some("api_retry")) => {
            let status = record.get("error_status").and_then(Value::as_u64);
            let why = status.map(|status| status.to_string());
            let why = why.or_else(|| text(record, "error").map(escape));
            let (number, most) = (count(record, "attempt"), count(record, "max_retries"));
            Some(retries(name, number, most, &why.unwrap_or_default()))
        }
        ("system", Some("status")) => text(record, "status").map(|status| note(name, status)),
        ("result", _) if record.get("is_error") == Some(&Value::Bool(true)) => {
            let why = text(record, "result").or(text(record, "subtype"));
            Some(note(name, why.unwrap_or_default()))
        }
        _ => None,
    };
    note.into_iter().map(Said::Note).collect()
}

/// The program's own note in the user's name; a tool result that quotes the same words is not one.
fn is_interrupt_notice(object: &Value) -> bool {
    let said = |text: &str| {
        text.trim_start()
            .starts_with("[Request interrupted by user")
    };
    text_at(object, "/message/content").is_some_and(said)
        || parts(object).any(|part| text(part, "text").is_some_and(said))
}

/// Only `rejected` is a failure; `allowed_warning` is not.
fn rate_limit(record: &mut AgentRecord, object: &Value) {
    let Some(info) = object.get("rate_limit_info") else {
        return;
    };
    let rejected = text(info, "status") == Some("rejected");
    let resets_at = info.get("resetsAt").and_then(Value::as_i64);
    record.resets_at = if rejected { resets_at } else { None };
    record.limit_left = info
        .get("utilization")
        .and_then(Value::as_f64)
        .zip(resets_at)
        .and_then(|(used, seconds)| left_of(used, seconds))
        .into_iter()
        // There are several limits.
        .chain(record.limit_left)
        .min_by_key(|limit| limit.percent);
}

/// What a limit has left of which this part is used; `None` where that is no part of it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 100"
)]
fn left_of(used: f64, resets_at: i64) -> Option<LimitLeft> {
    let left = (1.0 - used) * 100.0;
    (0.0..=100.0).contains(&left).then(|| LimitLeft {
        percent: left.round() as u8,
        resets_at: Timestamp::from_millis(resets_at.saturating_mul(1000)),
    })
}
