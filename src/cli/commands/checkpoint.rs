//! Runs `checkpoint`.

use std::borrow::Cow;

use anyhow::Context as _;

use super::super::args::{
    CheckpointArgs, CheckpointCommand, CreateArgs, DiffArgs, ExportArgs, How, ListArgs, PruneArgs,
    RestoreArgs, ShowArgs,
};
use super::super::render;
use super::super::replies::ExitCode;
use super::super::screens::{choose_checkpoint, choose_restore};
use super::super::ui::{Paged, Reply, Ui, escape, verb};
use super::exchange::foreign_line;
use super::restore::reply;
use crate::engine::{
    Context, Error, ErrorKind, Result, checkpoint, doctor, exchange, inspect, rollback, runs,
};
use crate::model::checkpoint::trigger;
use crate::model::{Hint, Scope, Selector};
use crate::policy::retention::Limits;
use crate::policy::secrets::{redact, redact_json};
use crate::policy::text::count;

/// Dispatches.
pub(super) fn execute(context: &mut Context, args: &CheckpointArgs, ui: &Ui) -> Result<Reply> {
    match &args.command {
        CheckpointCommand::Create(args) => create(context, args, ui),
        CheckpointCommand::List(args) => list(context, args, ui),
        CheckpointCommand::Show(args) => show(context, args, ui),
        CheckpointCommand::Diff(args) => diff(context, args, ui),
        CheckpointCommand::Restore(args) => restore(context, args, ui),
        CheckpointCommand::Prune(args) => remove(context, args, ui),
        CheckpointCommand::Pin(args) => pin(context, &args.selector, true, args.note.clone(), ui),
        CheckpointCommand::Unpin(args) => pin(context, &args.selector, false, None, ui),
        CheckpointCommand::Verify(args) => verify(context, &args.selectors, ui),
        CheckpointCommand::Export(args) => export(context, args, ui),
    }
}

fn create(context: &Context, args: &CreateArgs, ui: &Ui) -> Result<Reply> {
    let options = checkpoint::Options {
        skip_if_unchanged: args.if_changed,
        skip_if_not_due: args.if_due,
        ..checkpoint::Options::default()
    };
    let why = args.trigger.as_deref().unwrap_or_default();
    if context.dry_run() {
        let plan = checkpoint::plan(context, why, options)?;
        let text = match (&plan.checkpoint, plan.captured()) {
            (None, Some(totals)) => format!(
                "Would capture {} ({} bytes).\n",
                count(totals.files, "file"),
                totals.bytes
            ),
            (latest, _) => format!(
                "None is due: {} is young enough.\n",
                latest
                    .as_ref()
                    .map(|one| ui.knowing(context).id(&one.id))
                    .unwrap_or_default()
            ),
        };
        return Ok(Reply::new(plan, text));
    }
    let request = checkpoint::Request {
        description: args.message.clone().unwrap_or_default(),
        trigger: why.to_owned(),
        kind: args.kind.unwrap_or_else(|| trigger::kind_of(why)),
        after_iteration: args.iteration,
        lane_fields: args.lane.clone().into(),
        pinned: args.pin,
        storage: args.storage,
        ..checkpoint::Request::default()
    };
    let created = checkpoint::create(context, request, options)?;
    let checkpoint::Created {
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
    let exit = ExitCode::PARTIAL.unless(!(checkpoint.partial && *changed));
    Ok(Reply::new(created, text).exit(exit))
}

fn list(context: &Context, args: &ListArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let state = inspect::load_recovered(context)?;
    let list = inspect::checkpoints(context, &state, args.all_runs, args.limit)?;
    let text = ui.text(|| {
        let ui = &ui.knowing(context);
        let foreign = list.imported.iter();
        let foreign = foreign.map(|one| format!("{}\n", foreign_line(one)));
        render::checkpoints_table(ui, &list, args.all_runs, context.clock.now())
            + &foreign.collect::<String>()
    });
    Ok(Reply::new(list, text).paged(Paged::Text("log")))
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
    let state = inspect::load_recovered(context)?;
    let mut shown = inspect::show(context, &state, &selector, args.patch)?;
    let mut text = render::checkpoint_text(shown.checkpoint, context.clock.now());
    for inside in &shown.nested {
        let what = inside
            .checkpoint
            .as_ref()
            .map_or_else(|| "not captured".to_owned(), ToString::to_string);
        let path = escape(&inside.path.to_lossy());
        text.push_str(&format!("{:<12}{path}: {what}\n", "nested"));
    }
    let Some(patch) = shown.patch.take() else {
        return Ok(Reply::new(shown, text).paged(Paged::Text("show")));
    };
    // The patch is content; what is said about it is not.
    let mut document = redact_json(serde_json::to_value(shown).context("cannot write the answer")?);
    let text = format!("{}\n{}", redact(&text), shown_patch(&patch, ui));
    document["patch"] = patch.into();
    Ok(Reply::new(document, text)
        .content()
        .paged(Paged::Patch("show")))
}

/// In colour where that is wanted.
fn shown_patch<'a>(patch: &'a str, ui: &Ui) -> Cow<'a, str> {
    if ui.color {
        Cow::Owned(render::tinted_patch(patch))
    } else {
        Cow::Borrowed(patch)
    }
}

