//! A battle (B1, B2, B13): its iterations with their attempts, why it failed, its checkpoints' records.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::model::failure::SuggestedAction;
use crate::model::{
    AttemptOutcome, Failure, FailureType, FeedbackResult, FeedbackResults, ImportKind,
    IterationStatus, Payload, RunKey, RunStatus, TaskId,
};

use super::read::{
    ImportInput, Part, PastAttempt, Place, Problem, created, failure_of, failure_of_type, imported,
    known,
};

/// More tries of one iteration than any battle has.
const MAX_RETRIES: u32 = 1000;

pub(super) fn read(document: &Value, at: &ImportInput<'_>) -> Result<Part, Problem> {
    let root = Place::root(document);
    let key = RunKey::new(root.required("id")?.name()?, None, None);
    let run = at.state.run(&key);
    let task = root.optional("taskId", Place::name)?;
    let status = root.optional("status", |field| {
        field.word(&RUN_STATUSES, "status of a battle")
    })?;
    let current = root.iteration_of("currentIteration")?;
    let failure = root.optional("failure", |field| failure(field, at))?;
    check_checkpoints(&root)?;
    let mut part = Part::new(&key);
    let iterations = root.required("iterations")?.items()?;
    if run.is_none() {
        let mut made = created(
            at,
            &key,
            task.map(TaskId::from),
            root.text_of("workingDir")?,
        );
        if let Payload::RunCreated { spec, .. } = &mut made {
            spec.prompt = root.text_of("basePrompt")?.map(str::to_owned);
        }
        let first = iterations.first();
        let began = first.map_or(Ok(None), |first| first.time_of("startedAt"))?;
        part.push(began.unwrap_or(at.now), made);
    }
    for (index, iteration) in iterations.iter().enumerate() {
        let position = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        let number = iteration.iteration_of("number")?.unwrap_or(position);
        if number == 0 {
            return Err(iteration.problem("iterations are counted from 1"));
        }
        let status = iteration.optional("status", |field| {
            field.word(&ITERATION_STATUSES, "status of an iteration")
        })?;
        let known = run.and_then(|run| run.iterations.get(number));
        let before = known.map_or(0, |known| known.attempts.len());
        let own = failure
            .as_ref()
            .filter(|failure| failure.iteration == Some(number));
        let subtask = format!("{}/iteration-{number}", task.unwrap_or(key.run_id.as_str()));
        let all = attempts(iteration, &key, number, &subtask, status, own, at)?;
        let fresh = all.len() > before;
        for attempt in all.into_iter().skip(before) {
            part.events.extend(attempt.events());
        }
        if let Some(status) =
            status.filter(|status| fresh || known.map(|known| known.status) != Some(*status))
        {
            let changed = Payload::IterationChanged {
                iteration: number,
                status,
                reason: None,
            };
            part.push(at.now, changed);
        }
    }
    if self::known(at, &key, ImportKind::Battle, "") == Some(document) {
        part.events.clear();
        return Ok(part);
    }
    if let Some(current) = current.filter(|current| *current > 0) {
        let resumed = Payload::RunResumed {
            strategy: None,
            iteration: current,
            supersede: false,
            instructions: None,
            error_context: true,
            granted: false,
            restart: false,
        };
        part.push(at.now, resumed);
    }
    let status = status.unwrap_or(RunStatus::Paused);
    part.push_status(at.now, status, "the battle was imported");
    part.push(at.now, imported(at, ImportKind::Battle, "", document));
    Ok(part)
}

const RUN_STATUSES: [(&str, RunStatus); 9] = [
    ("pending", RunStatus::Pending),
    // Whoever ran it does so no more, as far as the ledger knows.
    ("running", RunStatus::Paused),
    ("in_progress", RunStatus::Paused),
    ("paused", RunStatus::Paused),
    ("completed", RunStatus::Complete),
    ("complete", RunStatus::Complete),
    ("failed", RunStatus::Failed),
    ("cancelled", RunStatus::Cancelled),
    ("escalated", RunStatus::Escalated),
];

const ITERATION_STATUSES: [(&str, IterationStatus); 12] = [
    ("pending", IterationStatus::Pending),
    ("running", IterationStatus::InProgress),
    ("in_progress", IterationStatus::InProgress),
    ("completed", IterationStatus::Completed),
    ("complete", IterationStatus::Completed),
    ("success", IterationStatus::Completed),
    ("passed", IterationStatus::Completed),
    ("failed", IterationStatus::Failed),
    ("cancelled", IterationStatus::Cancelled),
    ("skipped", IterationStatus::Skipped),
    ("superseded", IterationStatus::Superseded),
    ("rolled_back", IterationStatus::Superseded),
];

