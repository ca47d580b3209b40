//! Iterations and their attempts, and a person's fix between two of them (B8, B9).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::agent_record::{LimitLeft, Tokens, Usage};
use super::decision::BudgetScope;
use super::id::FixId;
use super::{
    Action, Change, CheckpointId, Condition, Decision, Failure, FeedbackResults, ObjectId, RunId,
    TaskId, Timestamp,
};

/// A numbered unit of progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Iteration {
    /// 1-based.
    pub number: u32,
    /// Where it stands.
    pub status: IterationStatus,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Why it was skipped.
    pub reason: Option<String>,
    /// Why it is left to a person; until it passes, is accepted, or the run starts afresh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck: Option<String>,
    /// The checkpoint that the work tree was known by when it began, or began again after it was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<CheckpointId>,
    /// What it has waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Box<Waits>>,
}

/// An iteration's waits for what is not its agent's doing: a limit, an outage, the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// When the first attempt was cut off of those that nothing else came between; `None` where the last one was not.
    pub since: Option<Timestamp>,
    /// How many those are: all but the first are probes.
    pub cut_off: u32,
    /// Of these, the latest that no reset was named for.
    pub unnamed: u32,
    /// How many of the iteration's attempts were cut off after an answer of the model.
    pub answered: u32,
    /// Milliseconds that were waited in all.
    pub waited_ms: u64,
    /// What cut off the last one.
    pub failure: Option<Box<Failure>>,
    /// Whether that was one in a session of the agent that had an answer.
    pub in_session: bool,
}

impl Waits {
    /// How long it has waited in all.
    pub fn waited(&self) -> Duration {
        Duration::from_millis(self.waited_ms)
    }

    /// How many attempts found that nothing had changed.
    pub fn probes(&self) -> u32 {
        self.cut_off.saturating_sub(1)
    }

    /// Counts another attempt that was cut off.
    pub(super) fn count(&mut self, failure: &Failure, answered: bool, at: Timestamp) {
        self.since.get_or_insert(at);
        self.cut_off += 1;
        self.unnamed = if failure.names_reset(at) {
            0
        } else {
            self.unnamed + 1
        };
        self.answered += u32::from(answered);
        self.failure = Some(Box::new(failure.clone()));
    }

    /// Something else came of the last attempt: what is waited for next is waited for anew.
    pub(super) fn end(&mut self) {
        *self = Self {
            answered: self.answered,
            waited_ms: self.waited_ms,
            ..Self::default()
        };
    }
}

/// Where an iteration stands.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum IterationStatus {
    /// Not tried yet, or to be tried again.
    #[default]
    Pending,
    /// An attempt is under way, or work goes on in a later session (A8).
    InProgress,
    /// Passed.
    Completed,
    /// The last attempt failed.
    Failed,
    /// Interrupted by a signal or a user.
    Cancelled,
    /// Given up by policy or by a person (A7).
    Skipped,
    /// Taken back by a rollback (B10); its history stays.
    Superseded,
}

impl Iteration {
    /// What its attempts used up.
    pub fn usage(&self) -> Usage {
        self.attempts.iter().map(Attempt::usage).sum()
    }

    /// Whether an attempt of it passed, whatever came after.
    pub fn has_passed(&self) -> bool {
        self.attempts
            .iter()
            .any(|attempt| attempt.outcome == Some(AttemptOutcome::Passed))
    }
}

/// One execution of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// 1-based within the iteration; grows over rollbacks too.
    pub number: u32,
    /// When it began.
    pub started_at: Timestamp,
    /// What it tries, in the loop's own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approach: Option<String>,
    /// What the attempt is booked on in the history (A3).
    pub subtask: String,
    /// The budget's session.
    pub session: String,
    /// HEAD when it began, so that commits made meanwhile are known as its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head_at_start: Option<ObjectId>,
    /// How it ended; `None` while it is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<AttemptOutcome>,
    /// Milliseconds from start to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Exit status of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Name of the signal that ended the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Whether the deadline ended it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    /// The bounded log of its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_path: Option<String>,
    /// The checkpoint taken at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<CheckpointId>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Conditions that hold even when it passed in the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What the feedback loops said.
    #[serde(default, skip_serializing_if = "FeedbackResults::is_empty")]
    pub feedback_results: FeedbackResults,
    /// Whether it counts against the budgets.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub charged: bool,
    /// What was decided about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Ledger sequence of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_seq: Option<u64>,
    /// What the conditions are about, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Whether it ran the fallback in place of the run's command (S9).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fallback: bool,
    /// What it cost by the agent's records, in millionths of a US dollar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
    /// Tokens that it used by the agent's records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Processes that it left behind outside its session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<Leftover>,
    /// What it changed of git's settings and hooks: keys and paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub git_changes: Vec<String>,
    /// What would have to change before it is worth another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preconditions: Option<Box<Preconditions>>,
    /// The usage limit that its agent ended with, where what it left passed all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<Failure>>,
    /// What the account's tightest limit had left, where the agent's records say that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_left: Option<LimitLeft>,
}

