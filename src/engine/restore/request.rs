//! What is asked of a restore, and what it answers.

use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::model::operation::{Reposition, UndoEntry};
use crate::model::{
    Checkpoint, CheckpointId, HeadMove, Hint, ObjectId, OperationKind, PathReason, RepoPath, Run,
    RunKey, Scope, State, StorageType, ToldStep,
};
use crate::policy::restore::Edits;
use crate::policy::settings::RollbackSettings;

/// What to do about commits made since the checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub(crate) enum Commits {
    /// Take the run's own off the branch, refuse where others are among them.
    #[default]
    Refuse,
    /// Leave HEAD.
    Keep,
    /// Take all of them off the branch; they stay reachable from the safety checkpoint.
    Drop,
    /// Make one new commit with the checkpoint's content on top.
    Revert,
}

/// The flag that asks to restore everything that can be.
pub(super) const BEST_EFFORT: &str = "--best-effort";

/// Who starts a restore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Initiator {
    /// A person or a script, by a command.
    #[default]
    User,
    /// A run, by its policy: the working memory follows `[rollback] on_error` and `[memory] loop_state`.
    Policy,
}

/// What the user says of a restore, whichever command it is.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Options {
    /// What it covers.
    pub scope: Scope,
    /// Only these paths (globs); empty for all.
    pub paths: Vec<String>,
    /// What to do about commits made since.
    pub commits: Commits,
    /// What to do about hand edits.
    pub edits: Edits,
    /// Whether the index becomes as the checkpoint has it, what a person staged included; else it follows entry by entry.
    pub restore_index: bool,
    /// Whether the files of nested repositories are restored too.
    pub nested: bool,
    /// Whether the checkpoint may be of another work tree: its files come into this one.
    pub here: bool,
    /// Whether everything else is restored where the system does not let a path be replaced.
    pub best_effort: bool,
    /// Whether copies of ignored files that are gone are put back.
    pub precious: bool,
}

/// What is to be restored, and how.
#[derive(Clone, Debug)]
pub(crate) struct RestoreRequest {
    /// Which command it is.
    pub kind: OperationKind,
    /// The run whose bookkeeping follows, where it does; else the run the event is about.
    pub run: Option<RunKey>,
    /// What is gone back to.
    pub target: Checkpoint,
    pub options: Options,
    /// How the run's bookkeeping follows.
    pub reposition: Option<Reposition>,
    /// Who starts it.
    pub initiator: Initiator,
    /// The operation that an undo takes back, or a redo does again. While HEAD is still where that left it, it may go back
    /// unasked.
    pub undoes: Option<UndoEntry>,
    /// Ignore rules that were put back, as the attempt had them: its checkpoints say nothing of what they hide.
    pub hidden_by: Option<Vec<u8>>,
}

/// A rollback or a restore, as reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "operation")]
pub(crate) struct OperationReport {
    /// `rollback`, `restore`, `accept` or `discard`.
    #[schemars(extend("enum" = ["rollback", "restore", "accept", "discard"]))]
    pub command: &'static str,
    /// What it had restored; `null` where that was not noted.
    pub checkpoint_id: Option<CheckpointId>,
}

impl RestoreRequest {
    /// A restore of a checkpoint for its run.
    pub(crate) fn new(kind: OperationKind, target: &Checkpoint, options: Options) -> Self {
        Self {
            kind,
            run: Some(target.run.clone()),
            target: target.clone(),
            options,
            reposition: None,
            initiator: Initiator::User,
            undoes: None,
            hidden_by: None,
        }
    }

    /// [`Self::new`] of a checkpoint that was noted by its id.
    pub(crate) fn noted(
        kind: OperationKind,
        state: &State,
        id: &CheckpointId,
        options: Options,
    ) -> Result<Self> {
        let target = state.checkpoint(id).ok_or_else(|| {
            let list = Hint::recover(["checkpoint", "list", "--all-runs"]);
            Error::new(
                ErrorKind::NoCheckpoint,
                format!("No checkpoint available: {id}"),
            )
            .hint(list)
        })?;
        Ok(Self::new(kind, target, options))
    }

    /// Whether the working memory stays, where it is not restored after an error either.
    pub(super) fn leaves_memory(&self, settings: &RollbackSettings) -> bool {
        self.initiator == Initiator::Policy && !settings.on_error
    }

    /// The command that does this, with these flags in the place of its own.
    pub(in crate::engine) fn command(&self, flags: &[&str]) -> Hint {
        let options = &self.options;
        let (scope, edits) = (options.scope, options.edits);
        let takes_back = matches!(self.kind, OperationKind::Undo | OperationKind::Redo);
        let is_rollback = self.kind == OperationKind::Rollback;
        // What it restores anyway.
        let is_asked = self.kind != OperationKind::Discard;
        let is_full = self.reposition.as_ref().is_some_and(|to| to.clear_failure);
        let mut words: Vec<String> = match self.kind {
            OperationKind::Rollback if is_full => vec!["rollback", "--full"],
            OperationKind::Rollback => vec!["rollback", "--to", self.target.id.as_str()],
            OperationKind::Restore => vec!["checkpoint", "restore", self.target.id.as_str()],
            other => vec![other.as_str()],
        }
        .into_iter()
        .map(str::to_owned)
        .collect();
        let mut add = |is_set: bool, flag: &str, value: &str| {
            let name = flag.trim_end_matches('=');
            if is_set && !flags.contains(&name) {
                words.push(format!("{flag}{value}"));
            }
        };
        let commits = options.commits;
        add(commits != Commits::Refuse, "--commits=", commits.into_str());
        add(edits == Edits::Keep, "--edits=", "keep");
        add(edits == Edits::Discard && is_asked, "--edits=", "discard");
        if !takes_back {
            let is_named = scope == Scope::State || scope == Scope::Files && is_rollback;
            add(is_named, "--scope=", scope.as_str());
            for glob in &options.paths {
                add(true, "--path=", glob);
            }
            let restores_index = options.restore_index && is_asked;
            add(restores_index, "--restore-index", "");
            add(options.nested, "--nested", "");
            add(options.here, "--here", "");
            add(options.precious, "--precious", "");
        }
        add(options.best_effort, BEST_EFFORT, "");
        // What is taken back is the work tree's last, whichever run that was.
        Hint::recover(words)
            .args(flags)
            .run(self.run.as_ref().filter(|_| !takes_back))
    }
}

