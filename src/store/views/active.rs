//! `active_checkpoint.json` (S11): the latest checkpoint in the state recovery's own format.
//!
//! The file states are in the export of a checkpoint (`checkpoint export --format seed-json`): a view is written with every
//! event and must not grow with the work tree.

use serde_json::{Value, json};

use crate::model::checkpoint::Checkpoint;
use crate::model::import::ImportKind;
use crate::model::run::Run;
use crate::model::state::State;

/// The latest checkpoint that is no safety checkpoint, of whichever run; `None` without any.
pub fn active_checkpoint(state: &State) -> Option<Value> {
    let own = state.checkpoints.values().rfind(|checkpoint| !checkpoint.is_safety());
    let imported = state.runs.iter().flat_map(|run| &run.imported);
    let imported = imported.filter(|one| one.imported.kind == ImportKind::Session).max_by_key(|one| one.seq);
    match (own, imported) {
        (Some(own), Some(imported)) if own.seq <= imported.after_checkpoint => Some(imported.imported.document.clone()),
        (Some(own), _) => Some(session_checkpoint(own, state.run(&own.run), &working_memory(state, own), &json!({}))),
        (None, imported) => imported.map(|imported| imported.imported.document.clone()),
    }
}

/// What the run was at, as far as its record says.
fn working_memory(state: &State, checkpoint: &Checkpoint) -> Value {
    let decision = state.run(&checkpoint.run).and_then(|run| run.decision.as_ref());
    let decisions: Vec<&str> = decision.into_iter().map(|decision| decision.reason.as_str()).collect();
    json!({
        "current_task": checkpoint.description,
        "decisions_made": decisions,
    })
}

/// A checkpoint in the state recovery's format.
pub fn session_checkpoint(checkpoint: &Checkpoint, run: Option<&Run>, memory: &Value, files: &Value) -> Value {
    json!({
        "checkpoint_id": checkpoint.id,
        "session_id": run.map_or(checkpoint.run.run_id.as_str(), |run| run.session.as_str()),
        "timestamp": checkpoint.created_at,
        "phase": checkpoint.run.phase,
        "task_id": checkpoint.task_id,
        "state": {"working_memory": memory, "file_states": files},
        "previous_checkpoint": checkpoint.previous,
    })
}
