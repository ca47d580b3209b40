//! Opens the folders of paths that come sorted: one after another lies in the same folder, or beside it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use super::openat;
use crate::model::path::RepoPath;

/// How many folders are open at most, of the 1,024 descriptors that a process has as a rule.
pub(in crate::git) const MAX_OPEN: usize = 64;

/// The last folder that was opened, with those above it.
///
/// An open folder stays the one that it was, wherever its name leads by then: nothing is ever reached through a symlink.
#[derive(Debug)]
pub(in crate::git) struct DirfdCache {
    root: Rc<OwnedFd>,
    /// Each with its path, every one inside the one before; of deep paths only the innermost.
    open: VecDeque<(RepoPath, Rc<OwnedFd>)>,
}

impl DirfdCache {
    /// Begins at the root of the work tree.
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self {
            root: Rc::new(root),
            open: VecDeque::new(),
        }
    }

    /// Forgets what is open: names changed.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    /// Opens a folder, one component at a time; a symlink on the way is an error (`ENOTDIR` or `ELOOP`).
    pub(crate) fn open(&mut self, folder: &RepoPath) -> io::Result<Rc<OwnedFd>> {
        let bytes = folder.as_bytes();
        let inside = |above: &RepoPath| {
            bytes
                .strip_prefix(above.as_bytes())
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        let shared = self
            .open
            .iter()
            .take_while(|(path, _)| inside(path))
            .count();
        self.open.truncate(shared);
        let mut current = self
            .open
            .back()
            .map_or_else(|| Rc::clone(&self.root), |(_, dir)| Rc::clone(dir));
        let mut path = self
            .open
            .back()
            .map_or_else(RepoPath::default, |(path, _)| path.clone());
        let rest = &bytes[path.as_bytes().len()..];
        for name in rest
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            current = Rc::new(openat::open_folder(&current, name)?);
            path = path.join(name);
            if self.open.len() == MAX_OPEN {
                self.open.pop_front();
            }
            self.open.push_back((path.clone(), Rc::clone(&current)));
        }
        Ok(current)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_deep_path_holds_few_descriptors() {
        let root = tempfile::tempdir().unwrap();
        let mut folders = DirfdCache::new(openat::open_root(root.path()).unwrap());
        let deep = ["d"; 200].join("/");
        fs::create_dir_all(root.path().join(&deep)).unwrap();
        for depth in (0..200).rev().chain([199]) {
            let path = RepoPath::new(["d"].repeat(depth).join("/"));
            let open = folders.open(&path).unwrap();
            let real = fs::metadata(path.below(root.path())).unwrap();
            assert_eq!(
                rustix::fs::fstat(&open).unwrap().st_ino,
                std::os::unix::fs::MetadataExt::ino(&real),
                "{depth}"
            );
            assert!(folders.open.len() <= MAX_OPEN);
        }
    }

    #[test]
    fn folders_that_share_the_beginning_of_a_name_are_told_apart() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a/b/c", "a/bc", "ab"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("a", root.path().join("link")).unwrap();
        let mut folders = DirfdCache::new(openat::open_root(root.path()).unwrap());
        for folder in ["", "a/b/c", "a/b", "a/bc", "a", "ab", "a/b/c", ""] {
            let open = folders.open(&RepoPath::from(folder)).unwrap();
            let found = rustix::fs::fstat(&open).unwrap().st_ino;
            let real = std::os::unix::fs::MetadataExt::ino(
                &fs::metadata(root.path().join(folder)).unwrap(),
            );
            assert_eq!(found, real, "{folder}");
        }
        assert!(
            folders.open(&RepoPath::from("link/b")).is_err()
                && folders.open(&RepoPath::from("a/x")).is_err()
        );
    }
}
