//! Writes the user's index.
//! Stat data of files that were restored, entries that a restore takes back, or the whole index of a checkpoint.
//!
//! git's own protocol is kept: who holds `index.lock` (see `repo::locks`) may replace the index, by rename.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::Duration;

use git2::IndexEntry;

use super::Verified;
use crate::git::base::{DirfdCache, Error, Result, TREE, oid_of, parse_oid};
use crate::git::checkpoint::stored::StoredCheckpoint;
use crate::git::index::index_file::patch::IndexPatch;
use crate::git::index::index_file::{ASSUME_UNCHANGED, INTENT_TO_ADD, SKIP_WORKTREE};
use crate::git::index::locked_index::{Entries, LockedIndex, content_of, fresh_entry, looks_like};
use crate::git::index::user_index::UserIndex;
use crate::git::odb::{Database, trees};
use crate::git::repo::{Repo, WorktreeLock};
use crate::git::tree::{TreeLookup, TreeView};
use crate::model::{IndexExtra, ObjectId, RepoPath};

impl Repo {
    /// Brings the stat data of entries up to date whose content is that of the file, so that git need not read it again.
    ///
    /// Only `paths` are examined, and only content that is equal byte for byte counts: what a filter changes is left to git.
    /// A held `index.lock` is waited for up to `timeout`, then [`Error::Locked`]. A split index is left as it is: git then
    /// reads those files once more.
    pub fn refresh_index(
        &self,
        _lock: &WorktreeLock,
        paths: &[RepoPath],
        verified: &Verified,
        timeout: Duration,
    ) -> Result<()> {
        if self.is_private() || paths.is_empty() || !self.git_dir().join("index").exists() {
            return Ok(());
        }
        let locked = LockedIndex::acquire(self, timeout)?;
        let Some(bytes) = locked.content()? else {
            return Ok(());
        };
        let mut index = match IndexPatch::new(bytes) {
            Err(Error::Unsupported(_)) => return Ok(()),
            other => other?,
        };
        let mut folders = DirfdCache::of(self.workdir())?;
        let mut set = BTreeSet::new();
        for path in paths {
            let found = index
                .entry(path.as_bytes())
                .map(|entry| (entry.mode, entry.oid));
            if let Some(stat) = found.and_then(|(mode, oid)| {
                content_of(&mut folders, path, mode, oid, verified.content(path))
            }) {
                index.set(path.as_bytes(), &stat);
                set.insert(path);
            }
        }
        if set.is_empty() {
            return Ok(());
        }
        // A file that was changed in the second in which the index was written may look as if it was not. git knows from the
        // age of the index, which is about to be younger.
        let young: Vec<RepoPath> = index.young(locked.written()?).map(RepoPath::new).collect();
        for path in young.iter().filter(|path| !set.contains(path)) {
            let looks_unchanged = index
                .entry(path.as_bytes())
                .filter(|entry| looks_like(&mut folders, path, entry));
            let Some((mode, oid)) = looks_unchanged.map(|entry| (entry.mode, entry.oid)) else {
                continue;
            };
            if content_of(&mut folders, path, mode, oid, verified.content(path)).is_none() {
                index.doubt(path.as_bytes());
            }
        }
        match index.finish() {
            Some(bytes) => locked.put(Some(&bytes)),
            None => Ok(()),
        }
    }

    /// Whether the user's index could be changed now: a held `index.lock` is waited for up to `timeout`, then
    /// [`Error::Locked`].
    pub(crate) fn check_index_lock(&self, _lock: &WorktreeLock, timeout: Duration) -> Result<()> {
        LockedIndex::acquire(self, timeout).map(drop)
    }

