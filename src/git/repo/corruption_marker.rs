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
/// Beside it, for all worktrees: damage was found, and nothing since then says that all checkpoints are whole.
const FOUND: &str = "damage-found";

impl Repo {
    /// Notes for every worktree of the repository that objects are damaged.
    pub(crate) fn mark_odb_suspect(&self) -> Result<()> {
        let worktrees = self.common_dir().join("worktrees");
        let mut roots = vec![self.shared().clone()];
        match self.shared().list(&worktrees) {
            Ok(entries) => {
                let folders = entries
                    .into_iter()
                    .filter(|(_, kind)| *kind == Kind::Directory);
                roots.extend(folders.map(|(name, _)| self.shared().inside(&worktrees.join(name))));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(source) => return Err(Error::io(worktrees, source)),
        }
        let found = self.shared_folder().join(FOUND);
        if self
            .shared()
            .has(Path::new(OWN))
            .map_err(Error::at(&found))?
        {
            self.shared().create(&found).map_err(Error::at(&found))?;
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

    /// Whether damage was found in a checkpoint of any worktree, and [`end_damage`](Repo::end_damage) did not end that.
    pub(crate) fn is_damage_known(&self) -> bool {
        !matches!(
            self.shared().kind(&self.shared_folder().join(FOUND)),
            Ok(None)
        )
    }

    /// All checkpoints were read, and are whole. A note that stays costs the reading once more.
    pub(crate) fn end_damage(&self) {
        let path = self.shared_folder().join(FOUND);
        if let Err(error) = remove(self.shared(), &path) {
            tracing::debug!(%error, "{} stays", path.display());
        }
    }
}

fn remove(root: &Root, path: &Path) -> Result<()> {
    match root.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(path, error)),
        _ => Ok(()),
    }
}

/// Whether damage was found since the last checkpoint of the worktree whose git folder this is.
pub(in crate::git) fn is_suspect(own: &Root) -> bool {
    !matches!(own.kind(&note(own)), Ok(None))
}

/// Ends it, after a capture that began with it was recorded.
pub(in crate::git) fn clear(own: &Root) -> Result<()> {
    remove(own, &note(own))
}

fn note(own: &Root) -> PathBuf {
    own.path().join(OWN).join(FILE)
}
