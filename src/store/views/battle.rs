//! The battle view (B13, B2): a run in the format of the battle specification (there a run is a "battle").

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::model::failure::SuggestedAction;
use crate::model::{
    AttemptOutcome, Checkpoint, Failure, FailureType, FeedbackLoop, FeedbackResults, ImportKind,
    Iteration, IterationStatus, ManualFixSession, ObjectId, RepoPath, Run, RunSpec, RunStatus,
    State, StorageType, TaskId, Timestamp,
};

use super::{CHECKPOINTS_IN_VIEW, ITERATIONS_IN_VIEW};

/// The seed's word for a run's status.
pub(crate) fn battle_status(status: RunStatus) -> &'static str {
    match status {
        RunStatus::InProgress => "running",
        RunStatus::Complete | RunStatus::Accepted => "completed",
        // What the seed's "cancel battle" leaves.
        RunStatus::Closed => "cancelled",
        RunStatus::Parked => "paused",
        RunStatus::Escalated | RunStatus::Blocked => "failed",
        other => other.as_str(),
    }
}

/// A run as `battles/<task>/<run>.json`: what was imported says what it said there, until the run moves on.
#[derive(Serialize)]
#[serde(untagged)]
pub enum BattleView<'a> {
    /// As another system wrote it.
    Imported(&'a Value),
    /// As the ledger records it.
    Own(Box<Battle<'a>>),
}

/// The specification's keys.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Battle<'a> {
    id: &'a str,
    task_id: Option<&'a TaskId>,
    working_dir: &'a str,
    status: &'a str,
    base_prompt: Option<&'a str>,
    config: Config<'a>,
    current_iteration: u32,
    iterations: Vec<BattleIteration<'a>>,
    checkpoints: Vec<BattleCheckpoint<'a>>,
    failure: Option<BattleFailure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iterations_left_out: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoints_left_out: Option<usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BattleIteration<'a> {
    number: u32,
    status: &'a str,
    started_at: Option<Timestamp>,
    completed_at: Option<Timestamp>,
    retry_count: usize,
    feedback_results: Option<&'a FeedbackResults>,
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<Summary<'a>>,
}

/// What the agent says it did.
#[derive(Serialize)]
struct Summary<'a> {
    headline: &'a str,
}

/// The settings that the specification calls a battle's.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Config<'a> {
    auto_commit: bool,
    feedback_loops: Vec<Loop<'a>>,
    max_iterations: Option<u32>,
    timeout_minutes: Option<f64>,
}

#[derive(Serialize)]
struct Loop<'a> {
    name: &'a str,
    command: &'a str,
}

/// A checkpoint of the run, or one that its imported document lists.
#[derive(Serialize)]
#[serde(untagged)]
enum BattleCheckpoint<'a> {
    Imported(&'a Value),
    Own(Box<OwnCheckpoint<'a>>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OwnCheckpoint<'a> {
    id: &'a str,
    battle_id: &'a str,
    after_iteration: u32,
    storage_type: StorageType,
    /// A commit of the branch where the checkpoint is kept as one, else the hidden commit.
    commit_hash: &'a ObjectId,
    base_commit_hash: Option<&'a ObjectId>,
    timestamp: Timestamp,
    description: &'a str,
    /// The paths that it changed, as far as its record lists them.
    files: Vec<Cow<'a, str>>,
    feedback_results: &'a FeedbackResults,
    /// The patch itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_path: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BattleFailure<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    timestamp: Option<Timestamp>,
    iteration: Option<u32>,
    message: Cow<'a, str>,
    details: Option<Cow<'a, str>>,
    recoverable: bool,
    suggested_action: SuggestedAction,
}

/// A run's view. One that was imported keeps its checkpoints of then listed.
/// `patch` reads the file of a patch; `None` where it is not there, is no text or is too large for the view.
pub fn battle<'a>(
    state: &'a State,
    run: &'a Run,
    patch: &dyn Fn(&str) -> Option<String>,
) -> BattleView<'a> {
    if let Some(untouched) = run.untouched_import(ImportKind::Battle) {
        return BattleView::Imported(untouched);
    }
    let imported = run
        .imported
        .iter()
        .filter(|one| one.imported.kind == ImportKind::Battle);
    let before = imported
        .filter_map(|one| one.imported.document["checkpoints"].as_array())
        .flatten();
    // Of a run with many, only the pages of the latest are opened.
    let own = state
        .checkpoints_of(&run.key)
        .rev()
        .take(CHECKPOINTS_IN_VIEW);
    let mut own: Vec<_> = own
        .filter(|checkpoint| !checkpoint.is_safety())
        .map(|one| checkpoint(one, patch))
        .collect();
    own.reverse();
    let left_out = state.checkpoints.ordinary_count_of(&run.key) - own.len();
    let iterations: Vec<_> = run
        .iterations
        .recent(ITERATIONS_IN_VIEW)
        .into_iter()
        .map(|one| iteration(one, run))
        .collect();
    BattleView::Own(Box::new(Battle {
        id: run.key.run_id.as_str(),
        task_id: run.task_id.as_ref(),
        working_dir: run.worktree.text(),
        status: battle_status(run.status),
        base_prompt: run.spec.prompt.as_deref(),
        config: config(run, state),
        // Past the last one where all are over.
        current_iteration: run
            .spec
            .iterations_total
            .map_or(run.current_iteration, |total| {
                run.current_iteration.min(total)
            }),
        iterations_left_out: Some(run.iterations.len() - iterations.len())
            .filter(|left_out| *left_out > 0),
        iterations,
        checkpoints: before.map(BattleCheckpoint::Imported).chain(own).collect(),
        checkpoints_left_out: Some(left_out).filter(|left_out| *left_out > 0),
        failure: run.failure.as_ref().map(|one| failure(one, &run.spec)),
    }))
}

