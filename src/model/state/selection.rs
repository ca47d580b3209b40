//! Which checkpoint of a run a selector (`good`, `iteration:N`, `@7`) names.
//!
//! Commands and the policy pick a checkpoint here alone. Which of them count after rollbacks is in [`Line`](crate::model::checkpoint::Line).

use std::collections::BTreeMap;

use super::State;
use crate::model::checkpoint::{Checkpoint, Removed, Verdict, trigger};
use crate::model::run::{IterationStatus, Run, RunKey};
use crate::model::selector::Selector;

/// The checkpoint that is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named<'a> {
    /// It is there.
    Kept(&'a Checkpoint),
    /// It was removed.
    Removed,
}

impl<'a> Named<'a> {
    /// The checkpoint, where it is there.
    pub fn kept(self) -> Option<&'a Checkpoint> {
        match self {
            Self::Kept(checkpoint) => Some(checkpoint),
            Self::Removed => None,
        }
    }
}

impl State {
    /// The checkpoints of a run that count, oldest first: neither those before restores nor what a rollback went back over.
    pub fn standing<'a>(
        &'a self,
        key: &RunKey,
    ) -> impl DoubleEndedIterator<Item = &'a Checkpoint> + use<'a> {
        let standing = self.run(key).map(|run| run.line.standing());
        let ordinary = self
            .checkpoints
            .of(key)
            .filter(|checkpoint| !checkpoint.is_safety());
        ordinary.filter(move |checkpoint| {
            standing
                .as_ref()
                .is_none_or(|standing| standing.holds(checkpoint.seq))
        })
    }

    /// Whether a rollback went back over a checkpoint, and nothing has taken it up again.
    pub fn is_superseded(&self, checkpoint: &Checkpoint) -> bool {
        self.run(&checkpoint.run)
            .is_some_and(|run| !run.line.holds(checkpoint.seq))
    }

    /// The latest checkpoint of a run.
    pub fn latest(&self, key: &RunKey) -> Option<&Checkpoint> {
        self.standing(key).next_back()
    }

    /// The latest checkpoint with a passed verdict, else what was taken before the first attempt, unless a feedback loop
    /// failed on it.
    pub fn last_good(&self, key: &RunKey) -> Option<&Checkpoint> {
        let line = &self.run(key)?.line;
        let mut passed = self
            .checkpoints
            .of(key)
            .filter(|one| one.verdict == Verdict::Passed && !one.is_safety());
        let usable =
            |one: &&Checkpoint| one.trigger == trigger::INITIAL && one.verdict != Verdict::Failed;
        let initial = || self.initial(key).and_then(Named::kept).filter(usable);
        let standing = line.standing();
        let is_usable = |one: &&Checkpoint| standing.holds(one.seq) && !one.damaged;
        passed.rfind(is_usable).or_else(initial)
    }

    /// What a run began with.
    pub fn initial(&self, key: &RunKey) -> Option<Named<'_>> {
        let id = self.run(key)?.initial_checkpoint.as_ref()?;
        Some(self.checkpoint(id).map_or(Named::Removed, Named::Kept))
    }

    /// Whether [`Self::initial`] is there still.
    pub fn keeps_initial(&self, key: &RunKey) -> bool {
        matches!(self.initial(key), Some(Named::Kept(_)))
    }

    /// What an iteration came to: of the checkpoints after it the latest that passed, else the latest that was not taken on
    /// the way to the next one, else the latest. Where a rollback took the iteration back, that of then.
    pub fn end_of_iteration(&self, key: &RunKey, number: u32) -> Option<Named<'_>> {
        let all = self.known(key, |one| one.after_iteration == number);
        let standing = self.run(key).map(|run| run.line.standing());
        let stands = |seq: u64| standing.as_ref().is_none_or(|standing| standing.holds(seq));
        end(&all, stands).or_else(|| end(&all, |seq| !stands(seq)))
    }

    /// What there was before an iteration of a run: what those before it came to. `None` where that was never captured, or
    /// was removed: what is older is without the work of some of them.
    pub fn before_iteration(&self, run: &Run, number: u32) -> Option<&Checkpoint> {
        let wanted = number.saturating_sub(1);
        let standing = run.line.standing();
        let all = self.known(&run.key, |one| (1..=wanted).contains(&one.after_iteration));
        let all: BTreeMap<_, _> = all
            .into_iter()
            .filter(|(seq, _)| standing.holds(*seq))
            .collect();
        let last = all.values().map(|(one, _)| one.after_iteration).max();
        let is_missing = |(number, status): (u32, IterationStatus)| {
            status == IterationStatus::Completed
                && number <= wanted
                && last.is_none_or(|last| number > last)
        };
        if run.iterations.statuses().any(is_missing) {
            return None;
        }
        let begins = |initial: &&Checkpoint| initial.after_iteration == 0;
        match last {
            Some(last) => end(&all, |seq| {
                all.get(&seq)
                    .is_some_and(|(one, _)| one.after_iteration == last)
            })?
            .kept(),
            None => self.initial(&run.key)?.kept().filter(begins),
        }
    }

    /// The latest checkpoint of a stage of a lane. Where a rollback went back over the stage, that of then.
    pub(super) fn of_stage(&self, key: &RunKey, stage: &str) -> Option<&Checkpoint> {
        let is_its =
            |checkpoint: &&Checkpoint| checkpoint.lane_fields.stage.as_deref() == Some(stage);
        let ordinary = || {
            self.checkpoints
                .of(key)
                .filter(|checkpoint| !checkpoint.is_safety())
        };
        self.standing(key)
            .rfind(is_its)
            .or_else(|| ordinary().rfind(is_its))
    }

    /// Checkpoints of a run by sequence, those that were removed as well, those before restores not.
    fn known(
        &self,
        key: &RunKey,
        fits: impl Fn(&Removed) -> bool,
    ) -> BTreeMap<u64, (Removed, Named<'_>)> {
        let kept = self
            .checkpoints
            .of(key)
            .filter(|checkpoint| !checkpoint.is_safety());
        let kept = kept.map(|checkpoint| {
            (
                checkpoint.seq,
                (Removed::from(checkpoint), Named::Kept(checkpoint)),
            )
        });
        let removed = self.run(key).into_iter().flat_map(|run| &run.removed);
        let removed = removed.map(|(seq, removed)| (*seq, (*removed, Named::Removed)));
        removed
            .chain(kept)
            .filter(|(_, (one, _))| fits(one))
            .collect()
    }
}

