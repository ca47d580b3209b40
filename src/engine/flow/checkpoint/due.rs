//! When a checkpoint is due, and the operations that count towards it (S10).

use crate::engine::base::context::Context;
use crate::engine::base::error::{ErrorKind, Result};
use crate::engine::record::select;
use crate::engine::recovery::crash;
use crate::model::checkpoint::{Checkpoint, trigger};
use crate::model::event::Payload;
use crate::model::run::RunKey;
use crate::model::state::State;

/// The run's latest checkpoint, if no other is due yet. With `operation` as trigger this is an operation itself.
pub fn not_due(context: &Context, why: &str) -> Result<Option<Checkpoint>> {
    let counts = why == trigger::OPERATION;
    if context.settings().checkpoint.interval.is_none() && !counts {
        return Ok(None);
    }
    let state = crash::load_recovered(context)?;
    let run = match select::find_for_capture(context, &state) {
        Ok(run) => run,
        Err(error) if error.kind == ErrorKind::RunNotFound => None,
        Err(error) => return Err(error),
    };
    let Some(run) = run.filter(|run| due(context, &state, &run.key, u32::from(counts)).is_none())
    else {
        return Ok(None);
    };
    Ok(state.latest(&run.key).cloned())
}

/// Why a checkpoint of a run is due (S10): its latest one is as old as the interval, or with `more` of them so many
/// operations were recorded since. One dated in the future says nothing.
pub fn due(context: &Context, state: &State, key: &RunKey, more: u32) -> Option<&'static str> {
    let (settings, now) = (&context.settings().checkpoint, context.clock.now());
    let Some(latest) = state.latest(key) else {
        return Some(trigger::INTERVAL);
    };
    let is_old = |interval| latest.created_at > now || now.since(latest.created_at) >= interval;
    if settings.interval.is_some_and(is_old) {
        return Some(trigger::INTERVAL);
    }
    is_due_by_operations(context, state, key, more).then_some(trigger::OPERATION)
}

/// Whether, with `more` of them, as many operations as are configured were recorded since the latest one.
pub fn is_due_by_operations(context: &Context, state: &State, key: &RunKey, more: u32) -> bool {
    let operations = state
        .run(key)
        .map_or(0, |run| run.operations)
        .saturating_add(more);
    context
        .settings()
        .checkpoint
        .every_operations
        .is_some_and(|every| operations >= every)
}

/// Records that something was done in a run.
pub fn record_operation(context: &Context, key: &RunKey, name: &str) -> Result<()> {
    let payload = Payload::OperationRecorded {
        name: name.to_owned(),
    };
    context.record(key, vec![payload])
}
