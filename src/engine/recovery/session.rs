//! Ends sessions whose agent is gone without a word: killed, or its terminal closed.
//! No hook is called then, and the run would stand in progress for ever.
//!
//! Each call of a hook notes who called it beside the run. It is no more than a look at who is alive, so it is no event. A
//! wrapper that lives for one call only differs from the agent by not coming twice.

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::durable::Sync;
use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::record::events::{self, apply_speculatively};
use crate::model::event::Payload;
use crate::model::run::{ProcessId, Run, RunKey, RunStatus};
use crate::model::state::State;
use crate::process::{caller, is_alive};
use crate::store::NewEvent;

/// Who called the hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Caller {
    /// The process.
    process: Option<ProcessId>,
    /// Whether it has called before.
    again: bool,
}

fn place(context: &Context, key: &RunKey) -> PathBuf {
    context.store().run_dir(key).join("agent.json")
}

fn noted(context: &Context, key: &RunKey) -> Option<Caller> {
    serde_json::from_slice(&context.store().root().read(&place(context, key)).ok()?).ok()
}

/// Notes who calls the hook of a session. What cannot be noted is found by its age.
pub(crate) fn note(context: &Context, key: &RunKey) {
    let before = noted(context, key);
    let process = caller();
    let again = process.is_some()
        && before
            .as_ref()
            .is_some_and(|before| before.process == process);
    let now = Caller { process, again };
    if before.as_ref() == Some(&now) {
        return;
    }
    let path = place(context, key);
    let write = || {
        let root = context.store().root();
        root.create_dir_all(&context.store().run_dir(key))?;
        root.write(&path, &serde_json::to_vec(&now)?, Sync::Nothing)
    };
    if let Err(error) = write() {
        tracing::debug!(%error, "who calls the hook was not noted");
    }
}

/// Whether a session is under way of which nobody is left.
pub(crate) fn is_orphaned(context: &Context, run: &Run) -> bool {
    if run.status != RunStatus::InProgress || run.live.is_some() {
        return false;
    }
    let Some(caller) = noted(context, &run.key) else {
        return false;
    };
    caller
        .process
        .filter(|_| caller.again)
        .is_some_and(|agent| !agent.is_out_of_sight() && !is_alive(&agent))
}

fn orphaned(context: &Context, state: &State) -> Vec<RunKey> {
    let here = state.runs_of(&context.worktree_id());
    here.filter(|run| is_orphaned(context, run))
        .map(|run| run.key.clone())
        .collect()
}

/// As at the end of a session that said so. Its last state is the work tree's: nothing is captured late.
fn over(key: &RunKey) -> NewEvent {
    let reason = "the session is over: its agent is gone".to_owned();
    NewEvent::about(
        key,
        Payload::RunStatusChanged {
            status: RunStatus::Complete,
            reason,
        },
    )
}

/// Applies to the state in memory, for commands that write nothing, that the sessions of this work tree are over whose agent is
/// gone.
pub(crate) fn apply(context: &Context, state: &mut Arc<State>) {
    for key in orphaned(context, state) {
        apply_speculatively(state, context.clock.now(), over(&key));
    }
}

/// Records that the sessions are over which are orphaned in `state`. One that is taken up again is under way again.
/// Returns what was done.
pub(crate) fn recover(context: &Context, state: &State) -> Result<Vec<String>> {
    let mut done = Vec::new();
    for key in orphaned(context, state) {
        let ledger = context.store().lock()?;
        // Another process may have come first.
        if !ledger
            .state()
            .run(&key)
            .is_some_and(|run| is_orphaned(context, run))
        {
            continue;
        }
        events::append(ledger, &key, context.clock.now(), vec![over(&key)])?;
        done.push(format!(
            "the agent of session {key} is gone: the session is over"
        ));
    }
    Ok(done)
}
