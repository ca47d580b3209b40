//! Frees space: which objects only some checkpoints need, how large they are, and their removal.
//! Which checkpoints go is decided by `policy::retention`.

pub(super) mod discard;
mod exclusive_size;
mod gc_roots;
mod reachability;

pub use discard::{Discarded, discard};
pub(crate) use exclusive_size::added_bytes;
