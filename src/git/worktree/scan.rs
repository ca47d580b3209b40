//! What a walk of the work tree found, and what it is asked for: data only, nothing is read here.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use git2::Oid;

use super::cache::{Cache, Other};
use crate::git::base::openat::FileStat;
use crate::git::index::user_index::UserIndex;
use crate::git::repo::{Outer, Repo, nested};
use crate::model::path::{NESTED, UNREADABLE};
use crate::model::{CaptureRules, Nested, PathReason, RepoPath};

/// What is known of a file's content before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) enum Content {
    /// It is this blob, which is stored.
    Known(Oid),
    /// It is this blob, if that is still stored.
    Cached(Oid),
    /// git's index says so, for content that no filter changes.
    FromIndex(Oid),
    /// It has to be read.
    Unread,
    /// It could not be read, or is gone.
    Lost,
}

/// A file or symlink to capture.
#[derive(Clone, Debug)]
pub(in crate::git) struct FileEntry {
    start: u32,
    length: u8,
    /// Bits of [`flag`](super::cache::flag).
    pub flags: u8,
    pub stat: FileStat,
    pub content: Content,
}

/// The cached tree of a folder, and what it was made of.
#[derive(Clone, Copy, Debug)]
pub(in crate::git) struct CachedTree {
    pub tree: Option<Oid>,
    pub subtrees: u32,
    pub items: u32,
}

/// A folder of the work tree.
#[derive(Debug)]
pub(in crate::git) struct Folder {
    pub path: RepoPath,
    pub stat: FileStat,
    /// Where its files and symlinks are, sorted by name.
    pub items: Range<usize>,
    /// Where its other names are.
    pub others: Range<usize>,
    /// The id of the ignore rules in force in it.
    pub rules: Oid,
    /// Bits of [`flag`](super::cache::flag).
    pub flags: u8,
    /// What the cache has of it, if that can be relied on.
    pub cached: Option<CachedTree>,
}

impl Folder {
    /// Whether all of these bits of [`flag`](super::cache::flag) are set.
    pub(crate) fn is(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

/// What a work tree holds, by the rules.
#[derive(Debug, Default)]
pub(in crate::git) struct Scan {
    /// In the order of a walk: each folder before all that is in it. The first is the work tree itself.
    pub folders: Vec<Folder>,
    /// The files and symlinks of all folders, those of one side by side.
    pub items: Vec<FileEntry>,
    /// What is no item: where its name is, and what it represents.
    others: Vec<(u32, u8, Other)>,
    /// Names, one after the other.
    names: Vec<u8>,
    /// Repositories inside, sorted.
    pub nested: Vec<Nested>,
    pub skipped: Vec<PathReason>,
    /// Files that changed while they were read.
    pub unsettled: Vec<RepoPath>,
    /// Whether something that should be captured could not be examined.
    pub partial: bool,
}

/// What a walk is given beside the work tree.
#[derive(Clone, Copy)]
pub(in crate::git) struct Scope<'a> {
    pub repo: &'a Repo,
    pub cache: &'a Cache,
    /// The user's index; `None` where it is the one that the cache was made with.
    pub index: Option<&'a UserIndex>,
    pub rules: &'a CaptureRules,
    /// Paths to take even when they are ignored.
    pub also: &'a BTreeSet<RepoPath>,
    /// Folders to leave out because there is too much in them, each with how many files it holds.
    pub left_out: &'a BTreeMap<RepoPath, u64>,
}

impl Repo {
    /// The folders that are no part of the work tree, relative to it: for a restore plan, which must not touch them either.
    pub fn left_out(&self, rules: &CaptureRules) -> BTreeSet<RepoPath> {
        let absolute =
            |folder: &PathBuf| std::fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
        let inside = rules
            .excluded_dirs
            .iter()
            .map(absolute)
            .filter_map(|folder| {
                let relative = folder.strip_prefix(self.workdir()).ok()?;
                Some(RepoPath::new(relative.as_os_str().as_bytes()))
            });
        inside.filter(|path| !path.as_bytes().is_empty()).collect()
    }
}

impl Scan {
    /// The files and symlinks of a folder.
    pub(crate) fn items(&self, folder: &Folder) -> &[FileEntry] {
        &self.items[folder.items.clone()]
    }

    /// The name of an item.
    pub(crate) fn name(&self, item: &FileEntry) -> &[u8] {
        &self.names[item.start as usize..item.start as usize + usize::from(item.length)]
    }

