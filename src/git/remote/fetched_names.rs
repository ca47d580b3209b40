//! Names in the trees of checkpoints that came from elsewhere.
//!
//! git looks at them in a transfer, and only there: objects that were here before, as a clone by path and a fetch of the user's
//! own bring them, nobody has looked at.

use std::collections::HashSet;

use git2::Oid;

use crate::git::base::error::{Error, Result};
use crate::git::base::modes::TREE;
use crate::git::base::names::unsafe_name;
use crate::git::base::object_id::parse_oid;
use crate::git::odb::database::Database;
use crate::git::odb::trees::{Tree, child};
use crate::git::repo::repository::Repo;
use crate::model::manifest::ObjectId;
use crate::model::path::RepoPath;

/// A path with more parts can be made by no system.
const MAX_DEPTH: usize = 4096;

/// The trees of checkpoints, each looked through once.
pub(crate) struct FetchedNames<'r> {
    repo: &'r Repo,
    database: Database<'r>,
    seen: HashSet<Oid>,
}

impl<'r> FetchedNames<'r> {
    /// None was looked through yet.
    pub(crate) fn new(repo: &'r Repo) -> Result<Self> {
        Ok(Self {
            repo,
            database: Database::open(repo)?,
            seen: HashSet::new(),
        })
    }

    /// What is in a checkpoint that no checkpoint has, and why; `None` where nothing is. What is not here is not looked at: it
    /// comes in a transfer.
    pub(crate) fn unsafe_in(
        &mut self,
        checkpoint: &ObjectId,
    ) -> Result<Option<(RepoPath, &'static str)>> {
        let oid = parse_oid(checkpoint)?;
        if !self.database.has(oid) {
            return Ok(None);
        }
        let failed = |error: git2::Error| {
            Error::corrupt(format!("checkpoint {checkpoint}: {}", error.message()))
        };
        let found = self.repo.inner.find_commit(oid).map_err(failed)?;
        let mut trees = vec![found.tree_id()];
        // Those of the index and of the state; before them is the commit that it began on.
        for parent in found.parents().skip(found.parent_count().saturating_sub(2)) {
            trees.push(parent.tree_id());
        }
        for tree in trees {
            if let Some(found) = self.unsafe_below(tree)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn unsafe_below(&mut self, tree: Oid) -> Result<Option<(RepoPath, &'static str)>> {
        let mut open = vec![(RepoPath::default(), tree, 0)];
        while let Some((folder, oid, depth)) = open.pop() {
            if depth > MAX_DEPTH {
                return Ok(Some((folder, "folders that are nested too deeply")));
            }
            if !self.seen.insert(oid) || !self.database.has(oid) {
                continue;
            }
            let tree = Tree::read(&self.database, oid)?;
            let mut names = HashSet::new();
            for entry in tree.entries() {
                let path = child(&folder, entry.name);
                let twice = || (!names.insert(entry.name)).then_some("two entries of one name");
                if let Some(why) = unsafe_name(entry.name).or_else(twice) {
                    return Ok(Some((path, why)));
                }
                if entry.mode == TREE {
                    open.push((path, entry.oid, depth + 1));
                }
            }
        }
        Ok(None)
    }
}
