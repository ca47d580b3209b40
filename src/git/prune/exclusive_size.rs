//! Exclusive size: how much content only some checkpoints hold.

use std::collections::BTreeSet;

use git2::Oid;

use crate::git::base::error::{Error, Result};
use crate::git::base::modes::TREE;
use crate::git::base::object_id::parse_oid;
use crate::git::odb::database::Database;
use crate::git::odb::trees::Tree;
use crate::git::repo::repository::Repo;
use crate::model::manifest::ObjectId;

impl Repo {
    /// Bytes (uncompressed) of all objects that the commits `of` hold and neither `kept` nor the trees of `bases` nor HEAD.
    ///
    /// The history below a checkpoint is the user's own and counts for neither. An object that is missing counts nothing.
    pub(crate) fn exclusive_bytes(
        &self,
        of: &[ObjectId],
        kept: &[ObjectId],
        bases: &BTreeSet<ObjectId>,
    ) -> Result<u64> {
        let database = Database::open(self)?;
        let stop: BTreeSet<Oid> = bases.iter().map(parse_oid).collect::<Result<_>>()?;
        let mut seen = BTreeSet::new();
        let head = self.inner.head().ok().and_then(|head| head.target());
        for commit in stop.iter().copied().chain(head) {
            if let Ok(found) = self.inner.find_commit(commit) {
                mark(&database, found.tree_id(), &mut seen);
            }
        }
        for commit in kept {
            walk_checkpoint(self, &database, parse_oid(commit)?, &stop, &mut seen);
        }
        let mut bytes = 0;
        for commit in of {
            bytes += walk_checkpoint(self, &database, parse_oid(commit)?, &stop, &mut seen);
        }
        Ok(bytes)
    }
}

/// For each of the commits `of`, the bytes (uncompressed) of the objects that it holds and neither those before it in the list
/// nor the latest commits of branches, HEAD and the commits `bases` do.
pub(crate) fn added_bytes(
    repo: &Repo,
    of: &[ObjectId],
    bases: &BTreeSet<ObjectId>,
) -> Result<Vec<u64>> {
    let database = Database::open(repo)?;
    let stop: BTreeSet<Oid> = bases.iter().map(parse_oid).collect::<Result<_>>()?;
    let mut seen = BTreeSet::new();
    let head = repo.inner.head().ok().and_then(|head| head.target());
    let branches = repo
        .inner
        .branches(None)
        .map_err(Error::git("list the branches"))?;
    let branches = branches.filter_map(|branch| branch.ok()?.0.get().target());
    for commit in stop.iter().copied().chain(head).chain(branches) {
        if let Ok(found) = repo.inner.find_commit(commit) {
            mark(&database, found.tree_id(), &mut seen);
        }
    }
    of.iter()
        .map(|commit| {
            Ok(walk_checkpoint(
                repo,
                &database,
                parse_oid(commit)?,
                &stop,
                &mut seen,
            ))
        })
        .collect()
}

/// A checkpoint's commit, and those of its index and state: never the user's own parents.
fn walk_checkpoint(
    repo: &Repo,
    database: &Database<'_>,
    commit: Oid,
    stop: &BTreeSet<Oid>,
    seen: &mut BTreeSet<Oid>,
) -> u64 {
    let mut bytes = 0;
    let mut open = vec![commit];
    while let Some(oid) = open.pop() {
        if stop.contains(&oid) || !seen.insert(oid) {
            continue;
        }
        bytes += size(database, oid);
        if let Ok(found) = repo.inner.find_commit(oid) {
            bytes += walk(database, found.tree_id(), seen);
            open.extend(found.parent_ids());
        }
    }
    bytes
}

/// The bytes of a tree and of all below it that was not seen yet.
fn walk(database: &Database<'_>, tree: Oid, seen: &mut BTreeSet<Oid>) -> u64 {
    let mut bytes = 0;
    visit(database, tree, seen, |oid| bytes += size(database, oid));
    bytes
}

/// The same where nobody asks for the bytes: no file is looked up.
fn mark(database: &Database<'_>, tree: Oid, seen: &mut BTreeSet<Oid>) {
    visit(database, tree, seen, |_| ());
}

fn visit(database: &Database<'_>, tree: Oid, seen: &mut BTreeSet<Oid>, mut each: impl FnMut(Oid)) {
    let mut open = vec![(tree, true)];
    while let Some((oid, is_tree)) = open.pop() {
        if !seen.insert(oid) {
            continue;
        }
        each(oid);
        if is_tree && let Ok(tree) = Tree::read(database, oid) {
            open.extend(tree.entries().map(|entry| (entry.oid, entry.mode == TREE)));
        }
    }
}

fn size(database: &Database<'_>, oid: Oid) -> u64 {
    database.size(oid).unwrap_or(0)
}