    /// Gives paths of the user's index the entries that `to` has of them, as far as they are still those of `from`; all other
    /// entries stay as they are. A split or sparse index is written in full.
    pub(crate) fn restore_index_paths(
        &self,
        _lock: &WorktreeLock,
        paths: &[RepoPath],
        (from, to): (TreeView<'_>, TreeView<'_>),
        timeout: Duration,
    ) -> Result<()> {
        let (from, to) = (IndexContent::of(from), IndexContent::of(to));
        if self.is_private() || paths.is_empty() {
            return Ok(());
        }
        let locked = LockedIndex::acquire(self, timeout)?;
        let lookup = TreeLookup::stored(self)?;
        let mut folders = DirfdCache::of(self.workdir())?;
        let mut entries = locked.entries(self, &mut folders)?;
        let mut changed = false;
        for path in paths {
            let now: Vec<IndexExtra> = (0..4)
                .filter_map(|stage| entries.get(&(path.clone(), stage)))
                .map(extra_of)
                .collect();
            if now != from.at(&lookup, path)? {
                continue;
            }
            changed = true;
            (0..4).for_each(|stage| drop(entries.remove(&(path.clone(), stage))));
            for extra in to.at(&lookup, path)? {
                entries.insert(
                    (path.clone(), extra.stage),
                    fresh_entry(&mut folders, &extra)?,
                );
            }
        }
        if !changed {
            return Ok(());
        }
        if entries.is_empty() && to.tree.is_none() {
            return locked.remove();
        }
        locked.set(entries)
    }

    /// Puts the index of a checkpoint back: all stages, intent-to-add, assume-unchanged and skip-worktree.
    pub fn restore_index(
        &self,
        _lock: &WorktreeLock,
        from: &StoredCheckpoint,
        timeout: Duration,
    ) -> Result<()> {
        if self.is_private() {
            return Ok(());
        }
        let locked = LockedIndex::acquire(self, timeout)?;
        let Some(tree) = &from.index_tree else {
            return locked.remove();
        };
        let database = Database::open(self)?;
        let mut folders = DirfdCache::of(self.workdir())?;
        let extras = &from.manifest.index_extras;
        let mut entries = Entries::new();
        let mut flat = trees::read(&database, parse_oid(tree)?)?;
        // A conflicted path has no stage 0; the tree only held one of its sides.
        for extra in extras {
            flat.remove(&extra.path);
        }
        let of_tree = flat.iter().map(|(path, (mode, oid))| {
            IndexExtra::unmarked(path, *mode, ObjectId(oid.to_string()))
        });
        for one in of_tree.chain(extras.iter().cloned()) {
            entries.insert(
                (one.path.clone(), one.stage),
                fresh_entry(&mut folders, &one)?,
            );
        }
        locked.set(entries)
    }

    /// Reads the user's index: one that git cannot read is [`Error::Corrupt`].
    pub(crate) fn check_index(&self) -> Result<()> {
        UserIndex::read(self).map(drop)
    }

    /// Whether the user's index holds what a checkpoint's does.
    pub fn index_is(&self, stored: &StoredCheckpoint) -> Result<bool> {
        let now = UserIndex::read(self)?;
        let tree = now
            .tree(&HashSet::new(), &mut trees::only_ids())?
            .map(|tree| ObjectId(tree.to_string()));
        Ok(tree == stored.index_tree && now.extras == stored.manifest.index_extras)
    }
}

/// What an index holds, as a checkpoint has it.
struct IndexContent<'a> {
    /// Its tree; `None` where there is no index.
    tree: Option<&'a ObjectId>,
    /// What the tree cannot say. A path that is here has all its entries here: a conflict has no stage 0, and a mark
    /// repeats the tree's entry.
    extras: BTreeMap<&'a RepoPath, Vec<&'a IndexExtra>>,
}

impl<'a> IndexContent<'a> {
    fn of(view: TreeView<'a>) -> Self {
        let tree = view.index_tree();
        let mut extras: BTreeMap<&RepoPath, Vec<&IndexExtra>> = BTreeMap::new();
        for extra in &view.manifest().index_extras {
            extras.entry(&extra.path).or_default().push(extra);
        }
        for of_path in extras.values_mut() {
            of_path.sort_by_key(|extra| extra.stage);
        }
        Self { tree, extras }
    }

    /// The entries of a path: one, or the stages of a conflict.
    fn at(&self, lookup: &TreeLookup<'_>, path: &RepoPath) -> Result<Vec<IndexExtra>> {
        if let Some(extras) = self.extras.get(path) {
            return Ok(extras.iter().copied().cloned().collect());
        }
        let found = self
            .tree
            .map(|tree| lookup.find(tree, path))
            .transpose()?
            .flatten();
        let found = found.filter(|(mode, _)| *mode != TREE);
        Ok(found
            .map(|(mode, oid)| IndexExtra::unmarked(path, mode, ObjectId(oid.to_string())))
            .into_iter()
            .collect())
    }
}

