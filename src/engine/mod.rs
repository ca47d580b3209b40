//! The operations that commands share. Each takes a [`Context`] and returns plain data; nothing here prints.
//!
//! Six layers, each of which uses only those before it:
//!
//! - [`base`]: errors, the clock, progress, which run is meant, and the [`Context`]: work tree, state directory, settings.
//! - [`record`]: everything that makes an event or a checkpoint.
//! - [`restore`]: one restore, planned, journaled, executed and verified, or reverted.
//! - [`attempt`]: the beginning and the end of an attempt, what was detected in it, where its run then stands, its report.
//! - [`recovery`]: what a crash left, dealt with before every command that writes.
//! - [`flow`]: the commands, one file a command or one folder a feature.

pub(crate) mod attempt;
pub(crate) mod base;
pub(crate) mod flow;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod restore;

pub use base::context::Context;
pub(crate) use base::error::Result;
pub use base::error::{Error, ErrorKind};
