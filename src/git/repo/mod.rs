//! A repository as such: where it is, whose it is, its locks, checkpoint references and the notes that are kept beside it.
//! What reads or writes objects belongs in [`odb`](super::odb).

pub(super) mod health;
pub(super) mod loan;
pub(super) mod locks;
mod main_worktree;
pub(super) mod nested;
pub(crate) mod owner;
pub(super) mod refs;
pub(super) mod repository;
mod settings;
pub(super) mod unusable;

pub(crate) use loan::Loan;
pub(crate) use locks::ForeignLock;
pub use locks::WorktreeLock;
pub(in crate::git) use nested::Outer;
pub use refs::{CheckpointRef, resolve};
pub(in crate::git) use repository::IDENTITY;
pub use repository::Repo;
