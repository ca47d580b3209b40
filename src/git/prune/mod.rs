//! Gives space back: which objects only some checkpoints need, how large they are, and their removal. No other room
//! needs it, and it needs only the object database and the references.

pub(super) mod discard;
mod exclusive_size;
mod gc_roots;
mod reachability;

pub use discard::{Discarded, discard};
pub use exclusive_size::exclusive_bytes;
