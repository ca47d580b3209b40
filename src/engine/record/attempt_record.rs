//! An attempt as it is begun and as it ends, and whose the commits are that it made.

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::{Context, Result};
use crate::model::run_line::run_line;
use crate::model::{AttemptEnd, Cause, Checkpoint, ObjectId, ProcessId, Run, RunLine, Timestamp};
use crate::policy::retry::Provider;

/// An attempt that was begun.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Started {
    /// The run, as of the beginning.
    #[serde(serialize_with = "run_line")]
    #[schemars(with = "RunLine")]
    pub run: Run,
    pub iteration: u32,
    /// Its number.
    pub attempt: u32,
    /// What it is booked on.
    pub subtask: String,
    #[serde(rename = "started_at")]
    pub at: Timestamp,
}

impl Started {
    /// The attempt of a run that was started and has not ended.
    pub(crate) fn open(run: &Run) -> Option<Self> {
        let live = run.live.as_ref()?;
        let mut attempts = run.iterations.get(live.iteration)?.attempts.iter();
        let attempt = attempts.rfind(|attempt| attempt.number == live.attempt)?;
        Some(Self {
            run: run.clone(),
            iteration: live.iteration,
            attempt: live.attempt,
            subtask: attempt.subtask.clone(),
            at: attempt.started_at,
        })
    }
}

/// What is known of an attempt when it begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begin {
    /// What it tries.
    pub approach: Option<String>,
    /// Its iteration, where it is not the current one.
    pub iteration: Option<u32>,
    /// What it is booked on.
    pub subtask: Option<String>,
    /// The supervising process; `None` for a loop that runs its own commands.
    pub supervisor: Option<ProcessId>,
}

/// How an attempt ended, and what its end is recorded from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ending {
    /// Its event: what was observed of it, and once that is judged, what was decided.
    pub end: AttemptEnd,
    /// Whether a feedback loop failed rather than the command.
    pub in_feedback_loop: bool,
    /// The feedback loop that failed.
    pub failed_loop: Option<String>,
    /// Paths that it was refused to write.
    pub refused: Vec<String>,
    /// The end of its output, where no log is kept of it.
    pub log_end: String,
    /// The headline of its checkpoint.
    pub headline: Option<String>,
    /// The loop's plan number, for its events (L5).
    pub plan: Option<u64>,
    /// Leave the working memory as it is.
    pub keep_state: bool,
    /// Why its checkpoint is taken.
    pub trigger: Option<&'static str>,
    /// The earlier session that its agent was to go on in.
    pub resumed: Option<String>,
    /// Whose trouble with a provider its failure would be.
    pub provider: Provider,
    /// The causes of the failures of its subtask that its supervisor charged before: they count whatever the ledger has.
    pub witnessed: Vec<Cause>,
}

/// What the loop contract calls the result (L2).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "attempt_result")]
pub(crate) struct RecoveryResult {
    /// Whether recovery can go on.
    pub success: bool,
    /// Whether another attempt is allowed, now or at `retry_after`.
    pub can_retry: bool,
    /// When, where it is not now.
    pub retry_after: Option<Timestamp>,
    /// `rolled_back`, `cooldown_set`, `max_retries_exceeded` or `no_checkpoint`.
    #[schemars(extend("enum" = ["rolled_back", "cooldown_set", "max_retries_exceeded", "no_checkpoint"]))]
    pub action: &'static str,
    /// What went wrong with the reaction itself.
    pub error: Option<String>,
}

/// An attempt's end as it was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// The run afterwards.
    pub run: Run,
    /// Its event.
    pub end: AttemptEnd,
    /// What the reaction was.
    pub result: Option<RecoveryResult>,
    /// The checkpoint at its end; `None` where none could be taken.
    pub checkpoint: Option<Checkpoint>,
    /// Why none could be taken.
    pub checkpoint_error: Option<String>,
    /// The report that was written because a person is needed.
    pub report: Option<std::path::PathBuf>,
}

/// The session that an attempt of `run` is charged to: the one the caller names, else the run's own.
pub(crate) fn session_of(context: &Context, run: &Run) -> String {
    context
        .naming()
        .session
        .clone()
        .unwrap_or_else(|| run.session.clone())
}

/// HEAD, where there is one: commits are the attempt's own if they came after it.
pub(in crate::engine) fn head_of(context: &Context) -> Option<ObjectId> {
    context.git()?.head().ok()?.commit
}

/// Commits that came since HEAD was `head`: those of the step or the attempt that began then, by `what` that is.
pub(in crate::engine) fn commits_since(
    context: &Context,
    head: Option<&ObjectId>,
    what: &str,
) -> Vec<ObjectId> {
    let Some(now) = head_of(context) else {
        return Vec::new();
    };
    let between = || -> Result<Vec<ObjectId>> {
        let repo = context.repo()?;
        let mut found = repo.commits_between(head, &now)?;
        // A rebase that is given up afterwards brings them back.
        if let (Some(head), Some(tip)) = (head, repo.rebased())
            && repo.is_ancestor(head, &tip)?
        {
            found.extend(repo.commits_between(Some(head), &tip)?);
        }
        Ok(found)
    };
    between().unwrap_or_else(|error| {
        tracing::warn!(%error, "the {what}'s commits are not known; a rollback will ask about them");
        Vec::new()
    })
}
