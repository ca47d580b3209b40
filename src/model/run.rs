//! The record of a run: key, status, iterations, attempts, steps.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::agent_record::{Usage, is_session_id};
use super::attempt::Iterations;
use super::checkpoint::{Line, Removed};
use super::decision::BudgetScope;
use super::failure::{CauseDetail, Weather};
use super::import::ImportedDocument;
use super::lazy_compressed::LazyCompressed;
use super::{
    Action, CheckpointId, Decision, Failure, FeedbackResults, FolderId, HookAgent, ImportKind,
    ManualFixSession, ManualFixStatus, ObjectId, PathReason, RepoPath, Step, Strategy, TaskId,
    Timestamp,
};

pub use super::attempt::ProcessId;
pub(crate) use super::attempt::{
    Attempt, AttemptOutcome, Iteration, IterationStatus, Leftover, LiveAttempt, Waits,
};
pub(crate) use super::id::NONE;
pub use super::id::RunKey;
pub use super::spec::RunSpec;
pub(crate) use super::spec::{ConfiguredChecks, OnFailure, SessionMode};

/// Where a run stands. One that a newer version names is read as `failed`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, IntoStaticStr, VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum RunStatus {
    /// Nothing has been tried (or a full rollback took everything back).
    #[default]
    Pending,
    /// Attempts are being made, or the next one is allowed.
    InProgress,
    /// Stopped on purpose, ready to be resumed.
    Paused,
    /// Waiting for a known time without using up attempts.
    Parked,
    /// The last attempt failed and the run stopped.
    Failed,
    /// Waiting for something outside.
    Blocked,
    /// Interrupted by a signal or a user.
    Cancelled,
    /// A person is needed.
    Escalated,
    /// Rolled back by the lane contract.
    RolledBack,
    /// All iterations are done.
    Complete,
    /// What was done is taken over into the user's history.
    Accepted,
    /// Closed by a person: nothing of it is meant any more unless it is named.
    Closed,
}

impl<'de> Deserialize<'de> for RunStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<'de, str>::deserialize(deserializer)?;
        Ok(Self::ALL
            .iter()
            .copied()
            .find(|status| status.as_str() == name)
            .unwrap_or(Self::Failed))
    }
}

impl RunStatus {
    /// All of them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// What is recorded as the reason where there is none beside the status.
    pub fn unexplained(self) -> String {
        format!("the run stopped: {}", self.as_str())
    }

    /// Whether nothing goes on by itself: it ended well, or badly.
    pub fn is_over(self) -> bool {
        self.has_ended() || matches!(self, Self::Failed | Self::Escalated)
    }

    /// Whether the run needs nothing any more.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Complete | Self::Accepted | Self::Closed)
    }

    /// Whether the run did all that it was to do.
    pub fn is_done(self) -> bool {
        matches!(self, Self::Complete | Self::Accepted)
    }
}

/// A wait that uses up no attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Parked {
    /// When the next attempt begins: a probe.
    pub until: Timestamp,
    /// For what.
    pub reason: Weather,
    /// The same as a sentence.
    pub text: String,
    /// When it began.
    pub since: Timestamp,
    /// How many probes were made since.
    pub probes: u32,
    /// What the last attempt ended with, in short: `529`.
    pub what: String,
}

