//! The operations that commands share. Each takes a [`Context`] and returns plain data; nothing here prints.
//!
//! Five layers, each of which uses only those before it:
//!
//! - [`base`]: errors, the clock, progress, which run is meant, and the [`Context`]: work tree, state directory, settings.
//! - [`record`]: everything that makes an event or a checkpoint.
//! - [`restore`]: one restore, planned, journaled, executed and verified, or reverted.
//! - [`attempt`]: the beginning and the end of an attempt, what was detected in it, where its run then stands, its report.
//! - [`recovery`]: what a crash left, dealt with before every command that writes.
//!
//! After them what the commands do, without arguments and output: a room a feature, whose first lines say what it is about.

pub(crate) mod accept;
pub(crate) mod answers;
pub(crate) mod attempt;
pub(crate) mod base;
pub(crate) mod bisect;
pub(crate) mod checkpoint;
pub(crate) mod doctor;
pub(crate) mod exchange;
pub(crate) mod forget;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod isolated;
pub(crate) mod manual_fix;
pub(crate) mod record;
pub(crate) mod recovery;
pub(crate) mod remote;
pub(crate) mod restore;
pub(crate) mod resume;
pub(crate) mod rollback;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod status;
pub(crate) mod step;
pub(crate) mod trust;
pub(crate) mod vault;

pub(crate) use base::context::Context;
pub(crate) use base::error::{Error, ErrorKind, Result};
