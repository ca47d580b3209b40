//! Counts failed attempts against limits (S8), and says how long to wait before the next one (S7).
//! The counts come from the ledger's fold, so restarts, rollbacks and parallel runs share them.

use std::time::Duration;

use crate::model::agent_record::Usage;
use crate::model::decision::{Action, Budget, BudgetScope};
use crate::model::failure::{Cause, Failure};
use crate::model::run::{LiveAttempt, Run};
use crate::model::state::State;
use crate::model::time::{Timestamp, format_duration};
use crate::policy::settings::{DelayKind, DelaySettings, Jitter, RetrySettings};

/// Costs are recorded in millionths of a dollar and shown in cents.
const MICROS_PER_CENT: u64 = 10_000;

/// How long failures of a command count for later runs of it that no task was named for.
pub(crate) const REPEATED: Duration = Duration::from_secs(24 * 3600);

/// Whose failures count for an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Account<'a> {
    /// Everything known.
    pub state: &'a State,
    /// The run.
    pub run: &'a Run,
    /// What the attempt is booked on.
    pub subtask: &'a str,
    /// The session.
    pub session: &'a str,
    /// Causes of failures at the subtask that a supervisor saw itself: a reset meanwhile does not give it more attempts.
    pub witnessed: &'a [Cause],
}

/// Failed attempts so far that no success or reset has forgiven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Of this cause in the subtask.
    pub cause: u32,
    /// Of any cause in the subtask.
    pub subtask: u32,
    /// Of any cause in the subtask, over all runs of its task.
    pub task: u32,
    /// Of the session over all its runs.
    pub session: u32,
    /// Seconds since the run began; no attempt changes them.
    pub wall_seconds: u32,
    /// US cents that the run's agents have cost.
    pub cost_cents: u64,
    /// Tokens that they have used.
    pub tokens: u64,
}

impl Counts {
    /// With one failure more.
    #[must_use]
    pub(super) fn plus_one(self) -> Self {
        Self {
            cause: self.cause.saturating_add(1),
            subtask: self.subtask.saturating_add(1),
            task: self.task.saturating_add(1),
            session: self.session.saturating_add(1),
            ..self
        }
    }
}

impl Account<'_> {
    /// Counts what is recorded, and `usage` that is not yet.
    pub(crate) fn counts(&self, cause: Cause, now: Timestamp, usage: Usage) -> Counts {
        let usage = self.run.usage() + usage;
        let clamp = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let mut counts = Counts {
            wall_seconds: clamp(now.since(begun(self.run, now)).as_secs()),
            cost_cents: usage.cost_micros.unwrap_or(0) / MICROS_PER_CENT,
            tokens: usage.tokens.map_or(0, |tokens| tokens.total),
            ..Counts::default()
        };
        // A run without errors since its last success has none that count, however many there were before.
        let task_since = self.task_counts_since();
        for run in self.state.runs.iter().filter(|run| run.error_count > 0) {
            let same_task = self.is_of_task(run);
            for (attempt, _) in run.charged_since(run.forgiven_seq) {
                let is_recent = self.run.task_id.is_some()
                    || run.key == self.run.key
                    || now.since(attempt.started_at) <= REPEATED;
                let counts_for_task = same_task && is_recent && attempt.subtask == self.subtask;
                counts.task += u32::from(counts_for_task && attempt.ended_seq > Some(task_since));
                counts.session += u32::from(attempt.session == self.session);
            }
        }
        // Success elsewhere does not give a subtask its attempts back.
        for (_, failure) in self.run.charged_to(self.subtask) {
            counts.subtask += 1;
            counts.cause += u32::from(failure.cause == cause);
        }
        let witnessed = clamp(self.witnessed.len() as u64);
        for count in [&mut counts.subtask, &mut counts.task, &mut counts.session] {
            *count = witnessed.max(*count);
        }
        let of_cause = self.witnessed.iter().filter(|seen| **seen == cause).count();
        counts.cause = counts.cause.max(clamp(of_cause as u64));
        counts
    }

    /// Rollbacks that broken builds of the subtask have used.
    pub(super) fn rollbacks(&self) -> u32 {
        let used = self
            .run
            .charged_to(self.subtask)
            .filter(|(attempt, failure)| {
                let decided = attempt.decision.as_ref();
                failure.cause == Cause::BrokenBuild
                    && decided
                        .is_some_and(|one| one.has(Action::Rollback) && one.leads_to_attempt())
            });
        u32::try_from(used.count()).unwrap_or(u32::MAX)
    }

    fn is_of_task(&self, run: &Run) -> bool {
        run.is_of_task_of(self.run)
    }

    /// Sequence since which failures of the task count: the last success or reset of any of its runs.
    fn task_counts_since(&self) -> u64 {
        let own = self.state.runs.iter().filter(|run| self.is_of_task(run));
        own.map(|run| run.forgiven_seq).max().unwrap_or(0)
    }

    /// Attempts of other runs that are under way, as `lives` tells, and may still be charged to the same task and
    /// session.
    pub(crate) fn under_way_elsewhere(&self, lives: impl Fn(&LiveAttempt) -> bool) -> Counts {
        let mut counts = Counts::default();
        for run in self.state.runs.iter().filter(|run| run.key != self.run.key) {
            let Some(live) = run.live.as_ref().filter(|live| lives(live)) else {
                continue;
            };
            let iteration = run.iterations.get(live.iteration);
            let Some(attempt) = iteration.and_then(|iteration| iteration.attempts.last()) else {
                continue;
            };
            let same_task = self.is_of_task(run) && attempt.subtask == self.subtask;
            counts.task += u32::from(same_task);
            counts.session += u32::from(attempt.session == self.session);
        }
        counts
    }
}

