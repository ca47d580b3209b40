//! Attempts for people: what each of a run came to, what its checks said, and the history of a subtask's.
//!
//! How a supervised run ended, and where its lane stands (C6).

use std::fmt::Write;
use std::time::Duration;

use comfy_table::Cell;

use super::super::ui::{Ui, escape};
use super::night::{in_short, tasks_text};
use super::{Table, column, date_time, in_words, moment, toned, words};
use crate::engine::base::clock;
use crate::engine::{Context, answers, run};
use crate::model::{Attempt, AttemptOutcome, Condition, FeedbackResult, Hint, Run, Standing};
use crate::policy::report::{iteration_state, run_state};
use crate::policy::retry::{manual_steps, next_command};
use crate::store::views::AttemptHistory;

/// The iterations of a run, a line an attempt.
pub(super) fn iterations_text(ui: &Ui, run: &Run) -> String {
    latest_iterations(ui, run, usize::MAX)
}

/// The `most` latest attempts, a line each.
pub(super) fn latest_iterations(ui: &Ui, run: &Run, most: usize) -> String {
    let header = [
        column("ITERATION", 0),
        column("STATUS", 2),
        column("ATTEMPT", 0),
        words("RESULT", 0),
        column("CHECKPOINT", 1),
        words("REASON", 0),
    ];
    let mut notes = String::new();
    // The same one of several attempts in a row is shown once.
    let mut reasons: Vec<(String, String)> = Vec::new();
    let mut rows: Vec<[String; 6]> = Vec::new();
    let iterations = run.latest_iterations(most).into_iter();
    let mut latest: Vec<_> = iterations
        .flat_map(|one| one.attempts.iter().map(move |attempt| (one, attempt)))
        .collect();
    latest.sort_by_key(|(_, attempt)| attempt.started_at);
    let mut latest = latest.split_off(latest.len().saturating_sub(most));
    latest.sort_by_key(|(iteration, attempt)| (iteration.number, attempt.number));
    for (iteration, attempt) in latest {
        let which = format!("{}.{}", iteration.number, attempt.number);
        for note in &attempt.notes {
            let _ = writeln!(notes, "  {which} {}", escape(note));
        }
        let reason = attempt
            .failure
            .as_ref()
            .map(|failure| escape(&failure.message))
            .unwrap_or_default();
        match reasons.last_mut() {
            _ if reason.is_empty() => {}
            Some((several, same)) if *same == reason => *several = format!("{several}, {which}"),
            _ => reasons.push((which, reason.clone())),
        }
        rows.push([
            iteration.number.to_string(),
            iteration_state(iteration.status).to_owned(),
            attempt.number.to_string(),
            result_of(attempt),
            attempt
                .checkpoint_id
                .as_ref()
                .map(|id| ui.id(id))
                .unwrap_or_default(),
            reason,
        ]);
    }
    // In a column of a few letters nothing can be read.
    let mut table = Table::new(ui, &header);
    for row in &rows {
        table.add_row(row);
    }
    let shown = if table.is_too_wide() {
        header.len() - 1
    } else {
        header.len()
    };
    let mut table = Table::new(ui, &header[..shown]);
    for row in rows {
        let cells = row
            .iter()
            .enumerate()
            .map(|(at, text)| match header[at].name() {
                "STATUS" | "RESULT" => toned(ui, text),
                _ => Cell::new(text),
            });
        table.add_row(cells.take(shown));
    }
    let below = |title: &str, text: String| {
        if text.is_empty() {
            text
        } else {
            format!("{title}\n{text}")
        }
    };
    let reasons = reasons
        .iter()
        .fold(String::new(), |mut text, (which, reason)| {
            let _ = writeln!(text, "  {which}: {reason}");
            text
        });
    let reasons = if shown < header.len() {
        below("Reasons", reasons)
    } else {
        String::new()
    };
    table.text() + &reasons + &below("Notes", notes)
}

fn result_of(attempt: &Attempt) -> String {
    let result = match attempt.outcome {
        Some(AttemptOutcome::Passed) => "passed",
        Some(AttemptOutcome::Failed) => "failed",
        Some(AttemptOutcome::Cancelled) => "cancelled",
        None => "under way",
    };
    let fallback = if attempt.fallback { ", fallback" } else { "" };
    let told = told_of(&attempt.conditions)
        .map(|told| format!(" ({told})"))
        .unwrap_or_default();
    format!("{result}{fallback}{told}")
}

