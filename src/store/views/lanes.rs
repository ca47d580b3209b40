//! `checkpoints.json` (C1): the lane contract's records, the latest of each `(run_id, phase, lane, stage)`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::model::checkpoint::Checkpoint;
use crate::model::run::NONE;
use crate::model::state::State;

use super::super::Store;

/// Whether any checkpoint belongs to a stage of a lane: without one there is no file.
pub fn has_lane_records(state: &State) -> bool {
    state.checkpoints.values().any(|checkpoint| checkpoint.lane_fields.stage.is_some())
}

/// The records, in the order of their checkpoints.
pub fn lane_records(state: &State, store: &Store) -> Vec<Value> {
    let mut latest: BTreeMap<(&str, &str, &str, &str), &Checkpoint> = BTreeMap::new();
    for checkpoint in state.checkpoints.values() {
        if let Some(stage) = checkpoint.lane_fields.stage.as_deref() {
            let run = &checkpoint.run;
            latest.insert((&run.run_id, &run.phase, &run.lane, stage), checkpoint);
        }
    }
    let mut records: Vec<&Checkpoint> = latest.into_values().collect();
    records.sort_by_key(|checkpoint| checkpoint.seq);
    records.into_iter().map(|checkpoint| record(checkpoint, store)).collect()
}

fn record(checkpoint: &Checkpoint, store: &Store) -> Value {
    let fields = &checkpoint.lane_fields;
    let mut record = json!({
        "run_id": checkpoint.run.run_id,
        "phase": checkpoint.run.phase,
        "lane": checkpoint.run.lane,
        "stage": fields.stage,
        "status": fields.status,
        "base_branch": fields.base_branch,
        "worktree_path": checkpoint.worktree,
        "log_path": store.ledger_path().to_string_lossy(),
        "timestamp": checkpoint.created_at,
        "notes": fields.notes,
        "checkpoint_id": checkpoint.id,
        "resume_hint": hint(checkpoint, &["--resume"]),
        "rollback_hint": hint(checkpoint, &["--rollback", "--to", "stage:before_lane_start"]),
    });
    let optional = [
        ("test_command", json!(fields.test_command)),
        ("exit_code", json!(fields.exit_code)),
        ("head_sha", json!(fields.head_sha)),
        ("target_branch", json!(fields.target_branch)),
    ];
    for (name, value) in optional.into_iter().filter(|(_, value)| !value.is_null()) {
        record[name] = value;
    }
    if !fields.commit_shas.is_empty() {
        record["commit_shas"] = json!(fields.commit_shas);
    }
    record
}

/// A command that works from any folder (C7).
fn hint(checkpoint: &Checkpoint, words: &[&str]) -> String {
    let run = &checkpoint.run;
    let mut all = vec!["recover", "-C", checkpoint.worktree.as_str(), "--state-dir", checkpoint.state_dir.as_str()];
    all.extend(words);
    all.extend(["--run", run.run_id.as_str()]);
    for (flag, value) in [("--phase", run.phase.as_str()), ("--lane", run.lane.as_str())] {
        if value != NONE {
            all.extend([flag, value]);
        }
    }
    shlex::try_join(all.iter().copied()).unwrap_or_else(|_| all.join(" "))
}
