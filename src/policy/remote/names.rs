//! Names of checkpoints that a machine has given to others already: its own second and number, too.
//!
//! On the server a checkpoint has the name that it was taken with. On a machine where another run has one of that name it is
//! known by a longer one, and what leaves that machine has the first one again.

use std::collections::BTreeSet;

use crate::model::id::CheckpointId;
use crate::model::run::RunKey;

use super::digest::sha256;

/// What every checkpoint's name begins with.
const BEGIN: &str = "ckpt_";

/// How one run's checkpoints are called here.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// What is added to a name that is taken; the same on every machine.
    end: String,
    /// Names on the server that another run's checkpoint has here.
    taken: BTreeSet<String>,
}

impl Names {
    /// Those of a run, none of which is taken.
    pub fn of(key: &RunKey) -> Self {
        let hash = sha256(key.to_string().as_bytes());
        Self {
            end: format!("_{}", &hash[..8]),
            taken: BTreeSet::new(),
        }
    }

    /// With these names, as they are on the server, taken here.
    #[must_use]
    pub fn taken<'a>(mut self, ids: impl IntoIterator<Item = &'a CheckpointId>) -> Self {
        self.taken = ids.into_iter().map(|id| id.as_str().to_owned()).collect();
        self
    }

    /// The name on the server of a checkpoint that has a longer one here.
    pub fn there<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_suffix(&self.end)
            .filter(|name| !self.end.is_empty() && name.starts_with(BEGIN))
    }

    /// The longer name here of a checkpoint on the server, where it has one.
    pub fn here(&self, name: &str) -> Option<String> {
        self.taken
            .contains(name)
            .then(|| format!("{name}{}", self.end))
    }
}
