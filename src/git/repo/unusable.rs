//! Which of git's settings lead away from a work tree, and how they are mended.

use std::fs;
use std::path::{Path, PathBuf};

use super::nested::{linked_folder, module_folder};
use super::repository::is_same_folder;
use crate::git::base::error::{Error, Result};
use crate::git::base::unusable::{Reason, Unusable, has_state};

impl Unusable {
    /// What is wrong with the repository of `place`, whose `.git` is there, after git's library said `message`.
    pub(super) fn examine(place: &Path, message: Option<&str>) -> Option<Self> {
        let common_dir = common_dir(place);
        let reason = match message {
            Some(message) if message.contains("refstorage") => Reason::Reftable,
            Some(message) if message.contains("object format") => Reason::Sha256,
            _ => common_dir
                .as_deref()
                .and_then(|common| misled(place, common))
                .or(message.map(said))?,
        };
        Some(Self {
            place: place.to_owned(),
            common_dir,
            reason,
        })
    }

    /// Changes the settings that [`Self::repair`] names.
    pub fn mend(&self) -> Result<()> {
        let Some(common) = self
            .common_dir
            .as_deref()
            .filter(|_| self.repair().is_some())
        else {
            return Ok(());
        };
        let failed = || Error::git(format!("change the configuration of {}", common.display()));
        // git reads the second one after the first.
        for file in ["config", "config.worktree"].map(|name| common.join(name)) {
            if !file.is_file() {
                continue;
            }
            let mut config = git2::Config::open(&file).map_err(failed())?;
            match self.reason {
                Reason::Bare if config.get_bool("core.bare").is_ok_and(|bare| bare) => {
                    config.set_bool("core.bare", false).map_err(failed())?;
                }
                Reason::Elsewhere(_) if config.get_entry("core.worktree").is_ok() => {
                    config
                        .remove_multivar("core.worktree", ".*")
                        .map_err(failed())?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn said(message: &str) -> Reason {
    Reason::Other(message.to_owned())
}

/// Which of git's settings lead away from the work tree beside a git folder.
fn misled(place: &Path, common: &Path) -> Option<Reason> {
    if common != place.join(".git") {
        return None;
    }
    if let Some(folder) = module_folder(common) {
        let is_here = is_same_folder(&folder, place);
        let counts = !folder.is_dir() || has_state(place);
        return (!is_here && counts)
            .then(|| Reason::Elsewhere(fs::canonicalize(&folder).unwrap_or(folder)));
    }
    let is_bare = |name: &str| {
        let config = git2::Config::open(&common.join(name)).ok();
        config.is_some_and(|config| config.get_bool("core.bare").is_ok_and(|bare| bare))
    };
    ["config", "config.worktree"]
        .into_iter()
        .any(is_bare)
        .then_some(Reason::Bare)
}

/// The git folder that the work trees of the repository at `place` share.
fn common_dir(place: &Path) -> Option<PathBuf> {
    let link = place.join(".git");
    if link.symlink_metadata().ok()?.is_dir() {
        return Some(link);
    }
    let text = fs::read_to_string(&link).ok()?;
    let git_dir = fs::canonicalize(place.join(text.strip_prefix("gitdir:")?.trim())).ok()?;
    match fs::read_to_string(git_dir.join("commondir")) {
        Ok(common) => {
            let leads_back =
                linked_folder(&git_dir).is_some_and(|folder| is_same_folder(&folder, place));
            fs::canonicalize(git_dir.join(common.trim()))
                .ok()
                .filter(|_| leads_back)
        }
        Err(_) => module_folder(&git_dir)
            .is_some_and(|folder| is_same_folder(&folder, place))
            .then_some(git_dir),
    }
}
