//! Reverting what a restore did before it failed, and the errors where that fails too.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::memory;
use crate::git::restore::{Expect, RestoreJournal, git_file};
use crate::git::{Repo, WorktreeLock};
use crate::model::hint::Hint;
use crate::model::path::PathReason;

use super::index;
use super::journal::{decode, is_recorded};

/// How the message of an error ends after which everything is as it was.
const REVERTED: &str = "what was written was reverted";

/// Takes back what a failed restore has done so far. The journal stays only where that fails too.
pub(super) fn revert_after(
    context: &Context,
    lock: &WorktreeLock,
    journal: &RestoreJournal,
    error: Error,
) -> Error {
    match revert(context, lock, journal) {
        Ok(left) if left.is_empty() => reverted(error),
        Ok(left) => {
            let mut partial = Error::new(
                ErrorKind::Partial,
                format!(
                    "{error}; not everything could be reverted: undo does it, once what is in the way is gone"
                ),
            );
            partial.hint = Some(Hint::recover(["undo"]));
            partial.paths(left)
        }
        // The journal goes last: all the rest was taken back.
        Err(_) if !context.repo().is_ok_and(Repo::has_restore_journal) => error,
        Err(second) => not_reverted(&error, &second),
    }
}

/// What stopped the restore, and that nothing is left of that.
fn reverted(mut error: Error) -> Error {
    if !error.message.ends_with(REVERTED) {
        error.message.push_str("; ");
        error.message.push_str(REVERTED);
    }
    error
}

/// A temporary file that cannot be removed would be captured: the journal waits until it can be.
pub(super) fn temp_file_left(error: &Error) -> Error {
    journal_pending(format!(
        "a temporary file of a restore that was cut off cannot be removed: {}",
        in_full(error)
    ))
}

/// Neither done nor taken back: the journal waits until the reason is gone.
pub(super) fn not_reverted(error: &Error, second: &Error) -> Error {
    journal_pending(format!(
        "{}; reverting it failed: {}",
        in_full(error),
        in_full(second)
    ))
}

/// Everything is as it should be, but the event, the views or the journal's removal failed.
pub(super) fn unrecorded(
    context: &Context,
    lock: &WorktreeLock,
    journal: &RestoreJournal,
    error: Error,
) -> Error {
    if !context.repo().is_ok_and(Repo::has_restore_journal) {
        // It goes last.
        return error;
    }
    match context.load() {
        Ok(loaded) if is_recorded(&loaded.state, journal) => journal_pending(in_full(&error)),
        // Without its event the restore has not happened: nothing could take it back.
        Ok(_) => revert_after(context, lock, journal, error),
        // Which of the two it is only the repair can find out.
        Err(second) => not_reverted(&error, &second),
    }
}

fn journal_pending(message: String) -> Error {
    Error::new(ErrorKind::CutOff, message).hint(Hint::recover(["doctor", "--repair"]))
}

/// An error with its causes, for a message that names two.
fn in_full(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// Files, working memory, HEAD and index, each by itself: what cannot be taken back keeps no other part from it. The
/// first error is returned, and the journal stays then.
pub(super) fn revert(
    context: &Context,
    lock: &WorktreeLock,
    journal: &RestoreJournal,
) -> Result<Vec<PathReason>> {
    let repo = context.repo()?;
    let journaled = decode(journal)?;
    let placed = journaled
        .operation
        .nested
        .placed
        .iter()
        .try_for_each(|file| git_file::remove(repo, file));
    let files = repo
        .execute_restore(lock, &journal.plan.invert(), Expect::CutOff, &|| false)
        .map_err(Error::from);
    let files = files.and_then(|files| {
        repo.set_last_modes(lock, &files)?;
        Ok(files)
    });
    let unlinked = journaled
        .unlink
        .iter()
        .try_for_each(|file| git_file::write(repo, file));
    let memory = revert_memory(context, journal);
    let head = revert_head(repo, lock, journal);
    let index = index::revert(context, lock, journal);
    let mut left = files?.kept;
    placed?;
    unlinked?;
    left.extend(memory?);
    head?;
    index?;
    repo.reap_temp_files(lock, &journal.plan)?;
    repo.remove_restore_journal(lock)?;
    Ok(left)
}

fn revert_memory(context: &Context, journal: &RestoreJournal) -> Result<Vec<PathReason>> {
    if !decode(journal)?.operation.scope.covers_state() || !journal.selection.is_empty() {
        return Ok(Vec::new());
    }
    let repo = context.repo()?;
    let now = memory::read(context)?;
    let before = repo.load_checkpoint(&journal.safety_commit)?.memory(repo)?;
    let then = repo.load_checkpoint(&journal.target_commit)?.memory(repo)?;
    let mut plan = memory::plan(&now, &before, &context.settings().memory)?;
    let left = plan.leave_changed(&now, &[&before, &then]);
    memory::apply(context.store(), &plan)?;
    Ok(left)
}

fn revert_head(repo: &Repo, lock: &WorktreeLock, journal: &RestoreJournal) -> Result<()> {
    if let Some(after) = &journal.head_after
        && repo.head()? == *after
    {
        let message = format!("recover: {} reverted", journal.kind);
        let before = &journal.head_before;
        match (&before.branch, &before.commit) {
            (Some(branch), Some(commit)) if before.branch != after.branch => {
                repo.start_branch(lock, after, branch, commit, &message)?;
            }
            _ => repo.move_branch(lock, after, before.commit.as_ref(), &message)?,
        }
    }
    Ok(())
}
