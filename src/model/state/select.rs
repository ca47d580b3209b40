//! The meaning of a selector (`good`, `iteration:N`, `@7`): which checkpoint of a run's state it names.

use crate::model::checkpoint::Checkpoint;
use crate::model::run::RunKey;
use crate::model::selector::Selector;

use super::State;
use super::counting::Named;

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
