//! Crash recovery, before every command that writes.
//! It settles restores, steps, attempts and sessions that a kill cut off, and checkpoints whose event was never written.
//! Commands that only read apply the same in memory.
//!
//! References of checkpoints that something else removed: `git fetch --prune` in a mirror clone does.
//!
//! What runs that were removed on purpose leave behind where a kill came: their folders and views.
//!
//! The end of `recover accept`: the branch moves, the index follows, and the run is accepted.
//! A kill in between leaves a journal, by which the next command finishes it, or takes back what was begun before the branch
//! moved.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Once};

use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::events::adopt_one;
use crate::engine::record::liveness::{is_orphaned, orphaned_baseline, orphaned_steps};
use crate::engine::record::stored::record_of;
use crate::engine::record::{at_work, git_state};
use crate::engine::restore::execute;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::program::CommitJournal;
use crate::git::repo::CheckpointRef;
use crate::git::{Repo, WorktreeLock};
use crate::model::checkpoint::trigger;
use crate::model::{Checkpoint, Event, Hint, ObjectId, Payload, Run, RunKey, RunStatus, State};
use crate::os::processes::boot_id;
use crate::store::salvage;

pub(in crate::engine) mod lost;
pub(crate) mod rebuild;

/// The state for commands that only read: attempts whose supervisor is gone count as crashed, without a word written.
pub(crate) fn load_recovered(context: &Context) -> Result<Arc<State>> {
    let mut state = context.load()?.state;
    if let Some(said) = take_over_private(context)? {
        context.note(said);
    }
    refuse_lost_ledger(context, &state)?;
    tell_if_moved(context, &state);
    lost::apply_attempts(context, &mut state);
    lost::apply_steps(context, &mut state);
    lost::apply_silent(context, &mut state);
    Ok(state)
}

/// Checkpoints from before the project was a git repository.
fn take_over_private(context: &Context) -> Result<Option<String>> {
    let taken = context.take_over_private()?;
    Ok(taken.map(|count| {
        format!(
            "this folder is a git repository now: the {count} checkpoints from before are in it"
        )
    }))
}

/// Says once why nothing that was recorded is found here, where the project has another place now.
fn tell_if_moved(context: &Context, state: &State) {
    static TOLD: Once = Once::new();
    if let Some(place) = rebuild::recorded_at(context, state) {
        TOLD.call_once(|| {
            let (place, way) = (
                place.display(),
                context.line(Hint::recover(["doctor", "--rebuild"])),
            );
            tracing::warn!("this project was recorded at {place}: `{way}` takes its runs over");
        });
    }
}

/// For commands that write. Finishes a restore and takes back an atomic step that was cut off, imports checkpoints whose event was never written,
/// and records attempts whose supervisor was killed. Nobody asked for that: a note says each thing that was done.
pub(crate) fn recover(context: &Context) -> Result<()> {
    let mut done = Vec::new();
    let recovered = recover_into(context, &mut done);
    for what in done {
        context.note(what);
    }
    recovered
}

/// [`recover`] for who answers with what was done, which is added to `done` also where an error comes after it.
pub(crate) fn recover_into(context: &Context, done: &mut Vec<String>) -> Result<()> {
    refuse_lane_file(context)?;
    if context.has_git() || context.store().exists() {
        let mut state = context.store().load_for_writing()?.state;
        done.extend(take_over_private(context)?);
        if let Some(from) = context.brought_from(&state) {
            rebuild::take_over(context, &from)?;
            state = context.load()?.state;
        }
        // What is finished and taken back needs git's locks.
        done.extend(git_state::recover(context, &state)?);
        if let Some(finished) = execute::finish_cut_off(context)? {
            done.push(finished);
            state = context.load()?.state;
        }
        done.extend(recover_commits(context)?);
        refuse_lost_ledger(context, &state)?;
        tell_if_moved(context, &state);
        done.extend(set_again(context, &state)?);
        done.extend(adopt(context, &state)?);
        sweep_forgotten(context, &state)?;
        // What is imported is no work under way: that there is none is known without another look.
        let lost =
            |run: &Run| is_orphaned(context, run) || orphaned_baseline(context, run).is_some();
        let mut here = state.runs_of(&context.worktree_id());
        if here.any(lost) || !orphaned_steps(context, &state).is_empty() {
            recover_orphaned(context, done)?;
        }
        done.extend(lost::recover_silent(context)?);
    }
    Ok(())
}