impl Attempt {
    /// Whether it was cut off by what is waited for, or was for too long: the next one has its number and its place.
    pub fn is_waiting(&self) -> bool {
        let parks = |decision: &Decision| {
            decision.has(Action::Park) || decision.stopped_by == Some(BudgetScope::Waiting)
        };
        self.outcome == Some(AttemptOutcome::Failed)
            && !self.charged
            && self.decision.as_ref().is_some_and(parks)
    }

    /// Whether it ended by what was not the agent's doing, and not in a check.
    pub fn was_interrupted(&self) -> bool {
        let in_check = self.feedback_results.values().any(|result| !result.passed);
        self.failure.as_ref().is_some_and(Failure::is_interruption) && !in_check
    }

    /// When it ended; when it began, where that is not known.
    pub fn ended_at(&self) -> Timestamp {
        let took = Duration::from_millis(self.duration_ms.unwrap_or(0));
        self.started_at.plus(took)
    }

    /// What it used up.
    pub fn usage(&self) -> Usage {
        Usage {
            cost_micros: self.cost_micros,
            tokens: self.tokens,
        }
    }

    /// Whether it passed and may have weakened its tests.
    pub fn is_weakened(&self) -> bool {
        self.outcome == Some(AttemptOutcome::Passed)
            && self.conditions.contains(&Condition::Tampered)
    }
}

/// A process that outlived its attempt outside the attempt's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leftover {
    /// Its number.
    pub pid: u32,
    /// Its command line, with what looks like a secret masked.
    pub command: String,
    /// Whether it was ended.
    pub ended: bool,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttemptOutcome {
    /// The command and every feedback loop passed.
    #[default]
    Passed,
    /// Something failed; charged to the budgets unless the policy parks or continues.
    Failed,
    /// Interrupted by a signal or a user; never charged.
    Cancelled,
}

/// An attempt that is under way, and who makes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveAttempt {
    /// Its iteration.
    pub iteration: u32,
    /// Its number.
    pub attempt: u32,
    /// The `recover` that supervises it; `None` when a loop runs its own commands.
    pub supervisor: Option<ProcessId>,
    /// The command's process, leader of its group.
    pub child: Option<ProcessId>,
    /// The highest checkpoint sequence when it began: what is higher was taken while it was under way.
    #[serde(default)]
    pub after_checkpoint: u64,
    /// The checkpoint that the work tree was known by when it began.
    pub baseline: Option<CheckpointId>,
}

/// Names one process for good, also after its number was given to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process number; for a supervised child also the number of its group.
    pub pid: u32,
    /// When it started: clock ticks since the machine started on Linux, seconds since the epoch elsewhere. 0 if the
    /// process table could not be read; such an id never counts as alive.
    pub start_time: u64,
    /// The number of its session, which a process group cannot leave; 0 if unknown.
    pub session: u32,
    /// Names the time since the machine's last start; `None` where start times are comparable without.
    pub boot_id: Option<String>,
    /// The PID namespace that the number belongs to, by its inode; `None` where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<u64>,
    /// The name of its heartbeat file; `None` for processes that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<String>,
}

/// What was examined when such an attempt ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preconditions {
    /// Goes into the checksums of variables, so that none can be looked up or compared with another record's.
    pub salt: String,
    /// One by one.
    pub seen: Vec<Precondition>,
}

/// One thing that was examined.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precondition {
    /// Of which kind.
    pub kind: PreconditionKind,
    /// A path, relative to the work tree where it lies there; `~/…` below the home folder; a variable.
    pub name: String,
    /// How it was, never what was in it; `None` where it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// What is examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PreconditionKind {
    /// Mode and owner of a path, and whether its file system can be written to.
    Permissions,
    /// Who runs the command: user and groups.
    User,
    /// Which file credentials are in, and when that was written.
    Credentials,
    /// A salted checksum of a variable's value.
    Variable,
    /// What a newer version looks at.
    #[serde(other)]
    Unknown,
}

/// Iterations by number. A clone shares those that neither of the two changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Iterations(BTreeMap<u32, Arc<Iteration>>);

impl Iterations {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The one with this number.
    pub fn get(&self, number: u32) -> Option<&Iteration> {
        self.0.get(&number).map(Arc::as_ref)
    }

