//! Checkpoints for people: what there is, and what a restore or a prune did with them.

use std::fmt::Write;

use comfy_table::Cell;

use super::super::ui::{Ui, escape};
use super::{Column, Table, column, date_time, toned, when, words};
use crate::engine::{inspect, rollback, runs};
use crate::model::{Checkpoint, Hint, ObjectId, OperationKind, PathReason, Timestamp, ToldStep};
use crate::policy::report::run_state;
use crate::policy::text::count;

/// Checkpoints, oldest first. `all_runs`: they may be of several runs.
pub(crate) fn checkpoints_table(
    ui: &Ui,
    list: &inspect::CheckpointList<'_>,
    all_runs: bool,
    now: Timestamp,
) -> String {
    if list.checkpoints.is_empty() {
        return "No checkpoints.\n".to_owned();
    }
    let columns = [
        column("SEQ", 0),
        column("ID", 0),
        column("RUN", 0),
        column("ITERATION", 4),
        column("VERDICT", 1),
        column("TRIGGER", 5),
        column("CREATED", 2),
        words("DESCRIPTION", 3),
    ];
    // People have the numbers, scripts the ids.
    let shown = |column: usize| match column {
        1 => ui.width.is_none(),
        2 => all_runs,
        _ => true,
    };
    let columns: Vec<Column> = columns
        .into_iter()
        .enumerate()
        .filter(|(at, _)| shown(*at))
        .map(|(_, one)| one)
        .collect();
    let mut table = Table::new(ui, &columns);
    for checkpoint in &list.checkpoints {
        let pin = if checkpoint.pinned { " (pinned)" } else { "" };
        let damaged = if checkpoint.damaged { " (damaged)" } else { "" };
        let over = if list.superseded.contains(checkpoint.id.as_str()) {
            "rolled back: "
        } else {
            ""
        };
        let cells = [
            Cell::new(format!("@{}", checkpoint.seq)),
            Cell::new(&checkpoint.id),
            Cell::new(escape(&checkpoint.run.to_string())),
            Cell::new(checkpoint.after_iteration),
            toned(ui, checkpoint.verdict.as_str()),
            Cell::new(escape(&checkpoint.trigger)),
            Cell::new(when(checkpoint.created_at, now)),
            Cell::new(format!(
                "{over}{}{pin}{damaged}",
                escape(&ui.description(checkpoint))
            )),
        ];
        table.add_row(
            cells
                .into_iter()
                .enumerate()
                .filter(|(at, _)| shown(*at))
                .map(|(_, cell)| cell),
        );
    }
    table.text()
}

/// One checkpoint.
pub(crate) fn checkpoint_text(checkpoint: &Checkpoint, now: Timestamp) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{name:<12}{}{value}",
            if name.len() < 12 { "" } else { "  " }
        );
    };
    line("id", format!("{} (@{})", checkpoint.id, checkpoint.seq));
    line("run", checkpoint.run.to_string());
    line(
        "created",
        format!(
            "{}, {}",
            date_time(checkpoint.created_at),
            when(checkpoint.created_at, now)
        ),
    );
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
    line(
        "captured",
        format!(
            "{}, {} bytes",
            count(checkpoint.captured.files, "file"),
            checkpoint.captured.bytes
        ),
    );
    let changes = checkpoint.changes;
    line(
        "changes",
        format!(
            "{} modified, {} created, {} deleted",
            changes.modified, changes.created, changes.deleted
        ),
    );
    if checkpoint.pinned {
        line(
            "pinned",
            checkpoint
                .pin_note
                .clone()
                .unwrap_or_else(|| "yes".to_owned()),
        );
    }
    if checkpoint.damaged {
        line("damaged", "yes: it cannot be restored in full".to_owned());
    }
    for skipped in &checkpoint.skipped {
        let files = skipped
            .files
            .map(|files| format!(" ({files} files)"))
            .unwrap_or_default();
        line(
            "skipped",
            format!(
                "{}: {}{files}",
                escape(&skipped.path.to_lossy()),
                skipped.reason
            ),
        );
    }
    for path in &checkpoint.unsettled {
        line(
            "unsettled",
            format!(
                "{}: changed while it was captured",
                escape(&path.to_lossy())
            ),
        );
    }
    for (name, result) in &checkpoint.feedback_results {
        line(
            &format!("check {name}"),
            format!(
                "{} ({})",
                if result.passed { "passed" } else { "failed" },
                result.summary
            ),
        );
    }
    text
}

/// Ignored files that are gone and stay so.
fn missing_text(result: &rollback::RestoreResult) -> String {
    let (copied, lost): (Vec<_>, Vec<_>) = result
        .missing
        .iter()
        .partition(|one| one.reason == rollback::COPIED);
    let names = |all: Vec<&PathReason>| {
        all.into_iter()
            .map(|one| one.path.to_string())
            .collect::<Vec<_>>()
            .into_iter()
    };
    list("gone, ignored by git, no copy:", names(lost))
        + &list(
            "gone, ignored by git (--precious puts it back):",
            names(copied),
        )
}

