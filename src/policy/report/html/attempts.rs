//! Attempts made, and the output of what failed.

use crate::model::run::AttemptOutcome;
use crate::policy::report::data::{AttemptLine, ErrorDetails, Report};
use crate::policy::report::words;

use super::escape::{lines, text};
use super::{badge, fact, mono, section};

/// What an outcome looks like.
pub fn tone(outcome: Option<AttemptOutcome>) -> &'static str {
    match outcome {
        Some(AttemptOutcome::Passed) => "good",
        Some(AttemptOutcome::Failed) => "bad",
        Some(AttemptOutcome::Cancelled) => "warn",
        None => "calm",
    }
}

/// Every attempt, oldest first.
pub fn attempts(report: &Report) -> String {
    let mut out = String::new();
    if report.attempts.is_empty() {
        out.push_str("<p class=\"none\">None.</p>\n");
    }
    if report.attempts_omitted > 0 {
        let before = words::count(report.attempts_omitted, "attempt");
        out.push_str(&format!("<p class=\"none\">The latest ones; {before} came before.</p>\n"));
    }
    out.extend(report.attempts.iter().map(attempt));
    section("attempts", &format!("Attempts made <small>{}</small>", report.summary.attempts.total), &out)
}

fn attempt(attempt: &AttemptLine) -> String {
    let tone = tone(attempt.outcome);
    let took = attempt.duration_ms.map(|took| format!(" · {}", words::span(took))).unwrap_or_default();
    let mut out = format!(
        "<article class=\"attempt {tone}\">\n<h3>Iteration {} · attempt {} {}</h3>\n<p class=\"more\">{}{took}</p>\n",
        attempt.iteration,
        attempt.number,
        badge(tone, words::outcome(attempt.outcome)),
        words::date_time(attempt.started_at)
    );
    if let Some(approach) = &attempt.approach {
        out.push_str(&format!("<p class=\"approach\">{}</p>\n", text(approach)));
    }
    if let Some(failure) = &attempt.failure {
        out.push_str(&format!("<p class=\"message\">{}</p>\n", text(&failure.message)));
    }
    out.push_str("<dl class=\"facts\">\n");
    out.push_str(&facts(attempt));
    out.push_str("</dl>\n</article>\n");
    out
}

fn facts(attempt: &AttemptLine) -> String {
    let mut out = String::new();
    if let Some(failure) = &attempt.failure {
        let ending = words::ending(attempt.exit_code, attempt.signal.as_deref(), attempt.timed_out);
        let mut parts = vec![failure.cause.as_str().to_owned(), failure.kind.as_str().replace('_', " ")];
        parts.extend(ending);
        out.push_str(&fact("Failure", &text(&parts.join(" · "))));
    }
    let conditions = words::conditions(&attempt.conditions, &attempt.notes);
    if !conditions.is_empty() {
        out.push_str(&fact("Conditions", &text(&conditions)));
    }
    for feedback in &attempt.feedback {
        let verdict = if feedback.passed { badge("good", "passed") } else { badge("bad", "failed") };
        out.push_str(&fact(
            &format!("Check {}", text(&feedback.name)),
            &format!("{verdict} {}", text(&feedback.summary)),
        ));
    }
    if let Some(decision) = &attempt.decision {
        let decided = format!("{}: {}", words::actions(&decision.actions), decision.reason);
        out.push_str(&fact("Decision", &text(&decided)));
    }
    if let Some(changes) = attempt.changes {
        let (modified, created, deleted) = (changes.modified, changes.created, changes.deleted);
        out.push_str(&fact("Files", &format!("{modified} modified, {created} created, {deleted} deleted")));
    }
    out.push_str(&fact("Subtask", &text(&attempt.subtask)));
    if let Some(id) = &attempt.checkpoint_id {
        out.push_str(&fact("Checkpoint", &mono(id)));
    }
    if let Some(log) = &attempt.log_path {
        out.push_str(&fact("Log", &mono(log)));
    }
    out
}

/// The output of what failed.
pub fn errors(errors: &[ErrorDetails]) -> String {
    let mut out = String::new();
    if errors.is_empty() {
        out.push_str("<p class=\"none\">None.</p>\n");
    }
    for error in errors {
        let at = error.attempt;
        out.push_str(&format!(
            "<h3>Iteration {} · attempt {}</h3>\n<p class=\"message\">{}</p>\n",
            at.iteration,
            at.attempt,
            text(&error.message)
        ));
        if let Some(output) = &error.text {
            out.push_str(&format!("<pre class=\"output\" tabindex=\"0\">{}</pre>\n", lines(output)));
        }
        let rules: Vec<String> = error.evidence.iter().map(|evidence| mono(&evidence.rule)).collect();
        if !rules.is_empty() {
            out.push_str(&format!("<p class=\"more\">Recognised by {}</p>\n", rules.join(", ")));
        }
    }
    section("errors", "Error details", &out)
}
