//! Pure functions over the model: what a failure is, what may happen next, what a restore touches.
//!
//! Nothing here does I/O; the present moment is an argument. Each folder's `mod.rs` shows what other parts may use of it.

mod patterns;

pub(crate) mod acp;
pub(crate) mod bisection;
pub(crate) mod changes;
pub(crate) mod checkpoint_events;
pub(crate) mod classify;
pub(crate) mod foreign_pull_request;
pub(crate) mod hook;
pub(crate) mod import;
pub(crate) mod limits;
pub(crate) mod program;
pub(crate) mod project;
pub(crate) mod prompt;
pub(crate) mod refused;
pub(crate) mod remote;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod retention;
pub(crate) mod retry;
pub(crate) mod secrets;
pub(crate) mod service;
pub(crate) mod settings;
pub(crate) mod tasks;
pub(crate) mod text;
