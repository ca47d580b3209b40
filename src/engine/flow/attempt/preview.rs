//! What a dry run would record.

use std::sync::Arc;

use crate::engine::attempt::begin::beginning;
use crate::engine::attempt::conditions;
use crate::engine::attempt::end::{judge, random, recovery_result};
use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::base::runs::run_of;
use crate::engine::record::attempt_record::{Begin, Ended, Ending, Started};
use crate::engine::record::{checkpoint, events, select};
use crate::engine::recovery::crash;
use crate::engine::restore::state_rollback;
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::policy::settings::SafeMode;
use crate::store::NewEvent;

use super::{open, refuse_supervised};

/// The run that an attempt would be recorded in, made in memory where there is none, and the state with it.
pub(super) fn assumed_run(
    context: &Context,
    find: impl FnOnce(&State) -> Result<(RunKey, Vec<NewEvent>)>,
) -> Result<(Arc<State>, Run)> {
    let mut state = crash::load_recovered(context)?;
    let (key, events) = find(&state)?;
    for event in events {
        events::apply_speculatively(&mut state, context.clock.now(), event);
    }
    refuse_supervised(context, &state, &key)?;
    let run = run_of(&state, &key)?;
    Ok((state, run))
}

/// What [`finish`](super::finish) would record, without a word written.
pub(super) fn preview(context: &Context, mut ending: Ending) -> Result<Ended> {
    let (state, run) = assumed_run(context, |state| {
        select::find_or_create_for_attempt(context, state)
    })?;
    let started: Started =
        open(&run).unwrap_or_else(|| beginning(context, run.clone(), &Begin::default()).0);
    let prepared = checkpoint::prepare(context).ok();
    let about = (started.iteration, started.subtask.as_str());
    let found = conditions::detect(context, &state, &run.key, about, &ending, prepared.as_ref());
    judge(
        context,
        &state,
        &run,
        &started,
        &mut ending,
        found,
        random(context),
    );
    let mode = context.settings().rollback.safe_mode;
    let asks =
        mode == SafeMode::ReadOnly || (mode == SafeMode::Conservative && !context.says_yes());
    let allowed = context.settings().rollback.on_error && !ending.keep_state && !asks;
    let has_target = state_rollback::target(&state, &run.key).is_some();
    let decision = ending.end.decision.as_ref();
    let result = decision
        .map(|decision| recovery_result(decision, allowed, has_target, Ok(allowed && has_target)));
    Ok(Ended {
        run,
        end: ending.end,
        result,
        checkpoint: None,
        checkpoint_error: None,
        report: None,
    })
}
