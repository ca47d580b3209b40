//! Runs `checkpoint`.

use std::collections::BTreeSet;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::args::{
    CheckpointArgs, CheckpointCommand, CreateArgs, DiffArgs, ExportArgs, ListArgs, PruneArgs,
    RestoreArgs, ShowArgs,
};
use super::super::render;
use super::super::replies::ExitCode;
use super::super::screens::{How, choose_checkpoint, choose_restore};
use super::super::ui::{Paged, Reply, Ui, escape};
use super::exchange::foreign_line;
use super::restore::reply;
use crate::engine::checkpoint::{
    Created, Options, create as take, not_due, pin as set_pin, preview,
};
use crate::engine::doctor::verify as check;
use crate::engine::exchange::{Format, archive_age, session_file, to_file, to_stream};
use crate::engine::inspect::{
    File, diff as compare, patch_since_previous, show as look, show_nested,
};
use crate::engine::record::nested;
use crate::engine::record::select::{self, KnownCheckpoint, foreign};
use crate::engine::record::storage::Request;
use crate::engine::restore::request::{
    Commits, Options as RestoreOptions, Restore, RestoreRequest,
};
use crate::engine::rollback::on_request::restore_with as put_back;
use crate::engine::runs::prune::prune as remove;
use crate::engine::{Context, Error, ErrorKind, Result, recovery};
use crate::model::checkpoint::{CapturedTotals, Checkpoint, trigger};
use crate::model::hint::Hint;
use crate::model::id::CheckpointId;
use crate::model::manifest::{Nested, ObjectId};
use crate::model::operation::{OperationKind, Scope};
use crate::model::path::PathReason;
use crate::model::selector::Selector;
use crate::model::state::State;
use crate::policy::retention::Limits;
use crate::policy::secrets::{redact, redact_json};
use crate::policy::text::count;

