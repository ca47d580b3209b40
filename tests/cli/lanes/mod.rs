//! Lanes and work trees that share one state directory.

pub mod concurrent;
pub mod concurrent_worktrees;
pub mod contract;
pub mod records;
