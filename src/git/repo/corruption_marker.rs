//! Marks the object database as suspect once damage was found in it.
//!
//! From then on neither a worktree's cache nor the user's index is believed: its next capture reads every object that it
//! does not write, and writes again what is damaged or missing and still lies in the work tree. The first checkpoint of
//! the worktree after that ends it. The note is not synced: whoever finds the damage once more writes it again.

use std::io;
use std::path::{Path, PathBuf};

use super::repository::{OWN, Repo};
use crate::durable::{Kind, Root};
use crate::git::base::error::{Error, Result};

const FILE: &str = "doubt";

/// Notes for every worktree of the repository that objects are damaged.
pub fn mark_odb_suspect(repo: &Repo) -> Result<()> {
    let worktrees = repo.common_dir().join("worktrees");
    let mut roots = vec![repo.shared().clone()];
    match repo.shared().list(&worktrees) {
        Ok(entries) => {
            let folders = entries.into_iter().filter(|(_, kind)| *kind == Kind::Directory);
            roots.extend(folders.map(|(name, _)| repo.shared().inside(&worktrees.join(name))));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(Error::io(worktrees, source)),
    }
    for root in roots {
        let path = note(&root);
        // One without a folder of ours was never captured: it has nothing to be believed.
        if root.has(Path::new(OWN)).map_err(Error::at(&path))? {
            root.create(&path).map_err(Error::at(&path))?;
        }
    }
    Ok(())
}

/// Whether damage was found since the last checkpoint of this worktree.
pub fn is_odb_suspect(repo: &Repo) -> bool {
    is_suspect(repo.own())
}

/// Whether damage was found since the last checkpoint of the worktree whose git folder this is.
pub(in crate::git) fn is_suspect(own: &Root) -> bool {
    !matches!(own.kind(&note(own)), Ok(None))
}

/// Ends it, after a capture that began with it was recorded.
pub(in crate::git) fn clear(own: &Root) -> Result<()> {
    let path = note(own);
    match own.remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}

fn note(own: &Root) -> PathBuf {
    own.path().join(OWN).join(FILE)
}
