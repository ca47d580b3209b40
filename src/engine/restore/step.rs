//! Restoring the files of an atomic step: that is part of the step, whoever else is at work.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git::WorktreeLock;
use crate::model::operation::{OperationKind, Scope};
use crate::model::run::RunKey;
use crate::model::step::StepStart;
use crate::policy::restore_plan::Edits;

use super::nested::NestedRequest;
use super::request::{Commits, Restore, RestoreRequest};
use super::{execute, plan};

/// Puts the covered files of an atomic step back as they were before it; `None` for a step that is not atomic.
/// Returns how many paths that were. It is a restore as any other: journaled, verified, and `undo` takes it back.
pub fn restore_covered_files(context: &Context, key: &RunKey, start: &StepStart) -> Result<Option<usize>> {
    let Some(atomic) = &start.atomic else { return Ok(None) };
    let request = RestoreRequest {
        kind: OperationKind::Restore,
        run: Some(key.clone()),
        checkpoint_id: atomic.checkpoint_id.clone(),
        scope: Scope::Files,
        paths: atomic.paths.clone(),
        commits: Commits::Keep,
        // Whoever changed a covered file meanwhile: the step promised that it is as it was.
        edits: Edits::Discard,
        restore_index: false,
        reposition: None,
        nested: NestedRequest::default(),
        unasked: false,
        undoes: None,
    };
    let lock = WorktreeLock::acquire(context.repo()?, context.lock_timeout())?;
    let restored = restore_for_step(context, lock, &request)?.result;
    for kept in &restored.kept {
        tracing::debug!(path = %kept.path, reason = %kept.reason, "kept as it is");
    }
    Ok(Some(restored.written.len() + restored.deleted.len()))
}

/// Puts back what a step has changed that was to be all or nothing: that is part of the step, whoever else is at work.
fn restore_for_step(context: &Context, lock: WorktreeLock, request: &RestoreRequest) -> Result<Restore> {
    let state = context.load()?.state;
    let planned = plan::plan(context, lock, &state, request)?;
    if planned.is_empty() {
        let result = planned.result(None, true);
        return Ok(Restore { kind: request.kind, changed: false, result, run: None });
    }
    execute::run(context, request, planned, Vec::new(), false)
}
