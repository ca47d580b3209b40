//! The end of `recover accept`: the branch moves, the index follows, and the run is accepted.
//! A kill in between leaves a journal, by which the next command finishes it, or takes back what was begun before the branch
//! moved.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::base::runs::run_of;
use crate::git::program::CommitJournal;
use crate::git::{Repo, WorktreeLock};
use crate::model::event::Payload;
use crate::model::run::{Run, RunKey, RunStatus};

/// Puts commits that were made on the branch, and records it. Nothing is changed where that is refused.
pub(in crate::engine) fn put(
    context: &Context,
    lock: &WorktreeLock,
    journal: &CommitJournal,
) -> Result<Run> {
    let repo = context.repo()?;
    repo.write_commit_journal(lock, journal)?;
    let concluded = journal.conclude(repo, lock, context.lock_timeout());
    if let Err(error) = concluded {
        if !journal.has_moved(repo)? {
            give_up(repo, lock, journal)?;
        }
        return Err(error.into());
    }
    finish(context, lock, journal)
}

fn give_up(repo: &Repo, lock: &WorktreeLock, journal: &CommitJournal) -> Result<()> {
    journal.take_back(repo, lock)?;
    Ok(repo.remove_commit_journal(lock)?)
}

fn finish(context: &Context, lock: &WorktreeLock, journal: &CommitJournal) -> Result<Run> {
    let payload = Payload::RunAccepted {
        commits: journal.commits.clone(),
        kept: journal.kept.clone(),
        left_out: journal.left_out,
        operation: journal.operation.clone(),
    };
    let run = record(context, &journal.run, payload)?;
    context.repo()?.remove_commit_journal(lock)?;
    Ok(run)
}

/// Records that a run was accepted with nothing to commit.
pub(in crate::engine) fn record_empty(context: &Context, key: &RunKey) -> Result<Run> {
    let payload = Payload::RunAccepted {
        commits: Vec::new(),
        kept: None,
        left_out: false,
        operation: None,
    };
    record(context, key, payload)
}

fn record(context: &Context, key: &RunKey, payload: Payload) -> Result<Run> {
    let ledger = context.store().lock()?;
    let run = run_of(ledger.state(), key)?;
    let last = match &payload {
        Payload::RunAccepted { commits, .. } => commits.last(),
        _ => None,
    };
    // Finished after a kill it may be recorded already.
    if run.status == RunStatus::Accepted
        && (last.is_none() || run.accepted_as.commit.as_ref() == last)
    {
        return Ok(run);
    }
    let state = context.record_in(ledger, key, vec![payload])?;
    run_of(&state, key)
}

/// Settles what was cut off; what was done about it.
pub(super) fn recover(context: &Context) -> Result<Option<String>> {
    let Some(repo) = context.repo().ok().filter(|_| context.has_git()) else {
        return Ok(None);
    };
    if let Err(error) = repo.sweep_scratch() {
        tracing::warn!(%error, "what a bisect left was not removed");
    }
    if !repo.has_commit_journal() {
        return Ok(None);
    }
    let lock = context.lock_worktree(repo)?;
    let Some(journal) = repo.read_commit_journal()? else {
        return Ok(None);
    };
    let key = &journal.run;
    if !journal.has_moved(repo)? {
        give_up(repo, &lock, &journal)?;
        return Ok(Some(format!(
            "accepting {key} was cut off before the branch moved: nothing was changed"
        )));
    }
    match journal
        .conclude(repo, &lock, context.lock_timeout())
        .map_err(Error::from)
    {
        // The branch is begun, and somebody is on another one by now.
        Err(error) if error.kind == ErrorKind::HeadMoved => {}
        concluded => concluded?,
    }
    // A run that was removed meanwhile needs no word.
    if context.load()?.state.run(key).is_some() {
        finish(context, &lock, &journal)?;
    } else {
        repo.remove_commit_journal(&lock)?;
    }
    Ok(Some(format!(
        "accepting {key} was cut off: it is finished now"
    )))
}
