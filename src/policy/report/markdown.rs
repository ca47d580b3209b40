//! The report as Markdown, in the sections that an escalation has (A6).
//!
//! Other people's text in it can end no table, list, fence or span.

use std::fmt::Write;

use super::data::{
    AttemptLine, CheckpointLine, ErrorDetails, FailureLine, Report, ReportKind, Stuck,
};
use super::words;
use super::words::MARK;
use crate::model::agent_record::usage_text;
use crate::model::time::Timestamp;
use crate::policy::text::{escape, escape_lines};

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{text}");
}

macro_rules! line {
    ($out:expr, $($argument:tt)*) => { line($out, format_args!($($argument)*)) };
}

/// Writes it.
pub(crate) fn markdown(report: &Report) -> String {
    let mut out = format!(
        "<!-- {MARK} -->\n# {}: {}\n\n",
        title(report.kind),
        code(report.summary.run.run_id.as_str())
    );
    night(&mut out, report);
    out.push_str(&heading(report));
    summary(&mut out, report);
    attempts(&mut out, report);
    errors(&mut out, &report.error_details);
    files(&mut out, report);
    actions(&mut out, report);
    timeline(&mut out, report);
    out
}

fn title(kind: ReportKind) -> &'static str {
    match kind {
        ReportKind::Escalation => "Escalation report",
        ReportKind::Incident => "Incident report",
        ReportKind::Run => "Run report",
    }
}

/// What came of it, and what a person must look at.
fn night(out: &mut String, report: &Report) {
    let Some(night) = &report.night else { return };
    let next = night.next.as_ref().map(|next| code(&next.to_string()));
    line!(out, "{}\n", night.line(next.as_deref()));
    for one in &night.to_look_at {
        line!(out, "- **To look at:** {}", text(&one.text.to_string()));
    }
    if !night.to_look_at.is_empty() {
        out.push('\n');
    }
}

/// What the sections are about: the stuck subtask, where it is one.
fn heading(report: &Report) -> String {
    match (report.stuck_subtasks.as_slice(), &report.subtask) {
        ([only], _) => format!("## Stuck Subtask: {}\n\n", text(&only.subtask_id)),
        ([], Some(subtask)) => format!("## Subtask: {}\n\n", text(subtask)),
        _ => format!("## Run: {}\n\n", text(report.summary.run.run_id.as_str())),
    }
}

fn summary(out: &mut String, report: &Report) {
    let summary = &report.summary;
    let run = &summary.run;
    line!(out, "### Summary\n\n{}\n", text(&summary.headline));
    let lane = if run.phase == "-" && run.lane == "-" {
        String::new()
    } else {
        format!(" ({}/{})", run.phase, run.lane)
    };
    line!(
        out,
        "- **Run:** {}{}, {}",
        code(run.run_id.as_str()),
        text(&lane),
        run.status
    );
    if let Some(task) = &run.task_id {
        line!(out, "- **Task:** {}", text(task.as_str()));
    }
    if let Some(reason) = &summary.stopped_because {
        line!(out, "- **Stopped because:** {}", text(reason));
    }
    if let Some(decision) = &summary.decision {
        line!(out, "- **Decision:** {}", words::actions(&decision.actions));
    }
    if let Some(failure) = &summary.failure {
        failed(out, failure);
    }
    let begun = words::date_time(summary.started_at);
    line!(
        out,
        "- **Time:** {begun}, {}",
        words::span(summary.duration_ms)
    );
    let (iterations, attempts) = (summary.iterations, summary.attempts);
    let total = run
        .iterations_total
        .map_or_else(String::new, |total| format!(" of {total}"));
    let given_up = if iterations.skipped > 0 {
        format!(", {} given up", iterations.skipped)
    } else {
        String::new()
    };
    line!(
        out,
        "- **Iterations:** {}{total} begun, {} completed{given_up}",
        iterations.begun,
        iterations.completed
    );
    line!(
        out,
        "- **Attempts:** {}, {} passed, {} failed",
        attempts.total,
        attempts.passed,
        attempts.failed
    );
    if let Some(used) = usage_text(summary.cost_usd, summary.tokens) {
        let session = summary.session_usage;
        let of_session = usage_text(session.cost_usd, session.tokens).filter(|text| *text != used);
        let of_session = of_session
            .map(|text| format!("; all runs of its session: {text}"))
            .unwrap_or_default();
        line!(out, "- **Cost:** {used}{of_session}");
    }
    for budget in &summary.budgets {
        let stopped = if summary.stopped_by == Some(budget.scope) {
            " (stopped it)"
        } else {
            ""
        };
        line!(
            out,
            "- **Budget, {}:** {} of {} used{stopped}",
            budget.scope.as_str(),
            budget.used,
            budget.limit
        );
    }
    if let Some(command) = &run.command {
        line!(out, "- **Command:** {}", code(command));
    }
    line!(out, "- **Work tree:** {}", code(&run.worktree.to_string()));
    checkpoints(out, report);
    stuck(out, &report.stuck_subtasks);
    out.push('\n');
}

