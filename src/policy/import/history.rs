//! `attempt_history.json` (A3): attempts by subtask, an iteration of one run for each.

use serde_json::Value;

use crate::model::event::Payload;
use crate::model::import::{IMPORTED_SESSION, ImportKind};
use crate::model::run::{AttemptOutcome, IterationStatus, Run, RunKey, RunStatus};

use super::part::{ImportInput, Part, created, imported, known};
use super::past_attempt::{PastAttempt, failure_of};
use super::read::{Place, Problem};

/// The run that attempts by subtask are taken over into, where none is named.
pub(crate) const HISTORY_RUN: &str = "imported-history";

pub(super) fn read(document: &Value, at: &ImportInput<'_>) -> Result<Part, Problem> {
    let root = Place::root(document);
    let key = at
        .run
        .cloned()
        .unwrap_or_else(|| RunKey::new(HISTORY_RUN, None, None));
    let run = at.state.run(&key);
    let mut part = Part {
        key: key.clone(),
        events: Vec::new(),
        left_out: Vec::new(),
    };
    if run.is_none() {
        part.events.push((at.now, created(at, &key, None, None)));
    }
    let mut next = run
        .and_then(|run| run.iterations.last_number())
        .unwrap_or(0)
        .saturating_add(1);
    let subtasks = root.required("subtasks")?;
    let stuck = root.list("stuck_subtasks")?;
    let (mut made, mut stands_now) = (Vec::new(), Vec::new());
    for id in subtasks.object()?.keys() {
        let subtask = subtasks.required(id)?;
        let known = run.and_then(|run| iteration_of(run, id));
        let iteration = known.map_or(next, |(iteration, _)| iteration);
        let before = known.map_or(0, |(_, attempts)| attempts);
        let attempts = subtask.list("attempts")?;
        if attempts.is_empty() {
            part.left_out
                .push(subtask.problem("it has no attempts: only its document is kept"));
            continue;
        }
        let mut latest = None;
        if known.is_none() {
            next = next.saturating_add(1);
        }
        let mut number = u32::try_from(before).unwrap_or(u32::MAX);
        // All are examined, also those that are known: a document is taken over as a whole or not at all.
        let all = attempts
            .iter()
            .map(|attempt| past(attempt, id, iteration, at))
            .collect::<Result<Vec<_>, _>>()?;
        let fresh = all.len() > before;
        for attempt in all.into_iter().skip(before) {
            number = number.saturating_add(1);
            latest = latest.max(Some(attempt.started));
            made.push((latest, PastAttempt { number, ..attempt }));
        }
        let status = status(&subtask)?;
        let stands = run
            .and_then(|run| run.iterations.get(iteration))
            .map(|iteration| iteration.status);
        if let Some(status) = status.filter(|status| fresh || stands != Some(*status)) {
            let reason = stuck
                .iter()
                .find(|entry| names(entry, id))
                .and_then(|entry| entry.value["reason"].as_str());
            let reason = reason
                .map(str::to_owned)
                .filter(|_| status == IterationStatus::Skipped);
            stands_now.push((
                at.now,
                Payload::IterationChanged {
                    iteration,
                    status,
                    reason,
                },
            ));
        }
    }
    // Subtasks take turns, and a success forgives what failed before it: one after the other, as they were made.
    made.sort_by_key(|(when, _)| *when);
    part.events
        .extend(made.into_iter().flat_map(|(_, attempt)| attempt.events()));
    part.events.append(&mut stands_now);
    if known(at, &key, ImportKind::AttemptHistory, "") == Some(document) {
        part.events.clear();
        return Ok(part);
    }
    let reason = "its attempts were imported".to_owned();
    part.events.push((
        at.now,
        Payload::RunStatusChanged {
            status: RunStatus::Paused,
            reason,
        },
    ));
    part.events.push((
        at.now,
        imported(at, ImportKind::AttemptHistory, "", document),
    ));
    Ok(part)
}

fn names(entry: &Place<'_>, id: &str) -> bool {
    entry
        .value
        .as_str()
        .or_else(|| entry.value["subtask_id"].as_str())
        == Some(id)
}

/// The iteration that holds a subtask's attempts, and how many.
fn iteration_of(run: &Run, id: &str) -> Option<(u32, usize)> {
    let found = run.iterations.values().find(|one| {
        one.attempts
            .first()
            .is_some_and(|first| first.subtask == *id)
    })?;
    Some((found.number, found.attempts.len()))
}

fn past(
    attempt: &Place<'_>,
    id: &str,
    iteration: u32,
    at: &ImportInput<'_>,
) -> Result<PastAttempt, Problem> {
    let success = attempt
        .flag_of("success")?
        .ok_or_else(|| attempt.problem("it has no 'success'"))?;
    let when = attempt.required("timestamp")?.time()?;
    let session = attempt.number_of("session")?.unwrap_or(1);
    let error = attempt.text_of("error")?;
    Ok(PastAttempt {
        iteration,
        number: 0,
        subtask: id.to_owned(),
        session: format!("{IMPORTED_SESSION}{session}"),
        approach: attempt.text_of("approach")?.map(str::to_owned),
        started: when,
        ended: when,
        outcome: if success {
            AttemptOutcome::Passed
        } else {
            AttemptOutcome::Failed
        },
        failure: (!success).then(|| failure_of(error, at)),
        feedback_results: crate::model::feedback::FeedbackResults::new(),
    })
}

fn status(subtask: &Place<'_>) -> Result<Option<IterationStatus>, Problem> {
    let Some(field) = subtask.field("status") else {
        return Ok(None);
    };
    match field.text()? {
        "completed" => Ok(Some(IterationStatus::Completed)),
        "failed" => Ok(Some(IterationStatus::Failed)),
        "stuck" => Ok(Some(IterationStatus::Skipped)),
        "in_progress" => Ok(Some(IterationStatus::InProgress)),
        "pending" => Ok(Some(IterationStatus::Pending)),
        other => Err(field.problem(format!("'{other}' is no status of a subtask"))),
    }
}
