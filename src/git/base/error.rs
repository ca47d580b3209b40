//! What can go wrong around a work tree, split by what follows from it; and why a repository cannot be opened.

use std::path::{Path, PathBuf};
use std::{fmt, io};

use crate::durable::{LockError, Refused};
use crate::model::RepositoryState;
use crate::model::path::{PathReason, RepoPath};

/// Results of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on a work tree or its repository was refused or failed. The caller maps each to an exit code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No repository here (exit 10).
    #[error("no git repository in {} or above it", .0.display())]
    NotARepository(PathBuf),
    /// A repository that cannot be read in full (exit 10).
    #[error("this repository cannot be used: {0}")]
    Unsupported(String),
    /// A repository that git, or its library, cannot open (exit 10).
    #[error("{0}")]
    Unusable(Box<Unusable>),
    /// A linked work tree at another place than git knows it at (exit 13): working on would change the other one.
    #[error("{} is not the work tree that git knows: that is {}{}", place.display(), known.display(),
        if known.exists() { ", and this is a copy of it" } else { ", from where this was moved" })]
    StrayWorktree {
        /// Where it is.
        place: PathBuf,
        /// Where git knows it.
        known: PathBuf,
    },
    /// The project, or something of it, belongs to another user (exit 13).
    #[error("{} belongs to another user{}", path.display(), if *owner == u32::MAX { String::new() } else { format!(" (uid {owner})") })]
    ForeignOwner {
        /// The folder.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// The work tree's root, as `safe.directory` would name it.
        root: PathBuf,
    },
    /// A path that must not be touched (exit 13). Nothing was written.
    #[error("{}: {reason}", path.display())]
    UnsafePath {
        /// The path.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Something that is no file stands in a place of ours (exit 13).
    #[error(transparent)]
    Refused(Refused),
    /// Something stands where a restore would write, or changed meanwhile (exit 13).
    #[error("{} in the way: {}", if paths.len() == 1 { "a path is" } else { "paths are" }, list(paths))]
    Conflict {
        /// Each path with the reason.
        paths: Vec<PathReason>,
    },
    /// A program failed that was called (exit 1).
    #[error("{name} failed: {said}")]
    Program {
        /// Which, and what it was called for.
        name: String,
        /// What it said.
        said: String,
    },
    /// What is no name of a remote that git knows (exit 2).
    #[error("there is no remote '{name}': {reason}")]
    UnknownRemote {
        /// What was given.
        name: String,
        /// Why it is none.
        reason: String,
    },
    /// A remote that leads where nothing is sent to (exit 13).
    #[error("remote '{name}' is refused: {reason}")]
    RefusedRemote {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A store of the configuration's that is none (exit 2).
    #[error("[store.{name}]: {reason}")]
    BadStore {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A user wanted it to stop, and it did.
    #[error("stopped")]
    Stopped,
    /// The branch is not where it was (exit 13). Nothing was moved.
    #[error("{reference} has moved: expected {expected}, found {found}")]
    HeadMoved {
        /// The reference.
        reference: String,
        /// Where it should be.
        expected: String,
        /// Where it is.
        found: String,
    },
    /// The disk or a quota is full (exit 14).
    #[error("no space left: {}{}", path.display(), match needed { Some(bytes) => format!(" ({bytes} bytes needed)"), None => String::new() })]
    NoSpace {
        /// What was to be written.
        path: PathBuf,
        /// How many bytes would be needed, where that is known.
        needed: Option<u64>,
    },
    /// A write beyond the size that the process may give a file (exit 14).
    #[error("{} would be larger than a file may be here (ulimit -f)", .0.display())]
    FileLimit(PathBuf),
    /// Too many untracked files to capture (exit 14).
    #[error(
        "more untracked files than the limits allow ({files} files, {bytes} bytes so far), most of them in {folder}"
    )]
    UntrackedFlood {
        /// The folder to ignore; empty for the work tree itself.
        folder: RepoPath,
        /// Untracked files seen.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// Another process holds a lock (exit 11).
    #[error("{} is held by {holder}", file.display())]
    Locked {
        /// The lock file.
        file: PathBuf,
        /// `pid command` where it is known.
        holder: String,
    },
    /// Stored data is damaged (exit 12).
    #[error("damaged: {0}")]
    Corrupt(String),
    /// Written by a newer version (exit 15).
    #[error("{0} was written by a newer version")]
    Newer(String),
    /// The operating system refused something (exit 1).
    #[error("cannot access {}", path.display())]
    Io {
        /// The path it is about.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
    },
    /// git's library refused something (exit 1).
    #[error("cannot {action}")]
    Git {
        /// What was tried, in the infinitive.
        action: String,
        /// The refusal.
        source: git2::Error,
    },
}

impl Error {
    /// Wraps an error of the operating system; a full disk becomes [`Error::NoSpace`].
    pub fn io(path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        let (path, source) = (path.into(), source.into());
        if let Some(refused) = Refused::of(&source) {
            return Self::Refused(refused.clone());
        }
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::NoSpace { path, needed: None }
            }
            io::ErrorKind::FileTooLarge => Self::FileLimit(path),
            _ => Self::Io { path, source },
        }
    }

    /// A closure for `map_err` on errors of the operating system.
    pub(in crate::git) fn at<E: Into<io::Error>>(path: &Path) -> impl FnOnce(E) -> Self + '_ {
        move |source| Self::io(path, source)
    }

    /// A closure for `map_err` on errors of git's library.
    pub(in crate::git) fn git(action: impl Into<String>) -> impl FnOnce(git2::Error) -> Self {
        move |source| {
            let action = action.into();
            // libgit2 turns the system's error into text; a full disk must still be distinguished from the rest.
            let says = |texts: &[&str]| {
                source.class() == git2::ErrorClass::Os
                    && texts.iter().any(|text| source.message().contains(text))
            };
            if says(&["No space left", "quota exceeded"]) {
                return Self::NoSpace {
                    path: PathBuf::from(action),
                    needed: None,
                };
            }
            if says(&["File too large"]) {
                return Self::FileLimit(PathBuf::from(action));
            }
            Self::Git { action, source }
        }
    }

    /// Damaged data.
    pub(in crate::git) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt(what.into())
    }

    /// A path of the work tree that must not be touched.
    pub(in crate::git) fn unsafe_path(path: &RepoPath, reason: &str) -> Self {
        Self::UnsafePath {
            path: path.below(Path::new("")),
            reason: reason.to_owned(),
        }
    }

    /// One path in the way.
    pub(in crate::git) fn conflict(path: &RepoPath, reason: &str) -> Self {
        Self::Conflict {
            paths: vec![PathReason::new(path.clone(), reason)],
        }
    }
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held { file, holder } => Self::Locked { file, holder },
            LockError::Io { file, source } => Self::io(file, source),
        }
    }
}

