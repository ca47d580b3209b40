//! Recording events, in the ledger together with the views, or speculatively in memory.

use std::sync::Arc;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::model::event::{EVENT_SCHEMA, Event, Payload};
use crate::model::run::RunKey;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::store::views::write_views;
use crate::store::{Exclusive, NewEvent};

impl Context {
    /// Records what happened in a run now, and writes its views.
    pub fn record(&self, key: &RunKey, payloads: Vec<Payload>) -> Result<()> {
        self.record_in(self.store().lock()?, key, payloads)
            .map(drop)
    }

    /// [`Context::record`] under a lock that is held already, because of what was looked up under it; it is given back.
    pub fn record_in(
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
