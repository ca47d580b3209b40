//! The small state files of other systems: attempts (A3), cooldown (L1), lanes (C1–C3), a session's checkpoint (S11).

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::read::{
    ImportInput, Part, PastAttempt, Place, Problem, created, failure_of, imported, known,
};
use crate::model::decision::BudgetScope;
use crate::model::import::IMPORTED_SESSION;
use crate::model::lane::{Origin, RETRY, STAGES};
use crate::model::run::NONE;
use crate::model::{
    Action, AttemptOutcome, Decision, FeedbackResults, ImportKind, IterationStatus, Payload, Run,
    RunKey, RunStatus, Strategy, TaskId, Timestamp,
};

/// The run that attempts by subtask are taken over into, where none is named.
const HISTORY_RUN: &str = "imported-history";

pub(super) fn read_history(document: &Value, at: &ImportInput<'_>) -> Result<Part, Problem> {
    let root = Place::root(document);
    let key = at
        .run
        .cloned()
        .unwrap_or_else(|| RunKey::new(HISTORY_RUN, None, None));
    let run = at.state.run(&key);
    let mut part = Part::new(&key);
    if run.is_none() {
        part.push(at.now, created(at, &key, None, None));
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
        let status = subtask.optional("status", |field| {
            field.word(&SUBTASK_STATUSES, "status of a subtask")
        })?;
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
    part.push_status(at.now, RunStatus::Paused, "its attempts were imported");
    let document = imported(at, ImportKind::AttemptHistory, "", document);
    part.push(at.now, document);
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
        feedback_results: FeedbackResults::new(),
    })
}

const SUBTASK_STATUSES: [(&str, IterationStatus); 5] = [
    ("completed", IterationStatus::Completed),
    ("failed", IterationStatus::Failed),
    ("stuck", IterationStatus::Skipped),
    ("in_progress", IterationStatus::InProgress),
    ("pending", IterationStatus::Pending),
];

/// The run that a loop's cooldown is taken over into, where none is named.
const LOOP_RUN: &str = "imported-loop";

/// More errors than any loop's budget has.
const MAX_ERRORS: u32 = 1000;

pub(super) fn read_recovery(document: &Value, at: &ImportInput<'_>) -> Result<Part, Problem> {
    let root = Place::root(document);
    let key = at
        .run
        .cloned()
        .unwrap_or_else(|| RunKey::new(LOOP_RUN, None, None));
    let run = at.state.run(&key);
    let count = root.required("errorCount")?;
    let errors = count.number()?;
    if errors > MAX_ERRORS {
        return Err(count.problem(format!("more than {MAX_ERRORS} errors in a row")));
    }
    let last_error = root.text_of("lastError")?;
    let last_error_at = root.time_of("lastErrorAt")?.unwrap_or(at.now);
    let cooldown = root.time_of("cooldownUntil")?;
    let recovering = root.flag_of("isRecovering")?;
    let mut part = Part::new(&key);
    // Exactly the loop's keys (L1).
    let view = json!({
        "isRecovering": recovering.unwrap_or(errors > 0),
        "lastErrorAt": root.value["lastErrorAt"],
        "errorCount": errors,
        "lastError": root.value["lastError"],
        "cooldownUntil": root.value["cooldownUntil"],
    });
    if known(at, &key, ImportKind::Recovery, "") == Some(&view) {
        return Ok(part);
    }
    if run.is_none() {
        part.push(at.now, created(at, &key, None, None));
    }
    count_errors(
        &mut part,
        at,
        &Errors {
            count: errors,
            messages: last_error.into_iter().collect(),
            last: last_error_at,
            cooldown,
            goes_on: true,
        },
    );
    part.push(at.now, imported(at, ImportKind::Recovery, "", &view));
    Ok(part)
}

/// Errors in a row, as another system counted them.
struct Errors<'a> {
    count: u32,
    /// The latest ones', the last one last.
    messages: Vec<&'a str>,
    /// When the last one was.
    last: Timestamp,
    cooldown: Option<Timestamp>,
    /// Whether another attempt was to come.
    goes_on: bool,
}

