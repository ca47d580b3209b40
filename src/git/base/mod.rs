//! Shared basics of the git modules: errors, files by folder descriptors, modes and ids, names, globs, threads.
//! What opens a repository or reads its objects belongs in a later module.

pub(super) mod error;
pub(super) mod object_id;
pub(super) mod openat;
pub(super) mod paths;
pub(super) mod work_queue;

pub use error::{Error, Result};
pub(crate) use error::{RepositoryState, Unusable};