/// Lane records are written anew as a whole (C1): a file of another kind in their place would be gone.
fn refuse_lane_file(context: &Context) -> Result<()> {
    if !context.store().lane_file_is_foreign() {
        return Ok(());
    }
    let file = context.store().lane_file().display();
    let message = format!(
        "[checkpoint] lane_file: {file} exists and holds no lane records; name another file"
    );
    Err(Error::new(ErrorKind::Config, message).hint(Hint::recover(["config", "--origins"])))
}

fn recover_orphaned(context: &Context, done: &mut Vec<String>) -> Result<()> {
    done.extend(lost::recover_steps(context)?);
    let attempts = lost::recover_attempts(context)?;
    if !attempts.is_empty() {
        done.extend(attempts);
        at_work::forget_killed(context);
        // Their processes may have been running steps.
        done.extend(lost::recover_steps(context)?);
    }
    done.extend(lost::cancel_baselines(context)?);
    Ok(())
}

/// Checkpoints with a reference and without an event: the kill came between the two. A reference of a checkpoint that
/// was pruned is a leftover and goes.
fn adopt(context: &Context, state: &State) -> Result<Vec<String>> {
    let boot = boot_id().unwrap_or_default();
    let now = context.clock.now();
    if !context.store().may_lack_events(state, now, &boot) {
        return Ok(Vec::new());
    }
    let done = adopt_listed(context, state)?;
    if context.store().exists() {
        context.store().note_settled(now, state.last_seq, &boot);
    }
    Ok(done)
}

fn adopt_listed(context: &Context, state: &State) -> Result<Vec<String>> {
    let repo = context.repo()?;
    let known: HashSet<&str> = state.checkpoints.ids().collect();
    let is_settled = |id: &str| known.contains(id) && !state.pruned.contains(id);
    let mut done = Vec::new();
    if state.last_seq == 0 && rebuild::unrecorded(context)? > 0 {
        tracing::warn!(
            "the ledger is gone: checkpoints are taken in, `recover doctor --rebuild` brings their history back"
        );
    }
    for name in repo.ref_names(is_settled)? {
        let id = name.rsplit('/').next().unwrap_or_default();
        if state.pruned.contains(id) {
            let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
            // It may just have come back.
            if !context.load()?.state.pruned.contains(id) {
                continue;
            }
            repo.delete_refs(&lock, std::slice::from_ref(&name))?;
            done.push(format!("removed the leftover reference of {id}"));
        } else if !context.load()?.state.checkpoints.has(&id.into()) {
            // Its event did not come between the first look at the ledger and the one at the references.
            if let Some((found, stored)) = own_checkpoint(context, repo, &name)
                && found.id == id
            {
                if state.last_seq > 0 {
                    refuse_set_back(context, state, &stored, &name)?;
                }
                done.extend(adopt_one(context, found)?);
            }
        }
    }
    Ok(done)
}

/// The ledger and its second copy are gone, and checkpoints of this project know of attempts: what was used up is not
/// forgotten because a folder was removed (L6). Where there were checkpoints alone, they are taken in.
fn refuse_lost_ledger(context: &Context, state: &State) -> Result<()> {
    if state.last_seq > 0 || !context.has_git() {
        return Ok(());
    }
    let repo = context.repo()?;
    let is_attempt = |event: &Event| {
        matches!(
            event.payload,
            Payload::AttemptStarted { .. } | Payload::AttemptEnded(_)
        )
    };
    for name in repo.ref_names(|_| false)? {
        let Some((found, stored)) = own_checkpoint(context, repo, &name) else {
            continue;
        };
        // An attempt came right after the one that it was taken for.
        let knows_attempts = found.trigger == trigger::INITIAL
            || salvage(&stored.events_jsonl(repo)?)
                .events
                .iter()
                .any(is_attempt);
        // The very first command may be at work right now.
        if knows_attempts && !context.store().exists() {
            let ledger = context.store().ledger_path();
            let message = format!(
                "{} and its second copy are gone, and {name} knows of attempts",
                ledger.display()
            );
            return Err(Error::new(ErrorKind::Corrupt, message)
                .hint(Hint::recover(["doctor", "--rebuild"])));
        }
    }
    Ok(())
}

