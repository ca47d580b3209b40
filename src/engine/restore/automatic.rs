//! Restores that a run does by itself: the working memory after an error, the files of an atomic step; and what they leave mixed.
//!
//! The automatic reaction to an error: the working memory goes back, source code never (L3, L6).
//!
//! Restoring the files of an atomic step: that is part of the step, whoever else is at work.
//!
//! Work trees that are neither an attempt's nor a checkpoint's: what a rollback could not replace is still in them.

use super::execute::restore_state_only;
use super::nested::find;
use super::request::{Commits, Options, RestoreRequest};
use super::{execute, plan};
use crate::engine::base::{Context, Result};
use crate::engine::record::memory;
use crate::engine::record::run_settings::loops_of;
use crate::engine::record::storage::Prepared;
use crate::engine::record::stored::load_both;
use crate::git::WorktreeLock;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::tree::TreeLookup;
use crate::model::path::TOO_MANY;
use crate::model::step::StepStart;
use crate::model::{
    Checkpoint, Nested, Operation, OperationKind, PathReason, Payload, RepoPath, Run, RunKey,
    Scope, State,
};
use crate::policy::changes::{Loop, is_of_checks};
use crate::policy::restore::Edits;
use crate::store::{Exclusive, NewEvent};

/// The checkpoint to go back to: the run's latest one that did not fail, and that was not taken on the way of the attempt
/// under way, whose memory is what goes.
pub(crate) fn memory_target<'a>(state: &'a State, key: &RunKey) -> Option<&'a Checkpoint> {
    let began = state
        .run(key)
        .and_then(|run| run.live.as_ref())
        .map(|live| live.after_checkpoint);
    let of_attempt = |c: &Checkpoint| c.is_in_between() && began.is_some_and(|began| c.seq > began);
    state
        .standing(key)
        .rfind(|c| !c.is_failed_attempt() && !of_attempt(c))
}

/// Puts the working memory back and clears the loop's own state files. `safety` is the checkpoint that holds what there
/// was, without which nothing is overwritten. Returns whether a rollback took place.
pub(crate) fn restore_memory(
    context: &Context,
    ledger: &mut Exclusive,
    key: &RunKey,
    target: Option<&Checkpoint>,
    safety: Option<(&Checkpoint, &Prepared)>,
) -> Result<bool> {
    let Some((safety, prepared)) = safety else {
        return Ok(false);
    };
    let settings = &context.settings().memory;
    let source = target.unwrap_or(safety);
    let repo = context.repo()?;
    let then = repo.load_checkpoint(&source.commit)?.memory(repo)?;
    let plan = memory::plan_after_error(&prepared.memory, &then, settings)?;
    if !plan.is_empty() {
        let operation = Operation {
            scope: Scope::State,
            written: plan.write.len() as u64,
            deleted: plan.delete.len() as u64,
            ..Operation::new("op_state", OperationKind::Restore, safety, &source.id)
        };
        let commits = (&safety.commit, &source.commit);
        restore_state_only(context, &prepared.lock, key, operation.clone(), commits)?;
        let event = NewEvent::about(
            key,
            Payload::Restored {
                operation: Box::new(operation),
            },
        );
        ledger.append(context.clock.now(), vec![event])?;
        repo.remove_restore_journal(&prepared.lock)?;
    }
    Ok(target.is_some())
}

/// Puts the covered files of an atomic step back as they were before it; `None` for a step that is not atomic.
/// Returns how many paths that were. It is a restore as any other: journaled, verified, and `undo` takes it back.
pub(crate) fn restore_covered_files(
    context: &Context,
    key: &RunKey,
    start: &StepStart,
) -> Result<Option<usize>> {
    let Some(atomic) = &start.atomic else {
        return Ok(None);
    };
    let lock = WorktreeLock::acquire(context.repo()?, context.lock_timeout())?;
    let state = context.load()?.state;
    let options = Options {
        scope: Scope::Files,
        paths: atomic.paths.clone(),
        commits: Commits::Keep,
        // Whoever changed a covered file meanwhile: the step promised that it is as it was.
        edits: Edits::Discard,
        ..Options::default()
    };
    let id = &atomic.checkpoint_id;
    let request = RestoreRequest {
        run: Some(key.clone()),
        ..RestoreRequest::noted(OperationKind::Restore, &state, id, options)?
    };
    let planned = plan::plan(context, lock, &state, &request)?;
    let restored = if planned.is_empty() {
        planned.result(&request.target, None, true)
    } else {
        execute::run(context, &request, planned, Vec::new(), false)?.result
    };
    for kept in &restored.kept {
        tracing::debug!(path = %kept.path, reason = %kept.reason, "kept as it is");
    }
    Ok(Some(restored.written.len() + restored.deleted.len()))
}

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
    let loops: Vec<Loop<'_>> = loops.iter().map(Loop::from).collect();
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
    let (before, stored) = load_both(context, before, target)?;
    let objects = prepared.capture.objects();
    let lookup = TreeLookup::new(&objects)?;
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
