//! Repositories inside the work tree: recognised, never entered.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::dirs;
use crate::model::manifest::Nested;
use crate::model::path::RepoPath;

/// Whether a folder is the root of a repository: its `.git` is a folder with a HEAD, or a file that names one.
pub(super) fn is_repository(dir: &OwnedFd) -> bool {
    match dirs::stat(dir, b".git") {
        Ok(Some(stat)) if stat.kind() == FileType::Directory => {
            let inside = dirs::open_folder(dir, b".git");
            inside.is_ok_and(|inside| {
                let has = |name: &[u8]| matches!(dirs::stat(&inside, name), Ok(Some(_)));
                has(b"HEAD") && has(b"objects")
            })
        }
        Ok(Some(stat)) if stat.kind() == FileType::RegularFile => {
            let mut beginning = Vec::new();
            let read = dirs::open_file(dir, b".git").and_then(|file| file.take(8).read_to_end(&mut beginning));
            read.is_ok() && beginning == b"gitdir: "
        }
        _ => false,
    }
}

/// The commit that the HEAD of the repository in `folder` is at; `None` if it has none or cannot be read.
pub(super) fn head(folder: &Path) -> Option<git2::Oid> {
    git2::Repository::open(folder).ok()?.head().ok()?.target()
}

/// The commit that a link names.
pub(super) fn commit_of(link: &Nested) -> Option<git2::Oid> {
    link.commit.as_ref().and_then(|commit| git2::Oid::from_str(&commit.0).ok())
}

/// The place of a path of the work tree.
pub(super) fn absolute(root: &Path, path: &RepoPath) -> PathBuf {
    root.join(std::ffi::OsStr::from_bytes(path.as_bytes()))
}
