//! Commits, HEAD and branches: reads them, makes ordinary commits, moves branches with their reflogs.
//! Checkpoints, which are commits as well, belong in [`checkpoint`](super::checkpoint).

pub(super) mod head;
mod reflog;

pub(crate) use head::tree_of;
