//! The fold's steps about named steps.

use crate::model::event::{Event, Payload};
use crate::model::operation::{Operation, OperationKind};
use crate::model::run::Run;
use crate::model::state::State;
use crate::model::step::{Step, StepEnd, StepRef, StepStart, StepStatus};

/// Applies an event about a step; `last_checkpoint` is the highest checkpoint sequence so far.
pub(super) fn apply(run: &mut Run, event: &Event, last_checkpoint: u64) {
    match &event.payload {
        Payload::StepStarted(start) => started(run, start, event),
        Payload::StepChildStarted { name, child } => {
            if let Some(step) = step_mut(run, name) {
                step.child = Some(child.clone());
            }
        }
        Payload::StepEnded(end) => ended(run, end, event, last_checkpoint),
        Payload::StepCompensating { name, supervisor } => {
            if let Some(step) = step_mut(run, name) {
                step.compensating = Some(supervisor.clone());
            }
        }
        Payload::StepCompensated {
            name, succeeded, ..
        } => {
            if let Some(step) = step_mut(run, name) {
                step.compensating = None;
                if *succeeded {
                    step.status = StepStatus::Compensated;
                    step.crossed = false;
                }
            }
        }
        _ => {}
    }
}

fn step_mut<'a>(run: &'a mut Run, name: &str) -> Option<&'a mut Step> {
    run.steps.iter_mut().find(|step| step.start.name == name)
}

fn started(run: &mut Run, start: &StepStart, event: &Event) {
    let (executions, first_seq) =
        step_mut(run, &start.name).map_or((0, event.seq), |step| (step.executions, step.first_seq));
    run.steps.retain(|step| step.start.name != start.name);
    run.steps.push(Step {
        start: start.clone(),
        status: StepStatus::Running,
        started_at: event.at,
        ended_at: None,
        ended_seq: 0,
        after_checkpoint: 0,
        exit_code: None,
        duration_ms: None,
        rolled_back: false,
        executions: executions.saturating_add(1),
        first_seq,
        child: None,
        crossed: false,
        compensating: None,
    });
}

fn ended(run: &mut Run, end: &StepEnd, event: &Event, last_checkpoint: u64) {
    run.own_commits.extend(end.commits.iter().cloned());
    let Some(step) = step_mut(run, &end.name) else {
        return;
    };
    step.status = end.status;
    step.ended_at = Some(event.at);
    step.ended_seq = event.seq;
    step.after_checkpoint = last_checkpoint;
    step.exit_code = end.exit_code;
    step.duration_ms = Some(end.duration_ms);
    step.rolled_back = end.rolled_back;
    step.child = None;
}

/// A restore went back to before the steps that it names; `given_back` are those of the operation that an undo takes back
/// or a redo does again.
pub(super) fn crossed(state: &mut State, operation: &Operation, given_back: &[StepRef]) {
    let mut mark = |steps: &[StepRef], crossed: bool| {
        for StepRef { run, name } in steps {
            let run = super::run_mut(&mut state.runs, run);
            if let Some(step) = run.and_then(|run| step_mut(run, name)) {
                step.crossed = crossed && step.status == StepStatus::Done;
            }
        }
    };
    mark(given_back, operation.kind == OperationKind::Redo);
    mark(&operation.steps, true);
}
