//! What a restore does to HEAD (`snapshot.md`, HEAD): only the run's own commits are ever taken off a branch unasked.
//!
//! What a restore does to git's index: what the run staged goes back, what a person staged since stays.
//!
//! What the journal of a restore holds beside the file plan.
//!
//! Reverting what a restore did before it failed, and the errors where that fails too.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::request::{Commits, RestoreRequest};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::git_state::abort_of;
use crate::engine::record::lane::OwnCommits;
use crate::engine::record::memory;
use crate::engine::record::storage::Prepared;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::restore::{Expect, IndexPlan, IndexSides, RestoreJournal};
use crate::git::tree::TreeLookup;
use crate::git::{Repo, WorktreeLock};
use crate::model::checkpoint::trigger;
use crate::model::lane::BEFORE_START;
use crate::model::operation::{GitFile, UndoEntry};
use crate::model::{
    Checkpoint, Head, Hint, Manifest, ObjectId, Operation, OperationKind, PathReason, RepoPath,
    Run, RunKey, State,
};
use crate::policy::restore::{Edits, RestorePlan};
use crate::policy::text::count;

/// What happens to HEAD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HeadPlan {
    /// Nothing.
    Stay,
    /// It goes to this commit (`None`: the branch has none again).
    Move(Option<ObjectId>),
    /// It names another branch, which is at its commit or is begun there.
    Switch(Head),
    /// A new commit with the checkpoint's tree comes on top.
    Revert,
}

/// Refuses while a merge, rebase or the like is in progress that the checkpoint did not have. That one which it had is over
/// is said: git's record of it is gone, so that what is committed next has one parent.
pub(super) fn refuse_operation(context: &Context, now: &Manifest, target: &Manifest) -> Result<()> {
    match (&now.operation, &target.operation) {
        (None, Some(over)) => {
            context.note(format!(
                "a {over} was in progress at the checkpoint and is over: files and index come back, git's record of it does \
                 not; begin it again before you commit"
            ));
            Ok(())
        }
        (Some(operation), had) if had.as_ref() != Some(operation) => {
            let abort = abort_of(operation);
            let message = format!(
                "a {operation} is in progress that the checkpoint did not have; finish it, or give it up with {abort}"
            );
            Err(Error::new(ErrorKind::OperationInProgress, message).hint(Hint::git(["status"])))
        }
        _ => Ok(()),
    }
}

/// Refuses to roll a run back, or to restore a checkpoint, in another work tree than its own: the files and the branch here
/// are not the run's. `checkpoint restore --here` takes the files all the same.
pub(super) fn refuse_elsewhere(
    context: &Context,
    request: &RestoreRequest,
    run: Option<&Run>,
) -> Result<()> {
    let (here, target) = (context.worktree_id(), &request.target);
    // The working memory is the project's.
    let rolls_back = request.kind.is_rollback() && request.options.scope.covers_files();
    let goes_back = run.filter(|run| {
        let is_its_own =
            run.key == target.run || run.initial_checkpoint.as_ref() == Some(&target.id);
        rolls_back && is_its_own
    });
    let owner = match (goes_back, request.kind) {
        (Some(run), _) => Some(&run.worktree),
        (None, OperationKind::Rollback) if rolls_back => Some(&target.worktree),
        // A run that works here began with what another work tree held, if it has one from there.
        (None, OperationKind::Restore)
            if !request.options.here && run.is_none_or(|run| run.worktree != here) =>
        {
            Some(&target.worktree)
        }
        _ => None,
    };
    // A project that was copied has runs that name the work tree it was copied from: that one is of no use here.
    let Some(place) = owner.filter(|place| **place != here && context.has_git()) else {
        return Ok(());
    };
    if goes_back.is_none() && is_gone(context, target) {
        let message = format!(
            "checkpoint {} was taken in {place}, which is gone; checkpoint restore --here restores its files in this work tree",
            target.id
        );
        let mut restore = request.clone();
        restore.kind = OperationKind::Restore;
        return Err(Error::new(ErrorKind::HeadMoved, message).hint(restore.command(&["--here"])));
    }
    if !context.is_worktree_of_repo(place) {
        return Ok(());
    }
    let message = match goes_back {
        Some(run) => format!("run {} works in {place}, not in {here}", run.key),
        None => format!(
            "checkpoint {} was taken in {place}, not in {here}; checkpoint restore --here restores its files in this \
             work tree",
            target.id
        ),
    };
    let again = request.command(&[]).at(context.place_of(place.path()));
    Err(Error::new(ErrorKind::HeadMoved, message).hint(again))
}

