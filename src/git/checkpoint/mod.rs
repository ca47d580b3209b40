//! Checkpoints: captures as commits with references, written, read back, copied for nested repositories, and carried over
//! to branches and bundles. What changes files of the work tree belongs in [`restore`](super::restore).

pub mod branch_commit;
pub mod bundle;
pub(super) mod foreign_checkpoint;
pub mod nested_copy;
pub mod nested_refs;
pub mod stored;
pub mod trailers;
pub mod unbundle;
pub(super) mod write;

pub use branch_commit::{Committed, commit_on_branch};
pub use bundle::write_bundle;
pub use foreign_checkpoint::as_checked_out;
pub use nested_copy::{Copies, NestedCopy, copy_all, show_trees};
pub use nested_refs::{nested_id, outer_ref, refs_of};
pub use stored::{StoredCheckpoint, blob_size, empty_tree, load_checkpoint};
pub use unbundle::{Unbundled, is_bundle, read_back, unbundle};
pub use write::{CheckpointParts, MemoryFile, name_checkpoint, write_checkpoint, write_linked};
