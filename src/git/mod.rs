//! Capture and restore of a work tree with git objects: the only place that names git2.
//!
//! Each room is a folder, and imports point one way: a room knows those before it, never one after it.
//!
//! ```text
//! base ← repo ← odb ← history ← index ← worktree ← tree ← capture ← checkpoint ← restore
//!               odb ← prune
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
//! - [`restore`] carries out a plan of [`crate::policy::restore_plan`], verifies it, and keeps a journal meanwhile.
//! - [`prune`] removes the objects of checkpoints that are gone; it needs no more than `odb`, and nothing needs it.
//!
//! Nothing here reads a clock for a decision, a configuration of ours, or the ledger: the caller gives what is needed.

pub mod base;
pub mod capture;
pub mod checkpoint;
pub mod history;
pub mod index;
pub mod odb;
pub mod prune;
pub mod repo;
pub mod restore;
pub mod tree;
pub mod worktree;

pub use base::{Error, Result};
pub use repo::{Repo, WorktreeLock, refuse_root};

// The names of before.
pub use capture::file_states;
pub use checkpoint::branch_commit;
pub use checkpoint::bundle;
pub use checkpoint::nested_copy;
pub use checkpoint::nested_refs;
pub use checkpoint::stored;
pub use checkpoint::trailers;
pub use checkpoint::unbundle;
pub use history::head;
pub use index::tracked;
pub use prune::discard;
pub use prune::exclusive_size as exclusive;
pub use repo::corruption_marker as doubt;
pub use repo::index_lock as marked_lock;
pub use repo::linked;
pub use repo::owner;
pub use repo::refs;
pub use repo::repository;
pub use restore::git_file;
pub use restore::journal;
pub use restore::nonempty_dirs as staying;
pub use restore::verify;
pub use tree::changed;
pub use tree::diff;
pub use tree::lookup as tree_lookup;
pub use tree::patch;
pub use tree::view as sides;
pub use worktree::ignore_rules;
pub use worktree::outputs;
pub use worktree::{left_out, saw_files_of};
