//! Writes the user's index: stat data of files that were restored, or the whole index of a checkpoint.
//!
//! git's own protocol is kept: who holds `index.lock` (see `git_lock`) may replace the index, by rename.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use git2::IndexEntry;

use super::verify::Verified;
use crate::git::base::dirfd_cache::DirfdCache;
use crate::git::base::error::{Error, Result};
use crate::git::base::object_id::parse_oid;
use crate::git::base::openat;
use crate::git::checkpoint::stored::StoredCheckpoint;
use crate::git::index::index_file::patch::IndexPatch;
use crate::git::index::locked_index::{LockedIndex, content_of, entry, looks_like, refresh};
use crate::git::index::user_index::{ASSUME_UNCHANGED, INTENT_TO_ADD, SKIP_WORKTREE, UserIndex};
use crate::git::odb::database::Database;
use crate::git::odb::trees;
use crate::git::repo::lock::WorktreeLock;
use crate::git::repo::repository::Repo;
use crate::model::path::RepoPath;
use crate::model::snapshot::ObjectId;

/// Brings the stat data of entries up to date whose content is that of the file, so that git need not read it again.
///
/// Only `paths` are examined, and only content that is equal byte for byte counts: what a filter changes is left to git.
/// A held `index.lock` is waited for up to `timeout`, then [`Error::Locked`]. A split index is left as it is: git then
/// reads those files once more.
pub fn refresh_index(
    repo: &Repo,
    _lock: &WorktreeLock,
    paths: &[RepoPath],
    verified: &Verified,
    timeout: Duration,
) -> Result<()> {
    if repo.is_private() || paths.is_empty() || !repo.git_dir().join("index").exists() {
        return Ok(());
    }
    let locked = LockedIndex::acquire(repo, timeout)?;
    let Some(bytes) = locked.content()? else { return Ok(()) };
    let mut index = match IndexPatch::new(bytes) {
        Err(Error::Unsupported { .. }) => return Ok(()),
        other => other?,
    };
    let mut folders = DirfdCache::new(openat::open_root(repo.workdir())?);
    let mut set = BTreeSet::new();
    for path in paths {
        let found = index.entry(path.as_bytes()).map(|entry| (entry.mode, entry.oid));
        if let Some(stat) =
            found.and_then(|(mode, oid)| content_of(&mut folders, path, mode, oid, verified.content(path)))
        {
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
        let looks_unchanged = index.entry(path.as_bytes()).filter(|entry| looks_like(&mut folders, path, entry));
        let Some((mode, oid)) = looks_unchanged.map(|entry| (entry.mode, entry.oid)) else { continue };
        if content_of(&mut folders, path, mode, oid, verified.content(path)).is_none() {
            index.doubt(path.as_bytes());
        }
    }
    match index.finish() {
        Some(bytes) => locked.put(Some(&bytes)),
        None => Ok(()),
    }
}

/// Puts the index of a checkpoint back: all stages, intent-to-add, assume-unchanged and skip-worktree.
pub fn restore_index(repo: &Repo, _lock: &WorktreeLock, from: &StoredCheckpoint, timeout: Duration) -> Result<()> {
    if repo.is_private() {
        return Ok(());
    }
    let locked = LockedIndex::acquire(repo, timeout)?;
    let Some(tree) = &from.index_tree else {
        return locked.remove();
    };
    let database = Database::open(repo)?;
    let mut folders = DirfdCache::new(openat::open_root(repo.workdir())?);
    let flat = trees::read(&database, parse_oid(tree)?)?;
    let mut entries: BTreeMap<(RepoPath, u8), IndexEntry> = BTreeMap::new();
    for (path, (mode, oid)) in flat {
        entries.insert((path.clone(), 0), entry(&path, mode, oid));
    }
    for extra in &from.manifest.index_extras {
        let mut one = entry(&extra.path, extra.mode, parse_oid(&extra.oid)?);
        if extra.stage != 0 {
            // A conflicted path has no stage 0; the tree only held one of its sides.
            entries.remove(&(extra.path.clone(), 0));
        }
        one.flags |= u16::from(extra.stage) << 12;
        if extra.assume_unchanged {
            one.flags |= ASSUME_UNCHANGED;
        }
        one.flags_extended |= if extra.intent_to_add { INTENT_TO_ADD } else { 0 };
        one.flags_extended |= if extra.skip_worktree { SKIP_WORKTREE } else { 0 };
        entries.insert((extra.path.clone(), extra.stage), one);
    }
    let mut index = locked.empty()?;
    for ((path, stage), mut entry) in entries {
        if stage == 0 && entry.flags_extended & INTENT_TO_ADD == 0 {
            refresh(&mut folders, &path, &mut entry);
        }
        index.add(&entry).map_err(Error::git(format!("put {path} into the index")))?;
    }
    locked.write(index)
}

/// Reads the user's index: one that git cannot read is [`Error::Corrupt`].
pub fn check_index(repo: &Repo) -> Result<()> {
    UserIndex::read(repo).map(drop)
}

/// Whether the user's index holds what a checkpoint's does.
pub fn index_is(repo: &Repo, stored: &StoredCheckpoint) -> Result<bool> {
    let now = UserIndex::read(repo)?;
    let tree = now.tree(&mut trees::only_ids())?.map(|tree| ObjectId(tree.to_string()));
    Ok(tree == stored.index_tree && now.extras == stored.manifest.index_extras)
}
