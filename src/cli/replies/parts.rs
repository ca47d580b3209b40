//! Parts of several JSON documents: runs with their iterations, waits, commands to copy, the status of a lane.

use std::borrow::Cow;
use std::path::Path;

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::json;

use crate::engine::Context;
use crate::engine::record::lane::LaneStanding;
use crate::engine::record::run_settings::is_unchecked;
use crate::model::attempt::{Attempt, AttemptOutcome, Iteration, IterationStatus, Leftover};
use crate::model::decision::Standing;
use crate::model::failure::{Condition, Failure};
use crate::model::feedback::FeedbackResults;
use crate::model::hint::Hint;
use crate::model::id::{CheckpointId, TaskId};
use crate::model::run::{Run, RunStatus};
use crate::model::run_key::RunKey;
use crate::model::time::Timestamp;
use crate::model::usage::{Tokens, Usage};
use crate::policy::recommended::resume_command;

/// What was used up by the agents' records, each `null` where they do not say.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct UsageFields {
    cost_usd: Option<f64>,
    tokens: Option<Tokens>,
}

impl From<Usage> for UsageFields {
    fn from(usage: Usage) -> Self {
        Self {
            cost_usd: usage.cost_usd(),
            tokens: usage.tokens,
        }
    }
}

/// A run's identity and position.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "run")]
pub(crate) struct RunLine<'a> {
    #[serde(flatten)]
    key: &'a RunKey,
    /// What it works on.
    task_id: Option<&'a TaskId>,
    status: RunStatus,
    /// The iteration that is under way or comes next.
    current_iteration: u32,
    /// `null` without a bound.
    iterations_total: Option<u32>,
    #[serde(flatten)]
    usage: UsageFields,
}

impl<'a> From<&'a Run> for RunLine<'a> {
    fn from(run: &'a Run) -> Self {
        Self {
            key: &run.key,
            task_id: run.task_id.as_ref(),
            status: run.status,
            current_iteration: run.shown_iteration(),
            iterations_total: run.spec.iterations_total,
            usage: run.usage().into(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "iteration")]
pub(super) struct IterationLine<'a> {
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
pub(super) fn iterations(run: &Run) -> Vec<IterationLine<'_>> {
    run.iterations.values().map(IterationLine::from).collect()
}

/// When an attempt is allowed that is not allowed now.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Wait {
    retry_after: Option<Timestamp>,
    wait_ms: u64,
}

impl Wait {
    pub(super) fn of(standing: Standing, now: Timestamp) -> Self {
        match standing {
            Standing::Wait(until) => {
                let wait_ms = u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX);
                Self {
                    retry_after: Some(until),
                    wait_ms,
                }
            }
            _ => Self {
                retry_after: None,
                wait_ms: 0,
            },
        }
    }
}

/// Commands to copy, which work from any folder.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Hints {
    pub(super) resume_hint: String,
    pub(super) rollback_hint: String,
}

impl Hints {
    pub(super) fn of(context: &Context, run: &Run) -> Self {
        let command = |words: &[&str]| context.line(Hint::recover(words).run(&run.key));
        Self {
            resume_hint: command(&resume_command(run, is_unchecked(context, run))),
            rollback_hint: command(&["rollback", "--full"]),
        }
    }

    /// The lane's own, where it is one.
    pub(super) fn or_of(self, lane: Option<&LaneStanding>) -> Self {
        lane.map_or(self, Self::of_lane)
    }

    pub(super) fn of_lane(lane: &LaneStanding) -> Self {
        Self {
            resume_hint: lane.resume_hint.clone(),
            rollback_hint: lane.rollback_hint.clone(),
        }
    }
}

/// Where a lane stands; both are `null` for a run that is none.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Stage<'a> {
    #[schemars(transform = nullable)]
    current_stage: Option<&'a str>,
    #[schemars(transform = nullable)]
    checkpoint_path: Option<&'a str>,
}

impl<'a> From<Option<&'a LaneStanding>> for Stage<'a> {
    fn from(lane: Option<&'a LaneStanding>) -> Self {
        Self {
            current_stage: lane.map(|lane| lane.stage.as_str()),
            checkpoint_path: lane.map(|lane| lane.path.as_str()),
        }
    }
}

/// What else there is to say of a lane.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LaneDetails<'a> {
    #[schemars(transform = nullable)]
    pub(super) stage_status: Option<&'a str>,
    /// Commands that go on with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub(super) next_actions: Option<&'a [String]>,
    pub(super) skipped_steps: &'a [String],
}

impl<'a> From<&'a LaneStanding> for LaneDetails<'a> {
    fn from(lane: &'a LaneStanding) -> Self {
        Self {
            stage_status: lane.status.as_deref(),
            next_actions: Some(&lane.next_actions),
            skipped_steps: &lane.done,
        }
    }
}

/// A text or `null`, also where its group may be left out.
fn nullable(schema: &mut Schema) {
    schema.remove("type");
    schema.insert(
        "anyOf".to_owned(),
        json!([{"type": "string"}, {"type": "null"}]),
    );
}

/// A lane, in the documents of what need not be one.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LaneFields<'a> {
    #[serde(flatten)]
    stage: Stage<'a>,
    #[serde(flatten)]
    details: LaneDetails<'a>,
}

impl<'a> From<&'a LaneStanding> for LaneFields<'a> {
    fn from(lane: &'a LaneStanding) -> Self {
        Self {
            stage: Some(lane).into(),
            details: lane.into(),
        }
    }
}

/// A path as text.
pub(super) fn shown(path: Option<&Path>) -> Option<Cow<'_, str>> {
    path.map(Path::to_string_lossy)
}
