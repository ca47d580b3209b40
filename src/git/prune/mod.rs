//! Frees space: removes the objects that only removed checkpoints held, and says how much content only some hold.
//! Which checkpoints go is decided by `policy::retention`.
//!
//! Only files that a checkpoint added are ever removed (`owned_objects`), and only those that nothing needs any more: no other
//! checkpoint, no reference, reflog, index, worktree or operation in progress of the user's (`reachability`). If
//! anything cannot be read, or there is too much of it, all are left to `git gc`.
//!
//! Those in a pack that was made of loose ones (`packing`) go by writing it again without them.
//!
//! A file that was touched after it was written is left for an hour after that: git touches an object that it needs
//! and does not write again, and only afterwards refers to it.

mod reachability;

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use git2::Oid;

use super::base::{At as _, Error, Result, TREE, parse_oid, present};
use super::odb::format::loose_path;
use super::odb::owned_objects::{self, RemovedCheckpoint};
use super::odb::pack::PackIndex;
use super::odb::packing::{self, Packs, Removed, touched_until};
use super::odb::publish::{self, Published};
use super::odb::{Database, Tree};
use super::repo::{Repo, WorktreeLock};
use crate::model::manifest::ObjectId;
use reachability::{Older, Walk};

/// Why some objects stay for now.
const TOUCHED: &str = "git touched some within the last hour, as it does with those that it needs";

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discarded {
    /// Objects.
    pub objects: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Why all were left to `git gc`, or some for now, where that is so.
    pub left: Option<String>,
}

impl Repo {
    /// Removes what only these checkpoints held, and what earlier calls had to leave. Their references must be gone.
    ///
    /// It may be cut off at any time: the next call goes on. Nothing that could not be looked through is an error: the
    /// objects stay then, and [`Discarded::left`] says why.
    pub fn discard_objects(&self, lock: &WorktreeLock, commits: &[ObjectId]) -> Discarded {
        let mut done = Discarded::default();
        if let Err(error) = remove(self, lock, commits, &mut done) {
            done.left = Some(error.to_string());
        }
        done
    }

    /// Bytes (uncompressed) of all objects that the commits `of` hold and neither `kept` nor the trees of `bases` nor HEAD.
    ///
    /// The history below a checkpoint is the user's own and counts for neither. An object that is missing counts nothing.
    pub(crate) fn exclusive_bytes(
        &self,
        of: &[ObjectId],
        kept: &[ObjectId],
        bases: &BTreeSet<ObjectId>,
    ) -> Result<u64> {
        let mut sizes = Sizes::new(self, bases, None)?;
        for commit in kept {
            sizes.checkpoint(commit)?;
        }
        of.iter().map(|commit| sizes.checkpoint(commit)).sum()
    }

    /// For each of the commits `of`, the bytes (uncompressed) of the objects that it holds and neither those before it in the list
    /// nor the latest commits of branches, HEAD and the commits `bases` do.
    pub(crate) fn added_bytes(
        &self,
        of: &[ObjectId],
        bases: &BTreeSet<ObjectId>,
    ) -> Result<Vec<u64>> {
        let branches = self
            .inner
            .branches(None)
            .map_err(Error::git("list the branches"))?;
        let branches = branches.filter_map(|branch| branch.ok()?.0.get().target());
        let mut sizes = Sizes::new(self, bases, branches)?;
        of.iter().map(|commit| sizes.checkpoint(commit)).collect()
    }
}

