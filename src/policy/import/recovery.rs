//! `recovery.json` (L1): the loop's count of errors and its cooldown, so that its budget goes on where it stood.

use serde_json::{Value, json};

use crate::model::decision::{Action, Decision, Strategy};
use crate::model::event::Payload;
use crate::model::feedback::FeedbackResults;
use crate::model::import::ImportKind;
use crate::model::run::{AttemptOutcome, RunKey};

use super::part::{ImportInput, Part, created, imported, known};
use super::past_attempt::{PastAttempt, failure_of};
use super::read::{Place, Problem};

/// The run that a loop's cooldown is taken over into, where none is named.
pub(crate) const LOOP_RUN: &str = "imported-loop";

/// More errors than any loop's budget has.
const MAX_ERRORS: u32 = 1000;

pub(super) fn read(document: &Value, at: &ImportInput<'_>) -> Result<Part, Problem> {
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
    let mut part = Part {
        key: key.clone(),
        events: Vec::new(),
        left_out: Vec::new(),
    };
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
    let mut counted = run.map_or(0, |run| run.error_count);
    match run {
        None => part.events.push((at.now, created(at, &key, None, None))),
        Some(_) if errors < counted => {
            part.events.push((at.now, Payload::RetryReset {}));
            counted = 0;
        }
        Some(_) => {}
    }
    let iteration = run.map_or(1, |run| run.current_iteration);
    let attempts = run
        .and_then(|run| run.iterations.get(iteration))
        .map_or(0, |one| one.attempts.len());
    let mut number = u32::try_from(attempts).unwrap_or(u32::MAX);
    for error in counted..errors {
        number = number.saturating_add(1);
        let is_last = error + 1 == errors;
        let message = last_error.filter(|_| is_last);
        let attempt = PastAttempt {
            iteration,
            number,
            subtask: format!("{}/iteration-{iteration}", key.run_id),
            session: key.run_id.to_string(),
            approach: None,
            started: last_error_at,
            ended: last_error_at,
            outcome: AttemptOutcome::Failed,
            failure: Some(failure_of(message, at)),
            feedback_results: FeedbackResults::new(),
        };
        let [begin, (when, mut end)] = attempt.events();
        if let Payload::AttemptEnded(end) = &mut end
            && is_last
        {
            end.decision = Some(Decision {
                actions: vec![Action::Retry],
                strategy: Some(Strategy::RetryWithContext),
                not_before: cooldown,
                attempts_used: errors,
                attempts_left: None,
                stopped_by: None,
                reason: "the loop continued after its cooldown, according to its state".to_owned(),
                decided_at: last_error_at,
            });
        }
        part.events.extend([begin, (when, end)]);
    }
    part.events
        .push((at.now, imported(at, ImportKind::Recovery, "", &view)));
    Ok(part)
}
