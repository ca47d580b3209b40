//! The checkpoint that an automatic rollback restores before the next attempt, and restoring it.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::git_settings;
use crate::engine::restore::mixed::mixed;
use crate::engine::restore::request::{Commits, Initiator, Restore, RestoreRequest};
use crate::model::checkpoint::{Checkpoint, trigger};
use crate::model::failure::Cause;
use crate::model::hint::Hint;
use crate::model::operation::OperationKind;
use crate::model::path::PathReason;
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::policy::restore::Edits;
use crate::policy::text::escape;

use super::restore::restore;

/// The checkpoint that an automatic rollback goes back to: after a crash the run's last one that did not fail, else the
/// last good one.
pub(crate) fn rollback_target<'a>(
    state: &'a State,
    key: &RunKey,
    cause: Option<Cause>,
) -> Option<&'a Checkpoint> {
    if cause != Some(Cause::Crashed) {
        return state.last_good(key);
    }
    let attempted =
        |c: &Checkpoint| c.trigger == trigger::CRASH || c.is_in_between() || c.is_failed_attempt();
    state.standing(key).rfind(|c| !attempted(c))
}

/// Puts a checkpoint's files in place of those that are there, commits of the attempt included; with `Edits::Keep` hand
/// edits stay, and HEAD where moving it would be refused. What cannot be replaced stays, and [`refuse_mixed`] says whether
/// the run may go on with it. A dry run only plans it.
pub(crate) fn restore_checkpoint(
    context: &Context,
    key: &RunKey,
    target: &Checkpoint,
    edits: Edits,
) -> Result<Restore> {
    let hidden_by = git_settings::put_back(context, key);
    let mut request = RestoreRequest {
        run: Some(key.clone()),
        commits: Commits::Refuse,
        edits,
        best_effort: true,
        initiator: Initiator::Policy,
        hidden_by,
        ..RestoreRequest::new(OperationKind::Rollback, target)
    };
    match restore(context, &request) {
        Err(error) if error.kind == ErrorKind::HeadMoved && edits == Edits::Keep => {
            tracing::warn!(%error, "HEAD stays; only the files go back");
            request.commits = Commits::Keep;
            restore(context, &request)
        }
        other => other,
    }
}

/// Paths that a message names at most.
const NAMED: usize = 5;

/// Refuses to go on after an automatic rollback with a path that could not be replaced and is in the checkpoint, or that
/// tests, checks or configuration would read. Anything else that is left of the attempt can change no verdict.
///
/// # Errors
/// There is such a path (8).
pub(crate) fn refuse_mixed(
    context: &Context,
    run: &Run,
    target: &Checkpoint,
    restore: &Restore,
) -> Result<()> {
    let mixed = mixed(context, run, target, &restore.result.left)?;
    if mixed.is_empty() {
        return Ok(());
    }
    let name = |kept: &PathReason| format!("{} ({})", escape(&kept.path.to_lossy()), kept.reason);
    let mut names: Vec<String> = mixed.iter().take(NAMED).map(name).collect();
    if mixed.len() > NAMED {
        names.push(format!("{} more", mixed.len() - NAMED));
    }
    let message = format!(
        "the rollback to {} is not complete, so that the run stops here: {} could not be replaced, everything else was; \
         make room for them, then roll back again",
        target.id,
        names.join(", ")
    );
    let hint = Hint::recover(["rollback", "--to", target.id.as_str()]).run(&run.key);
    Err(Error::new(ErrorKind::NeedsPerson, message)
        .paths(mixed)
        .hint(hint))
}
