//! What is done about a damaged object database beside reporting it.

use crate::git::Repo;
use crate::git::repo::raise;

/// Lets the next captures write again what is damaged and still lies in the work tree.
pub(in crate::engine) fn doubt(repo: &Repo) {
    if let Err(error) = raise(repo) {
        tracing::warn!(%error, "the next capture does not know of the damage");
    }
}