/// Everything known of a run. What is asked of every run stands here; the rest of one that is over stays packed until it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its identity.
    pub key: RunKey,
    /// What it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// Absolute path of its work tree.
    pub worktree: FolderId,
    /// Sequence of the last event about it.
    pub last_seq: u64,
    /// When the last event about it was.
    #[serde(default)]
    pub last_at: Timestamp,
    /// Sequence of the last event with which a run, a resume, an attempt or a step of it began; 0 where none has.
    #[serde(default, skip_serializing_if = "is_never")]
    pub begun_seq: u64,
    /// Where it stands.
    pub status: RunStatus,
    /// When it came to an end, well or badly; `None` while it goes on or can be resumed as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Consecutive charged failures since the last success or reset (L1).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub error_count: u32,
    /// The attempt under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Box<LiveAttempt>>,
    /// The `recover` that runs the feedback loops before the first attempt, while it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_supervisor: Option<Box<ProcessId>>,
    /// The `recover` that supervised its latest attempt, or the loops before the first one. While that lives, the run is at
    /// work, also between attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<Box<ProcessId>>,
    /// Checksums of the names that its attempts are booked on, but for those made of its own id ([`run_of_subtask`]): who
    /// looks for a subtask need not look at every run.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub subtasks: BTreeSet<u32>,
    /// Its named steps, in the order in which they were last begun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// What was imported from other systems, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imported: Vec<ImportedDocument>,
    /// Sequences of the checkpoints that are records of a lane's stage (C1); some may have been removed since.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub staged: BTreeSet<u64>,
    /// The rest.
    pub details: LazyCompressed<RunDetails>,
}

/// What is asked of one run at a time. A [`Run`] is read as if it stood there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDetails {
    /// The session whose budget it shares.
    pub session: String,
    /// When it began.
    pub created_at: Timestamp,
    /// For how many milliseconds nothing was at work on it, before it was resumed.
    #[serde(default)]
    pub idle_ms: u64,
    /// When it was resumed, until its next attempt begins.
    pub resumed_at: Option<Timestamp>,
    /// What it executes.
    pub spec: RunSpec,
    /// How its terms changed since it began, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub term_changes: Vec<TermChange>,
    /// Where it stood when it was closed, and stands again once it is resumed.
    pub closed_from: Option<RunStatus>,
    /// The iteration that is under way or comes next.
    pub current_iteration: u32,
    /// Iterations by number.
    pub iterations: Iterations,
    /// The failure that it stands at.
    pub failure: Option<Failure>,
    /// What was decided about it.
    pub decision: Option<Decision>,
    /// Message of the last error since the last success or reset.
    pub last_error: Option<String>,
    /// When it was.
    pub last_error_at: Option<Timestamp>,
    /// Earliest time of the next attempt.
    pub cooldown_until: Option<Timestamp>,
    /// Wait for a known time.
    pub parked: Option<Parked>,
    /// Sequence of the last success or reset: failures before it count no more against the task and the session.
    pub forgiven_seq: u64,
    /// Sequence of the last reset: failures before it count no more at all. A success forgives its own subtask only.
    pub reset_seq: u64,
    /// Attempts granted by a person beyond the budget.
    pub granted: u32,
    /// How the run was resumed for the next attempt.
    pub resumed_with: Option<Strategy>,
    /// Text for the next prompt (instructions of a resume, context of a manual fix).
    pub next_instructions: Option<String>,
    /// Whether the next prompt carries the error of the previous attempt.
    pub next_error_context: bool,
    /// Whether the next attempt wants a fresh agent session.
    pub fresh_session: bool,
    /// The agent's own session id, from its records.
    pub agent_session: Option<String>,
    /// The latest of its sessions in which the model gave an answer, where attempts may go on, and what was used up there.
    pub answered_session: Option<(String, Usage)>,
    /// What was restored in its work tree since the agent last worked there: the next prompt begins with it.
    pub restored: Option<RestoredFiles>,
    /// What its rollbacks could not remove or replace: work of attempts that were rolled back, and none of the run's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<LeftBehind>,
    /// What its attempts used up in that session.
    #[serde(default)]
    pub agent_session_usage: Usage,
    /// What it began with: its first checkpoint, but for one that an attempt left which did not pass.
    pub initial_checkpoint: Option<CheckpointId>,
    /// Whether a checkpoint of it was taken yet, those before restores aside.
    pub was_captured: bool,
    /// Which of its checkpoints count, and which were gone back over.
    pub line: Line,
    /// Its checkpoints that were removed, by sequence, those before restores aside.
    pub removed: BTreeMap<u64, Removed>,
    /// Ledger sequence of the run's latest checkpoint, or of what was before it: what came after goes into the next one.
    pub checkpoint_event_seq: u64,
    /// Commits that the run's own attempts, steps and checkpoints made, or that were named as its own.
    pub own_commits: BTreeSet<ObjectId>,
    /// The open or last manual fix.
    pub manual_fix: Option<ManualFixSession>,
    /// What the feedback loops said before the first attempt; `None` where they were not run.
    pub baseline: Option<FeedbackResults>,
    /// Operations since its latest checkpoint, safety ones aside (S10).
    pub operations: u32,
    /// Checkpoints of a lane's stages that a rollback went back past, by sequence (C5).
    pub rolled_back: BTreeSet<u64>,
    /// Why it stands still while it is paused or parked.
    pub stopped_for: Option<String>,
    /// What it was accepted as, last.
    #[serde(default)]
    pub accepted_as: AcceptedAs,
    /// Iterations that were given up with a person's consent.
    pub accepted: BTreeSet<u32>,
    /// The iteration that was given up last, until its files went back or the next attempt began.
    pub to_roll_back: Option<u32>,
}