/// What a restore did or would do, and the command that takes it back.
pub(crate) fn restore_text(
    ui: &Ui,
    restore: &rollback::Restore,
    back: &Hint,
    dry_run: bool,
) -> String {
    let result = &restore.result;
    if !restore.changed {
        return unchanged_text(result) + &missing_text(result) + &crossed_text(result, dry_run);
    }
    changes_text(ui, restore, dry_run) + &end_text(ui, restore, back)
}

/// What it changed or would change, a line each.
pub(crate) fn changes_text(ui: &Ui, restore: &rollback::Restore, dry_run: bool) -> String {
    let result = &restore.result;
    let (write, delete) = if dry_run {
        ("would write", "would delete")
    } else {
        ("wrote", "deleted")
    };
    let mut text = list(write, result.written.iter().map(ToString::to_string));
    text += &list(delete, result.deleted.iter().map(ToString::to_string));
    text += &kept_text(result);
    let back = if dry_run {
        "would put back, ignored by git:"
    } else {
        "put back, ignored by git:"
    };
    text += &list(back, result.precious.iter().map(ToString::to_string));
    text += &missing_text(result);
    for one in result
        .nested
        .iter()
        .filter(|one| one.action != rollback::NestedAction::Kept)
    {
        let what = match one.action {
            rollback::NestedAction::Removed => {
                "its folder is removed again, the repository itself is kept"
            }
            rollback::NestedAction::Relinked => "its folder belongs to its repository again",
            _ => "its files are restored",
        };
        let _ = writeln!(
            text,
            "nested repository {}: {what}",
            escape(&one.path.to_lossy())
        );
    }
    text += &index_text(result, dry_run);
    if result.head.before != result.head.after {
        let name = |commit: &Option<ObjectId>| {
            commit
                .as_ref()
                .map_or_else(|| "(none)".to_owned(), |commit| commit.short().to_owned())
        };
        let verb = if dry_run {
            "HEAD would move"
        } else {
            "HEAD moved"
        };
        let _ = writeln!(
            text,
            "{verb} from {} to {}{}",
            name(&result.head.before),
            name(&result.head.after),
            result.leaving("; ")
        );
    }
    if let Some(over) = superseded_text(result) {
        let (verb, whose) = if result.superseded.len() == 1 {
            ("is", "its")
        } else {
            ("are", "their")
        };
        let verb = if dry_run { "would be" } else { verb };
        let _ = writeln!(text, "{over} {verb} rolled back; {whose} history stays");
    }
    text += &list(
        if dry_run {
            "would discard edits of"
        } else {
            "discarded edits of"
        },
        result.edited.iter().map(reasoned),
    );
    text += &taken_back_text(ui, restore, dry_run);
    text += &crossed_text(result, dry_run);
    if let (OperationKind::Discard, Some(run), true) =
        (restore.kind, &restore.run, result.left.is_empty())
    {
        let verb = if dry_run { "would be" } else { "is" };
        let _ = writeln!(text, "Run {} {verb} closed.", escape(&run.key.to_string()));
    }
    text
}

/// The checkpoint that was restored, and how that is reverted.
fn end_text(ui: &Ui, restore: &rollback::Restore, back: &Hint) -> String {
    let result = &restore.result;
    let mut text = String::new();
    match &result.safety_checkpoint_id {
        Some(safety) => {
            let _ = writeln!(
                text,
                "Restored {} (verified). The state before is kept as {}: {back} restores it.",
                ui.id(&result.checkpoint_id),
                ui.id(safety),
            );
        }
        None => {
            let _ = writeln!(
                text,
                "Nothing was changed (dry run); target {}.",
                ui.id(&result.checkpoint_id)
            );
        }
    }
    text
}

/// What becomes of the index, where that is not nothing.
fn index_text(result: &rollback::RestoreResult, dry_run: bool) -> String {
    let rollback::IndexOutcome { restored, kept } = result.index;
    let mut parts = Vec::new();
    if restored > 0 {
        let verb = if dry_run {
            "would be restored"
        } else {
            "restored"
        };
        parts.push(format!("{} {verb}", count(restored, "path")));
    }
    if kept > 0 {
        parts.push(format!("{} left as staged since", count(kept, "path")));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("index: {}\n", parts.join(", "))
    }
}

/// The iterations that a restore goes back over.
fn superseded_text(result: &rollback::RestoreResult) -> Option<String> {
    let (first, last) = (result.superseded.first()?, result.superseded.last()?);
    Some(if first == last {
        format!("iteration {first}")
    } else {
        format!("iterations {first} to {last}")
    })
}

