//! Which files of a run are not its work: they are older than it, or a rollback of an attempt could not remove them.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git::checkpoint::{StoredCheckpoint, load_checkpoint};
use crate::git::tree::TreeLookup;
use crate::model::id::CheckpointId;
use crate::model::path::RepoPath;
use crate::model::run::{LeftBehind, Run};
use crate::model::snapshot::Entry;
use crate::model::state::State;
use crate::model::time::Timestamp;

/// What rollbacks left behind.
pub(super) struct Leftovers<'r> {
    all: &'r [LeftBehind],
    /// What was there before them, without checkpoints that were removed.
    before: BTreeMap<&'r CheckpointId, StoredCheckpoint>,
}

impl<'r> Leftovers<'r> {
    pub(super) fn of(context: &Context, state: &State, run: &'r Run) -> Result<Self> {
        let repo = context.repo()?;
        let ids: BTreeSet<_> = run.left_behind.iter().map(|left| &left.before).collect();
        let stored = ids
            .into_iter()
            .filter_map(|id| Some((id, state.checkpoint(id)?)))
            .map(|(id, before)| Ok((id, load_checkpoint(repo, &before.commit)?)));
        Ok(Self {
            all: &run.left_behind,
            before: stored.collect::<Result<_>>()?,
        })
    }

    /// The path that was left, where a file, which the run ends with as `entry`, is at or below it and still as it was then.
    pub(super) fn of_file(
        &self,
        context: &Context,
        lookup: &TreeLookup<'_>,
        path: &RepoPath,
        entry: Option<&Entry>,
    ) -> Result<Option<&'r RepoPath>> {
        // What is left in a folder is why the folder is left.
        let nearest = self
            .all
            .iter()
            .filter(|left| path.starts_with(&left.path))
            .max_by_key(|left| &left.path);
        let Some(left) = nearest else {
            return Ok(None);
        };
        let then = match self.before.get(&left.before) {
            Some(before) => before.view().entry(lookup, path)?,
            None => None,
        };
        let is_same = entry.is_some() && then.as_ref() == entry;
        Ok((is_same || is_older(context, path, left.at)).then_some(&left.path))
    }
}

/// Whether a file was not changed since a time, by its inode's, which nobody sets back. Where the run's first checkpoint
/// does not have one that is older than it, git ignored it then.
pub(super) fn is_older(context: &Context, path: &RepoPath, time: Timestamp) -> bool {
    let found = std::fs::symlink_metadata(path.below(context.worktree()));
    found.is_ok_and(|found| found.ctime() * 1000 + found.ctime_nsec() / 1_000_000 < time.millis())
}
