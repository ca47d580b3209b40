//! Shared basics of the git modules: errors, files by folder descriptors, modes and ids, names, globs, threads.
//! What opens a repository or reads its objects belongs in a later module.

pub(super) mod error;
pub(super) mod openat;
pub(super) mod paths;
pub(super) mod work_queue;

pub(crate) use error::Unusable;
pub(in crate::git) use error::{At, present};
pub use error::{Error, Result};
pub(in crate::git) use openat::{
    DirfdCache, FileStat, OnDisk, is_settled, margin, sync_folder, whole_is_cheaper,
};
pub(in crate::git) use paths::{
    EMPTY_BLOB, GITLINK, TREE, id_of, object_header, oid_of, parse_oid,
};
pub(in crate::git) use paths::{Globs, unsafe_name};
pub(in crate::git) use work_queue::{SMALL_TASKS, WorkQueue};
