//! Orphaned attempts (their supervisor was killed), as commands see them that write nothing.

use std::sync::Arc;

use crate::engine::base::context::Context;
use crate::engine::record::events::apply_speculatively;
use crate::engine::record::{liveness, run_settings};
use crate::model::event::{AttemptEnd, Payload};
use crate::model::run::AttemptOutcome;
use crate::model::state::State;
use crate::policy::budget::Account;
use crate::policy::classify::known;
use crate::policy::decide::{Circumstances, decide, fallback_of};
use crate::store::NewEvent;

/// Applies to the state in memory what [`recover`](super::crash::recover) would record.
pub fn assume_crashed(context: &Context, state: &mut Arc<State>) {
    let lost: Vec<_> = state.runs.iter().filter(|run| liveness::is_orphaned(run)).cloned().collect();
    for run in lost {
        let Some(live) = &run.live else { continue };
        let attempts = run.iterations.get(live.iteration).map(|iteration| &iteration.attempts);
        let Some(attempt) = attempts.and_then(|attempts| attempts.last()) else { continue };
        let now = context.clock.now();
        let mut failure = known::supervisor_lost();
        failure.iteration = Some(live.iteration);
        failure.attempt = Some(live.attempt);
        failure.at = Some(now);
        let settings = run_settings::settings_of(context, &run);
        let account =
            Account { state, run: &run, subtask: &attempt.subtask, session: &attempt.session, witnessed: &[] };
        let around = Circumstances {
            account,
            settings: &settings,
            on_failure: run.spec.on_failure,
            has_good_checkpoint: state.last_good(&run.key).is_some(),
            in_feedback_loop: false,
            cost_micros: 0,
            fallback: fallback_of(&run, live.iteration, live.attempt),
            now,
            random: 0.0,
        };
        let decision = decide(&failure, &around);
        let end = AttemptEnd {
            duration_ms: u64::try_from(now.since(attempt.started_at).as_millis()).unwrap_or(u64::MAX),
            log_path: attempt.log_path.clone(),
            conditions: failure.conditions.clone(),
            failure: Some(failure),
            decision: Some(decision),
            ..AttemptEnd::new(live.iteration, live.attempt, AttemptOutcome::Failed)
        };
        apply_speculatively(state, now, NewEvent::about(&run.key, Payload::AttemptEnded(Box::new(end))));
    }
}
