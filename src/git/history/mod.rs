//! Commits, HEAD and branches: reads them, makes ordinary commits, moves branches with their reflogs.
//! Checkpoints, which are commits as well, belong in [`checkpoint`](super::checkpoint).

pub(super) mod head;
mod reflog;

pub use head::{
    about_commit, commit_exists, commit_on_top, commits_between, is_ancestor, leave_branch,
    move_branch, on_remote_tracking, start_branch, tree_of,
};
