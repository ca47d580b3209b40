//! A run as a trace of `OpenTelemetry`, in the JSON form of OTLP.
//!
//! A span for the run, each iteration, attempt, check and wait. Attributes of an attempt have the names of the conventions for
//! generative AI, where they are the agent's.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::model::{Attempt, AttemptOutcome, Iteration, Run, Timestamp};
use crate::policy::text::checksum;

/// Status codes of a span.
const OK: u8 = 1;
const ERROR: u8 = 2;
/// Its kind: internal.
const INTERNAL: u8 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Span {
    trace_id: String,
    #[serde(rename = "spanId")]
    id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    parent_span_id: String,
    name: String,
    kind: u8,
    /// Nanoseconds since 1970; a string, as all 64-bit numbers are.
    start_time_unix_nano: String,
    end_time_unix_nano: String,
    attributes: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
}

/// The document that an OTLP receiver takes (`ExportTraceServiceRequest`). What is under way ends `now`.
///
/// The same run has the same ids each time.
pub(crate) fn otlp(run: &Run, now: Timestamp) -> Value {
    let trace = Trace::new(run, now);
    json!({"resourceSpans": [{
        "resource": {"attributes": [
            text("service.name", "recover"),
            text("service.version", env!("CARGO_PKG_VERSION")),
        ]},
        "scopeSpans": [{
            "scope": {"name": "recover", "version": env!("CARGO_PKG_VERSION")},
            "spans": trace.spans,
        }],
    }]})
}

struct Trace<'a> {
    run: &'a Run,
    now: Timestamp,
    spans: Vec<Span>,
}

impl<'a> Trace<'a> {
    fn new(run: &'a Run, now: Timestamp) -> Self {
        let mut trace = Self {
            run,
            now,
            spans: Vec::new(),
        };
        let ended = run.ended_at.unwrap_or(now);
        let attempts = run.attempts().map(|(_, attempt)| trace.end_of(attempt));
        let end = attempts.fold(ended, Timestamp::max);
        let root = trace.add("", "run", (run.created_at, end));
        let key = &run.key;
        root.attributes.extend([
            text("recover.run.id", key.run_id.as_str()),
            text("recover.run.status", run.status.as_str()),
            text("recover.session.id", &run.session),
        ]);
        root.status = match run.status.as_str() {
            "complete" | "accepted" => Some(status(OK, None)),
            "failed" | "escalated" => Some(status(
                ERROR,
                run.failure.as_ref().map(|it| it.message.as_str()),
            )),
            _ => None,
        };
        for iteration in run.iterations.values() {
            trace.iteration(iteration);
        }
        trace
    }

    /// Adds a span; `place` is its place within the run, from which its id is made.
    fn add(&mut self, parent: &str, place: &str, (from, to): (Timestamp, Timestamp)) -> &mut Span {
        let id = |place: &str| format!("{:016x}", checksum(&format!("{}/{place}", self.run.key)));
        let nanos = |at: Timestamp| (i128::from(at.millis()) * 1_000_000).to_string();
        let span = Span {
            trace_id: format!("{}{}", id("trace 1"), id("trace 2")),
            id: id(place),
            parent_span_id: if parent.is_empty() {
                String::new()
            } else {
                id(parent)
            },
            name: place.rsplit('/').next().unwrap_or(place).to_owned(),
            kind: INTERNAL,
            start_time_unix_nano: nanos(from),
            end_time_unix_nano: nanos(to.max(from)),
            attributes: Vec::new(),
            status: None,
        };
        self.spans.push(span);
        self.spans.last_mut().expect("just pushed")
    }

    fn end_of(&self, attempt: &Attempt) -> Timestamp {
        attempt.duration_ms.map_or(self.now, |duration| {
            attempt.started_at.plus(Duration::from_millis(duration))
        })
    }

    fn iteration(&mut self, iteration: &Iteration) {
        let Some(first) = iteration.attempts.first() else {
            return;
        };
        let place = format!("iteration {}", iteration.number);
        let ends = iteration
            .attempts
            .iter()
            .map(|attempt| self.end_of(attempt));
        let end = ends.fold(first.started_at, Timestamp::max);
        let span = self.add("run", &place, (first.started_at, end));
        span.attributes.extend([
            number("recover.iteration", iteration.number.into()),
            text("recover.iteration.status", iteration.status.into()),
        ]);
        let mut waits_since = None;
        for (at, attempt) in iteration.attempts.iter().enumerate() {
            if let Some(since) = waits_since.take()
                && since < attempt.started_at
            {
                let wait = format!("{place}/wait {at}");
                self.add(&place, &wait, (since, attempt.started_at));
            }
            self.attempt(&place, iteration, attempt, at);
            waits_since = Some(self.end_of(attempt));
        }
    }

    fn attempt(&mut self, parent: &str, iteration: &Iteration, attempt: &Attempt, at: usize) {
        let end = self.end_of(attempt);
        let agent = self.run.spec.launch.as_ref().map(|launch| &launch.agent);
        let place = format!("{parent}/attempt {}", at + 1);
        let span = self.add(parent, &place, (attempt.started_at, end));
        span.attributes.extend([
            number("recover.iteration", iteration.number.into()),
            number("recover.attempt", attempt.number.into()),
            text("recover.subtask", &attempt.subtask),
        ]);
        if let Some(agent) = agent {
            span.name = format!("invoke_agent {agent}");
            span.attributes.extend([
                text("gen_ai.operation.name", "invoke_agent"),
                text("gen_ai.agent.name", agent),
            ]);
        }
        if let Some(tokens) = attempt.tokens {
            span.attributes.extend([
                number("gen_ai.usage.input_tokens", tokens.input),
                number("gen_ai.usage.output_tokens", tokens.output),
            ]);
        }
        if let Some(cost) = attempt.usage().cost_usd() {
            span.attributes
                .push(json!({"key": "recover.cost_usd", "value": {"doubleValue": cost}}));
        }
        if let Some(code) = attempt.exit_code {
            span.attributes
                .push(json!({"key": "process.exit.code", "value": {"intValue": code.to_string()}}));
        }
        span.status = match (attempt.outcome, &attempt.failure) {
            (Some(AttemptOutcome::Passed), _) => Some(status(OK, None)),
            (_, Some(failure)) => {
                span.attributes
                    .push(text("error.type", failure.cause.as_str()));
                Some(status(ERROR, Some(&failure.message)))
            }
            _ => None,
        };
        // They end with the attempt, one after the other.
        let checks = attempt.feedback_results.values();
        let total: Duration = checks.map(|check| check.duration).sum();
        let mut from = attempt.started_at;
        from = from.plus(end.since(from).saturating_sub(total));
        for (name, check) in &attempt.feedback_results {
            let to = from.plus(check.duration).min(end);
            let span = self.add(&place, &format!("{place}/check {name}"), (from, to));
            let code = if check.passed { OK } else { ERROR };
            let summary = (!check.passed).then_some(check.summary.as_str());
            span.status = Some(status(code, summary));
            from = to;
        }
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn status(code: u8, message: Option<&str>) -> Value {
    match message {
        Some(message) => json!({"code": code, "message": message}),
        None => json!({"code": code}),
    }
}
