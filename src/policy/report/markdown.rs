//! The report as Markdown, in the sections that an escalation has (A6).
//!
//! Other people's text in it can end no table, list, fence or span.

use std::fmt::Write;

use itertools::Itertools as _;

use super::data::{
    AttemptCounts, AttemptLine, AttemptRef, CheckpointLine, ErrorDetails, FailureLine,
    IterationCounts, Report, Stuck,
};
use super::timeline::with_times;
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
        report.title(),
        code(report.summary.run.run_id.as_str())
    );
    night(&mut out, report);
    out.push_str(&heading(report));
    summary(&mut out, report);
    tasks(&mut out, report);
    attempts(&mut out, report);
    errors(&mut out, &report.error_details);
    files(&mut out, report);
    actions(&mut out, report);
    timeline(&mut out, report);
    out
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
    let has_lane = run.phase != "-" || run.lane != "-";
    let lane = has_lane.then(|| text(&format!(" ({}/{})", run.phase, run.lane)));
    let (id, lane) = (code(run.run_id.as_str()), lane.unwrap_or_default());
    let state = report.night.as_ref().map(|night| night.state.as_str());
    let state = state.unwrap_or(run.status);
    line!(out, "- **Run:** {id}{lane}, {state}");
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
    let took = words::span(summary.duration_ms);
    line!(out, "- **Time:** {begun}, {took}");
    let IterationCounts {
        begun, completed, ..
    } = summary.iterations;
    let total = run.iterations_total.map(|total| format!(" of {total}"));
    let total = total.unwrap_or_default();
    let given_up = words::given_up(summary.iterations.skipped);
    line!(
        out,
        "- **Iterations:** {begun}{total} begun, {completed} passed{given_up}"
    );
    let AttemptCounts {
        total,
        passed,
        failed,
        ..
    } = summary.attempts;
    line!(
        out,
        "- **Attempts:** {total}, {passed} passed, {failed} failed"
    );
    if let Some(used) = usage_text(summary.cost_usd, summary.tokens) {
        let session = summary.session_usage;
        let of_session = usage_text(session.cost_usd, session.tokens).filter(|text| *text != used);
        let of_session = of_session.map(|text| format!("; all runs of its session: {text}"));
        line!(out, "- **Cost:** {used}{}", of_session.unwrap_or_default());
    }
    for budget in &summary.budgets {
        let is_stop = summary.stopped_by == Some(budget.scope);
        let stopped = if is_stop { " (stopped it)" } else { "" };
        let (scope, used, limit) = (budget.scope.as_str(), budget.used, budget.limit);
        line!(
            out,
            "- **Budget, {scope}:** {used} of {limit} used{stopped}"
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
    let at = failure.at.map(|at| format!(", {}", words::date_time(at)));
    let at = at.unwrap_or_default();
    let recoverable = words::recoverable(failure.recoverable);
    let (kind, cause) = (failure.kind.as_str(), failure.cause.as_str());
    line!(
        out,
        "- **Failure:** {kind} ({cause}), severity {severity}, {recoverable}{at}"
    );
    if !failure.conditions.is_empty() {
        let conditions = words::conditions(&failure.conditions, &[]);
        line!(out, "- **Conditions:** {conditions}");
    }
}

fn checkpoints(out: &mut String, report: &Report) {
    let all = &report.checkpoints;
    let named = |checkpoint: &Option<CheckpointLine>| {
        let id = checkpoint.as_ref().map(|one| code(one.id.as_str()));
        id.unwrap_or_else(|| "none".to_owned())
    };
    let (count, good) = (all.count, named(&all.last_good));
    let (initial, latest) = (named(&all.initial), named(&all.latest));
    line!(
        out,
        "- **Checkpoints:** {count}; last good {good}, initial {initial}, latest {latest}"
    );
}

fn stuck(out: &mut String, stuck: &[Stuck]) {
    for stuck in stuck {
        let tried = words::count(stuck.attempt_count, "attempt");
        let (id, reason) = (code(&stuck.subtask_id), text(&stuck.reason));
        line!(out, "- **Stuck:** {id} after {tried}: {reason}");
    }
}

fn tasks(out: &mut String, report: &Report) {
    if report.tasks.is_empty() {
        return;
    }
    line!(
        out,
        "### Tasks\n\n{}\n",
        words::tasks_counted(&report.tasks)
    );
    for one in &report.tasks {
        line!(out, "- {}", text(&words::task(one)));
    }
    out.push('\n');
}

fn attempts(out: &mut String, report: &Report) {
    line!(out, "### Attempts Made\n");
    if report.attempts.is_empty() {
        line!(out, "None.");
    }
    if report.attempts_omitted > 0 {
        let before = words::count(report.attempts_omitted, "attempt");
        line!(out, "The latest ones; {before} came before.\n");
    }
    let several = report
        .attempts
        .iter()
        .any(|attempt| attempt.iteration != report.attempts[0].iteration);
    for (number, attempt) in report.attempts.iter().enumerate() {
        let iteration = several.then(|| format!(" of iteration {}", attempt.iteration));
        let iteration = iteration.unwrap_or_default();
        let approach = attempt.approach.as_deref().map(text);
        let approach = approach.unwrap_or_else(|| "(approach not recorded)".to_owned());
        let outcome = words::outcome(attempt.outcome).to_uppercase();
        let (at, number) = (number + 1, attempt.number);
        line!(
            out,
            "{at}. Attempt {number}{iteration}: {approach} - {outcome}"
        );
        // As far in as the item's text, so that it is part of the item.
        let inset = " ".repeat(at.to_string().len() + 2);
        details(out, attempt, &inset);
    }
    out.push('\n');
}

fn details(out: &mut String, attempt: &AttemptLine, inset: &str) {
    let mut facts = vec![words::date_time(attempt.started_at)];
    facts.extend(attempt.duration_ms.map(words::span));
    let (signal, timed_out) = (attempt.signal.as_deref(), attempt.timed_out);
    facts.extend(words::ending(attempt.exit_code, signal, timed_out).map(|how| text(&how)));
    facts.extend(usage_text(attempt.cost_usd, attempt.tokens));
    facts.push(format!("subtask {}", code(&attempt.subtask)));
    line!(out, "{inset}- {}", facts.join(", "));
    if let Some(failure) = &attempt.failure {
        let (cause, message) = (failure.cause.as_str(), text(&failure.message));
        line!(out, "{inset}- {cause}: {message}");
        let names: Vec<String> = failure.failing.iter().map(|name| code(name)).collect();
        if !names.is_empty() {
            line!(out, "{inset}- Failing: {}", names.join(", "));
        }
    }
    let conditions = words::conditions(&attempt.conditions, &attempt.notes);
    let title = words::conditions_title(&attempt.conditions);
    if !conditions.is_empty() {
        line!(out, "{inset}- {title}: {}", text(&conditions));
    }
    for feedback in &attempt.feedback {
        let verdict = if feedback.passed { "passed" } else { "failed" };
        let (name, summary) = (code(&feedback.name), text(&feedback.summary));
        line!(out, "{inset}- Check {name}: {verdict} ({summary})");
    }
    if let Some(decision) = &attempt.decision {
        let (actions, reason) = (words::actions(&decision.actions), text(&decision.reason));
        line!(out, "{inset}- Decision: {actions}: {reason}");
    }
    if let Some(changes) = attempt.changes {
        line!(out, "{inset}- Files: {}", words::changes(changes));
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
        let AttemptRef { iteration, attempt } = error.attempt;
        let message = text(&error.message);
        line!(
            out,
            "**Iteration {iteration}, attempt {attempt}:** {message}\n"
        );
        if let Some(output) = &error.text {
            line!(out, "{}\n", fenced("text", output));
        }
        let rules: Vec<String> = error.evidence.iter().map(|one| code(&one.rule)).collect();
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
        let (path, kind) = (code(&file.path.to_lossy()), file.kind.as_str());
        line!(
            out,
            "- {path} ({kind}, {lines}; attempt {})",
            file.attempt_names()
        );
    }
    if files.total > files.entries.len() {
        line!(out, "- … and {} more", files.total - files.entries.len());
    }
    out.push('\n');
    let dependencies = files.dependencies.iter().map(|path| code(&path.to_lossy()));
    if !files.dependencies.is_empty() {
        let changed = dependencies.format(", ");
        line!(out, "### Dependencies\n\nChanged: {changed}\n");
    }
}

fn actions(out: &mut String, report: &Report) {
    line!(out, "### Recommended Actions\n");
    if report.recommended_actions.is_empty() {
        line!(out, "None: nothing is left to do.");
    }
    for action in &report.recommended_actions {
        let is_recommended = action.by_policy;
        let mark = if is_recommended {
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
        let before = words::count(report.timeline_omitted, "moment");
        line!(out, "The latest part; {before} came before.\n");
    }
    line!(out, "| Time (UTC) | What | Details |\n| --- | --- | --- |");
    let mut day: Option<String> = None;
    for moment in &report.timeline {
        let at = when(&mut day, moment.at);
        let took = moment
            .duration_ms
            .map(|took| format!(" ({})", words::span(took)));
        let took = took.unwrap_or_default();
        let detail = moment.detail.as_deref().map(text).unwrap_or_default();
        let title = text(&with_times(&moment.title, &words::date_time));
        line!(out, "| {at} | {title}{took} | {detail} |");
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
    let visible = escape(&text.split_whitespace().join(" "));
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
