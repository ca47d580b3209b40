//! What a dry run would record.

use crate::model::run::Run;
use crate::model::state::State;

use super::super::context::Context;
use super::super::error::Result;
use super::super::{lost, select, settle, state_rollback};
use super::{Begin, Ended, Ending, Started, beginning, decide_for, open, recovery_result, refuse_supervised, run_of};

/// The run that an attempt would be recorded in, made in memory where there is none, and the state with it.
pub(super) fn assumed_run(context: &Context) -> Result<(State, Run)> {
    let mut state = settle::load_settled(context)?;
    let (key, events) = select::find_or_create(context, &state, "manual")?;
    for event in events {
        lost::assume(&mut state, context.clock.now(), event);
    }
    refuse_supervised(context, &state, &key)?;
    let run = run_of(&state, &key)?;
    Ok((state, run))
}

/// What [`finish`](super::finish) would record, without a word written.
pub(super) fn preview(context: &Context, make: impl FnOnce(&Started) -> Ending) -> Result<Ended> {
    let (state, run) = assumed_run(context)?;
    let started = open(&run).unwrap_or_else(|| beginning(context, run.clone(), &Begin::default()).0);
    let ending = make(&started);
    let mut failure = ending.failure;
    let decision = failure
        .as_mut()
        .map(|failure| decide_for(context, &state, &run, failure, &started.subtask, ending.in_feedback_loop));
    let allowed = context.settings().rollback.on_error && !ending.keep_state;
    let has_target = state_rollback::target(&state, &run.key).is_some();
    let result =
        decision.as_ref().map(|decision| recovery_result(decision, allowed, has_target, Ok(allowed && has_target)));
    Ok(Ended { run, failure, decision, result, checkpoint: None, checkpoint_error: None, report: None })
}
