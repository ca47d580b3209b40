//! An attempt that removed the git repository or put another one in its place: how it ended, and that all of it is taken back.

use std::path::Path;

use crate::engine::base::clock::millis;
use crate::engine::base::{Context, Result};
use crate::engine::record::attempt_record::Ended;
use crate::engine::rollback::{refuse_mixed, restore_checkpoint, rollback_target};
use crate::engine::vault;
use crate::model::run::Leftover;
use crate::model::{AttemptEnd, Cause, Condition, RunKey};
use crate::policy::classify;
use crate::policy::restore::Edits;
use crate::process::Exit;

/// How such an attempt ended; the repository is put back once `settle` has ended what the attempt left running, so that
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
