//! Where one item of a loop stands, whatever the run's last failure is about: its own attempts decide, and what holds for all.

use super::decide::is_everybodys;
use crate::model::id::TaskId;
use crate::model::run::{Attempt, Iteration, Run, RunStatus};

/// What an attempt would be of.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Its iteration.
    pub iteration: u32,
    /// What it would be booked on.
    pub subtask: String,
}

impl Item {
    /// The item of a run that these name; `None` where they name none.
    pub(crate) fn of(
        run: &Run,
        iteration: Option<u32>,
        subtask: Option<&str>,
        task: Option<&TaskId>,
    ) -> Option<Self> {
        let task = task.filter(|_| run.is_own_loop()).map(TaskId::as_str);
        let of_iteration = |number: u32| {
            let last = run
                .iterations
                .get(number)
                .and_then(|one| one.attempts.last());
            last.map_or_else(|| run.default_subtask(number), |last| last.subtask.clone())
        };
        let named = subtask.or(task).map(str::to_owned);
        let subtask = named.or_else(|| iteration.map(of_iteration))?;
        let last = run.iterations.attempts_on(&subtask).next_back();
        let iteration = iteration.or(last.map(|(iteration, _)| iteration.number));
        Some(Self {
            iteration: iteration.unwrap_or(run.current_iteration),
            subtask,
        })
    }

    /// The run as an attempt of the item finds it. A wait holds for every item, and so does a failure that any of them would meet,
    /// too; another one's failure does not.
    pub(crate) fn seen_from(&self, run: &Run) -> Run {
        let mut seen = run.clone();
        let is_its = run.failure.is_some()
            && run
                .standing_attempt()
                .is_some_and(|attempt| attempt.subtask == self.subtask);
        if is_its || stops_all(run) {
            return seen;
        }
        let since = run.counts_since(&self.subtask);
        let counts = |(iteration, attempt): &(&Iteration, &Attempt)| {
            attempt.ended_seq > Some(since) && !run.accepted.contains(&iteration.number)
        };
        let own = run.iterations.attempts_on(&self.subtask).filter(counts);
        let own = own
            .map(|(_, attempt)| attempt)
            .max_by_key(|attempt| attempt.ended_seq);
        seen.failure = own.and_then(|attempt| attempt.failure.clone());
        let decided = own.and_then(|attempt| attempt.decision.clone());
        // Until when it waits is the run's.
        seen.decision = decided.filter(|decision| !decision.leads_to_attempt());
        seen.last_error = seen.failure.as_ref().map(|failure| failure.message.clone());
        seen.last_error_at = seen.failure.as_ref().and_then(|failure| failure.at);
        seen.error_count = u32::try_from(run.charged_to(&self.subtask).count()).unwrap_or(u32::MAX);
        if run.status == RunStatus::Escalated {
            seen.status = RunStatus::InProgress;
        }
        if self.iteration != run.current_iteration {
            seen.granted = 0;
        }
        seen.current_iteration = self.iteration;
        seen
    }
}

/// Whether what the run stands at ends the work at all its items.
fn stops_all(run: &Run) -> bool {
    let is_stopped = run
        .decision
        .as_ref()
        .is_some_and(|decision| !decision.leads_to_attempt());
    is_stopped && (run.gave_up_waiting() || run.failure.as_ref().is_some_and(is_everybodys))
}
