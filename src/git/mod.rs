//! Capture and restore of a work tree with git objects: the only place that names git2.
//!
//! - [`repository`] finds the user's repository, or makes a private one; [`lock`] guards a worktree.
//! - [`capture`] takes the work tree: `scan` walks it (`walk` is one step, in a `crew` of threads), `cache` knows what has
//!   not changed, `reading` reads the rest but for what `seeds` lets the user's index say, `assemble` makes trees, `objects`
//!   writes them (`pack` and `publish` know the files; `collection` sees a `git gc` meanwhile), `remember` writes the cache.
//! - [`checkpoint`] makes a commit of it, [`refs`] names it, [`stored`] reads it back, [`sides`] compares two of them.
//! - [`nested_copy`] keeps the files of the repositories inside a second time, beside the checkpoint of the one around them;
//!   [`git_file`] leads a folder to its repository again.
//! - [`discard`] removes the objects of checkpoints that are gone: `written` lists them, `roots` and `reachable` find who
//!   needs them. `packing` makes one pack of many loose ones.
//! - [`branch_commit`], [`patch`] and [`bundle`] keep the same content in other forms beside it; [`unbundle`] takes it back.
//! - [`restore`] carries out a plan of [`crate::policy::restore_plan`], [`verify`] reads it again, [`journal`] tells the next
//!   process of one that was cut off. [`head`] moves branches, [`base`] says what a checkpoint of
//!   another work tree means here, [`index`] writes the user's index, [`diff`] compares.
//!
//! Nothing here reads a clock for a decision, a configuration of ours, or the ledger: the caller gives what is needed.

mod assemble;
pub mod base;
mod batch;
pub mod branch_commit;
pub mod bundle;
mod cache;
pub mod capture;
pub mod changed;
pub mod checkpoint;
mod collection;
mod content;
mod crew;
mod database;
pub mod diff;
mod dirs;
pub mod discard;
pub mod doubt;
pub mod error;
pub mod exclusive;
pub mod file_states;
mod flood;
mod folders;
pub mod git_file;
mod globs;
pub mod head;
mod holes;
pub mod ignore_rules;
pub mod index;
mod index_file;
pub mod journal;
pub mod linked;
pub mod lock;
pub mod marked_lock;
mod names;
mod nested;
pub mod nested_copy;
pub mod nested_refs;
mod objects;
pub mod outputs;
pub mod owner;
mod pack;
mod pack_folder;
mod packing;
pub mod patch;
mod place;
mod publish;
mod reachable;
mod reading;
mod reflog;
pub mod refs;
mod remember;
pub mod repository;
pub mod restore;
mod roots;
mod scan;
mod seeds;
pub mod sides;
pub mod staying;
pub mod stored;
pub mod tracked;
pub mod trailers;
pub mod tree_lookup;
mod trees;
pub mod unbundle;
mod user_index;
pub mod verify;
mod walk;
mod written;

pub use cache::saw_files_of;
pub use error::{Error, Result};
pub use lock::WorktreeLock;
pub use repository::{Repo, refuse_root};
pub use scan::left_out;
