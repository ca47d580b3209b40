//! Which attempts and feedback loops are orphaned (their `recover` was killed), and which operation was interrupted.

use std::path::PathBuf;
use std::time::Duration;

use crate::durable::{FileLock, LockError};
use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git::restore::read_journal;
use crate::model::run::{ProcessId, Run, RunKey};
use crate::process::{is_alive, is_group_alive};

use super::step_liveness;

/// Whether a restore or an atomic step was cut off in this work tree and still waits to be finished. That is in the ledger
/// as it is: the state that readers get counts such a step as settled.
pub fn unfinished_operation(context: &Context) -> Result<Option<String>> {
    if !context.has_git() && !context.store().exists() {
        return Ok(None);
    }
    match read_journal(context.repo()?)? {
        Some(journal) => Ok(Some(format!("{} {}", journal.kind, journal.operation_id))),
        None => Ok(step_liveness::unfinished_atomic_step(context, &context.load()?.state)),
    }
}

/// The `recover` that ran the feedback loops before the first attempt, if it is gone.
pub(in crate::engine) fn orphaned_baseline(run: &Run) -> Option<&ProcessId> {
    run.baseline_supervisor.as_deref().filter(|supervisor| !is_alive(supervisor))
}

/// The lock of the right to drive a run. Lanes share the folder.
pub(in crate::engine) fn driving_lock(context: &Context, key: &RunKey) -> PathBuf {
    let name = format!("driver-{:08x}.lock", crc32fast::hash(key.to_string().as_bytes()));
    context.store().run_dir(key).join(name)
}

/// Whether somebody has the right to drive a run.
pub(in crate::engine) fn is_driven(context: &Context, key: &RunKey) -> bool {
    let tried = FileLock::acquire_unnoticed(context.store().root(), &driving_lock(context, key), Duration::ZERO);
    matches!(tried, Err(LockError::Held { .. }))
}

/// The command of a run that goes on, itself or what it started, although its `recover` is gone.
pub fn left_running(run: &Run) -> Option<&ProcessId> {
    run.live.as_ref().filter(|_| is_orphaned(run))?.child.as_ref().filter(|child| is_group_alive(child))
}

/// Whether a run's attempt was supervised by a `recover` that is gone.
pub fn is_orphaned(run: &Run) -> bool {
    run.live.as_ref().and_then(|live| live.supervisor.as_ref()).is_some_and(|supervisor| !is_alive(supervisor))
}
