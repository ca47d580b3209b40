//! The JSON of things that several commands answer with.

use serde_json::{Map, Value, json};

use crate::engine::Context;
use crate::engine::attempt::standing::Retry;
use crate::engine::restore::request::Restore;
use crate::model::decision::Standing;
use crate::model::run::{Attempt, Iteration, Run};
use crate::model::time::Timestamp;

/// `run`.
pub fn run(run: &Run) -> Value {
    json!({
        "run_id": run.key.run_id,
        "phase": run.key.phase,
        "lane": run.key.lane,
        "task_id": run.task_id,
        "status": run.status.as_str(),
        "current_iteration": run.shown_iteration(),
        "iterations_total": run.spec.iterations_total,
    })
}

/// How many iterations `status` lists; `report` has all.
const LATEST: usize = 20;

/// `iterations` of a document that is asked for again and again: the latest of them.
pub fn latest_iterations(run: &Run) -> Value {
    run.latest_iterations(LATEST).into_iter().map(iteration).collect()
}

/// `iterations`.
pub fn iterations(run: &Run) -> Value {
    run.iterations.values().map(iteration).collect()
}

fn iteration(iteration: &Iteration) -> Value {
    json!({
        "number": iteration.number,
        "status": iteration.status.as_str(),
        "reason": iteration.reason,
        "attempts": iteration.attempts.iter().map(attempt).collect::<Vec<_>>(),
    })
}

fn attempt(attempt: &Attempt) -> Value {
    json!({
        "number": attempt.number,
        "outcome": attempt.outcome,
        "approach": attempt.approach,
        "exit_code": attempt.exit_code,
        "signal": attempt.signal,
        "timed_out": attempt.timed_out,
        "started_at": attempt.started_at,
        "duration_ms": attempt.duration_ms,
        "log_path": attempt.log_path,
        "checkpoint_id": attempt.checkpoint_id,
        "failure": attempt.failure,
        "conditions": attempt.conditions,
        "notes": attempt.notes,
        "fallback": attempt.fallback,
        "cost_usd": attempt.cost_micros.map(|micros| micros as f64 / 1e6),
        "leftovers": attempt.leftovers,
        "feedback_results": attempt.feedback_results,
    })
}

/// `retry_after` and `wait_ms` of a standing.
pub fn wait_fields(standing: Standing, now: Timestamp) -> (Option<Timestamp>, u64) {
    match standing {
        Standing::Wait(until) => (Some(until), u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX)),
        _ => (None, 0),
    }
}

/// The document of `retry-status`.
pub fn retry(retry: &Retry, now: Timestamp) -> Value {
    let (retry_after, wait_ms) = wait_fields(retry.standing, now);
    let status = retry.status.as_ref();
    let run = retry.run.as_ref();
    json!({
        "can_retry": retry.standing == Standing::Allowed,
        "retry_after": retry_after,
        "wait_ms": wait_ms,
        "error_count": run.map_or(0, |run| run.error_count),
        "max_attempts": status.map_or(Some(retry.max_attempts), |status| status.max_attempts),
        "attempts_left": status.map_or(Some(retry.max_attempts), |status| status.attempts_left),
        "is_recovering": run.is_some_and(|run| run.error_count > 0 || run.parked.is_some()),
        "last_error": run.and_then(|run| run.last_error.clone()),
        "last_error_at": run.and_then(|run| run.last_error_at),
        "cooldown_until": status.and_then(|status| status.cooldown_until),
        "parked": run.and_then(|run| run.parked.clone()),
        "budgets": status.map(|status| status.budgets.clone()).unwrap_or_default(),
        "decision": status.and_then(|status| status.decision.clone()),
        "run": run.map(self::run),
    })
}

/// The command that goes on with a run as its policy has it; where a person is at it, that they are done.
pub fn way_on(run: &Run) -> &'static [&'static str] {
    if run.is_being_fixed() { &["manual-fix", "verify"] } else { &["resume"] }
}

/// The document of a rollback, restore, undo or redo.
pub fn restore(context: &Context, restore: &Restore) -> Map<String, Value> {
    let key = restore.run.as_ref().map(|run| &run.key);
    let mut document = Map::new();
    document.insert("changed".to_owned(), json!(restore.changed && !context.dry_run()));
    let name = if context.dry_run() { "plan" } else { "result" };
    document.insert(name.to_owned(), json!(restore.result));
    document.insert("run".to_owned(), restore.run.as_ref().map_or(Value::Null, run));
    let on = restore.run.as_ref().map_or(&["resume"][..], way_on);
    document.insert("resume_hint".to_owned(), json!(context.hint_command(key, on)));
    document.insert("rollback_hint".to_owned(), json!(context.hint_command(None, &["undo"])));
    document
}
