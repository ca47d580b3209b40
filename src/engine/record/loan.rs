//! Which unreadable paths a capture may read all the same: those whose permissions an attempt took away.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git;
use crate::git::WorktreeLock;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::repo::Loan;
use crate::git::tree::TreeLookup;
use crate::model::path::{PathReason, RepoPath};
use crate::model::run::Run;
use crate::model::state::Named;

/// Lends rights to read what cannot be read any more: while an attempt is under way, what the last checkpoint of this work
/// tree holds, and what was not closed when the run began; after it, what that checkpoint already has without those rights. What a
/// person closed was in neither.
pub(super) fn lend(
    context: &Context,
    lock: &WorktreeLock,
    skipped: &[PathReason],
) -> Result<Option<Loan>> {
    let paths: Vec<RepoPath> = skipped
        .iter()
        .filter(|skipped| skipped.is_unreadable())
        .map(|skipped| skipped.path.clone())
        .collect();
    if paths.is_empty() || lock.is_rehearsal() {
        return Ok(None);
    }
    let (repo, state) = (context.repo()?, context.load()?.state);
    let worktree = context.worktree_id();
    let in_attempt = state.runs_of(&worktree).any(|run: &Run| run.live.is_some());
    let mut before = Vec::new();
    for layer in state
        .worktrees
        .get(&worktree)
        .map_or(&[][..], |worktree| &worktree.baseline)
    {
        if let Some(checkpoint) = state.checkpoint(&layer.checkpoint_id) {
            before.push(repo.load_checkpoint(&checkpoint.commit)?);
        }
    }
    let mut began = Vec::new();
    for run in state.runs_of(&worktree).filter(|run| run.live.is_some()) {
        if let Some(initial) = state.initial(&run.key).and_then(Named::kept) {
            began.push(repo.load_checkpoint(&initial.commit)?);
        }
    }
    let lookup = TreeLookup::stored(repo)?;
    let may = |path: &RepoPath, is_folder: bool| -> git::Result<bool> {
        for stored in &before {
            if mode_in(stored, &lookup, path, is_folder)?
                .is_some_and(|mode| in_attempt || mode & 0o400 == 0)
            {
                return Ok(true);
            }
        }
        let was_closed = |initial: &StoredCheckpoint| {
            let mut skipped = initial.manifest.skipped.iter();
            skipped.any(|skipped| path.starts_with(&skipped.path))
        };
        Ok(began.iter().any(|initial| !was_closed(initial)))
    };
    Ok(Loan::lend(repo, lock, &paths, &may)?)
}

/// The mode that a checkpoint has of a path; `None` where it does not hold it.
fn mode_in(
    stored: &StoredCheckpoint,
    lookup: &TreeLookup<'_>,
    path: &RepoPath,
    is_folder: bool,
) -> git::Result<Option<u32>> {
    if let Some(entry) = stored.view().entry(lookup, path)? {
        return Ok(Some(entry.mode));
    }
    if !is_folder || !stored.view().is_folder(lookup, path)? {
        return Ok(None);
    }
    let listed = stored
        .manifest
        .folder_modes
        .iter()
        .find(|listed| listed.path == *path);
    Ok(Some(
        listed.map_or(stored.manifest.modes.folder, |listed| listed.mode),
    ))
}
