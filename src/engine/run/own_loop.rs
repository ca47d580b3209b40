//! `recover attempt`: the beginning and the end of attempts of a loop that runs its own commands.
//!
//! What a dry run would record.

use std::sync::Arc;

use super::execute::never_run;
use super::notify::{Happened, notify};
use super::{between_attempts, retry};
use crate::engine::attempt::{
    begin, beginning, conditions, end as end_attempt, end_locked, judge, random, recovery_result,
    run_summary,
};
use crate::engine::base::heartbeat::is_alive;
use crate::engine::base::runs::{driven_by, run_of};
use crate::engine::base::{Context, Result};
use crate::engine::record::storage::{Prepared, Request};
use crate::engine::record::{checkpoint, events, select};
use crate::engine::recovery;
use crate::engine::remote::{before_own_attempt, before_own_end, send_own_beginning, send_own_end};
use crate::engine::restore::automatic;
use crate::model::checkpoint::trigger;
use crate::model::{Run, RunKey, State};
use crate::policy::settings::SafeMode;
use crate::store::views::write_views;

pub(crate) use crate::engine::record::attempt_record::{Begin, Ended, Ending, Started};

/// `attempt start`: records the beginning of an attempt of a loop that runs its own commands; before it, where the run has
/// no checkpoint yet, what it begins with.
pub(crate) fn start(context: &Context, request: &Begin) -> Result<Started> {
    if context.dry_run() {
        let (_, run) = assumed_run(context)?;
        return Ok(beginning(context, run, request).0);
    }
    recovery::recover(context)?;
    // Captured before the ledger's lock, which others wait for.
    let state = context.load()?.state;
    let known = select::find_open(context, &state).ok().flatten();
    if let Some(run) = known {
        before_own_attempt(context, &run.key)?;
    }
    let begins = known.is_none_or(|run| !run.was_captured);
    if let Some(run) =
        known.filter(|run| !begins && context.has_git() && run.worktree == context.worktree_id())
    {
        between_attempts::capture_edits(context, &run.key)
            .map_err(|error| error.hint(context.rerun(&[])))?;
    }
    let prepared = begins.then(|| checkpoint::prepare_first(context));
    let prepared = match prepared {
        // Without git attempts are only counted.
        Some(Err(error)) if context.has_git() => return Err(error),
        prepared => prepared,
    };
    prepared
        .iter()
        .flatten()
        .for_each(checkpoint::publish_large);
    // What nobody else holds is changed in place.
    drop(state);
    let mut ledger = context.store().lock()?;
    let (key, events) = select::find_or_create_for_loop(context, ledger.state())?;
    ledger.append(context.clock.now(), events)?;
    refuse_supervised(context, ledger.state(), &key)?;
    let captured = ledger.state().run(&key).is_some_and(|run| run.was_captured);
    // What the run begins with, so that all of it can be taken back.
    let take = |prepared: Prepared| {
        let request = Request::new(trigger::INITIAL, "");
        checkpoint::take(context, &mut ledger, &key, &prepared, request)
    };
    if let Some(prepared) = prepared.filter(|_| !captured)
        && let Err(error) = prepared.and_then(take)
    {
        if context.has_git() {
            return Err(error);
        }
        tracing::warn!(%error, "the attempt begins without a checkpoint of what there is now");
    }
    let started = begin(context, &mut ledger, &key, request)?;
    write_views(ledger, &[&key])?;
    if let Err(error) = send_own_beginning(context, &key) {
        // Nobody else knows of it: it was none.
        end_attempt(context, &key, &started, never_run(error.to_string()))?;
        return Err(error);
    }
    Ok(started)
}