/// Whether the work tree that a checkpoint was taken in is gone. Where the project was moved, or came from elsewhere, its
/// checkpoints name another state directory: this one may be that work tree.
fn is_gone(context: &Context, target: &Checkpoint) -> bool {
    let (place, state_dir) = (target.worktree.path(), context.store().dir());
    !place.exists() && target.state_dir.path() == state_dir && !state_dir.starts_with(&place)
}

/// Whether a checkpoint is one that the run's lane began with while it had neither its own work tree nor its own branch.
pub(super) fn is_before_lane(
    context: &Context,
    state: &State,
    run: Option<&Run>,
    target: &Checkpoint,
    now: &Head,
) -> Result<bool> {
    Ok(is_run_here(context, run)
        && (is_before_branch(state, target, now) || was_in_project(context, target)?))
}

/// Whether the branch that is checked out is one that the lane made at the checkpoint's commit, on the way to its next stage: one
/// that had commits of its own then is foreign.
fn is_before_branch(state: &State, target: &Checkpoint, now: &Head) -> bool {
    let mut later = state
        .checkpoints_of(&target.run)
        .filter(|one| one.seq > target.seq && one.head_ref == now.branch);
    let first_stage = later.find(|one| one.lane_fields.stage.is_some());
    target.lane_fields.stage.as_deref() == Some(BEFORE_START)
        && now.branch.is_some()
        && target.head_ref != now.branch
        && first_stage.map_or(&now.commit, |stage| &stage.base_commit) == &target.base_commit
}

/// Whether a rollback takes the run, which works here, back to what it began with while that was captured in another work
/// tree: then it is the base commit that is meant. What else lay there was neither this work tree's nor the run's.
///
/// `checkpoint restore` restores what was captured, wherever that was.
pub(super) fn means_base(
    context: &Context,
    request: &RestoreRequest,
    run: Option<&Run>,
) -> Result<bool> {
    let asked = request.kind.is_rollback() && context.has_git() && is_run_here(context, run);
    Ok(asked && is_beginning_elsewhere(context, &request.target)?)
}

/// Whether a checkpoint is of another work tree of this repository and of before the run did anything.
pub(super) fn is_beginning_elsewhere(context: &Context, target: &Checkpoint) -> Result<bool> {
    let begins =
        target.after_iteration == 0 || target.lane_fields.stage.as_deref() == Some(BEFORE_START);
    if !begins || !context.has_git() || target.worktree == context.worktree_id() {
        return Ok(false);
    }
    Ok(was_in_project(context, target)? || context.is_worktree_of_repo(&target.worktree))
}

fn is_run_here(context: &Context, run: Option<&Run>) -> bool {
    run.is_some_and(|run| run.worktree == context.worktree_id())
}

/// Whether a checkpoint was taken in the project's work tree, while this is a linked one.
fn was_in_project(context: &Context, target: &Checkpoint) -> Result<bool> {
    let (main, here) = (context.repo()?.main_worktree(), context.worktree());
    let worktree = target.worktree.path();
    let in_project = target.state_dir.path().starts_with(&worktree) || worktree == main;
    Ok(in_project && worktree != here && here != main)
}