/// What came of something, with the path that it is about.
pub(in crate::git) trait At<T> {
    /// A path as the system takes it.
    fn at(self, path: &Path) -> Result<T>;
    /// A path of the work tree.
    fn on(self, path: &RepoPath) -> Result<T>;
}

impl<T, E: Into<io::Error>> At<T> for std::result::Result<T, E> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(Error::at(path))
    }

    fn on(self, path: &RepoPath) -> Result<T> {
        self.map_err(|error| io_error(path, error.into()))
    }
}

/// An error of a path of the work tree.
pub(in crate::git) fn io_error(path: &RepoPath, error: io::Error) -> Error {
    // The work tree itself has no name in it.
    let name = if path.as_bytes().is_empty() {
        ".".into()
    } else {
        path.below(Path::new(""))
    };
    Error::io(name, error)
}

/// What came of something at a path that need not be there; `None` where it is not.
pub(in crate::git) fn present<T>(path: &Path, found: io::Result<T>) -> Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some).at(path),
    }
}

/// The first few paths, for a message.
fn list(paths: &[PathReason]) -> String {
    let mut text: Vec<_> = paths
        .iter()
        .take(3)
        .map(|entry| format!("{} ({})", entry.path, entry.reason))
        .collect();
    if paths.len() > 3 {
        text.push(format!("{} more", paths.len() - 3));
    }
    text.join(", ")
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

    /// Whether HEAD is missing or damaged, and nothing says what it was.
    pub fn is_head_lost(&self) -> bool {
        matches!(self.reason, Reason::Head(_)) && self.head.is_none()
    }

    /// The words of the git command that makes it usable again; `None` where there is none.
    pub fn git_command(&self) -> Option<&'static str> {
        match self.reason {
            Reason::Bare => Some("config core.bare false"),
            Reason::Elsewhere(_) => Some("config --unset core.worktree"),
            Reason::Reftable => Some("refs migrate --ref-format=files"),
            Reason::Head(_) | Reason::Sha256 | Reason::Other(_) => None,
        }
    }

    /// What it is for a program that reads the answer.
    pub(crate) fn state(&self) -> RepositoryState {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_refused_has_a_verb() {
        let denied = Error::io("/p/.git/recover", io::ErrorKind::PermissionDenied);
        assert_eq!(denied.to_string(), "cannot access /p/.git/recover");
    }
}
