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
    let is_plain = matches!(bytes.get(4..8), Some([0, 0, 0, 2 | 3])) && !may_be_split(&bytes);
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

/// Whether the index may have an extension `link`: one from which on extensions, each with its size, reach the checksum at the
/// end. Names of files hold the word as well.
fn may_be_split(index: &[u8]) -> bool {
    let reaches_end = |mut rest: &[u8]| {
        loop {
            if matches!(rest.len(), 20 | 32) {
                return true;
            }
            let Some((&[_, _, _, _, a, b, c, d], content)) = rest.split_first_chunk() else { return false };
            let Some(next) = content.get(u32::from_be_bytes([a, b, c, d]) as usize..) else { return false };
            rest = next;
        }
    };
    memchr::memmem::find_iter(index, b"link").any(|at| reaches_end(&index[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_called_link_splits_no_index() {
        let index = |extension: &[u8]| [b"DIRC\0\0\0\x02 a/link.c link/b ", extension, &[7; 20]].concat();
        assert!(!may_be_split(&index(b"")));
        assert!(!may_be_split(&index(b"TREE\0\0\0\x04abcd")));
        assert!(may_be_split(&index(b"link\0\0\0\x04abcd")));
        assert!(may_be_split(&index(b"link\0\0\0\x04abcdTREE\0\0\0\0")));
        assert!(!may_be_split(b"link"));
    }
}