/// What HEAD goes back to where an operation that is taken back, or the run that is discarded, made it name another branch or
/// none. A branch that has moved since is nobody's to put back, and only a person commits on top of what is left.
pub(super) fn switch_back(
    repo: &Repo,
    (state, run): (&State, Option<&Run>),
    (now, target): (&Head, &Head),
    request: &RestoreRequest,
) -> Option<HeadPlan> {
    let commits = request.options.commits;
    if now.branch == target.branch || matches!(commits, Commits::Keep | Commits::Revert) {
        return None;
    }
    let is_left = if let Some(undone) = &request.undoes {
        matches!(undone.kind, OperationKind::Accept | OperationKind::Discard)
            && undone.head.after == now.commit
    } else {
        let run = run.filter(|_| request.kind == OperationKind::Discard);
        let taken = run.map(|run| state.checkpoints_of(&run.key));
        let last = taken.and_then(|mut all| all.rfind(|one| one.trigger == trigger::ATTEMPT));
        last.is_some_and(|last| last.head_ref == now.branch && last.base_commit == now.commit)
    };
    let there = target
        .branch
        .as_ref()
        .and_then(|branch| repo.resolve_ref(branch));
    let is_there = there.is_none() || there == target.commit;
    let is_known = *target != Head::default();
    (is_left && is_there && is_known).then(|| HeadPlan::Switch(target.clone()))
}

/// Decides what happens to HEAD. `restored` is what the operation had restored that is taken back.
///
/// A checkpoint of before a lane had its own branch (`before_lane`) names the one that the project was on. Where the lane's
/// branch began at its commit, it is the lane's branch that goes back to it.
pub(super) fn plan_head(
    repo: &Repo,
    whose: &OwnCommits<'_>,
    now: &Head,
    target: &Head,
    (request, restored): (&RestoreRequest, Option<&Checkpoint>),
    before_lane: bool,
) -> Result<HeadPlan> {
    let commits = request.options.commits;
    let begun_there = match (&target.commit, &now.commit) {
        (Some(base), Some(current)) if before_lane && now.branch.is_some() => {
            repo.is_ancestor(base, current)?
        }
        _ => false,
    };
    let own;
    let target = if begun_there {
        own = Head {
            branch: now.branch.clone(),
            ..target.clone()
        };
        &own
    } else {
        target
    };
    if commits == Commits::Revert {
        return Ok(HeadPlan::Revert);
    }
    // One from before there was a git repository has no HEAD.
    if commits == Commits::Keep || now == target || *target == Head::default() {
        return Ok(HeadPlan::Stay);
    }
    if now.branch != target.branch {
        let name = |head: &Head| {
            let branch = head.branch.as_deref();
            let branch = branch.map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch));
            branch.map_or("a detached HEAD".to_owned(), |branch| {
                format!("branch {branch}")
            })
        };
        let message = format!(
            "the checkpoint was taken on {}, and {} is checked out: switch back first, or take the files alone here with \
             --commits keep",
            name(target),
            name(now)
        );
        let is_there = |branch: &&str| repo.resolve_ref(&format!("refs/heads/{branch}")).is_some();
        let branch = target
            .branch
            .as_deref()
            .and_then(|branch| branch.strip_prefix("refs/heads/"))
            .filter(is_there);
        let back = match (branch, &target.branch, &target.commit) {
            (Some(branch), ..) => Some(Hint::git(["switch", branch])),
            (None, None, Some(commit)) => Some(Hint::git(["switch", "--detach", &commit.0])),
            _ => None,
        };
        let keep = || request.command(&["--commits", "keep"]);
        return Err(Error::new(ErrorKind::HeadMoved, message).hint(back.unwrap_or_else(keep)));
    }
    if commits == Commits::Refuse
        && let Some(current) = &now.commit
    {
        let since = repo.commits_between(target.commit.as_ref(), current)?;
        let left_there = request.undoes.as_ref().is_some_and(|undone| {
            undone.head.after.as_ref() == Some(current) && undone.head.before == target.commit
        });
        let own = |commit: &&ObjectId| left_there || whose.has(commit);
        let foreign: Vec<_> = since.iter().filter(|commit| !own(commit)).collect();
        if !foreign.is_empty() {
            let message = format!(
                "{} since the checkpoint {} not made by the run ({}…); --commits keep leaves them and restores \
                 only the files, revert adds one commit on top, drop takes them off the branch",
                count(foreign.len(), "commit"),
                if foreign.len() == 1 { "was" } else { "were" },
                foreign[0].short()
            );
            let again = request.command(&["--commits", "keep"]);
            return Err(Error::new(ErrorKind::HeadMoved, message).hint(again));
        }
        // Others may have what the operation itself committed, which is examined before for an accept; any other commit HEAD was
        // taken off or brought back to.
        let of_accept = |undone: &UndoEntry| undone.kind == OperationKind::Accept;
        let made_none = request.kind == OperationKind::Redo
            || request.undoes.as_ref().is_some_and(of_accept)
            || restored.is_some_and(|restored| restored.base_commit.as_ref() == Some(current));
        if !(left_there && made_none) && repo.on_remote_tracking(&since)? {
            let message = "commits since the checkpoint are on a remote-tracking branch; --commits revert adds one commit \
                           on top, keep restores only the files";
            let again = request.command(&["--commits", "keep"]);
            return Err(Error::new(ErrorKind::HeadMoved, message).hint(again));
        }
    }
    Ok(HeadPlan::Move(target.commit.clone()))
}

