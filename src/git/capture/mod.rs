//! Captures the work tree as it is: as trees and a manifest of what [`worktree`](super::worktree) found.
//! Writes the cache for the next time. Commits and references belong in [`checkpoint`](super::checkpoint).

mod cache_writer;
mod file_states;
mod file_times;
pub(super) mod snapshot;
mod tree_builder;

pub(crate) use file_states::{FileState, last_seen};
pub(crate) use snapshot::capture_lent;
pub use snapshot::{Capture, capture};
