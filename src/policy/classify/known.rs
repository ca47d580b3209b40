//! Failures whose reason is known without a look at any output.

use super::conclusion::Conclusion;
use super::process::{self, Fact};
use crate::model::failure::{CauseDetail, Failure, SuggestedAction};

/// What is said of an attempt whose `recover` was killed.
const SUPERVISOR_LOST: &str = "recover was killed in the middle of the attempt";

/// The attempt was stopped by whoever ran it.
pub(crate) fn cancelled() -> Failure {
    of_fact(process::cancelled())
}

/// The `recover` that supervised the attempt was killed: the same may be tried again from where it was.
pub(crate) fn supervisor_lost() -> Failure {
    Failure {
        detail: Some(CauseDetail::SupervisorLost),
        message: SUPERVISOR_LOST.to_owned(),
        details: Some(SUPERVISOR_LOST.to_owned()),
        retryable: true,
        recoverable: true,
        suggested_action: SuggestedAction::RetryIteration,
        ..of_fact(process::died("SIGKILL"))
    }
}

fn of_fact(fact: Fact) -> Failure {
    Conclusion::of_fact(fact).into_failure_without_output()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::failure::{Cause, FailureEvidence, FailureType};
    use crate::model::time::Timestamp;
    use crate::policy::classify::classify;

    #[test]
    fn what_is_known_is_what_the_questions_would_find() {
        let now = Timestamp::from_millis(0);
        let stopped = FailureEvidence {
            cancelled: true,
            ..FailureEvidence::default()
        };
        assert_eq!(cancelled(), classify(&stopped, None, &[], now));
        let killed = FailureEvidence {
            signal: Some("SIGKILL".to_owned()),
            ..FailureEvidence::default()
        };
        let (lost, found) = (supervisor_lost(), classify(&killed, None, &[], now));
        assert_eq!(
            (lost.kind, lost.cause),
            (FailureType::Crash, Cause::Crashed)
        );
        assert_eq!(
            (&lost.signature, &lost.evidence, lost.severity),
            (&found.signature, &found.evidence, found.severity)
        );
    }
}
