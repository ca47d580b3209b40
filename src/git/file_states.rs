//! When files were last modified (S2): told by the system at a capture, kept in the manifest.
//!
//! A tree keeps no times, and a list of all of them would be written anew with every checkpoint. Of a small work tree all
//! are kept: in the order of the paths, each as the difference to the one before, they take next to nothing. Of a
//! larger one those of the files that are not as the last capture found them. What is known of the others is what the
//! last capture of the worktree saw, as long as the content is still that.

use std::collections::BTreeMap;

use super::assemble::stored;
use super::cache::{Cache, flag};
use super::error::Result;
use super::repository::Repo;
use super::scan::Scan;
use super::stored::StoredCheckpoint;
use crate::model::manifest::{FileTimes, PathTime};
use crate::model::path::RepoPath;
use crate::model::snapshot::{Entry, EntryKind, ObjectId, Snapshot};
use crate::model::time::Timestamp;

/// The most times that a manifest keeps.
const MAX_TIMES: usize = 1000;

/// The times of a capture, once all that changed was read. Of more than are kept it is the latest.
pub(super) fn times(scan: &Scan) -> FileTimes {
    let all = || scan.folders.iter().flat_map(|folder| stored(scan, folder).map(move |(item, _)| (folder, item)));
    let is_small = all().nth(MAX_TIMES).is_none();
    let mut times: Vec<_> = all().filter(|(_, item)| is_small || item.flags & flag::SAME == 0).collect();
    if times.len() > MAX_TIMES {
        times.select_nth_unstable_by_key(MAX_TIMES, |(_, item)| std::cmp::Reverse(item.stat.mtime));
        times.truncate(MAX_TIMES);
    }
    let named = times.into_iter().map(|(folder, item)| {
        let modified = Timestamp::from_millis(millis(item.stat.mtime));
        PathTime { path: folder.path.join(scan.name(item)), modified }
    });
    let mut named: Vec<PathTime> = named.collect();
    named.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    if !is_small {
        return FileTimes::Some(named);
    }
    let mut before = 0;
    let steps = named.iter().map(|one| one.modified.millis() - std::mem::replace(&mut before, one.modified.millis()));
    FileTimes::All(steps.collect())
}

fn millis(nanos: i64) -> i64 {
    nanos.div_euclid(1_000_000)
}

fn is_file(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::File | EntryKind::Symlink)
}

impl StoredCheckpoint {
    /// When its files and symlinks were last modified, as far as it keeps that. `snapshot` is all that it holds.
    pub fn modified(&self, snapshot: &Snapshot) -> BTreeMap<RepoPath, Timestamp> {
        match &self.manifest.times {
            FileTimes::Some(times) => times.iter().map(|one| (one.path.clone(), one.modified)).collect(),
            FileTimes::All(steps) => {
                let files = || snapshot.entries.iter().filter(|(_, entry)| is_file(entry));
                if files().count() != steps.len() {
                    return BTreeMap::new();
                }
                let sum = |at: &mut i64, step: &i64| {
                    *at = at.saturating_add(*step);
                    Some(Timestamp::from_millis(*at))
                };
                files().map(|(path, _)| path.clone()).zip(steps.iter().scan(0, sum)).collect()
            }
        }
    }
}

/// When the files that the last recorded capture of this worktree saw were last modified, each with its blob.
pub fn last_seen(repo: &Repo) -> Result<BTreeMap<RepoPath, (ObjectId, Timestamp)>> {
    let cache = Cache::read(repo)?;
    let mut seen = BTreeMap::new();
    for folder in cache.folders() {
        let folder_path = RepoPath::new(folder.path);
        seen.extend(folder.items().map(|item| {
            let at = Timestamp::from_millis(millis(item.stat.mtime));
            (folder_path.join(item.name), (ObjectId(item.oid.to_string()), at))
        }));
    }
    Ok(seen)
}
