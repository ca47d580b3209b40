//! What is done between two attempts: edits of others are captured, and what must not stay is rolled back.
//!
//! Edits of others are never taken for the run's own work. The files of an iteration that was given up go back to what they were when
//! it began; its work stays in its checkpoint.

use std::path::Path;

use super::tasks;
use crate::engine::base::clock::millis;
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::attempt_record::Ended;
use crate::engine::record::run_settings::settings_of;
use crate::engine::record::storage::{Prepared, Request};
use crate::engine::record::{checkpoint, stored};
use crate::engine::restore::request::{Restore, RestoreResult};
use crate::engine::rollback::{refuse_mixed, restore_checkpoint, rollback_target};
use crate::engine::vault;
use crate::git::tree::TreeLookup;
use crate::model::checkpoint::trigger;
use crate::model::run::{Leftover, NO_CHECKPOINT, OnFailure};
use crate::model::{
    AttemptEnd, Cause, Checkpoint, CheckpointId, Condition, Hint, Iteration, RepoPath, Run, RunKey,
    State,
};
use crate::policy::classify;
use crate::policy::restore::{Edits, glob_of};
use crate::policy::settings::OnGiveUp;
use crate::process::Exit;
use crate::store::views::write_views;

/// Takes a checkpoint where the work tree is not as the run is known to have left it: no attempt begins without one.
///
/// # Errors
/// [`ErrorKind::NotCaptured`] where none can be taken.
pub(super) fn capture_edits(context: &Context, key: &RunKey) -> Result<()> {
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
    // What a rollback could not replace is as the run left it.
    let layer = stored::baseline(context, &state).last();
    let left: &[RepoPath] = layer.map_or(&[], |layer| &layer.left);
    // A checkpoint that is damaged cannot be compared with: another one is taken.
    if is_as(context, &prepared, known, left).unwrap_or(false) {
        return Ok(());
    }
    let iteration = run.current_iteration;
    let begun = run.iterations.get(iteration);
    let begins = begun.is_none_or(|begun| begun.attempts.is_empty());
    let mut ledger = context.store().lock()?;
    let description = format!("Found changed before an attempt of iteration {iteration}");
    let request = Request {
        after_iteration: Some(iteration.saturating_sub(u32::from(begins))),
        ..Request::new(trigger::EDITED, description)
    };
    checkpoint::take(context, &mut ledger, key, &prepared, request)?;
    write_views(ledger, &[key])?;
    Ok(())
}

/// What the run last left: what was restored since, else its latest checkpoint.
fn known<'a>(context: &Context, state: &'a State, run: &Run) -> Option<&'a Checkpoint> {
    let whole = match stored::baseline(context, state) {
        [layer] if layer.paths.is_empty() => state.checkpoint(&layer.checkpoint_id),
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
    let objects = prepared.capture.objects();
    let (then, now) = TreeLookup::new(&objects)?.diff(stored.view(), prepared.capture.view())?;
    let (before, after) = (&stored.manifest.outputs, &prepared.capture.manifest.outputs);
    let is_left = |path: &RepoPath| left.iter().any(|left| path.starts_with(left));
    Ok(then
        .unlike(&now)
        .all(|(path, ..)| before.contains(path) || after.contains(path) || is_left(path)))
}

/// Paths that a message names at most.
const NAMED: usize = 20;
/// What comes along where they are not.
const AS_THEN: &str = ", and everything else as it was then";

/// Rolls the files of the iteration back that was given up last, where that is still to be done. Returns why nothing was touched,
/// where it was refused: edits by hand, commits of others, commits that were pushed.
pub(super) fn roll_back(context: &Context, run: &Run) -> Result<Option<String>> {
    let keeps = settings_of(context, run).retry.on_give_up == OnGiveUp::Keep
        || run.spec.on_failure == OnFailure::Retry;
    let given_up = run
        .to_roll_back
        .filter(|_| !keeps)
        .and_then(|number| run.iterations.get(number));
    let Some((given_up, began)) =
        given_up.and_then(|given_up| Some((given_up, given_up.began.as_ref()?)))
    else {
        return Ok(None);
    };
    let number = given_up.number;
    match try_roll_back(context, &context.load()?.state, run, began) {
        Ok(restored) => {
            if restored.changed {
                let RestoreResult {
                    written,
                    deleted,
                    nested,
                    index,
                    ..
                } = &restored.result;
                let paths: Vec<&RepoPath> = written.iter().chain(deleted).collect();
                // No path brings a repository inside back.
                let is_named = paths.len() <= NAMED && nested.is_empty();
                let (paths, also) = if is_named {
                    (&paths[..], "")
                } else {
                    (&[][..], AS_THEN)
                };
                let work = work_of(context, run, given_up, paths);
                let staged = if index.restored > 0 {
                    " and what it staged is unstaged"
                } else {
                    ""
                };
                context.note(format!(
                    "iteration {number} was given up: the files are as they were when it began{staged}; to get its work \
                     back{also}: {work}"
                ));
            }
            Ok(None)
        }
        Err(refused) if refused.kind.is_refusal() || refused.kind == ErrorKind::NoCheckpoint => {
            let hint = refused.hint.map(|hint| format!("; {}", context.line(hint)));
            let hint = hint.unwrap_or_default();
            let why = format!(
                "iteration {number} was given up, and its files stay as they are, so that the run stops here: {}{hint}",
                refused.message
            );
            context.note(why.clone());
            Ok(Some(why))
        }
        Err(error) => Err(error),
    }
}

