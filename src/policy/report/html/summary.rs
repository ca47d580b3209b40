//! The head of the page: what the report is about, how it stands, why.

use crate::model::decision::Budget;
use crate::model::failure::Severity;
use crate::policy::report::data::{CheckpointLine, FailureLine, Report, Stuck, Summary};
use crate::policy::report::words;

use super::escape::text;
use super::{badge, fact, mono, section};

/// Title, status, one sentence, figures, failure, facts.
pub fn header(report: &Report, title: &str) -> String {
    let summary = &report.summary;
    let subtask = report.subtask.as_deref().map(|subtask| format!(" · subtask {}", text(subtask)));
    let mut out = format!(
        "<header>\n<p class=\"kind\">{title}{}</p>\n<h1>{} {}</h1>\n<p class=\"lead\">{}</p>\n",
        subtask.unwrap_or_default(),
        text(&summary.run.run_id),
        badge(tone(summary.run.status), &summary.run.status.replace('_', " ")),
        text(&summary.headline)
    );
    out.push_str(&figures(report));
    out.push_str("</header>\n");
    let mut facts = String::new();
    if let Some(failure) = &summary.failure {
        facts.push_str(&failed(failure));
    }
    facts.push_str(&stuck(&report.stuck_subtasks));
    facts.push_str(&self::facts(summary));
    out + &section("summary", "Summary", &facts)
}

/// What a status looks like.
pub fn tone(status: &str) -> &'static str {
    match status {
        "complete" => "good",
        "failed" | "escalated" | "cancelled" => "bad",
        "parked" | "paused" | "blocked" | "rolled_back" => "warn",
        _ => "calm",
    }
}

fn figures(report: &Report) -> String {
    let summary = &report.summary;
    let (iterations, attempts) = (summary.iterations, summary.attempts);
    let total = summary.run.iterations_total.map_or_else(String::new, |total| format!(" <small>of {total}</small>"));
    let figure = |number: String, what: String| fact(&what, &number);
    let mut out = String::from("<dl class=\"figures\">\n");
    out.push_str(&figure(format!("{}{total}", iterations.completed), "iterations completed".to_owned()));
    let failed = format!("{} <small>of {}</small>", attempts.failed, attempts.total);
    out.push_str(&figure(failed, "attempts failed".to_owned()));
    out.push_str(&figure(words::span(summary.duration_ms), format!("since {}", words::date_time(summary.started_at))));
    let count = report.checkpoints.count;
    let good = report.checkpoints.last_good.as_ref();
    let good = good.map_or_else(|| "no good one".to_owned(), |good| format!("last good @{}", good.seq));
    out.push_str(&figure(count.to_string(), format!("checkpoints, {good}")));
    out.push_str("</dl>\n");
    out
}

fn failed(failure: &FailureLine) -> String {
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
    let recoverable = if failure.recoverable { "recoverable" } else { "not recoverable" };
    let mut words =
        vec![failure.kind.as_str().replace('_', " "), severity.to_owned(), recoverable.to_owned(), place, at];
    words.extend(failure.conditions.iter().map(|condition| words::condition(*condition).to_owned()));
    words.retain(|word| !word.is_empty());
    format!(
        "<div class=\"failure\">\n<p class=\"cause\">{}</p>\n<p class=\"message\">{}</p>\n<p class=\"more\">{}</p>\n</div>\n",
        failure.cause.as_str(),
        text(&failure.message),
        text(&words.join(" · "))
    )
}

fn stuck(stuck: &[Stuck]) -> String {
    let entry = |stuck: &Stuck| {
        let tried = words::count(stuck.attempt_count, "attempt");
        format!(
            "<div class=\"stuck\"><p>{} {}</p><p class=\"more\">{} · after {tried}</p></div>\n",
            badge("bad", "stuck"),
            mono(&stuck.subtask_id),
            text(&stuck.reason)
        )
    };
    stuck.iter().map(entry).collect()
}

fn facts(summary: &Summary) -> String {
    let run = &summary.run;
    let mut out = String::from("<dl class=\"facts\">\n");
    if let Some(reason) = &summary.stopped_because {
        out.push_str(&fact("Why it stopped", &text(reason)));
    }
    if let Some(decision) = &summary.decision {
        let until = decision.not_before.map(|until| format!(", not before {}", words::date_time(until)));
        let decided = format!("{}{}", words::actions(&decision.actions), until.unwrap_or_default());
        out.push_str(&fact("Decision", &text(&decided)));
    }
    if let Some(task) = &run.task_id {
        out.push_str(&fact("Task", &text(task)));
    }
    if run.phase != "-" || run.lane != "-" {
        out.push_str(&fact("Phase and lane", &text(&format!("{} / {}", run.phase, run.lane))));
    }
    if let Some(command) = &run.command {
        out.push_str(&fact("Command", &mono(command)));
    }
    out.push_str(&fact("Work tree", &mono(&run.worktree)));
    out.push_str(&fact("Last event", &words::date_time(summary.last_event_at)));
    out.push_str("</dl>\n");
    if !summary.budgets.is_empty() {
        out.push_str("<div class=\"budgets\">\n");
        out.extend(summary.budgets.iter().map(|budget| meter(budget, summary.stopped_by == Some(budget.scope))));
        out.push_str("</div>\n");
    }
    out
}

/// A bar of used and left attempts, with the numbers beside it.
fn meter(budget: &Budget, stopped: bool) -> String {
    let share = (f64::from(budget.used) / f64::from(budget.limit.max(1)) * 100.0).min(100.0);
    let class = if budget.left == 0 { "bad" } else { "calm" };
    let mark = if stopped { " · stopped it" } else { "" };
    format!(
        "<div class=\"budget {class}\"><p>{} budget <small>{} of {} used{mark}</small></p>\
         <svg viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect class=\"track\" width=\"100\" height=\"4\"/><rect class=\"fill\" width=\"{share:.1}\" height=\"4\"/></svg></div>\n",
        budget.scope.as_str(),
        budget.used,
        budget.limit
    )
}

/// Where to go back to.
pub fn checkpoints(report: &Report) -> String {
    let all = &report.checkpoints;
    let mut list = String::from("<dl class=\"points\">\n");
    for (name, checkpoint) in [("Last good", &all.last_good), ("Initial", &all.initial), ("Latest", &all.latest)] {
        list.push_str(&fact(name, &checkpoint.as_ref().map_or_else(|| "none".to_owned(), point)));
    }
    list.push_str("</dl>\n");
    section("checkpoints", &format!("Checkpoints <small>{}</small>", all.count), &list)
}

fn point(checkpoint: &CheckpointLine) -> String {
    format!(
        "{}<small>@{} · {} · after iteration {} · {}</small>",
        mono(&checkpoint.id),
        checkpoint.seq,
        checkpoint.verdict.as_str(),
        checkpoint.after_iteration,
        words::date_time(checkpoint.created_at)
    )
}
