//! What an index held, compared with what another one, or the work tree, has.

use std::collections::BTreeSet;

use crate::git::base::{Error, GITLINK, Result};
use crate::git::odb::Flat;
use crate::git::repo::Repo;
use crate::model::{ObjectId, RepoPath};

/// A larger file is not compared by what it says.
const FORMATTED: u64 = 1 << 20;

/// What an index held.
#[derive(Debug)]
pub(crate) struct Held(pub(super) Flat);

impl Held {
    /// Whether it has this path.
    pub(crate) fn has(&self, path: &RepoPath) -> bool {
        self.0.contains_key(path)
    }

    /// Whether another index has the same of this path.
    pub(crate) fn is_same(&self, other: &Self, path: &RepoPath) -> bool {
        self.0.get(path) == other.0.get(path)
    }

    /// Whether a file is that of another index but for blanks and line ends.
    pub(crate) fn is_formatting(&self, other: &Self, repo: &Repo, path: &RepoPath) -> Result<bool> {
        let letters = |held: &Self| {
            let Some((_, oid)) = held.0.get(path).filter(|(mode, _)| *mode != GITLINK) else {
                return Ok(None);
            };
            let content = repo.small_blob(&ObjectId(oid.to_string()), FORMATTED)?;
            Ok::<_, Error>(content.map(|mut content| {
                content.retain(|byte| !byte.is_ascii_whitespace());
                content
            }))
        };
        let own = letters(self)?;
        Ok(own.is_some() && own == letters(other)?)
    }

    /// Whether it has a repository of its own there, by its commit alone.
    pub(super) fn has_link(&self, path: &RepoPath) -> bool {
        self.0.get(path).is_some_and(|(mode, _)| *mode == GITLINK)
    }

    /// The paths that another index has otherwise.
    pub(crate) fn unlike(&self, other: &Self) -> BTreeSet<RepoPath> {
        differing(&self.0, &other.0)
    }
}

/// The paths that are not the same in both.
pub(super) fn differing(one: &Flat, other: &Flat) -> BTreeSet<RepoPath> {
    let all: BTreeSet<&RepoPath> = one.keys().chain(other.keys()).collect();
    all.into_iter()
        .filter(|path| one.get(*path) != other.get(*path))
        .cloned()
        .collect()
}