/// Other terms that a run got when it was resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TermChange {
    /// When.
    pub at: Timestamp,
    /// Which, each as a few words.
    pub changes: Vec<String>,
}

/// How the reason begins for which a run is paused whose work tree cannot be captured.
pub(crate) const NO_CHECKPOINT: &str = "no checkpoint could be taken: ";

/// What a run was accepted as.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedAs {
    /// The newest of the commits; `None` where there was nothing to commit.
    pub commit: Option<ObjectId>,
    /// Whether new files of it were left out, which can be asked for still.
    pub left_out: bool,
}

impl AcceptedAs {
    /// Whether it was not accepted, or with nothing to commit and nothing left out.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Files that went back to a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredFiles {
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// How many were written.
    pub written: u64,
    /// How many were deleted.
    pub deleted: u64,
    /// The first of both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<RepoPath>,
    /// When.
    pub at: Timestamp,
    /// Whether the run did it by itself.
    pub of_run: bool,
    /// Paths that the system did not let be replaced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<PathReason>,
    /// The checkpoint of what was there before, where there are such paths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<CheckpointId>,
}

/// A file or a folder that a rollback could not remove or replace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftBehind {
    /// Where it is.
    pub path: RepoPath,
    /// When the rollback ended.
    pub at: Timestamp,
    /// The checkpoint that it went back to.
    pub target: CheckpointId,
    /// The checkpoint of what was there before it.
    pub before: CheckpointId,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_never(seq: &u64) -> bool {
    *seq == 0
}

/// What is zero as a rule is not written for every run.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Deref for Run {
    type Target = RunDetails;

    fn deref(&self) -> &RunDetails {
        &self.details
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut RunDetails {
        &mut self.details
    }
}

impl Run {
    /// The contract's `current_iteration`: the last one, once there is no next.
    pub fn shown_iteration(&self) -> u32 {
        self.spec
            .iterations_total
            .map_or(self.current_iteration, |total| {
                self.current_iteration.min(total.max(1))
            })
    }

    /// Whether nothing goes on by itself: another attempt is a person's to grant.
    pub fn stands_still(&self) -> bool {
        self.decision
            .as_ref()
            .is_some_and(|decision| !decision.leads_to_attempt())
    }

    /// The last attempt of the current iteration, else the last one of the run.
    pub fn last_attempt(&self) -> Option<(&Iteration, &Attempt)> {
        let current = self.iterations.get(self.current_iteration);
        let with_attempts = |iteration: &&Iteration| !iteration.attempts.is_empty();
        let iteration = current
            .filter(with_attempts)
            .or_else(|| self.iterations.values().rfind(with_attempts))?;
        Some((iteration, iteration.attempts.last()?))
    }

    /// All attempts, oldest iteration first.
    pub fn attempts(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.iterations.attempts()
    }

