//! Shared basics of the git modules: errors, files by folder descriptors, modes and ids, names, globs, threads.
//! What opens a repository or reads its objects belongs in a later module.

pub(super) mod dirfd_cache;
pub(super) mod error;
pub(super) mod file_time;
pub(super) mod globs;
pub(super) mod modes;
pub(super) mod names;
pub(super) mod object_id;
pub(super) mod on_disk;
pub(super) mod openat;
pub(super) mod sync;
pub(super) mod unusable;
pub(super) mod work_queue;

pub use error::{Error, Result};
pub(crate) use unusable::{Reason, RepositoryState, Unusable};