fn try_roll_back(
    context: &Context,
    state: &State,
    run: &Run,
    began: &CheckpointId,
) -> Result<Restore> {
    context.check_safe_mode("a rollback by decision")?;
    let target = state.checkpoint(began).ok_or_else(|| {
        Error::new(
            ErrorKind::NoCheckpoint,
            format!("No checkpoint available: {began}, with which it began, is gone"),
        )
    })?;
    let list = tasks::List::of(context, run);
    let (of_list, others): (Vec<_>, Vec<_>) = stored::since(context, state, target)?
        .into_iter()
        .partition(|found| {
            list.as_ref()
                .is_some_and(|list| list.is_all_of(&found.paths))
        });
    if let Some(found) = others.first() {
        let Checkpoint { id, seq, .. } = found.checkpoint;
        let message = format!(
            "{} changed from outside during the attempt (checkpoint @{seq}, {id}); a rollback takes that back too, and {} \
             brings it in again after it",
            found.names(),
            context.line(found.brought_back())
        );
        let hint = Hint::recover(["rollback", "--to", began.as_str()]).run(&run.key);
        return Err(Error::new(ErrorKind::HandEdits, message).hint(hint));
    }
    let restored = restore_checkpoint(context, &run.key, target, Edits::Refuse)?;
    if let Some(list) = list.filter(|_| !of_list.is_empty()) {
        list.put_back()?;
    }
    refuse_mixed(context, run, target, &restored)?;
    Ok(restored)
}

/// The command that brings its work back: what is in `paths`, where there are any, else everything as it was then.
fn work_of(context: &Context, run: &Run, given_up: &Iteration, paths: &[&RepoPath]) -> String {
    let limits = paths
        .iter()
        .flat_map(|path| ["--path".to_owned(), glob_of(path)]);
    let last = given_up
        .attempts
        .iter()
        .rev()
        .find_map(|attempt| attempt.checkpoint_id.as_ref());
    context.line(match last {
        Some(id) => Hint::recover(["checkpoint", "restore", id.as_str()])
            .args(limits)
            .run(&run.key),
        None => Hint::recover(["undo"]),
    })
}

/// How an attempt ended that removed the git repository or put another one in its place, which is put back once `settle` has ended what the attempt left running, so that
/// nothing of it makes another one meanwhile. `None` for any other attempt.
pub(super) fn ended_by(
    context: &Context,
    (exit, log): (&Exit, &Path),
    settle: impl FnOnce(&mut Vec<Leftover>),
) -> Result<Option<AttemptEnd>> {
    if !vault::is_removed(context)? {
        return Ok(None);
    }
    let mut leftovers = Vec::new();
    settle(&mut leftovers);
    let Some(message) = vault::put_back_removed(context)? else {
        return Ok(None);
    };
    Ok(Some(AttemptEnd {
        duration_ms: millis(exit.duration),
        exit_code: exit.exit_code,
        signal: exit.signal.clone(),
        timed_out: exit.timed_out,
        log_path: Some(log.to_string_lossy().into_owned()),
        failure: Some(classify::repository_removed(message)),
        leftovers,
        ..AttemptEnd::default()
    }))
}

/// Restores what was there before such an attempt; does nothing after any other.
pub(super) fn take_back(context: &Context, key: &RunKey, ended: &Ended) -> Result<()> {
    if !ended.end.conditions.contains(&Condition::RepositoryRemoved) {
        return Ok(());
    }
    let state = context.load()?.state;
    let Some(target) = rollback_target(&state, key, Some(Cause::Crashed)) else {
        return Ok(());
    };
    let restored = restore_checkpoint(context, key, target, Edits::Keep)?;
    refuse_mixed(context, &ended.run, target, &restored)
}
