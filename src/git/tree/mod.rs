//! Stored trees with their manifests: looks paths up in them and compares two of them.
//! Where they come from, a capture or a checkpoint, makes no difference here.

mod diff;
pub(super) mod view;

pub use diff::Seen;
pub use view::{Objects, TreeIgnores, TreeLookup};
