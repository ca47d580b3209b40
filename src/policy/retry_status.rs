//! Whether and when another attempt is allowed (L2, L4).

use crate::model::decision::{Budget, BudgetScope, Decision, Standing};
use crate::model::failure::{Cause, FailureType};
use crate::model::manual_fix::ManualFixStatus;
use crate::model::run::{Run, RunStatus};
use crate::model::state::State;
use crate::model::time::Timestamp;

use super::budget::{self, Account};
use super::settings::RetrySettings;

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
}

/// Works it out for `run` at `now`.
pub fn retry_status(state: &State, run: &Run, retry: &RetrySettings, now: Timestamp) -> RetryStatus {
    let last = run.standing_attempt();
    let subtask = last.map_or_else(|| run.default_subtask(run.current_iteration), |attempt| attempt.subtask.clone());
    let session = last.map_or(&run.session, |attempt| &attempt.session);
    let account = Account { state, run, subtask: &subtask, session };
    // An interruption is nobody's failure: what holds is what held before it.
    let failure = run.failure.as_ref().filter(|failure| failure.kind != FailureType::Cancellation);
    let cause = failure.map_or(Cause::Unknown, |failure| failure.cause);
    let budgets = budget::budgets(retry, failure, account.counts(cause));
    RetryStatus {
        standing: standing(run, &budgets, now),
        max_attempts: budgets.first().filter(|first| is_own(first)).map(|first| first.limit),
        attempts_left: budget::left(&budgets),
        budgets,
        decision: run.decision.clone(),
    }
}

fn standing(run: &Run, budgets: &[Budget], now: Timestamp) -> Standing {
    if run.manual_fix.as_ref().is_some_and(|session| session.status == ManualFixStatus::Active) {
        return Standing::NeedsPerson;
    }
    if run.granted > 0 {
        return Standing::Allowed;
    }
    if run.status == RunStatus::Escalated {
        return Standing::NeedsPerson;
    }
    let decided = match (&run.decision, run.cooldown_until) {
        (Some(decision), _) => decision.standing(now),
        (None, Some(until)) if until > now => Standing::Wait(until),
        (None, _) => Standing::Allowed,
    };
    // Other runs of the task or the session may have used up what was left when this was decided.
    let spent = budgets.iter().any(|budget| !is_own(budget) && budget.left == 0);
    match decided {
        Standing::Allowed | Standing::Wait(_) if spent => Standing::Exhausted,
        decided => decided,
    }
}

/// Whether a budget is the failure's own rather than shared with other runs.
fn is_own(budget: &Budget) -> bool {
    !matches!(budget.scope, BudgetScope::Task | BudgetScope::Session)
}
