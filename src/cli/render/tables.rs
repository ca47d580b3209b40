//! Tables and text for people.

use std::fmt::Write;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use unicode_width::UnicodeWidthStr;

use crate::engine::prune::Pruned;
use crate::engine::restore::Restore;
use crate::engine::retry::Retry;
use crate::model::checkpoint::{Checkpoint, Verdict};
use crate::model::decision::{Decision, Standing};
use crate::model::failure::Condition;
use crate::model::run::{AttemptOutcome, Run};
use crate::model::time::Timestamp;

use super::super::ui::{Ui, escape};
use super::steps::fill_steps;

/// "3 minutes ago", "in 4 seconds".
pub fn when(at: Timestamp, now: Timestamp) -> String {
    let (span, before) = if now >= at { (now.since(at), true) } else { (at.since(now), false) };
    let seconds = span.as_secs();
    let (count, unit) = match seconds {
        0 => return "now".to_owned(),
        1..60 => (seconds, "second"),
        60..3600 => (seconds / 60, "minute"),
        3600..86_400 => (seconds / 3600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    if before { format!("{count} {unit}{plural} ago") } else { format!("in {count} {unit}{plural}") }
}

fn table(ui: &Ui, header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    match ui.width {
        Some(width) => table.set_width(width),
        // Piped output is cut by whoever reads it.
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    if ui.color {
        table.enforce_styling().set_header(header.iter().map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
    } else {
        table.force_no_tty().set_header(header);
    }
    table
}

/// A table as text without trailing blanks.
fn finish(table: &Table) -> String {
    let lines: Vec<String> = table.to_string().lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

fn verdict_cell(ui: &Ui, verdict: Verdict) -> Cell {
    let (text, color) = match verdict {
        Verdict::Passed => ("passed", Color::Green),
        Verdict::Failed => ("failed", Color::Red),
        Verdict::Unverified => ("unverified", Color::Reset),
    };
    if ui.color { Cell::new(text).fg(color) } else { Cell::new(text) }
}

/// Checkpoints, oldest first.
pub fn checkpoints_table(ui: &Ui, checkpoints: &[&Checkpoint], now: Timestamp) -> String {
    if checkpoints.is_empty() {
        return "No checkpoints.\n".to_owned();
    }
    let mut table = table(ui, &["SEQ", "ID", "ITERATION", "VERDICT", "TRIGGER", "CREATED", "DESCRIPTION"]);
    for checkpoint in checkpoints {
        let pin = if checkpoint.pinned { " (pinned)" } else { "" };
        table.add_row([
            Cell::new(format!("@{}", checkpoint.seq)),
            Cell::new(&checkpoint.id),
            Cell::new(checkpoint.after_iteration),
            verdict_cell(ui, checkpoint.verdict),
            Cell::new(escape(&checkpoint.trigger)),
            Cell::new(when(checkpoint.created_at, now)),
            Cell::new(format!("{}{pin}", escape(&checkpoint.description))),
        ]);
    }
    finish(&table)
}

/// One checkpoint.
pub fn checkpoint_text(checkpoint: &Checkpoint, now: Timestamp) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<12}{value}");
    };
    line("id", checkpoint.id.clone());
    line("run", checkpoint.run.to_string());
    line("created", format!("{} ({})", checkpoint.created_at, when(checkpoint.created_at, now)));
    line("description", escape(&checkpoint.description));
    line("iteration", format!("after {}", checkpoint.after_iteration));
    line("verdict", checkpoint.verdict.as_str().to_owned());
    line("trigger", escape(&checkpoint.trigger));
    line("commit", checkpoint.commit.to_string());
    if let Some(base) = &checkpoint.base_commit {
        let on = checkpoint.head_ref.as_deref().unwrap_or("detached");
        line("base", format!("{base} ({on})"));
    }
    if let Some(commit) = &checkpoint.branch_commit {
        line("on branch", commit.to_string());
    }
    if let Some(path) = &checkpoint.patch_path {
        line("patch", escape(path));
    }
    line("captured", format!("{} files, {} bytes", checkpoint.captured.files, checkpoint.captured.bytes));
    let changes = checkpoint.changes;
    line("changes", format!("{} modified, {} created, {} deleted", changes.modified, changes.created, changes.deleted));
    if checkpoint.pinned {
        line("pinned", checkpoint.pin_note.clone().unwrap_or_else(|| "yes".to_owned()));
    }
    for skipped in &checkpoint.skipped {
        line("skipped", format!("{}: {}", escape(&skipped.path.to_lossy()), skipped.reason));
    }
    for (name, result) in &checkpoint.feedback_results {
        line(
            &format!("loop {name}"),
            format!("{} ({})", if result.passed { "passed" } else { "failed" }, result.summary),
        );
    }
    text
}

/// What a restore did or would do.
pub fn restore_text(restore: &Restore, dry_run: bool) -> String {
    let result = &restore.result;
    if !restore.changed {
        return "Nothing to do: the work tree is as the checkpoint has it.\n".to_owned();
    }
    let (write, delete) = if dry_run { ("would write", "would delete") } else { ("wrote", "deleted") };
    let mut text = String::new();
    let mut list = |what: &str, paths: Vec<String>| {
        for path in paths.iter().take(40) {
            let _ = writeln!(text, "{what} {}", escape(path));
        }
        if paths.len() > 40 {
            let _ = writeln!(text, "{what} … and {} more", paths.len() - 40);
        }
    };
    list(write, result.written.iter().map(ToString::to_string).collect());
    list(delete, result.deleted.iter().map(ToString::to_string).collect());
    list("kept", result.kept.iter().map(|kept| format!("{} ({})", kept.path, kept.reason)).collect());
    if result.head.before != result.head.after {
        let name = |commit: &Option<crate::model::snapshot::ObjectId>| {
            commit.as_ref().map_or_else(|| "(none)".to_owned(), |commit| commit.short().to_owned())
        };
        let verb = if dry_run { "HEAD would move" } else { "HEAD moved" };
        let _ = writeln!(text, "{verb} from {} to {}", name(&result.head.before), name(&result.head.after));
    }
    match &result.safety_checkpoint_id {
        Some(safety) => {
            let _ = writeln!(
                text,
                "Restored {} and verified it. Before it: {safety} (recover undo).",
                result.checkpoint_id
            );
        }
        None => {
            let _ = writeln!(text, "Nothing was changed (dry run); target {}.", result.checkpoint_id);
        }
    }
    text
}

/// `retry-status`.
pub fn retry_text(retry: &Retry, now: Timestamp) -> String {
    let mut text = standing_text(retry, now) + "\n";
    if let Some(status) = &retry.status {
        for budget in &status.budgets {
            let (scope, unit) = (budget.scope.as_str(), budget.scope.unit());
            let _ = writeln!(text, "{scope:<10}{} of {} {unit} used", budget.used, budget.limit);
        }
        if let Some(decision) = &status.decision {
            let _ = writeln!(text, "decision  {} ({})", actions(decision), escape(&decision.reason));
        }
    }
    if let Some(error) = retry.run.as_ref().and_then(|run| run.last_error.as_ref()) {
        let _ = writeln!(text, "last error {}", escape(error));
    }
    text
}

fn standing_text(retry: &Retry, now: Timestamp) -> String {
    match retry.standing {
        Standing::Allowed => "An attempt is allowed now.".to_owned(),
        Standing::Wait(until) => format!("Wait: the next attempt is allowed at {until} ({}).", when(until, now)),
        Standing::Exhausted => "No attempt is left.".to_owned(),
        Standing::NeedsPerson => "A person is needed.".to_owned(),
    }
}

/// The iterations of a run, a line an attempt.
pub fn iterations_text(ui: &Ui, run: &Run) -> String {
    latest_iterations(ui, run, usize::MAX)
}

/// The same of the latest attempts.
fn latest_iterations(ui: &Ui, run: &Run, most: usize) -> String {
    let header = ["ITERATION", "STATUS", "ATTEMPT", "RESULT", "CHECKPOINT", "REASON"];
    let mut notes = String::new();
    // The same one of several attempts in a row is told once.
    let mut reasons: Vec<(String, String)> = Vec::new();
    let mut rows: Vec<[String; 6]> = Vec::new();
    let earlier = run.attempts().count().saturating_sub(most);
    for (iteration, attempt) in run.attempts().skip(earlier) {
        let result = match attempt.outcome {
            Some(AttemptOutcome::Passed) => "passed",
            Some(AttemptOutcome::Failed) => "failed",
            Some(AttemptOutcome::Cancelled) => "cancelled",
            None => "under way",
        };
        let told: Vec<&str> = attempt.conditions.iter().filter(|one| is_told(**one)).map(|one| one.as_str()).collect();
        let fallback = if attempt.fallback { ", fallback" } else { "" };
        let told = if told.is_empty() { String::new() } else { format!(" ({})", told.join(", ")) };
        for note in &attempt.notes {
            let _ = writeln!(notes, "  {}.{} {}", iteration.number, attempt.number, escape(note));
        }
        let reason = attempt.failure.as_ref().map(|failure| escape(&failure.message)).unwrap_or_default();
        if !reason.is_empty() {
            let which = format!("{}.{}", iteration.number, attempt.number);
            match reasons.last_mut() {
                Some((several, same)) if *same == reason => *several = format!("{several}, {which}"),
                _ => reasons.push((which, reason.clone())),
            }
        }
        rows.push([
            iteration.number.to_string(),
            iteration.status.as_str().to_owned(),
            attempt.number.to_string(),
            format!("{result}{fallback}{told}"),
            attempt.checkpoint_id.clone().unwrap_or_default(),
            reason,
        ]);
    }
    // In a column of a few letters nothing can be read, and an id that is broken in two cannot be copied.
    let widest =
        |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0).max(header[column].len());
    let needed: usize = (0..header.len()).map(|column| widest(column) + 2).sum();
    let shown = if ui.width.is_some_and(|width| needed > usize::from(width)) { header.len() - 1 } else { header.len() };
    let mut table = table(ui, &header[..shown]);
    for row in rows {
        table.add_row(row.into_iter().take(shown));
    }
    let below = |title: &str, text: String| if text.is_empty() { text } else { format!("{title}\n{text}") };
    let reasons = reasons.iter().fold(String::new(), |mut text, (which, reason)| {
        let _ = writeln!(text, "  {which}: {reason}");
        text
    });
    let reasons = if shown < header.len() { below("Reasons", reasons) } else { String::new() };
    finish(&table) + &reasons + &below("Notes", notes)
}

/// Conditions that say something of the attempt itself; the others are the decision's to tell.
fn is_told(condition: Condition) -> bool {
    !matches!(condition, Condition::RetriesExhausted | Condition::NoCheckpoint)
}

/// What is true of an attempt beside its outcome.
pub fn conditions_text(conditions: &[Condition], notes: &[String]) -> String {
    let told: Vec<&str> = conditions.iter().filter(|one| is_told(**one)).map(|one| one.as_str()).collect();
    let mut text = if told.is_empty() { String::new() } else { format!("Conditions: {}\n", told.join(", ")) };
    for note in notes {
        let _ = writeln!(text, "  {}", escape(note));
    }
    text
}

/// The history of all subtasks.
pub fn attempts_text(ui: &Ui, history: &crate::store::views::AttemptHistory<'_>) -> String {
    if history.subtasks.is_empty() {
        return "No attempts.\n".to_owned();
    }
    let mut table = table(ui, &["SUBTASK", "STATUS", "SESSION", "STARTED", "APPROACH", "RESULT"]);
    for (id, subtask) in &history.subtasks {
        for attempt in &subtask.attempts {
            let result =
                if attempt.success { "passed".to_owned() } else { attempt.error.unwrap_or_default().to_owned() };
            table.add_row([
                escape(id),
                subtask.status.to_owned(),
                attempt.session.to_string(),
                attempt.timestamp.to_string(),
                escape(&attempt.approach),
                escape(&result),
            ]);
        }
    }
    let mut text = finish(&table);
    for stuck in &history.stuck_subtasks {
        let _ = writeln!(text, "stuck: {} ({})", escape(stuck.subtask_id), escape(stuck.reason));
    }
    text
}

/// How many attempts `status` lists: with the failure and the ways on it fits a small terminal.
const ATTEMPTS_SHOWN: usize = 8;

/// Where a run stands (B1). What matters most comes last, where a terminal stands still.
pub fn status_text(ui: &Ui, status: &crate::engine::status::Status, now: Timestamp) -> String {
    let mut text = String::new();
    let run = &status.run;
    let total = run.spec.iterations_total.map_or_else(String::new, |total| format!(" of {total}"));
    let _ = writeln!(
        text,
        "Run {}: {}, iteration {}{total}, begun {}",
        run.key,
        run.status.as_str(),
        run.shown_iteration(),
        when(run.created_at, now)
    );
    if let Some(unfinished) = &status.unfinished_operation {
        let _ = writeln!(text, "A {unfinished} was cut off: recover doctor --repair finishes it.");
    }
    let latest = status.latest.as_deref().unwrap_or("none");
    let good = status.last_good.as_deref().unwrap_or("none");
    let attempts = run.attempts().count();
    if attempts > 0 {
        if attempts > ATTEMPTS_SHOWN {
            let _ = writeln!(text, "The latest {ATTEMPTS_SHOWN} of {attempts} attempts (recover report has all):");
        }
        text.push_str(&latest_iterations(ui, run, ATTEMPTS_SHOWN));
    }
    if !run.steps.is_empty() {
        let mut table = table(ui, &["STEP", "STATUS", "RUNS", "ENDED", "RESULT"]);
        fill_steps(&mut table, run, now);
        let _ = write!(text, "\n{}", finish(&table));
    }
    let _ = writeln!(text, "\nCheckpoints: {} (latest {latest}, last good {good})", status.checkpoint_count);
    let budgets = status.retry.status.iter().flat_map(|status| &status.budgets);
    let used: Vec<String> = budgets
        .map(|budget| format!("{} {} of {} {}", budget.scope.as_str(), budget.used, budget.limit, budget.scope.unit()))
        .collect();
    if !used.is_empty() {
        let _ = writeln!(text, "Used:        {}", used.join(", "));
    }
    text.push_str(&failure_text(status, now));
    let _ = writeln!(text, "\n{}", standing_text(&status.retry, now));
    text
}

/// Why it failed, what was decided, and the ways on.
fn failure_text(status: &crate::engine::status::Status, now: Timestamp) -> String {
    let run = &status.run;
    let mut text = String::new();
    if let Some(failure) = &run.failure {
        let _ = writeln!(text, "\nFailure");
        let _ = writeln!(text, "  type       {} ({})", failure.kind.as_str(), failure.cause.as_str());
        if let Some(number) = failure.iteration {
            let _ = writeln!(text, "  iteration  {number}, attempt {}", failure.attempt.unwrap_or(1));
        }
        if let Some(at) = failure.at {
            let _ = writeln!(text, "  time       {at} ({})", when(at, now));
        }
        let _ = writeln!(text, "  error      {}", escape(&failure.message));
    }
    if let Some(decision) = &run.decision {
        let _ = writeln!(text, "  decision   {}: {}", actions(decision), escape(&decision.reason));
    }
    if !status.options.is_empty() {
        let _ = writeln!(text, "\nWays on");
        for option in &status.options {
            let mark = if option.recommended { "*" } else { " " };
            let reason = option.reason.as_ref().map(|reason| format!(" (not now: {reason})")).unwrap_or_default();
            let _ = writeln!(text, " {mark} {:<22}{}{reason}", option.strategy.as_str(), option.description);
        }
    }
    for (number, step) in status.manual_steps.iter().enumerate() {
        if number == 0 {
            let _ = writeln!(text, "\nManual steps");
        }
        let _ = writeln!(text, "  {}. {step}", number + 1);
    }
    text
}

/// The actions of a decision as words.
pub fn actions(decision: &Decision) -> String {
    let words: Vec<&str> = decision.actions.iter().map(|action| action.as_str()).collect();
    words.join(", ")
}

/// What a prune did or would do, a line a checkpoint.
pub fn prune_text(ui: &Ui, pruned: &Pruned, dry_run: bool) -> String {
    let mut table = table(ui, &["CHECKPOINT", "", "REASONS"]);
    let removed = if dry_run { "would remove" } else { "removed" };
    for (what, all) in [("kept", &pruned.kept), (removed, &pruned.removed)] {
        for reasoned in all {
            table.add_row([reasoned.id.clone(), what.to_owned(), reasoned.reasons.join(", ")]);
        }
    }
    let archived = if dry_run { "would archive" } else { "archived" };
    for milestone in &pruned.archived {
        table.add_row([milestone.id.clone(), archived.to_owned(), milestone.reasons.join(", ")]);
    }
    if pruned.kept.is_empty() && pruned.removed.is_empty() && pruned.archived.is_empty() {
        return "No checkpoints.\n".to_owned();
    }
    let mut text = finish(&table);
    if let Some(why) = &pruned.objects_left {
        text.push_str(&format!("Their objects are left to git gc: {why}\n"));
    }
    for milestone in &pruned.archived {
        let back = escape(&milestone.hint);
        text.push_str(&format!("{}: {}\n  back: {back}\n", milestone.id, escape(&milestone.path)));
    }
    text
}
