//! The claim of an attempt.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::base::runs::run_of;
use crate::engine::record::attempt_record::{Begin, Started, head_of, session_of};
use crate::model::decision::Action;
use crate::model::event::Payload;
use crate::model::run::{Run, RunKey};
use crate::store::{Exclusive, NewEvent};

/// Claims the next attempt of a run under the ledger's lock.
pub(crate) fn begin(
    context: &Context,
    ledger: &mut Exclusive,
    key: &RunKey,
    begin: &Begin,
) -> Result<Started> {
    let (started, event) = beginning(context, run_of(ledger.state(), key)?, begin);
    ledger.append(started.at, vec![event])?;
    Ok(Started {
        run: run_of(ledger.state(), key)?,
        ..started
    })
}

/// What the next attempt is, and the event that begins it.
pub(in crate::engine) fn beginning(
    context: &Context,
    run: Run,
    begin: &Begin,
) -> (Started, NewEvent) {
    let iteration = begin.iteration.unwrap_or(run.current_iteration);
    let attempt = run
        .iterations
        .get(iteration)
        .and_then(|i| i.attempts.last())
        .map_or(1, |last| last.number + 1);
    let subtask = begin
        .subtask
        .clone()
        .unwrap_or_else(|| run.next_subtask(iteration));
    let payload = Payload::AttemptStarted {
        iteration,
        attempt,
        approach: begin.approach.clone(),
        subtask: subtask.clone(),
        session: session_of(context, &run),
        head: head_of(context),
        supervisor: begin.supervisor.clone(),
        log_path: None,
        fallback: begin.supervisor.is_some() && falls_back(&run, iteration),
    };
    let event = NewEvent::about(&run.key, payload);
    (
        Started {
            run,
            iteration,
            attempt,
            subtask,
            at: context.clock.now(),
        },
        event,
    )
}

/// Whether what was decided of the iteration's last failure is to run the fallback (S9). A granted attempt is one of the
/// run's own command.
fn falls_back(run: &Run, iteration: u32) -> bool {
    let decided = run
        .decision
        .as_ref()
        .is_some_and(|decision| decision.has(Action::Fallback));
    let about = run.failure.as_ref().and_then(|failure| failure.iteration);
    decided && run.granted == 0 && about == Some(iteration) && !run.spec.fallback.is_empty()
}