/// What `checkpoint create` would do.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct CreatePlanReply<'a> {
    changed: bool,
    /// The one that is young enough.
    checkpoint: Option<&'a Checkpoint>,
    plan: Option<CreatePlan>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CreatePlan {
    captured: CapturedTotals,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListReply<'a> {
    /// Oldest first.
    checkpoints: &'a [&'a Checkpoint],
    /// The ids of those that a rollback took back.
    superseded: &'a BTreeSet<&'a str>,
    /// Other systems' checkpoints: records without content.
    imported: &'a [KnownCheckpoint],
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShowReply<'a> {
    checkpoint: &'a Checkpoint,
    files: Vec<File>,
    nested: &'a [Nested],
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<&'a str>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PinReply<'a> {
    checkpoint: &'a Checkpoint,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExportReply<'a> {
    checkpoint_id: &'a CheckpointId,
    format: Format,
    base_commit: Option<&'a ObjectId>,
    changed: bool,
    /// `null` where it went to standard output.
    path: Option<&'a str>,
    /// What stays on this machine, with the reason.
    #[serde(skip_serializing_if = "<[PathReason]>::is_empty")]
    withheld: &'a [PathReason],
}

/// Dispatches.
pub(super) fn execute(context: &mut Context, args: &CheckpointArgs, ui: &Ui) -> Result<Reply> {
    match &args.command {
        CheckpointCommand::Create(args) => create(context, args, ui),
        CheckpointCommand::List(args) => list(context, args, ui),
        CheckpointCommand::Show(args) => show(context, args, ui),
        CheckpointCommand::Diff(args) => diff(context, args, ui),
        CheckpointCommand::Restore(args) => restore(context, args, ui),
        CheckpointCommand::Prune(args) => prune(context, args, ui),
        CheckpointCommand::Pin(args) => pin(context, &args.selector, true, args.note.clone(), ui),
        CheckpointCommand::Unpin(args) => pin(context, &args.selector, false, None, ui),
        CheckpointCommand::Verify(args) => verify(context, &args.selectors, ui),
        CheckpointCommand::Export(args) => export(context, args, ui),
    }
}

fn create(context: &Context, args: &CreateArgs, ui: &Ui) -> Result<Reply> {
    if context.dry_run() {
        if args.if_due
            && let Some(latest) = not_due(context, args.trigger.as_deref().unwrap_or_default())?
        {
            let text = format!(
                "None is due: {} is young enough.\n",
                ui.knowing(context).id(&latest.id)
            );
            return Ok(Reply::new(
                CreatePlanReply {
                    checkpoint: Some(&latest),
                    ..CreatePlanReply::default()
                },
                text,
            ));
        }
        let totals = preview(context)?;
        let text = format!(
            "Would capture {} ({} bytes).\n",
            count(totals.files, "file"),
            totals.bytes
        );
        let plan = Some(CreatePlan { captured: totals });
        return Ok(Reply::new(
            CreatePlanReply {
                plan,
                ..CreatePlanReply::default()
            },
            text,
        ));
    }
    let request = Request {
        description: args.message.clone().unwrap_or_default(),
        trigger: args.trigger.clone().unwrap_or_default(),
        kind: args
            .kind
            .unwrap_or_else(|| trigger::kind_of(args.trigger.as_deref().unwrap_or_default())),
        after_iteration: args.iteration,
        lane_fields: args.lane.clone().into(),
        pinned: args.pin,
        storage: args.storage,
        ..Request::default()
    };
    let options = Options {
        skip_if_unchanged: args.if_changed,
        skip_if_not_due: args.if_due,
        ..Options::default()
    };
    let created = take(context, request, options)?;
    let Created {
        changed,
        checkpoint,
    } = &created;
    let id = ui.knowing(context).id(&checkpoint.id);
    let text = if *changed {
        let skipped = match checkpoint.skipped.len() {
            0 => String::new(),
            left => format!(
                ", {} left out: recover checkpoint show {id}",
                count(left, "path")
            ),
        };
        let totals = checkpoint.captured;
        let also = match (&checkpoint.branch_commit, &checkpoint.patch_path) {
            (Some(commit), _) => format!("Committed on the branch as {}.\n", commit.short()),
            (None, Some(path)) => format!("Patch: {}\n", escape(path)),
            (None, None) => String::new(),
        };
        format!(
            "{id} ({}, {} bytes{skipped})\n{also}",
            count(totals.files, "file"),
            totals.bytes
        )
    } else if args.if_due && !args.if_changed {
        format!("None is due: {id} is young enough.\n")
    } else {
        format!("Nothing has changed since {id}.\n")
    };
    let exit = if checkpoint.partial && *changed {
        ExitCode::PARTIAL
    } else {
        ExitCode::DONE
    };
    Ok(Reply::new(created, text).exit(exit))
}

fn list(context: &Context, args: &ListArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let state = recovery::load_recovered(context)?;
    let run = if args.all_runs {
        None
    } else {
        select::find_captured(context, &state, &[])?
    };
    let wanted = |checkpoint: &&Checkpoint| {
        args.all_runs || run.is_some_and(|run| run.key == checkpoint.run)
    };
    let mut all: Vec<&Checkpoint> = state.checkpoints.values().filter(wanted).collect();
    if let Some(limit) = args.limit {
        all.drain(..all.len().saturating_sub(limit));
    }
    let superseded = all
        .iter()
        .filter(|one| !one.is_safety() && state.is_superseded(one));
    let superseded: BTreeSet<&str> = superseded.map(|one| one.id.as_str()).collect();
    let imported = foreign(
        context,
        &state,
        run.filter(|_| !args.all_runs).map(|run| &run.key),
    );
    let text = ui.text(|| {
        let ui = &ui.knowing(context);
        let foreign = imported
            .iter()
            .map(|one| format!("{}\n", foreign_line(one)));
        render::checkpoints_table(ui, &all, &superseded, args.all_runs, context.clock.now())
            + &foreign.collect::<String>()
    });
    let document = ListReply {
        checkpoints: &all,
        superseded: &superseded,
        imported: &imported,
    };
    Ok(Reply::new(document, text).paged(Paged::Text("log")))
}

/// Which checkpoint: on a terminal it is asked for where it was not named.
fn chosen(
    context: &Context,
    ui: &Ui,
    selector: Option<&Selector>,
    words: &[&str],
) -> Result<Selector> {
    match selector {
        Some(selector) => Ok(selector.clone()),
        None if ui.interactive => choose_checkpoint(context, ui, words),
        None => Err(missing(words)),
    }
}

/// Nobody is there to be asked.
fn missing(words: &[&str]) -> Error {
    let name = if words.contains(&"diff") {
        "<A>"
    } else {
        "<SEL>"
    };
    let message = format!(
        "which checkpoint? {name} is missing: an id, @SEQ, latest, good, initial or iteration:N"
    );
    Error::new(ErrorKind::Usage, message).hint(Hint::recover(["checkpoint", "list"]))
}

fn show(context: &Context, args: &ShowArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let selector = chosen(context, ui, args.selector.as_ref(), &["checkpoint", "show"])?;
    let state = recovery::load_recovered(context)?;
    let checkpoint = select::checkpoint(context, &state, &selector)?;
    let mut text = render::checkpoint_text(checkpoint, context.clock.now());
    let nested = show_nested(context, checkpoint)?;
    for inside in &nested {
        let what = inside
            .checkpoint
            .as_ref()
            .map_or_else(|| "not captured".to_owned(), ToString::to_string);
        text.push_str(&format!(
            "{:<12}{}: {what}\n",
            "nested",
            escape(&inside.path.to_lossy())
        ));
    }
    let patch = args
        .patch
        .then(|| patch_since_previous(context, &state, checkpoint))
        .transpose()?;
    let patch = patch.as_deref().map(String::from_utf8_lossy);
    let files = look(context, checkpoint)?;
    let document = ShowReply {
        checkpoint,
        files,
        nested: &nested,
        patch: None,
    };
    let Some(patch) = patch else {
        return Ok(Reply::new(document, text).paged(Paged::Text("show")));
    };
    // The patch is content; what is said about it is not.
    let mut document =
        redact_json(serde_json::to_value(document).context("cannot write the answer")?);
    document["patch"] = patch.as_ref().into();
    let text = format!("{}\n{patch}", redact(&text));
    Ok(Reply::new(document, text)
        .content()
        .paged(Paged::Patch("show")))
}

fn diff(context: &Context, args: &DiffArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let from = chosen(context, ui, args.from.as_ref(), &["checkpoint", "diff"])?;
    let state = recovery::load_recovered(context)?;
    let both: Vec<&Selector> = args.to.iter().chain([&from]).collect();
    let to = args
        .to
        .as_ref()
        .map(|to| select::checkpoint_beside(context, &state, to, &both))
        .transpose()?;
    let from = select::checkpoint_beside(context, &state, &from, &both)?;
    let difference = compare(context, from, to, &args.path, args.patch)?;
    if let Some(patch) = &difference.patch {
        return Ok(Reply::new(&difference, patch)
            .content()
            .paged(Paged::Patch("diff")));
    }
    let mut text = String::new();
    for change in &difference.changes {
        let lines = match (change.added, change.deleted) {
            (Some(added), Some(deleted)) => format!(" (+{added}, -{deleted})"),
            _ => String::new(),
        };
        text.push_str(&format!(
            "{:<9} {}{lines}\n",
            change.kind.as_str(),
            escape(&change.path.to_lossy())
        ));
    }
    for change in &difference.memory_updates {
        text.push_str(&format!(
            "{:<9} {} (memory)\n",
            change.kind.as_str(),
            escape(&change.path.to_lossy())
        ));
    }
    if difference.changes.is_empty() && difference.memory_updates.is_empty() {
        text.push_str("No differences.\n");
    }
    Ok(Reply::new(difference, text).paged(Paged::Text("diff")))
}

fn restore(context: &mut Context, args: &RestoreArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let how = How {
        commits: args.commits,
        edits: args.edits,
        best_effort: args.best_effort.best_effort,
    };
    let (selector, how) = match &args.selector {
        Some(selector) => (selector.clone(), how),
        None if ui.interactive => {
            let mut flags: Vec<String> = if args.restore_index {
                vec!["--restore-index".to_owned()]
            } else {
                Vec::new()
            };
            if args.nested {
                flags.push("--nested".to_owned());
            }
            if args.here {
                flags.push("--here".to_owned());
            }
            if args.precious {
                flags.push("--precious".to_owned());
            }
            if !args.path.is_empty() {
                flags.push("--path".to_owned());
                flags.extend(args.path.iter().cloned());
            }
            let chosen = choose_restore(context, ui, how, &flags, &|context, selector, how| {
                put_checkpoint_back(context, args, selector, how)
            })?;
            context.confirm();
            chosen
        }
        None => return Err(missing(&["checkpoint", "restore"])),
    };
    let selector = nested::adopt(context, &selector)?;
    reply(
        context,
        &put_checkpoint_back(context, args, &selector, how)?,
        ui,
    )
}

fn put_checkpoint_back(
    context: &Context,
    args: &RestoreArgs,
    selector: &Selector,
    how: How,
) -> Result<Restore> {
    let request = |state: &State| {
        let checkpoint = select::checkpoint(context, state, selector)?;
        let options = RestoreOptions {
            scope: if args.here { Scope::Files } else { Scope::All },
            paths: args.path.clone(),
            commits: how.commits.unwrap_or(Commits::Keep),
            edits: how.edits,
            restore_index: args.restore_index,
            nested: args.nested,
            here: args.here,
            precious: args.precious,
            best_effort: how.best_effort,
        };
        let kind = OperationKind::Restore;
        Ok(RestoreRequest::new(kind, checkpoint, options))
    };
    put_back(context, OperationKind::Restore, request)
}

fn pin(
    context: &Context,
    selector: &Selector,
    pinned: bool,
    note: Option<String>,
    ui: &Ui,
) -> Result<Reply> {
    context.require_something()?;
    let checkpoint = set_pin(context, selector, pinned, note)?;
    let word = match (context.dry_run(), pinned) {
        (true, true) => "Would pin",
        (true, false) => "Would unpin",
        (false, true) => "Pinned",
        (false, false) => "Unpinned",
    };
    let text = format!("{word} {}.\n", ui.knowing(context).id(&checkpoint.id));
    Ok(Reply::new(
        PinReply {
            checkpoint: &checkpoint,
        },
        text,
    ))
}

fn prune(context: &Context, args: &PruneArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let mut limits = Limits {
        keep_last: args.keep_last,
        keep_within: args.keep_within,
        keep_hourly: args.keep_hourly,
        keep_daily: args.keep_daily,
        keep_weekly: args.keep_weekly,
        max_age: args.max_age,
        max_total_size: args.max_total_size,
        drop_failed: args.drop_failed,
        drop_passed: args.drop_passed,
        archive: None,
    };
    if args.archive.is_some() {
        limits.archive = Some(archive_age(context, &limits)?);
    }
    let ui = &ui.knowing(context);
    let pruned = remove(context, &limits, args.archive.as_deref())?;
    let text = render::prune_text(ui, &pruned, context.dry_run());
    Ok(Reply::new(pruned, text))
}

fn verify(context: &Context, selectors: &[Selector], ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let report = check(context, selectors)?;
    let mut text = format!(
        "{} checked, {}.\n",
        count(report.checked, "checkpoint"),
        count(report.problems.len(), "problem")
    );
    let ui = ui.knowing(context);
    for problem in &report.problems {
        let id = ui.id(&problem.checkpoint_id);
        text.push_str(&format!("{id}: {}\n", problem.message));
    }
    let exit = if report.problems.is_empty() {
        ExitCode::DONE
    } else {
        ExitCode::CORRUPT
    };
    Ok(Reply::new(report, text).exit(exit))
}

fn export(context: &Context, args: &ExportArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let state = recovery::load_recovered(context)?;
    let checkpoint = select::checkpoint(context, &state, &args.selector)?;
    let own = args.format.is_some() && args.output.is_none();
    let (format, path) = match (&args.patch, &args.bundle, &args.output) {
        (Some(path), ..) => (Format::Patch, path.clone()),
        (None, Some(path), _) => (Format::Bundle, path.clone()),
        (None, None, Some(path)) => (Format::SeedJson, path.clone()),
        (None, None, None) => (Format::SeedJson, session_file(context, checkpoint)?),
    };
    let reply = |path: Option<&str>, withheld: &[PathReason], text: &str| {
        let changed = !context.dry_run() && path.is_some();
        let base_commit = checkpoint.base_commit.as_ref();
        let exit = if withheld.is_empty() {
            ExitCode::DONE
        } else {
            ExitCode::PARTIAL
        };
        for one in withheld {
            Ui::warn(&format!("{} {}", one.path, one.reason));
        }
        let document = ExportReply {
            checkpoint_id: &checkpoint.id,
            format,
            base_commit,
            changed,
            path,
            withheld,
        };
        Reply::new(document, text).exit(exit)
    };
    if path.as_os_str() == "-" {
        if ui.json {
            return Err(Error::new(
                ErrorKind::Usage,
                "--json and the export cannot both go to standard output",
            ));
        }
        let withheld = if context.dry_run() {
            Vec::new()
        } else {
            to_stream(context, checkpoint, format, &mut std::io::stdout().lock())?
        };
        return Ok(reply(None, &withheld, ""));
    }
    // What is written in a place of our own is a view: it is written anew.
    let (path, withheld) = if own && context.dry_run() {
        (path, Vec::new())
    } else {
        to_file(
            context,
            checkpoint,
            format,
            &path,
            own || args.force || context.says_yes(),
            false,
        )?
    };
    let verb = if context.dry_run() {
        "Would write"
    } else {
        "Wrote"
    };
    let text = format!("{verb} {}\n", escape(&path.to_string_lossy()));
    Ok(reply(Some(&path.to_string_lossy()), &withheld, &text))
}