/// How the run left the index.
#[derive(Default)]
pub(super) struct Left {
    /// The checkpoint that has it; `None` where that is not known.
    pub index: Option<StoredCheckpoint>,
    /// Paths that another run changed since the target.
    pub others: BTreeSet<RepoPath>,
}

/// What becomes of the index. Where HEAD will not be the checkpoint's, or the checkpoint is another work tree's, only
/// `--restore-index` changes it.
pub(super) fn plan_for_index(
    context: &Context,
    request: &RestoreRequest,
    prepared: &Prepared,
    target: &StoredCheckpoint,
    (head, left): (&HeadPlan, &Left),
) -> Result<IndexPlan> {
    let repo = context.repo()?;
    let now = &prepared.capture;
    let follows = *head != HeadPlan::Stay || now.head.commit == target.manifest.head.commit;
    if !request.options.restore_index
        && (!follows || !request.options.scope.covers_files() || request.options.here)
    {
        return Ok(IndexPlan::default());
    }
    let before = now.head.commit.as_ref().filter(|_| *head != HeadPlan::Stay);
    let before = before.map(|commit| repo.tree_of(commit)).transpose()?;
    let on_top;
    let target = if is_on_top(head, request) {
        on_top = target.committed();
        &on_top
    } else {
        target
    };
    let objects = now.objects();
    let sides = IndexSides {
        now: now.view(),
        target: target.view(),
        baseline: left.index.as_ref().map(StoredCheckpoint::view),
        others: &left.others,
        head: before.as_ref(),
        discard: request.options.restore_index || request.options.edits == Edits::Discard,
    };
    Ok(sides.plan(&TreeLookup::new(&objects)?)?)
}

/// Whether the index follows the commit that comes on top, and not what was captured of it.
pub(super) fn is_on_top(head: &HeadPlan, request: &RestoreRequest) -> bool {
    *head == HeadPlan::Revert && !request.options.restore_index
}

/// A restore with its journal, under the work tree's lock: to be applied, recorded, or reverted.
pub(super) struct Journaled<'a> {
    pub context: &'a Context,
    pub repo: &'a Repo,
    pub lock: &'a WorktreeLock,
    pub journal: &'a RestoreJournal,
    /// What the journal holds beside the file plan.
    pub engine: JournalContext,
}

impl<'a> Journaled<'a> {
    pub(super) fn new(
        context: &'a Context,
        lock: &'a WorktreeLock,
        journal: &'a RestoreJournal,
    ) -> Result<Self> {
        let engine = JournalContext::deserialize(&journal.context).map_err(|error| {
            let message = format!("the restore's journal is damaged: {error}");
            Error::new(ErrorKind::Corrupt, message)
        })?;
        Ok(Self {
            context,
            repo: context.repo()?,
            lock,
            journal,
            engine,
        })
    }

    /// The checkpoint that holds what there was.
    pub(super) fn safety(&self) -> Result<StoredCheckpoint> {
        Ok(self.repo.load_checkpoint(&self.journal.safety_commit)?)
    }

    /// The one that is restored.
    pub(super) fn target(&self) -> Result<StoredCheckpoint> {
        Ok(self.repo.load_checkpoint(&self.journal.target_commit)?)
    }

    /// Whether the working memory is part of it.
    pub(super) fn covers_memory(&self) -> bool {
        self.engine.operation.scope.covers_state() && self.journal.selection.is_empty()
    }