fn diff(context: &Context, args: &DiffArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    // Without a word it is what the run changed.
    let whole = args.from.is_none() && !ui.interactive;
    let from = match &args.from {
        None if whole => Selector::Initial,
        from => chosen(context, ui, from.as_ref(), &["checkpoint", "diff"])?,
    };
    let latest = whole.then_some(Selector::Latest(0));
    let both = (&from, args.to.as_ref().or(latest.as_ref()));
    let paths = context.globs_in_work_tree(&args.path)?;
    let difference = inspect::diff_named(context, both, &paths, args.patch)?;
    if let Some(patch) = &difference.patch {
        return Ok(Reply::new(&difference, shown_patch(patch, ui))
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
    let how = args.files.how;
    let scope = if args.here { Scope::Files } else { Scope::All };
    let given = rollback::Options {
        here: args.here,
        ..args
            .files
            .options(context, scope, rollback::Commits::Keep)?
    };
    let put_back = |context: &Context, selector: &Selector, how: How| {
        rollback::restore_files(context, selector, how.options(&given))
    };
    let (selector, how) = match &args.selector {
        Some(selector) => (selector.clone(), how),
        None if ui.interactive => {
            let mut flags = args.files.words();
            if args.here {
                flags.insert(0, "--here".to_owned());
            }
            let chosen = choose_restore(context, ui, how, &flags, &put_back)?;
            context.confirm();
            chosen
        }
        None => return Err(missing(&["checkpoint", "restore"])),
    };
    let restored = put_back(context, &selector, how)?;
    reply(context, &restored, ui)
}

fn pin(
    context: &Context,
    selector: &Selector,
    pinned: bool,
    note: Option<String>,
    ui: &Ui,
) -> Result<Reply> {
    context.require_something()?;
    let pin = checkpoint::pin(context, selector, pinned, note)?;
    let word = match (context.dry_run(), pinned) {
        (true, true) => "Would pin",
        (true, false) => "Would unpin",
        (false, true) => "Pinned",
        (false, false) => "Unpinned",
    };
    let text = format!("{word} {}.\n", ui.knowing(context).id(&pin.checkpoint.id));
    Ok(Reply::new(pin, text))
}

fn remove(context: &Context, args: &PruneArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let limits = Limits {
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
    let ui = &ui.knowing(context);
    let pruned = runs::prune::prune(context, limits, args.archive.as_deref())?;
    let text = render::prune_text(ui, &pruned, context.dry_run());
    Ok(Reply::new(pruned, text))
}

fn verify(context: &Context, selectors: &[Selector], ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let report = doctor::verify(context, selectors)?;
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
    let exit = ExitCode::CORRUPT.unless(report.problems.is_empty());
    Ok(Reply::new(report, text).exit(exit))
}

fn export(context: &Context, args: &ExportArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let (format, path) = match (&args.patch, &args.bundle) {
        (Some(path), _) => (exchange::Format::Patch, Some(path)),
        (None, Some(path)) => (exchange::Format::Bundle, Some(path)),
        (None, None) => (exchange::Format::SeedJson, args.output.as_ref()),
    };
    let request = exchange::Request {
        selector: args.selector.clone(),
        format,
        path: path.cloned(),
        force: args.force,
    };
    if request.is_stream() && ui.json {
        return Err(Error::new(
            ErrorKind::Usage,
            "--json and the export cannot both go to standard output",
        ));
    }
    let exported = request.carry_out(context, &mut std::io::stdout().lock())?;
    for one in &exported.withheld {
        Ui::warn(&format!("{} {}", one.path, one.reason));
    }
    let verb = verb(context, "Would write", "Wrote");
    let path = exported.path.as_deref();
    let text = path.map(|path| format!("{verb} {}\n", escape(path)));
    let exit = ExitCode::PARTIAL.unless(exported.withheld.is_empty());
    Ok(Reply::new(exported, text.unwrap_or_default()).exit(exit))
}
