//! Capture and restore of a work tree with git objects: the only place that names git2.
//!
//! Each room is a folder, and imports point one way: a room knows those before it, never one after it.
//!
//! ```text
//! base ← repo ← odb ← history ← index ← worktree ← tree ← capture ← checkpoint ← prune ← restore ← program ← remote ← vault
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
//! - [`restore`] carries out a plan of [`crate::policy::restore`], verifies it, and keeps a journal meanwhile.
//! - [`program`] makes commits with the user's own `git`, which runs filters and signs.
//! - [`remote`] talks to git servers with it.
//! - [`vault`] is a copy of a repository outside of its work tree.
//!
//! Nothing here reads a clock for a decision, a configuration of ours, or the ledger: the caller gives what is needed.

pub(crate) mod base;
pub(crate) mod capture;
pub(crate) mod checkpoint;
pub(crate) mod history;
pub(crate) mod index;
pub(crate) mod odb;
pub(crate) mod program;
pub(crate) mod prune;
pub(crate) mod remote;
pub(crate) mod repo;
pub(crate) mod restore;
pub(crate) mod tree;
pub(crate) mod vault;
pub(crate) mod worktree;

pub use base::{Error, Result};
pub use repo::{Repo, WorktreeLock};