/// The one among those that `counts` says which ends an iteration.
fn end<'a>(
    all: &BTreeMap<u64, (Removed, Named<'a>)>,
    counts: impl Fn(u64) -> bool,
) -> Option<Named<'a>> {
    let those = || {
        all.iter()
            .filter(|(seq, _)| counts(**seq))
            .map(|(_, one)| one)
    };
    let passed = those().rfind(|(one, _)| one.verdict == Verdict::Passed);
    let reached = || those().rfind(|(one, _)| !one.in_between);
    let found = passed.or_else(reached).or_else(|| those().next_back());
    found.map(|(_, named)| *named)
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
    /// The one that fits was removed, and no other is it.
    #[error("'{selector}'{scope} was removed (checkpoint prune)")]
    Removed {
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
    /// Finds the checkpoint that `selector` names. Ids and sequence numbers reach over all runs, the other forms
    /// need `run`; those before restores are named by id or number only, and what a rollback went back over by these, its
    /// iteration or its stage.
    pub fn select(
        &self,
        selector: &Selector,
        run: Option<&RunKey>,
    ) -> Result<&Checkpoint, SelectionError> {
        let scope = || run.map(|key| format!(" in run {key}")).unwrap_or_default();
        let not_found = || SelectionError::NotFound {
            selector: selector.to_string(),
            scope: scope(),
        };
        let kept = Named::Kept;
        let named = match (selector, run) {
            (Selector::Id(prefix), _) => return self.select_by_prefix(prefix, not_found),
            (Selector::Seq(seq), _) => self.checkpoints.get(*seq).map(kept),
            (_, None) => None,
            (Selector::Latest(back), Some(key)) => self.standing(key).rev().nth(*back).map(kept),
            (Selector::Good, Some(key)) => self.last_good(key).map(kept),
            (Selector::Initial, Some(key)) => self.initial(key),
            (Selector::Iteration(number), Some(key)) => self.end_of_iteration(key, *number),
            (Selector::Stage(stage), Some(key)) => self.of_stage(key, stage).map(kept),
        };
        match named {
            Some(Named::Kept(checkpoint)) => Ok(checkpoint),
            Some(Named::Removed) => Err(SelectionError::Removed {
                selector: selector.to_string(),
                scope: scope(),
            }),
            None => Err(not_found()),
        }
    }

    fn select_by_prefix(
        &self,
        prefix: &str,
        not_found: impl Fn() -> SelectionError,
    ) -> Result<&Checkpoint, SelectionError> {
        let mut fitting = self
            .checkpoints
            .values()
            .filter(|checkpoint| checkpoint.id.as_str().starts_with(prefix));
        let first = fitting.next().ok_or_else(&not_found)?;
        let mut rest: Vec<_> = fitting.collect();
        if first.id == prefix || rest.is_empty() {
            return Ok(first);
        }
        if let Some(exact) = rest.iter().find(|checkpoint| checkpoint.id == prefix) {
            return Ok(exact);
        }
        rest.insert(0, first);
        let ids = rest
            .iter()
            .map(|checkpoint| checkpoint.id.to_string())
            .collect();
        Err(SelectionError::Ambiguous {
            selector: prefix.to_owned(),
            ids,
        })
    }
}