/// `attempt pass` and `attempt fail`: the end of the attempt that was started, else of one that begins now.
pub(crate) fn finish(context: &Context, mut ending: Ending) -> Result<Ended> {
    if context.dry_run() {
        return preview(context, ending);
    }
    recovery::recover(context)?;
    let prepared = checkpoint::prepare(context);
    let state = context.load()?.state;
    // Whatever is wrong with the selection is said when the attempt is recorded.
    let known = select::find_for_loop(context, &state).ok().flatten();
    if let Some(run) = known {
        before_own_end(context, &run.key)?;
    }
    // Trees are compared before the lock, which others wait for.
    let found = known
        .map(|run| detect(context, &state, run, &ending, prepared.as_ref().ok()))
        .unwrap_or_default();
    prepared.iter().for_each(checkpoint::publish_large);
    drop(state);
    let mut ledger = context.store().lock()?;
    let (key, events) = select::find_or_create_for_loop(context, ledger.state())?;
    ledger.append(context.clock.now(), events)?;
    refuse_supervised(context, ledger.state(), &key)?;
    let run = run_of(ledger.state(), &key)?;
    let started = match Started::open(&run) {
        Some(started) => started,
        None => begin(context, &mut ledger, &key, &Begin::default())?,
    };
    if ending.end.duration_ms == 0 {
        ending.end.duration_ms =
            u64::try_from(context.clock.now().since(started.at).as_millis()).unwrap_or(u64::MAX);
    }
    let ended = end_locked(context, ledger, &key, &started, ending, found, &prepared)?;
    drop(prepared);
    let ended = run_summary::report_after(context, &key, ended);
    if let Some(happened) = Happened::at_end(&ended, &run) {
        notify(context, &key, happened, ended.report.as_deref());
    }
    send_own_end(context, &ended.run)?;
    Ok(ended)
}

/// What is true of the attempt that is about to end, in the run that the command works on.
fn detect(
    context: &Context,
    state: &State,
    run: &Run,
    ending: &Ending,
    prepared: Option<&Prepared>,
) -> conditions::Detected {
    let next = run.current_iteration;
    let (iteration, subtask) = match Started::open(run) {
        Some(started) => (started.iteration, started.subtask),
        None => (next, run.next_subtask(next, context.naming().task.as_ref())),
    };
    let about = (iteration, subtask.as_str());
    conditions::detect(context, state, &run.key, about, ending, prepared)
}

/// An attempt that a live `recover run` supervises is that one's to end.
fn refuse_supervised(context: &Context, state: &State, key: &RunKey) -> Result<()> {
    let Some(run) = state.run(key) else {
        return Ok(());
    };
    let supervisor = run.live.as_ref().and_then(|live| live.supervisor.as_ref());
    if let Some(supervisor) = supervisor.filter(|id| is_alive(context.store(), id)) {
        return Err(driven_by(key, supervisor));
    }
    // A success of another run of the task would clear its count.
    if run.task_id.is_some() {
        retry::refuse_at_work(context, state, run, false)?;
    }
    Ok(())
}

/// The run that an attempt would be recorded in, made in memory where there is none, and the state with it.
fn assumed_run(context: &Context) -> Result<(Arc<State>, Run)> {
    let mut state = recovery::load_recovered(context)?;
    let (key, events) = select::find_or_create_for_loop(context, &state)?;
    for event in events {
        events::apply_speculatively(&mut state, context.clock.now(), event);
    }
    refuse_supervised(context, &state, &key)?;
    let run = run_of(&state, &key)?;
    Ok((state, run))
}

/// What [`finish`] would record, without a word written.
pub(crate) fn preview(context: &Context, mut ending: Ending) -> Result<Ended> {
    let (state, run) = assumed_run(context)?;
    let started =
        Started::open(&run).unwrap_or_else(|| beginning(context, run.clone(), &Begin::default()).0);
    let prepared = checkpoint::prepare(context).ok();
    let about = (started.iteration, started.subtask.as_str());
    let mut found =
        conditions::detect(context, &state, &run.key, about, &ending, prepared.as_ref());
    found.spread = random(context);
    judge(context, &state, &run, &started, &mut ending, found);
    let mode = context.settings().rollback.safe_mode;
    let asks =
        mode == SafeMode::ReadOnly || (mode == SafeMode::Conservative && !context.says_yes());
    let allowed = context.settings().rollback.on_error && !ending.keep_state && !asks;
    let has_target = automatic::memory_target(&state, &run.key).is_some();
    let decision = ending.end.decision.as_ref();
    let result = decision
        .map(|decision| recovery_result(decision, allowed, has_target, Ok(allowed && has_target)));
    Ok(Ended {
        run,
        end: ending.end,
        result,
        checkpoint: None,
        checkpoint_error: None,
        report: None,
    })
}
