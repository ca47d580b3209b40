//! The report as data: what every format shows, and what the JSON document holds.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

use super::night::Night;
use super::words;
use crate::model::agent_record::{Tokens, UsageFields};
use crate::model::decision::{Budget, BudgetScope};
use crate::model::failure::{Evidence, Severity, SuggestedAction};
use crate::model::tasks::TaskLine;
use crate::model::{
    Action, Attempt, AttemptOutcome, Cause, ChangeTotals, ChangeType, Checkpoint, CheckpointId,
    Condition, FailureType, FolderId, Iteration, IterationStatus, ObjectId, RepoPath, RunId,
    RunStatus, Strategy, TaskId, Timestamp, Verdict,
};

/// Names an attempt of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub(crate) struct AttemptRef {
    /// Its iteration.
    pub iteration: u32,
    /// Its number.
    pub attempt: u32,
}

impl AttemptRef {
    pub(super) fn of(iteration: &Iteration, attempt: &Attempt) -> Self {
        Self {
            iteration: iteration.number,
            attempt: attempt.number,
        }
    }
}

/// What a report is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReportKind {
    /// A person is needed (A6).
    Escalation,
    /// The run failed or was interrupted (S13).
    Incident,
    /// The run's story.
    Run,
}

impl Report {
    fn is_done(&self) -> bool {
        let state = self.night.as_ref().map(|night| night.state.as_str());
        state.is_some_and(|state| {
            let done = ["complete", "accepted", "closed"];
            done.iter().any(|word| state.starts_with(word))
        })
    }

    /// What it is called: a run that is done needs nobody, whatever was given up in it.
    pub(super) fn title(&self) -> &'static str {
        match self.kind {
            ReportKind::Escalation if self.is_done() => ReportKind::Run.title(),
            kind => kind.title(),
        }
    }
}

impl ReportKind {
    fn title(self) -> &'static str {
        match self {
            Self::Escalation => "Escalation report",
            Self::Incident => "Incident report",
            Self::Run => "Run report",
        }
    }
}

/// The report of a run. Lists are bounded; what they leave out is counted beside them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Report {
    /// What it is for.
    pub kind: ReportKind,
    /// When it was made.
    pub generated_at: Timestamp,
    /// The subtask that it is limited to.
    pub subtask: Option<String>,
    /// The run in one line; `None` where it has no attempts.
    pub night: Option<Night>,
    /// The run in short.
    pub summary: Summary,
    /// The tasks of a run that works through a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskLine>,
    /// What was given up (A7).
    pub stuck_subtasks: Vec<Stuck>,
    /// Attempts made, oldest first.
    pub attempts: Vec<AttemptLine>,
    /// Older attempts that are not listed.
    pub attempts_omitted: usize,
    /// Errors, the most important one first.
    pub error_details: Vec<ErrorDetails>,
    /// What the attempts changed.
    pub files: Files,
    /// What to do now, in this order.
    pub recommended_actions: Vec<Recommended>,
    /// Where to go back to.
    pub checkpoints: Checkpoints,
    /// What happened, oldest first.
    pub timeline: Vec<Moment>,
    /// Older moments that are not listed.
    pub timeline_omitted: usize,
    /// What attempts did, where it was read: too long for the document.
    #[serde(skip)]
    pub work: BTreeMap<AttemptRef, Work>,
}

/// What an attempt did, word by word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// What it changed, as a patch.
    pub patch: Option<String>,
    /// What it printed; an agent's records as text.
    pub log: Option<String>,
}

/// The run in short.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "report_summary")]
pub(crate) struct Summary {
    /// One sentence.
    pub headline: String,
    /// The run's identity and position.
    pub run: RunLine,
    /// How it ended; `None` while it goes on.
    #[schemars(extend("enum" = ["complete", "accepted", "closed", "failed", "paused", "parked", "escalated", "cancelled", null]))]
    pub outcome: Option<&'static str>,
    /// Why it does not go on.
    pub stopped_because: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// When anything was last recorded of it.
    pub last_event_at: Timestamp,
    /// From its beginning to the end of its last attempt; up to now while one is under way.
    pub duration_ms: u64,
    /// Its iterations.
    pub iterations: IterationCounts,
    /// The attempts that the report is about.
    pub attempts: AttemptCounts,
    /// Dollars by the agents' records; `None` where they say none.
    pub cost_usd: Option<f64>,
    /// Tokens by the agents' records; `None` where they say none.
    pub tokens: Option<Tokens>,
    /// What all runs of its session used up.
    pub session_usage: UsageFields,
    /// Its budgets.
    pub budgets: Vec<Budget>,
    /// The budget that stopped it.
    pub stopped_by: Option<BudgetScope>,
    /// What it stands at (B1).
    pub failure: Option<FailureLine>,
    /// What was decided last.
    pub decision: Option<DecisionLine>,
}

