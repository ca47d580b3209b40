//! The references of checkpoints that were taken of a nested repository for the one around it.
//!
//! `refs/recover/<run>/<checkpoint>-<ten digits of the path's hash>`: the nested repository may be a linked worktree of the outer
//! one or of another nested one, and then they share their references.

use git2::{ObjectType, Oid};

use crate::git::base::error::{Error, Result};
use crate::git::repo::refs::{CheckpointRef, ref_name};
use crate::git::repo::repository::Repo;
use crate::model::id::{CheckpointId, RunId};
use crate::model::path::RepoPath;

/// How many digits of the path's hash stand in the name.
const DIGITS: usize = 10;

/// The id of the part of a checkpoint that a nested repository holds. `path` is relative to the outermost work tree.
pub(crate) fn nested_id(checkpoint: &CheckpointId, path: &RepoPath) -> Result<CheckpointId> {
    Ok(format!("{checkpoint}-{}", digits(path)?).into())
}

/// What stands for a path in a name.
pub(in crate::git) fn digits(path: &RepoPath) -> Result<String> {
    let hash =
        Oid::hash_object(ObjectType::Blob, path.as_bytes()).map_err(Error::git("hash a path"))?;
    Ok(hash.to_string()[..DIGITS].to_owned())
}

/// The name of the outer checkpoint's reference that one of a nested repository belongs to; `None` for others.
pub(crate) fn outer_ref(name: &str) -> Option<&str> {
    let (outer, hash) = name.rsplit_once('-')?;
    (hash.len() == DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(outer)
}

impl Repo {
    /// The references in a nested repository that belong to this checkpoint of an outer one.
    pub(crate) fn nested_refs_of(
        &self,
        run_id: &RunId,
        checkpoint: &CheckpointId,
    ) -> Result<Vec<CheckpointRef>> {
        let outer = ref_name(run_id, checkpoint);
        let (all, _) = self.list_refs()?;
        Ok(all
            .into_iter()
            .filter(|found| outer_ref(&found.name) == Some(outer.as_str()))
            .collect())
    }
}
