//! Removes the objects that only removed checkpoints held.
//!
//! Only files that a checkpoint added are ever removed (`written`), and only those that nothing needs any more: no other
//! checkpoint, no reference, reflog, index, worktree or operation in progress of the user's (`roots`, `reachable`). If
//! anything cannot be read, or there is too much of it, all are left to `git gc`.
//!
//! A file that was touched after it was written is left for an hour after that: git touches an object that it needs
//! and does not write again, and only afterwards refers to it.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use git2::Oid;

use super::error::{Error, Result};
use super::lock::WorktreeLock;
use super::publish::{self, Published, loose_path};
use super::reachable::{Older, PackIndex, Walk};
use super::repository::Repo;
use super::roots;
use super::written::{self, Gone};
use crate::model::snapshot::ObjectId;

/// How long a touched file is left.
const GRACE: Duration = Duration::from_secs(3600);

/// What was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discarded {
    /// Objects.
    pub objects: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Why all were left to `git gc`, where that is so.
    pub left: Option<String>,
}

/// Removes what only these checkpoints held, and what earlier calls had to leave. Their references must be gone.
///
/// It may be cut off at any time: the next call goes on. Nothing that could not be looked through is an error: the
/// objects stay then, and [`Discarded::left`] says why.
pub fn discard(repo: &Repo, _lock: &WorktreeLock, commits: &[ObjectId]) -> Discarded {
    let mut done = Discarded::default();
    if let Err(error) = remove(repo, commits, &mut done) {
        done.left = Some(error.to_string());
    }
    done
}

fn remove(repo: &Repo, commits: &[ObjectId], done: &mut Discarded) -> Result<()> {
    let Some(_alone) = written::hold_alone(repo)? else {
        done.left = Some("a capture is under way".to_owned());
        return Ok(());
    };
    let objects = fs::canonicalize(repo.common_dir().join("objects")).map_err(Error::at(repo.common_dir()))?;
    // No capture is under way: what is kept still is a dead process's.
    publish::release_all(&objects)?;
    let gone = written::gone(repo, &commits.iter().map(|commit| commit.0.clone()).collect())?;
    let Some(oldest) = gone.iter().min_by_key(|gone| gone.list.since) else { return Ok(()) };
    let mut asked = HashSet::new();
    for gone in &gone {
        asked.extend(gone.list.files.loose.iter().filter(|oid| loose_path(&objects, **oid).exists()));
        for name in &gone.list.files.packs {
            // One that git repacked is gone.
            asked.extend(ids(&objects, name)?);
        }
    }
    let mut needed = Needed::default();
    if !asked.is_empty() {
        let roots = roots::find(repo.common_dir(), &asked)?;
        let database = repo.database()?;
        let mut walk = Walk {
            database: &database,
            asked: &asked,
            // Below a shallow commit anything may have arrived later.
            base: oldest.list.base.filter(|_| !repo.common_dir().join("shallow").exists()),
            older: Older::open(&objects, oldest.list.since),
            seen: HashSet::new(),
            commits: 0,
        };
        walk.needed(&roots.others, &mut needed.others)?;
        walk.needed(&roots.checkpoints, &mut needed.checkpoints)?;
    }
    for gone in gone {
        let left = remove_files(&objects, &gone, &needed, done)?;
        gone.leave(repo, left)?;
    }
    written::sync(repo)
}

/// What is needed, and by whom.
#[derive(Default)]
struct Needed {
    /// By the user: never ours to remove again.
    others: BTreeSet<Oid>,
    /// By checkpoints that may be removed later on.
    checkpoints: BTreeSet<Oid>,
}

/// Removes the files of one list that nobody needs. Returns what another time may be able to remove.
fn remove_files(objects: &Path, gone: &Gone, needed: &Needed, done: &mut Discarded) -> Result<Published> {
    let mut left = Published::default();
    for oid in &gone.list.files.loose {
        let path = loose_path(objects, *oid);
        if needed.others.contains(oid) {
            continue;
        }
        if needed.checkpoints.contains(oid) || is_touched(&path, gone.list.at) {
            left.loose.insert(*oid);
        } else if let Some(bytes) = remove_file(&path)? {
            (done.objects, done.bytes) = (done.objects + 1, done.bytes + bytes);
        }
    }
    for name in &gone.list.files.packs {
        let ids = ids(objects, name)?;
        let path = |end: &str| objects.join("pack").join(format!("{name}.{end}"));
        if ids.is_empty() || path("keep").exists() || ids.iter().any(|oid| needed.others.contains(oid)) {
            continue;
        }
        if ids.iter().any(|oid| needed.checkpoints.contains(oid)) || is_touched(&path("pack"), gone.list.at) {
            left.packs.insert(name.clone());
            continue;
        }
        // The index first: a pack without one is nothing that git would read.
        let files: [PathBuf; 4] = ["idx", "rev", "bitmap", "pack"].map(path);
        for file in &files {
            done.bytes += remove_file(file)?.unwrap_or(0);
        }
        done.objects += ids.len() as u64;
    }
    Ok(left)
}

/// The ids in a pack of ours; none where it is gone.
fn ids(objects: &Path, name: &str) -> Result<Vec<Oid>> {
    let path = objects.join("pack").join(format!("{name}.idx"));
    match PackIndex::open(&path).and_then(|index| index.ids()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.map_err(Error::at(&path)),
    }
}

/// Whether a file was touched after it was written, and not long ago.
fn is_touched(path: &Path, at: u64) -> bool {
    let Ok(modified) = fs::metadata(path).and_then(|file| file.modified()) else { return false };
    let later = modified.duration_since(UNIX_EPOCH).is_ok_and(|time| time.as_nanos() > u128::from(at));
    later && SystemTime::now().duration_since(modified).is_ok_and(|age| age < GRACE)
}

/// Removes a file and returns its size; `None` if it is gone already.
fn remove_file(path: &Path) -> Result<Option<u64>> {
    let size = fs::metadata(path).map(|file| file.len());
    match (size, fs::remove_file(path)) {
        (Ok(size), Ok(())) => Ok(Some(size)),
        (Err(error), _) | (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        (Err(error), _) | (_, Err(error)) => Err(Error::io(path, error)),
    }
}
