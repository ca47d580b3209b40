//! The parts of `recover`, and which may know which.
//!
//! Dependencies point one way:
//!
//! ```text
//! model ← policy ← {config, git, store, process, agent, watch} ← engine ← cli
//! ```
//!
//! - [`model`] is plain data without I/O or a clock.
//! - [`durable`] is the one way in which files are replaced and locks are taken; everybody with files may use it.
//! - [`os`] has what differs between systems.
//! - [`policy`] is pure functions over it; `now` is an argument.
//! - `config`, `git`, `store`, `process`, `agent` and `watch` each adapt one part of the world and do not know each
//!   other. Only `git` names git2.
//! - `engine` holds the operations that commands share.
//! - `cli` is the command line: arguments, tables, JSON, exit codes.
//!
//! `tests/layering.rs` reads the sources and holds these rules.

#![warn(unreachable_pub)]
// The documentation is for those who work on the crate, and is made with private items.
#![allow(rustdoc::private_intra_doc_links)]

mod agent;
mod cli;
mod config;
mod durable;
mod engine;
mod git;
mod model;
mod os;
mod policy;
mod process;
mod store;
mod watch;

#[doc(hidden)]
pub mod testing;

pub use cli::main;
