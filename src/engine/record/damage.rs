//! Damage in an object database.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::{Error as GitError, Repo};
use crate::model::checkpoint::Checkpoint;
use crate::model::state::State;

/// Marks the object database as suspect: the next captures write again what is damaged and still in the work tree.
pub(in crate::engine) fn mark_suspect(repo: &Repo) {
    if let Err(error) = repo.mark_odb_suspect() {
        tracing::warn!(%error, "the next capture does not know of the damage");
    }
}

/// A checkpoint as it is stored; `None` where it is damaged.
pub(in crate::engine) fn load_undamaged(
    repo: &Repo,
    checkpoint: &Checkpoint,
) -> Result<Option<StoredCheckpoint>> {
    match repo.load_checkpoint(&checkpoint.commit) {
        Err(GitError::Corrupt { .. }) => Ok(None),
        loaded => Ok(Some(loaded?)),
    }
}

/// A checkpoint as it is stored, or where it is damaged the latest of its work tree before it that is not; `None` where
/// all are.
pub(in crate::engine) fn load_latest<'s>(
    context: &Context,
    state: &'s State,
    checkpoint: &'s Checkpoint,
) -> Result<Option<(&'s Checkpoint, StoredCheckpoint)>> {
    let repo = context.repo()?;
    let is_earlier = |one: &&Checkpoint| {
        one.seq < checkpoint.seq && one.worktree == checkpoint.worktree && !one.is_safety()
    };
    for one in
        std::iter::once(checkpoint).chain(state.checkpoints.values().rev().filter(is_earlier))
    {
        if let Some(stored) = load_undamaged(repo, one)? {
            return Ok(Some((one, stored)));
        }
        tracing::warn!(
            "checkpoint {} is damaged: edits are compared with an earlier one",
            one.id
        );
    }
    Ok(None)
}
