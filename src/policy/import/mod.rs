//! Reads files of other systems as events of the ledger: which file it is, what it says, and what of that is new.
//!
//! What can be told in the ledger's own words is (runs, iterations, attempts, their failures); the document itself is
//! recorded beside it, so that its view says the same again. Taking over the same twice adds nothing.

mod battle;
mod read;
mod state_files;

pub use read::{ImportInput, Part, Problem};

use serde_json::Value;

use crate::model::{Attempt, AttemptOutcome, ImportKind, Iteration, IterationStatus, Run, State};
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

/// Whether the ledger holds all that a history of attempts tells: each attempt with its time, what it tried and how it
/// ended, and why a subtask was given up. Subtasks that were imported are known as they were written.
///
/// Whatever cannot be known surely is not known.
pub fn is_known_history(document: &Value, state: &State) -> bool {
    let Some(subtasks) = document["subtasks"]
        .as_object()
        .filter(|subtasks| !subtasks.is_empty())
    else {
        return false;
    };
    let imported: Vec<&Value> = state
        .runs
        .iter()
        .flat_map(|run| &run.imported)
        .filter(|one| one.imported.kind == ImportKind::AttemptHistory)
        .map(|one| &one.imported.document)
        .collect();
    let stuck = document["stuck_subtasks"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let known_subtask = |id: &String, subtask: &Value| {
        let as_written = imported
            .iter()
            .any(|document| document["subtasks"].get(id) == Some(subtask));
        as_written || is_own(id, subtask, stuck, state)
    };
    let known_stuck = |entry: &Value| {
        let as_written = |document: &&Value| {
            document["stuck_subtasks"]
                .as_array()
                .is_some_and(|all| all.contains(entry))
        };
        imported.iter().any(as_written) || gives_up(entry, state)
    };
    subtasks
        .iter()
        .all(|(id, subtask)| known_subtask(id, subtask))
        && stuck.iter().all(known_stuck)
}

/// The attempts that were made under our own eyes.
fn attempts_of<'a>(
    state: &'a State,
    subtask: &'a str,
) -> impl Iterator<Item = (&'a Iteration, &'a Attempt)> {
    let seen = |run: &&Run| {
        run.imported
            .iter()
            .all(|one| one.imported.kind != ImportKind::AttemptHistory)
    };
    state
        .runs
        .iter()
        .filter(seen)
        .flat_map(Run::attempts)
        .filter(move |(_, attempt)| attempt.subtask == subtask)
}

fn is_own(id: &str, subtask: &Value, stuck: &[Value], state: &State) -> bool {
    let Some(told) = subtask["attempts"]
        .as_array()
        .filter(|told| !told.is_empty())
    else {
        return false;
    };
    let all_known = told
        .iter()
        .all(|told| attempts_of(state, id).any(|(_, attempt)| is_told(attempt, told)));
    all_known
        && match subtask["status"].as_str() {
            Some("completed") => {
                let passed = told.iter().any(|told| told["success"] == true);
                passed
                    || attempts_of(state, id)
                        .any(|(iteration, _)| iteration.status == IterationStatus::Completed)
            }
            Some("stuck") => stuck.iter().any(|entry| entry["subtask_id"] == id),
            Some("failed" | "in_progress" | "pending") => true,
            _ => false,
        }
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
fn gives_up(entry: &Value, state: &State) -> bool {
    let (Some(id), Some(reason)) = (entry["subtask_id"].as_str(), entry["reason"].as_str()) else {
        return false;
    };
    attempts_of(state, id).any(|(iteration, attempt)| {
        let decided = attempt
            .decision
            .as_ref()
            .map(|decision| decision.reason.as_str());
        iteration.reason.as_deref() == Some(reason)
            || decided == Some(reason)
            || reason == "given up"
    })
}

#[cfg(test)]
mod tests;
