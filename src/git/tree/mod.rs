//! Stored trees with their manifests: looks paths up in them and compares two of them.
//! Where they come from, a capture or a checkpoint, makes no difference here.

mod changed;
mod diff;
mod ignored;
pub(super) mod lookup;
pub(super) mod objects;
mod patch;
pub(super) mod view;

pub(crate) use changed::changed_files;
pub use diff::{Seen, changes, changes_with, patch_text};
pub use ignored::TreeIgnores;
pub use lookup::TreeLookup;
pub use objects::Objects;
pub(crate) use patch::write_patch;
pub use view::diff_trees;
