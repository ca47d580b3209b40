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
pub mod trailers;
mod unbundle;
pub(super) mod write;

pub use branch_commit::{Committed, commit_on_branch};
pub use bundle::write_bundle;
pub use foreign_checkpoint::as_checked_out;
pub use nested_copy::{Copies, NestedCopy, copy_all, show_trees};
pub(in crate::git) use nested_refs::digits as nested_digits;
pub use nested_refs::{nested_id, outer_ref, refs_of};
pub use plain::plain_blobs;
pub(in crate::git) use plain::{Moment, plain_of};
pub use precious::{
    IgnoredPaths, PreciousFile, forget_ignored, ignored_at, note_ignored, put_back,
};
pub use state_tree::MemoryFile;
pub(in crate::git) use state_tree::parse_manifest;
pub(in crate::git) use stored::MEMORY_PLACE;
pub use stored::{StoredCheckpoint, load_checkpoint};
pub use unbundle::{Unbundled, is_bundle, read_back, unbundle};
pub use write::{CheckpointParts, name_checkpoint, write_checkpoint, write_early, write_linked};
