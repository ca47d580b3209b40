//! The checkpoint that an automatic rollback restores before the next attempt, and restoring it.

use crate::engine::base::context::Context;
use crate::engine::base::error::{ErrorKind, Result};
use crate::engine::restore::request::{Commits, Restore, RestoreRequest};
use crate::model::checkpoint::{Checkpoint, trigger};
use crate::model::failure::Cause;
use crate::model::operation::OperationKind;
use crate::model::run::RunKey;
use crate::model::state::State;
use crate::policy::restore_plan::Edits;

use super::restore::restore;

/// The checkpoint that an automatic rollback goes back to: after a crash the run's last one that did not fail, else the
/// last good one.
pub fn rollback_target<'a>(state: &'a State, key: &RunKey, cause: Option<Cause>) -> Option<&'a Checkpoint> {
    if cause != Some(Cause::Crashed) {
        return state.last_good(key);
    }
    let attempted = |c: &Checkpoint| c.trigger == trigger::CRASH || c.is_in_between() || c.is_failed_attempt();
    state.standing(key).rfind(|c| !attempted(c))
}

/// Puts a checkpoint's files in place of those that are there, commits of the attempt included; with `Edits::Keep` hand
/// edits stay, and HEAD where moving it would be refused. A dry run only plans it.
pub fn restore_checkpoint(context: &Context, key: &RunKey, target: &Checkpoint, edits: Edits) -> Result<Restore> {
    let mut request = RestoreRequest {
        run: Some(key.clone()),
        commits: Commits::Refuse,
        edits,
        unasked: true,
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
