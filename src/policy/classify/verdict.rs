//! What a rule concludes, and what follows from it.

use crate::model::failure::{Cause, CauseDetail, FailureType, SuggestedAction};

/// The labels of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Who failed.
    pub kind: FailureType,
    /// What went wrong.
    pub cause: Cause,
    /// Whether the very same again plausibly succeeds.
    pub retryable: bool,
    /// A finer name that the policy needs.
    pub detail: Option<CauseDetail>,
}

const fn verdict(kind: FailureType, cause: Cause, retryable: bool) -> Verdict {
    Verdict {
        kind,
        cause,
        retryable,
        detail: None,
    }
}

const fn agent(cause: Cause, retryable: bool, detail: CauseDetail) -> Verdict {
    Verdict {
        kind: FailureType::AgentError,
        cause,
        retryable,
        detail: Some(detail),
    }
}

pub(super) const TIMEOUT: Verdict = verdict(FailureType::Timeout, Cause::ToolTimeout, true);
pub(super) const CANCELLED: Verdict = verdict(FailureType::Cancellation, Cause::Cancelled, false);
pub(super) const OUT_OF_MEMORY: Verdict = verdict(FailureType::Crash, Cause::OutOfMemory, false);
pub(super) const CRASHED: Verdict = verdict(FailureType::Crash, Cause::Crashed, false);
/// A SIGKILL that nothing explains may be somebody else's doing, so the same again may succeed.
pub(super) const KILLED: Verdict = verdict(FailureType::Crash, Cause::Crashed, true);

pub(super) const DISK_FULL: Verdict = verdict(FailureType::SystemError, Cause::DiskFull, false);
pub(super) const DENIED: Verdict =
    verdict(FailureType::SystemError, Cause::PermissionDenied, false);
pub(super) const NO_TOOL: Verdict =
    verdict(FailureType::SystemError, Cause::ResourceNotFound, false);
pub(super) const NETWORK: Verdict = verdict(FailureType::SystemError, Cause::NetworkError, true);
/// A server, not an agent's, wants other credentials or none of these.
pub(super) const UNAUTHORIZED: Verdict =
    verdict(FailureType::SystemError, Cause::AuthFailed, false);
pub(super) const LIMIT: Verdict = verdict(FailureType::SystemError, Cause::Unknown, false);
pub(super) const LOCKED: Verdict = verdict(FailureType::SystemError, Cause::Unknown, true);

pub(super) const BROKEN: Verdict = verdict(FailureType::FeedbackFailure, Cause::BrokenBuild, false);
pub(super) const FAILED: Verdict = verdict(
    FailureType::FeedbackFailure,
    Cause::VerificationFailed,
    false,
);
pub(super) const INVALID: Verdict =
    verdict(FailureType::FeedbackFailure, Cause::InvalidInput, false);
pub(super) const MISSING: Verdict =
    verdict(FailureType::FeedbackFailure, Cause::ResourceNotFound, false);
pub(super) const UNCLEAR: Verdict = verdict(FailureType::FeedbackFailure, Cause::Unknown, false);

pub(super) const THROTTLED: Verdict = agent(Cause::RateLimited, true, CauseDetail::Throttled);
pub(super) const OVERLOADED: Verdict = agent(Cause::RateLimited, true, CauseDetail::Overloaded);
pub(super) const USAGE_LIMIT: Verdict = agent(Cause::RateLimited, true, CauseDetail::UsageLimit);
pub(super) const SERVICE: Verdict = agent(Cause::Unknown, true, CauseDetail::ServiceError);
pub(super) const MAX_TURNS: Verdict = agent(Cause::Unknown, true, CauseDetail::MaxTurns);
pub(super) const COST_LIMIT: Verdict = agent(Cause::Unknown, true, CauseDetail::CostLimit);
pub(super) const NO_SESSION: Verdict =
    agent(Cause::ResourceNotFound, false, CauseDetail::SessionNotFound);
pub(super) const AGENT_UNKNOWN: Verdict = verdict(FailureType::AgentError, Cause::Unknown, true);
pub(super) const NO_MODEL: Verdict =
    verdict(FailureType::AgentError, Cause::ResourceNotFound, false);
pub(super) const AUTH: Verdict = verdict(FailureType::AgentError, Cause::AuthFailed, false);
pub(super) const CONTEXT: Verdict =
    verdict(FailureType::AgentError, Cause::ContextExhausted, false);
pub(super) const BAD_REQUEST: Verdict =
    verdict(FailureType::AgentError, Cause::InvalidInput, false);
pub(super) const AGENT_NETWORK: Verdict =
    verdict(FailureType::AgentError, Cause::NetworkError, true);

impl Verdict {
    /// Whether the run can go on without somebody mending the machine or an account, and what to do (B1, B5).
    ///
    /// | verdict | recoverable | action |
    /// | --- | --- | --- |
    /// | feedback failure, timeout, cancellation | yes | run the iteration again |
    /// | crash | yes | go back to the checkpoint |
    /// | out of memory, full disk | no | by hand |
    /// | missing tool, refused access | yes | repair it, then go on |
    /// | locks, network, retryable agent errors | yes | run the iteration again |
    /// | credentials, other limits of the machine | no | by hand |
    /// | other agent errors: context, request, model, session | yes | a changed attempt |
    pub(super) fn remedy(self) -> (bool, SuggestedAction) {
        match (self.kind, self.cause) {
            (_, Cause::OutOfMemory | Cause::DiskFull | Cause::AuthFailed) => {
                (false, SuggestedAction::ManualResolution)
            }
            (FailureType::AgentError, Cause::ResourceNotFound) if self.detail.is_none() => {
                (true, SuggestedAction::FixAndContinue)
            }
            (FailureType::AgentError, _) if self.detail == Some(CauseDetail::CostLimit) => {
                (false, SuggestedAction::ManualResolution)
            }
            (
                FailureType::AgentError
                | FailureType::FeedbackFailure
                | FailureType::Timeout
                | FailureType::Cancellation,
                _,
            ) => (true, SuggestedAction::RetryIteration),
            (FailureType::Crash, _) => (true, SuggestedAction::Rollback),
            (FailureType::SystemError, _) if self.retryable => {
                (true, SuggestedAction::RetryIteration)
            }
            (FailureType::SystemError, Cause::PermissionDenied | Cause::ResourceNotFound) => {
                (true, SuggestedAction::FixAndContinue)
            }
            (FailureType::SystemError, _) => (false, SuggestedAction::ManualResolution),
        }
    }
}
