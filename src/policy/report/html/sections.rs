//! The sections of the page: its head, the attempts with the output of what failed, and the story moment by moment.

use maud::{Markup, html};

use super::{Line, Lines, badge, fact, mono, none, section, tone};
use crate::model::agent_record::usage_text;
use crate::model::decision::Budget;
use crate::policy::report::data::{
    AttemptLine, CheckpointLine, ErrorDetails, FailureLine, Moment, MomentKind, Report, Stuck,
    Summary,
};
use crate::policy::report::words;

/// Title, status, one sentence, figures, failure, facts.
pub(super) fn header(report: &Report, title: &str) -> Markup {
    let summary = &report.summary;
    let content = html! {
        @if let Some(night) = &report.night {
            @for one in &night.to_look_at { p.look { (badge("warn", "to look at")) " " (Line(&one.text.to_string())) } }
        }
        @if let Some(failure) = &summary.failure { (failed(failure)) }
        @for subtask in &report.stuck_subtasks { (stuck(subtask)) }
        (facts(summary))
    };
    html! {
        header {
            p.kind { (title) @if let Some(subtask) = &report.subtask { " · subtask " (Line(subtask)) } }
            h1 {
                (Line(summary.run.run_id.as_str())) " "
                (badge(status_tone(summary.run.status), &summary.run.status.replace('_', " ")))
            }
            p.lead { (Line(&summary.headline)) }
            @if let Some(night) = &report.night { p.night { (Line(&night.line(None))) } }
            (figures(report))
        }
        (section("summary", "Summary", None, content))
    }
}

/// What a status looks like.
fn status_tone(status: &str) -> &'static str {
    match status {
        "complete" => "good",
        "failed" | "escalated" | "cancelled" => "bad",
        "parked" | "paused" | "blocked" | "rolled_back" => "warn",
        _ => "calm",
    }
}

fn figures(report: &Report) -> Markup {
    let summary = &report.summary;
    let good = report.checkpoints.last_good.as_ref();
    let good = good.map_or_else(
        || "no good one".to_owned(),
        |good| format!("last good @{}", good.seq),
    );
    let completed = html! {
        (summary.iterations.completed)
        @if let Some(total) = summary.run.iterations_total { " " small { "of " (total) } }
    };
    let failed = html! { (summary.attempts.failed) " " small { "of " (summary.attempts.total) } };
    html! {
        dl.figures {
            (fact("iterations completed", completed))
            (fact("attempts failed", failed))
            (fact(&format!("since {}", words::date_time(summary.started_at)), words::span(summary.duration_ms)))
            (fact(&format!("checkpoints, {good}"), report.checkpoints.count))
        }
    }
}

fn failed(failure: &FailureLine) -> Markup {
    let severity = format!("{} severity", failure.severity.as_str());
    let place = match (failure.iteration, failure.attempt) {
        (Some(iteration), Some(attempt)) => format!("iteration {iteration}, attempt {attempt}"),
        (Some(iteration), None) => format!("iteration {iteration}"),
        _ => String::new(),
    };
    let at = failure.at.map(words::date_time).unwrap_or_default();
    let kind = failure.kind.as_str().replace('_', " ");
    let recoverable = words::recoverable(failure.recoverable);
    let mut words = vec![kind, severity, recoverable.to_owned(), place, at];
    let conditions = failure.conditions.iter();
    words.extend(conditions.map(|condition| words::condition(*condition)));
    words.retain(|word| !word.is_empty());
    html! {
        div.failure {
            p.cause { (failure.cause.as_str()) }
            p.message { (Line(&failure.message)) }
            p.more { (Line(&words.join(" · "))) }
        }
    }
}

fn stuck(stuck: &Stuck) -> Markup {
    html! {
        div.stuck {
            p { (badge("bad", "stuck")) " " (mono(&stuck.subtask_id)) }
            p.more { (Line(&stuck.reason)) " · after " (words::count(stuck.attempt_count, "attempt")) }
        }
    }
}

