//! Checkpoints: captures as commits with references.
//! Written, read back, copied for nested repositories, and carried over to branches and bundles. What changes files of the
//! work tree belongs in [`restore`](super::restore).

mod branch_commit;
mod bundle;
mod foreign_checkpoint;
mod nested_copy;
mod nested_refs;
mod plain;
mod precious;
mod state_tree;
pub(super) mod stored;
pub(crate) mod trailers;
mod unbundle;
pub(super) mod write;

pub(crate) use branch_commit::Committed;
pub(crate) use nested_copy::{Copies, NestedCopy, copy_all, show_trees};
pub(in crate::git) use nested_refs::digits as nested_digits;
pub(crate) use nested_refs::{nested_id, outer_ref};
pub(in crate::git) use plain::{Moment, plain_of};
pub(crate) use precious::{PreciousFile, put_back};
pub use state_tree::MemoryFile;
pub(in crate::git) use state_tree::parse_manifest;
pub(in crate::git) use stored::MEMORY_PLACE;
pub use stored::StoredCheckpoint;
pub(crate) use unbundle::{Unbundled, read_back};
pub use unbundle::{is_bundle, unbundle};
pub(crate) use write::write_early;
pub use write::{CheckpointParts, write_checkpoint};
