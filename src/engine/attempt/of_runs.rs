//! Whose work the files of a work tree are that no commit has: that of other runs which nobody has decided on, or a person's own.

use std::collections::BTreeSet;

use crate::engine::base::{Context, Result};
use crate::git::Repo;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::tree::TreeLookup;
use crate::model::checkpoint::trigger;
use crate::model::{Checkpoint, Named, PathReason, RepoPath, Run, RunStatus, State};

/// Whether work of a run may be in the work tree that a person has neither accepted nor closed.
fn is_undecided(run: &Run) -> bool {
    !matches!(run.status, RunStatus::Accepted | RunStatus::Closed)
        && run.iterations.count_attempts() > 0
}

/// Those of `paths` that other runs left as `initial` has them, which `run` began with; the latest of these runs first.
pub(in crate::engine) fn left_before<'s>(
    (context, state): (&Context, &'s State),
    run: &Run,
    initial: &StoredCheckpoint,
    paths: &BTreeSet<RepoPath>,
) -> Result<Vec<(&'s Run, BTreeSet<RepoPath>)>> {
    let (mut unknown, mut found) = (paths.clone(), Vec::new());
    let Some(first) = state.initial(&run.key).and_then(Named::kept) else {
        return Ok(found);
    };
    let others = state.runs_of(&run.worktree).rev();
    for other in others.filter(|other| other.key != run.key && is_undecided(other)) {
        let Some((began, latest)) = span(state, other).filter(|(_, latest)| latest.seq < first.seq)
        else {
            continue;
        };
        if unknown.is_empty() {
            break;
        }
        let repo = context.repo()?;
        let (began, latest) = (
            repo.load_checkpoint(&began.commit)?,
            repo.load_checkpoint(&latest.commit)?,
        );
        let made = &unknown & &unlike(repo, &began, &latest)?;
        let own = &made - &unlike(repo, &latest, initial)?;
        unknown = &unknown - &own;
        if !own.is_empty() {
            found.push((other, own));
        }
    }
    Ok(found)
}

/// Those of `paths` that are in the work tree as a run left them after `good`, the last good checkpoint of `run`: a later run, or an
/// iteration of this one that was given up. The reason is the run's id.
pub(in crate::engine) fn left_since(
    (context, state): (&Context, &State),
    (run, good): (&Run, &Checkpoint),
    paths: &BTreeSet<RepoPath>,
) -> Result<Vec<PathReason>> {
    let (mut unknown, mut found) = (paths.clone(), Vec::new());
    for other in state.runs_of(&run.worktree).rev() {
        let is_own = other.key == run.key;
        let Some((began, latest)) = span(state, other).filter(|(_, latest)| latest.seq > good.seq)
        else {
            continue;
        };
        if unknown.is_empty() || !(is_own || is_undecided(other)) {
            continue;
        }
        let repo = context.repo()?;
        let began = repo.load_checkpoint(if is_own { &good.commit } else { &began.commit })?;
        let latest = repo.load_checkpoint(&latest.commit)?;
        let made = &unknown & &unlike(repo, &began, &latest)?;
        let own = &made - &repo.unlike_on_disk(&latest, &made)?;
        unknown = &unknown - &own;
        let id = other.key.run_id.as_str();
        found.extend(own.into_iter().map(|path| PathReason::new(path, id)));
    }
    Ok(found)
}

/// The run to accept first of those that [`left_before`] found: the oldest whose work a person can accept, or what that built
/// upon.
pub(in crate::engine) fn first_to_accept<'s>(
    (context, state): (&Context, &'s State),
    of_runs: &[(&'s Run, BTreeSet<RepoPath>)],
) -> Result<Option<&'s Run>> {
    let repo = context.repo()?;
    let mut found = oldest_to_accept(state, of_runs);
    while let Some((run, began, good)) = found {
        let initial = repo.load_checkpoint(&began.commit)?;
        let work = unlike(repo, &initial, &repo.load_checkpoint(&good.commit)?)?;
        let below = left_before((context, state), run, &initial, &work)?;
        found = oldest_to_accept(state, &below);
        if found.is_none() {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// With its first checkpoint and its last good one.
fn oldest_to_accept<'s>(
    state: &'s State,
    of_runs: &[(&'s Run, BTreeSet<RepoPath>)],
) -> Option<(&'s Run, &'s Checkpoint, &'s Checkpoint)> {
    of_runs.iter().rev().find_map(|(run, _)| {
        let (began, good) = (span(state, run)?.0, state.last_good(&run.key)?);
        (good.id != began.id && good.tree != began.tree).then_some((*run, began, good))
    })
}

/// The checkpoint that a run began with, and that of what it left.
fn span<'s>(state: &'s State, run: &Run) -> Option<(&'s Checkpoint, &'s Checkpoint)> {
    let began = state.initial(&run.key).and_then(Named::kept)?;
    Some((began, latest_left(state, run)?))
}

/// The checkpoint of what the last attempt of a run left, else its latest one: what is captured after that, by `accept` too, may be
/// a person's work.
pub(super) fn latest_left<'s>(state: &'s State, run: &Run) -> Option<&'s Checkpoint> {
    let is_end =
        |one: &&Checkpoint| [trigger::ATTEMPT, trigger::CRASH].contains(&one.trigger.as_str());
    let left = state.standing(&run.key).rfind(is_end);
    left.or_else(|| state.latest(&run.key))
}

/// The paths that differ between two checkpoints.
fn unlike(
    repo: &Repo,
    one: &StoredCheckpoint,
    other: &StoredCheckpoint,
) -> Result<BTreeSet<RepoPath>> {
    let (one, other) = TreeLookup::stored(repo)?.diff(one.view(), other.view())?;
    Ok(one.unlike(&other).map(|(path, ..)| path.clone()).collect())
}
