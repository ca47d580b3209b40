//! The state directory: the ledger, which is the truth, and the views made from it.
//!
//! A command that only reads calls [`Store::load`], which takes no lock. A command that writes takes
//! [`Store::lock`]; only the [`Exclusive`] guard can append, so a write without the lock does not compile. State that came
//! from elsewhere ([`Origin::Foreign`]) gives out no lock.

mod ledger;
mod ledger_line;
mod masked;
mod packed_lines;
mod rebuild;
mod registry;
mod second_copy;
mod settled;
mod state_cache;
pub(crate) mod views;
mod written;

use std::io;
use std::path::PathBuf;

use crate::durable::LockError;

pub(crate) use ledger::Exclusive;
pub(crate) use ledger::Loaded;
pub use ledger::NewEvent;
pub use ledger::Store;
pub(crate) use masked::masked;
pub use rebuild::salvage;
pub(crate) use registry::Foreign;
pub(crate) use registry::Origin;
pub(crate) use registry::Registry;
pub(crate) use registry::new_id;
pub(crate) use written::print_of;

/// How the last failure of each run is recovered from.
pub(crate) const RECOVERY: &str = "recovery.json";
/// What was tried.
pub(crate) const ATTEMPTS: &str = "attempt_history.json";
/// The records of lanes, where the configuration names no other file.
pub(crate) const LANES: &str = "checkpoints.json";
/// The checkpoint that a session goes on from.
pub(crate) const ACTIVE: &str = "active_checkpoint.json";

/// All of them.
pub(crate) const VIEWS: [&str; 4] = [RECOVERY, ATTEMPTS, LANES, ACTIVE];

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
    /// The state is somebody else's and is only read (exit 13).
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
