//! Where a run stands.

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::{
    Context,
    attempt::run_summary::Retry,
    record::lane::Hints,
    remote::RunRemote,
    status::{Activity, Status},
};
use crate::model::{
    agent_record::UsageFields,
    decision::{Budget, Decision, Wait},
    failure::Failure,
    feedback::FeedbackResults,
    id::CheckpointId,
    manual_fix::ManualFixSession,
    run::Parked,
    run_line::{IterationLine, RunLine},
    step::ToldStep,
    time::Timestamp,
};
use crate::policy::{report::Night, retry::ResumeOption};

/// Whether another attempt is allowed, and what is left of the budgets.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "retry")]
pub(crate) struct RetryReply<'a> {
    /// Whether one is allowed now.
    can_retry: bool,
    #[serde(flatten)]
    wait: Wait,
    error_count: u32,
    max_attempts: Option<u32>,
    attempts_left: Option<u32>,
    is_recovering: bool,
    last_error: Option<&'a str>,
    last_error_at: Option<Timestamp>,
    cooldown_until: Option<Timestamp>,
    parked: Option<&'a Parked>,
    budgets: &'a [Budget],
    decision: Option<&'a Decision>,
    run: Option<RunLine>,
}

impl<'a> RetryReply<'a> {
    pub(crate) fn new(retry: &'a Retry, now: Timestamp) -> Self {
        let status = retry.status.as_ref();
        let run = retry.run.as_ref();
        Self {
            can_retry: retry.is_allowed(),
            wait: retry.standing.wait(now),
            error_count: run.map_or(0, |run| run.error_count),
            max_attempts: status.map_or(Some(retry.max_attempts), |status| status.max_attempts),
            attempts_left: status.map_or(Some(retry.max_attempts), |status| status.attempts_left),
            is_recovering: run.is_some_and(|run| run.error_count > 0 || run.parked.is_some()),
            last_error: run.and_then(|run| run.last_error.as_deref()),
            last_error_at: run.and_then(|run| run.last_error_at),
            cooldown_until: status.and_then(|status| status.cooldown_until),
            parked: run.and_then(|run| run.parked.as_ref()),
            budgets: status.map_or(&[], |status| &status.budgets),
            decision: status.and_then(|status| status.decision.as_ref()),
            run: run.map(RunLine::from),
        }
    }
}

/// How many iterations `status` lists; `report` has all.
const LATEST: usize = 20;

/// Where a run stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "status")]
pub(crate) struct StatusReply<'a> {
    run: RunLine,
    /// Why it stands still, where it is paused or parked for another reason than what was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_for: Option<&'a str>,
    /// What came of it; `null` where it has no attempts.
    night: Option<&'a Night>,
    session: SessionUsage<'a>,
    failure: Option<&'a Failure>,
    /// What a person can do next; empty where the failure is not recoverable.
    options: &'a [ResumeOption],
    manual_steps: &'a [String],
    manual_fix: Option<&'a ManualFixSession>,
    unfinished_operation: Option<&'a str>,
    /// The lock files that keep git from working here, with their ages.
    #[serde(skip_serializing_if = "Option::is_none")]
    git_locked: Option<&'a str>,
    checkpoints: CheckpointCounts<'a>,
    /// Bytes of its logs and prompts, and of what its checkpoints hold beyond branches and the runs before it.
    size_bytes: Option<u64>,
    retry: RetryReply<'a>,
    /// What is going on; `null` while nobody is at work on it.
    activity: Option<&'a Activity>,
    /// How it stands with the remotes that it lies on, by what is known here.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    remotes: &'a [RunRemote],
    baseline: Option<&'a FeedbackResults>,
    /// The latest 20.
    iterations: Vec<IterationLine<'a>>,
    steps: Vec<ToldStep>,
    #[serde(flatten)]
    hints: Hints,
}

/// The session whose budget the run shares.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SessionUsage<'a> {
    id: &'a str,
    #[serde(flatten)]
    usage: UsageFields,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct CheckpointCounts<'a> {
    count: usize,
    latest: Option<&'a CheckpointId>,
    last_good: Option<&'a CheckpointId>,
}

impl<'a> StatusReply<'a> {
    pub(crate) fn new(context: &Context, status: &'a Status, now: Timestamp) -> Self {
        let run = &status.run;
        Self {
            run: run.into(),
            stopped_for: run.stopped_for.as_deref(),
            night: status.night.as_ref(),
            session: SessionUsage {
                id: &run.session,
                usage: status.session.into(),
            },
            failure: run.failure.as_ref(),
            options: &status.options,
            manual_steps: &status.manual_steps,
            manual_fix: status.manual_fix.as_ref(),
            unfinished_operation: status.unfinished_operation.as_deref(),
            git_locked: status.git_locked.as_deref(),
            checkpoints: CheckpointCounts {
                count: status.checkpoint_count,
                latest: status.latest.as_ref(),
                last_good: status.last_good.as_ref(),
            },
            size_bytes: status.size_bytes,
            retry: RetryReply::new(&status.retry, now),
            activity: status.activity.as_ref(),
            remotes: &status.remotes,
            baseline: run.baseline.as_ref(),
            iterations: run
                .latest_iterations(LATEST)
                .into_iter()
                .map(IterationLine::from)
                .collect(),
            steps: run.steps.iter().map(|step| step.told(&run.key)).collect(),
            hints: Hints::of(context, run, None),
        }
    }
}
