//! What happens next, with its reason and earliest time (requirements A2, L2, S7, S8).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use super::time::Timestamp;

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Action {
    /// Try the iteration again.
    Retry,
    /// Put the files of the last good checkpoint back.
    Rollback,
    /// Give the iteration up and go on with the next.
    Skip,
    /// Ask for a person.
    Escalate,
    /// Keep the work and go on in a fresh agent session (A8).
    Continue,
    /// Wait for a known time without using up an attempt.
    Park,
    /// Wait for a person's fix.
    ManualFix,
    /// Run the alternative command (S9).
    Fallback,
    /// Start from the beginning.
    Restart,
    /// Nothing.
    None,
}

/// How a failed run is resumed (B3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum Strategy {
    /// The very same again.
    RetrySame,
    /// Again, with the error in the prompt.
    RetryWithContext,
    /// Put the files back, then again with the error in the prompt.
    RollbackAndRetry,
    /// Accept the current state and go on with the next iteration.
    ContinueNext,
    /// Wait for a person's fix.
    ManualThenContinue,
}

impl Strategy {
    /// Every strategy, in the order in which they are offered.
    pub const ALL: [Self; 5] = [
        Self::RetryWithContext,
        Self::RollbackAndRetry,
        Self::RetrySame,
        Self::ManualThenContinue,
        Self::ContinueNext,
    ];
}

/// Whose failed attempts a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum BudgetScope {
    /// All failures of the iteration, where the cause has no limit of its own.
    Global,
    /// Failures of the iteration with this cause.
    Cause,
    /// Failures of the task, over all its runs.
    Task,
    /// Failures of the session, over all its runs.
    Session,
    /// Rollbacks that broken builds may use.
    Rollbacks,
    /// Seconds since the run began.
    WallTime,
    /// US cents that the run's agents have cost, by their records.
    Cost,
    /// Tokens that the run's agents have used, by their records.
    Tokens,
    /// Seconds that the iteration has waited for what is not its agent's doing.
    Waiting,
}

impl BudgetScope {
    /// What is counted.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Global | Self::Cause | Self::Task | Self::Session => "attempts",
            Self::Rollbacks => "rollbacks",
            Self::WallTime | Self::Waiting => "seconds",
            Self::Cost => "cents",
            Self::Tokens => "tokens",
        }
    }
}

/// One budget as it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Budget {
    /// Whose failures count.
    pub scope: BudgetScope,
    /// Failed attempts so far; for time, money and tokens what is spent of it (see [`BudgetScope::unit`]).
    pub used: u64,
    /// How many are allowed.
    pub limit: u64,
    /// How many are left.
    pub left: u64,
    /// What is counted, where it is not attempts.
    #[serde(skip_serializing_if = "is_attempts")]
    pub unit: &'static str,
}

// The signature is serde's: a field is handed over by reference.
fn is_attempts(unit: &&'static str) -> bool {
    *unit == "attempts"
}

impl Budget {
    /// A budget with what is left worked out.
    pub fn new(scope: BudgetScope, used: impl Into<u64>, limit: impl Into<u64>) -> Self {
        let (used, limit) = (used.into(), limit.into());
        Self {
            scope,
            used,
            limit,
            left: limit.saturating_sub(used),
            unit: scope.unit(),
        }
    }
}

/// What is to happen after a failure, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// The resume strategy that does it.
    pub strategy: Option<Strategy>,
    /// Not before this time.
    pub not_before: Option<Timestamp>,
    /// Failed attempts that the limiting budget has counted.
    pub attempts_used: u32,
    /// Attempts left in the tightest budget; `None` where nothing limits.
    pub attempts_left: Option<u32>,
    /// The budget that stopped it.
    pub stopped_by: Option<BudgetScope>,
    /// A sentence that says why.
    pub reason: String,
    /// When it was made.
    pub decided_at: Timestamp,
}

impl Decision {
    /// Whether `action` is part of it.
    pub fn has(&self, action: Action) -> bool {
        self.actions.contains(&action)
    }

    /// Whether it is one because no attempt is left.
    pub fn is_exhausted(&self) -> bool {
        self.stopped_by
            .is_some_and(|scope| scope != BudgetScope::Waiting)
    }

    /// Whether another attempt is part of it, now or later.
    pub fn leads_to_attempt(&self) -> bool {
        self.actions.iter().any(|a| {
            matches!(
                a,
                Action::Retry
                    | Action::Continue
                    | Action::Park
                    | Action::Fallback
                    | Action::Restart
            )
        })
    }

    /// The end of the wait that was decided on, which began at `since` where the clock has been set back meanwhile.
    pub fn waits_until(&self, since: Option<Timestamp>) -> Option<Timestamp> {
        let until = self.not_before?;
        Some(since.map_or(until, |since| {
            until.min(since.plus(until.since(self.decided_at)))
        }))
    }

    /// What the decision means at `now`; see [`Self::waits_until`] for `since`.
    pub fn standing(&self, now: Timestamp, since: Option<Timestamp>) -> Standing {
        if self.leads_to_attempt() {
            return match self.waits_until(since) {
                Some(until) if until > now => Standing::Wait(until),
                _ => Standing::Allowed,
            };
        }
        if self.has(Action::Escalate) || self.has(Action::ManualFix) {
            return Standing::NeedsPerson;
        }
        Standing::Exhausted
    }
}

/// What a decision allows at a given moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// An attempt may be made now.
    Allowed,
    /// An attempt may be made at that time.
    Wait(Timestamp),
    /// No attempt is left.
    Exhausted,
    /// A person is needed.
    NeedsPerson,
}

/// When an attempt is allowed that is not allowed now.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Wait {
    retry_after: Option<Timestamp>,
    wait_ms: u64,
}

impl Standing {
    pub(crate) fn wait(self, now: Timestamp) -> Wait {
        let Self::Wait(until) = self else {
            return Wait::default();
        };
        Wait {
            retry_after: Some(until),
            wait_ms: u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX),
        }
    }
}
