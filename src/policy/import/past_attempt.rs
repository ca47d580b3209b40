//! Attempts that another system made, and how they failed.

use crate::model::event::{AttemptEnd, Payload};
use crate::model::failure::{Failure, FailureEvidence, FailureType};
use crate::model::feedback::FeedbackResults;
use crate::model::run::AttemptOutcome;
use crate::model::time::Timestamp;
use crate::policy::classify::classify;

use super::part::ImportInput;

/// An attempt that another system made.
#[derive(Clone, Debug)]
pub(super) struct PastAttempt {
    pub iteration: u32,
    pub number: u32,
    pub subtask: String,
    pub session: String,
    pub approach: Option<String>,
    pub started: Timestamp,
    pub ended: Timestamp,
    pub outcome: AttemptOutcome,
    pub failure: Option<Failure>,
    pub feedback_results: FeedbackResults,
}

impl PastAttempt {
    /// Its beginning and its end.
    pub(super) fn events(self) -> [(Timestamp, Payload); 2] {
        let Self {
            iteration,
            number,
            subtask,
            session,
            approach,
            started,
            ended,
            outcome,
            feedback_results,
            ..
        } = self;
        let begin = Payload::AttemptStarted {
            iteration,
            attempt: number,
            approach,
            subtask,
            session,
            head: None,
            supervisor: None,
            log_path: None,
            fallback: false,
        };
        let failure = self.failure.map(|failure| Failure {
            iteration: Some(iteration),
            attempt: Some(number),
            at: failure.at.or(Some(ended)),
            ..failure
        });
        let end = AttemptEnd {
            duration_ms: u64::try_from(ended.since(started).as_millis()).unwrap_or(u64::MAX),
            failure,
            feedback_results,
            ..AttemptEnd::new(iteration, number, outcome)
        };
        [
            (started, begin),
            (ended, Payload::AttemptEnded(Box::new(end))),
        ]
    }
}

/// A failure of which only its message is known.
pub(super) fn failure_of(message: Option<&str>, at: &ImportInput<'_>) -> Failure {
    failure_of_type(message, FailureType::FeedbackFailure, at)
}

/// A failure of a known type: what a supervisor saw is not guessed from the message.
pub(super) fn failure_of_type(
    message: Option<&str>,
    kind: FailureType,
    at: &ImportInput<'_>,
) -> Failure {
    let text = message.unwrap_or("failed; why is not recorded");
    let crashed = kind == FailureType::Crash;
    let evidence = FailureEvidence {
        message: Some(text.to_owned()),
        exit_code: (!crashed).then_some(1),
        signal: crashed.then(|| "SIGKILL".to_owned()),
        timed_out: kind == FailureType::Timeout,
        cancelled: kind == FailureType::Cancellation,
        ..FailureEvidence::default()
    };
    Failure {
        message: text.to_owned(),
        ..classify(&evidence, None, &[], at.now)
    }
}