    /// Gives the index the target's entries of the planned paths.
    pub(super) fn apply_index(&self) -> Result<()> {
        if self.journal.restore_index || !self.journal.index_paths.is_empty() {
            self.set_index(&self.safety()?, &self.index_target()?)?;
        }
        Ok(())
    }

    /// Takes back what became of the index. It is left alone where it is as before: another process may hold its lock, which
    /// may be why it was not restored.
    fn revert_index(&self) -> Result<()> {
        if !self.journal.restore_index && self.journal.index_paths.is_empty() {
            return Ok(());
        }
        let safety = self.safety()?;
        if self.repo.index_is(&safety)? {
            return Ok(());
        }
        self.set_index(&self.index_target()?, &safety)
    }

    /// Makes the index, or its planned paths, as `to` has them and not as `from`.
    fn set_index(&self, from: &StoredCheckpoint, to: &StoredCheckpoint) -> Result<()> {
        let (lock, timeout) = (self.lock, self.context.lock_timeout());
        if self.journal.restore_index {
            return Ok(self.repo.restore_index(lock, to, timeout)?);
        }
        let (paths, sides) = (&self.journal.index_paths, (from.view(), to.view()));
        Ok(self.repo.restore_index_paths(lock, paths, sides, timeout)?)
    }

    /// The checkpoint whose index is restored.
    fn index_target(&self) -> Result<StoredCheckpoint> {
        let mut stored = self.target()?;
        if self.engine.of_base {
            let here = self.safety()?.manifest;
            stored = stored.base(self.repo, &here)?.unwrap_or(stored);
        }
        Ok(if self.engine.on_top {
            stored.committed()
        } else {
            stored
        })
    }
}

/// What the engine needs beside the file plan to finish a restore that was cut off.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a question of its own"
)]
pub(super) struct JournalContext {
    /// The run that the event is about.
    pub run: Option<RunKey>,
    /// The operation as the ledger will record it.
    pub operation: Operation,
    /// Whether the loop's own state files are cleared (L3).
    pub clear_loop_state: bool,
    /// Whether the working memory stays as it is.
    #[serde(default)]
    pub leave_memory: bool,
    /// Whether the branch that HEAD leaves was begun by what is taken back, and goes with it.
    #[serde(default)]
    pub leave_branch: bool,
    /// Whether a commit with the checkpoint's tree came on top, which the index then follows.
    #[serde(default)]
    pub on_top: bool,
    /// Whether the checkpoint's base commit is meant and not what was captured.
    #[serde(default)]
    pub of_base: bool,
    /// `.git` files that are taken away before the files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlink: Vec<GitFile>,
}

impl JournalContext {
    pub(super) fn new(run: &RunKey, operation: Operation) -> Self {
        Self {
            run: Some(run.clone()),
            operation,
            clear_loop_state: false,
            leave_memory: false,
            leave_branch: false,
            on_top: false,
            of_base: false,
            unlink: Vec::new(),
        }
    }

    /// The journal with this, between the safety checkpoint's commit and the target's; it touches nothing yet.
    pub(super) fn journal(
        &self,
        (safety, target): (&ObjectId, &ObjectId),
    ) -> Result<RestoreJournal> {
        Ok(RestoreJournal {
            version: RestoreJournal::VERSION,
            operation_id: self.operation.id.clone(),
            kind: self.operation.kind.as_str().to_owned(),
            safety_commit: safety.clone(),
            target_commit: target.clone(),
            selection: Vec::new(),
            plan: RestorePlan::default(),
            kept: Vec::new(),
            head_before: Head::default(),
            head_after: None,
            restore_index: false,
            index_paths: Vec::new(),
            context: serde_json::to_value(self).context("cannot encode the restore's journal")?,
        })
    }
}

/// How the message of an error ends after which everything is as it was.
const REVERTED: &str = "what was written was reverted";

/// A temporary file that cannot be removed would be captured: the journal waits until it can be.
pub(super) fn temp_file_left(error: &Error) -> Error {
    journal_pending(format!(
        "a temporary file of a restore that was interrupted cannot be removed: {}",
        error.explained()
    ))
}

