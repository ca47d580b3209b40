//! Restore-like operations and how they are taken back.

use crate::model::path::FolderId;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::id::OperationId;
use super::run::AcceptedAs;
use super::step::StepRef;
use super::{
    Checkpoint, CheckpointId, Decision, Failure, IterationStatus, ObjectId, PathReason, RepoPath,
    Run, RunStatus, Timestamp,
};

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum OperationKind {
    /// `rollback`: the run's bookkeeping follows.
    Rollback,
    /// `checkpoint restore`: the run's bookkeeping stays.
    Restore,
    /// `undo`.
    Undo,
    /// `redo`.
    Redo,
    /// `accept`: what the run did is committed.
    Accept,
    /// `discard`: a rollback of the whole run, which closes it.
    Discard,
}

impl OperationKind {
    /// Whether a run goes back with its files.
    pub fn is_rollback(self) -> bool {
        matches!(self, Self::Rollback | Self::Discard)
    }

    /// The command that goes back to what was there before it.
    pub fn taken_back_by(self) -> &'static str {
        match self {
            Self::Undo => Self::Redo.as_str(),
            Self::Rollback | Self::Restore | Self::Redo | Self::Accept | Self::Discard => {
                Self::Undo.as_str()
            }
        }
    }
}

/// What a restore covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Scope {
    /// Work tree, working memory, and HEAD where it is the run's own to move.
    #[default]
    All,
    /// Work tree only.
    Files,
    /// Working memory below the state directory only (L6).
    State,
}

impl Scope {
    /// Whether the work tree is covered.
    pub fn covers_files(self) -> bool {
        self != Self::State
    }

    /// Whether the working memory is covered.
    pub fn covers_state(self) -> bool {
        self != Self::Files
    }
}

/// HEAD before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeadMove {
    /// The commit before.
    pub before: Option<ObjectId>,
    /// The commit after.
    pub after: Option<ObjectId>,
}

/// How the run's bookkeeping follows a rollback (B10).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reposition {
    /// The iteration that comes next.
    pub current_iteration: u32,
    /// The run's status afterwards.
    pub status: RunStatus,
    /// Whether the failure is forgotten (after a full rollback).
    pub clear_failure: bool,
}

impl Reposition {
    /// Whether the run is closed with it.
    pub fn closes(&self) -> bool {
        self.status == RunStatus::Closed
    }

    /// Whether it would put `run` anywhere else.
    pub fn moves(&self, run: &Run) -> bool {
        self.current_iteration != run.current_iteration
            || (self.clear_failure && run.failure.is_some())
            || (self.closes() && run.status != RunStatus::Closed)
    }

    /// The iterations of `run` that it goes back over.
    pub fn supersedes(&self, run: &Run) -> Vec<u32> {
        let counts = |status| {
            !matches!(
                status,
                IterationStatus::Superseded | IterationStatus::Pending
            )
        };
        let all = run
            .iterations
            .statuses()
            .filter(|(number, _)| *number >= self.current_iteration);
        all.filter(|(_, status)| counts(*status))
            .map(|(number, _)| number)
            .collect()
    }
}

/// Where a run stood, so that an undo can put it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPosition {
    /// The run's status.
    pub status: RunStatus,
    /// The iteration that came next.
    pub current_iteration: u32,
    /// Each iteration's status.
    pub iterations: BTreeMap<u32, IterationStatus>,
    /// The failure that it stood at.
    pub failure: Option<Failure>,
    /// What was decided about it.
    pub decision: Option<Decision>,
    /// Sequence at which its line of checkpoints ended.
    pub checkpoint: u64,
    /// Checkpoints of a lane's stages that were gone back past, by sequence.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub rolled_back: BTreeSet<u64>,
    /// What it was accepted as.
    #[serde(default, skip_serializing_if = "AcceptedAs::is_none")]
    pub accepted_as: AcceptedAs,
}

/// Which of a run's changes of git's settings and hooks to put back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitChanges {
    /// Those of its latest iteration, for good.
    OfIteration,
    /// All of its attempts.
    OfRun,
    /// Those that [`Self::OfRun`] put back are made again.
    PutBack,
}

/// How many paths an operation names.
pub(crate) const MAX_CHANGED_PATHS: usize = 20;

/// A restore as the ledger records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// What it is named by.
    pub id: OperationId,
    /// What was done.
    pub kind: OperationKind,
    /// Absolute path of the work tree.
    pub worktree: FolderId,
    /// What there was before it.
    pub safety_checkpoint_id: CheckpointId,
    /// What was restored.
    pub checkpoint_id: CheckpointId,
    /// What it covered.
    pub scope: Scope,
    /// Only these paths (globs); empty for all.
    #[serde(default)]
    pub paths: Vec<String>,
    /// HEAD before and after.
    pub head: HeadMove,
    /// How many paths were written.
    pub written: u64,
    /// How many paths were deleted.
    pub deleted: u64,
    /// The first [`MAX_CHANGED_PATHS`] of both.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_paths: Vec<RepoPath>,
    /// What was left as it was, and why.
    #[serde(default)]
    pub kept: Vec<PathReason>,
    /// Those of them that stayed unlike the checkpoint, as they could not be replaced; see [`Self::left`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<PathReason>,
    /// How the run's bookkeeping follows; `None` where it stays.
    pub reposition: Option<Reposition>,
    /// Whether the index was restored too.
    #[serde(default)]
    pub index_restored: bool,
    /// Steps that were done after the checkpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRef>,
    /// What it did with nested repositories.
    #[serde(default, skip_serializing_if = "NestedPart::is_none")]
    pub nested: NestedPart,
    /// Whether the run did it by itself, or it takes such a one back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_run: bool,
}