/// The budgets that apply to a failure (or to a run without one), tightest scope first.
///
/// A cause's own limit takes the place of the global one; task and session always apply, time and money where they are
/// configured. `--attempts` of the run overrides every limit on attempts, and counts those of all causes.
pub(crate) fn budgets(
    retry: &RetrySettings,
    failure: Option<&Failure>,
    counts: Counts,
) -> Vec<Budget> {
    let mut budgets = Vec::with_capacity(3);
    if let Some(failure) = failure {
        let own = retry.limit_for(failure.cause, failure.detail);
        budgets.extend(own.map(|limit| match retry.override_attempts {
            // What a user asked for holds whatever the causes are; a cause that is never retried has 0.
            Some(_) if limit > 0 => Budget::new(BudgetScope::Global, counts.subtask, limit),
            _ => Budget::new(BudgetScope::Cause, counts.cause, limit),
        }));
    } else {
        let limit = retry.override_attempts.unwrap_or(retry.max_attempts);
        budgets.push(Budget::new(BudgetScope::Global, counts.subtask, limit));
    }
    let at_least = |cap: u32| cap.max(retry.override_attempts.unwrap_or(cap));
    let (task, session) = (retry.task_max_attempts, retry.session_max_attempts);
    let seconds = |limit: Duration| u32::try_from(limit.as_secs()).unwrap_or(u32::MAX);
    let (wall_time, cost) = (
        retry.max_wall_time.map(seconds),
        retry.max_cost_usd.map(cents),
    );
    budgets.extend([
        Budget::new(BudgetScope::Task, counts.task, at_least(task)),
        Budget::new(BudgetScope::Session, counts.session, at_least(session)),
    ]);
    budgets.extend(
        wall_time.map(|limit| Budget::new(BudgetScope::WallTime, counts.wall_seconds, limit)),
    );
    budgets.extend(cost.map(|limit| Budget::new(BudgetScope::Cost, counts.cost_cents, limit)));
    let tokens = retry.max_tokens;
    budgets.extend(tokens.map(|limit| Budget::new(BudgetScope::Tokens, counts.tokens, limit)));
    budgets
}

/// The bound on cost or tokens that a run has reached which has used up so much, as a sentence.
pub(crate) fn bound_reached(retry: &RetrySettings, used: Usage) -> Option<String> {
    let counts = Counts {
        cost_cents: used.cost_micros.unwrap_or(0) / MICROS_PER_CENT,
        tokens: used.tokens.map_or(0, |tokens| tokens.total),
        ..Counts::default()
    };
    let is_bound =
        |budget: &&Budget| matches!(budget.scope, BudgetScope::Cost | BudgetScope::Tokens);
    let budgets = budgets(retry, None, counts);
    let spent = budgets.iter().filter(is_bound).find(|one| one.left == 0)?;
    Some(spent_text(spent, None))
}