fn facts(summary: &Summary) -> Markup {
    let run = &summary.run;
    let decision = summary.decision.as_ref().map(|decision| {
        let until = decision
            .not_before
            .map(|until| format!(", not before {}", words::date_time(until)));
        format!(
            "{}{}",
            words::actions(&decision.actions),
            until.unwrap_or_default()
        )
    });
    let place =
        (run.phase != "-" || run.lane != "-").then(|| format!("{} / {}", run.phase, run.lane));
    html! {
        dl.facts {
            @if let Some(reason) = &summary.stopped_because { (fact("Why it stopped", Line(reason))) }
            @if let Some(decision) = decision { (fact("Decision", Line(&decision))) }
            @if let Some(task) = &run.task_id { (fact("Task", Line(task.as_str()))) }
            @if let Some(place) = place { (fact("Phase and lane", Line(&place))) }
            @if let Some(command) = &run.command { (fact("Command", mono(command))) }
            @if let Some(used) = usage_text(summary.cost_usd, summary.tokens) { (fact("Cost", used)) }
            (fact("Work tree", mono(&run.worktree.to_string())))
            (fact("Last event", words::date_time(summary.last_event_at)))
        }
        @if !summary.budgets.is_empty() {
            div.budgets {
                @for budget in &summary.budgets { (meter(budget, summary.stopped_by == Some(budget.scope))) }
            }
        }
    }
}

/// A bar of used and left attempts, with the numbers beside it.
fn meter(budget: &Budget, stopped: bool) -> Markup {
    #[allow(clippy::cast_precision_loss, reason = "the length of a bar")]
    let share = (budget.used as f64 / budget.limit.max(1) as f64 * 100.0).min(100.0);
    let status_tone = if budget.left == 0 { "bad" } else { "calm" };
    html! {
        div class={ "budget " (status_tone) } {
            p {
                (budget.scope.as_str()) " budget "
                small { (budget.used) " of " (budget.limit) " used" @if stopped { " · stopped it" } }
            }
            svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
                rect.track width="100" height="4" {}
                rect.fill width=(format!("{share:.1}")) height="4" {}
            }
        }
    }
}

/// Where to go back to.
pub(super) fn checkpoints(report: &Report) -> Markup {
    let all = &report.checkpoints;
    let list = html! {
        dl.points {
            @for (name, checkpoint) in [("Last good", &all.last_good), ("Initial", &all.initial), ("Latest", &all.latest)] {
                (fact(name, html! { @if let Some(checkpoint) = checkpoint { (point(checkpoint)) } @else { "none" } }))
            }
        }
    };
    section(
        "checkpoints",
        "Checkpoints",
        Some(all.count.to_string()),
        list,
    )
}

fn point(checkpoint: &CheckpointLine) -> Markup {
    html! {
        (mono(checkpoint.id.as_str()))
        small {
            "@" (checkpoint.seq) " · " (checkpoint.verdict.as_str())
            " · after iteration " (checkpoint.after_iteration) " · " (words::date_time(checkpoint.created_at))
        }
    }
}

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
            dl.facts { (attempt_facts(attempt)) }
        }
    }
}

fn attempt_facts(attempt: &AttemptLine) -> Markup {
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
            (fact("Files", words::changes(changes)))
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

/// Every moment, oldest first, with the date where a day begins.
pub(super) fn timeline(report: &Report) -> Markup {
    let days = report
        .timeline
        .chunk_by(|one, next| words::date(one.at) == words::date(next.at));
    let content = html! {
        @if report.timeline_omitted > 0 {
            @let before = words::count(report.timeline_omitted, "moment");
            (none(&format!("The latest part; {before} came before.")))
        }
        ol.timeline {
            @for day in days {
                li.day { (words::date(day[0].at)) }
                @for moment in day { (entry(moment)) }
            }
        }
    };
    section("timeline", "Timeline", Some("UTC".to_owned()), content)
}

fn entry(moment: &Moment) -> Markup {
    let kind = moment.kind.class();
    let tone = match moment.kind {
        MomentKind::Attempt => tone(moment.outcome),
        _ => kind,
    };
    let id = moment
        .checkpoint_id
        .as_ref()
        .filter(|_| moment.kind == MomentKind::Checkpoint);
    html! {
        li class={ (kind) " " (tone) } {
            time datetime=(moment.at) { (words::time(moment.at)) }
            div {
                p {
                    (Line(&moment.title))
                    @if let Some(took) = moment.duration_ms { " " small { (words::span(took)) } }
                    @if let Some(id) = id { " " (mono(id.as_str())) }
                }
                @if let Some(detail) = &moment.detail { p.more { (Line(detail)) } }
            }
        }
    }
}