    /// All iterations, or where there are more than `most`: of those that no rollback took back the highest numbers, and
    /// always the one that is current and the one that the failure is about. Lowest number first.
    pub fn latest_iterations(&self, most: usize) -> Vec<&Iteration> {
        if self.iterations.len() <= most {
            return self.iterations.values().collect();
        }
        let failed = self.failure.as_ref().and_then(|failure| failure.iteration);
        let always = [Some(self.current_iteration), failed];
        let stands = self
            .iterations
            .statuses()
            .filter(|(_, status)| *status != IterationStatus::Superseded);
        let mut shown: BTreeSet<u32> = stands.map(|(number, _)| number).rev().take(most).collect();
        shown.extend(always.into_iter().flatten());
        shown
            .into_iter()
            .filter_map(|number| self.iterations.get(number))
            .collect()
    }

    /// Failed attempts that were charged and ended after `seq`.
    pub fn charged_since(&self, seq: u64) -> impl Iterator<Item = (&Attempt, &Failure)> {
        charged(self.iterations.ended_after(seq))
    }

    /// Failed attempts at `subtask` that count against its budget: since its last success, or a reset.
    pub fn charged_to(&self, subtask: &str) -> impl Iterator<Item = (&Attempt, &Failure)> {
        let since = self.counts_since(subtask);
        charged(self.iterations.attempts_on(subtask))
            .filter(move |(attempt, _)| attempt.ended_seq > Some(since))
    }

    /// Sequence since which failures of `subtask` count: its last success, or a reset.
    pub fn counts_since(&self, subtask: &str) -> u64 {
        let passed = |attempt: &Attempt| attempt.outcome == Some(AttemptOutcome::Passed);
        let all = self.iterations.attempts_on(subtask);
        let last = all
            .filter(|(_, attempt)| passed(attempt))
            .filter_map(|(_, attempt)| attempt.ended_seq);
        last.max().unwrap_or(0).max(self.reset_seq)
    }

    /// Attempts that passed and may have weakened their tests, with their iterations, unless a rollback took those back.
    pub fn weakened_attempts(&self) -> impl Iterator<Item = (u32, &Attempt)> {
        let weakened = self.iterations.weakened();
        let stand =
            weakened.filter(|(iteration, _)| iteration.status == IterationStatus::Completed);
        stand.map(|(iteration, attempt)| (iteration.number, attempt))
    }

    /// Whether a feedback loop was failing before the first attempt, and after each that counts; one that could not be
    /// started did not say.
    pub fn failed_at_baseline(&self, name: &str) -> bool {
        let result = self.baseline.as_ref().and_then(|results| results.get(name));
        let has_passed = |(iteration, attempt): (&Iteration, &Attempt)| {
            iteration.status == IterationStatus::Completed
                && attempt
                    .feedback_results
                    .get(name)
                    .is_some_and(|result| result.passed)
        };
        result.is_some_and(|result| !result.passed && !result.missing)
            && !self.attempts().rev().any(has_passed)
    }

    /// Whether it is there for its history only: it was imported, and nothing has happened to it since. A loop's cooldown
    /// is no history: it holds.
    pub fn is_history(&self) -> bool {
        self.last_import_untouched()
            .is_some_and(|kind| kind != ImportKind::Recovery)
    }

