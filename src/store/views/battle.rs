//! The battle view (B13, B2): a run in the battle specification's own format.

use serde_json::{Value, json};

use crate::model::checkpoint::{Checkpoint, StorageType};
use crate::model::failure::{Failure, FailureType};
use crate::model::import::ImportKind;
use crate::model::path::RepoPath;
use crate::model::run::{AttemptOutcome, Iteration, IterationStatus, Run, RunStatus};
use crate::model::state::State;

/// The seed's word for a run's status.
pub fn battle_status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::InProgress => "running",
        RunStatus::Complete => "completed",
        RunStatus::Parked => "paused",
        RunStatus::Escalated | RunStatus::Blocked => "failed",
        other => other.as_str(),
    }
}

/// A run as `battles/<task>/<run>.json`.
///
/// One that was imported says what it said there, until the run moves on; its checkpoints of then stay listed.
pub fn battle(state: &State, run: &Run) -> Value {
    if let Some(untouched) = run.untouched_import(ImportKind::Battle) {
        return untouched.clone();
    }
    let imported = run.imported.iter().filter(|one| one.imported.kind == ImportKind::Battle);
    let before = imported.filter_map(|one| one.imported.document["checkpoints"].as_array()).flatten().cloned();
    let own = state.checkpoints_of(&run.key).filter(|c| !c.is_safety()).map(checkpoint);
    let checkpoints: Vec<Value> = before.chain(own).collect();
    json!({
        "id": run.key.run_id,
        "taskId": run.task_id,
        "workingDir": run.worktree,
        "status": battle_status(run.status),
        "basePrompt": run.spec.prompt,
        "currentIteration": run.current_iteration,
        "iterations": run.iterations.values().map(iteration).collect::<Vec<_>>(),
        "checkpoints": checkpoints,
        "failure": run.failure.as_ref().map(failure),
    })
}

fn iteration(iteration: &Iteration) -> Value {
    let last = iteration.attempts.last();
    let ended = last.and_then(|attempt| {
        let millis = attempt.duration_ms?;
        Some(attempt.started_at.plus(std::time::Duration::from_millis(millis)))
    });
    json!({
        "number": iteration.number,
        "status": iteration.status.as_str(),
        "startedAt": iteration.attempts.first().map(|attempt| attempt.started_at),
        "completedAt": ended.filter(|_| iteration.status == IterationStatus::Completed),
        "retryCount": iteration.attempts.len().saturating_sub(1),
        "feedbackResults": last.map(|attempt| &attempt.feedback_results),
        "success": last.is_some_and(|attempt| attempt.outcome == Some(AttemptOutcome::Passed)),
    })
}

/// `commitHash` is a commit of the branch where the checkpoint is kept as one, else the hidden commit. `files` are the
/// paths that it changed, as far as its record lists them.
fn checkpoint(checkpoint: &Checkpoint) -> Value {
    let on_branch = checkpoint.branch_commit.as_ref().or(checkpoint.base_commit.as_ref());
    let on_branch = on_branch.filter(|_| checkpoint.storage_type == StorageType::Commit);
    let files = checkpoint.changed_paths.iter().map(RepoPath::to_lossy);
    let mut view = json!({
        "id": checkpoint.id,
        "battleId": checkpoint.run.run_id,
        "afterIteration": checkpoint.after_iteration,
        "storageType": checkpoint.storage_type,
        "commitHash": on_branch.unwrap_or(&checkpoint.commit),
        "baseCommitHash": checkpoint.base_commit,
        "timestamp": checkpoint.created_at,
        "description": checkpoint.description,
        "files": files.collect::<Vec<_>>(),
        "feedbackResults": checkpoint.feedback_results,
    });
    if let Some(patch) = &checkpoint.patch_path {
        view["patch"] = json!(patch);
    }
    view
}

fn failure(failure: &Failure) -> Value {
    let kind = match failure.kind {
        FailureType::AgentError => "claude_error",
        other => other.as_str(),
    };
    json!({
        "type": kind,
        "timestamp": failure.at,
        "iteration": failure.iteration,
        "message": failure.message,
        "details": failure.details,
        "recoverable": failure.recoverable,
        "suggestedAction": failure.suggested_action,
    })
}
