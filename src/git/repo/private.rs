//! A private repository whose folder became a git repository meanwhile: its checkpoints are taken over.

use std::path::Path;

use git2::{AutotagOption, FetchOptions};

use super::lock::WorktreeLock;
use super::repository::{Repo, private_path};
use crate::durable::Root;
use crate::git::base::error::{Error, Result};

impl Repo {
    /// Takes over the checkpoints of the private repository, and removes that. Returns how many there were. A kill on the way
    /// leaves the private one, and the next call begins again.
    pub fn take_over_private(
        &self,
        lock: &WorktreeLock,
        root: &Root,
        state_dir: &Path,
    ) -> Result<usize> {
        let path = private_path(state_dir);
        let text = path.to_str().ok_or_else(|| Error::Unsupported {
            what: format!("{} is no text", path.display()),
        })?;
        let mut remote = self
            .inner
            .remote_anonymous(text)
            .map_err(Error::git(format!("read {text}")))?;
        let private = Self::private(root, state_dir, self.workdir(), None)?;
        let (found, _) = private.list_refs()?;
        let names: Vec<String> = found
            .iter()
            .map(|one| format!("+{0}:{0}", one.name))
            .collect();
        if !names.is_empty() {
            let mut options = FetchOptions::new();
            options.download_tags(AutotagOption::None);
            remote
                .download(&names, Some(&mut options))
                .map_err(Error::git(format!("copy the objects of {text}")))?;
        }
        // On disk before anything refers to them, and before the private ones go.
        rustix::fs::sync();
        for one in &found {
            if !self.ref_exists(&one.name) {
                self.set_ref(lock, &one.name, &one.commit)?;
            }
        }
        root.remove_dir_all(&path).map_err(Error::at(&path))?;
        Ok(found.len())
    }
}
