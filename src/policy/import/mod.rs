//! Reads files of other systems as events of the ledger: which file it is, what it says, and what of that is new.
//!
//! What can be told in the ledger's own words is (runs, iterations, attempts, their failures); the document itself is
//! recorded beside it, so that its view says the same again. Taking over the same twice adds nothing.

mod battle;
mod history;
mod lanes;
mod own;
mod read;
mod recovery;
mod session;

use serde_json::Value;

use crate::model::event::{AttemptEnd, Payload};
use crate::model::failure::{Failure, FailureEvidence, FailureType};
use crate::model::feedback::FeedbackResults;
use crate::model::folder::FolderId;
use crate::model::import::{ImportKind, Imported};
use crate::model::run::{AttemptOutcome, RunKey, RunSpec};
use crate::model::state::State;
use crate::model::time::Timestamp;

use super::classify::classify;
use read::{MAX_DEPTH, Place};

pub use own::is_known_history;
pub use read::Problem;

/// The run that attempts by subtask are taken over into, where none is named.
pub const HISTORY_RUN: &str = "imported-history";
/// The run that a loop's cooldown is taken over into, where none is named.
pub const LOOP_RUN: &str = "imported-loop";

/// What is known beside the document.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// What the ledger holds already.
    pub state: &'a State,
    /// The file, absolute.
    pub source: &'a str,
    /// The work tree of runs that name none.
    pub worktree: &'a FolderId,
    /// The run to take it over into, where one is named and the document names none.
    pub run: Option<&'a RunKey>,
    /// The present moment.
    pub now: Timestamp,
}

/// What a document adds to one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The run.
    pub key: RunKey,
    /// What is new, in order; empty where the ledger has it all.
    pub events: Vec<(Timestamp, Payload)>,
    /// Why something of it is left out.
    pub left_out: Vec<Problem>,
}

/// Which system's document it is, by what only it has.
pub fn recognise(document: &Value) -> Option<ImportKind> {
    let has = |value: &Value, keys: &[&str]| keys.iter().all(|key| value.get(key).is_some());
    match document {
        Value::Array(records) => {
            let lane = |record: &Value| has(record, &["run_id", "stage"]);
            records.iter().all(lane).then_some(ImportKind::Lanes)
        }
        _ if has(document, &["checkpoint_id", "session_id"]) => Some(ImportKind::Session),
        _ if has(document, &["subtasks"]) => Some(ImportKind::AttemptHistory),
        _ if has(document, &["id", "iterations"]) => Some(ImportKind::Battle),
        _ if has(document, &["errorCount"]) => Some(ImportKind::Recovery),
        _ => None,
    }
}

/// What the document adds to what is known.
///
/// # Errors
/// The place in the document that makes no sense, and why.
pub fn read(kind: ImportKind, document: &Value, at: &Circumstances<'_>) -> Result<Vec<Part>, Problem> {
    Place::root(document).no_deeper_than(MAX_DEPTH)?;
    match kind {
        ImportKind::Battle => battle::read(document, at).map(|part| vec![part]),
        ImportKind::AttemptHistory => history::read(document, at).map(|part| vec![part]),
        ImportKind::Lanes => lanes::read(document, at),
        ImportKind::Session => session::read(document, at).map(|part| vec![part]),
        ImportKind::Recovery => recovery::read(document, at).map(|part| vec![part]),
    }
}

/// The event that makes a run.
fn created(at: &Circumstances<'_>, key: &RunKey, task_id: Option<String>, worktree: Option<&str>) -> Payload {
    Payload::RunCreated {
        task_id,
        session: key.run_id.clone(),
        worktree: worktree.map_or_else(|| at.worktree.clone(), FolderId::from),
        spec: Box::new(RunSpec::default()),
    }
}

/// The event that records the document itself.
fn imported(at: &Circumstances<'_>, kind: ImportKind, id: &str, document: &Value) -> Payload {
    let (source, document) = (at.source.to_owned(), document.clone());
    Payload::Imported(Box::new(Imported { kind, id: id.to_owned(), source, document }))
}

/// The document of this kind and id that the run was given last.
fn known<'a>(at: &Circumstances<'a>, key: &RunKey, kind: ImportKind, id: &str) -> Option<&'a Value> {
    let run = at.state.run(key)?;
    let found = run.imported.iter().rfind(|one| one.imported.kind == kind && one.imported.id == id);
    found.map(|one| &one.imported.document)
}

/// An attempt that another system made.
#[derive(Clone, Debug)]
struct PastAttempt {
    iteration: u32,
    number: u32,
    subtask: String,
    session: String,
    approach: Option<String>,
    started: Timestamp,
    ended: Timestamp,
    outcome: AttemptOutcome,
    failure: Option<Failure>,
    feedback_results: FeedbackResults,
}

impl PastAttempt {
    fn events(self) -> [(Timestamp, Payload); 2] {
        let Self { iteration, number, subtask, session, approach, started, ended, outcome, feedback_results, .. } =
            self;
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
        [(started, begin), (ended, Payload::AttemptEnded(Box::new(end)))]
    }
}

/// A failure of which only its message is known.
fn failure_of(message: Option<&str>, at: &Circumstances<'_>) -> Failure {
    failure_of_type(message, FailureType::FeedbackFailure, at)
}

/// The same where its type is known: what a supervisor saw is no matter of the message.
fn failure_of_type(message: Option<&str>, kind: FailureType, at: &Circumstances<'_>) -> Failure {
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
    Failure { message: text.to_owned(), ..classify(&evidence, None, &[], at.now) }
}

#[cfg(test)]
mod tests;
