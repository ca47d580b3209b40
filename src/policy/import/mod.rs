//! Reads files of other systems as events of the ledger: which file it is, what it says, and what of that is new.
//!
//! What can be told in the ledger's own words is (runs, iterations, attempts, their failures); the document itself is
//! recorded beside it, so that its view says the same again. Taking over the same twice adds nothing.

mod battle;
mod history;
mod lanes;
mod own;
mod part;
mod past_attempt;
mod read;
mod recovery;
mod session;

use serde_json::Value;

use crate::model::import::ImportKind;

use read::{MAX_DEPTH, Place};

pub use own::is_known_history;
pub use part::{ImportInput, Part};
pub use read::Problem;

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
        ImportKind::AttemptHistory => history::read(document, at).map(|part| vec![part]),
        ImportKind::Lanes => lanes::read(document, at),
        ImportKind::Session => session::read(document, at).map(|part| vec![part]),
        ImportKind::Recovery => recovery::read(document, at).map(|part| vec![part]),
    }
}

#[cfg(test)]
mod tests;
