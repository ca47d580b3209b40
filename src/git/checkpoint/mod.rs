//! Checkpoints: captures as commits with references.
//! Written, read back, copied for nested repositories, and carried over to branches and bundles. What changes files of the
//! work tree belongs in [`restore`](super::restore).

mod branch_commit;
mod bundle;
mod foreign_checkpoint;
pub(super) mod nested;
mod plain;
mod precious;
pub(super) mod stored;
pub(crate) mod trailers;
pub(super) mod write;

pub(crate) use branch_commit::Committed;
pub(crate) use bundle::{Unbundled, read_back};
pub use bundle::{is_bundle, unbundle};
pub(in crate::git) use nested::digits as nested_digits;
pub(crate) use nested::{Copies, NestedCopy, copy_all, nested_id, outer_ref, show_trees};
pub(in crate::git) use plain::{Moment, plain_of};
pub(crate) use precious::{PreciousFile, put_back};
pub(in crate::git) use stored::{MEMORY_PLACE, parse_manifest};
pub use stored::{MemoryFile, StoredCheckpoint};
pub(crate) use write::write_early;
pub use write::{CheckpointParts, write_checkpoint};
