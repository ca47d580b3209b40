//! Steps: named commands that are run once in a run, lane by lane (C4, S6, S12).

use crate::model::path::FolderId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::id::NONE;
use super::{CheckpointId, ObjectId, ProcessId, RunKey, Timestamp};

/// The longest name that a step may have, in bytes.
pub(crate) const MAX_NAME: usize = 200;

/// Where a step stands.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum StepStatus {
    /// Its command runs.
    #[default]
    Running,
    /// Its command succeeded: it is not run again.
    Done,
    /// Its command failed: it is run again the next time.
    Failed,
    /// The `recover` that ran it was killed: how far it got is not known.
    CutOff,
    /// It was done, and its effect was taken back by a rollback: it is run again the next time.
    Compensated,
}

/// All or nothing: what is restored unless the command succeeds (S6).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Atomic {
    /// What the step is about to do, in a person's words.
    pub intent: Option<String>,
    /// The files it covers (globs); empty for the whole work tree.
    pub paths: Vec<String>,
    /// The checkpoint that holds them as they were.
    pub checkpoint_id: CheckpointId,
}

/// The beginning of a step, recorded before its command is started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStart {
    /// Its name.
    pub name: String,
    /// The command.
    pub command: Vec<String>,
    /// The folder that the command runs in.
    pub cwd: FolderId,
    /// Absolute path of the work tree.
    pub worktree: FolderId,
    /// The lane's stage that it completes.
    pub stage: Option<String>,
    /// Where the lane is to be merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_branch: Option<String>,
    /// HEAD when it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<ObjectId>,
    /// What is restored unless it succeeds.
    pub atomic: Option<Atomic>,
    /// The shell command that takes its effect outside the work tree back.
    pub compensate: Option<String>,
    /// The `recover` that runs it.
    pub supervisor: ProcessId,
    /// The fields above of which a secret was masked, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<String>,
}

/// The end of a step's command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepEnd {
    /// Its name.
    pub name: String,
    /// `Done`, `Failed` or `CutOff`.
    pub status: StepStatus,
    /// What the command ended with, 128 and the number for a signal; `None` if that is not known.
    pub exit_code: Option<i32>,
    /// Milliseconds it took.
    pub duration_ms: u64,
    /// What its command said went wrong, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the covered files were restored.
    pub rolled_back: bool,
    /// Commits that it made: the run's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<ObjectId>,
}

/// A step as the state keeps it: its latest execution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// How it began.
    #[serde(flatten)]
    pub start: StepStart,
    /// Where it stands.
    pub status: StepStatus,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Ledger sequence of its end.
    pub ended_seq: u64,
    /// The latest checkpoint sequence when it ended: a checkpoint up to there does not hold what it did.
    pub after_checkpoint: u64,
    /// What its command ended with.
    pub exit_code: Option<i32>,
    /// Milliseconds it took.
    pub duration_ms: Option<u64>,
    /// What its command said went wrong, in a line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the covered files were restored.
    pub rolled_back: bool,
    /// How often it was begun.
    pub executions: u32,
    /// Ledger sequence of its first beginning: the order in which steps are to be run.
    pub first_seq: u64,
    /// Its command's process, leader of its group.
    pub child: Option<ProcessId>,
    /// A restore went back to before it while its effect stayed.
    pub crossed: bool,
    /// The `recover` that is taking its effect back.
    pub compensating: Option<ProcessId>,
}

impl Step {
    /// Whether a restore of the checkpoint numbered `seq` goes back to before it.
    pub fn is_after(&self, seq: u64) -> bool {
        seq <= self.after_checkpoint
    }

    /// Whether it was done and has to be done again: its lane was gone back past it (C4, C5). Elsewhere a step stays done
    /// whose effect outside the work tree stayed.
    pub fn runs_again(&self, run: &RunKey) -> bool {
        self.crossed && self.would_run_again(run)
    }

    /// Whether it would have to be done again after a rollback to before it.
    pub fn would_run_again(&self, run: &RunKey) -> bool {
        self.status == StepStatus::Done && (run.lane != NONE || self.start.stage.is_some())
    }

    /// The checkpoint that a step under way is restored to if it fails.
    pub fn way_back(&self) -> Option<&str> {
        let atomic = self
            .start
            .atomic
            .as_ref()
            .filter(|_| self.status == StepStatus::Running);
        atomic.map(|atomic| atomic.checkpoint_id.as_str())
    }

    /// What is reported of it.
    pub fn told(&self, run: &RunKey) -> ToldStep {
        let StepStart {
            name,
            command,
            stage,
            atomic,
            compensate,
            ..
        } = self.start.clone();
        let is_atomic = atomic.is_some();
        let Atomic {
            intent,
            paths,
            checkpoint_id,
        } = atomic.unwrap_or_default();
        ToldStep {
            name,
            run: run.clone(),
            stage,
            status: self.status,
            command,
            started_at: self.started_at,
            ended_at: self.ended_at,
            duration_ms: self.duration_ms,
            exit_code: self.exit_code,
            executions: self.executions,
            atomic: is_atomic,
            intent,
            paths,
            before_checkpoint_id: Some(checkpoint_id).filter(|id| !id.as_str().is_empty()),
            rolled_back: self.rolled_back,
            compensate,
            crossed: self.crossed,
        }
    }
}

/// A step in documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "step")]
pub struct ToldStep {
    /// Its name.
    pub name: String,
    /// The run, phase and lane it belongs to.
    #[serde(flatten)]
    pub run: RunKey,
    /// The lane's stage that it completes.
    pub stage: Option<String>,
    /// Where it stands.
    pub status: StepStatus,
    /// The command.
    pub command: Vec<String>,
    /// When its latest execution began.
    pub started_at: Timestamp,
    /// When that ended.
    pub ended_at: Option<Timestamp>,
    /// Milliseconds it took.
    pub duration_ms: Option<u64>,
    /// What the command ended with.
    pub exit_code: Option<i32>,
    /// How often it was begun.
    pub executions: u32,
    /// Whether it is all or nothing.
    pub atomic: bool,
    /// What it was about to do.
    pub intent: Option<String>,
    /// The files that it covers (globs).
    pub paths: Vec<String>,
    /// The checkpoint that holds them as they were.
    pub before_checkpoint_id: Option<CheckpointId>,
    /// Whether the covered files were restored.
    pub rolled_back: bool,
    /// The shell command that takes its effect back.
    pub compensate: Option<String>,
    /// A restore went back to before it while its effect stayed.
    pub crossed: bool,
}

/// Names a step of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRef {
    /// The run.
    #[serde(flatten)]
    pub run: RunKey,
    /// Its name.
    pub name: String,
}

/// What is wrong with a step's name.
pub(crate) fn name_problem(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some("is empty".to_owned());
    }
    if name.trim() != name {
        return Some("begins or ends with a blank".to_owned());
    }
    if name.len() > MAX_NAME {
        return Some(format!(
            "has {} bytes, at most {MAX_NAME} are allowed",
            name.len()
        ));
    }
    name.chars()
        .any(char::is_control)
        .then(|| "holds a control character".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_printable() {
        for name in ["a", "push to staging", "größe/2", &"x".repeat(MAX_NAME)] {
            assert_eq!(name_problem(name), None, "{name}");
        }
        for name in [
            "",
            " ",
            " a",
            "a ",
            "a\nb",
            "\u{1b}[1m",
            "a\0",
            &"x".repeat(MAX_NAME + 1),
        ] {
            assert!(name_problem(name).is_some(), "{name:?}");
        }
    }
}
