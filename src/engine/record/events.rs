//! Recording events, in the ledger together with the views, or speculatively in memory; and checkpoints that the ledger does not know.
//!
//! Adding checkpoints to the ledger that it does not know: a kill came before their event, or they were imported.

use std::sync::Arc;

use crate::engine::base::{Context, Result};
use crate::model::event::EVENT_SCHEMA;
use crate::model::{
    Checkpoint, Event, Payload, RunKey, RunSpec, RunStatus, State, Strategy, Timestamp,
};
use crate::store::views::write_views;
use crate::store::{Exclusive, NewEvent};

impl Context {
    /// Records what happened in a run now, and writes its views.
    pub(crate) fn record(&self, key: &RunKey, payloads: Vec<Payload>) -> Result<()> {
        self.record_in(self.store().lock()?, key, payloads)
            .map(drop)
    }

    /// Records that a run has another status from now on, and why.
    pub(crate) fn record_status(
        &self,
        key: &RunKey,
        status: RunStatus,
        reason: impl Into<String>,
    ) -> Result<()> {
        let reason = reason.into();
        self.record(key, vec![Payload::RunStatusChanged { status, reason }])
    }

    /// [`Context::record`] under a lock that is held already, because of what was looked up under it; it is given back.
    pub(crate) fn record_in(
        &self,
        ledger: Exclusive,
        key: &RunKey,
        payloads: Vec<Payload>,
    ) -> Result<Arc<State>> {
        let events = payloads
            .into_iter()
            .map(|payload| NewEvent::about(key, payload))
            .collect();
        append(ledger, key, self.clock.now(), events)
    }
}

/// That a run goes on at an iteration, with nothing of it superseded, granted or restarted.
pub(in crate::engine) fn resumed(
    strategy: Strategy,
    iteration: u32,
    instructions: Option<String>,
) -> Payload {
    Payload::RunResumed {
        strategy: Some(strategy),
        iteration,
        supersede: false,
        instructions,
        error_context: false,
        granted: false,
        restart: false,
    }
}

/// Appends events that are dated `at` to the ledger, gives its lock back and writes the views of the run that they complete.
pub(crate) fn append(
    mut ledger: Exclusive,
    key: &RunKey,
    at: Timestamp,
    events: Vec<NewEvent>,
) -> Result<Arc<State>> {
    ledger.append(at, events)?;
    Ok(write_views(ledger, &[key])?)
}

/// Applies an event to the state in memory, as if it had been recorded.
pub(crate) fn apply_speculatively(state: &mut Arc<State>, at: Timestamp, event: NewEvent) {
    let NewEvent {
        run,
        source,
        payload,
    } = event;
    let seq = state.last_seq + 1;
    Arc::make_mut(state).apply(&Event {
        seq,
        at,
        schema: EVENT_SCHEMA,
        run,
        source,
        payload,
    });
}

/// Adds a checkpoint of this project whose event was never written. Returns what was done; `None` if it is known meanwhile.
pub(in crate::engine) fn adopt_one(context: &Context, found: Checkpoint) -> Result<Option<String>> {
    let ledger = context.store().lock()?;
    let id = found.id.clone();
    let adopted = |checkpoint| Payload::CheckpointCreated {
        checkpoint,
        adopted: true,
        own_commits: Vec::new(),
    };
    let added = adopt(ledger, context.clock.now(), found, adopted)?;
    Ok(added.then(|| format!("recovered checkpoint {id}, whose event was never written")))
}

/// Adds a checkpoint that the ledger does not know, and its run where that is not known either. Returns whether it was new.
pub(in crate::engine) fn adopt(
    ledger: Exclusive,
    now: Timestamp,
    mut found: Checkpoint,
    payload: impl FnOnce(Box<Checkpoint>) -> Payload,
) -> Result<bool> {
    if ledger.state().checkpoint(&found.id).is_some() {
        return Ok(false);
    }
    if ledger.state().checkpoints.contains(found.seq) {
        // Another one has its number.
        found.seq = ledger.state().last_checkpoint_seq + 1;
    }
    let mut events = Vec::new();
    if ledger.state().run(&found.run).is_none() {
        events.push(NewEvent::about(
            &found.run,
            Payload::RunCreated {
                task_id: found.task_id.clone(),
                session: found.run.run_id.to_string(),
                worktree: found.worktree.clone(),
                spec: Box::new(RunSpec::default()),
            },
        ));
    }
    let key = found.run.clone();
    events.push(NewEvent::about(&key, payload(Box::new(found))));
    append(ledger, &key, now, events)?;
    Ok(true)
}
