//! The object database: reads objects and writes them so that a crash, a full disk or a `git gc` leaves nothing half-written.
//! It knows blobs, trees and packs, but not what a tree represents: commits, indexes and work trees have rooms of their own.

pub(super) mod database;
pub(super) mod format;
pub(super) mod objects;
pub(super) mod owned_objects;
pub(super) mod pack;
pub(super) mod packing;
pub(super) mod publish;
pub(super) mod trees;
mod unsynced;

pub(in crate::git) use database::Database;
pub(in crate::git) use objects::ObjectWriter;
pub(in crate::git) use trees::{Flat, Level, Tree, TreeEntry};
