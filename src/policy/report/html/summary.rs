//! The head of the page: what the report is about, how the run stands, why.

use maud::{Markup, html};

use super::escape::Line;
use super::parts::{badge, fact, mono, section};
use crate::model::{agent_record::usage_text, decision::Budget, failure::Severity};
use crate::policy::report::{
    data::{CheckpointLine, FailureLine, Report, Stuck, Summary},
    words,
};

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
                (badge(tone(summary.run.status), &summary.run.status.replace('_', " ")))
            }
            p.lead { (Line(&summary.headline)) }
            @if let Some(night) = &report.night { p.night { (Line(&night.line(None))) } }
            (figures(report))
        }
        (section("summary", "Summary", None, content))
    }
}

/// What a status looks like.
pub(super) fn tone(status: &str) -> &'static str {
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
    let severity = match failure.severity {
        Severity::Low => "low severity",
        Severity::Medium => "medium severity",
        Severity::High => "high severity",
    };
    let place = match (failure.iteration, failure.attempt) {
        (Some(iteration), Some(attempt)) => format!("iteration {iteration}, attempt {attempt}"),
        (Some(iteration), None) => format!("iteration {iteration}"),
        _ => String::new(),
    };
    let at = failure.at.map(words::date_time).unwrap_or_default();
    let recoverable = if failure.recoverable {
        "recoverable"
    } else {
        "not recoverable"
    };
    let mut words = vec![
        failure.kind.as_str().replace('_', " "),
        severity.to_owned(),
        recoverable.to_owned(),
        place,
        at,
    ];
    words.extend(
        failure
            .conditions
            .iter()
            .map(|condition| words::condition(*condition).to_owned()),
    );
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
    let tone = if budget.left == 0 { "bad" } else { "calm" };
    html! {
        div class={ "budget " (tone) } {
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