fn remove(
    repo: &Repo,
    lock: &WorktreeLock,
    commits: &[ObjectId],
    done: &mut Discarded,
) -> Result<()> {
    let Some(_alone) = owned_objects::try_lock_exclusive(repo)? else {
        done.left = Some("a capture is under way".to_owned());
        return Ok(());
    };
    let objects = fs::canonicalize(repo.common_dir().join("objects")).at(repo.common_dir())?;
    // No capture is under way: what is kept still is a dead process's.
    publish::release_all(&objects)?;
    let gone = owned_objects::removed(
        repo,
        &commits.iter().map(|commit| commit.0.clone()).collect(),
    )?;
    let Some(oldest) = gone.iter().min_by_key(|gone| gone.list.since) else {
        return Ok(());
    };
    let mut packs = Packs::read(repo, &objects)?;
    let packed: HashSet<Oid> = packs.ids().collect();
    let mut asked = HashSet::new();
    for gone in &gone {
        let is_there = |oid: &&Oid| packed.contains(*oid) || loose_path(&objects, **oid).exists();
        asked.extend(gone.list.files.objects.iter().filter(is_there));
        for name in &gone.list.files.packs {
            // One that git repacked is gone.
            asked.extend(ids(&objects, name)?);
        }
    }
    let mut needed = Needed::default();
    if !asked.is_empty() {
        let roots = reachability::find_roots(repo.common_dir(), &asked)?;
        let database = Database::open(repo)?;
        let mut walk = Walk {
            database: &database,
            asked: &asked,
            // Below a shallow commit anything may have arrived later.
            base: oldest
                .list
                .base
                .filter(|_| !repo.common_dir().join("shallow").exists()),
            older: Older::open(&objects, oldest.list.since),
            seen: HashSet::new(),
            commits: 0,
        };
        walk.needed(&roots.others, &mut needed.others)?;
        walk.needed(&roots.checkpoints, &mut needed.checkpoints)?;
    }
    let mut lists = Vec::new();
    let mut is_any_touched = false;
    for gone in gone {
        let left = remove_files(
            repo,
            &objects,
            &gone,
            &needed,
            &packed,
            done,
            &mut is_any_touched,
        )?;
        lists.push((gone, left));
    }
    let unneeded = |oid: &Oid| !needed.others.contains(oid) && !needed.checkpoints.contains(oid);
    let unneeded: HashSet<Oid> = asked
        .into_iter()
        .filter(|oid| packed.contains(oid) && unneeded(oid))
        .collect();
    let to_remove = unneeded.len();
    let drafts = lock.folder().join("quarantine").join("objects");
    repo.own().check(&drafts.join("pack"), false).at(&drafts)?;
    publish::clear(&drafts, &objects)?;
    let mut removed = Removed::default();
    // What has no room is left; what was removed by then is reported all the same.
    let result = packs.remove(repo, &drafts, &objects, unneeded, &mut removed);
    publish::clear(&drafts, &objects)?;
    (done.objects, done.bytes) = (
        done.objects + removed.objects.len() as u64,
        done.bytes + removed.bytes,
    );
    is_any_touched |= removed.objects.len() < to_remove;
    done.left = removed
        .left
        .or_else(|| is_any_touched.then(|| TOUCHED.to_owned()));
    for (gone, mut left) in lists {
        let packed = gone
            .list
            .files
            .objects
            .iter()
            .filter(|oid| packed.contains(oid) && !needed.others.contains(oid));
        left.objects
            .extend(packed.filter(|oid| !removed.objects.contains(oid)));
        gone.leave(repo, left)?;
    }
    result?;
    owned_objects::sync(repo)
}

/// What is needed, and by whom.
#[derive(Default)]
struct Needed {
    /// By the user: never ours to remove again.
    others: BTreeSet<Oid>,
    /// By checkpoints that may be removed later on.
    checkpoints: BTreeSet<Oid>,
}