/// Neither done nor taken back: the journal waits until the reason is gone.
pub(super) fn not_reverted(error: &Error, second: &Error) -> Error {
    journal_pending(format!(
        "{}; reverting it failed: {}",
        error.explained(),
        second.explained()
    ))
}

fn journal_pending(message: String) -> Error {
    Error::new(ErrorKind::CutOff, message).hint(Hint::recover(["doctor", "--repair"]))
}

impl Journaled<'_> {
    /// Whether the restore's event is in the ledger.
    pub(super) fn is_recorded(&self, state: &State) -> bool {
        let mut worktrees = state.worktrees.values();
        let id = Some(&self.journal.operation_id);
        worktrees.any(|worktree| worktree.last_operation.as_ref() == id)
    }

    /// Takes back what a failed restore has done so far. The journal stays only where that fails too.
    pub(super) fn revert_after(&self, mut error: Error) -> Error {
        match self.revert() {
            Ok(left) if left.is_empty() => {
                if !error.message.ends_with(REVERTED) {
                    error.message += &format!("; {REVERTED}");
                }
                error
            }
            Ok(left) => {
                let message = format!(
                    "{error}; not everything could be reverted: undo does it, once what is in the way is gone"
                );
                let partial = Error::new(ErrorKind::Partial, message).paths(left);
                partial.hint(Hint::recover(["undo"]))
            }
            // The journal goes last: all the rest was taken back.
            Err(_) if !self.repo.has_restore_journal() => error,
            Err(second) => not_reverted(&error, &second),
        }
    }

    /// Everything is as it should be, but the event, the views or the journal's removal failed.
    pub(super) fn unrecorded(&self, error: Error) -> Error {
        if !self.repo.has_restore_journal() {
            // It goes last.
            return error;
        }
        match self.context.load() {
            Ok(loaded) if self.is_recorded(&loaded.state) => journal_pending(error.explained()),
            // Without its event the restore has not happened: nothing could take it back.
            Ok(_) => self.revert_after(error),
            // Which of the two it is only the repair can find out.
            Err(second) => not_reverted(&error, &second),
        }
    }

    /// Files, working memory, HEAD and index, each by itself: what cannot be taken back keeps no other part from it. The
    /// first error is returned, and the journal stays then.
    pub(super) fn revert(&self) -> Result<Vec<PathReason>> {
        let (repo, lock, plan) = (self.repo, self.lock, &self.journal.plan);
        let placed = &self.engine.operation.nested.placed;
        let placed = placed
            .iter()
            .try_for_each(|file| repo.remove_git_file(file));
        let files = repo.execute_restore(lock, &plan.invert(), Expect::CutOff, &|| false);
        let files = files.map_err(Error::from).and_then(|files| {
            repo.set_last_modes(lock, &files)?;
            Ok(files)
        });
        let unlink = &self.engine.unlink;
        let unlinked = unlink.iter().try_for_each(|file| repo.write_git_file(file));
        let memory = self.revert_memory();
        let head = self.revert_head();
        let index = self.revert_index();
        let mut left = files?.kept;
        placed?;
        unlinked?;
        left.extend(memory?);
        head?;
        index?;
        repo.reap_temp_files(lock, plan)?;
        repo.remove_restore_journal(lock)?;
        Ok(left)
    }

    fn revert_memory(&self) -> Result<Vec<PathReason>> {
        if !self.covers_memory() {
            return Ok(Vec::new());
        }
        let now = memory::read(self.context)?;
        let before = self.safety()?.memory(self.repo)?;
        let then = self.target()?.memory(self.repo)?;
        let mut plan = memory::plan(&now, &before, &self.context.settings().memory)?;
        let left = plan.leave_changed(&now, &[&before, &then]);
        memory::apply(self.context.store(), &plan)?;
        Ok(left)
    }

    fn revert_head(&self) -> Result<()> {
        let (repo, lock, before) = (self.repo, self.lock, &self.journal.head_before);
        if let Some(after) = &self.journal.head_after
            && repo.head()? == *after
        {
            let message = format!("recover: {} reverted", self.journal.kind);
            if before.branch == after.branch {
                repo.move_branch(lock, after, before.commit.as_ref(), &message)?;
            } else {
                repo.switch(lock, after, before, &message)?;
            }
        }
        Ok(())
    }
}
