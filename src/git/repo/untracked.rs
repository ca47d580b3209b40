//! The paths that the commit which is checked out and the index do not have, noted where no clone brings it along.
//!
//! Every command asks that about its state, and to ask git's library takes as long as opening the repository once more, to
//! search a large index longer. A commit never changes, nor does an index of the same identity: what is noted stays true.

use std::cell::{OnceCell, RefCell};
use std::path::{Path, PathBuf};

use crate::durable::Root;

const FILE: &str = "untracked";

/// What is noted, and what was found out in this process and is not yet: lines of what lacks something, its identity and the
/// paths, with tabs between them.
pub(in crate::git) struct Untracked {
    root: Root,
    file: PathBuf,
    noted: OnceCell<String>,
    found: RefCell<Vec<String>>,
}

impl Untracked {
    /// What is noted in `folder`.
    pub(crate) fn new(root: &Root, folder: &Path) -> Self {
        Self {
            root: root.clone(),
            file: folder.join(FILE),
            noted: OnceCell::new(),
            found: RefCell::default(),
        }
    }

    /// Whether the `kind` of this `identity` has none of these `paths`; `look` is asked where that is not noted. What it
    /// cannot find out is not noted, and counts as not there.
    pub(crate) fn lacks(
        &self,
        kind: &str,
        identity: &str,
        paths: &[Vec<u8>],
        look: impl FnOnce() -> Option<bool>,
    ) -> bool {
        let paths = paths
            .iter()
            .map(|path| format!("\t{}", path.escape_ascii()));
        let line: String = std::iter::once(format!("{kind}\t{identity}"))
            .chain(paths)
            .collect();
        if self.noted().lines().any(|noted| noted == line) {
            return true;
        }
        let lacks = look();
        if lacks == Some(true) {
            self.found.borrow_mut().push(line);
        }
        lacks.unwrap_or(true)
    }

    fn noted(&self) -> &str {
        let read = || self.root.read_if_possible(&self.file).ok().flatten();
        self.noted.get_or_init(|| {
            read()
                .and_then(|noted| String::from_utf8(noted).ok())
                .unwrap_or_default()
        })
    }

    /// Writes down what was found out, in the place of what was noted of the same kind. The caller holds the worktree's
    /// lock. Without it the next command looks again.
    pub(crate) fn write(&self) {
        let found = self.found.take();
        if found.is_empty() {
            return;
        }
        let kind = |line: &str| line.split('\t').next().map(str::to_owned);
        let stays = self
            .noted()
            .lines()
            .filter(|line| !found.iter().any(|new| kind(new) == kind(line)));
        let note: String = stays
            .chain(found.iter().map(String::as_str))
            .flat_map(|line| [line, "\n"])
            .collect();
        if let Err(error) = self.root.overwrite(&self.file, note.as_bytes()) {
            tracing::debug!(%error, "what is not tracked was not noted");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_is_not_looked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let new = || Untracked::new(&Root::own(folder.path()), folder.path());
        let noted = |kind: &str, identity: &str, paths: &[&[u8]]| {
            let paths: Vec<Vec<u8>> = paths.iter().map(|path| path.to_vec()).collect();
            let (all, mut asked) = (new(), false);
            assert!(all.lacks(kind, identity, &paths, || {
                asked = true;
                Some(true)
            }));
            all.write();
            !asked
        };
        assert!(!noted("commit", "1", &[b"a", b"b"]));
        assert!(!noted("index", "1", &[b"a\tb\n\xff"]));
        assert!(noted("commit", "1", &[b"a", b"b"]) && noted("index", "1", &[b"a\tb\n\xff"]));
        for (identity, paths) in [
            ("2", &[&b"a"[..], b"b"][..]),
            ("1", &[b"a"]),
            ("1", &[b"b", b"a"]),
            ("1", &[b"a\tb"]),
        ] {
            assert!(!noted("commit", identity, paths), "{identity} {paths:?}");
        }
        assert!(
            noted("index", "1", &[b"a\tb\n\xff"]),
            "that of another kind stays"
        );
        // What is there, or is not known, is not noted.
        for looked in [Some(false), None] {
            let all = new();
            assert_eq!(
                all.lacks("index", "3", &[b"a".to_vec()], || looked),
                looked.is_none()
            );
            all.write();
            assert!(!new().noted().contains("index\t3"));
        }
    }
}
