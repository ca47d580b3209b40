//! What a restore does to HEAD (`snapshot.md`, HEAD): only the run's own commits are ever taken off a branch unasked.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::own_commits::OwnCommits;
use crate::git::Repo;
use crate::model::checkpoint::Checkpoint;
use crate::model::hint::Hint;
use crate::model::lane::BEFORE_START;
use crate::model::manifest::ObjectId;
use crate::model::manifest::{Head, Manifest};
use crate::model::operation::OperationKind;
use crate::model::run::Run;
use crate::model::state::State;
use crate::policy::text::count;

use super::request::{Commits, RestoreRequest};

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

/// Refuses while a merge, rebase or the like is in progress that the checkpoint did not have.
pub(super) fn refuse_operation(now: &Manifest, target: &Manifest) -> Result<()> {
    match &now.operation {
        Some(operation) if target.operation.as_ref() != Some(operation) => {
            let message = format!(
                "a {operation} is in progress that the checkpoint did not have; finish it, or give it up with \
                 git {operation} --abort"
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
    let here = context.worktree_id();
    let owner = match request.kind {
        OperationKind::Rollback if request.reposition.is_some() => run.map(|run| &run.worktree),
        // A run that works here began with what another work tree held, if it has one from there.
        OperationKind::Restore if !request.here && run.is_none_or(|run| run.worktree != here) => {
            Some(&request.target.worktree)
        }
        _ => None,
    };
    // A project that was copied has runs that name the work tree it was copied from: that one is of no use here.
    let Some(place) = owner.filter(|place| **place != here && context.has_git()) else {
        return Ok(());
    };
    if request.kind == OperationKind::Restore && is_gone(context, &request.target) {
        let message = format!(
            "checkpoint {} was taken in {place}, which is gone; --here restores its files in this work tree",
            request.target.id
        );
        let here = request.command(&["--here"]);
        return Err(Error::new(ErrorKind::HeadMoved, message).hint(here));
    }
    if !context.is_worktree_of_repo(place) {
        return Ok(());
    }
    let message = match run.filter(|_| request.kind == OperationKind::Rollback) {
        Some(run) => format!("run {} works in {place}, not in {here}", run.key),
        None => format!(
            "checkpoint {} was taken in {place}, not in {here}; --here restores its files in this work tree",
            request.target.id
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
/// that had commits of its own then is somebody else's.
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
    let asked =
        request.kind == OperationKind::Rollback && context.has_git() && is_run_here(context, run);
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

/// Decides what happens to HEAD.
///
/// A checkpoint of before a lane had its own branch (`before_lane`) names the one that the project was on. Where the lane's
/// branch began at its commit, it is the lane's branch that goes back to it.
pub(super) fn plan(
    repo: &Repo,
    whose: &OwnCommits<'_>,
    now: &Head,
    target: &Head,
    request: &RestoreRequest,
    before_lane: bool,
) -> Result<HeadPlan> {
    let commits = request.commits;
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
    // `accept --branch` began a branch and left another one.
    let switched = request
        .undoes
        .as_ref()
        .filter(|undone| undone.operation.command == OperationKind::Accept.as_str());
    if now.branch != target.branch
        && target.branch.is_some()
        && switched.is_some_and(|undone| undone.head.after == now.commit)
    {
        return Ok(HeadPlan::Switch(target.clone()));
    }
    if now.branch != target.branch {
        let name = |head: &Head| {
            head.branch
                .clone()
                .unwrap_or_else(|| "a detached HEAD".to_owned())
        };
        let message = format!(
            "the checkpoint was taken on {}, now it is {}; --commits keep restores only the files",
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
        if repo.on_remote_tracking(&since)? {
            let message = "commits since the checkpoint are on a remote-tracking branch; --commits revert adds one commit \
                           on top, keep restores only the files";
            let again = request.command(&["--commits", "keep"]);
            return Err(Error::new(ErrorKind::HeadMoved, message).hint(again));
        }
    }
    Ok(HeadPlan::Move(target.commit.clone()))
}
