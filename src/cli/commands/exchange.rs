//! Runs `import` and `sync`.

use itertools::Itertools as _;

use super::super::args::{ImportArgs, SyncArgs};
use super::super::replies::PlanReply;
use super::super::ui::{Reply, Ui, escape, verb};
use crate::engine::{Context, Result, exchange, inspect};
use crate::policy::text::count;

/// `recover import`.
pub(super) fn import(context: &Context, args: &ImportArgs, ui: &Ui) -> Result<Reply> {
    let imported = exchange::import(context, &args.files, args.kind)?;
    let mut text = String::new();
    let ui = ui.knowing(context);
    for file in &imported.files {
        text.push_str(&told(file, context.dry_run(), &ui));
    }
    Ok(if context.dry_run() {
        Reply::new(PlanReply::of(imported), text)
    } else {
        Reply::new(imported, text)
    })
}

fn told(file: &exchange::ImportedFile, dry_run: bool, ui: &Ui) -> String {
    let name = escape(&file.path);
    let kind = file.kind;
    let mut text = if file.changed {
        let verb = if dry_run { "Would import" } else { "Imported" };
        let runs = file.runs.iter().map(|run| escape(&run.to_string()));
        let mut parts = vec![format!("runs: {}", runs.format(", "))];
        for (count, what) in [(file.attempts, "attempts"), (file.records, "records")] {
            if count > 0 {
                parts.push(format!("{count} {what}"));
            }
        }
        if !file.checkpoints.is_empty() {
            parts.push(count(file.checkpoints.len(), "checkpoint record"));
        }
        if !file.returned.is_empty() {
            let all = file.returned.iter().map(|id| escape(&ui.id(id)));
            parts.push(format!("back: {}", all.format(", ")));
        }
        format!("{verb} {name} ({kind}; {})\n", parts.join("; "))
    } else {
        let why = file
            .message
            .as_ref()
            .map(|message| format!(": {message}"))
            .unwrap_or_default();
        format!("Nothing new in {name} ({kind}){why}\n")
    };
    for left in &file.left_out {
        text.push_str(&format!(
            "  left out: {} ({})\n",
            escape(&left.place),
            escape(&left.message)
        ));
    }
    for checkpoint in file
        .changed
        .then_some(&file.checkpoints)
        .into_iter()
        .flatten()
    {
        text.push_str(&format!("  {}\n", foreign_line(checkpoint)));
    }
    text
}

/// A line about another system's checkpoint.
pub(super) fn foreign_line(known: &inspect::KnownCheckpoint) -> String {
    let checkpoint = &known.checkpoint;
    let there = match (&checkpoint.commit, known.in_repository) {
        (Some(commit), Some(true)) => format!(
            "commit {} is here: git restore --source {commit} -- .",
            escape(commit)
        ),
        (Some(commit), _) => format!("commit {} is not in this repository", escape(commit)),
        (None, _) => "a record without content".to_owned(),
    };
    format!(
        "{} (imported, {}): {there}",
        escape(&checkpoint.id),
        escape(&checkpoint.run.to_string())
    )
}

/// `recover sync`.
pub(super) fn sync(context: &Context, args: &SyncArgs) -> Result<Reply> {
    context.require_something()?;
    let mut synced = exchange::sync(context, args.to.as_deref())?;
    let written = verb(context, "Would write", "Wrote");
    let mut text = String::new();
    for path in &synced.written {
        text.push_str(&format!("{written} {}\n", escape(path)));
    }
    for exchange::KeptAside { path, copy } in &synced.kept_aside {
        let verb = verb(context, "Would keep", "Kept");
        text.push_str(&format!(
            "{verb} what {} said: {}\n",
            escape(path),
            escape(copy)
        ));
    }
    if synced.written.is_empty() {
        text.push_str(&format!(
            "{} exported files are up to date.\n",
            synced.unchanged.len()
        ));
    }
    synced.changed &= !context.dry_run();
    Ok(Reply::new(synced, text))
}
