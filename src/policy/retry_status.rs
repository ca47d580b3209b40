//! Whether and when another attempt is allowed (L2, L4).

use crate::model::agent_record::Usage;
use crate::model::decision::{Action, Budget, BudgetScope, Decision, Standing};
use crate::model::failure::{Cause, FailureType};
use crate::model::manual_fix::ManualFixStatus;
use crate::model::run::{IterationStatus, Run, RunStatus};
use crate::model::state::State;
use crate::model::time::Timestamp;

use super::budget::{self, Account};
use super::settings::RetrySettings;

/// Whether a decision was made at a time that is still to come: the clock was set back since, or was wrong then. How much
/// of its wait is over cannot be known: it counts from when that was first seen.
pub(crate) fn is_from_the_future(decision: &Decision, now: Timestamp) -> bool {
    decision.decided_at > now && decision.not_before.is_some()
}

/// Where a run stands with its budgets.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryStatus {
    /// What is allowed at this moment.
    pub standing: Standing,
    /// Failed attempts that are allowed in all, by the tightest limit of the failure's own (or the global one).
    pub max_attempts: Option<u32>,
    /// What is left in the tightest budget.
    pub attempts_left: Option<u32>,
    /// All of them.
    pub budgets: Vec<Budget>,
    /// What was decided.
    pub decision: Option<Decision>,
    /// The end of the cooldown, as far ahead as it may be.
    pub cooldown_until: Option<Timestamp>,
}

/// Works it out for `run` at `now`.
///
/// No wait is longer than it was decided to be: of a decision that [`is_from_the_future`], it begins at `seen`, when that
/// was first noticed. A cooldown without a decision of ours is waited for as long as a limit's reset at most.
pub fn retry_status(
    state: &State,
    run: &Run,
    retry: &RetrySettings,
    now: Timestamp,
    seen: Option<Timestamp>,
) -> RetryStatus {
    witnessed_status(state, run, retry, (now, seen), |_| Vec::new())
}

/// The status for a supervisor: `witnessed` are the causes of the failures at a subtask that it saw itself.
pub(crate) fn witnessed_status(
    state: &State,
    run: &Run,
    retry: &RetrySettings,
    (now, seen): (Timestamp, Option<Timestamp>),
    witnessed: impl Fn(&str) -> Vec<Cause>,
) -> RetryStatus {
    let decided = run.decision.as_ref();
    let since = decided
        .filter(|decision| is_from_the_future(decision, now))
        .map(|_| seen.unwrap_or(now).min(now));
    let cooldown_until = match decided.and_then(|decision| decision.waits_until(since)) {
        Some(until) => run.cooldown_until.map(|recorded| recorded.min(until)),
        None => run
            .cooldown_until
            .map(|recorded| recorded.min(now.plus(retry.max_park))),
    };
    let last = run.standing_attempt();
    let subtask = last.map_or_else(
        || run.default_subtask(run.current_iteration),
        |attempt| attempt.subtask.clone(),
    );
    let session = last.map_or(&run.session, |attempt| &attempt.session);
    let witnessed = witnessed(&subtask);
    let account = Account {
        state,
        run,
        subtask: &subtask,
        session,
        witnessed: &witnessed,
    };
    // An interruption is nobody's failure: what holds is what held before it.
    let failure = run
        .failure
        .as_ref()
        .filter(|failure| failure.kind != FailureType::Cancellation);
    let cause = failure.map_or(Cause::Unknown, |failure| failure.cause);
    let budgets = budget::budgets(retry, failure, account.counts(cause, now, Usage::default()));
    RetryStatus {
        standing: standing(run, &budgets, (now, since), cooldown_until),
        max_attempts: budgets
            .first()
            .filter(|first| is_own(first))
            .map(|first| u32::try_from(first.limit).unwrap_or(u32::MAX)),
        attempts_left: budget::left(&budgets),
        decision: run.decision.clone().or_else(|| stopped(run, &budgets, now)),
        budgets,
        cooldown_until,
    }
}

/// What stops a run that stands at no failure: time or money that is spent, what other runs used up, or a goal that no
/// iteration is left for.
fn stopped(run: &Run, budgets: &[Budget], now: Timestamp) -> Option<Decision> {
    if run.granted > 0 || run.status.has_ended() {
        return None;
    }
    let spent = budgets
        .iter()
        .find(|budget| !is_own(budget) && budget.left == 0);
    let reason = match spent {
        Some(spent) => budget::spent_text(spent, None),
        None => unreached(run)?,
    };
    Some(Decision {
        actions: vec![Action::None],
        strategy: None,
        not_before: None,
        attempts_used: budget::used(budgets),
        attempts_left: Some(0),
        stopped_by: spent.map(|spent| spent.scope),
        reason,
        decided_at: now,
    })
}

/// That every iteration is done, and the goal is not reached.
fn unreached(run: &Run) -> Option<String> {
    let goal = run
        .spec
        .until
        .as_ref()
        .filter(|_| run.status == RunStatus::Failed && run.failure.is_none())?;
    let is_over = run.is_out_of_iterations()
        || run
            .spec
            .iterations_total
            .is_some_and(|all| run.current_iteration > all);
    let done = run
        .iterations
        .statuses()
        .filter(|(_, status)| *status == IterationStatus::Completed)
        .count();
    let iterations = if done == 1 { "iteration" } else { "iterations" };
    is_over.then(|| format!("the goal was not reached in {done} {iterations}: {goal}"))
}

fn standing(
    run: &Run,
    budgets: &[Budget],
    (now, since): (Timestamp, Option<Timestamp>),
    cooldown_until: Option<Timestamp>,
) -> Standing {
    if run
        .manual_fix
        .as_ref()
        .is_some_and(|session| session.status == ManualFixStatus::Active)
    {
        return Standing::NeedsPerson;
    }
    if run.granted > 0 {
        return Standing::Allowed;
    }
    if run.status == RunStatus::Escalated {
        return Standing::NeedsPerson;
    }
    let decided = match (&run.decision, cooldown_until) {
        (Some(decision), _) => decision.standing(now, since),
        (None, Some(until)) if until > now => Standing::Wait(until),
        (None, _) => Standing::Allowed,
    };
    // Other runs of the task or the session may have used up what was left when this was decided.
    let spent = budgets
        .iter()
        .any(|budget| holds_up(run, budget) && budget.left == 0);
    match decided {
        Standing::Allowed | Standing::Wait(_) if spent => Standing::Exhausted,
        decided => decided,
    }
}

/// Whether a budget, once spent, holds up what was decided. The fallback is what comes after the task's attempts.
fn holds_up(run: &Run, budget: &Budget) -> bool {
    let falls_back = run
        .decision
        .as_ref()
        .is_some_and(|decision| decision.has(Action::Fallback));
    let excepted = falls_back && budget.scope == BudgetScope::Task;
    !is_own(budget) && !excepted
}

/// Whether a budget is the failure's own rather than shared with other runs or of another kind.
fn is_own(budget: &Budget) -> bool {
    matches!(
        budget.scope,
        BudgetScope::Global | BudgetScope::Cause | BudgetScope::Rollbacks
    )
}