fn failed(out: &mut String, failure: &FailureLine) {
    let severity = failure.severity.as_str();
    let at = failure
        .at
        .map(|at| format!(", {}", words::date_time(at)))
        .unwrap_or_default();
    let recoverable = words::recoverable(failure.recoverable);
    let (kind, cause) = (failure.kind.as_str(), failure.cause.as_str());
    line!(
        out,
        "- **Failure:** {kind} ({cause}), severity {severity}, {recoverable}{at}"
    );
    if !failure.conditions.is_empty() {
        line!(
            out,
            "- **Conditions:** {}",
            words::conditions(&failure.conditions, &[])
        );
    }
}

fn checkpoints(out: &mut String, report: &Report) {
    let all = &report.checkpoints;
    let named = |checkpoint: &Option<CheckpointLine>| {
        checkpoint.as_ref().map_or_else(
            || "none".to_owned(),
            |checkpoint| code(checkpoint.id.as_str()),
        )
    };
    line!(
        out,
        "- **Checkpoints:** {}; last good {}, initial {}, latest {}",
        all.count,
        named(&all.last_good),
        named(&all.initial),
        named(&all.latest)
    );
}

fn stuck(out: &mut String, stuck: &[Stuck]) {
    for stuck in stuck {
        let tried = words::count(stuck.attempt_count, "attempt");
        line!(
            out,
            "- **Stuck:** {} after {tried}: {}",
            code(&stuck.subtask_id),
            text(&stuck.reason)
        );
    }
}

fn attempts(out: &mut String, report: &Report) {
    line!(out, "### Attempts Made\n");
    if report.attempts.is_empty() {
        line!(out, "None.");
    }
    if report.attempts_omitted > 0 {
        line!(
            out,
            "The latest ones; {} came before.\n",
            words::count(report.attempts_omitted, "attempt")
        );
    }
    let several = report
        .attempts
        .iter()
        .any(|attempt| attempt.iteration != report.attempts[0].iteration);
    for (number, attempt) in report.attempts.iter().enumerate() {
        let iteration = if several {
            format!(" of iteration {}", attempt.iteration)
        } else {
            String::new()
        };
        let approach = attempt
            .approach
            .as_deref()
            .map_or_else(|| "(approach not recorded)".to_owned(), text);
        let outcome = words::outcome(attempt.outcome).to_uppercase();
        line!(
            out,
            "{}. Attempt {}{iteration}: {approach} - {outcome}",
            number + 1,
            attempt.number
        );
        // As far in as the item's text, so that it is part of the item.
        let inset = " ".repeat((number + 1).to_string().len() + 2);
        details(out, attempt, &inset);
    }
    out.push('\n');
}

