//! The alternative command, once no retry is allowed any more (S9), and what becomes of its work when it fails (S12).

use crate::model::decision::{Action, BudgetScope, Decision, Strategy};
use crate::model::failure::{Cause, CauseDetail, Failure, FailureType};
use crate::model::id::CheckpointId;
use crate::model::run::{OnFailure, Run};

use super::{DecisionInput, decide_itself};

/// What the fallback has to do with a failure.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Fallback<'a> {
    /// There is none, or the iteration has used it.
    #[default]
    None,
    /// It can be run.
    Ready,
    /// It is what failed.
    Failed {
        /// The failure after which nothing else was left.
        exhausted: &'a Failure,
        /// What was decided about that one: to run the fallback.
        decision: &'a Decision,
        /// The checkpoint of what was there before the fallback, if it was taken.
        before: Option<&'a CheckpointId>,
    },
}

/// How it stands for the failure of attempt `number`, which has not ended in the ledger yet.
pub(crate) fn fallback_of(run: &Run, iteration: u32, number: u32) -> Fallback<'_> {
    let Some(known) = run.iterations.get(iteration) else {
        return if run.spec.fallback.is_empty() {
            Fallback::None
        } else {
            Fallback::Ready
        };
    };
    if known
        .attempts
        .iter()
        .any(|attempt| attempt.number == number && attempt.fallback)
    {
        // One that was interrupted is no failure; what it came after is.
        let before = known
            .attempts
            .iter()
            .rfind(|attempt| attempt.number < number && !attempt.fallback);
        let judged = before.and_then(|attempt| {
            let before = attempt.checkpoint_id.as_ref();
            Some(Fallback::Failed {
                exhausted: attempt.failure.as_ref()?,
                decision: attempt.decision.as_ref()?,
                before,
            })
        });
        return judged.unwrap_or_default();
    }
    let used = known
        .attempts
        .iter()
        .any(|attempt| attempt.fallback && attempt.ended_seq > Some(run.reset_seq));
    if used || run.spec.fallback.is_empty() {
        Fallback::None
    } else {
        Fallback::Ready
    }
}

/// A decision that ends the attempts, with the fallback in its place where an alternative may help.
pub(super) fn instead(
    failure: &Failure,
    decision: Decision,
    input: &DecisionInput<'_>,
) -> Decision {
    let chosen = matches!(input.on_failure, OnFailure::ManualFix | OnFailure::Stop);
    let mended_first = matches!(failure.cause, Cause::DiskFull | Cause::OutOfMemory);
    let over = [
        BudgetScope::Session,
        BudgetScope::WallTime,
        BudgetScope::Cost,
        BudgetScope::Tokens,
    ];
    let over = decision
        .stopped_by
        .is_some_and(|scope| over.contains(&scope));
    if decision.leads_to_attempt() || chosen || mended_first || over {
        return decision;
    }
    Decision {
        actions: vec![Action::Fallback],
        strategy: Some(Strategy::RetryWithContext),
        not_before: None,
        reason: format!("{}; the fallback is run once instead", decision.reason),
        ..decision
    }
}

/// The fallback failed too: what held before it holds again, and its files go back to what they were before it (S12).
/// One that was interrupted is still to be run.
pub(super) fn after(
    failure: &Failure,
    (exhausted, decision, before): (&Failure, &Decision, Option<&CheckpointId>),
    input: &DecisionInput<'_>,
) -> Decision {
    if failure.kind == FailureType::Cancellation {
        let reason = "the fallback was interrupted; resume takes it up".to_owned();
        return Decision {
            reason,
            decided_at: input.now,
            ..decision.clone()
        };
    }
    let held = decide_itself(exhausted, input);
    let mut actions = if held.leads_to_attempt() {
        vec![Action::None]
    } else {
        held.actions
    };
    // After a kill nobody is there to put them back; who takes the run up sees what was left.
    let lost = failure.detail == Some(CauseDetail::SupervisorLost);
    let restored = before.is_some() && !lost && input.on_failure != OnFailure::Retry;
    if restored {
        actions.insert(0, Action::Rollback);
        actions.retain(|action| *action != Action::None);
    }
    let back = if restored {
        " and what it left is rolled back"
    } else {
        ""
    };
    Decision {
        actions,
        not_before: None,
        stopped_by: decision.stopped_by.or(held.stopped_by),
        attempts_left: Some(0),
        reason: format!("the fallback failed too{back}: {}", held.reason),
        ..held
    }
}
