//! The operations that commands share. Each takes a [`Context`] and answers with plain data; nothing here prints.
//!
//! - [`context`] says where we are: work tree, state directory, settings, clock, signals.
//! - [`settle`] comes first in everything that writes: attempts whose supervisor was killed are recognised, references
//!   without an event are taken in, a restore that was cut off is finished or reverted.
//! - [`checkpoint`], [`restore`], [`rollback`], [`undo`] keep and bring back work trees.
//! - [`attempt`], [`run`], [`resume`], [`manual_fix`], [`retry`] move runs along.
//! - [`hook`] is what agents and git call.
//! - [`step`] runs a named command once; [`lane`] keeps the lane contract's records, [`salvage`] says how a
//!   work tree that is gone comes back.
//! - [`inside`] says what a supervised agent may do with all this.
//! - [`import`] takes the source systems' files over, [`sync`] and [`seed_json`] write them.
//! - [`trust`] says whose the state is, and takes over what came from elsewhere.
//! - [`status`], [`follow`], [`report`] and [`prune`] look and tidy up; [`export`] writes checkpoints to files; [`rebuild`] makes a lost
//!   ledger again.

pub mod archive;
pub mod attempt;
pub mod base;
pub mod checkpoint;
pub mod clock;
pub mod context;
pub mod doctor;
pub mod error;
pub mod export;
pub mod flow;
pub mod follow;
mod held;
pub mod hook;
pub mod import;
pub mod inside;
pub mod inspect;
pub mod lane;
pub mod live;
mod lost;
pub mod manual_fix;
mod memory;
pub mod nested;
pub mod prune;
pub mod rebuild;
pub mod record;
pub mod report;
pub mod restore;
pub mod resume;
pub mod retry;
mod returned;
pub mod rollback;
pub mod run;
pub mod salvage;
pub mod seed_json;
pub mod select;
pub mod settle;
pub mod status;
pub mod step;
pub mod storage;
pub mod sync;
pub mod trust;
pub mod undo;
pub mod verify;

pub use clock::Clock;
pub use context::Context;
pub use error::{Error, ErrorKind, Result};
