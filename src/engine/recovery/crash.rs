//! Finishes an interrupted restore, and runs the rest of crash recovery before a command that writes.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Once};

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::adopt::adopt_one;
use crate::engine::record::liveness::{is_orphaned, orphaned_baseline, orphaned_steps};
use crate::engine::record::message::record_of;
use crate::engine::record::{forgotten, git_locks};
use crate::engine::recovery::steps;
use crate::engine::restore::execute;
use crate::git::WorktreeLock;
use crate::git::checkpoint::StoredCheckpoint;
use crate::model::checkpoint::{Checkpoint, trigger};
use crate::model::event::{Event, Payload};
use crate::model::hint::Hint;
use crate::model::run::Run;
use crate::model::state::State;
use crate::os::processes::boot_id;
use crate::store::salvage;

use super::{attempts, commits, rebuild, references, session, silent};

/// The state for commands that only read: attempts whose supervisor is gone count as crashed, without a word written.
pub(crate) fn load_recovered(context: &Context) -> Result<Arc<State>> {
    let mut state = context.load()?.state;
    if let Some(said) = take_over_private(context)? {
        context.note(said);
    }
    refuse_lost_ledger(context, &state)?;
    tell_if_moved(context, &state);
    attempts::apply(context, &mut state);
    steps::apply(context, &mut state);
    session::apply(context, &mut state);
    silent::apply(context, &mut state);
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

/// For commands that write. Finishes a restore and takes back an atomic step that was cut off, takes in checkpoints whose event was never written,
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
        done.extend(git_locks::recover(context, &state)?);
        if let Some(finished) = execute::finish_cut_off(context)? {
            done.push(finished);
            state = context.load()?.state;
        }
        done.extend(commits::recover(context)?);
        refuse_lost_ledger(context, &state)?;
        tell_if_moved(context, &state);
        done.extend(references::set_again(context, &state)?);
        done.extend(adopt(context, &state)?);
        forgotten::sweep(context, &state)?;
        // What is taken in is no work under way: that there is none is known without another look.
        if is_any_orphaned(context, &state) {
            recover_orphaned(context, done)?;
        }
        done.extend(session::recover(context, &state)?);
        done.extend(silent::recover(context)?);
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

/// Whether anything of this work tree lost its `recover`: a step, an attempt, the loops before the first one.
fn is_any_orphaned(context: &Context, state: &State) -> bool {
    let lost = |run: &Run| is_orphaned(context, run) || orphaned_baseline(context, run).is_some();
    !orphaned_steps(context, state).is_empty() || state.runs_of(&context.worktree_id()).any(lost)
}

fn recover_orphaned(context: &Context, done: &mut Vec<String>) -> Result<()> {
    done.extend(steps::recover(context)?);
    let attempts = attempts::recover(context)?;
    if !attempts.is_empty() {
        done.extend(attempts);
        // Their processes may have been running steps.
        done.extend(steps::recover(context)?);
    }
    done.extend(attempts::cancel_baselines(context)?);
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
            let stored = repo
                .resolve_ref(&name)
                .and_then(|commit| repo.load_checkpoint(&commit).ok());
            let Some(stored) = stored else { continue };
            if let Some(found) =
                record_of(&stored).filter(|found| found.id == id && belongs(context, found))
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
        let stored = repo
            .resolve_ref(&name)
            .and_then(|commit| repo.load_checkpoint(&commit).ok());
        let found = stored.and_then(|stored| {
            Some((
                record_of(&stored).filter(|found| belongs(context, found))?,
                stored,
            ))
        });
        let Some((found, stored)) = found else {
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
        "{} ends after event {last}, and {name} knows of events after that: it was cut off",
        context.store().ledger_path().display()
    );
    Err(Error::new(ErrorKind::Corrupt, message).hint(Hint::recover(["doctor", "--rebuild"])))
}

/// Several state directories may share one repository: each takes in its own work trees' checkpoints only.
fn belongs(context: &Context, checkpoint: &Checkpoint) -> bool {
    checkpoint.state_dir == context.state_dir_id()
}
