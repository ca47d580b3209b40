//! The work tree on disk: walks it, applies ignore rules and limits, reads contents.
//! Knows from its cache what has not changed, and which files nothing but the work tree has. What becomes of the files that were found, trees and a manifest, belongs in
//! [`capture`](super::capture).

pub(super) mod cache;
pub(super) mod ignore_rules;
pub(super) mod reading;
pub(super) mod scan;
mod untracked_limit;
pub(super) mod walk;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{Status, StatusOptions};
use rustix::fs::{FileType, fstat};

use super::base::{Error, FileStat, Result, openat};
use super::index::locked_index::excerpt;
use super::repo::repository::Repo;
use crate::model::path::RepoPath;

/// The regular files that stdout and stderr of this process are open on.
pub(crate) struct Outputs<'r> {
    repo: &'r Repo,
    /// Device and inode.
    files: Vec<(u64, u64)>,
}

impl Outputs<'_> {
    /// Whether a path of the work tree is one of them, by whatever name.
    pub(crate) fn has(&self, path: &RepoPath) -> bool {
        if self.files.is_empty() {
            return false;
        }
        let (parent, name) = openat::split(path);
        let root = openat::open_root(self.repo.workdir()).ok();
        let folder = root.and_then(|root| openat::open_path(&root, &parent).ok());
        let stat = folder.and_then(|folder| openat::stat(&folder, name).ok().flatten());
        stat.is_some_and(|stat| self.files.contains(&(stat.dev, stat.ino)))
    }

    /// The paths of the work tree that they were opened by, as far as the system shows.
    pub(crate) fn paths(&self) -> Vec<RepoPath> {
        if self.files.is_empty() {
            return Vec::new();
        }
        let opened = ["/proc/self/fd/1", "/proc/self/fd/2"].map(std::fs::read_link);
        let paths: BTreeSet<RepoPath> = opened
            .iter()
            .flatten()
            .filter_map(|place| place.strip_prefix(self.repo.workdir()).ok())
            .map(|path| RepoPath::new(path.as_os_str().as_bytes()))
            .filter(|path| self.has(path))
            .collect();
        paths.into_iter().collect()
    }
}

impl Repo {
    /// The outputs of this process.
    pub(crate) fn own_outputs(&self) -> Outputs<'_> {
        let open = [fstat(io::stdout()), fstat(io::stderr())];
        let files = open.into_iter().flatten().map(FileStat::from);
        let files = files.filter(|stat| stat.kind() == FileType::RegularFile);
        Outputs {
            repo: self,
            files: files.map(|stat| (stat.dev, stat.ino)).collect(),
        }
    }

    /// Those of `paths` that HEAD does not have as they are: changed, staged, deleted, untracked or ignored. A path where nothing
    /// is, and where HEAD has nothing, is none of them; nor is a folder.
    pub(crate) fn uncommitted(&self, paths: &BTreeSet<RepoPath>) -> Result<BTreeSet<RepoPath>> {
        let is_folder = |path: &RepoPath| {
            let there = path.below(self.workdir()).symlink_metadata();
            there.is_ok_and(|there| there.is_dir())
        };
        let mut options = StatusOptions::new();
        options
            .disable_pathspec_match(true)
            .include_untracked(true)
            .recurse_untracked_dirs(true)
            .include_ignored(true)
            .recurse_ignored_dirs(true);
        let mut wanted = BTreeSet::new();
        for path in paths.iter().filter(|path| !is_folder(path)) {
            options.pathspec(Path::new(OsStr::from_bytes(path.as_bytes())));
            wanted.insert(path);
        }
        // Without a path it would be about all there are.
        if wanted.is_empty() {
            return Ok(BTreeSet::new());
        }
        let failed = || Error::git("compare the work tree with HEAD");
        let names: BTreeSet<&[u8]> = wanted.iter().map(|path| path.as_bytes()).collect();
        // Of attributes whose file is not there, the index has them.
        let mut index = excerpt(self, |path| {
            names.contains(path) || path.ends_with(b".gitattributes")
        })?;
        self.inner.set_index(&mut index).map_err(failed())?;
        let statuses = self.inner.statuses(Some(&mut options)).map_err(failed())?;
        let changed = statuses
            .iter()
            .filter(|entry| entry.status() != Status::CURRENT)
            .map(|entry| RepoPath::new(entry.path_bytes()));
        Ok(changed.filter(|path| wanted.contains(path)).collect())
    }
}