fn details(out: &mut String, attempt: &AttemptLine, inset: &str) {
    let mut facts = vec![words::date_time(attempt.started_at)];
    facts.extend(attempt.duration_ms.map(words::span));
    facts.extend(
        words::ending(
            attempt.exit_code,
            attempt.signal.as_deref(),
            attempt.timed_out,
        )
        .map(|how| text(&how)),
    );
    facts.extend(usage_text(attempt.cost_usd, attempt.tokens));
    facts.push(format!("subtask {}", code(&attempt.subtask)));
    line!(out, "{inset}- {}", facts.join(", "));
    if let Some(failure) = &attempt.failure {
        line!(
            out,
            "{inset}- {}: {}",
            failure.cause.as_str(),
            text(&failure.message)
        );
    }
    let conditions = words::conditions(&attempt.conditions, &attempt.notes);
    if !conditions.is_empty() {
        line!(out, "{inset}- Conditions: {}", text(&conditions));
    }
    for feedback in &attempt.feedback {
        let verdict = if feedback.passed { "passed" } else { "failed" };
        line!(
            out,
            "{inset}- Check {}: {verdict} ({})",
            code(&feedback.name),
            text(&feedback.summary)
        );
    }
    if let Some(decision) = &attempt.decision {
        line!(
            out,
            "{inset}- Decision: {}: {}",
            words::actions(&decision.actions),
            text(&decision.reason)
        );
    }
    if let Some(changes) = attempt.changes {
        let (modified, created, deleted) = (changes.modified, changes.created, changes.deleted);
        line!(
            out,
            "{inset}- Files: {modified} modified, {created} created, {deleted} deleted"
        );
    }
    if let Some(id) = &attempt.checkpoint_id {
        line!(out, "{inset}- Checkpoint: {}", code(id.as_str()));
    }
    if let Some(log) = &attempt.log_path {
        line!(out, "{inset}- Log: {}", code(log));
    }
}

fn errors(out: &mut String, errors: &[ErrorDetails]) {
    line!(out, "### Error Details\n");
    if errors.is_empty() {
        line!(out, "None.\n");
    }
    for error in errors {
        let at = error.attempt;
        line!(
            out,
            "**Iteration {}, attempt {}:** {}\n",
            at.iteration,
            at.attempt,
            text(&error.message)
        );
        if let Some(output) = &error.text {
            line!(out, "{}\n", fenced("text", output));
        }
        let rules: Vec<String> = error
            .evidence
            .iter()
            .map(|evidence| code(&evidence.rule))
            .collect();
        if !rules.is_empty() {
            line!(out, "Recognised by {}.\n", rules.join(", "));
        }
    }
}

fn files(out: &mut String, report: &Report) {
    line!(out, "### Files Involved\n");
    let files = &report.files;
    if files.entries.is_empty() {
        line!(out, "None that is known.");
    }
    for file in &files.entries {
        let lines = match (file.added, file.deleted) {
            (Some(added), Some(deleted)) => format!("+{added} −{deleted}"),
            _ => "binary".to_owned(),
        };
        let names = file
            .attempts
            .iter()
            .map(|name| format!("{}.{}", name.iteration, name.attempt));
        let names: Vec<String> = names.collect();
        line!(
            out,
            "- {} ({}, {lines}; attempt {})",
            code(&file.path.to_lossy()),
            file.kind.as_str(),
            names.join(", ")
        );
    }
    if files.total > files.entries.len() {
        line!(out, "- … and {} more", files.total - files.entries.len());
    }
    out.push('\n');
}

fn actions(out: &mut String, report: &Report) {
    line!(out, "### Recommended Actions\n");
    if report.recommended_actions.is_empty() {
        line!(out, "None: nothing is left to do.");
    }
    for action in &report.recommended_actions {
        let mark = if action.by_policy {
            " **(recommended)**"
        } else {
            ""
        };
        line!(out, "- [ ] {}{mark}", text(&action.description));
        if let Some(command) = &action.command {
            line!(out, "  {}", fenced("sh", command).replace('\n', "\n  "));
        }
    }
    out.push('\n');
}