impl Operation {
    /// One of everything in the work tree of its safety checkpoint, by whose number it is named, that changes nothing.
    pub(crate) fn new(
        name: &str,
        kind: OperationKind,
        safety: &Checkpoint,
        target: &CheckpointId,
    ) -> Self {
        Self {
            id: format!("{name}_{:04}", safety.seq).into(),
            kind,
            worktree: safety.worktree.clone(),
            safety_checkpoint_id: safety.id.clone(),
            checkpoint_id: target.clone(),
            scope: Scope::All,
            paths: Vec::new(),
            head: HeadMove {
                before: safety.base_commit.clone(),
                after: safety.base_commit.clone(),
            },
            written: 0,
            deleted: 0,
            changed_paths: Vec::new(),
            kept: Vec::new(),
            left: Vec::new(),
            reposition: None,
            index_restored: false,
            steps: Vec::new(),
            nested: NestedPart::default(),
            of_run: false,
        }
    }

    /// What stayed unlike the checkpoint, as it could not be replaced. Earlier versions recorded only what they had kept.
    pub fn left(&self) -> impl Iterator<Item = &PathReason> {
        let blocked = self.kept.iter().filter(|kept| kept.is_blocked());
        let blocked = blocked.filter(|kept| !self.left.contains(kept));
        self.left.iter().chain(blocked)
    }
}

/// A `.git` file that leads from a folder of the work tree to the repository that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitFile {
    /// The folder.
    #[serde(flatten)]
    pub path: RepoPath,
    /// What the file holds.
    pub content: String,
}

/// What an operation did with nested repositories.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NestedPart {
    /// Whether the files of those that are there were restored too.
    #[serde(default)]
    pub restored: bool,
    /// `.git` files that it put into folders that were gone.
    #[serde(default)]
    pub placed: Vec<GitFile>,
}

impl NestedPart {
    /// Whether it did nothing with them.
    pub fn is_none(&self) -> bool {
        !self.restored && self.placed.is_empty()
    }
}

/// A restore that can be undone, as the state keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UndoEntry {
    /// The operation's id.
    pub operation_id: OperationId,
    /// What was done.
    pub kind: OperationKind,
    /// When.
    pub at: Timestamp,
    /// The run whose bookkeeping followed.
    pub run: Option<super::run::RunKey>,
    /// The checkpoint to go back to.
    pub checkpoint_id: CheckpointId,
    /// What was restored then; `None` where the state was kept by a version that did not note it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored: Option<CheckpointId>,
    /// What it covered.
    pub scope: Scope,
    /// Only these paths; empty for all.
    pub paths: Vec<String>,
    /// Where the run stood before.
    pub position: Option<RunPosition>,
    /// Where the operation found HEAD, and where it left it.
    #[serde(default)]
    pub head: HeadMove,
    /// Whether it put another index in the place of the one it found.
    #[serde(default)]
    pub index_restored: bool,
    /// Steps that were done after its checkpoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRef>,
    /// What it did with nested repositories.
    #[serde(default, skip_serializing_if = "NestedPart::is_none")]
    pub nested: NestedPart,
    /// Whether the run did it by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_run: bool,
}

impl UndoEntry {
    /// An operation that was done now, of a run that stood at `position`.
    pub fn of(
        operation: &Operation,
        at: Timestamp,
        run: Option<super::run::RunKey>,
        position: Option<RunPosition>,
    ) -> Self {
        Self {
            operation_id: operation.id.clone(),
            kind: operation.kind,
            at,
            run,
            checkpoint_id: operation.safety_checkpoint_id.clone(),
            restored: Some(operation.checkpoint_id.clone()),
            scope: operation.scope,
            paths: operation.paths.clone(),
            position,
            head: operation.head.clone(),
            index_restored: operation.index_restored,
            steps: operation.steps.clone(),
            nested: operation.nested.clone(),
            of_run: operation.of_run,
        }
    }
}

/// What a work tree held after the run last wrote it: later layers win.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaselineLayer {
    /// The checkpoint that holds the content.
    pub checkpoint_id: CheckpointId,
    /// For these paths only (globs); empty for all.
    pub paths: Vec<String>,
    /// Nested repositories that were left as they were, and paths that could not be replaced: of their content nothing is
    /// known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<RepoPath>,
}

/// What is kept of each work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeState {
    /// What the run last wrote; a path that is neither this nor the target's was edited by a person.
    pub baseline: Vec<BaselineLayer>,
    /// Id of the last operation, so that one that was interrupted is not recorded twice.
    pub last_operation: Option<OperationId>,
    /// What `undo` takes back, last one last.
    pub undo: Vec<UndoEntry>,
    /// What `redo` does again, last one last.
    pub redo: Vec<UndoEntry>,
    /// What runs did by themselves and `undo --of-run` takes back, last one last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_runs: Vec<UndoEntry>,
}
