//! Recording attempts: the claim of one, and its end with everything that follows (A3, L2–L6).

mod end;
mod preview;
mod signs;

use std::collections::BTreeSet;

use crate::engine::base::runs::run_of;
use crate::engine::record::attempt_record::{Begin, Ended, Ending, Started, head_of, session_of};
use crate::engine::record::request::{Prepared, Request};
use crate::model::checkpoint::trigger;
use crate::model::decision::Action;
use crate::model::event::Payload;
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::store::views::write_views;
use crate::store::{Exclusive, NewEvent};

use super::context::Context;
use super::error::{Error, ErrorKind, Result};
use super::{checkpoint, report, select, settle};

pub use end::end;
use end::end_locked;

/// Claims the next attempt of a run under the ledger's lock.
pub fn begin(context: &Context, ledger: &mut Exclusive, key: &RunKey, begin: &Begin) -> Result<Started> {
    let (Started { iteration, attempt, subtask, at, .. }, event) =
        beginning(context, run_of(ledger.state(), key)?, begin);
    ledger.append(at, vec![event])?;
    Ok(Started { run: run_of(ledger.state(), key)?, iteration, attempt, subtask, at })
}

/// What the next attempt is, and the event that begins it.
fn beginning(context: &Context, run: Run, begin: &Begin) -> (Started, NewEvent) {
    let iteration = begin.iteration.unwrap_or(run.current_iteration);
    let attempt = run.iterations.get(iteration).and_then(|i| i.attempts.last()).map_or(1, |last| last.number + 1);
    let subtask = begin.subtask.clone().unwrap_or_else(|| run.default_subtask(iteration));
    let payload = Payload::AttemptStarted {
        iteration,
        attempt,
        approach: begin.approach.clone(),
        subtask: subtask.clone(),
        session: session_of(context, &run),
        head: head_of(context),
        supervisor: begin.supervisor.clone(),
        log_path: None,
        fallback: begin.supervisor.is_some() && falls_back(&run, iteration),
    };
    let event = NewEvent::about(&run.key, payload);
    (Started { run, iteration, attempt, subtask, at: context.clock.now() }, event)
}

/// Whether what was decided of the iteration's last failure is to run the fallback (S9). A granted attempt is one of the
/// run's own command.
fn falls_back(run: &Run, iteration: u32) -> bool {
    let decided = run.decision.as_ref().is_some_and(|decision| decision.has(Action::Fallback));
    let about = run.failure.as_ref().and_then(|failure| failure.iteration);
    decided && run.granted == 0 && about == Some(iteration) && !run.spec.fallback.is_empty()
}

/// `attempt start`: records the beginning of an attempt of a loop that runs its own commands; before it, where the run has
/// no checkpoint yet, what it begins with.
pub fn start(context: &Context, request: &Begin) -> Result<Started> {
    if context.dry_run() {
        let (_, run) = preview::assumed_run(context, |state| select::find_or_create(context, state, "manual"))?;
        return Ok(beginning(context, run, request).0);
    }
    settle::settle(context)?;
    // Captured before the ledger's lock, which others wait for.
    let state = context.load()?.state;
    let known = select::find_open(context, &state).ok().flatten();
    let begins = known.is_none_or(|run| !run.was_captured);
    let prepared = begins.then(|| checkpoint::prepare(context, &BTreeSet::new()));
    let mut ledger = context.store().lock()?;
    let (key, events) = select::find_or_create(context, ledger.state(), "manual")?;
    ledger.append(context.clock.now(), events)?;
    refuse_supervised(context, ledger.state(), &key)?;
    let captured = ledger.state().run(&key).is_some_and(|run| run.was_captured);
    if let Some(prepared) = prepared.filter(|_| !captured)
        && let Err(error) = prepared.and_then(|prepared| take_initial(context, &mut ledger, &key, &prepared))
    {
        tracing::warn!(%error, "the attempt begins without a checkpoint of what there is now");
    }
    let started = begin(context, &mut ledger, &key, request)?;
    write_views(&ledger, Some(&key))?;
    Ok(started)
}

/// What the run begins with, so that all of it can be taken back.
fn take_initial(context: &Context, ledger: &mut Exclusive, key: &RunKey, prepared: &Prepared) -> Result<()> {
    let request = Request { trigger: trigger::INITIAL.to_owned(), ..Request::default() };
    let initial = checkpoint::record(context, ledger, key, prepared, request)?;
    ledger.append(initial.created_at, vec![checkpoint::event(&initial)])?;
    Ok(())
}

/// `attempt pass` and `attempt fail`: the end of the attempt that was started, else of one that begins now.
pub fn finish(context: &Context, mut ending: Ending) -> Result<Ended> {
    if context.dry_run() {
        return preview::preview(context, ending);
    }
    settle::settle(context)?;
    let prepared = checkpoint::prepare(context, &BTreeSet::new());
    // Trees are compared before the lock, which others wait for.
    let found = signs_of(context, &ending, prepared.as_ref().ok())?;
    let mut ledger = context.store().lock()?;
    let (key, events) = select::find_or_create_for_attempt(context, ledger.state())?;
    ledger.append(context.clock.now(), events)?;
    refuse_supervised(context, ledger.state(), &key)?;
    let run = run_of(ledger.state(), &key)?;
    let started = match open(&run) {
        Some(started) => started,
        None => begin(context, &mut ledger, &key, &Begin::default())?,
    };
    if ending.duration_ms == 0 {
        ending.duration_ms = u64::try_from(context.clock.now().since(started.at).as_millis()).unwrap_or(u64::MAX);
    }
    let ended = end_locked(context, &mut ledger, &key, &started, ending, found, &prepared)?;
    drop(ledger);
    Ok(report::after(context, &key, ended))
}

/// What is true of the attempt that is about to end, in the run that the command works on.
fn signs_of(context: &Context, ending: &Ending, prepared: Option<&Prepared>) -> Result<signs::Signs> {
    let state = context.load()?.state;
    // Whatever is wrong with the selection is said when the attempt is recorded.
    let Ok(Some(run)) = select::find_for_attempt(context, &state) else { return Ok(signs::Signs::default()) };
    let (iteration, subtask) = match open(run) {
        Some(started) => (started.iteration, started.subtask),
        None => (run.current_iteration, run.default_subtask(run.current_iteration)),
    };
    Ok(signs::look(context, &state, &run.key, (iteration, &subtask), ending, prepared))
}

/// The attempt that was started and has not ended.
fn open(run: &Run) -> Option<Started> {
    let live = run.live.as_ref()?;
    let attempt = run.iterations.get(live.iteration)?.attempts.iter().rfind(|a| a.number == live.attempt)?;
    Some(Started {
        run: run.clone(),
        iteration: live.iteration,
        attempt: live.attempt,
        subtask: attempt.subtask.clone(),
        at: attempt.started_at,
    })
}

/// An attempt that a live `recover run` supervises is that one's to end.
fn refuse_supervised(context: &Context, state: &State, key: &RunKey) -> Result<()> {
    match state.run(key).and_then(|run| run.live.as_ref()).and_then(|live| live.supervisor.as_ref()) {
        Some(supervisor) if crate::process::is_alive(supervisor) => {
            let message = format!("an attempt of run {key} is under way (pid {})", supervisor.pid);
            let hint = context.hint_command(Some(key), &["status"]);
            Err(Error::new(ErrorKind::Locked, message).hint(hint))
        }
        _ => Ok(()),
    }
}
