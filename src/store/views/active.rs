//! `active_checkpoint.json` (S11): the latest checkpoint in the format of the state recovery specification.
//!
//! The view is written with every event and must not grow with the work tree: what it holds of working memory and files
//! is kept beside it when the checkpoint is taken ([`ActiveState`]), up to a limit.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::durable::Sync;
use crate::model::{Checkpoint, CheckpointId, ImportKind, Run, State};
use crate::policy::secrets::redact;

use super::super::error::StoreError;
use super::super::ledger::Store;

const KEPT: &str = "active.json";

/// What the view holds of a checkpoint beside its record. Derived from the checkpoint: where it is lost, it is made again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ActiveState {
    /// Which checkpoint's.
    pub checkpoint_id: CheckpointId,
    /// Files of the working memory by path.
    pub working_memory: Map<String, Value>,
    /// States of files by path.
    pub file_states: Map<String, Value>,
    /// How many files of the working memory are not in it: over the limit, or closed to others.
    pub memory_left_out: u64,
    /// How many files' states are over the limit.
    pub file_states_left_out: u64,
}

impl ActiveState {
    /// What is kept; `None` where there is nothing that can be read.
    pub fn read(store: &Store) -> Option<Self> {
        serde_json::from_slice(&store.root().read(&store.private_dir().join(KEPT)).ok()?).ok()
    }

    /// Keeps it in the place of what was kept.
    pub fn keep(&self, store: &Store) -> Result<(), StoreError> {
        let path = store.private_dir().join(KEPT);
        let write = || -> std::io::Result<()> {
            let bytes = serde_json::to_vec(self)?;
            store.root().create_dir_all(&store.private_dir())?;
            store.root().write(&path, &bytes, Sync::Nothing)
        };
        write().map_err(StoreError::io("write", &path))
    }
}

/// The latest checkpoint of whichever run, those before restores and what a rollback went back over aside.
pub(crate) fn latest_checkpoint(state: &State) -> Option<&Checkpoint> {
    state
        .checkpoints
        .values()
        .rev()
        .find(|checkpoint| !checkpoint.is_safety() && !state.is_superseded(checkpoint))
}

/// The latest checkpoint as the view shows it; `None` without any. What is kept of another one says nothing.
pub fn active_checkpoint(state: &State, kept: Option<&ActiveState>) -> Option<Value> {
    let own = latest_checkpoint(state);
    let imported = state.runs.iter().flat_map(|run| &run.imported);
    let imported = imported
        .filter(|one| one.imported.kind == ImportKind::Session)
        .max_by_key(|one| one.seq);
    match (own, imported) {
        (Some(own), Some(imported)) if own.seq <= imported.after_checkpoint => {
            Some(imported.imported.document.clone())
        }
        (Some(own), _) => Some(own_view(
            state,
            own,
            kept.filter(|kept| kept.checkpoint_id == own.id),
        )),
        (None, imported) => imported.map(|imported| imported.imported.document.clone()),
    }
}

fn own_view(state: &State, checkpoint: &Checkpoint, kept: Option<&ActiveState>) -> Value {
    let run = state.run(&checkpoint.run);
    let Some(kept) = kept else {
        return session_checkpoint(checkpoint, run, &Map::new(), &json!({}));
    };
    let mut view = session_checkpoint(
        checkpoint,
        run,
        &kept.working_memory,
        &json!(kept.file_states),
    );
    for (name, count) in [
        ("memory_left_out", kept.memory_left_out),
        ("file_states_left_out", kept.file_states_left_out),
    ] {
        if count > 0 {
            view["state"][name] = json!(count);
        }
    }
    view
}

/// A checkpoint in the state recovery's format; `memory` are the files of the working memory by path.
pub(crate) fn session_checkpoint(
    checkpoint: &Checkpoint,
    run: Option<&Run>,
    memory: &Map<String, Value>,
    files: &Value,
) -> Value {
    // What the loop itself keeps of these counts, in whichever of its files it does.
    let own = |name: &str| {
        memory
            .values()
            .find_map(|document| document.get(name))
            .cloned()
    };
    let told = [
        ("current_task", json!(redact(&checkpoint.description))),
        (
            "files_modified",
            checkpoint
                .changed_paths
                .iter()
                .map(|path| json!(path.to_lossy()))
                .collect(),
        ),
        (
            "decisions_made",
            json!(
                run.map(|run| decisions(run, checkpoint))
                    .unwrap_or_default()
            ),
        ),
    ];
    let told = told.map(|(name, otherwise)| (name.to_owned(), own(name).unwrap_or(otherwise)));
    let mut working_memory: Map<String, Value> = told.into_iter().collect();
    working_memory.extend(memory.clone());
    json!({
        "checkpoint_id": checkpoint.id,
        "session_id": run.map_or(checkpoint.run.run_id.as_str(), |run| run.session.as_str()),
        "timestamp": checkpoint.created_at,
        "phase": checkpoint.run.phase,
        "task_id": checkpoint.task_id,
        "state": {"working_memory": working_memory, "file_states": files},
        "previous_checkpoint": checkpoint.previous,
    })
}

/// What was tried and decided in the checkpoint's iteration by then, as far as that was said, oldest first.
fn decisions<'a>(run: &'a Run, checkpoint: &Checkpoint) -> Vec<Cow<'a, str>> {
    let iteration = run.iterations.get(checkpoint.after_iteration);
    let attempts = iteration
        .into_iter()
        .flat_map(|iteration| &iteration.attempts);
    let said = attempts
        .filter(|attempt| attempt.started_at <= checkpoint.created_at)
        .flat_map(|attempt| {
            let decided = attempt
                .decision
                .as_ref()
                .map(|decision| decision.reason.as_str());
            [attempt.approach.as_deref(), decided]
        });
    let mut all: Vec<Cow<'a, str>> = Vec::new();
    for one in said.flatten().map(redact) {
        if !all.contains(&one) {
            all.push(one);
        }
    }
    all
}
