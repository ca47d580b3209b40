//! What can be wrong with the state directory.

use std::io;
use std::path::PathBuf;

use crate::durable::LockError;

use super::registry::Foreign;

/// An error of the state directory; each variant has its own consequence (exit code).
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file could not be read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The ledger holds something that this program never wrote (exit 12).
    #[error("{} is corrupt at line {line}: {reason}", path.display())]
    Corrupt {
        /// The ledger.
        path: PathBuf,
        /// 1-based line.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// A newer version wrote here (exit 15).
    #[error("{} was written by a newer version (event schema {schema})", path.display())]
    Newer {
        /// The ledger.
        path: PathBuf,
        /// Its schema.
        schema: u32,
    },
    /// The state is foreign and is only read (exit 13).
    #[error("the state in {} came from elsewhere: {why}", dir.display())]
    Foreign {
        /// The state directory.
        dir: PathBuf,
        /// Why it counts as such.
        why: Foreign,
    },
    /// Another process holds the lock (exit 11).
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl StoreError {
    /// Whether a file or its folder was not there.
    pub(super) fn is_not_found(&self) -> bool {
        let (Self::Io { source, .. } | Self::Lock(LockError::Io { source, .. })) = self else {
            return false;
        };
        source.kind() == io::ErrorKind::NotFound
    }

    /// A closure for `map_err` on errors of the operating system.
    pub(super) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl Fn(E) -> Self {
        let path = path.into();
        move |source| Self::Io {
            action,
            path: path.clone(),
            source: source.into(),
        }
    }
}
