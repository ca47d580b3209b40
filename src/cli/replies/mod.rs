//! The documents that commands answer with (`--json`), a struct each: what is written and its schema come from one place.
//!
//! A field that is `Option` and may be skipped is never `null`: it is there with a value, or not at all.

pub mod accept;
pub mod attempt;
pub mod bisect;
pub mod checkpoint;
pub mod error;
pub mod hook;
pub mod log;
mod parts;
pub mod remote;
pub mod restore;
pub mod run;
pub mod runs;
pub mod status;
pub mod step;
pub mod upkeep;

use serde::Serialize;

pub use crate::model::SCHEMA_VERSION;

/// A document as it is printed.
#[derive(Debug, Serialize)]
pub struct Document<'a, T> {
    /// [`SCHEMA_VERSION`].
    schema_version: u32,
    /// The command that answers.
    command: &'a str,
    /// What it answers.
    #[serde(flatten)]
    reply: T,
    /// What it warned of.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

impl<'a, T> Document<'a, T> {
    /// The document of `command`.
    pub fn new(command: &'a str, reply: T, warnings: &'a [String]) -> Self {
        Self { schema_version: SCHEMA_VERSION, command, reply, warnings }
    }
}
