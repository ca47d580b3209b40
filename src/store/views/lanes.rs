//! `checkpoints.json` (C1): the lane contract's records, the latest of each `(run_id, phase, lane, stage)`.

use serde_json::{Value, json};

use crate::model::Step;
use crate::model::lane::{BEFORE_START, LaneRecord, Origin};
use crate::model::step::StepStatus;
use crate::model::{Checkpoint, Hint, ImportKind, Place, Run, RunKey, State, Strategy};

use super::super::Store;

/// Whether anything belongs to a stage of a lane: without one there is no file.
pub(crate) fn has_lane_records(state: &State) -> bool {
    state.runs.iter().any(|run| {
        let imports = || run.imported.iter().map(|one| one.imported.kind);
        !run.staged.is_empty() || imports().any(|kind| kind == ImportKind::Lanes)
    })
}

/// The records, lane by lane, in the order in which they were made.
pub fn lane_records(state: &State, store: &Store) -> Vec<Value> {
    let mut all = Vec::new();
    for run in &state.runs {
        let records = state.lane_records(&run.key);
        let back = rollback_hint(state, run, store).to_string();
        all.extend(
            records
                .iter()
                .map(|one| (one.order(), record(state, run, one, store, &back))),
        );
    }
    all.sort_by_key(|(order, _)| *order);
    all.into_iter().map(|(_, record)| record).collect()
}

/// One record. Steps without a stage that failed while it was the lane's latest are in its notes (C9).
fn record(state: &State, run: &Run, record: &LaneRecord<'_>, store: &Store, back: &str) -> Value {
    let mut told = match record.origin {
        Origin::Imported(document) => document.imported.document.clone(),
        Origin::Own(checkpoint) | Origin::Retry(checkpoint) => {
            own(run, record, checkpoint, store, back)
        }
    };
    let is_here = |step: &&Step| {
        let has_failed = step.status == StepStatus::Failed && step.start.stage.is_none();
        has_failed
            && state
                .lane_at(&run.key, step.after_checkpoint)
                .is_some_and(|at| at.order() == record.order())
    };
    let errors = run.steps.iter().filter(is_here).filter_map(|step| {
        let code = || Some(format!("exit code {}", step.exit_code?));
        let error = step.error.clone().or_else(code)?;
        Some(format!("step {}: {error}", step.start.name))
    });
    let notes: Vec<String> = told["notes"]
        .as_str()
        .map(str::to_owned)
        .into_iter()
        .chain(errors)
        .collect();
    if !notes.is_empty() {
        told["notes"] = notes.join("; ").into();
    }
    told
}

fn own(
    run: &Run,
    lane: &LaneRecord<'_>,
    checkpoint: &Checkpoint,
    store: &Store,
    back: &str,
) -> Value {
    let fields = &checkpoint.lane_fields;
    let mut record = json!({
        "run_id": run.key.run_id,
        "phase": run.key.phase,
        "lane": run.key.lane,
        "stage": lane.stage,
        "status": lane.status,
        "base_branch": fields.base_branch,
        "worktree_path": run.worktree,
        "log_path": store.ledger_path().to_string_lossy(),
        "timestamp": checkpoint.created_at,
        "notes": fields.notes,
        "checkpoint_id": checkpoint.id,
        "resume_hint": resume_hint(run, store).to_string(),
        "rollback_hint": back,
    });
    let is_retry = fields.retry_status.is_some() && (lane.stage == crate::model::lane::RETRY);
    let optional = [
        ("test_command", json!(fields.test_command)),
        ("exit_code", json!(fields.exit_code)),
        ("head_sha", json!(fields.head_sha)),
        ("target_branch", json!(fields.target_branch)),
        (
            "retry_attempt",
            json!(fields.retry_attempt.filter(|_| is_retry)),
        ),
        (
            "max_retries",
            json!(fields.max_retries.filter(|_| is_retry)),
        ),
    ];
    for (name, value) in optional.into_iter().filter(|(_, value)| !value.is_null()) {
        record[name] = value;
    }
    if !fields.commit_shas.is_empty() {
        record["commit_shas"] = json!(fields.commit_shas);
    }
    if is_retry && !fields.failure_context.is_empty() {
        record["failure_context"] = json!(fields.failure_context);
    }
    record
}

/// How a lane is resumed, from any folder (C7); also where its work tree is gone.
pub(crate) fn resume_hint(run: &Run, store: &Store) -> Hint {
    // A person who pastes it grants another attempt.
    let grants: &[&str] = &[
        "--resume",
        "--strategy",
        Strategy::RetryWithContext.as_str(),
    ];
    hint(
        run,
        store,
        if run.stands_still() {
            grants
        } else {
            &grants[..1]
        },
    )
}

/// Where the rollback hint of a lane goes back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LaneBack {
    /// To its beginning.
    Beginning,
    /// To its safest prior stage.
    Stage(String),
    /// To its first checkpoint: no stage is one to go back to.
    Initial,
}

impl LaneBack {
    /// That of a lane; `None` where nothing of it was captured.
    pub(crate) fn of(state: &State, key: &RunKey) -> Option<Self> {
        if state
            .lane_records(key)
            .iter()
            .any(|one| one.stage == BEFORE_START && one.checkpoint().is_some())
        {
            return Some(Self::Beginning);
        }
        let safest = state
            .lane_safest(key)
            .and_then(|safest| safest.lane_fields.stage.clone());
        let initial = || state.keeps_initial(key).then_some(Self::Initial);
        safest.map(Self::Stage).or_else(initial)
    }
}

/// How a lane goes back. What was edited since its last checkpoint goes too, into the safety checkpoint: a lane's work tree is
/// the lane's.
pub(crate) fn rollback_hint(state: &State, run: &Run, store: &Store) -> Hint {
    let beginning = format!("stage:{BEFORE_START}");
    let to: &[&str] = match LaneBack::of(state, &run.key) {
        Some(LaneBack::Beginning) => &["--to", &beginning],
        Some(LaneBack::Initial) => &["--to", "initial"],
        Some(LaneBack::Stage(_)) | None => &[],
    };
    // Beyond its base branch a lane's commits are its own; on that branch itself nothing says whose they are.
    let base = state
        .lane_base(&run.key)
        .map(|base| format!("refs/heads/{base}"));
    let latest = state.latest(&run.key);
    let is_on_base = base.is_some() && latest.and_then(|latest| latest.head_ref.clone()) == base;
    let commits: &[&str] = if is_on_base {
        &["--commits", "drop"]
    } else {
        &[]
    };
    hint(
        run,
        store,
        &[&["--rollback"], to, &["--edits", "discard"], commits].concat(),
    )
}

fn hint(run: &Run, store: &Store, words: &[&str]) -> Hint {
    let place = Place {
        folder: run.worktree.path(),
        state_dir: Some(store.dir().to_owned()),
    };
    Hint::recover(words).run(&run.key).at(place)
}
