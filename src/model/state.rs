//! The state: what all events of the ledger add up to.

mod apply;
mod selection;

use crate::model::path::FolderId;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::agent_record::Usage;
use super::checkpoint::{Checkpoint, Checkpoints};
use super::id::CheckpointId;
use super::operation::WorktreeState;
use super::run::{Run, RunKey};

pub(crate) use selection::{Named, SelectionError};

/// Everything known, as of the last event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Sequence of the last event.
    pub last_seq: u64,
    /// Runs in the order of their creation.
    pub runs: Vec<Run>,
    /// All checkpoints.
    pub checkpoints: Checkpoints,
    /// Ids of checkpoints that were removed on purpose: a leftover reference of one is never imported again.
    pub pruned: BTreeSet<CheckpointId>,
    /// Runs that were removed on purpose: what is left of their files goes, too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub forgotten: BTreeSet<RunKey>,
    /// Highest checkpoint sequence ever used.
    pub last_checkpoint_seq: u64,
    /// Where the state directory was when checkpoints were recorded in it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub places: BTreeSet<FolderId>,
    /// What is kept of each work tree, by its absolute path.
    pub worktrees: BTreeMap<FolderId, WorktreeState>,
}

impl State {
    /// Compresses what few commands read: the details of runs that have ended, and older checkpoints.
    pub fn pack(&mut self) {
        self.checkpoints.pack();
        let ended = self.runs.iter_mut().filter(|run| run.status.has_ended());
        ended.for_each(|run| run.details.pack());
    }

    /// The run with this key.
    pub fn run(&self, key: &RunKey) -> Option<&Run> {
        // Most of what is asked is about one of the latest.
        self.runs.iter().rfind(|run| run.key == *key)
    }

    /// Runs of a work tree, oldest first.
    pub fn runs_of<'a>(
        &'a self,
        worktree: &FolderId,
    ) -> impl DoubleEndedIterator<Item = &'a Run> + use<'a> {
        let worktree = worktree.clone();
        self.runs.iter().filter(move |run| run.worktree == worktree)
    }

    /// What the runs of a run's session used up. A session that nobody named is the run's own, shared with its lanes.
    pub fn session_usage(&self, run: &Run) -> Usage {
        let session = &run.session;
        let is_own = session == run.key.run_id.as_str();
        let of_session = |other: &&Run| {
            if is_own {
                other.key.run_id == run.key.run_id
            } else {
                other.session == *session
            }
        };
        self.runs.iter().filter(of_session).map(Run::usage).sum()
    }

    /// The checkpoint with this id.
    pub fn checkpoint(&self, id: &CheckpointId) -> Option<&Checkpoint> {
        self.checkpoints.by_id(id)
    }

    /// Checkpoints of a run, oldest first.
    pub fn checkpoints_of<'a>(
        &'a self,
        key: &RunKey,
    ) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        self.checkpoints.of(key)
    }
}