/// Which operation an undo takes back, or a redo does again.
fn taken_back_text(ui: &Ui, restore: &rollback::Restore, dry_run: bool) -> String {
    let Some(operation) = &restore.result.operation else {
        return String::new();
    };
    let to = operation
        .checkpoint_id
        .as_ref()
        .map(|id| format!(" to {}", ui.id(id)))
        .unwrap_or_default();
    let run = restore
        .run
        .as_ref()
        .filter(|_| operation.command == OperationKind::Discard.as_str());
    let what = match run {
        Some(run) => format!("the discard of run {}", escape(&run.key.to_string())),
        None => format!("the {}{to}", operation.command),
    };
    if let (Some(run), false, false) = (run, dry_run, restore.kind == OperationKind::Redo) {
        return format!("Took back {what}, which is {} again.\n", run_state(run));
    }
    match (restore.kind, dry_run) {
        (OperationKind::Redo, false) => format!("Did {what} again.\n"),
        (OperationKind::Redo, true) => format!("Would do {what} again.\n"),
        (_, false) => format!("Took back {what}.\n"),
        (_, true) => format!("Would take back {what}.\n"),
    }
}

/// What there is to say where a restore has nothing to do.
pub(crate) fn unchanged_text(result: &rollback::RestoreResult) -> String {
    let differ = match result.kept.len() {
        0 => {
            let index = index_text(result, true);
            return format!("Nothing to do: the work tree is as the checkpoint has it.\n{index}");
        }
        1 => "1 path differs from the checkpoint and is kept".to_owned(),
        count => format!("{count} paths differ from the checkpoint and are kept"),
    };
    format!(
        "Nothing changed: {differ}\n{}{}",
        kept_text(result),
        index_text(result, true)
    )
}

fn kept_text(result: &rollback::RestoreResult) -> String {
    list("kept", result.kept.iter().map(reasoned))
}

fn reasoned(one: &PathReason) -> String {
    format!("{} ({})", one.path, one.reason)
}

/// How many paths of a kind are listed: more than a screen is not read.
const LISTED: usize = 20;

/// A line for each path, as many as a person reads.
fn list(what: &str, paths: impl ExactSizeIterator<Item = String>) -> String {
    let (mut text, count) = (String::new(), paths.len());
    for path in paths.take(LISTED) {
        text.push_str(&format!("{what} {}\n", escape(&path)));
    }
    if count > LISTED {
        text.push_str(&format!("{what} … and {} more\n", count - LISTED));
    }
    text
}

/// What a prune did or would do, a line a checkpoint.
pub(crate) fn prune_text(ui: &Ui, pruned: &runs::Pruned, dry_run: bool) -> String {
    let mut table = Table::new(
        ui,
        &[column("CHECKPOINT", 0), column("", 0), words("REASONS", 0)],
    );
    let removed = if dry_run { "would remove" } else { "removed" };
    for (what, all) in [("kept", &pruned.kept), (removed, &pruned.removed)] {
        for reasoned in all {
            table.add_row([
                ui.id(&reasoned.id),
                what.to_owned(),
                reasoned.reasons.join(", "),
            ]);
        }
    }
    let archived = if dry_run { "would archive" } else { "archived" };
    for milestone in &pruned.archived {
        table.add_row([
            ui.id(&milestone.id),
            archived.to_owned(),
            milestone.reasons.join(", "),
        ]);
    }
    if pruned.kept.is_empty() && pruned.removed.is_empty() && pruned.archived.is_empty() {
        return "No checkpoints.\n".to_owned();
    }
    let mut text = table.text();
    if let Some(why) = &pruned.objects_left {
        text.push_str(&format!("Their objects are left to git gc: {why}\n"));
    }
    for milestone in &pruned.archived {
        let back = escape(&ui.command(&milestone.hint));
        text.push_str(&format!(
            "{}: {}\n  back: {back}\n",
            ui.id(&milestone.id),
            escape(&milestone.path)
        ));
    }
    text
}

/// What became of the steps that a restore went back past, or would become of them.
fn crossed_text(result: &rollback::RestoreResult, dry_run: bool) -> String {
    let mut text = String::new();
    for one in &result.compensated {
        let command = escape(one.step.compensate.as_deref().unwrap_or_default());
        let (verb, end) = match one.succeeded {
            None if dry_run => ("would undo", String::new()),
            Some(false) => (
                "not undone:",
                format!(" ended with {}", one.compensate_exit_code.unwrap_or(1)),
            ),
            _ => ("took back", String::new()),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{verb} step {}: {command}{end}", named(&one.step));
    }
    let cross = if dry_run { "would cross" } else { "crossed" };
    for one in &result.crossed {
        let _ = writeln!(text, "{cross} step {} ({})", named(&one.step), one.reason);
    }
    text
}

fn named(step: &ToldStep) -> String {
    format!(
        "'{}' of run {}",
        escape(&step.name),
        escape(&step.run.to_string())
    )
}
