//! Events that a command without effect applies to the state in memory.

use std::sync::Arc;

use crate::model::event::{EVENT_SCHEMA, Event};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::store::NewEvent;

/// Applies an event to the state in memory, as if it had been recorded.
pub fn apply_speculatively(state: &mut Arc<State>, at: Timestamp, event: NewEvent) {
    let NewEvent { run, source, payload } = event;
    let seq = state.last_seq + 1;
    Arc::make_mut(state).apply(&Event { seq, at, schema: EVENT_SCHEMA, run, source, payload });
}
