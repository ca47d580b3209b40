//! Capture and restore of a work tree with git objects: the only place that names git2.
//!
//! Each room is a folder, and imports point one way: a room knows those before it, never one after it.
//!
//! ```text
//! base ← repo ← odb ← history ← index ← worktree ← tree ← capture ← checkpoint ← prune ← restore ← program ← remote
//! ```
//!
//! - [`base`] is what knows no repository: errors, files by descriptors, names, threads.
//! - [`repo`] finds the user's repository, or makes a private one; its locks, references and notes.
//! - [`odb`] reads and writes objects: loose ones, packs, trees.
//! - [`history`] is commits, HEAD and branches.
//! - [`index`] is the user's index.
//! - [`worktree`] walks and reads the work tree, as far as it has changed.
//! - [`tree`] looks up and compares what is stored.
//! - [`capture`] takes the work tree, [`checkpoint`] makes a commit of it and reads it back.
//! - [`prune`] removes the objects of checkpoints that are gone; it needs no more than [`odb`], and no room needs it.
//! - [`restore`] carries out a plan of [`crate::policy::restore_plan`], verifies it, and keeps a journal meanwhile.
//! - [`program`] makes commits with the user's own `git`, which runs filters and signs.
//! - [`remote`] talks to git servers with it.
//!
//! Nothing here reads a clock for a decision, a configuration of ours, or the ledger: the caller gives what is needed.

pub mod base;
pub mod capture;
pub mod checkpoint;
pub mod history;
pub mod index;
pub mod odb;
pub mod program;
pub mod prune;
pub mod remote;
pub mod repo;
pub mod restore;
pub mod tree;
pub mod worktree;

pub use base::{Error, Result};
pub use repo::{Repo, WorktreeLock, refuse_root};
