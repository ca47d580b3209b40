//! Writes the cache: what a capture saw, so that the next one reads only what has changed.

use std::collections::BTreeSet;

use super::tree_builder::{BuiltTree, stored};
use crate::git::base::error::Result;
use crate::git::base::modes::GITLINK;
use crate::git::index::user_index::UserIndex;
use crate::git::worktree::cache::{Builder, Cache, CachedEntry, Header, NewFolder, flag, walk_order};
use crate::git::worktree::scan::{Folder, Scan};
use crate::model::manifest::{IndexExtra, Nested};
use crate::model::path::RepoPath;
use crate::model::snapshot::ObjectId;

/// What a capture keeps until it is recorded.
#[derive(Debug)]
pub(super) struct CaptureCacheBuilder {
    pub scan: Scan,
    pub made: Vec<BuiltTree>,
    pub cache: Cache,
    /// The user's index; `None` where it is the one that the cache was made with.
    pub index: Option<UserIndex>,
}

/// What a cache says of the checkpoint that it is stored with.
pub(super) struct RecordedCheckpoint<'a> {
    pub reference: &'a str,
    pub commit: &'a ObjectId,
    pub tree: &'a ObjectId,
    pub index_tree: Option<&'a ObjectId>,
    pub index_extras: &'a [IndexExtra],
}

impl CaptureCacheBuilder {
    /// Whether the cache says all of this already.
    pub fn is_up_to_date(&self) -> bool {
        let cache = &self.cache;
        cache.alive
            && self.index.is_none()
            && self.made.first().is_some_and(|root| root.same)
            && self.scan.folders.len() == cache.len()
            && self.scan.nested == cache.header.nested
            && !self.scan.folders.iter().any(|folder| folder.is(flag::CHANGED))
    }

    /// Replaces the worktree's cache, for a checkpoint that its reference holds.
    pub fn store(&self, recorded: &RecordedCheckpoint<'_>) -> Result<()> {
        let header = Header {
            reference: recorded.reference.to_owned(),
            commit: recorded.commit.0.clone(),
            tree: recorded.tree.0.clone(),
            index: match &self.index {
                Some(index) => index.identity.clone(),
                None => self.cache.header.index.clone(),
            },
            index_tree: recorded.index_tree.cloned(),
            index_extras: recorded.index_extras.to_vec(),
            gitlinks: match &self.index {
                Some(index) => index.gitlinks().map(|(path, oid)| nested(path, oid)).collect(),
                None => self.cache.header.gitlinks.clone(),
            },
            absent: self.absent().into_iter().collect(),
            nested: self.scan.nested.clone(),
        };
        let mut builder = Builder::new(&header)?;
        for (folder, made) in self.scan.folders.iter().zip(&self.made) {
            // A file that could not be read is in the folder and not in the cache.
            let all_stored = stored(&self.scan, folder).count() == folder.items.len();
            let others: Vec<_> = self.scan.others(folder).collect();
            let new = NewFolder {
                path: folder.path.as_bytes(),
                rules: folder.rules,
                tree: made.tree,
                flags: flags_of(folder)
                    | if all_stored && self.cache.settled(&folder.stat) { flag::SETTLED } else { 0 },
                subtrees: made.subtrees,
                stat: folder.stat,
                others: &others,
            };
            let items = stored(&self.scan, folder).map(|(item, oid)| {
                // The cache keeps one device a folder.
                let settled = item.stat.dev == folder.stat.dev && self.cache.settled(&item.stat);
                let flags = item.flags & !flag::SAME | if settled { flag::SETTLED } else { 0 };
                CachedEntry { name: self.scan.name(item), stat: item.stat, oid, flags }
            });
            builder.folder(&new, items);
        }
        builder.store(self.cache.root(), self.cache.file())
    }

    /// Paths of the user's index that are no captured file.
    fn absent(&self) -> BTreeSet<RepoPath> {
        let folders = &self.scan.folders;
        let find = |path: &[u8]| folders.binary_search_by(|folder| walk_order(folder.path.as_bytes(), path)).ok();
        let is_here = |folder: &Folder, name: &[u8]| {
            let items = self.scan.items(folder);
            let found = items.binary_search_by(|item| self.scan.name(item).cmp(name));
            found.is_ok_and(|at| items[at].flags & flag::TRACKED != 0)
        };
        let Some(index) = &self.index else {
            let mut absent: BTreeSet<RepoPath> = self.cache.header.absent.iter().cloned().collect();
            for cached in self.cache.folders() {
                let at = find(cached.path);
                if at.is_some_and(|at| self.made[at].same) {
                    continue;
                }
                let tracked = cached.items().filter(|item| item.flags & flag::TRACKED != 0);
                let gone = tracked.filter(|item| at.is_none_or(|at| !is_here(&folders[at], item.name)));
                absent.extend(gone.map(|item| RepoPath::new(cached.path).join(item.name)));
            }
            absent.retain(|path| {
                let at = find(path.parent().unwrap_or_default().as_bytes());
                at.is_none_or(|at| !is_here(&folders[at], crate::git::base::openat::split(path).1))
            });
            return absent;
        };
        let mut absent = BTreeSet::new();
        for (folder, inside) in index.folders() {
            let at = find(folder);
            for (name, _) in inside.iter().filter(|(_, mode)| *mode != GITLINK) {
                if at.is_none_or(|at| !is_here(&folders[at], name)) {
                    absent.insert(RepoPath::new(folder).join(name));
                }
            }
        }
        absent
    }
}

fn flags_of(folder: &Folder) -> u8 {
    folder.flags & (flag::IGNORED | flag::WANTED | flag::COMPLETE)
}

fn nested(path: &[u8], oid: git2::Oid) -> Nested {
    Nested { path: RepoPath::new(path), commit: Some(ObjectId(oid.to_string())), checkpoint: None, mode: None }
}
