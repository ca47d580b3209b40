//! Repositories that git, or this program, cannot open: why.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

/// Whether the repository that holds a project's checkpoints can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RepositoryState {
    /// It can.
    Ok,
    /// `core.bare` is set, though it has a work tree.
    Bare,
    /// `core.worktree` names another folder.
    Elsewhere,
    /// There is none any more, or none that git finds.
    Missing,
    /// It is not the one in which the checkpoints were recorded.
    Replaced,
    /// Its format cannot be read.
    Unsupported,
}

/// Why a repository cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// `core.bare` is set.
    Bare,
    /// `core.worktree` names this folder.
    Elsewhere(PathBuf),
    /// This file, HEAD, is missing or damaged.
    Head(PathBuf),
    /// References in the reftable format.
    Reftable,
    /// Object names of SHA-256.
    Sha256,
    /// What git's library said.
    Other(String),
}

/// A repository that cannot be used, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The folder that has `.git`.
    pub place: PathBuf,
    /// The git folder that all its work trees share; `None` where a `.git` file names one that does not lead back here.
    pub common_dir: Option<PathBuf>,
    /// Why.
    pub reason: Reason,
    /// What HEAD is to be again, where that is certain.
    pub head: Option<String>,
}

impl Unusable {
    /// The folder of the project: the main work tree's.
    pub fn project(&self) -> PathBuf {
        let main = self
            .common_dir
            .as_deref()
            .filter(|common| common.ends_with(".git"))
            .and_then(Path::parent);
        main.unwrap_or(&self.place).to_owned()
    }

    /// What it is for a program that reads the answer.
    pub fn state(&self) -> RepositoryState {
        match self.reason {
            Reason::Bare => RepositoryState::Bare,
            Reason::Elsewhere(_) => RepositoryState::Elsewhere,
            Reason::Head(_) => RepositoryState::Missing,
            Reason::Reftable | Reason::Sha256 | Reason::Other(_) => RepositoryState::Unsupported,
        }
    }

    /// What is to be done about it, where that is certain: of the settings, where a work tree of ours lies beside the git
    /// folder.
    pub fn repair(&self) -> Option<String> {
        if let Reason::Head(file) = &self.reason {
            let head = self.head.as_ref()?;
            return Some(format!("write '{head}' to {}", file.display()));
        }
        let common = self
            .common_dir
            .as_deref()
            .filter(|_| has_state(&self.place))?;
        let is_own = common == self.place.join(".git");
        let what = match self.reason {
            Reason::Bare if is_own => "set core.bare to false",
            Reason::Elsewhere(_) if is_own => "remove core.worktree",
            _ => return None,
        };
        let place = self.place.display();
        Some(format!("{what} in the configuration of {place}"))
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place.display();
        match &self.reason {
            Reason::Bare => write!(
                f,
                "core.bare is set in the repository of {place}: git does not use its work tree"
            ),
            Reason::Elsewhere(folder) => {
                let missing = if folder.is_dir() {
                    ""
                } else {
                    ", which does not exist"
                };
                write!(
                    f,
                    "core.worktree in the repository of {place} names {}{missing}",
                    folder.display()
                )
            }
            Reason::Head(file) => write!(
                f,
                "git finds no repository here: {} is missing or damaged",
                file.display()
            ),
            Reason::Reftable => write!(
                f,
                "this repository uses the reftable format for references, which recover cannot read yet ({place})"
            ),
            Reason::Sha256 => {
                write!(
                    f,
                    "this repository uses SHA-256 object names, which recover cannot read yet ({place})"
                )
            }
            Reason::Other(said) => write!(f, "this repository cannot be used: {said} ({place})"),
        }
    }
}

/// Whether something of ours was recorded in a folder.
pub(in crate::git) fn has_state(place: &Path) -> bool {
    place
        .join(".ultraplan")
        .join("state")
        .symlink_metadata()
        .is_ok_and(|found| found.is_dir())
}
