//! The user's index: its file format, what it records of paths, and the lock under which it is replaced.
//! The index of a checkpoint is restored by [`restore`](super::restore).

pub(super) mod index_file;
pub(super) mod locked_index;
mod tracked;
pub(super) mod user_index;
