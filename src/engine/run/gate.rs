//! What is checked before each attempt: whether a limit holds it that some run on this machine met.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use parking_lot::Mutex;

use super::retry::Awaited;
use crate::agent::Stream;
use crate::engine::base::Context;
use crate::engine::record::attempt_record::Ended;
use crate::engine::record::limits::{Admission, Limits, Probe};
use crate::engine::record::run_settings::settings_of;
use crate::model::decision::BudgetScope;
use crate::model::failure::EvidenceSource;
use crate::model::{Action, AttemptEnd, Failure, Run, Timestamp};
use crate::policy::limits::over_at;

/// Passed by one attempt; while it is there, other runs wait for what the attempt finds out.
#[derive(Clone)]
pub(super) struct Pass(Option<Arc<Passed>>);

struct Passed {
    limits: Limits,
    begun: Timestamp,
    probes: Mutex<Vec<Probe>>,
    /// The agent has records, so that its being alive says nothing.
    has_records: AtomicBool,
}

/// Waits while a limit that a run of this machine met holds the next attempt of `run`; `wait` says how.
pub(super) fn pass<E>(
    context: &Context,
    run: &Run,
    mut wait: impl FnMut(&Awaited<'_>) -> Result<(), E>,
) -> Result<Pass, E> {
    let Some(limits) = Limits::of(context, run) else {
        return Ok(Pass(None));
    };
    let mut waited = run.parked.is_some();
    loop {
        let hold = match limits.admit(context, waited) {
            Admission::Open(probes) => return Ok(Pass::new(context, limits, probes)),
            Admission::Held(hold) => hold,
        };
        waited = true;
        let now = context.clock.now();
        let until = hold.until.unwrap_or_else(|| now.plus(limits.gap() * 3));
        let longest = settings_of(context, run).retry.max_park;
        wait(&Awaited {
            until,
            since: Some(hold.met_at),
            is_reset: hold.until.is_some(),
            is_shared: true,
            latest: Some(now.plus(longest)),
            reason: hold.text.clone(),
            is_over: &|| limits.has_changed(&hold),
        })?;
        if context.progress.skips_wait(until) {
            return Ok(Pass::new(context, limits, Vec::new()));
        }
    }
}

/// Whether another run found out that what `run` waits for by its own decision is over, whenever that is called.
pub(super) fn through(context: &Context, run: &Run) -> impl Fn() -> bool {
    let since = run.parked.as_ref().map(|parked| parked.since);
    let limits = since.and_then(|since| Some((since, Limits::of(context, run)?)));
    move || {
        let is_through = |(since, limits): &(_, Limits)| limits.is_through(context, *since);
        limits.as_ref().is_some_and(is_through)
    }
}

impl Pass {
    fn new(context: &Context, limits: Limits, probes: Vec<Probe>) -> Self {
        let (alive, is_probe) = (limits.gap() * 3, !probes.is_empty());
        let begun = context.clock.now();
        let passed = Arc::new(Passed {
            limits,
            begun,
            probes: Mutex::new(probes),
            has_records: AtomicBool::new(false),
        });
        let own = Arc::downgrade(&passed);
        if is_probe {
            thread::spawn(move || {
                thread::sleep(alive);
                let is_text = |passed: &Arc<Passed>| !passed.has_records.load(Ordering::SeqCst);
                if let Some(passed) = own.upgrade().filter(is_text) {
                    passed.through(begun.plus(alive));
                }
            });
        }
        Self(Some(passed))
    }

    /// Notes what the records say: with the first answer of the model the limits that the attempt tries are over.
    pub(super) fn notice(&self, stream: &Stream) {
        let Some(passed) = &self.0 else {
            return;
        };
        if stream.session().is_some() {
            passed.has_records.store(true, Ordering::SeqCst);
        }
        if stream.has_answered() {
            passed.through(passed.begun);
        }
    }

    /// Writes down what the attempt met, or that it got through.
    pub(super) fn end(self, context: &Context, ended: &Ended) {
        let Some(passed) = self.0 else {
            return;
        };
        let Some((failure, until)) = met(&ended.end) else {
            let failure = ended.end.failure.as_ref();
            let ran = failure.is_none_or(|failure| {
                ended.end.answered == Some(true) && failure.weather().is_none()
            });
            if ran {
                passed.through(context.clock.now());
            }
            return;
        };
        if let Err(error) = passed.limits.met(context, failure, until) {
            context.warn(format!("other runs do not know of the limit: {error}"));
        }
    }
}

/// What an attempt met that holds others as well, and until when: what the agent's records say, or its text where it failed.
fn met(end: &AttemptEnd) -> Option<(&Failure, Timestamp)> {
    let (failure, until) = match (&end.limit, &end.failure, &end.decision) {
        (Some(limit), ..) => (&**limit, over_at(limit)),
        (None, Some(failure), Some(decision)) if decision.has(Action::Park) => {
            (failure, decision.not_before)
        }
        (None, Some(failure), Some(decision))
            if decision.stopped_by == Some(BudgetScope::Waiting) =>
        {
            (failure, over_at(failure))
        }
        _ => return None,
    };
    let of_record = failure
        .evidence
        .first()
        .is_some_and(|evidence| evidence.source == EvidenceSource::Record);
    let is_known = of_record || end.exit_code != Some(0);
    Some((failure, until.filter(|_| is_known)?))
}

impl Passed {
    fn through(&self, now: Timestamp) {
        let probes = std::mem::take(&mut *self.probes.lock());
        if let Err(error) = self.limits.through(now, probes) {
            tracing::warn!(%error, "that the limit is over was not written down");
        }
    }
}
