//! The documents of `runs`, `close` and `forget`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::flow::forget::Forgotten;
use crate::engine::flow::runs::{Closed, Listed};
use crate::model::run::{IterationStatus, Run, RunStatus};
use crate::model::run_key::RunKey;
use crate::model::time::Timestamp;

use super::parts::{RunLine, UsageFields};

/// The runs, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunsReply<'a> {
    runs: Vec<ListedRun<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "listed_run")]
struct ListedRun<'a> {
    #[serde(flatten)]
    key: &'a RunKey,
    /// Absolute path of its work tree.
    worktree: Cow<'a, str>,
    status: RunStatus,
    /// Whether a command that names no run is about it.
    chosen: bool,
    iterations: IterationCounts,
    attempts: usize,
    started_at: Timestamp,
    /// `null` while it can go on.
    ended_at: Option<Timestamp>,
    last_event_at: Timestamp,
    last_error: Option<&'a str>,
    #[serde(flatten)]
    usage: UsageFields,
    size_bytes: u64,
    /// The `recover` that is at work on it.
    driver_pid: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct IterationCounts {
    done: usize,
    given_up: usize,
    /// `null` without a bound.
    total: Option<u32>,
}

impl<'a> RunsReply<'a> {
    pub(crate) fn new(listed: &'a [Listed]) -> Self {
        Self {
            runs: listed.iter().map(ListedRun::from).collect(),
        }
    }
}

/// Iterations of a run that stand so.
pub(crate) fn iterations_that(run: &Run, status: IterationStatus) -> usize {
    run.iterations
        .statuses()
        .filter(|(_, stands)| *stands == status)
        .count()
}

/// What went wrong last.
pub(crate) fn last_error(run: &Run) -> Option<&str> {
    let failed = run.failure.as_ref().map(|failure| failure.message.as_str());
    run.last_error.as_deref().or(failed)
}

impl<'a> From<&'a Listed> for ListedRun<'a> {
    fn from(listed: &'a Listed) -> Self {
        let run = &listed.run;
        Self {
            key: &run.key,
            worktree: run.worktree.to_string().into(),
            status: run.status,
            chosen: listed.chosen,
            iterations: IterationCounts {
                done: iterations_that(run, IterationStatus::Completed),
                given_up: iterations_that(run, IterationStatus::Skipped),
                total: run.spec.iterations_total,
            },
            attempts: run.iterations.count_attempts(),
            started_at: run.created_at,
            ended_at: run.ended_at,
            last_event_at: run.last_at,
            last_error: last_error(run),
            usage: run.usage().into(),
            size_bytes: listed.size_bytes,
            driver_pid: listed.driver_pid,
        }
    }
}

/// Runs that were closed, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CloseReply<'a> {
    changed: bool,
    runs: Vec<RunLine<'a>>,
    /// In a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<ClosePlan>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct ClosePlan {
    changed: bool,
}

impl<'a> CloseReply<'a> {
    pub(crate) fn new(closed: &'a Closed, is_plan: bool) -> Self {
        Self {
            changed: closed.changed && !is_plan,
            runs: closed.runs.iter().map(RunLine::from).collect(),
            plan: is_plan.then_some(ClosePlan {
                changed: closed.changed,
            }),
        }
    }
}

/// Runs that were removed for good, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ForgetReply<'a> {
    changed: bool,
    /// Whether it is every trace of this repository.
    all: bool,
    forgotten: &'a [RunKey],
    /// How many checkpoints go with them.
    checkpoints: usize,
    /// Files and folders that go, absolute.
    removed: Vec<Cow<'a, str>>,
    /// In a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<ClosePlan>,
}

impl<'a> ForgetReply<'a> {
    pub(crate) fn new(forgotten: &'a Forgotten, is_plan: bool) -> Self {
        Self {
            changed: forgotten.changed && !is_plan,
            all: forgotten.all,
            forgotten: &forgotten.runs,
            checkpoints: forgotten.checkpoints,
            removed: forgotten
                .removed
                .iter()
                .map(|path| path.to_string_lossy())
                .collect(),
            plan: is_plan.then_some(ClosePlan {
                changed: forgotten.changed,
            }),
        }
    }
}