/// A checkpoint carries the numbers of events. Those that come after its own event follow in the same hold of the ledger's
/// lock, and a kill may have come before all of them. Any others that the ledger does not have, which ends after event
/// `last`, were in it: it was cut off.
fn knows_more(events_jsonl: &[u8], last: u64) -> bool {
    let numbers: BTreeSet<u64> = salvage(events_jsonl)
        .events
        .iter()
        .map(|event| event.seq)
        .collect();
    let mut to_come = numbers.range(last + 1..).copied().zip(last + 2..);
    to_come.any(|(number, next)| number != next)
}

/// Refuses a ledger that was set back, as a checkpoint's reference shows.
fn refuse_set_back(
    context: &Context,
    state: &State,
    stored: &StoredCheckpoint,
    name: &str,
) -> Result<()> {
    let events = stored.events_jsonl(context.repo()?)?;
    if !knows_more(&events, state.last_seq) {
        return Ok(());
    }
    let ledger = context.store().lock()?;
    let last = ledger.state().last_seq;
    let known = name
        .rsplit('/')
        .next()
        .is_some_and(|id| ledger.state().checkpoint(&id.into()).is_some());
    if known || !knows_more(&events, last) {
        return Ok(());
    }
    let message = format!(
        "{} ends after event {last}, and {name} knows of events after that: it was truncated",
        context.store().ledger_path().display()
    );
    Err(Error::new(ErrorKind::Corrupt, message).hint(Hint::recover(["doctor", "--rebuild"])))
}

/// The checkpoint that a reference names, with its record, where it is one of this state directory. Several of them may share
/// one repository: each imports its own work trees' checkpoints only.
fn own_checkpoint(
    context: &Context,
    repo: &Repo,
    name: &str,
) -> Option<(Checkpoint, StoredCheckpoint)> {
    let commit = repo.resolve_ref(name)?;
    let stored = repo.load_checkpoint(&commit).ok()?;
    let found = record_of(&stored).filter(|found| found.state_dir == context.state_dir_id())?;
    Some((found, stored))
}

/// Sets them again, as far as the commits are still there. Says what was done. Only where the latest checkpoint lacks its
/// reference are the others examined: what removes one removes all.
fn set_again(context: &Context, state: &State) -> Result<Vec<String>> {
    let Some(latest) = state.checkpoints.values().next_back() else {
        return Ok(Vec::new());
    };
    let repo = context.repo()?;
    let name = |one: &Checkpoint| CheckpointRef::name_of(&one.run.run_id, &one.id);
    if repo.ref_exists(&name(latest)) {
        return Ok(Vec::new());
    }
    let lacks = |one: &&Checkpoint| {
        !repo.ref_exists(&name(one)) && repo.load_checkpoint(&one.commit).is_ok()
    };
    if !state.checkpoints.values().any(|one| lacks(&one)) {
        return Ok(Vec::new());
    }
    let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
    // What was removed on purpose meanwhile is no longer in the ledger.
    let state = context.load()?.state;
    let mut done = Vec::new();
    for one in state.checkpoints.values().filter(lacks) {
        repo.set_ref(&lock, &name(one), &one.commit)?;
        done.push(format!("set the reference of {} again", one.id));
    }
    Ok(done)
}

