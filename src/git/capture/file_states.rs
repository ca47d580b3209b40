//! States of files (S2): those that a capture holds, and those that the last one saw.

use std::collections::{BTreeMap, BTreeSet};

use git2::Oid;

use super::file_times::millis;
use super::snapshot::Capture;
use super::tree_builder::stored;
use crate::git::base::openat::split;
use crate::git::repo::repository::Repo;
use crate::git::worktree::cache::{Cache, walk_order};
use crate::git::worktree::scan::{FileEntry, Folder};
use crate::model::manifest::ObjectId;
use crate::model::path::RepoPath;
use crate::model::time::Timestamp;

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
        let cache_builder = self.cache_builder.borrow();
        let Some(cache_builder) = cache_builder.as_ref() else {
            return Vec::new();
        };
        let scan = &cache_builder.scan;
        let state = |folder: &Folder, item: &FileEntry, blob: Oid| FileState {
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
        let all = scan
            .folders
            .iter()
            .flat_map(|folder| stored(scan, folder).map(move |(item, blob)| (folder, item, blob)));
        let others = all
            .map(|(folder, item, blob)| state(folder, item, blob))
            .filter(|one| !known.contains(&one.path));
        let left = most - states.len();
        states.extend(others.take(left));
        states
    }
}

/// When these files were last modified, each with its blob, as the last recorded capture of this worktree saw them.
pub(crate) fn last_seen(
    repo: &Repo,
    wanted: &BTreeSet<&RepoPath>,
) -> BTreeMap<RepoPath, (ObjectId, Timestamp)> {
    let mut names: BTreeMap<RepoPath, BTreeSet<&[u8]>> = BTreeMap::new();
    for path in wanted {
        names
            .entry(path.parent().unwrap_or_default())
            .or_default()
            .insert(split(path).1);
    }
    let cache = Cache::read(repo);
    let mut seen = BTreeMap::new();
    for folder in cache.folders() {
        let above = RepoPath::new(folder.path);
        let Some(names) = names.get(&above) else {
            continue;
        };
        seen.extend(
            folder
                .items()
                .filter(|item| names.contains(item.name))
                .map(|item| {
                    let at = Timestamp::from_millis(millis(item.stat.mtime));
                    (above.join(item.name), (ObjectId(item.oid.to_string()), at))
                }),
        );
    }
    seen
}