/// A run's identity and position.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "report_run")]
pub(crate) struct RunLine {
    /// Its id.
    pub run_id: RunId,
    /// Its phase.
    pub phase: String,
    /// Its lane.
    pub lane: String,
    /// What it works on.
    pub task_id: Option<TaskId>,
    /// Where it stands.
    #[schemars(with = "RunStatus")]
    pub status: &'static str,
    /// The iteration that is under way or comes next.
    pub current_iteration: u32,
    /// How many there are; `None` without a bound.
    pub iterations_total: Option<u32>,
    /// The session whose budget it shares.
    pub session: String,
    /// Its work tree.
    pub worktree: FolderId,
    /// What it executes; `None` for a loop that runs its own commands.
    pub command: Option<String>,
}

/// Iterations by status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "report_iterations")]
pub(crate) struct IterationCounts {
    /// Those that were begun.
    pub begun: usize,
    /// Passed.
    pub completed: usize,
    /// Failed.
    pub failed: usize,
    /// Given up.
    pub skipped: usize,
    /// Taken back by a rollback.
    pub superseded: usize,
}

/// Attempts by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "report_attempts")]
pub(crate) struct AttemptCounts {
    /// All of them.
    pub total: usize,
    /// Passed.
    pub passed: usize,
    /// Failed.
    pub failed: usize,
    /// Interrupted.
    pub cancelled: usize,
    /// Not over yet.
    pub under_way: usize,
}

/// Why something failed, without its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "report_failure")]
pub(crate) struct FailureLine {
    /// Who failed.
    #[serde(rename = "type")]
    pub kind: FailureType,
    /// What went wrong.
    pub cause: Cause,
    /// What is true beside the cause.
    pub conditions: Vec<Condition>,
    /// How bad it is.
    pub severity: Severity,
    /// The iteration it happened in.
    pub iteration: Option<u32>,
    /// The attempt it happened in.
    pub attempt: Option<u32>,
    /// When.
    pub at: Option<Timestamp>,
    /// One line for people.
    pub message: String,
    /// Names of the tests that fail, as far as the output shows them.
    pub failing: Vec<String>,
    /// Whether the run can go on without a user mending the machine.
    pub recoverable: bool,
    /// What to do about it.
    pub suggested_action: SuggestedAction,
}

/// What was decided, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "report_decision")]
pub(crate) struct DecisionLine {
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// The resume strategy that does it.
    pub strategy: Option<Strategy>,
    /// A sentence that says why.
    pub reason: String,
    /// Not before this time.
    pub not_before: Option<Timestamp>,
}

/// A subtask that was given up (A7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "report_stuck_subtask")]
pub(crate) struct Stuck {
    /// Which.
    pub subtask_id: String,
    /// Why.
    pub reason: String,
    /// The time of its last attempt.
    pub escalated_at: Timestamp,
    /// How many attempts were made.
    pub attempt_count: usize,
}

/// An attempt.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "report_attempt")]
pub(crate) struct AttemptLine {
    /// Its number within the iteration.
    pub number: u32,
    /// Its iteration.
    pub iteration: u32,
    /// Where the iteration stands.
    pub iteration_status: IterationStatus,
    /// What it is booked on.
    pub subtask: String,
    /// What it tried.
    pub approach: Option<String>,
    /// When it began.
    pub started_at: Timestamp,
    /// How long it took.
    pub duration_ms: Option<u64>,
    /// How it ended; `None` while it is under way.
    pub outcome: Option<AttemptOutcome>,
    /// Exit status of the command.
    pub exit_code: Option<i32>,
    /// Name of the signal that ended it.
    pub signal: Option<String>,
    /// Whether the deadline ended it.
    pub timed_out: bool,
    /// Why it failed.
    pub failure: Option<FailureLine>,
    /// What is true of it beside its outcome, also where it passed.
    pub conditions: Vec<Condition>,
    /// What the conditions are about, a line each.
    pub notes: Vec<String>,
    /// Dollars by the agent's records.
    pub cost_usd: Option<f64>,
    /// Tokens by the agent's records.
    pub tokens: Option<Tokens>,
    /// What the feedback loops said.
    pub feedback: Vec<LoopLine>,
    /// What was decided about it.
    pub decision: Option<DecisionLine>,
    /// The checkpoint at its end.
    pub checkpoint_id: Option<CheckpointId>,
    /// How many paths it changed; `None` where that is not known.
    pub changes: Option<ChangeTotals>,
    /// Its log.
    pub log_path: Option<String>,
}

