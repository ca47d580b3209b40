//! Whether git brought something: what it tracks in the index or in the commit that is checked out.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::index_file::IndexFile;
use crate::git::repo::repository::Repo;

/// Whether git tracks one of `names` (files, or folders with something in them) in the folder `dir`, which may lie in this
/// work tree or in the main one. What cannot be read tracks nothing: a clone does not bring a broken index.
pub fn tracks_any(repo: &Repo, dir: &Path, names: &[&str]) -> bool {
    if repo.is_private() {
        return false;
    }
    let root = repo.main_worktree();
    let (inner, below) = match (dir.strip_prefix(repo.workdir()), repo.main_repository(), dir.strip_prefix(&root)) {
        (Ok(below), ..) => (&repo.inner, below),
        (_, Some(main), Ok(below)) => (main, below),
        _ => return false,
    };
    let tree = inner.head().and_then(|head| head.peel_to_tree()).ok();
    let in_head = |name: &&str| tree.as_ref().is_some_and(|tree| tree.get_path(&below.join(name)).is_ok());
    names.iter().any(in_head) || index_has_any(repo, &inner.path().join("index"), below, names)
}

fn index_has_any(repo: &Repo, index: &Path, below: &Path, names: &[&str]) -> bool {
    let Ok(bytes) = fs::read(index) else { return false };
    let wanted: Vec<Vec<u8>> = names.iter().map(|name| below.join(name).as_os_str().as_bytes().to_vec()).collect();
    // Names stand in the file as they are, but for version 4 and for an index that is split.
    let is_plain = matches!(bytes.get(4..8), Some([0, 0, 0, 2 | 3])) && memchr::memmem::find(&bytes, b"link").is_none();
    if is_plain && !wanted.iter().any(|name| memchr::memmem::find(&bytes, name).is_some()) {
        return false;
    }
    let Ok(Some(index)) = IndexFile::read(repo, index) else { return false };
    let is_wanted = |path: &[u8]| {
        let mut rests = wanted.iter().filter_map(|name| path.strip_prefix(name.as_slice()));
        rests.any(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    index.entries().any(|entry| is_wanted(entry.path))
}
