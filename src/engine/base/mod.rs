//! Shared basics of the engine: errors, clock, progress, the context of a command, which run it is about.

pub(crate) mod clock;
pub(crate) mod context;
pub(crate) mod error;
pub(crate) mod heartbeat;
pub(crate) mod progress;
pub(crate) mod runs;
pub(crate) mod trust;
pub(crate) mod user_files;

pub(crate) use clock::{Moment, WaitLimit};
pub(crate) use context::{Context, WORKTREES};
pub(crate) use error::{Error, ErrorKind, Result};
pub(crate) use user_files::UserFiles;
