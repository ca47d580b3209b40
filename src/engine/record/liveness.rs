//! What is orphaned because its `recover` was killed, and the lock of whoever drives a run.

use std::path::PathBuf;
use std::time::Duration;

use crate::durable::{FileLock, LockError};
use crate::engine::base::heartbeat::is_alive;
use crate::engine::base::{Context, Error, ErrorKind, Result, runs};
use crate::model::{Hint, ProcessId, Run, RunKey, State, Step, StepStatus};

/// Whether a restore or an atomic step was cut off in this work tree and still waits to be finished. That is in the ledger
/// as it is: the state that readers get counts such a step as settled.
pub(crate) fn unfinished_operation(context: &Context) -> Result<Option<String>> {
    if context.unusable().is_some() || !context.has_git() && !context.store().exists() {
        return Ok(None);
    }
    match context.repo()?.restore_journal()? {
        Some(journal) => Ok(Some(format!("{} {}", journal.kind, journal.operation_id))),
        None => Ok(unfinished_atomic_step(context, &context.load()?.state)),
    }
}

/// The `recover` that ran the feedback loops before the first attempt, if it is gone.
pub(in crate::engine) fn orphaned_baseline<'a>(
    context: &Context,
    run: &'a Run,
) -> Option<&'a ProcessId> {
    run.baseline_supervisor
        .as_deref()
        .filter(|supervisor| !is_alive(context.store(), supervisor))
}

/// The command of a run that goes on, itself or what it started, although its `recover` is gone.
pub(crate) fn left_running<'a>(context: &Context, run: &'a Run) -> Option<&'a ProcessId> {
    let child = run
        .live
        .as_ref()
        .filter(|_| is_orphaned(context, run))?
        .child
        .as_ref();
    child.filter(|child| child.is_group_alive())
}

/// Whether a run's attempt was supervised by a `recover` that is gone.
pub(crate) fn is_orphaned(context: &Context, run: &Run) -> bool {
    let supervisor = run.live.as_ref().and_then(|live| live.supervisor.as_ref());
    supervisor.is_some_and(|supervisor| !is_alive(context.store(), supervisor))
}

/// Whether the `recover` that ran the step is gone.
pub(in crate::engine) fn is_step_orphaned(context: &Context, step: &Step) -> bool {
    step.status == StepStatus::Running && !is_alive(context.store(), &step.start.supervisor)
}

/// Steps of this work tree that were cut off, or whose compensation was.
pub(in crate::engine) fn orphaned_steps(context: &Context, state: &State) -> Vec<(RunKey, Step)> {
    let worktree = context.worktree_id();
    let is_stopped = |step: &Step| {
        step.compensating
            .as_ref()
            .is_some_and(|supervisor| !is_alive(context.store(), supervisor))
    };
    let of_run = |run: &Run| -> Vec<(RunKey, Step)> {
        let here = run
            .steps
            .iter()
            .filter(|step| step.start.worktree == worktree);
        let lost = here.filter(|step| is_step_orphaned(context, step) || is_stopped(step));
        lost.map(|step| (run.key.clone(), step.clone())).collect()
    };
    state.runs.iter().flat_map(of_run).collect()
}

/// An atomic step of this work tree that was cut off and whose files still wait to be restored.
fn unfinished_atomic_step(context: &Context, state: &State) -> Option<String> {
    let orphaned = orphaned_steps(context, state);
    let is_atomic = |step: &Step| is_step_orphaned(context, step) && step.start.atomic.is_some();
    let atomic = orphaned.into_iter().find(|(_, step)| is_atomic(step));
    atomic.map(|(_, step)| format!("step '{}' (atomic)", step.start.name))
}

/// Refuses a work tree that an atomic step left in between (exit 16).
pub(super) fn refuse_interrupted(context: &Context) -> Result<()> {
    match unfinished_atomic_step(context, &context.load()?.state) {
        None => Ok(()),
        Some(step) => Err(Error::new(
            ErrorKind::CutOff,
            format!("{step} was interrupted and is not resolved yet"),
        )
        .hint(Hint::recover(["doctor", "--repair"]))),
    }
}

/// The lock of the right to drive a run. Lanes share the folder.
fn driving_lock(context: &Context, key: &RunKey) -> PathBuf {
    let name = format!(
        "driver-{:08x}.lock",
        crc32fast::hash(key.to_string().as_bytes())
    );
    context.store().run_dir(key).join(name)
}

/// Whether a process has the right to drive a run.
pub(in crate::engine) fn is_driven(context: &Context, key: &RunKey) -> bool {
    driven_by(context, key).is_some()
}

/// The number of the process that has the right to drive a run; 0 where it did not say.
pub(in crate::engine) fn driven_by(context: &Context, key: &RunKey) -> Option<u32> {
    let tried = FileLock::acquire_unnoticed(
        context.store().root(),
        &driving_lock(context, key),
        Duration::ZERO,
    );
    let Err(LockError::Held { holder, .. }) = tried else {
        return None;
    };
    let pid = holder.split(' ').nth(1).and_then(|pid| pid.parse().ok());
    Some(pid.unwrap_or_default())
}

/// The right to drive a run: one process has it at a time, also while it waits between two attempts. It ends with the
/// process.
#[derive(Debug)]
pub(crate) struct Driving {
    /// The run.
    pub key: RunKey,
    _lock: FileLock,
}

impl Driving {
    /// Takes it.
    ///
    /// # Errors
    /// Another process has it (11).
    pub(crate) fn take(context: &Context, key: &RunKey) -> Result<Self> {
        let folder = context.store().run_dir(key);
        context.create_state_dir(&folder)?;
        let lock = match FileLock::acquire(
            context.store().root(),
            &driving_lock(context, key),
            Duration::ZERO,
        ) {
            Ok(lock) => lock,
            Err(LockError::Held { holder, .. }) => {
                let message = format!("run {key} is under way: {holder}");
                return Err(
                    Error::new(ErrorKind::Locked, message).hint(Hint::recover(["status"]).run(key))
                );
            }
            Err(error) => return Err(error.into()),
        };
        // A lock may not reach another machine that shares the folder.
        let state = context.load()?.state;
        let driver = state
            .run(key)
            .and_then(|run| runs::driver(context.store(), run));
        match driver.filter(|driver| !driver.is_own()) {
            Some(driver) => Err(runs::driven_by(key, driver)),
            None => Ok(Self {
                key: key.clone(),
                _lock: lock,
            }),
        }
    }
}
