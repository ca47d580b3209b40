//! The checkpoint that goes back before an attempt is made again, and putting its files there.

use crate::model::checkpoint::{Checkpoint, Verdict, trigger};
use crate::model::failure::Cause;
use crate::model::operation::{OperationKind, Scope};
use crate::model::run::{IterationStatus, Run, RunKey};
use crate::model::state::State;
use crate::policy::restore_plan::Edits;

use super::super::context::Context;
use super::super::error::{ErrorKind, Result};
use super::super::restore::{Commits, RestoreRequest, restore};

/// The checkpoint that an automatic rollback goes back to: after a crash the run's last one that did not fail, else the
/// last good one. None that somebody went back past: what was taken back does not come again unasked.
pub fn way_back<'a>(state: &'a State, key: &RunKey, cause: Option<Cause>) -> Option<&'a Checkpoint> {
    let run = state.run(key);
    let stands = |c: &&Checkpoint| run.is_none_or(|run| stands(run, c));
    if cause == Some(Cause::Crashed) {
        let attempted = |c: &Checkpoint| c.trigger == trigger::CRASH || c.is_in_between() || c.is_failed_attempt();
        let usable = |c: &&Checkpoint| !c.is_safety() && !attempted(c);
        return state.checkpoints_of(key).filter(stands).rfind(usable);
    }
    let good = |c: &&Checkpoint| c.verdict == Verdict::Passed && !c.is_safety();
    state.last_good(key).filter(stands).or_else(|| state.checkpoints_of(key).filter(stands).rfind(good))
}

/// Whether a checkpoint is on the way to where its run is: the iteration that it came after was not taken back since, nor
/// tried again without success.
fn stands(run: &Run, checkpoint: &Checkpoint) -> bool {
    let Some(iteration) = run.iterations.get(checkpoint.after_iteration) else { return true };
    let is_of_last = || iteration.attempts.last().is_none_or(|last| checkpoint.created_at >= last.started_at);
    match iteration.status {
        IterationStatus::Completed => true,
        IterationStatus::Superseded => false,
        _ => is_of_last(),
    }
}

/// Puts a checkpoint's files in place of those that are there, commits of the attempt included; with `Edits::Keep` hand
/// edits stay, and HEAD where moving it would be refused.
pub fn put_back(context: &Context, key: &RunKey, target: &Checkpoint, edits: Edits) -> Result<()> {
    let mut request = RestoreRequest {
        kind: OperationKind::Rollback,
        run: Some(key.clone()),
        checkpoint_id: target.id.clone(),
        scope: Scope::All,
        paths: Vec::new(),
        commits: Commits::Refuse,
        edits,
        restore_index: false,
        reposition: None,
        undoes: None,
    };
    match restore(context, &request) {
        Err(error) if error.kind == ErrorKind::HeadMoved && edits == Edits::Keep => {
            tracing::warn!(%error, "HEAD stays; only the files go back");
            request.commits = Commits::Keep;
            restore(context, &request).map(drop)
        }
        other => other.map(drop),
    }
}