    /// Whether an agent's hook made it: it has the name of a session, and no command of its own.
    pub fn is_hook_session(&self) -> bool {
        let id = &self.key.run_id;
        let is_of = |agent: HookAgent| {
            id.as_str()
                .strip_prefix(agent.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        HookAgent::ALL.iter().copied().any(is_of) && self.spec.command.is_empty()
    }

    /// Whether failures of both use up one budget: that of a task that was named, or of one command that fails again and
    /// again.
    pub fn is_of_task_of(&self, other: &Self) -> bool {
        let repeats = match (&self.spec.repeats, &other.spec.repeats) {
            (Some(first), Some(same)) => first == same,
            (Some(first), None) => *first == other.key.run_id,
            (None, Some(first)) => *first == self.key.run_id,
            (None, None) => false,
        };
        self.key == other.key
            || (self.task_id.is_some() && self.task_id == other.task_id)
            || repeats
    }

    /// Whether it was accepted, and nothing but closed since.
    pub fn was_accepted(&self) -> bool {
        match self.status {
            RunStatus::Accepted => true,
            RunStatus::Closed => !self.accepted_as.is_none(),
            _ => false,
        }
    }

    /// Whether a person is fixing it by hand (B8).
    pub fn is_being_fixed(&self) -> bool {
        self.manual_fix
            .as_ref()
            .is_some_and(|session| session.status == ManualFixStatus::Active)
    }

    /// What it was imported from last, while nothing has happened to it since.
    pub fn last_import_untouched(&self) -> Option<ImportKind> {
        let last = self
            .imported
            .last()
            .filter(|last| last.seq == self.last_seq);
        last.map(|last| last.imported.kind)
    }

    /// The document that was taken over, while nothing has happened to the run since.
    pub fn untouched_import(&self, kind: ImportKind) -> Option<&serde_json::Value> {
        let last = self
            .imported
            .iter()
            .rfind(|one| one.imported.kind == kind)?;
        (last.seq == self.last_seq).then_some(&last.imported.document)
    }

    /// The step of this name.
    pub fn step(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.start.name == name)
    }

    /// What all attempts used up by the agent's records.
    pub fn usage(&self) -> Usage {
        self.iterations.usage()
    }

    /// The agent was given what was restored; what could not be replaced is there until a restore replaces it.
    pub(super) fn restore_was_announced(&mut self) {
        let left = self.restored.take();
        let left = left.filter(|restored| !restored.kept.is_empty());
        self.restored = left.map(|restored| RestoredFiles {
            written: 0,
            deleted: 0,
            paths: Vec::new(),
            ..restored
        });
    }

    /// Whether it waits for a limit's reset whose time was named.
    pub fn waits_for_reset(&self) -> bool {
        let decided = self.decision.as_ref();
        let limit = || self.iterations.last_ended()?.limit.as_deref();
        self.parked.is_some()
            && self
                .failure
                .as_ref()
                .or_else(limit)
                .zip(decided)
                .is_some_and(|(failure, decision)| failure.names_reset(decision.decided_at))
    }

    /// Whether it waited as long as it may: once what it waited for is over, it goes on as it was.
    pub fn gave_up_waiting(&self) -> bool {
        let decided = self.decision.as_ref();
        decided.is_some_and(|decision| decision.stopped_by == Some(BudgetScope::Waiting))
    }

    /// What an iteration has waited for.
    pub fn waits(&self, iteration: u32) -> Option<&Waits> {
        self.iterations.get(iteration)?.waits.as_deref()
    }

    /// Whether what the run stands at was nobody's mistake: a limit, the network, a kill.
    pub fn was_interrupted(&self) -> bool {
        self.failure.is_some()
            && self
                .standing_attempt()
                .is_some_and(Attempt::was_interrupted)
    }

    /// The agent's session in which the next attempt goes on.
    pub fn session_to_resume(&self) -> Option<&str> {
        let last = self
            .standing_attempt()
            .and_then(|attempt| attempt.decision.as_ref());
        let is_full = last.is_some_and(|decision| decision.has(Action::Continue));
        let is_gone = self
            .failure
            .as_ref()
            .is_some_and(|failure| failure.detail == Some(CauseDetail::SessionNotFound));
        let goes_on = match self.spec.session {
            SessionMode::Auto => !self.fresh_session,
            SessionMode::Same => !is_full && !is_gone,
            SessionMode::Fresh => false,
        };
        self.agent_session
            .as_deref()
            .filter(|session| goes_on && is_session_id(session))
    }

    /// The attempt that the next one is measured by: the last one of the iteration that the run's failure is about,
    /// else of the current one, else of the run.
    pub fn standing_attempt(&self) -> Option<&Attempt> {
        let failed = self.failure.as_ref().and_then(|failure| failure.iteration);
        let of_failed = failed.and_then(|number| self.iterations.get(number)?.attempts.last());
        of_failed.or_else(|| self.last_attempt().map(|(_, attempt)| attempt))
    }

    /// The iteration that comes after `number`: what is done or given up is not done again.
    pub fn iteration_after(&self, number: u32) -> u32 {
        if let Some(list) = &self.spec.tasks {
            return self.task_after(list, number);
        }
        let is_over = |number: &u32| {
            let status = self.iterations.status(*number);
            matches!(
                status,
                Some(IterationStatus::Completed | IterationStatus::Skipped)
            )
        };
        (number.saturating_add(1)..=u32::MAX)
            .find(|number| !is_over(number))
            .unwrap_or(u32::MAX)
    }

    /// Iterations that were given up, that nobody has accepted or done again since, lowest number first.
    pub fn given_up(&self) -> impl DoubleEndedIterator<Item = u32> {
        let skipped = self
            .iterations
            .statuses()
            .filter(|(_, status)| *status == IterationStatus::Skipped);
        skipped
            .map(|(number, _)| number)
            .filter(|number| !self.accepted.contains(number))
    }

    /// Whether the current iteration is over and no number is left for another.
    pub fn is_out_of_iterations(&self) -> bool {
        let status = self
            .iterations
            .get(self.current_iteration)
            .map(|iteration| iteration.status);
        let is_over = matches!(
            status,
            Some(IterationStatus::Completed | IterationStatus::Skipped)
        );
        is_over && self.iteration_after(self.current_iteration) == self.current_iteration
    }

    /// Whether another iteration may come.
    pub fn has_iterations_left(&self) -> bool {
        let total = self.spec.iterations_total;
        total.is_none_or(|total| self.current_iteration <= total) && !self.is_out_of_iterations()
    }

    /// What the next attempt of `iteration` is booked on without a subtask: a loop's `task`, else what the last was, if not over (A3).
    pub fn next_subtask(&self, iteration: u32, task: Option<&TaskId>) -> String {
        if let Some(task) = task.filter(|_| self.is_own_loop()) {
            return task.as_str().to_owned();
        }
        let of_iteration = self.iterations.get(iteration);
        let last = of_iteration.and_then(|iteration| iteration.attempts.last());
        let goes_on = last.filter(|attempt| {
            let mut decided = attempt.decision.iter();
            !decided.any(|decision| decision.has(Action::Skip))
                && attempt.outcome != Some(AttemptOutcome::Passed)
        });
        goes_on.map_or_else(
            || self.default_subtask(iteration),
            |attempt| attempt.subtask.clone(),
        )
    }

    /// What attempts of `iteration` are booked on where nobody named a subtask (A3).
    pub fn default_subtask(&self, iteration: u32) -> String {
        let own = self.spec.repeats.as_ref().unwrap_or(&self.key.run_id);
        let prefix = self.task_id.as_ref().map_or(own.as_str(), TaskId::as_str);
        if self.is_own_loop() && self.task_id.is_some() {
            return prefix.to_owned();
        }
        format!("{prefix}/iteration-{iteration}")
    }

    /// Whether its attempts are those of a loop that runs its own commands.
    pub fn is_own_loop(&self) -> bool {
        self.spec.command.is_empty() && self.spec.iterations_total.is_none()
    }
}

/// Goes into [`Run::subtasks`].
pub(crate) fn subtask_checksum(subtask: &str) -> u32 {
    crc32fast::hash(subtask.as_bytes())
}

/// The id of the run without a task whose iteration has this name as its subtask.
pub(crate) fn run_of_subtask(subtask: &str) -> Option<&str> {
    let (run_id, number) = subtask.rsplit_once("/iteration-")?;
    number.parse::<u32>().is_ok().then_some(run_id)
}

fn charged<'a>(
    attempts: impl Iterator<Item = (&'a Iteration, &'a Attempt)>,
) -> impl Iterator<Item = (&'a Attempt, &'a Failure)> {
    attempts.filter_map(|(_, attempt)| {
        let failure = attempt.failure.as_ref().filter(|_| attempt.charged)?;
        Some((attempt, failure))
    })
}
