//! Orphaned attempts (their supervisor was killed), and feedback loops before a run's first attempt that were orphaned.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use crate::engine::attempt::conditions::Detected;
use crate::engine::attempt::end;
use crate::engine::base::clock::millis;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, Result};
use crate::engine::base::heartbeat::mark_replaced;
use crate::engine::base::runs::run_of;
use crate::engine::record::attempt_record::{Ending, Started};
use crate::engine::record::events::apply_speculatively;
use crate::engine::record::liveness::{is_orphaned, left_running, orphaned_baseline};
use crate::model::checkpoint::trigger;
use crate::model::event::{AttemptEnd, Payload};
use crate::model::hint::Hint;
use crate::model::run::{Run, RunKey, RunStatus};
use crate::model::state::State;
use crate::policy::classify;
use crate::process::{end_children_of, end_group};
use crate::store::NewEvent;

/// How long processes of an orphaned attempt may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// How an orphaned attempt ended, not judged yet.
fn crashed(context: &Context, run: &Run) -> Option<(Started, Ending)> {
    let live = run.live.as_ref()?;
    let recorded = run.iterations.get(live.iteration)?.attempts.last()?;
    let started = Started {
        run: run.clone(),
        iteration: live.iteration,
        attempt: live.attempt,
        subtask: recorded.subtask.clone(),
        at: recorded.started_at,
    };
    let end = AttemptEnd {
        failure: Some(classify::supervisor_lost()),
        duration_ms: millis(context.clock.now().since(recorded.started_at)),
        log_path: recorded.log_path.clone(),
        ..AttemptEnd::default()
    };
    let ending = Ending {
        end,
        trigger: Some(trigger::CRASH),
        headline: Some(format!(
            "What attempt {} of iteration {} left",
            live.attempt, live.iteration
        )),
        ..Ending::default()
    };
    Some((started, ending))
}

/// Says of a run whose `recover` was killed that its command goes on, and what ends it.
pub(crate) fn still_running(context: &Context, run: &Run) -> Option<String> {
    let pid = left_running(context, run)?.pid;
    let way = Hint::recover(["doctor", "--repair"])
        .at(context.elsewhere(run).unwrap_or_else(|| context.place()));
    let key = &run.key;
    Some(format!(
        "the command of run {key} (pid {pid}) goes on although its recover was killed: `{way}` ends it"
    ))
}

/// Applies to the state in memory, for commands that write nothing, that orphaned attempts crashed.
pub(crate) fn apply(context: &Context, state: &mut Arc<State>) {
    let orphaned: Vec<Run> = state
        .runs
        .iter()
        .filter(|run| is_orphaned(context, run))
        .cloned()
        .collect();
    for run in orphaned {
        if let Some(told) = still_running(context, &run) {
            context.warn(told);
        }
        let Some((started, mut ending)) = crashed(context, &run) else {
            continue;
        };
        // Who asks twice gets the same moment twice: the delay is not spread.
        end::judge(
            context,
            state,
            &run,
            &started,
            &mut ending,
            Detected::default(),
            0.0,
        );
        let event = NewEvent::about(&run.key, Payload::AttemptEnded(Box::new(ending.end)));
        apply_speculatively(state, context.clock.now(), event);
    }
}

/// Records that the attempt of a run was lost with the machine that made it; nothing of that is here to be captured. Returns what
/// was done.
pub(in crate::engine) fn end_lost(context: &Context, key: &RunKey) -> Result<Option<String>> {
    let ledger = context.store().lock()?;
    let run = run_of(ledger.state(), key)?;
    if let (None, Some(_)) = (&run.live, &run.baseline_supervisor) {
        let reason = "its machine was lost before the first attempt".to_owned();
        let payload = Payload::RunStatusChanged {
            status: RunStatus::Paused,
            reason,
        };
        context.record_in(ledger, key, vec![payload])?;
        return Ok(None);
    }
    // A loop of its own says itself how its attempts end.
    let is_supervised = run
        .live
        .as_ref()
        .is_some_and(|live| live.supervisor.is_some());
    let Some((started, mut ending)) = crashed(context, &run).filter(|_| is_supervised) else {
        return Ok(None);
    };
    end::judge(
        context,
        ledger.state(),
        &run,
        &started,
        &mut ending,
        Detected::default(),
        fastrand::f64(),
    );
    let what = format!(
        "attempt {} of iteration {} of run {key} was lost with its machine: recorded as a crash",
        started.attempt, started.iteration
    );
    context.record_in(
        ledger,
        key,
        vec![Payload::AttemptEnded(Box::new(ending.end))],
    )?;
    Ok(Some(what))
}

/// Records the orphaned attempts of this work tree as crashed: what is left of their processes is ended, and what they left
/// in the work tree is captured in a checkpoint. Returns what was done.
pub(crate) fn recover(context: &Context) -> Result<Vec<String>> {
    let state = context.load()?.state;
    let mut done = Vec::new();
    for run in state
        .runs_of(&context.worktree_id())
        .filter(|run| is_orphaned(context, run))
    {
        let Some(live) = &run.live else { continue };
        let failed = |error| Error::io("cannot look for the lost attempt's processes", error);
        live.supervisor
            .iter()
            .for_each(|supervisor| mark_replaced(context.store(), supervisor));
        if let Some(child) = &live.child {
            let ended = end_group(child, GRACE).map_err(failed)?;
            tracing::debug!(?ended, pid = child.pid, "processes of a lost attempt");
        }
        // Feedback loops, and a command that was started a moment before the kill, are recorded nowhere.
        if let Some(supervisor) = &live.supervisor {
            let ended = end_children_of(supervisor, GRACE).map_err(failed)?;
            tracing::debug!(?ended, "other processes of a lost attempt");
        }
        let Some((started, ending)) = crashed(context, run) else {
            continue;
        };
        end::end(context, &run.key, &started, ending)?;
        done.push(format!(
            "attempt {} of iteration {} of run {} had lost its supervisor: recorded as a crash",
            live.attempt, live.iteration, run.key
        ));
    }
    Ok(done)
}

/// Cancels the runs of this work tree whose feedback loops before the first attempt are orphaned, and ends those. No attempt was
/// made; whoever takes the run up begins with them again.
pub(crate) fn cancel_baselines(context: &Context) -> Result<Vec<String>> {
    let state = context.load()?.state;
    let mut done = Vec::new();
    for run in state.runs_of(&context.worktree_id()) {
        let Some(supervisor) = orphaned_baseline(context, run) else {
            continue;
        };
        mark_replaced(context.store(), supervisor);
        let ended =
            end_children_of(supervisor, GRACE).context("cannot look for the run's checks")?;
        tracing::debug!(?ended, "feedback loops of a lost run");
        let reason = "recover was killed before the first attempt".to_owned();
        let payload = Payload::RunStatusChanged {
            status: RunStatus::Paused,
            reason,
        };
        context.record(&run.key, vec![payload])?;
        done.push(format!(
            "run {} had lost its supervisor before the first attempt: paused",
            run.key
        ));
    }
    Ok(done)
}
