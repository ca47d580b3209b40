//! Attempts made, and the output of what failed.

use maud::{Markup, html};

use crate::model::agent_record::usage_text;
use crate::policy::report::data::{AttemptLine, ErrorDetails, FailureLine, Report};
use crate::policy::report::words;

use super::escape::{Line, Lines};
use super::parts::{badge, fact, mono, none, section, tone};

/// Every attempt, oldest first.
pub(super) fn attempts(report: &Report) -> Markup {
    let content = html! {
        @if report.attempts.is_empty() { (none("None.")) }
        @if report.attempts_omitted > 0 {
            @let before = words::count(report.attempts_omitted, "attempt");
            (none(&format!("The latest ones; {before} came before.")))
        }
        @for one in &report.attempts { (attempt(one)) }
    };
    section(
        "attempts",
        "Attempts made",
        Some(report.summary.attempts.total.to_string()),
        content,
    )
}

fn attempt(attempt: &AttemptLine) -> Markup {
    let tone = tone(attempt.outcome);
    html! {
        article class={ "attempt " (tone) } {
            h3 {
                "Iteration " (attempt.iteration) " · attempt " (attempt.number) " "
                (badge(tone, words::outcome(attempt.outcome)))
            }
            p.more {
                (words::date_time(attempt.started_at))
                @if let Some(took) = attempt.duration_ms { " · " (words::span(took)) }
            }
            @if let Some(approach) = &attempt.approach { p.approach { (Line(approach)) } }
            @if let Some(failure) = &attempt.failure { p.message { (Line(&failure.message)) } }
            dl.facts { (facts(attempt)) }
        }
    }
}

fn facts(attempt: &AttemptLine) -> Markup {
    let conditions = words::conditions(&attempt.conditions, &attempt.notes);
    html! {
        @if let Some(failure) = &attempt.failure { (fact("Failure", Line(&cause(attempt, failure)))) }
        @if !conditions.is_empty() { (fact("Conditions", Line(&conditions))) }
        @for feedback in &attempt.feedback {
            @let (tone, word) = if feedback.passed { ("good", "passed") } else { ("bad", "failed") };
            (fact(&format!("Check {}", feedback.name), html! { (badge(tone, word)) " " (Line(&feedback.summary)) }))
        }
        @if let Some(decision) = &attempt.decision {
            @let decided = format!("{}: {}", words::actions(&decision.actions), decision.reason);
            (fact("Decision", Line(&decided)))
        }
        @if let Some(changes) = attempt.changes {
            @let (modified, created, deleted) = (changes.modified, changes.created, changes.deleted);
            (fact("Files", format!("{modified} modified, {created} created, {deleted} deleted")))
        }
        @if let Some(used) = usage_text(attempt.cost_usd, attempt.tokens) { (fact("Cost", used)) }
        (fact("Subtask", Line(&attempt.subtask)))
        @if let Some(id) = &attempt.checkpoint_id { (fact("Checkpoint", mono(id.as_str()))) }
        @if let Some(log) = &attempt.log_path { (fact("Log", mono(log))) }
    }
}

fn cause(attempt: &AttemptLine, failure: &FailureLine) -> String {
    let mut parts = vec![
        failure.cause.as_str().to_owned(),
        failure.kind.as_str().replace('_', " "),
    ];
    parts.extend(words::ending(
        attempt.exit_code,
        attempt.signal.as_deref(),
        attempt.timed_out,
    ));
    parts.join(" · ")
}

/// The output of what failed.
pub(super) fn errors(errors: &[ErrorDetails]) -> Markup {
    let content = html! {
        @if errors.is_empty() { (none("None.")) }
        @for error in errors { (details(error)) }
    };
    section("errors", "Error details", None, content)
}

fn details(error: &ErrorDetails) -> Markup {
    html! {
        h3 { "Iteration " (error.attempt.iteration) " · attempt " (error.attempt.attempt) }
        p.message { (Line(&error.message)) }
        @if let Some(output) = &error.text { pre.output tabindex="0" { (Lines(output)) } }
        @if !error.evidence.is_empty() {
            p.more {
                "Recognised by "
                @for (number, evidence) in error.evidence.iter().enumerate() {
                    @if number > 0 { ", " }
                    (mono(&evidence.rule))
                }
            }
        }
    }
}
