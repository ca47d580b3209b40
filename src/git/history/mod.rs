//! Commits, HEAD and branches: reads them, makes ordinary commits, moves branches with their reflogs.
//! Checkpoints, which are commits as well, belong in [`checkpoint`](super::checkpoint).

pub(super) mod head;
mod reflog;

pub(crate) use head::{about_commit, commit_exists, leave_branch, start_branch, tree_of};
pub use head::{commit_on_top, commits_between, is_ancestor, move_branch, on_remote_tracking};
