//! Damage that was found in the object database.
//!
//! From then on neither a worktree's cache nor the user's index is believed: its next capture reads every object that it
//! does not write, and writes again what is damaged or missing and still lies in the work tree. The first checkpoint of
//! the worktree after that ends it. The note is not synced: whoever finds the damage once more writes it again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::{Error, Result};
use super::repository::Repo;

const FILE: &str = "doubt";

/// Notes for every worktree of the repository that objects are damaged.
pub fn raise(repo: &Repo) -> Result<()> {
    let worktrees = repo.common_dir().join("worktrees");
    let mut folders = vec![repo.common_dir().to_owned()];
    match fs::read_dir(&worktrees) {
        Ok(entries) => {
            for entry in entries {
                folders.push(entry.map_err(Error::at(&worktrees))?.path());
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(Error::io(worktrees, source)),
    }
    // One without a folder of ours was never captured: it has nothing to be believed.
    for folder in folders.iter().map(|folder| folder.join("recover")).filter(|folder| folder.is_dir()) {
        let path = note(&folder);
        fs::write(&path, b"").map_err(Error::at(&path))?;
    }
    Ok(())
}

/// Whether damage was found since the last checkpoint of the worktree with this folder.
pub(super) fn is_raised(folder: &Path) -> bool {
    note(folder).exists()
}

/// Ends it, after a capture that began with it was recorded.
pub(super) fn settle(folder: &Path) -> Result<()> {
    let path = note(folder);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}

fn note(folder: &Path) -> PathBuf {
    folder.join(FILE)
}
