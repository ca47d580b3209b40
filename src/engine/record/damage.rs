//! Damage in an object database.

use crate::git::Repo;
use crate::git::repo::mark_odb_suspect;

/// Marks the object database as suspect: the next captures write again what is damaged and still in the work tree.
pub(in crate::engine) fn mark_suspect(repo: &Repo) {
    if let Err(error) = mark_odb_suspect(repo) {
        tracing::warn!(%error, "the next capture does not know of the damage");
    }
}