/// What decides which entries of the user's index a restore changes.
#[derive(Clone, Debug)]
pub(crate) struct IndexSides<'a> {
    /// The index as it is.
    pub now: TreeView<'a>,
    /// The index to restore.
    pub target: TreeView<'a>,
    /// The index as the run left it; `None` where that is not known.
    pub baseline: Option<TreeView<'a>>,
    /// Paths that another run changed: their entries are not the run's.
    pub others: &'a BTreeSet<RepoPath>,
    /// The tree of HEAD, where HEAD moves: entries that are equal to it are not staged.
    pub head: Option<&'a ObjectId>,
    /// Whether entries that a person staged since are restored too.
    pub discard: bool,
}

/// What a restore does with the user's index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct IndexPlan {
    /// Paths whose entries become the target's.
    pub paths: Vec<RepoPath>,
    /// How many paths have entries that a person staged since the run left the index, and keep them.
    pub kept: usize,
}

impl IndexSides<'_> {
    /// Plans which entries of the index become the target's: those that are as the run left them.
    pub(crate) fn plan(&self, lookup: &TreeLookup<'_>) -> Result<IndexPlan> {
        let (now_index, then_index) = (IndexContent::of(self.now), IndexContent::of(self.target));
        let baseline = self.baseline.map(IndexContent::of);
        let differing = lookup.differing(oid_of(now_index.tree)?, oid_of(then_index.tree)?)?;
        let mut differing: BTreeSet<RepoPath> = differing.into_keys().collect();
        let (now, then) = (&now_index.extras, &then_index.extras);
        let listed = now
            .keys()
            .chain(then.keys())
            .filter(|path| now.get(*path) != then.get(*path));
        differing.extend(listed.copied().cloned());
        let mut plan = IndexPlan::default();
        let mut kept = Vec::new();
        for path in differing {
            let now = now_index.at(lookup, &path)?;
            if now == then_index.at(lookup, &path)? {
                continue;
            }
            if self.discard || self.is_as_left(lookup, baseline.as_ref(), &path, &now)? {
                plan.paths.push(path);
            } else {
                kept.push((path, !now.is_empty()));
            }
        }
        // No index holds a file and something below its path.
        let in_the_way = |path: &RepoPath| {
            kept.iter().any(|(one, is_there)| {
                *is_there && (one.starts_with(path) || path.starts_with(one))
            })
        };
        plan.kept = kept.len();
        let mut paths = Vec::new();
        for path in std::mem::take(&mut plan.paths) {
            if in_the_way(&path) && !then_index.at(lookup, &path)?.is_empty() {
                plan.kept += 1;
            } else {
                paths.push(path);
            }
        }
        Ok(IndexPlan { paths, ..plan })
    }

    /// Whether a path's entries are what the run left, or HEAD's. A baseline that cannot be read says nothing.
    fn is_as_left(
        &self,
        lookup: &TreeLookup<'_>,
        baseline: Option<&IndexContent<'_>>,
        path: &RepoPath,
        now: &[IndexExtra],
    ) -> Result<bool> {
        if self.others.contains(path) {
            return Ok(false);
        }
        let left = match baseline.map(|baseline| baseline.at(lookup, path)) {
            Some(Err(Error::Corrupt(_))) | None => None,
            Some(left) => Some(left?),
        };
        if left.is_some_and(|left| left == now) {
            return Ok(true);
        }
        let Some(head) = self.head else {
            return Ok(false);
        };
        let committed = lookup.find(head, path)?.filter(|(mode, _)| *mode != TREE);
        Ok(match (now, committed) {
            ([], None) => true,
            ([one], Some((mode, oid))) => {
                one.stage == 0
                    && !one.intent_to_add
                    && one.mode == mode
                    && one.oid.0 == oid.to_string()
            }
            _ => false,
        })
    }
}

/// What a checkpoint keeps of an entry.
fn extra_of(one: &IndexEntry) -> IndexExtra {
    IndexExtra {
        stage: ((one.flags >> 12) & 3) as u8,
        intent_to_add: one.flags_extended & INTENT_TO_ADD != 0,
        assume_unchanged: one.flags & ASSUME_UNCHANGED != 0,
        skip_worktree: one.flags_extended & SKIP_WORKTREE != 0,
        ..IndexExtra::unmarked(
            &RepoPath::new(one.path.clone()),
            one.mode,
            ObjectId(one.id.to_string()),
        )
    }
}