/// What a restore did, or would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RestoreResult {
    /// Whether all of it was done.
    pub success: bool,
    /// The iteration after which the checkpoint was taken.
    pub restored_to_iteration: u32,
    /// The checkpoint.
    pub checkpoint_id: CheckpointId,
    /// How it is kept.
    pub storage_type: StorageType,
    /// What holds the state before; `None` in a plan and where nothing changed.
    pub safety_checkpoint_id: Option<CheckpointId>,
    /// Paths written.
    pub written: Vec<RepoPath>,
    /// Paths deleted.
    pub deleted: Vec<RepoPath>,
    /// Paths left as they are, and why.
    pub kept: Vec<PathReason>,
    /// Those of `written` and `deleted` that were edited since the run last wrote them; the safety checkpoint has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edited: Vec<PathReason>,
    /// Those of them that stay unlike the checkpoint, as they could not be replaced.
    #[serde(skip)]
    pub left: Vec<PathReason>,
    /// Ignored files put back from their copies.
    pub precious: Vec<RepoPath>,
    /// Ignored files and folders that were there and are gone: no checkpoint holds them. The reason is `copied` where
    /// `--precious` puts one back, else `no_copy`.
    pub missing: Vec<PathReason>,
    /// What becomes of nested repositories that are not as the checkpoint has them.
    pub nested: Vec<NestedOutcome>,
    /// What becomes of git's index.
    pub index: IndexOutcome,
    /// HEAD before and after.
    pub head: HeadMove,
    /// The commits that leave the branch by that, newest first; an undo brings them back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commits_left: Vec<ObjectId>,
    /// Whether what was written was read again and found to be the checkpoint's.
    pub verified: bool,
    /// Steps that it went back past while their effects outside the work tree stayed.
    pub crossed: Vec<CrossedStep>,
    /// Steps whose effects were taken back, in that order.
    pub compensated: Vec<Compensated>,
    /// The iterations that it goes back over: they are superseded, their history stays.
    pub superseded: Vec<u32>,
    /// What an undo took back, or a redo did again; `null` for a rollback or a restore itself.
    pub operation: Option<OperationReport>,
}

/// What becomes of a nested repository that is not as the checkpoint has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NestedOutcome {
    /// Its folder.
    #[serde(flatten)]
    pub path: RepoPath,
    /// What is done.
    pub action: NestedAction,
    /// Why, and what is not done.
    pub reason: Option<String>,
}

/// What is done about a nested repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum NestedAction {
    /// Its files are restored in it.
    Restored,
    /// Its folder was gone and belongs to its repository again, which was kept elsewhere.
    Relinked,
    /// Its files come back in a plain folder: the repository itself is gone.
    FilesRestored,
    /// Its folder is taken away again; the repository is kept elsewhere.
    Removed,
    /// It is left as it is.
    Kept,
}

/// What a restore does with git's index.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct IndexOutcome {
    /// How many paths get the checkpoint's entries.
    pub restored: usize,
    /// How many paths keep what was staged for them since the run last wrote the index.
    pub kept: usize,
}

/// A restore that was planned or done.
#[derive(Clone, Debug)]
pub(crate) struct Restore {
    /// Which command it was.
    pub kind: OperationKind,
    /// Whether anything changed (or would).
    pub changed: bool,
    /// What.
    pub result: RestoreResult,
    /// The run afterwards.
    pub run: Option<Run>,
}

impl Restore {
    /// The command that goes back to what was there before it, for a reader who knows the place: what was done in the work tree
    /// of a run that has one for itself is reached by the run's name.
    pub(crate) fn taken_back_by(&self, context: &Context) -> Hint {
        let run = self.run.as_ref();
        let own =
            run.filter(|run| run.spec.isolated.is_some() && run.worktree == context.worktree_id());
        Hint::recover([self.kind.taken_back_by()]).run(own.map(|run| &run.key))
    }
}

/// A step whose effect stays although a restore goes back to before it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct CrossedStep {
    /// The step.
    #[serde(flatten)]
    pub step: ToldStep,
    /// Why its effect stays.
    pub reason: String,
}

/// A step whose effect was taken back, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "compensated_step")]
pub(crate) struct Compensated {
    /// The step.
    #[serde(flatten)]
    pub step: ToldStep,
    /// What the command ended with that takes it back; `None` in a plan, and where it was not run.
    pub compensate_exit_code: Option<i32>,
    /// Whether it succeeded; `None` in a plan.
    pub succeeded: Option<bool>,
}
