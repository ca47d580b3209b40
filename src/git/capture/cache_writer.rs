//! Writes the cache: what a capture saw, so that the next one reads only what has changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::tree_builder::{BuiltTree, stored};
use crate::git::base::{GITLINK, Result};
use crate::git::index::user_index::UserIndex;
use crate::git::worktree::cache::{
    Builder, Cache, CachedEntry, Header, NewFolder, flag, walk_order,
};
use crate::git::worktree::scan::{Folder, Scan};
use crate::model::{Nested, ObjectId, RepoPath};

/// What a capture keeps until it is recorded.
#[derive(Debug)]
pub(super) struct CaptureCacheBuilder {
    pub scan: Scan,
    pub made: Vec<BuiltTree>,
    pub cache: Cache,
    /// The user's index; `None` where it is the one that the cache was made with.
    pub index: Option<UserIndex>,
}

/// Length in bytes of the longest path of a folder that is cached, which is the longest that a system call takes. As each
/// folder is stored with its whole path, the cache would otherwise grow with the square of the tree's depth.
const MAX_PATH: usize = 4096;

/// From so many files on a cache is written beside the rest of the work.
const WORTH_A_THREAD: usize = 2048;

/// A cache that is put together while its checkpoint is being recorded, and written once that is; dropped before, it is not
/// written.
#[derive(Debug)]
pub(super) struct CacheInTheMaking {
    recorded: Option<Sender<Header>>,
    thread: Option<JoinHandle<()>>,
}

impl CacheInTheMaking {
    /// Begins it; `None` where it is not worth a thread, or there is none to be had.
    pub(super) fn begin(seen: &Arc<CaptureCacheBuilder>) -> Option<Self> {
        if seen.scan.items.len() < WORTH_A_THREAD || seen.is_up_to_date() {
            return None;
        }
        let (recorded, told) = channel();
        let seen = Arc::clone(seen);
        let thread = thread::Builder::new()
            .spawn(move || seen.store_when(&told))
            .ok()?;
        Some(Self {
            recorded: Some(recorded),
            thread: Some(thread),
        })
    }

    /// The checkpoint is recorded.
    pub(super) fn store(&mut self, recorded: Header) {
        if let Some(thread) = self.recorded.take() {
            // Where the thread is gone, it said why.
            let _ = thread.send(recorded);
        }
    }
}

impl Drop for CacheInTheMaking {
    fn drop(&mut self) {
        self.recorded = None;
        if self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err())
        {
            tracing::debug!("the capture's cache was not written");
        }
    }
}

impl CaptureCacheBuilder {
    /// Whether the cache says all of this already.
    pub(super) fn is_up_to_date(&self) -> bool {
        let cache = &self.cache;
        cache.alive
            && self.index.is_none()
            && self.made.first().is_some_and(|root| root.same)
            && self.scan.folders.len() == cache.len()
            && self.scan.nested == cache.header.nested
            && !self
                .scan
                .folders
                .iter()
                .any(|folder| folder.is(flag::CHANGED))
    }

    fn store_when(&self, told: &Receiver<Header>) {
        let (folders, absent) = (self.folders(), self.absent());
        if let Ok(recorded) = told.recv()
            && let Err(error) = self.store_with(folders, absent, recorded)
        {
            tracing::debug!(%error, "the capture's cache could not be written");
        }
    }

    /// Replaces the worktree's cache, for a checkpoint that its reference holds.
    pub(super) fn store(&self, recorded: Header) -> Result<()> {
        self.store_with(self.folders(), self.absent(), recorded)
    }

    fn store_with(
        &self,
        folders: Builder,
        absent: BTreeSet<RepoPath>,
        recorded: Header,
    ) -> Result<()> {
        let header = Header {
            index: match &self.index {
                Some(index) => index.identity.clone(),
                None => self.cache.header.index.clone(),
            },
            gitlinks: match &self.index {
                Some(index) => index
                    .gitlinks()
                    .map(|(path, oid)| nested(path, oid))
                    .collect(),
                None => self.cache.header.gitlinks.clone(),
            },
            absent: absent.into_iter().collect(),
            nested: self.scan.nested.clone(),
            ..recorded
        };
        folders.store(&header, self.cache.root(), self.cache.file())
    }

    fn folders(&self) -> Builder {
        let mut builder = Builder::new();
        for (folder, made) in self.scan.folders.iter().zip(&self.made) {
            if folder.path.as_bytes().len() > MAX_PATH {
                continue;
            }
            // A file that could not be read is in the folder and not in the cache.
            let all_stored = stored(&self.scan, folder).count() == folder.items.len();
            let others: Vec<_> = self.scan.others(folder).collect();
            let new = NewFolder {
                path: folder.path.as_bytes(),
                rules: folder.rules,
                tree: made.tree,
                flags: flags_of(folder)
                    | if all_stored && self.cache.settled(&folder.stat) {
                        flag::SETTLED
                    } else {
                        0
                    },
                subtrees: made.subtrees,
                stat: folder.stat,
                others: &others,
            };
            let items = stored(&self.scan, folder).map(|(item, oid)| {
                // The cache keeps one device a folder.
                let settled = item.stat.dev == folder.stat.dev && self.cache.settled(&item.stat);
                let flags = item.flags & !flag::SAME | if settled { flag::SETTLED } else { 0 };
                CachedEntry {
                    name: self.scan.name(item),
                    stat: item.stat,
                    oid,
                    flags,
                }
            });
            builder.folder(&new, items);
        }
        builder
    }

    /// Paths of the user's index that are no captured file.
    fn absent(&self) -> BTreeSet<RepoPath> {
        let folders = &self.scan.folders;
        let find = |path: &[u8]| {
            folders
                .binary_search_by(|folder| walk_order(folder.path.as_bytes(), path))
                .ok()
        };
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
                let tracked = cached
                    .items()
                    .filter(|item| item.flags & flag::TRACKED != 0);
                let gone =
                    tracked.filter(|item| at.is_none_or(|at| !is_here(&folders[at], item.name)));
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
    Nested {
        path: RepoPath::new(path),
        commit: Some(ObjectId(oid.to_string())),
        checkpoint: None,
        mode: None,
    }
}
