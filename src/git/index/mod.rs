//! The user's index: its file format, what it records of paths, and the lock under which it is replaced.
//! The index of a checkpoint is restored by [`restore`](super::restore).
//!
//! Here is whether git brought something: what it tracks in the index or in the commit that is checked out.

pub(super) mod index_file;
pub(super) mod locked_index;
pub(super) mod user_index;

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::base::{Error, Result};
use super::odb::{Database, trees};
use super::repo::repository::Repo;
use index_file::IndexFile;

impl Repo {
    /// Whether git tracks one of `names` (files, or folders with something in them) in the folder `dir`, which may lie in this
    /// work tree or in the main one. What cannot be read tracks nothing: a clone does not bring a broken index.
    pub(crate) fn tracks_any(&self, dir: &Path, names: &[&str]) -> bool {
        if self.is_private() {
            return false;
        }
        let root = self.main_worktree();
        let (inner, below) = match (
            dir.strip_prefix(self.workdir()),
            self.main_repository(),
            dir.strip_prefix(&root),
        ) {
            (Ok(below), ..) => (&self.inner, below),
            (_, Some(main), Ok(below)) => (main, below),
            _ => return false,
        };
        let wanted: Vec<Vec<u8>> = names
            .iter()
            .map(|name| below.join(name).as_os_str().as_bytes().to_vec())
            .collect();
        commit_has_any(inner, &wanted).unwrap_or(false)
            || index_has_any(self, &inner.path().join("index"), &wanted)
    }
}

fn commit_has_any(inner: &git2::Repository, wanted: &[Vec<u8>]) -> Result<bool> {
    let Some(head) = inner.head().ok().and_then(|head| head.target()) else {
        return Ok(false);
    };
    let database = Database::of(inner)?;
    database.check(head)?;
    let commit = inner.find_commit(head).map_err(Error::git("read HEAD"))?;
    for path in wanted {
        if trees::find_path(&database, commit.tree_id(), path)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn index_has_any(repo: &Repo, index: &Path, wanted: &[Vec<u8>]) -> bool {
    let Ok(Some(index)) = IndexFile::read(repo, index) else {
        return false;
    };
    let is_wanted = |path: &[u8]| {
        let mut rests = wanted
            .iter()
            .filter_map(|name| path.strip_prefix(name.as_slice()));
        rests.any(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    index.entries().any(|entry| is_wanted(entry.path))
}
