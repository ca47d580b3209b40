//! The work tree on disk: walks it, applies ignore rules and limits, reads contents.
//! Knows from its cache what has not changed. What becomes of the files that were found, trees and a manifest, belongs in
//! [`capture`](super::capture).

pub(super) mod cache;
pub(super) mod file_io;
pub(super) mod ignore_rules;
pub(super) mod index_trust;
pub(super) mod outputs;
pub(super) mod reading;
pub(super) mod scan;
mod uncommitted;
mod untracked_limit;
pub(super) mod walk;

pub(crate) use cache::saw_files_of;
pub(crate) use outputs::Outputs;
pub use scan::left_out;
pub(crate) use uncommitted::uncommitted;