/// What a feedback loop said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "report_loop")]
pub(crate) struct LoopLine {
    /// Its name.
    pub name: String,
    /// Whether it passed.
    pub passed: bool,
    /// One line.
    pub summary: String,
}

/// An error with its output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "report_error")]
pub(crate) struct ErrorDetails {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: AttemptRef,
    /// What it is booked on.
    pub subtask: String,
    /// One line for people.
    pub message: String,
    /// The first error and the last lines.
    pub text: Option<String>,
    /// By what it was recognised.
    pub evidence: Vec<Evidence>,
    /// Where all of the output is.
    pub log_path: Option<String>,
}

/// What the attempts changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "report_files")]
pub(crate) struct Files {
    /// Paths in all.
    pub total: usize,
    /// Those that failed attempts changed come first.
    pub entries: Vec<FileLine>,
    /// Attempts whose changes are known.
    pub attempts_compared: usize,
    /// Those of the entries that declare or pin what the project depends on.
    pub dependencies: Vec<RepoPath>,
}

/// A path that attempts changed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "report_file")]
pub(crate) struct FileLine {
    /// The path.
    #[serde(flatten)]
    pub path: RepoPath,
    /// What the last attempt that changed it did.
    #[serde(rename = "type")]
    pub kind: ChangeType,
    /// Lines added, all attempts together; `None` for binary content.
    pub added: Option<u64>,
    /// Lines removed, all attempts together; `None` for binary content.
    pub deleted: Option<u64>,
    /// The attempts that changed it.
    pub attempts: Vec<AttemptRef>,
}

impl FileLine {
    /// `1.1, 1.2`: the attempts that changed it.
    pub(super) fn attempt_names(&self) -> String {
        let name = |one: &AttemptRef| format!("{}.{}", one.iteration, one.attempt);
        let names: Vec<String> = self.attempts.iter().map(name).collect();
        names.join(", ")
    }
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Recommended {
    /// What.
    pub description: String,
    /// A command to copy; it works from any folder.
    pub command: Option<String>,
    /// Whether the policy would take it.
    #[serde(rename = "recommended")]
    pub by_policy: bool,
}

/// Where to go back to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "report_checkpoints")]
pub(crate) struct Checkpoints {
    /// How many the run has.
    pub count: usize,
    /// The last good one.
    pub last_good: Option<CheckpointLine>,
    /// The one before the first attempt.
    pub initial: Option<CheckpointLine>,
    /// The latest one that is no safety checkpoint.
    pub latest: Option<CheckpointLine>,
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "report_checkpoint")]
pub(crate) struct CheckpointLine {
    /// Its id.
    pub id: CheckpointId,
    /// Its number.
    pub seq: u64,
    /// When it was taken.
    pub created_at: Timestamp,
    /// The iteration it was taken after.
    pub after_iteration: u32,
    /// What the feedback loops said.
    pub verdict: Verdict,
    /// Its commit.
    pub commit: ObjectId,
    /// Its headline.
    pub description: String,
}

impl CheckpointLine {
    pub(super) fn of(checkpoint: &Checkpoint) -> Self {
        Self {
            id: checkpoint.id.clone(),
            seq: checkpoint.seq,
            created_at: checkpoint.created_at,
            after_iteration: checkpoint.after_iteration,
            verdict: checkpoint.verdict,
            commit: checkpoint.commit.clone(),
            description: words::line(&checkpoint.description),
        }
    }
}

/// What kind of moment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schemars(rename = "report_moment_kind")]
pub(crate) enum MomentKind {
    /// The run began, was resumed, stands elsewhere.
    Run,
    /// An iteration stands elsewhere.
    Iteration,
    /// An attempt began.
    Attempt,
    /// Something was decided.
    Decision,
    /// A wait without an attempt began.
    Park,
    /// A checkpoint was taken, pinned or removed.
    Checkpoint,
    /// Files were restored.
    Rollback,
    /// A restore was taken back, or done again.
    Undo,
    /// A person fixed something.
    ManualFix,
    /// A named step ended, or its effect was taken back.
    Step,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "report_moment")]
pub(crate) struct Moment {
    /// When.
    pub at: Timestamp,
    /// What kind it is.
    pub kind: MomentKind,
    /// What happened, in a few words.
    pub title: String,
    /// More about it.
    pub detail: Option<String>,
    /// The iteration it is about.
    pub iteration: Option<u32>,
    /// The attempt it is about.
    pub attempt: Option<u32>,
    /// How the attempt ended.
    pub outcome: Option<AttemptOutcome>,
    /// How long the attempt took.
    pub duration_ms: Option<u64>,
    /// The checkpoint it is about.
    pub checkpoint_id: Option<CheckpointId>,
    /// The checkpoint's verdict.
    pub verdict: Option<Verdict>,
}
