//! Settles orphaned steps, whose `recover` was killed.
//! What is left of their processes is ended, the files of an atomic one are restored, and how far the command got counts as
//! not known.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use crate::durable::FileLock;
use crate::engine::base::clock::millis;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::base::heartbeat::mark_replaced;
use crate::engine::record::attempt_record;
use crate::engine::record::events::apply_speculatively;
use crate::engine::record::liveness::{is_step_orphaned, orphaned_steps};
use crate::engine::restore::step::restore_covered_files;
use crate::model::event::Payload;
use crate::model::run::RunKey;
use crate::model::state::State;
use crate::model::step::{Step, StepEnd, StepStatus};
use crate::process::{end_children_of, end_group};
use crate::store::NewEvent;

/// How long processes of a lost step may take to end.
const GRACE: Duration = Duration::from_secs(5);

/// Applies to the state in memory, for commands that write nothing, that orphaned steps were cut off.
pub(crate) fn apply(context: &Context, state: &mut Arc<State>) {
    let now = context.clock.now();
    let all = state
        .runs
        .iter()
        .flat_map(|run| run.steps.iter().map(|step| (run.key.clone(), step)));
    let lost: Vec<_> = all
        .filter(|(_, step)| is_step_orphaned(context, step))
        .map(|(key, step)| (key, step.clone()))
        .collect();
    for (key, step) in lost {
        apply_speculatively(
            state,
            now,
            NewEvent::about(&key, ended(context, &step, false)),
        );
    }
}

fn ended(context: &Context, step: &Step, rolled_back: bool) -> Payload {
    Payload::StepEnded(StepEnd {
        name: step.start.name.clone(),
        status: StepStatus::CutOff,
        exit_code: None,
        duration_ms: millis(context.clock.now().since(step.started_at)),
        rolled_back,
        commits: attempt_record::commits_since(context, step.start.head.as_ref()),
    })
}

/// Records the orphaned steps of this work tree as cut off, and restores the files of atomic ones. Returns what was done.
pub(crate) fn recover(context: &Context) -> Result<Vec<String>> {
    if orphaned_steps(context, &context.load()?.state).is_empty() {
        return Ok(Vec::new());
    }
    // One process does so at a time, to the last event of it: what another one does next is not part of the step.
    let _settling = FileLock::acquire(
        context.store().root(),
        &context.store().private_dir().join("steps.lock"),
        context.lock_timeout(),
    )?;
    let mut done = Vec::new();
    for (key, step) in orphaned_steps(context, &context.load()?.state) {
        done.push(if is_step_orphaned(context, &step) {
            cut_off(context, &key, &step)?
        } else {
            stopped(context, &key, &step)?
        });
    }
    Ok(done)
}

fn cut_off(context: &Context, key: &RunKey, step: &Step) -> Result<String> {
    let failed = |error| Error::io("cannot look for the lost step's processes", error);
    mark_replaced(context.store(), &step.start.supervisor);
    if let Some(child) = &step.child {
        let ended = end_group(child, GRACE).map_err(failed)?;
        tracing::debug!(?ended, pid = child.pid, "processes of a lost step");
    }
    let ended_others = end_children_of(&step.start.supervisor, GRACE).map_err(failed)?;
    tracing::debug!(?ended_others, "other processes of a lost step");
    let name = &step.start.name;
    let put_back = match restore_covered_files(context, key, &step.start) {
        // Nothing will ever bring them back: that must not hold up everything else.
        Err(error) if matches!(error.kind, ErrorKind::NoCheckpoint | ErrorKind::Corrupt) => {
            tracing::warn!(%error, "step '{name}' was cut off, and its files cannot be restored");
            None
        }
        other => other?,
    };
    context.record(key, vec![ended(context, step, put_back.is_some())])?;
    Ok(match put_back {
        Some(paths) => {
            format!("step '{name}' of run {key} was cut off: {paths} paths were restored")
        }
        None => format!("step '{name}' of run {key} was cut off"),
    })
}

fn stopped(context: &Context, key: &RunKey, step: &Step) -> Result<String> {
    if let Some(supervisor) = &step.compensating {
        mark_replaced(context.store(), supervisor);
        let ended = end_children_of(supervisor, GRACE)
            .context("cannot look for the processes of the step's compensation")?;
        tracing::debug!(?ended, "processes of a lost compensation");
    }
    let name = step.start.name.clone();
    let text = format!(
        "the compensation of step '{name}' of run {key} was cut off: how far it got is not known"
    );
    context.record(
        key,
        vec![Payload::StepCompensated {
            name,
            succeeded: false,
            exit_code: None,
        }],
    )?;
    Ok(text)
}
