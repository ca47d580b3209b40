//! The user's index: its file format, what it records of paths, and the lock under which it is replaced.
//! The index of a checkpoint is restored by [`restore`](super::restore).
//!
//! Here is whether git brought something: what it tracks in the index or in the commit that is checked out.

pub(super) mod index_file;
pub(super) mod locked_index;
pub(super) mod user_index;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use memchr::memmem;

use super::base::{Error, Result};
use super::odb::{Database, trees};
use super::repo::repository::Repo;
use index_file::IndexFile;

/// An index with more extensions than this one after the other is not git's.
const MOST_EXTENSIONS: usize = 64;
/// The name of the extension of a split index.
const LINK: &[u8] = b"link";

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
    if fs::read(index).map_or(true, |bytes| !may_hold(&bytes, wanted)) {
        return false;
    }
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

/// Whether one of `wanted` may stand in an index: it is somewhere in its bytes, or names need not stand there as they are, as in
/// version 4 and in an index that is split. Every command searches it: that is much quicker than to parse it.
fn may_hold(index: &[u8], wanted: &[Vec<u8>]) -> bool {
    !matches!(index.get(4..8), Some([0, 0, 0, 2 | 3]))
        || wanted
            .iter()
            .any(|name| memmem::find(index, name).is_some())
        || memmem::find_iter(index, LINK).any(|at| is_extension(index, at))
}

/// Whether an extension begins at `at` in an index: from there on extensions, each with its size, reach the checksum at the end.
/// Names of files hold the word as well.
fn is_extension(index: &[u8], mut at: usize) -> bool {
    for _ in 0..MOST_EXTENSIONS {
        if matches!(index.len().checked_sub(at), Some(20 | 32)) {
            return true;
        }
        let size = index.get(at.saturating_add(4)..);
        let Some(size) = size.and_then(|rest| rest.first_chunk()) else {
            return false;
        };
        at += 8 + u32::from_be_bytes(*size) as usize;
    }
    // Git writes a handful: what has more is read with care.
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_called_link_splits_no_index() {
        let holds = |bytes: &[u8], wanted: &str| may_hold(bytes, &[wanted.as_bytes().to_vec()]);
        let index =
            |extension: &[u8]| [b"DIRC\0\0\0\x02 a/link.c link/b ", extension, &[7; 20]].concat();
        assert!(!holds(&index(b""), "c/d"));
        assert!(!holds(&index(b"TREE\0\0\0\x04abcd"), "c/d"));
        assert!(holds(&index(b"link\0\0\0\x04abcd"), "c/d"));
        assert!(holds(&index(b"link\0\0\0\x04abcdTREE\0\0\0\0"), "c/d"));
        assert!(holds(b"DIRC\0\0\0\x04", "c/d"), "names are cut short there");
        assert!(holds(b"link", "c/d"), "whoever parses it finds nothing");
        assert!(
            holds(&index(&b"link\0\0\0\0".repeat(99)), "c/d"),
            "no endless chain is followed"
        );
    }
}
