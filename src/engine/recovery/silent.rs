//! Settles runs that are recorded as in progress while nobody works on them any more.
//! The `recover` that drove one was killed between two attempts, or nothing was heard of a loop, a lane or an agent's
//! session for long. What it had decided and not done yet, to give an iteration up, is done.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::base::heartbeat::is_alive;
use crate::engine::base::runs;
use crate::engine::record::events::{self, apply_speculatively};
use crate::engine::record::liveness::is_driven;
use crate::model::decision::Action;
use crate::model::event::Payload;
use crate::model::run::{IterationStatus, OnFailure, Run, RunKey, RunStatus};
use crate::model::state::State;
use crate::model::step::StepStatus;
use crate::store::NewEvent;

/// What has no supervisor counts as left alone after so long without an event.
const SILENCE: Duration = Duration::from_secs(12 * 60 * 60);

/// Why nobody is at work on a run any more that says so.
fn left_alone(context: &Context, run: &Run) -> Option<String> {
    let says_so = match run.status {
        RunStatus::InProgress => true,
        RunStatus::Pending => run.baseline_supervisor.is_some(),
        _ => false,
    };
    if !says_so || runs::driver(context.store(), run).is_some() {
        return None;
    }
    let in_step = run.steps.iter().any(|step| {
        step.status == StepStatus::Running && is_alive(context.store(), &step.start.supervisor)
    });
    // Whoever has the right to drive it is about to say more.
    if in_step || is_driven(context, &run.key) {
        return None;
    }
    // What a live attempt lost is an attempt that ended; its recovery says so.
    if let Some(driver) = run.driver.as_ref().filter(|_| run.live.is_none()) {
        return Some(format!(
            "recover is gone (pid {}): it was killed, or the machine was restarted",
            driver.pid
        ));
    }
    let is_silent = context.clock.now().since(run.last_at) > SILENCE;
    is_silent.then(|| "nothing was heard of it for 12 hours".to_owned())
}

/// The iteration that a `recover` which is gone had decided to give up, and why. Between that and the iteration's event a run
/// stands as one that a person is needed for. One that stands there again because somebody undid what followed is theirs.
fn undone_skip(context: &Context, state: &State, run: &Run) -> Option<(u32, String)> {
    let undone = state
        .worktrees
        .get(&run.worktree)
        .and_then(|worktree| worktree.redo.last());
    if undone.is_some_and(|entry| entry.run.as_ref() == Some(&run.key)) {
        return None;
    }
    if run.status != RunStatus::Escalated
        || run.driver.is_none()
        || runs::driver(context.store(), run).is_some()
    {
        return None;
    }
    let decision = run
        .decision
        .as_ref()
        .filter(|decision| decision.has(Action::Skip))?;
    let failed = run.iterations.get(run.failure.as_ref()?.iteration?)?;
    let is_undone =
        failed.status == IterationStatus::Failed && run.spec.on_failure != OnFailure::Stop;
    (is_undone && !is_driven(context, &run.key)).then(|| (failed.number, decision.reason.clone()))
}

/// What is to be recorded of a run that nobody is left of, and what to say of it.
fn settled(context: &Context, state: &State, run: &Run) -> Option<(Vec<NewEvent>, String)> {
    let paused = |reason| Payload::RunStatusChanged {
        status: RunStatus::Paused,
        reason,
    };
    let (payloads, said) = if let Some((iteration, reason)) = undone_skip(context, state, run) {
        let said = format!(
            "iteration {iteration} of run {} is given up, as was decided before recover was killed",
            run.key
        );
        let skipped = IterationStatus::Skipped;
        let skip = Payload::IterationChanged {
            iteration,
            status: skipped,
            reason: Some(reason),
        };
        (
            vec![skip, paused("recover is gone: it was killed".to_owned())],
            said,
        )
    } else {
        let reason = left_alone(context, run)?;
        let said = format!("run {} is paused: {reason}", run.key);
        (vec![paused(reason)], said)
    };
    Some((
        payloads
            .into_iter()
            .map(|payload| NewEvent::about(&run.key, payload))
            .collect(),
        said,
    ))
}

/// Applies that to the state in memory, for commands that write nothing.
pub(crate) fn apply(context: &Context, state: &mut Arc<State>) {
    let all: Vec<_> = state
        .runs
        .iter()
        .filter_map(|run| settled(context, state, run))
        .collect();
    for event in all.into_iter().flat_map(|(events, _)| events) {
        apply_speculatively(state, context.clock.now(), event);
    }
}

/// Records it of the runs of this work tree. Returns what was done.
pub(crate) fn recover(context: &Context) -> Result<Vec<String>> {
    let state = context.load()?.state;
    let here: Vec<RunKey> = state
        .runs_of(&context.worktree_id())
        .filter(|run| settled(context, &state, run).is_some())
        .map(|run| run.key.clone())
        .collect();
    let mut done = Vec::new();
    for key in here {
        let ledger = context.store().lock()?;
        // Another process may have come first.
        let found = ledger
            .state()
            .run(&key)
            .and_then(|run| settled(context, ledger.state(), run));
        let Some((settling, said)) = found else {
            continue;
        };
        events::append(ledger, &key, context.clock.now(), settling)?;
        done.push(said);
    }
    Ok(done)
}
