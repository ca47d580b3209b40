//! Reads files of other systems as events of the ledger: which file it is, what it says, and what of that is new.
//!
//! What can be told in the ledger's own words is (runs, iterations, attempts, their failures); the document itself is
//! recorded beside it, so that its view says the same again. Taking over the same twice adds nothing.

mod battle;
mod read;
mod state_files;

pub use read::{ImportInput, Part, Problem};

use serde_json::Value;

use crate::model::{Attempt, AttemptOutcome, ImportKind, Run, State};
use read::{MAX_DEPTH, Place};

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
pub fn read(
    kind: ImportKind,
    document: &Value,
    at: &ImportInput<'_>,
) -> Result<Vec<Part>, Problem> {
    Place::root(document).no_deeper_than(MAX_DEPTH)?;
    match kind {
        ImportKind::Battle => battle::read(document, at).map(|part| vec![part]),
        ImportKind::AttemptHistory => {
            state_files::read_history(document, at).map(|part| vec![part])
        }
        ImportKind::Lanes => state_files::read_lanes(document, at),
        ImportKind::Session => state_files::read_session(document, at).map(|part| vec![part]),
        ImportKind::Recovery => state_files::read_recovery(document, at).map(|part| vec![part]),
    }
}

/// Whether the ledger holds all attempts that a history tells of, each with its time, what it tried and how it ended.
/// Subtasks that were imported are known as they were written.
pub fn is_known_history(document: &Value, state: &State) -> bool {
    let is_import = |run: &&Run| {
        let mut kinds = run.imported.iter().map(|one| one.imported.kind);
        kinds.any(|kind| kind == ImportKind::AttemptHistory)
    };
    let (imports, own): (Vec<&Run>, Vec<&Run>) = state.runs.iter().partition(is_import);
    let is_known = |(id, subtask): (&String, &Value)| {
        let mut written = imports.iter().flat_map(|run| &run.imported);
        let was_made = |told: &Value| {
            let mut attempts = own.iter().flat_map(|run| run.attempts());
            attempts.any(|(_, attempt)| attempt.subtask == *id && is_told(attempt, told))
        };
        let told = subtask["attempts"].as_array();
        let told = told.filter(|told| !told.is_empty());
        written.any(|one| one.imported.document["subtasks"].get(id) == Some(subtask))
            || told.is_some_and(|told| told.iter().all(was_made))
    };
    let subtasks = document["subtasks"].as_object();
    subtasks.is_some_and(|all| !all.is_empty() && all.iter().all(is_known))
}

/// Whether `told` is this attempt as its view has it, or had it while it was under way.
fn is_told(attempt: &Attempt, told: &Value) -> bool {
    let Ok(when) = Place::root(told)
        .required("timestamp")
        .and_then(|when| when.time())
    else {
        return false;
    };
    let tried = told["approach"].as_str();
    let as_ever = tried == Some(format!("Attempt {}", attempt.number).as_str());
    let under_way = told["success"] == false && told["error"].is_null();
    let error = attempt
        .failure
        .as_ref()
        .map(|failure| failure.message.as_str());
    let ended = told["success"] == (attempt.outcome == Some(AttemptOutcome::Passed))
        && told["error"].as_str() == error;
    when == attempt.started_at
        && (as_ever || tried == attempt.approach.as_deref())
        && (ended || under_way)
}

/// Whether a subtask was given up for this reason.
#[cfg(test)]
mod tests;