fn config<'a>(run: &'a Run, state: &State) -> Config<'a> {
    let latest = state.latest(&run.key);
    Config {
        auto_commit: latest.is_some_and(|latest| latest.storage_type == StorageType::Commit),
        feedback_loops: run
            .spec
            .feedback
            .iter()
            .map(|check| Loop {
                name: &check.name,
                command: &check.command,
            })
            .collect(),
        max_iterations: run.spec.iterations_total,
        timeout_minutes: run.spec.timeout_ms.map(|limit| limit as f64 / 60_000.0),
    }
}

fn iteration<'a>(iteration: &'a Iteration, run: &'a Run) -> BattleIteration<'a> {
    let last = iteration.attempts.last();
    let passed = last.is_some_and(|attempt| attempt.outcome == Some(AttemptOutcome::Passed));
    let is_of_it = |fix: &&ManualFixSession| {
        let fixed = fix.issue.as_ref().and_then(|issue| issue.iteration);
        fix.verified && fixed == Some(iteration.number)
    };
    // What a person fixed after the last attempt.
    let fix = run.manual_fix.as_ref().filter(is_of_it).filter(|_| !passed);
    let ended = last.and_then(|attempt| {
        let millis = attempt.duration_ms?;
        Some(
            attempt
                .started_at
                .plus(std::time::Duration::from_millis(millis)),
        )
    });
    BattleIteration {
        number: iteration.number,
        status: iteration.status.as_str(),
        started_at: iteration.attempts.first().map(|attempt| attempt.started_at),
        completed_at: ended.filter(|_| iteration.status == IterationStatus::Completed),
        retry_count: iteration.attempts.len().saturating_sub(1),
        feedback_results: fix
            .map(|fix| &fix.verification_results)
            .or(last.map(|attempt| &attempt.feedback_results)),
        success: passed || fix.is_some(),
        summary: last
            .and_then(|attempt| attempt.approach.as_deref())
            .map(|headline| Summary { headline }),
    }
}

fn checkpoint<'a>(
    checkpoint: &'a Checkpoint,
    patch: &dyn Fn(&str) -> Option<String>,
) -> BattleCheckpoint<'a> {
    let on_branch = checkpoint
        .branch_commit
        .as_ref()
        .or(checkpoint.base_commit.as_ref());
    let on_branch = on_branch.filter(|_| checkpoint.storage_type == StorageType::Commit);
    BattleCheckpoint::Own(Box::new(OwnCheckpoint {
        id: checkpoint.id.as_str(),
        battle_id: checkpoint.run.run_id.as_str(),
        after_iteration: checkpoint.after_iteration,
        storage_type: checkpoint.storage_type,
        commit_hash: on_branch.unwrap_or(&checkpoint.commit),
        base_commit_hash: checkpoint.base_commit.as_ref(),
        timestamp: checkpoint.created_at,
        description: &checkpoint.description,
        files: checkpoint
            .changed_paths
            .iter()
            .map(RepoPath::to_lossy)
            .collect(),
        feedback_results: &checkpoint.feedback_results,
        patch: checkpoint.patch_path.as_deref().and_then(patch),
        patch_path: checkpoint.patch_path.as_deref(),
    }))
}

fn failure<'a>(failure: &'a Failure, spec: &RunSpec) -> BattleFailure<'a> {
    let (message, details) = in_its_words(failure, spec);
    BattleFailure {
        kind: match failure.kind {
            FailureType::AgentError => "claude_error",
            other => other.as_str(),
        },
        timestamp: failure.at,
        iteration: failure.iteration,
        message,
        details,
        recoverable: failure.recoverable,
        suggested_action: failure.suggested_action,
    }
}

/// Message and details as the specification has them: which check failed, and which time limit was exceeded.
fn in_its_words<'a>(failure: &'a Failure, spec: &RunSpec) -> (Cow<'a, str>, Option<Cow<'a, str>>) {
    let details = failure.details.as_deref().map(Cow::Borrowed);
    let said = |check: &FeedbackLoop| {
        let rest = failure.message.strip_prefix(&check.name)?;
        let rest = rest.strip_prefix(": ")?;
        Some(format!("Feedback loop '{}' failed: {rest}", check.name))
    };
    match (failure.kind, spec.timeout_ms) {
        (FailureType::FeedbackFailure, _) => {
            let said = spec.feedback.iter().find_map(said);
            let message = said.map_or(Cow::Borrowed(failure.message.as_str()), Cow::Owned);
            (message, details)
        }
        (FailureType::Timeout, Some(limit)) => {
            let minutes = limit as f64 / 60_000.0;
            let output = details.map(|text| format!("\n{text}")).unwrap_or_default();
            let details = format!("Exceeded {minutes} minutes{output}");
            (
                Cow::Borrowed("Iteration timed out"),
                Some(Cow::Owned(details)),
            )
        }
        _ => (Cow::Borrowed(failure.message.as_str()), details),
    }
}