/// Conditions that say something of the attempt itself; the others are shown with the decision.
fn told_of(conditions: &[Condition]) -> Option<String> {
    let told = conditions
        .iter()
        .filter(|one| !matches!(one, Condition::RetriesExhausted | Condition::NoCheckpoint));
    let told: Vec<String> = told.map(|one| in_words(one.as_str())).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// What is true of an attempt beside its outcome.
pub(crate) fn conditions_text(conditions: &[Condition], notes: &[String]) -> String {
    let mut text = told_of(conditions)
        .map(|told| format!("Conditions: {told}\n"))
        .unwrap_or_default();
    for note in notes {
        let _ = writeln!(text, "  {}", escape(note));
    }
    text
}

/// The history of all subtasks.
pub(crate) fn attempts_text(ui: &Ui, history: &AttemptHistory<'_>) -> String {
    if history.subtasks.is_empty() && history.stuck_subtasks.is_empty() {
        return "No attempts.\n".to_owned();
    }
    let mut table = Table::new(
        ui,
        &[
            column("SUBTASK", 0),
            column("STATUS", 1),
            column("SESSION", 5),
            column("STARTED", 3),
            words("APPROACH", 4),
            words("RESULT", 2),
        ],
    );
    for (id, subtask) in &history.subtasks {
        if subtask.attempts.is_empty() {
            table.add_row([escape(id).as_str(), subtask.status, "", "", "", ""]);
        }
        for attempt in &subtask.attempts {
            let result = if attempt.success {
                "passed".to_owned()
            } else {
                attempt.error.unwrap_or_default().to_owned()
            };
            table.add_row([
                escape(id),
                subtask.status.to_owned(),
                attempt.session.to_string(),
                date_time(attempt.timestamp),
                escape(&attempt.approach),
                escape(&result),
            ]);
        }
    }
    let mut text = table.text();
    for stuck in &history.stuck_subtasks {
        let _ = writeln!(
            text,
            "given up: {} ({})",
            escape(stuck.subtask_id),
            escape(stuck.reason)
        );
    }
    text
}

/// The counts where they are known, and the summary where it says something else.
pub(crate) fn said(result: &FeedbackResult) -> String {
    let counts = match (result.passed_count, result.failed_count) {
        (None, None) => return escape(&result.summary),
        (Some(passed), Some(failed)) => format!("{passed} passed, {failed} failed"),
        (Some(passed), None) => format!("{passed} passed"),
        // What counts errors alone, as a compiler does, says nothing of what is well.
        (None, Some(failed)) => format!("{failed} failed"),
    };
    if result.flaky || result.exit_code.is_none() {
        format!("{counts}: {}", escape(&result.summary))
    } else {
        counts
    }
}

/// `1.2s`.
pub(crate) fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}

/// Says where the report is that a bad end left (A6, S13).
pub(crate) fn note_report(driven: &run::Driven, ui: &Ui) {
    if let Some(path) = &driven.report {
        ui.note(&format!("report: {}", path.display()));
    }
}

/// A run for people: how it ended, its attempts, what can be done next.
pub(crate) fn driven_text(context: &Context, driven: &run::Driven, ui: &Ui) -> String {
    let ui = &ui.knowing(context);
    let run = &driven.run;
    let stopped_for = run.stopped_for.as_ref();
    let stopped_for = stopped_for.map(|reason| escape(&clock::local_times(reason)));
    let mut text = String::new();
    if let Some(reason) = stopped_for.as_ref().filter(|_| driven.stopped.is_some()) {
        text.push_str(&format!("{reason}\n"));
    }
    text += &format!("\n{}", iterations_text(ui, run));
    if let Some(reason) = stopped_for.filter(|_| driven.stopped.is_none()) {
        text.push_str(&format!("Stopped: {reason}\n"));
    }
    // Where a check cannot be started, nothing comes of what was decided.
    if let Some(decision) = driven
        .decision
        .as_ref()
        .filter(|_| driven.unstartable.is_none())
    {
        text.push_str(&format!(
            "Decision: {}\n",
            clock::local_times(&decision.reason)
        ));
    }
    if let Standing::Wait(until) = driven.standing
        && driven.stopped.is_none()
    {
        text.push_str(&format!(
            "Next attempt: {}.\n",
            moment(until, context.clock.now())
        ));
    }
    if let Some(night) = &driven.night {
        // Another attempt is worth nothing before that.
        let unrecoverable = run.failure.as_ref().filter(|failure| !failure.recoverable);
        let steps = unrecoverable.filter(|_| !run.status.is_done());
        let steps = steps.map_or_else(Vec::new, |failure| manual_steps(failure, None));
        let first = steps
            .first()
            .map_or_else(String::new, |step| format!("First:      {step}\n"));
        let more = tasks_text(run) + &first;
        return text + &in_short(ui, run, night, "", &more, &Hint::clone);
    }
    let next = next_command(run, driven.outlook).unwrap_or_else(|| vec!["resume"]);
    let next = context.placed(Hint::recover(next).run(&run.key));
    text += &format!(
        "Run {}: {}\nNext: {}\n",
        run.key,
        run_state(run),
        ui.command(&next)
    );
    text
}

/// For people: the stage of a lane, its records, and the commands that resume it and roll it back.
pub(crate) fn lane_text(lane: Option<&answers::LaneStanding>, ui: &Ui) -> String {
    let Some(lane) = lane else {
        return String::new();
    };
    let mut text = String::new();
    let answers::LaneStanding {
        stage,
        details,
        hints,
        back_to,
    } = lane;
    let text_of = |text: &Option<String>| escape(text.as_deref().unwrap_or("-"));
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "Stage:           {} ({})",
        text_of(&stage.current_stage),
        text_of(&details.stage_status)
    );
    let _ = writeln!(text, "Checkpoints:     {}", text_of(&stage.checkpoint_path));
    if !details.skipped_steps.is_empty() {
        let skipped = details.skipped_steps.join(", ");
        let _ = writeln!(text, "Done, skipped:   {}", escape(&skipped));
    }
    let next_actions = details.next_actions.as_deref().unwrap_or_default();
    for command in next_actions {
        let label = if *command == hints.resume_hint {
            "Resume:"
        } else {
            "Next:"
        };
        let _ = writeln!(text, "{label:<16} {}", escape(&ui.command(command)));
    }
    if !next_actions.contains(&hints.resume_hint) {
        let _ = writeln!(
            text,
            "Resume:          {}",
            escape(&ui.command(&hints.resume_hint))
        );
    }
    if let Some(stage) = back_to {
        let _ = writeln!(
            text,
            "Back to {}: {}",
            escape(stage),
            escape(&ui.command(&hints.rollback_hint))
        );
    }
    text
}
