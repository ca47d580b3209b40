//! A repository as such: where it is, whose it is, its locks, checkpoint references and the notes that are kept beside it.
//! What reads or writes objects belongs in [`odb`](super::odb).

pub(super) mod health;
pub(super) mod loan;
pub(super) mod locks;
pub(super) mod nested;
mod owner;
pub(super) mod refs;
pub(super) mod repository;
mod settings;
mod untracked;
pub(super) mod unusable;

pub(crate) use loan::Loan;
pub(crate) use locks::ForeignLock;
pub use locks::WorktreeLock;
pub(crate) use owner::{
    check_owner, foreign_owner, is_closed, is_declared_safe, is_of_another, is_open_to_all,
    left_by_another,
};
pub(crate) use refs::ref_component;
pub use refs::{ref_name, resolve};
pub use repository::Repo;
pub(crate) use repository::{is_same_folder, refuse_root};