/// When a run began. Where that is still to come (the clock was set back since), the first of its attempts that is not.
pub(crate) fn begun(run: &Run, now: Timestamp) -> Timestamp {
    if run.created_at <= now {
        return run.created_at;
    }
    run.attempts()
        .map(|(_, attempt)| attempt.started_at)
        .filter(|at| *at <= now)
        .min()
        .unwrap_or(now)
}

/// A spent budget as a sentence.
pub(super) fn spent_text(spent: &Budget, cause: Option<Cause>) -> String {
    let (used, limit) = (spent.used, spent.limit);
    match (spent.scope, cause) {
        // A person granted more.
        (BudgetScope::Cause | BudgetScope::Global, _) if used > limit => {
            format!("{used} attempts used, {limit} allowed")
        }
        (BudgetScope::Cause, Some(cause)) => {
            format!("{used} of {limit} attempts for {} used", cause.as_str())
        }
        (BudgetScope::Global, _) => format!("{used} of {limit} attempts used"),
        (BudgetScope::WallTime, _) => {
            let limit = format_duration(Duration::from_secs(limit));
            format!("no attempt of the run begins after {limit} (max_wall_time)")
        }
        (BudgetScope::Cost, _) => {
            format!("{} of {limit} cents are spent (max_cost_usd)", spent.used)
        }
        (BudgetScope::Tokens, _) => {
            format!("{} of {limit} tokens used (max_tokens)", spent.used)
        }
        (scope, _) => {
            let used = used.min(limit);
            format!("{used} of {limit} attempts of the {} used", scope.as_str())
        }
    }
}

/// Dollars as whole cents, so that what is begun counts. A limit is finite and not negative.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast of a float saturates"
)]
fn cents(dollars: f64) -> u64 {
    (dollars * 100.0).ceil() as u64
}

/// A count of attempts.
fn attempts(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Attempts that the first budget has counted.
pub(crate) fn used(budgets: &[Budget]) -> u32 {
    budgets.first().map_or(0, |budget| attempts(budget.used))
}

/// Attempts left in the tightest budget; none where time, money or tokens are spent.
pub(crate) fn left(budgets: &[Budget]) -> Option<u32> {
    let counts_attempts = |budget: &&Budget| budget.scope.unit() == "attempts";
    let tightest = budgets
        .iter()
        .filter(counts_attempts)
        .map(|budget| attempts(budget.left))
        .min();
    let spent = budgets.iter().any(|budget| budget.left == 0);
    if spent { Some(0) } else { tightest }
}

/// The wait before attempt `failures + 1`, by the cause's delay alone; `None` for none.
///
/// Exponential is `base · 2^(failures−1)`, at most `max`, with full jitter: anything from nothing to that. `random`
/// is in `[0, 1)`. `cooldown` is the general pause after an error.
pub(crate) fn delay(
    settings: &DelaySettings,
    failures: u32,
    cooldown: Duration,
    random: f64,
) -> Option<Duration> {
    match settings.kind {
        DelayKind::None | DelayKind::Immediate | DelayKind::Conditional => None,
        DelayKind::Cooldown => Some(cooldown),
        DelayKind::Delayed => Some(settings.base.min(settings.max)),
        DelayKind::Exponential => {
            let doublings = failures.saturating_sub(1).min(31);
            let full = settings
                .base
                .saturating_mul(1 << doublings)
                .min(settings.max);
            Some(match settings.jitter {
                Jitter::Full => full.mul_f64(random.clamp(0.0, 1.0)),
                Jitter::None => full,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exponential(jitter: Jitter) -> DelaySettings {
        let (base, max) = (Duration::from_secs(1), Duration::from_secs(30));
        DelaySettings {
            kind: DelayKind::Exponential,
            base,
            max,
            jitter,
        }
    }

    #[test]
    fn exponential_doubles_up_to_the_cap() {
        let seconds: Vec<_> = (1..=7)
            .filter_map(|failures| delay(&exponential(Jitter::None), failures, Duration::ZERO, 0.5))
            .map(|delay| delay.as_secs())
            .collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
    }

    proptest! {
        #[test]
        fn jittered_delays_stay_within_the_cap(failures in 0u32..2000, random in 0.0f64..1.0) {
            let jittered = delay(&exponential(Jitter::Full), failures, Duration::ZERO, random).unwrap();
            let full = delay(&exponential(Jitter::None), failures, Duration::ZERO, random).unwrap();
            prop_assert!(jittered <= full && full <= Duration::from_secs(30));
        }
    }
}