/// Lets the run's count be that of `errors`.
fn count_errors(part: &mut Part, at: &ImportInput<'_>, errors: &Errors<'_>) {
    let run = at.state.run(&part.key);
    let mut counted = run.map_or(0, |run| run.error_count);
    if errors.count < counted {
        part.push(at.now, Payload::RetryReset {});
        counted = 0;
    }
    let iteration = run.map_or(1, |run| run.current_iteration);
    let attempts = run
        .and_then(|run| run.iterations.get(iteration))
        .map_or(0, |one| one.attempts.len());
    let mut number = u32::try_from(attempts).unwrap_or(u32::MAX);
    for error in counted..errors.count {
        number = number.saturating_add(1);
        let later = (errors.count - error) as usize;
        let message = errors.messages.len().checked_sub(later);
        let message = message.map(|place| errors.messages[place]);
        let attempt = PastAttempt {
            iteration,
            number,
            subtask: format!("{}/iteration-{iteration}", part.key.run_id),
            session: part.key.run_id.to_string(),
            approach: None,
            started: errors.last,
            ended: errors.last,
            outcome: AttemptOutcome::Failed,
            failure: Some(failure_of(message, at)),
            feedback_results: FeedbackResults::new(),
        };
        let [begin, (when, mut end)] = attempt.events();
        if let Payload::AttemptEnded(end) = &mut end
            && later == 1
        {
            let goes_on = errors.goes_on;
            let reason = if goes_on {
                "another attempt was to come, according to its record"
            } else {
                "no attempt was left, according to its record"
            };
            end.decision = Some(Decision {
                actions: if goes_on {
                    vec![Action::Retry]
                } else {
                    Vec::new()
                },
                strategy: goes_on.then_some(Strategy::RetryWithContext),
                not_before: errors.cooldown,
                attempts_used: errors.count,
                attempts_left: (!goes_on).then_some(0),
                stopped_by: (!goes_on).then_some(BudgetScope::Global),
                reason: reason.to_owned(),
                decided_at: errors.last,
            });
        }
        part.events.extend([begin, (when, end)]);
    }
}

/// What a record may say of its stage (C2).
const STATUSES: [&str; 7] = [
    "ready",
    "in_progress",
    "failed",
    "blocked",
    "complete",
    "rolled_back",
    "retrying",
];

pub(super) fn read_lanes(document: &Value, at: &ImportInput<'_>) -> Result<Vec<Part>, Problem> {
    let mut parts: Vec<Part> = Vec::new();
    let records = Place::root(document).items()?;
    let place = |record: &Value| {
        let named = |name: &str| {
            record[name]
                .as_str()
                .filter(|name| *name != NONE)
                .map(str::to_owned)
        };
        ["run_id", "phase", "lane", "stage"].map(named)
    };
    let last: BTreeMap<_, usize> = records
        .iter()
        .enumerate()
        .map(|(at, record)| (place(record.value), at))
        .collect();
    for (number, record) in records.iter().enumerate() {
        let run_id = record.required("run_id")?.name()?;
        let (phase, lane) = (name(record, "phase")?, name(record, "lane")?);
        let key = RunKey::new(run_id, phase, lane);
        let stage = one_of(&record.required("stage")?, &STAGES)?;
        record.optional("status", |status| one_of(status, &STATUSES))?;
        for text in [
            "base_branch",
            "worktree_path",
            "log_path",
            "resume_hint",
            "rollback_hint",
            "target_branch",
        ] {
            record.text_of(text)?;
        }
        let when = record.time_of("timestamp")?;
        let known = parts.iter().position(|part| part.key == key);
        let index = known.unwrap_or_else(|| {
            parts.push(Part::new(&key));
            parts.len() - 1
        });
        let part = &mut parts[index];
        if last.get(&place(record.value)) != Some(&number) {
            part.left_out
                .push(record.problem("a later record of this stage is in the file"));
            continue;
        }
        match newer(at, &key, stage, record.value, when) {
            Known::Same => continue,
            Known::Newer => {
                part.left_out
                    .push(record.problem("the ledger has a newer record of this stage"));
                continue;
            }
            Known::No => {}
        }
        let is_new = at.state.run(&key).is_none() && part.events.is_empty();
        let moment = when.unwrap_or(at.now);
        let retries = Retries::of(record, stage)?;
        if is_new {
            let worktree = record.text_of("worktree_path")?;
            part.push(moment, created(at, &key, None, worktree));
        }
        if let Some(retries) = retries {
            retries.count(part, at, moment);
        }
        part.push(moment, imported(at, ImportKind::Lanes, stage, record.value));
        if at.state.run(&key).is_none() {
            let reason = format!("its record of {stage} was imported");
            let status = stands(record.value["status"].as_str());
            // The record is the last word about it: it is what tells whether anything has happened since.
            let last = part.events.len() - 1;
            part.events
                .insert(last, (moment, Payload::RunStatusChanged { status, reason }));
        }
    }
    Ok(parts)
}

/// What a record of retries counts (C8).
struct Retries<'a> {
    failed: u32,
    max: Option<u32>,
    goes_on: bool,
    context: Vec<&'a str>,
}

