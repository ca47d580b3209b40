//! Rolls back an iteration that was given up, before the next one begins.
//! Its files go back to what they were when it began. Its work stays in its checkpoint.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::flow::rollback_target::{refuse_mixed, restore_checkpoint};
use crate::engine::record::edits;
use crate::engine::record::run_settings::settings_of;
use crate::engine::restore::request::{Restore, RestoreResult};
use crate::model::checkpoint::Checkpoint;
use crate::model::hint::Hint;
use crate::model::id::CheckpointId;
use crate::model::path::RepoPath;
use crate::model::run::{Iteration, OnFailure, Run};
use crate::model::state::State;
use crate::policy::restore::{Edits, glob_of};
use crate::policy::settings::OnGiveUp;

/// Paths that a message names at most.
const NAMED: usize = 20;
/// What comes along where they are not.
const AS_THEN: &str = ", and everything else as it was then";

/// What became of an iteration that was given up.
pub(super) enum RolledBack {
    /// The run goes on.
    Done,
    /// Nothing was touched, and why: edits by hand, commits of others, commits that were pushed.
    Refused(String),
}

/// Rolls the files of the iteration back that was given up last, where that is still to be done.
pub(super) fn roll_back(context: &Context, run: &Run) -> Result<RolledBack> {
    let keeps = settings_of(context, run).retry.on_give_up == OnGiveUp::Keep
        || run.spec.on_failure == OnFailure::Retry;
    let given_up = run
        .to_roll_back
        .filter(|_| !keeps)
        .and_then(|number| run.iterations.get(number));
    let Some((given_up, began)) =
        given_up.and_then(|given_up| Some((given_up, given_up.began.as_ref()?)))
    else {
        return Ok(RolledBack::Done);
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
            Ok(RolledBack::Done)
        }
        Err(refused) if refused.kind.is_refusal() || refused.kind == ErrorKind::NoCheckpoint => {
            let hint = refused
                .hint
                .map(|hint| format!("; {}", context.line(hint)))
                .unwrap_or_default();
            let why = format!(
                "iteration {number} was given up, and its files stay as they are, so that the run stops here: {}{hint}",
                refused.message
            );
            context.note(why.clone());
            Ok(RolledBack::Refused(why))
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
    if let Some(found) = edits::since(context, state, target)?.first() {
        let Checkpoint { id, seq, .. } = found.checkpoint;
        let message = format!(
            "somebody else changed {} while it was tried (checkpoint @{seq}, {id}); a rollback takes that back too, and {} \
             brings it in again after it",
            found.names(),
            context.line(found.brought_back())
        );
        let hint = Hint::recover(["rollback", "--to", began.as_str()]).run(&run.key);
        return Err(Error::new(ErrorKind::HandEdits, message).hint(hint));
    }
    let restored = restore_checkpoint(context, &run.key, target, Edits::Refuse)?;
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
