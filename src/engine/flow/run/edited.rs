//! What somebody else changed in the work tree between two attempts.
//! It is captured before the next one, so that it is never taken for the run's own work.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::base::runs::run_of;
use crate::engine::record::request::{Prepared, Request};
use crate::engine::record::{checkpoint, events};
use crate::git::tree::TreeLookup;
use crate::model::checkpoint::{Checkpoint, trigger};
use crate::model::hint::Hint;
use crate::model::path::RepoPath;
use crate::model::run::{NO_CHECKPOINT, Run, RunKey};
use crate::model::state::State;

/// Takes a checkpoint where the work tree is not as the run is known to have left it: no attempt begins without one.
///
/// # Errors
/// [`ErrorKind::NotCaptured`] where none can be taken.
pub(crate) fn capture(context: &Context, key: &RunKey) -> Result<()> {
    try_capture(context, key).map_err(|error| match error.kind {
        ErrorKind::Interrupted(_) => error,
        _ => not_captured(&error.message, Hint::recover(["resume"]).run(key)),
    })
}

/// The error of an attempt that cannot begin, or of a run that cannot go on, for want of a checkpoint.
pub(crate) fn not_captured(why: &str, hint: Hint) -> Error {
    Error::new(ErrorKind::NotCaptured, format!("{NO_CHECKPOINT}{why}")).hint(hint)
}

fn try_capture(context: &Context, key: &RunKey) -> Result<()> {
    let state = context.load()?.state;
    let run = run_of(&state, key)?;
    // A run begins with a checkpoint.
    let Some(known) = known(context, &state, &run).filter(|_| run.iterations.count_attempts() > 0)
    else {
        return Ok(());
    };
    let prepared = checkpoint::prepare(context)?;
    let baseline = state
        .worktrees
        .get(&context.worktree_id())
        .map(|worktree| worktree.baseline.as_slice());
    // What a rollback could not replace is as the run left it.
    let left: &[RepoPath] = baseline
        .and_then(|layers| layers.last())
        .map_or(&[], |layer| &layer.left);
    // A checkpoint that is damaged cannot be compared with: another one is taken.
    if is_as(context, &prepared, known, left).unwrap_or(false) {
        return Ok(());
    }
    let iteration = run.current_iteration;
    let begins = run
        .iterations
        .get(iteration)
        .is_none_or(|begun| begun.attempts.is_empty());
    let ledger = context.store().lock()?;
    let request = Request {
        description: format!("Found changed before an attempt of iteration {iteration}"),
        trigger: trigger::EDITED.to_owned(),
        kind: trigger::kind_of(trigger::EDITED),
        after_iteration: Some(if begins {
            iteration.saturating_sub(1)
        } else {
            iteration
        }),
        ..Request::default()
    };
    let taken = checkpoint::record(context, &ledger, key, &prepared, request)?;
    events::append(
        ledger,
        key,
        taken.created_at,
        vec![checkpoint::event(&taken)],
    )
    .map(drop)
}

/// What the run last left: what was restored since, else its latest checkpoint.
fn known<'a>(context: &Context, state: &'a State, run: &Run) -> Option<&'a Checkpoint> {
    let baseline = state
        .worktrees
        .get(&context.worktree_id())
        .map(|worktree| worktree.baseline.as_slice());
    let whole = match baseline {
        Some([layer]) if layer.paths.is_empty() => state.checkpoint(&layer.checkpoint_id),
        _ => None,
    };
    whole
        .filter(|one| one.run == run.key)
        .or_else(|| state.latest(&run.key))
}

/// Whether the work tree is as a checkpoint has it, but for what was `left` and the files that this program's own output
/// goes to.
fn is_as(
    context: &Context,
    prepared: &Prepared,
    known: &Checkpoint,
    left: &[RepoPath],
) -> Result<bool> {
    let stored = context.repo()?.load_checkpoint(&known.commit)?;
    if prepared.capture.is_same_tree(&stored) {
        return Ok(true);
    }
    let opened = prepared.capture.objects().open();
    let (then, now) = TreeLookup::new(&opened)?.diff(stored.view(), prepared.capture.view())?;
    let (before, after) = (&stored.manifest.outputs, &prepared.capture.manifest.outputs);
    let is_left = |path: &RepoPath| left.iter().any(|left| path.starts_with(left));
    Ok(then
        .unlike(&now)
        .all(|(path, ..)| before.contains(path) || after.contains(path) || is_left(path)))
}