    /// A mutable reference to it.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Iteration> {
        self.0.get_mut(&number).map(Arc::make_mut)
    }

    /// The one with this number; a pending one where there is none.
    pub fn get_or_pending(&mut self, number: u32) -> &mut Iteration {
        let pending = || {
            Arc::new(Iteration {
                number,
                ..Iteration::default()
            })
        };
        Arc::make_mut(self.0.entry(number).or_insert_with(pending))
    }

    /// All, lowest number first.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Iteration> {
        self.since(0)
    }

    /// Those from this number on, lowest number first.
    pub fn since(&self, first: u32) -> impl DoubleEndedIterator<Item = &Iteration> {
        self.0
            .range(first..)
            .map(|(_, iteration)| iteration.as_ref())
    }

    /// The latest `most` and, of those before them, all that are not completed, lowest number first.
    pub fn recent(&self, most: usize) -> Vec<&Iteration> {
        let before = self.len().saturating_sub(most);
        self.values()
            .enumerate()
            .filter(|(at, iteration)| {
                *at >= before || iteration.status != IterationStatus::Completed
            })
            .map(|(_, iteration)| iteration)
            .collect()
    }

    /// Those from this number on, to be changed.
    pub fn iter_mut_from(&mut self, first: u32) -> impl Iterator<Item = &mut Iteration> {
        self.0
            .range_mut(first..)
            .map(|(_, iteration)| Arc::make_mut(iteration))
    }

    /// The attempts that have not ended, to be changed.
    pub fn unended_mut(&mut self) -> impl Iterator<Item = &mut Attempt> {
        let is_unended = |attempt: &Attempt| attempt.outcome.is_none();
        self.0
            .values_mut()
            .filter(move |iteration| iteration.attempts.iter().any(is_unended))
            .flat_map(|iteration| &mut Arc::make_mut(iteration).attempts)
            .filter(move |attempt| is_unended(attempt))
    }

    /// Where each stands, lowest number first.
    pub fn statuses(&self) -> impl DoubleEndedIterator<Item = (u32, IterationStatus)> {
        self.values()
            .map(|iteration| (iteration.number, iteration.status))
    }

    /// Where the one with this number stands.
    pub fn status(&self, number: u32) -> Option<IterationStatus> {
        self.get(number).map(|iteration| iteration.status)
    }

    /// The highest number.
    pub fn last_number(&self) -> Option<u32> {
        self.0.keys().next_back().copied()
    }

    /// All attempts, each with its iteration, oldest iteration first.
    pub fn attempts(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.values().flat_map(|iteration| {
            let attempts = iteration.attempts.iter();
            attempts.map(move |attempt| (iteration, attempt))
        })
    }

    /// How many attempts there are.
    pub fn count_attempts(&self) -> usize {
        self.attempts().count()
    }

    /// The attempts that are booked on `subtask`.
    pub fn attempts_on(
        &self,
        subtask: &str,
    ) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts()
            .filter(move |(_, attempt)| attempt.subtask == subtask)
    }

    /// The attempts that passed and may have weakened their tests.
    pub fn weakened(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts().filter(|(_, attempt)| attempt.is_weakened())
    }

    /// The attempts that ended after the event with this sequence.
    pub fn ended_after(&self, seq: u64) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts()
            .filter(move |(_, attempt)| attempt.ended_seq > Some(seq))
    }

    /// The attempt that ended last.
    pub fn last_ended(&self) -> Option<&Attempt> {
        let ended = self.ended_after(0).map(|(_, attempt)| attempt);
        ended.max_by_key(|attempt| attempt.ended_seq)
    }

    /// What all attempts used up.
    pub fn usage(&self) -> Usage {
        self.attempts().map(|(_, attempt)| attempt.usage()).sum()
    }

    /// The attempts that changed git's settings.
    pub fn with_git_changes(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts()
            .filter(|(_, attempt)| !attempt.git_changes.is_empty())
    }
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "fix_status")]
pub enum ManualFixStatus {
    /// A person is at it.
    Active,
    /// The run went on with the fix.
    Completed,
    /// Given up.
    Aborted,
}

/// A person's fix between two attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "session")]
pub struct ManualFixSession {
    /// What it is named by.
    pub id: FixId,
    /// The run.
    pub run_id: RunId,
    /// What the run works on.
    pub task_id: Option<TaskId>,
    /// When it began.
    pub started_at: Timestamp,
    /// What is to be fixed.
    pub issue: Option<Failure>,
    /// The checkpoint it began at: changes are listed against it.
    pub checkpoint_id: CheckpointId,
    /// What has changed since it began, as of the last look.
    #[serde(default)]
    pub detected_changes: Vec<Change>,
    /// What the feedback loops said of the fix.
    #[serde(default)]
    pub verification_results: FeedbackResults,
    /// Whether every loop passed on exactly `verified_tree`.
    pub verified: bool,
    /// The tree that was verified.
    pub verified_tree: Option<ObjectId>,
    /// When the last of the changes was made, where the session is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_detected_at: Option<Timestamp>,
    /// Where it stands.
    pub status: ManualFixStatus,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_completed_stays_among_the_recent() {
        let mut iterations = Iterations::default();
        for number in 1..=6 {
            iterations.get_or_pending(number).status = match number {
                2 => IterationStatus::Skipped,
                _ => IterationStatus::Completed,
            };
        }
        let recent = |most| -> Vec<u32> {
            let recent = iterations.recent(most).into_iter();
            recent.map(|iteration| iteration.number).collect()
        };
        assert_eq!(recent(0), [2]);
        assert_eq!(recent(2), [2, 5, 6]);
        assert_eq!(recent(9), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_clone_is_not_changed_with_the_other() {
        let mut iterations = Iterations::default();
        iterations.get_or_pending(1);
        let before = iterations.clone();
        iterations.get_or_pending(1).status = IterationStatus::Failed;
        assert_eq!(before.status(1), Some(IterationStatus::Pending));
        assert_eq!(iterations.status(1), Some(IterationStatus::Failed));
    }
}
