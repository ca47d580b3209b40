//! Stored trees with their manifests: looks paths up in them and compares two of them. Where they come from, a capture or a
//! checkpoint, makes no difference here.

pub mod changed;
pub mod diff;
pub mod lookup;
pub mod patch;
pub mod view;

pub use changed::changed_files;
pub use diff::{Objects, Opened, Seen, changes, changes_with, patch_text};
pub use lookup::TreeLookup;
pub use patch::write_patch;
pub use view::{Side, differing};
