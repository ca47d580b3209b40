//! Where a run stands and how to go on (B1, B5, B7).

use crate::engine::attempt::standing::Retry;
use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::base::runs;
use crate::engine::record::{liveness, select};
use crate::engine::recovery::crash;
use crate::model::manual_fix::{ManualFixSession, ManualFixStatus};
use crate::model::run::Run;
use crate::policy::options::{ResumeOption, manual_steps, resume_options};

use super::{foreign_views, retry};

/// Everything a person wants to know first.
#[derive(Debug)]
pub struct Status {
    /// The run.
    pub run: Run,
    /// What a person can do next; empty where the failure is not recoverable.
    pub options: Vec<ResumeOption>,
    /// What to do by hand; empty where it is recoverable.
    pub manual_steps: Vec<String>,
    /// The open manual fix.
    pub manual_fix: Option<ManualFixSession>,
    /// A restore that was cut off.
    pub unfinished_operation: Option<String>,
    /// How many checkpoints the run has.
    pub checkpoint_count: usize,
    /// The latest one that is no safety checkpoint.
    pub latest: Option<String>,
    /// The last good one.
    pub last_good: Option<String>,
    /// Its budgets.
    pub retry: Retry,
}

/// Looks at the run that a command works on.
pub fn status(context: &Context) -> Result<Status> {
    status_of(context, None)
}

/// Looks at a run that is named by its id.
pub fn status_of(context: &Context, run_id: Option<&str>) -> Result<Status> {
    let state = crash::load_recovered(context)?;
    let run = match run_id {
        Some(id) => runs::named(&state, id, None, None)?.clone(),
        None => match select::find(context, &state)? {
            Some(run) => run.clone(),
            // Nothing is recorded here: what another system's files say, counts.
            None => match foreign_views::run(context, &state) {
                Some(run) => run,
                None => select::require(context, &state)?.clone(),
            },
        },
    };
    let good = state.last_good(&run.key).map(|checkpoint| checkpoint.id.clone());
    let unrecoverable = run.failure.as_ref().filter(|failure| !failure.recoverable);
    Ok(Status {
        options: resume_options(&state, &run),
        manual_steps: unrecoverable.map(manual_steps).unwrap_or_default(),
        manual_fix: run.manual_fix.clone().filter(|session| session.status == ManualFixStatus::Active),
        unfinished_operation: liveness::unfinished_operation(context)?,
        checkpoint_count: state.checkpoints_of(&run.key).count(),
        latest: state.latest(&run.key).map(|c| c.id.clone()),
        last_good: good,
        retry: retry::look_at(context, &state)?,
        run,
    })
}
