//! The state: what all events of the ledger add up to.

mod apply;

use crate::model::folder::FolderId;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::checkpoint::Checkpoint;
use super::checkpoints::Checkpoints;
use super::operation::WorktreeState;
use super::packed::Part;
use super::run::{Run, RunKey};
use super::selector::Selector;

/// Everything known, as of the last event.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Sequence of the last event.
    pub last_seq: u64,
    /// Runs in the order of their creation.
    pub runs: Vec<Run>,
    /// All checkpoints.
    pub checkpoints: Checkpoints,
    /// Ids of checkpoints that were removed on purpose: a leftover reference of one is never taken in again.
    pub pruned: BTreeSet<String>,
    /// Highest checkpoint sequence ever used.
    pub last_checkpoint_seq: u64,
    /// Where the state directory was when checkpoints were recorded in it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub places: BTreeSet<FolderId>,
    /// What is kept of each work tree, by its absolute path.
    pub worktrees: BTreeMap<FolderId, WorktreeState>,
}

/// Why a selector names no checkpoint.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum SelectionError {
    /// Nothing fits.
    #[error("no checkpoint '{selector}'{scope}")]
    NotFound {
        /// What was asked for.
        selector: String,
        /// In what.
        scope: String,
    },
    /// Several fit.
    #[error("'{selector}' names {} checkpoints: {}", ids.len(), ids.join(", "))]
    Ambiguous {
        /// What was asked for.
        selector: String,
        /// What fits.
        ids: Vec<String>,
    },
}

impl State {
    /// Packs what is hardly looked at any more: the details of runs that are over, and all
    /// iterations and checkpoints but the latest.
    pub fn pack(&mut self) {
        for run in self.runs.iter_mut().filter(|run| !run.details.is_packed()) {
            let (has_ended, current) = (run.status.has_ended(), run.current_iteration);
            if has_ended {
                run.details.iterations.unpack();
                run.details.pack();
            } else {
                run.details.iterations.pack(current);
            }
        }
        self.checkpoints.pack();
    }

    /// All that may be packed, always in the same order.
    pub fn parts(&mut self) -> Vec<&mut dyn Part> {
        let mut parts: Vec<&mut dyn Part> = Vec::new();
        for run in &mut self.runs {
            if run.details.is_packed() || run.details.is_missing() {
                parts.push(&mut run.details);
            } else {
                parts.extend(run.details.iterations.parts());
            }
        }
        parts.extend(self.checkpoints.parts());
        parts
    }

    /// The run with this key.
    pub fn run(&self, key: &RunKey) -> Option<&Run> {
        self.runs.iter().find(|run| run.key == *key)
    }

    /// Runs of a work tree, oldest first.
    pub fn runs_of<'a>(&'a self, worktree: &FolderId) -> impl DoubleEndedIterator<Item = &'a Run> + use<'a> {
        let worktree = worktree.clone();
        self.runs.iter().filter(move |run| run.worktree == worktree)
    }

    /// The checkpoint with this id.
    pub fn checkpoint(&self, id: &str) -> Option<&Checkpoint> {
        self.checkpoints.by_id(id)
    }

    /// Checkpoints of a run, oldest first.
    pub fn checkpoints_of<'a>(&'a self, key: &RunKey) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        self.checkpoints.of(key)
    }

    /// The latest checkpoint with a passed verdict, else the initial one unless a feedback loop failed on it.
    pub fn last_good(&self, key: &RunKey) -> Option<&Checkpoint> {
        let run = self.run(key)?;
        let by_id = |id: &Option<String>| id.as_deref().and_then(|id| self.checkpoint(id));
        by_id(&run.good_checkpoint).or_else(|| {
            let usable = |checkpoint: &&Checkpoint| checkpoint.verdict != super::checkpoint::Verdict::Failed;
            by_id(&run.initial_checkpoint).filter(usable)
        })
    }

    /// Finds the checkpoint that `selector` names. Ids and sequence numbers reach over all runs, the other forms
    /// need `run`; safety checkpoints are named by id or number only.
    pub fn select(&self, selector: &Selector, run: Option<&RunKey>) -> Result<&Checkpoint, SelectionError> {
        let not_found = || SelectionError::NotFound {
            selector: selector.to_string(),
            scope: run.map(|key| format!(" in run {key}")).unwrap_or_default(),
        };
        let ordinary = || {
            let of_run = run.map(|key| self.checkpoints_of(key).filter(|checkpoint| !checkpoint.is_safety()));
            of_run.into_iter().flatten()
        };
        let found = match selector {
            Selector::Id(prefix) => return self.select_by_prefix(prefix, not_found),
            Selector::Seq(seq) => self.checkpoints.get(*seq),
            Selector::Latest(back) => {
                let all: Vec<_> = ordinary().collect();
                all.len().checked_sub(1 + back).map(|at| all[at])
            }
            Selector::Good => run.and_then(|key| self.last_good(key)),
            Selector::Initial => {
                let id = run.and_then(|key| self.run(key)).and_then(|run| run.initial_checkpoint.as_deref());
                // Another one in the place of the first, which was removed, would take back less than was asked for.
                let is_first =
                    |first: &&Checkpoint| !first.previous.as_ref().is_some_and(|id| self.pruned.contains(id));
                id.and_then(|id| self.checkpoint(id)).or_else(|| ordinary().next().filter(is_first))
            }
            Selector::Iteration(number) => {
                let after: Vec<_> = ordinary().filter(|checkpoint| checkpoint.after_iteration == *number).collect();
                let passed = after.iter().rfind(|c| c.verdict == super::checkpoint::Verdict::Passed);
                // What was taken on the way to the next one is no end of this.
                let reached = || after.iter().rfind(|c| !c.is_in_between());
                passed.or_else(reached).or(after.last()).copied()
            }
            Selector::Stage(stage) => {
                let all: Vec<_> = ordinary().collect();
                all.into_iter().rfind(|checkpoint| checkpoint.lane_fields.stage.as_deref() == Some(stage))
            }
        };
        found.ok_or_else(not_found)
    }

    fn select_by_prefix(
        &self,
        prefix: &str,
        not_found: impl Fn() -> SelectionError,
    ) -> Result<&Checkpoint, SelectionError> {
        let mut fitting = self.checkpoints.values().filter(|checkpoint| checkpoint.id.starts_with(prefix));
        let first = fitting.next().ok_or_else(&not_found)?;
        let mut rest: Vec<_> = fitting.collect();
        if first.id == prefix || rest.is_empty() {
            return Ok(first);
        }
        if let Some(exact) = rest.iter().find(|checkpoint| checkpoint.id == prefix) {
            return Ok(exact);
        }
        rest.insert(0, first);
        let ids = rest.iter().map(|checkpoint| checkpoint.id.clone()).collect();
        Err(SelectionError::Ambiguous { selector: prefix.to_owned(), ids })
    }
}