/// Removes the files of one list that nobody needs. Returns what another time may be able to remove. An object that is
/// `packed` as well is not gone with its file.
fn remove_files(
    repo: &Repo,
    objects: &Path,
    gone: &RemovedCheckpoint,
    needed: &Needed,
    packed: &HashSet<Oid>,
    done: &mut Discarded,
    is_any_touched: &mut bool,
) -> Result<Published> {
    let mut left = Published::default();
    for oid in &gone.list.files.objects {
        let path = loose_path(objects, *oid);
        if needed.others.contains(oid) {
            continue;
        }
        let is_touched = touched_until(&path, gone.list.at).is_some();
        if is_touched || needed.checkpoints.contains(oid) {
            *is_any_touched |= is_touched;
            left.objects.insert(*oid);
        } else if let Some(bytes) = remove_file(&path)? {
            (done.objects, done.bytes) = (
                done.objects + u64::from(!packed.contains(oid)),
                done.bytes + bytes,
            );
        }
    }
    for name in &gone.list.files.packs {
        let ids = ids(objects, name)?;
        let path = |end: &str| objects.join("pack").join(format!("{name}.{end}"));
        if ids.is_empty()
            || path("keep").exists()
            || ids.iter().any(|oid| needed.others.contains(oid))
        {
            continue;
        }
        let is_touched = touched_until(&path("pack"), gone.list.at).is_some();
        if is_touched || ids.iter().any(|oid| needed.checkpoints.contains(oid)) {
            *is_any_touched |= is_touched;
            left.packs.insert(name.clone());
            continue;
        }
        done.bytes += packing::remove_pack(repo, &path("pack"))?;
        done.objects += ids.len() as u64;
    }
    Ok(left)
}

/// The ids in a pack of ours; none where it is gone.
fn ids(objects: &Path, name: &str) -> Result<Vec<Oid>> {
    let path = objects.join("pack").join(format!("{name}.idx"));
    let ids = PackIndex::open(&path).and_then(|index| index.ids());
    Ok(present(&path, ids)?.unwrap_or_default())
}

/// Removes a file and returns its size; `None` if it is gone already.
fn remove_file(path: &Path) -> Result<Option<u64>> {
    let removed = fs::metadata(path).and_then(|file| fs::remove_file(path).map(|()| file.len()));
    present(path, removed)
}

/// Counts the bytes of what was not seen yet.
struct Sizes<'r> {
    repo: &'r Repo,
    database: Database<'r>,
    /// The user's own commits: what is below them is ignored.
    stop: BTreeSet<Oid>,
    seen: BTreeSet<Oid>,
}

impl<'r> Sizes<'r> {
    /// The trees of these commits and of HEAD were seen.
    fn new(
        repo: &'r Repo,
        bases: &BTreeSet<ObjectId>,
        others: impl IntoIterator<Item = Oid>,
    ) -> Result<Self> {
        let stop: BTreeSet<Oid> = bases.iter().map(parse_oid).collect::<Result<_>>()?;
        let head = repo.inner.head().ok().and_then(|head| head.target());
        let known: Vec<Oid> = stop.iter().copied().chain(head).chain(others).collect();
        let mut sizes = Self {
            repo,
            database: Database::open(repo)?,
            stop,
            seen: BTreeSet::new(),
        };
        for found in known
            .iter()
            .flat_map(|commit| repo.inner.find_commit(*commit))
        {
            sizes.tree(found.tree_id(), |_, _| ());
        }
        Ok(sizes)
    }

    /// A checkpoint's commit, and those of its index and state: never the user's own parents.
    fn checkpoint(&mut self, commit: &ObjectId) -> Result<u64> {
        let mut bytes = 0;
        let mut open = vec![parse_oid(commit)?];
        while let Some(oid) = open.pop() {
            if self.stop.contains(&oid) || !self.seen.insert(oid) {
                continue;
            }
            bytes += self.database.size(oid).unwrap_or(0);
            if let Ok(found) = self.repo.inner.find_commit(oid) {
                let mut count = |database: &Database<'_>, oid| {
                    bytes += database.size(oid).unwrap_or(0);
                };
                self.tree(found.tree_id(), &mut count);
                open.extend(found.parent_ids());
            }
        }
        Ok(bytes)
    }

    /// A tree and all below it that was not seen yet.
    fn tree(&mut self, tree: Oid, mut each: impl FnMut(&Database<'_>, Oid)) {
        let mut open = vec![(tree, true)];
        while let Some((oid, is_tree)) = open.pop() {
            if !self.seen.insert(oid) {
                continue;
            }
            each(&self.database, oid);
            if is_tree && let Ok(tree) = Tree::read(&self.database, oid) {
                open.extend(tree.entries().map(|entry| (entry.oid, entry.mode == TREE)));
            }
        }
    }
}