/// The tries of an iteration: those before the last failed, of which no more is known.
fn attempts(
    iteration: &Place<'_>,
    key: &RunKey,
    number: u32,
    subtask: &str,
    status: Option<IterationStatus>,
    failure: Option<&Failure>,
    at: &ImportInput<'_>,
) -> Result<Vec<PastAttempt>, Problem> {
    let retries = iteration.number_of("retryCount")?.unwrap_or(0);
    if retries > MAX_RETRIES {
        return Err(iteration.problem(format!("more than {MAX_RETRIES} retries")));
    }
    let feedback_results = iteration.optional("feedbackResults", feedback)?;
    let (started, ended) = (
        iteration.time_of("startedAt")?,
        iteration.time_of("completedAt")?,
    );
    let Some(started) = started else {
        // Nothing of it has begun: what was tried before was reset.
        return Ok(Vec::new());
    };
    let ended = ended.unwrap_or(started);
    let past = |attempt: u32, outcome: AttemptOutcome, failure: Option<Failure>| PastAttempt {
        iteration: number,
        number: attempt,
        subtask: subtask.to_owned(),
        session: key.run_id.to_string(),
        approach: None,
        started,
        ended,
        outcome,
        failure,
        feedback_results: FeedbackResults::new(),
    };
    let mut all: Vec<PastAttempt> = (1..=retries)
        .map(|attempt| past(attempt, AttemptOutcome::Failed, Some(failure_of(None, at))))
        .collect();
    let last = retries.saturating_add(1);
    let outcome = match status {
        Some(IterationStatus::Completed) => AttemptOutcome::Passed,
        Some(IterationStatus::Failed) => AttemptOutcome::Failed,
        _ if failure.is_some() => AttemptOutcome::Failed,
        _ => AttemptOutcome::Cancelled,
    };
    let why = (outcome == AttemptOutcome::Failed)
        .then(|| failure.cloned().unwrap_or_else(|| failure_of(None, at)));
    all.push(PastAttempt {
        feedback_results: feedback_results.unwrap_or_default(),
        ..past(last, outcome, why)
    });
    Ok(all)
}

/// Why the battle failed; the cause is found from what it says.
fn failure(field: &Place<'_>, at: &ImportInput<'_>) -> Result<Failure, Problem> {
    let kind = field.required("type")?;
    let found: FailureType = kind.parsed("type of failure")?;
    let message = field.required("message")?.text()?;
    let details = field.text_of("details")?;
    let suggested: Option<SuggestedAction> =
        field.optional("suggestedAction", |action| action.parsed("recovery action"))?;
    let text = details.map_or_else(
        || message.to_owned(),
        |details| format!("{message}\n{details}"),
    );
    let classified = failure_of_type(Some(&text), found, at);
    Ok(Failure {
        kind: found,
        severity: found.severity(),
        recoverable: field
            .flag_of("recoverable")?
            .unwrap_or(classified.recoverable),
        suggested_action: suggested.unwrap_or(classified.suggested_action),
        message: message.to_owned(),
        details: details.map(str::to_owned),
        iteration: field.iteration_of("iteration")?,
        at: field.time_of("timestamp")?,
        ..classified
    })
}

/// Results by name, whatever more they say.
fn feedback(field: &Place<'_>) -> Result<FeedbackResults, Problem> {
    let mut results = BTreeMap::new();
    for name in field.object()?.keys() {
        let Some(result) = field.field(name) else {
            continue;
        };
        let passed = result
            .flag_of("passed")?
            .ok_or_else(|| result.problem("it has no 'passed'"))?;
        let output = result.value["summary"]
            .as_str()
            .or_else(|| result.value["output"].as_str())
            .unwrap_or_default();
        let millis = ["duration_ms", "durationMs", "duration"]
            .iter()
            .find_map(|key| result.value[*key].as_u64());
        let code = result.value["exit_code"]
            .as_i64()
            .or_else(|| result.value["exitCode"].as_i64());
        let result = FeedbackResult {
            passed,
            exit_code: code.and_then(|code| i32::try_from(code).ok()),
            duration: Duration::from_millis(millis.unwrap_or(0)),
            summary: output
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(200)
                .collect(),
            passed_count: result.value["passed_count"].as_u64(),
            failed_count: result.value["failed_count"].as_u64(),
            flaky: false,
            missing: false,
        };
        results.insert(name.clone(), result);
    }
    Ok(results)
}

fn check_checkpoints(root: &Place<'_>) -> Result<(), Problem> {
    for checkpoint in root.list("checkpoints")? {
        checkpoint.required("id")?.name()?;
        checkpoint.iteration_of("afterIteration")?;
        checkpoint.time_of("timestamp")?;
        for text in [
            "storageType",
            "commitHash",
            "patch",
            "baseCommitHash",
            "description",
        ] {
            checkpoint.text_of(text)?;
        }
    }
    Ok(())
}