/// The files of a run in the state directory: its logs and prompts, and its views.
pub(crate) fn files_of(context: &Context, key: &RunKey) -> Vec<PathBuf> {
    let (store, root) = (context.store(), context.store().root());
    let folder = store.run_dir(key);
    let Some(name) = folder.file_name().map(ToOwned::to_owned) else {
        return Vec::new();
    };
    let battles = store.private_dir().join("battles");
    let tasks = root.list(&battles).unwrap_or_default();
    let mut view = name;
    view.push(".json");
    let views = tasks.iter().map(|(task, _)| battles.join(task).join(&view));
    views
        .chain([folder])
        .filter(|path| root.has(path).unwrap_or(false))
        .collect()
}

/// Removes the files of runs that are gone from the ledger, unless another run has the same place.
pub(crate) fn sweep_forgotten(context: &Context, state: &State) -> Result<()> {
    let root = context.store().root();
    for key in &state.forgotten {
        let place = context.store().run_dir(key);
        if state
            .runs
            .iter()
            .any(|run| context.store().run_dir(&run.key) == place)
        {
            continue;
        }
        for path in files_of(context, key) {
            let removed = if path == place {
                root.remove_dir_all(&path)
            } else {
                root.remove_file(&path)
            };
            if let Err(error) = removed
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(Error::cannot("remove", &path, error));
            }
        }
    }
    Ok(())
}

/// Puts commits that were made on the branch, and records it. Nothing is changed where that is refused.
pub(in crate::engine) fn put_commits(
    context: &Context,
    lock: &WorktreeLock,
    journal: &CommitJournal,
) -> Result<Run> {
    let repo = context.repo()?;
    repo.write_commit_journal(lock, journal)?;
    let concluded = journal.conclude(repo, lock, context.lock_timeout());
    if let Err(error) = concluded {
        if !journal.has_moved(repo)? {
            give_up_commits(repo, lock, journal)?;
        }
        return Err(error.into());
    }
    finish_commits(context, lock, journal)
}

fn give_up_commits(repo: &Repo, lock: &WorktreeLock, journal: &CommitJournal) -> Result<()> {
    journal.take_back(repo, lock)?;
    Ok(repo.remove_commit_journal(lock)?)
}

fn finish_commits(context: &Context, lock: &WorktreeLock, journal: &CommitJournal) -> Result<Run> {
    let payload = Payload::RunAccepted {
        commits: journal.commits.clone(),
        kept: journal.kept.clone(),
        left_out: journal.left_out,
        operation: journal.operation.clone(),
    };
    let run = record_accepted(context, &journal.run, payload)?;
    context.repo()?.remove_commit_journal(lock)?;
    Ok(run)
}

/// Records what a run was accepted as, where nothing but its branch had to move.
pub(in crate::engine) fn record_commits(
    context: &Context,
    key: &RunKey,
    commits: &[ObjectId],
    left_out: bool,
) -> Result<Run> {
    let payload = Payload::RunAccepted {
        commits: commits.to_vec(),
        kept: None,
        left_out,
        operation: None,
    };
    record_accepted(context, key, payload)
}

/// Records that a run was accepted with nothing to commit.
pub(in crate::engine) fn record_empty(context: &Context, key: &RunKey) -> Result<Run> {
    record_commits(context, key, &[], false)
}

fn record_accepted(context: &Context, key: &RunKey, payload: Payload) -> Result<Run> {
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
fn recover_commits(context: &Context) -> Result<Option<String>> {
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
        give_up_commits(repo, &lock, &journal)?;
        return Ok(Some(format!(
            "accepting {key} was interrupted before the branch moved: nothing was changed"
        )));
    }
    match journal
        .conclude(repo, &lock, context.lock_timeout())
        .map_err(Error::from)
    {
        // The branch is begun, and HEAD is on another one by now.
        Err(error) if error.kind == ErrorKind::HeadMoved => {}
        concluded => concluded?,
    }
    // A run that was removed meanwhile needs no word.
    if context.load()?.state.run(key).is_some() {
        finish_commits(context, &lock, &journal)?;
    } else {
        repo.remove_commit_journal(&lock)?;
    }
    Ok(Some(format!(
        "accepting {key} was interrupted: it is finished now"
    )))
}
