//! Restoring the files of an atomic step: that is part of the step, whoever else is at work.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git::WorktreeLock;
use crate::model::operation::{OperationKind, Scope};
use crate::model::run::RunKey;
use crate::model::step::StepStart;
use crate::policy::restore::Edits;

use super::request::RestoreRequest;
use super::{execute, plan};

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
    let request = RestoreRequest {
        run: Some(key.clone()),
        scope: Scope::Files,
        paths: atomic.paths.clone(),
        // Whoever changed a covered file meanwhile: the step promised that it is as it was.
        edits: Edits::Discard,
        ..RestoreRequest::noted(OperationKind::Restore, &state, &atomic.checkpoint_id)?
    };
    let planned = plan::plan(context, lock, &state, &request)?;
    let restored = if planned.is_empty() {
        planned.result(None, true)
    } else {
        execute::run(context, &request, planned, Vec::new(), false)?.result
    };
    for kept in &restored.kept {
        tracing::debug!(path = %kept.path, reason = %kept.reason, "kept as it is");
    }
    Ok(Some(restored.written.len() + restored.deleted.len()))
}
