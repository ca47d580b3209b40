//! What an import knows beside a document, and the events that one document yields.

use serde_json::Value;

use crate::model::event::Payload;
use crate::model::id::TaskId;
use crate::model::import::{ImportKind, Imported};
use crate::model::path::FolderId;
use crate::model::run::{RunKey, RunSpec};
use crate::model::state::State;
use crate::model::time::Timestamp;

use super::read::Problem;

/// What is known beside the document.
#[derive(Clone, Copy, Debug)]
pub struct ImportInput<'a> {
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

/// The event that makes a run.
pub(super) fn created(
    at: &ImportInput<'_>,
    key: &RunKey,
    task_id: Option<TaskId>,
    worktree: Option<&str>,
) -> Payload {
    Payload::RunCreated {
        task_id,
        session: key.run_id.to_string(),
        worktree: worktree.map_or_else(|| at.worktree.clone(), FolderId::from),
        spec: Box::new(RunSpec::default()),
    }
}

/// The event that records the document itself.
pub(super) fn imported(
    at: &ImportInput<'_>,
    kind: ImportKind,
    id: &str,
    document: &Value,
) -> Payload {
    let (source, document) = (at.source.to_owned(), document.clone());
    Payload::Imported(Box::new(Imported {
        kind,
        id: id.to_owned(),
        source,
        document,
    }))
}

/// The document of this kind and id that the run was given last.
pub(super) fn known<'a>(
    at: &ImportInput<'a>,
    key: &RunKey,
    kind: ImportKind,
    id: &str,
) -> Option<&'a Value> {
    let run = at.state.run(key)?;
    let found = run
        .imported
        .iter()
        .rfind(|one| one.imported.kind == kind && one.imported.id == id);
    found.map(|one| &one.imported.document)
}
