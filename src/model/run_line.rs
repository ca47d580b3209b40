//! Runs, iterations and attempts as JSON documents show them, rather than as they are stored.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::agent_record::UsageFields;
use super::attempt::Leftover;
use super::{
    Attempt, AttemptOutcome, CheckpointId, Condition, Failure, FeedbackResults, Iteration,
    IterationStatus, Run, RunKey, RunStatus, TaskId, Timestamp,
};

/// A run's identity and position.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "run")]
pub(crate) struct RunLine {
    #[serde(flatten)]
    pub key: RunKey,
    /// What it works on.
    task_id: Option<TaskId>,
    /// The series that it was begun for.
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<String>,
    status: RunStatus,
    /// The iteration that is under way or comes next.
    current_iteration: u32,
    /// `null` without a bound.
    iterations_total: Option<u32>,
    #[serde(flatten)]
    usage: UsageFields,
}

impl From<&Run> for RunLine {
    fn from(run: &Run) -> Self {
        Self {
            key: run.key.clone(),
            task_id: run.task_id.clone(),
            series: run.spec.series.clone(),
            status: run.status,
            current_iteration: run.shown_iteration(),
            iterations_total: run.spec.iterations_total,
            usage: run.usage().into(),
        }
    }
}

/// Serializes a run as a [`RunLine`].
pub(crate) fn run_line<S: Serializer>(run: &Run, serializer: S) -> Result<S::Ok, S::Error> {
    RunLine::from(run).serialize(serializer)
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "iteration")]
pub(crate) struct IterationLine<'a> {
    number: u32,
    status: IterationStatus,
    /// Why it was skipped.
    reason: Option<&'a str>,
    #[serde(flatten)]
    usage: UsageFields,
    attempts: Vec<AttemptLine<'a>>,
}

impl<'a> From<&'a Iteration> for IterationLine<'a> {
    fn from(iteration: &'a Iteration) -> Self {
        Self {
            number: iteration.number,
            status: iteration.status,
            reason: iteration.reason.as_deref(),
            usage: iteration.usage().into(),
            attempts: iteration.attempts.iter().map(AttemptLine::from).collect(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "attempt")]
struct AttemptLine<'a> {
    number: u32,
    /// `null` while it is under way.
    outcome: Option<AttemptOutcome>,
    /// Whether it counts against the budgets; what is waited for does not.
    charged: bool,
    approach: Option<&'a str>,
    exit_code: Option<i32>,
    signal: Option<&'a str>,
    timed_out: bool,
    started_at: Timestamp,
    duration_ms: Option<u64>,
    log_path: Option<&'a str>,
    checkpoint_id: Option<&'a CheckpointId>,
    failure: Option<&'a Failure>,
    conditions: &'a [Condition],
    notes: &'a [String],
    fallback: bool,
    #[serde(flatten)]
    usage: UsageFields,
    leftovers: &'a [Leftover],
    feedback_results: &'a FeedbackResults,
}

impl<'a> From<&'a Attempt> for AttemptLine<'a> {
    fn from(attempt: &'a Attempt) -> Self {
        Self {
            number: attempt.number,
            outcome: attempt.outcome,
            charged: attempt.charged,
            approach: attempt.approach.as_deref(),
            exit_code: attempt.exit_code,
            signal: attempt.signal.as_deref(),
            timed_out: attempt.timed_out,
            started_at: attempt.started_at,
            duration_ms: attempt.duration_ms,
            log_path: attempt.log_path.as_deref(),
            checkpoint_id: attempt.checkpoint_id.as_ref(),
            failure: attempt.failure.as_ref(),
            conditions: &attempt.conditions,
            notes: &attempt.notes,
            fallback: attempt.fallback,
            usage: attempt.usage().into(),
            leftovers: &attempt.leftovers,
            feedback_results: &attempt.feedback_results,
        }
    }
}

/// All iterations of a run.
pub(crate) fn iterations(run: &Run) -> Vec<IterationLine<'_>> {
    run.iterations.values().map(IterationLine::from).collect()
}