    /// Adds to the folder that is being read.
    pub(crate) fn add(
        &mut self,
        folder: &mut Folder,
        name: &[u8],
        flags: u8,
        stat: FileStat,
        content: Content,
    ) {
        let (begin, length) = self.add_name(name);
        self.items.push(FileEntry {
            start: begin,
            length,
            flags,
            stat,
            content,
        });
        folder.items.end = self.items.len();
    }

    /// Notes what a name that is no item represents in the folder that is being read.
    pub(crate) fn add_other(&mut self, folder: &mut Folder, name: &[u8], what: Other) {
        let (begin, length) = self.add_name(name);
        self.others.push((begin, length, what));
        folder.others.end = self.others.len();
    }

    /// How many of a folder's names are noted.
    pub(crate) fn entry_count(folder: &Folder) -> usize {
        folder.items.len() + folder.others.len()
    }

    /// Forgets what was noted of the folder that is being read.
    pub(crate) fn discard(&mut self, folder: &mut Folder) {
        self.items.truncate(folder.items.start);
        self.others.truncate(folder.others.start);
        (folder.items.end, folder.others.end) = (folder.items.start, folder.others.start);
    }

    /// Where what is added to the folder that is read next begins.
    pub(crate) fn next(&self) -> (Range<usize>, Range<usize>) {
        (
            self.items.len()..self.items.len(),
            self.others.len()..self.others.len(),
        )
    }

    /// The names of a folder that are no items.
    pub(crate) fn others(&self, folder: &Folder) -> impl Iterator<Item = (&[u8], Other)> {
        let others = self.others[folder.others.clone()].iter();
        others.map(|(begin, length, what)| {
            (
                &self.names[*begin as usize..*begin as usize + usize::from(*length)],
                *what,
            )
        })
    }

    fn add_name(&mut self, name: &[u8]) -> (u32, u8) {
        // Names of one thread that reach 4 GiB would need far more memory for everything else.
        let begin = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.extend_from_slice(name);
        (begin, u8::try_from(name.len()).unwrap_or(u8::MAX))
    }

    /// Takes over what another thread found.
    pub(super) fn join(mut self, other: Self) -> Self {
        let (items, others) = (self.items.len(), self.others.len());
        let names = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.names.extend(other.names);
        self.items
            .extend(other.items.into_iter().map(|item| FileEntry {
                start: item.start.saturating_add(names),
                ..item
            }));
        let renamed =
            |(begin, length, what): (u32, u8, Other)| (begin.saturating_add(names), length, what);
        self.others.extend(other.others.into_iter().map(renamed));
        let moved = |range: &Range<usize>, by: usize| range.start + by..range.end + by;
        self.folders
            .extend(other.folders.into_iter().map(|folder| Folder {
                items: moved(&folder.items, items),
                others: moved(&folder.others, others),
                ..folder
            }));
        self.nested.extend(other.nested);
        self.skipped.extend(other.skipped);
        self.unsettled.extend(other.unsettled);
        self.partial |= other.partial;
        self
    }

    /// Notes a repository inside.
    pub(crate) fn nested(
        &mut self,
        outer: Outer<'_>,
        folder: &Folder,
        is_empty: bool,
        link: Option<Oid>,
    ) {
        let commit = if is_empty {
            link
        } else {
            nested::head(outer, &folder.path)
        };
        // A submodule that was never checked out is an empty folder: nothing is left out.
        if !is_empty {
            self.skip(folder.path.clone(), NESTED, None);
        }
        let commit = commit.map(|oid| crate::model::manifest::ObjectId(oid.to_string()));
        self.nested.push(Nested {
            path: folder.path.clone(),
            commit,
            checkpoint: None,
            mode: Some(folder.stat.permissions()),
        });
    }

    /// Gives paths other permissions than those that were found.
    pub(crate) fn set_modes(&mut self, mode: impl Fn(&RepoPath) -> Option<u32>) {
        for folder in &mut self.folders {
            for at in folder.items.clone() {
                let item = &mut self.items[at];
                let name = &self.names
                    [item.start as usize..item.start as usize + usize::from(item.length)];
                if let Some(mode) = mode(&folder.path.join(name)) {
                    item.stat.set_permissions(mode);
                }
            }
            if let Some(mode) = mode(&folder.path) {
                folder.stat.set_permissions(mode);
            }
        }
    }

    pub(crate) fn skip(&mut self, path: RepoPath, reason: &str, size: Option<u64>) {
        self.skipped.push(PathReason {
            path,
            reason: reason.to_owned(),
            size,
            files: None,
        });
    }

    pub(crate) fn unreadable(&mut self, path: RepoPath, error: &io::Error) {
        self.partial = true;
        self.skip(path, &format!("{UNREADABLE}: {error}"), None);
    }
}
