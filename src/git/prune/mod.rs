//! Gives space back: which objects only some checkpoints need, how large they are, and their removal. It knows the object
//! database and the references; no room but the facade knows it.

pub(super) mod discard;
pub(super) mod exclusive_size;
pub(super) mod gc_roots;
pub(super) mod reachability;

pub use discard::{Discarded, discard};
pub use exclusive_size::exclusive_bytes;
