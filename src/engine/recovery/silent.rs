//! Runs that say that they are in progress, and of which nobody is left: the `recover` that drove one was killed between two
//! attempts, or nothing was heard of a loop, a lane or an agent's session for long.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::base::runs;
use crate::engine::record::events::{self, apply_speculatively};
use crate::engine::record::liveness::is_driven;
use crate::model::event::Payload;
use crate::model::run::{Run, RunKey, RunStatus};
use crate::model::state::State;
use crate::model::step::StepStatus;
use crate::process::is_alive;
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
    if !says_so || runs::driver(run).is_some() {
        return None;
    }
    let in_step = run.steps.iter().any(|step| step.status == StepStatus::Running && is_alive(&step.start.supervisor));
    // Whoever has the right to drive it is about to say more.
    if in_step || is_driven(context, &run.key) {
        return None;
    }
    // What a live attempt lost is an attempt that ended; its recovery says so.
    if let Some(driver) = run.driver.as_ref().filter(|_| run.live.is_none()) {
        return Some(format!("recover is gone (pid {}): it was killed, or the machine was restarted", driver.pid));
    }
    let is_silent = context.clock.now().since(run.last_at) > SILENCE;
    is_silent.then(|| "nothing was heard of it for 12 hours".to_owned())
}

fn paused(context: &Context, run: &Run) -> Option<NewEvent> {
    let reason = left_alone(context, run)?;
    Some(NewEvent::about(&run.key, Payload::RunStatusChanged { status: RunStatus::Paused, reason }))
}

/// Applies to the state in memory, for commands that write nothing, that such runs are paused.
pub fn apply(context: &Context, state: &mut Arc<State>) {
    let all: Vec<NewEvent> = state.runs.iter().filter_map(|run| paused(context, run)).collect();
    for event in all {
        apply_speculatively(state, context.clock.now(), event);
    }
}

/// Records that such runs of this work tree are paused. Returns what was done.
pub fn recover(context: &Context) -> Result<Vec<String>> {
    let state = context.load()?.state;
    let here: Vec<RunKey> = state
        .runs_of(&context.worktree_id())
        .filter(|run| paused(context, run).is_some())
        .map(|run| run.key.clone())
        .collect();
    let mut done = Vec::new();
    for key in here {
        let mut ledger = context.store().lock()?;
        // Another process may have come first.
        let Some(run) = ledger.state().run(&key) else { continue };
        let (Some(reason), Some(event)) = (left_alone(context, run), paused(context, run)) else { continue };
        events::append(&mut ledger, &key, context.clock.now(), vec![event])?;
        done.push(format!("run {key} is paused: {reason}"));
    }
    Ok(done)
}
