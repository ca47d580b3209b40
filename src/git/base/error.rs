//! What can go wrong around a work tree, split by what follows from it.

use std::io;
use std::path::{Path, PathBuf};

use super::unusable::Unusable;
use crate::durable::{LockError, Refused};
use crate::model::path::{PathReason, RepoPath};

/// Results of this module.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on a work tree or its repository was refused or failed. The caller maps each to an exit code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No repository here (exit 10).
    #[error("no git repository in {} or above it", start.display())]
    NotARepository {
        /// Where the search began.
        start: PathBuf,
    },
    /// A repository that cannot be read in full (exit 10).
    #[error("this repository cannot be used: {what}")]
    Unsupported {
        /// What is not supported: bare, SHA-256, reftable, split index, sparse index, …
        what: String,
    },
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
    /// The project, or something of it, belongs to somebody else (exit 13).
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
    /// Somebody wanted it to stop, and it did.
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
    #[error("{} would be larger than a file may be here (ulimit -f)", path.display())]
    FileLimit {
        /// What was to be written.
        path: PathBuf,
    },
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
    #[error("damaged: {what}")]
    Corrupt {
        /// What is damaged.
        what: String,
    },
    /// Written by a newer version (exit 15).
    #[error("{what} was written by a newer version")]
    Newer {
        /// What was.
        what: String,
    },
    /// The operating system refused something (exit 1).
    #[error("{}", path.display())]
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
            io::ErrorKind::FileTooLarge => Self::FileLimit { path },
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
                return Self::FileLimit {
                    path: PathBuf::from(action),
                };
            }
            Self::Git { action, source }
        }
    }

    /// Damaged data.
    pub(in crate::git) fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into() }
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
