//! States of files (S2), and when they were last modified: told by the system at a capture, kept in the manifest.
//!
//! A tree keeps no times, and a list of all of them would be written anew with every checkpoint. Of a small work tree all
//! are kept: in the order of the paths, each as the difference to the one before, they take next to nothing. Of a
//! larger one those of the files that are not as the last capture found them. What is known of the others is what the
//! last capture of the worktree saw, as long as the content is still that.

use std::collections::{BTreeMap, BTreeSet};

use git2::Oid;

use super::snapshot::Capture;
use super::tree_builder::stored;
use crate::git::base::error::Result;
use crate::git::base::openat::split;
use crate::git::checkpoint::stored::StoredCheckpoint;
use crate::git::repo::repository::Repo;
use crate::git::worktree::cache::{Cache, flag, walk_order};
use crate::git::worktree::scan::{Folder, Item, Scan};
use crate::model::manifest::{FileTimes, PathTime};
use crate::model::path::RepoPath;
use crate::model::snapshot::{Entry, EntryKind, ObjectId, Snapshot};
use crate::model::time::Timestamp;

/// The most times that a manifest keeps.
const MAX_TIMES: usize = 1000;

/// The times of a capture, once all that changed was read. Of more than are kept it is the latest.
pub(in crate::git) fn times(scan: &Scan) -> FileTimes {
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

/// A file as it was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Where.
    pub path: RepoPath,
    /// Its content.
    pub blob: ObjectId,
    /// Bytes.
    pub size: u64,
    /// When it was last modified, where that is known.
    pub modified: Option<Timestamp>,
}

impl Capture {
    /// The states of these files, then those of others, as many as wanted; none once the capture is noted. Nothing is read.
    pub fn file_states(&self, first: &[RepoPath], most: usize) -> Vec<FileState> {
        let survey = self.survey.borrow();
        let Some(survey) = survey.as_ref() else { return Vec::new() };
        let scan = &survey.scan;
        let state = |folder: &Folder, item: &Item, blob: Oid| FileState {
            path: folder.path.join(scan.name(item)),
            blob: ObjectId(blob.to_string()),
            size: item.stat.size,
            modified: Some(Timestamp::from_millis(millis(item.stat.mtime))),
        };
        let find = |path: &RepoPath| {
            let (above, name) = (path.parent().unwrap_or_default(), split(path).1);
            let by_path = |folder: &Folder| walk_order(folder.path.as_bytes(), above.as_bytes());
            let folder = &scan.folders[scan.folders.binary_search_by(by_path).ok()?];
            let (item, blob) = stored(scan, folder).find(|(item, _)| scan.name(item) == name)?;
            Some(state(folder, item, blob))
        };
        let mut states: Vec<FileState> = first.iter().filter_map(find).take(most).collect();
        let known: BTreeSet<&RepoPath> = first.iter().collect();
        let all =
            scan.folders.iter().flat_map(|folder| stored(scan, folder).map(move |(item, blob)| (folder, item, blob)));
        let others = all.map(|(folder, item, blob)| state(folder, item, blob)).filter(|one| !known.contains(&one.path));
        let left = most - states.len();
        states.extend(others.take(left));
        states
    }
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
    let cache = Cache::read(repo);
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
