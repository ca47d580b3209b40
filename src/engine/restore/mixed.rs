//! Work trees that are neither an attempt's nor a checkpoint's: what a rollback could not replace is still in them.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::record::request::Prepared;
use crate::engine::record::run_settings::loops_of;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::tree::TreeLookup;
use crate::model::checkpoint::Checkpoint;
use crate::model::manifest::Nested;
use crate::model::path::{PathReason, RepoPath, TOO_MANY};
use crate::model::run::Run;
use crate::model::state::State;
use crate::policy::changes::{Loop, is_of_checks};

use super::nested::find;

/// Those of the paths left by a restore of `target` that can change what checks say: the checkpoint has them, or they
/// belong to the checks themselves.
pub(crate) fn mixed(
    context: &Context,
    run: &Run,
    target: &Checkpoint,
    left: &[PathReason],
) -> Result<Vec<PathReason>> {
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let repo = context.repo()?;
    let stored = repo.load_checkpoint(&target.commit)?;
    let lookup = TreeLookup::stored(repo)?;
    let loops = loops_of(context, run);
    let loops: Vec<Loop<'_>> = loops
        .iter()
        .map(|one| Loop {
            name: &one.name,
            command: &one.command,
            dir: one.dir.text(),
        })
        .collect();
    let mut mixed = Vec::new();
    for left in left {
        let is_new = link_of(&stored, &left.path).is_none() && !has(&stored, &lookup, left)?;
        if !is_new || is_of_checks(&left.path.to_lossy(), &loops) {
            mixed.push(left.clone());
        }
    }
    Ok(mixed)
}

/// Whether a checkpoint has a path that was left, a file or a folder. Of a folder with too many new files it may have some:
/// those are listed themselves where they are not the same.
fn has(stored: &StoredCheckpoint, lookup: &TreeLookup<'_>, left: &PathReason) -> Result<bool> {
    let view = stored.view();
    Ok(view.entry(lookup, &left.path)?.is_some()
        || (!left.reason.ends_with(TOO_MANY) && view.is_folder(lookup, &left.path)?))
}

/// What a checkpoint has of a nested repository.
fn link_of<'s>(stored: &'s StoredCheckpoint, path: &RepoPath) -> Option<&'s Nested> {
    stored
        .manifest
        .nested
        .iter()
        .find(|link| link.path == *path)
}

/// Whether such a path is still as the last restore left it: then the tree proves nothing of an attempt.
pub(crate) fn is_mixed(
    context: &Context,
    state: &State,
    run: &Run,
    prepared: &Prepared,
) -> Result<bool> {
    let Some(restored) = run
        .restored
        .as_ref()
        .filter(|restored| !restored.kept.is_empty())
    else {
        return Ok(false);
    };
    let before = restored.before.as_ref().and_then(|id| state.checkpoint(id));
    let Some((target, before)) = state.checkpoint(&restored.checkpoint_id).zip(before) else {
        return Ok(false);
    };
    let repo = context.repo()?;
    let (before, stored) = (
        repo.load_checkpoint(&before.commit)?,
        repo.load_checkpoint(&target.commit)?,
    );
    let opened = prepared.capture.objects().open();
    let lookup = TreeLookup::new(&opened)?;
    for left in mixed(context, run, target, &restored.kept)? {
        let nested = find(&prepared.nested, &left.path);
        let link = link_of(&stored, &left.path).and_then(|link| link.checkpoint.as_ref());
        let is_left = match nested.zip(link) {
            Some((nested, then)) => !nested.has_files_of(then),
            None => {
                prepared.capture.view().entry(&lookup, &left.path)?
                    == before.view().entry(&lookup, &left.path)?
            }
        };
        if is_left {
            return Ok(true);
        }
    }
    Ok(false)
}
