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
pub(super) mod write;

pub(crate) use branch_commit::Committed;
pub use bundle::Unbundled;
pub(crate) use nested::NestedCopy;
pub(in crate::git) use nested::digits as nested_digits;
pub(in crate::git) use plain::{Moment, plain_of};
pub(crate) use precious::PreciousFile;
pub(in crate::git) use stored::{MEMORY_PLACE, parse_manifest};
pub use stored::{MemoryFile, StoredCheckpoint};
pub use write::{CheckpointParts, write_checkpoint};