fn timeline(out: &mut String, report: &Report) {
    line!(out, "### Timeline\n");
    if report.timeline_omitted > 0 {
        line!(
            out,
            "The latest part; {} came before.\n",
            words::count(report.timeline_omitted, "moment")
        );
    }
    line!(out, "| Time (UTC) | What | Details |\n| --- | --- | --- |");
    let mut day: Option<String> = None;
    for moment in &report.timeline {
        let at = when(&mut day, moment.at);
        let took = moment
            .duration_ms
            .map(|took| format!(" ({})", words::span(took)))
            .unwrap_or_default();
        let detail = moment.detail.as_deref().map(text).unwrap_or_default();
        line!(out, "| {at} | {}{took} | {detail} |", text(&moment.title));
    }
    line!(out, "\nMade {}.", words::date_time(report.generated_at));
}

/// The time; with the date where another day begins.
fn when(day: &mut Option<String>, at: Timestamp) -> String {
    let date = words::date(at);
    if day.as_ref() == Some(&date) {
        return words::time(at);
    }
    *day = Some(date.clone());
    format!("{date} {}", words::time(at))
}

/// Text within a paragraph, a list or a table.
pub(crate) fn text(text: &str) -> String {
    let visible = escape(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let chars: Vec<char> = visible.chars().collect();
    let mut out = String::with_capacity(visible.len() + 8);
    for (at, c) in chars.iter().enumerate() {
        let between_words = |at: usize| {
            let word = |at: Option<usize>| {
                at.and_then(|at| chars.get(at))
                    .is_some_and(|c| c.is_alphanumeric())
            };
            word(at.checked_sub(1)) && word(Some(at + 1))
        };
        let special = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '$' => true,
            '_' => !between_words(at),
            '#' | '-' | '+' | '=' | '!' => at == 0,
            // `1. ` would begin a list.
            '.' | ')' => at > 0 && chars[..at].iter().all(char::is_ascii_digit),
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(*c);
    }
    out
}

/// A code span: as many backticks around it as it takes. Not for tables, where a bar would end it.
pub(crate) fn code(text: &str) -> String {
    let visible = escape(text);
    if visible.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let ticks = "`".repeat(longest_run(&visible) + 1);
    let apart = if visible.starts_with(['`', ' ']) || visible.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{ticks}{apart}{visible}{apart}{ticks}")
}

/// A block of lines, fenced with more backticks than it holds.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let visible = escape_lines(text);
    let fence = "`".repeat(longest_run(&visible).max(2) + 1);
    format!(
        "{fence}{language}\n{}\n{fence}",
        visible.trim_end_matches('\n')
    )
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_starts_nothing_and_ends_nothing() {
        for (given, expected) in [
            (
                "plain, VERIFICATION_FAILED (1).",
                "plain, VERIFICATION_FAILED (1).",
            ),
            ("| a | b |", "\\| a \\| b \\|"),
            (
                "<script>alert(1)</script>",
                "\\<script\\>alert(1)\\</script\\>",
            ),
            ("**bold** _x_ `c`", "\\*\\*bold\\*\\* \\_x\\_ \\`c\\`"),
            ("[a](http://x)", "\\[a\\](http://x)"),
            ("# head", "\\# head"),
            ("- item", "\\- item"),
            ("--- a.rs", "\\--- a.rs"),
            ("12. item", "12\\. item"),
            ("a\n\n# head\r\n| b", "a # head \\| b"),
            ("\u{1b}[31m&lt;", "\\\\u{1b}\\[31m\\&lt;"),
        ] {
            assert_eq!(text(given), expected);
        }
    }

    #[test]
    fn code_and_fences_hold_their_own_marks() {
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("a|b\nc"), "`a|b\\nc`");
        assert_eq!(code(" "), "(empty)");
        assert_eq!(
            fenced("text", "a\n```\n# b\n"),
            "````text\na\n```\n# b\n````"
        );
        assert_eq!(fenced("sh", "x"), "```sh\nx\n```");
    }
}
