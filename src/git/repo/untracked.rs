//! The paths that the commit which is checked out does not have, noted where no clone brings it along.
//!
//! Every command asks that about its state, and to ask git's library takes as long as opening the repository once more. A
//! commit never changes: what is noted of it stays true.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use git2::Oid;

use crate::durable::Root;

const FILE: &str = "untracked";

/// What is noted, and what was found out in this process and is not yet.
pub(in crate::git) struct Untracked {
    root: Root,
    file: PathBuf,
    found: RefCell<Option<String>>,
}

impl Untracked {
    /// What is noted in `folder`.
    pub fn new(root: &Root, folder: &Path) -> Self {
        Self { root: root.clone(), file: folder.join(FILE), found: RefCell::default() }
    }

    /// Whether `commit` has none of these `paths`; `look` is asked where that is not noted. What it cannot find out is not
    /// noted, and counts as not there.
    pub fn lacks(&self, commit: Oid, paths: &[Vec<u8>], look: impl FnOnce() -> Option<bool>) -> bool {
        let paths = paths.iter().map(|path| format!("{}\n", path.escape_ascii()));
        let note: String = std::iter::once(format!("{commit}\n")).chain(paths).collect();
        let noted = self.root.read_if_possible(&self.file).ok().flatten();
        if noted.is_some_and(|noted| noted == note.as_bytes()) {
            return true;
        }
        let lacks = look();
        self.found.replace(Some(note).filter(|_| lacks == Some(true)));
        lacks.unwrap_or(true)
    }

    /// Writes down what was found out. The caller holds the worktree's lock. Without it the next command looks again.
    pub fn write(&self) {
        if let Some(note) = self.found.take()
            && let Err(error) = self.root.overwrite(&self.file, note.as_bytes())
        {
            tracing::debug!(%error, "what the commit lacks was not noted");
        }
    }
}