impl<'a> Retries<'a> {
    /// `None` where the record counts nothing, or its retries came to something.
    fn of(record: &Place<'a>, stage: &str) -> Result<Option<Self>, Problem> {
        let field = |name| record.optional(name, Place::number);
        let (number, max) = (field("retry_attempt")?, field("max_retries")?);
        let context = record.list("failure_context")?;
        let context = context.iter().filter_map(|one| one.value.as_str());
        let status = record.value["status"].as_str();
        let counts = stage == RETRY && matches!(status, Some("retrying" | "failed"));
        let Some(number) = number.filter(|_| counts) else {
            return Ok(None);
        };
        if number.max(max.unwrap_or(0)) > MAX_ERRORS {
            return Err(record.problem(format!("more than {MAX_ERRORS} retries")));
        }
        let goes_on = status == Some("retrying");
        Ok(Some(Self {
            // The contract counts the retries: once they are used up the first attempt comes on top.
            failed: if goes_on {
                number
            } else {
                number.max(max.unwrap_or(0)).saturating_add(1)
            },
            max,
            goes_on,
            context: context.collect(),
        }))
    }

    /// Books its errors on the run, which may have as many retries as the record says where it is new.
    fn count(&self, part: &mut Part, at: &ImportInput<'_>, when: Timestamp) {
        if let Some((_, Payload::RunCreated { spec, .. })) = part.events.first_mut() {
            spec.attempts = self.max.map(|max| max.saturating_add(1));
        }
        let is_first = |entry: &&&str| {
            let number = entry
                .strip_prefix("Attempt ")
                .and_then(|rest| rest.split_once(": "));
            number.is_some_and(|(number, _)| number.parse::<u32>().is_ok())
        };
        let first: Vec<&str> = self.context.iter().filter(is_first).copied().collect();
        // Where each attempt's error is named so, what else there is are entries of its log.
        let messages = if first.len() < self.failed as usize {
            &self.context
        } else {
            &first
        };
        let without_number = |entry: &&'a str| match entry.split_once(": ") {
            Some((_, message)) if is_first(&entry) => message,
            _ => *entry,
        };
        let counted = at.state.run(&part.key).map_or(0, |run| run.error_count);
        let errors = Errors {
            count: self.failed.max(counted),
            messages: messages.iter().map(without_number).collect(),
            last: when,
            cooldown: None,
            goes_on: self.goes_on,
        };
        count_errors(part, at, &errors);
    }
}

enum Known {
    No,
    Same,
    Newer,
}

/// Whether the ledger has this record already, or a later one of its stage.
fn newer(
    at: &ImportInput<'_>,
    key: &RunKey,
    stage: &str,
    record: &Value,
    when: Option<Timestamp>,
) -> Known {
    let records = at.state.lane_records(key);
    let Some(known) = records.iter().find(|known| known.stage == stage) else {
        return Known::No;
    };
    match known.origin {
        Origin::Imported(document) if document.imported.document == *record => Known::Same,
        Origin::Imported(_) => Known::No,
        Origin::Own(checkpoint) | Origin::Retry(checkpoint) => {
            let ours = record["checkpoint_id"].as_str() == Some(checkpoint.id.as_str());
            match (ours, when) {
                (true, _) => Known::Same,
                (false, Some(when)) if when > checkpoint.created_at => Known::No,
                _ => Known::Newer,
            }
        }
    }
}

fn name<'a>(record: &Place<'a>, field: &str) -> Result<Option<&'a str>, Problem> {
    let named = record.optional(field, Place::name)?;
    Ok(named.filter(|name| *name != NONE))
}

fn one_of<'a>(field: &Place<'a>, words: &[&str]) -> Result<&'a str, Problem> {
    let word = field.text()?;
    if words.contains(&word) {
        return Ok(word);
    }
    Err(field.problem(format!("'{word}' is none of {}", words.join(", "))))
}

fn stands(status: Option<&str>) -> RunStatus {
    match status {
        Some("failed") => RunStatus::Failed,
        Some("blocked") => RunStatus::Blocked,
        Some("rolled_back") => RunStatus::RolledBack,
        _ => RunStatus::Paused,
    }
}

pub(super) fn read_session(document: &Value, at: &ImportInput<'_>) -> Result<Part, Problem> {
    let root = Place::root(document);
    let id = root.required("checkpoint_id")?.name()?;
    let session = root.required("session_id")?.name()?;
    let when = root.time_of("timestamp")?.unwrap_or(at.now);
    let task = root.text_of("task_id")?.map(str::to_owned);
    root.text_of("phase")?;
    root.text_of("previous_checkpoint")?;
    let state = root.required("state")?;
    state.object()?;
    for part in ["working_memory", "file_states"] {
        state.optional(part, Place::object)?;
    }
    let key = RunKey::new(session, None, None);
    let mut part = Part::new(&key);
    // One of ours that comes back is no other system's.
    let own = at.state.checkpoint(&id.into()).is_some();
    if own || known(at, &key, ImportKind::Session, id) == Some(document) {
        return Ok(part);
    }
    if at.state.run(&key).is_none() {
        part.push(when, created(at, &key, task.map(TaskId::from), None));
        part.push_status(when, RunStatus::Paused, "its checkpoint was imported");
    }
    part.push(when, imported(at, ImportKind::Session, id, document));
    Ok(part)
}
