//! Which steps are orphaned: their `recover` was killed.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::model::hint::Hint;
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::model::step::{Step, StepStatus};
use crate::process::is_alive;

/// Whether the `recover` that ran the step is gone.
pub(in crate::engine) fn is_orphaned(step: &Step) -> bool {
    step.status == StepStatus::Running && !is_alive(&step.start.supervisor)
}

/// Whether the `recover` that was taking the step's effect back is gone.
fn is_compensation_orphaned(step: &Step) -> bool {
    step.compensating.as_ref().is_some_and(|supervisor| !is_alive(supervisor))
}

/// Steps of this work tree that were cut off one way or the other.
pub(in crate::engine) fn orphaned_here(context: &Context, state: &State) -> Vec<(RunKey, Step)> {
    let worktree = context.worktree_id();
    let of_run = |run: &Run| -> Vec<(RunKey, Step)> {
        let here = run.steps.iter().filter(|step| step.start.worktree == worktree);
        let lost = here.filter(|step| is_orphaned(step) || is_compensation_orphaned(step));
        lost.map(|step| (run.key.clone(), step.clone())).collect()
    };
    state.runs.iter().flat_map(of_run).collect()
}

/// Whether any step of this work tree is orphaned.
pub fn is_any_orphaned(context: &Context, state: &State) -> bool {
    !orphaned_here(context, state).is_empty()
}

/// An atomic step of this work tree that was cut off and whose files still wait to be restored.
pub fn unfinished_atomic_step(context: &Context, state: &State) -> Option<String> {
    let orphaned = orphaned_here(context, state);
    let atomic = orphaned.into_iter().find(|(_, step)| is_orphaned(step) && step.start.atomic.is_some());
    atomic.map(|(_, step)| format!("step '{}' (atomic)", step.start.name))
}

/// Refuses to look at a work tree that an atomic step left in between (exit 16).
pub fn refuse_interrupted(context: &Context) -> Result<()> {
    match unfinished_atomic_step(context, &context.load()?.state) {
        None => Ok(()),
        Some(step) => Err(Error::new(ErrorKind::CutOff, format!("{step} was cut off and is not settled yet"))
            .hint(Hint::recover(["doctor", "--repair"]))),
    }
}
