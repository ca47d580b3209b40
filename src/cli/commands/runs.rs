//! Runs `runs`, `close` and `forget`.

use comfy_table::Cell;

use super::super::args::{CloseArgs, ForgetArgs, RestoreProjectArgs, RunsArgs};
use super::super::render::{Table, column, toned, when, words};
use super::super::screens::{self, require_yes};
use super::super::ui::{Paged, Reply, Ui, verb};
use super::{chosen, ids};
use crate::engine::base::clock;
use crate::engine::{Context, Result, forget, isolated, remote, runs, vault};
use crate::model::Timestamp;
use crate::model::agent_record::short_count;
use crate::policy::text::{beginning, count, escape, size};

/// `recover runs`.
pub(super) fn runs(context: &Context, args: &RunsArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let wanted = runs::Wanted {
        all: args.all,
        since: args.since.map(|since| context.clock.now().minus(since)),
        limit: args.limit,
    };
    let listed = if args.remote.is_some() {
        let runs = remote::runs(context, wanted)?;
        runs::Runs {
            runs: runs.iter().map(Into::into).collect(),
            vault: None,
        }
    } else {
        runs::list(context, wanted)?
    };
    let text = ui.text(|| runs_table(ui, &listed.runs, context.clock.now()));
    Ok(Reply::new(listed, text).paged(Paged::Text("log")))
}

/// `recover browse`.
pub(super) fn browse(context: &Context, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    screens::browse(context, ui)?;
    Ok(Reply::text(""))
}

/// `recover close`.
pub(super) fn close(context: &Context, args: &CloseArgs) -> Result<Reply> {
    context.require_something()?;
    close_chosen(context, &chosen(args))
}

/// Closes these and answers.
pub(super) fn close_chosen(context: &Context, chosen: &runs::Chosen) -> Result<Reply> {
    let closed = runs::close(context, chosen)?;
    if !context.dry_run() {
        for run in &closed.runs {
            remote::release(context, &run.key, false);
            isolated::tidy(context, &run.key);
        }
    }
    let verb = verb(context, "Would close", "Closed");
    let mut text = String::new();
    for run in &closed.runs {
        text.push_str(&format!("{verb} run {}.\n", run.key));
    }
    if text.is_empty() && closed.left_open.is_empty() {
        text.push_str("Nothing to close.\n");
    }
    if !closed.left_open.is_empty() {
        let keys = closed.left_open.iter().map(|run| run.key.to_string());
        text.push_str(&format!(
            "Left open, as their work is not accepted or discarded: {}; recover close --all-ended --yes closes them too.\n",
            keys.collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(Reply::new(closed, text))
}

/// `recover forget`.
pub(super) fn forget(context: &mut Context, args: &ForgetArgs, ui: &Ui) -> Result<Reply> {
    if let Some(wanted) = &args.vault {
        return forget_vault(context, wanted, ui);
    }
    context.require_something()?;
    let chosen = (!args.all).then(|| runs::Chosen::Ids(ids(&args.run_id)));
    if ui.interactive && !context.says_yes() && !context.dry_run() {
        let planned = forget::plan(context, chosen.as_ref())?;
        if planned.changed {
            let question = "Remove it for good? This cannot be undone.";
            require_yes(context, ui, &told(&planned), question)?;
        }
    }
    let forgotten = forget::forget(context, chosen.as_ref())?;
    let text = match forgotten.plan {
        Some(runs::Planned { changed: true }) => format!(
            "Would remove for good, which cannot be undone:\n{}",
            told(&forgotten)
        ),
        None if forgotten.changed => format!("Removed for good:\n{}", told(&forgotten)),
        _ => "Nothing to remove.\n".to_owned(),
    };
    Ok(Reply::new(forgotten, text))
}

fn forget_vault(context: &mut Context, wanted: &str, ui: &Ui) -> Result<Reply> {
    if ui.interactive && !context.says_yes() && !context.dry_run() {
        let folder = vault::find(context, wanted)?.folder().display().to_string();
        let question = "Remove it for good? This cannot be undone.";
        require_yes(context, ui, &format!("{}\n", escape(&folder)), question)?;
    }
    let folder = vault::forget(context, wanted)?;
    let forgotten = forget::Forgotten::of_vault(context, &folder);
    let verb = verb(context, "Would remove", "Removed");
    let text = format!("{verb} for good: {}\n", escape(&folder.to_string_lossy()));
    Ok(Reply::new(forgotten, text))
}

/// `recover restore-project`.
pub(super) fn restore_project(
    context: &Context,
    args: &RestoreProjectArgs,
    ui: &Ui,
) -> Result<Reply> {
    let Some(wanted) = &args.vault else {
        let listed = vault::list(context)?;
        let text = ui.text(|| vaults_table(ui, &listed, context.clock.now()));
        return Ok(Reply::new(listed, text));
    };
    let restored =
        vault::restore_project(context, wanted, args.into.as_deref(), args.to.as_deref())?;
    let verb = verb(context, "Would restore", "Restored");
    let files = match &restored.checkpoint_id {
        Some(id) => format!("its files as in {id}"),
        None => "no files: no checkpoint is known".to_owned(),
    };
    let text = format!(
        "{verb} {} in {}, {files}.\n",
        escape(&restored.vault.path),
        escape(&restored.into)
    );
    Ok(Reply::new(restored, text))
}

fn vaults_table(ui: &Ui, listed: &vault::Vaults, now: Timestamp) -> String {
    if listed.vaults.is_empty() {
        return format!("No vaults in {}.\n", escape(&listed.folder));
    }
    let columns = [
        column("ID", 0),
        column("PROJECT", 0),
        column("STATE", 0),
        column("WRITTEN", 2),
        column("LATEST CHECKPOINT", 1),
        column("SIZE", 3),
    ];
    let mut table = Table::new(ui, &columns);
    for one in &listed.vaults {
        let latest = one.latest_checkpoint.as_ref();
        table.add_row([
            Cell::new(one.id.get(..12).unwrap_or(&one.id)),
            Cell::new(escape(&one.path)),
            Cell::new(one.state.replace('_', " ")),
            Cell::new(when(one.written_at, now)),
            Cell::new(latest.map_or("-", |id| id.as_str())),
            Cell::new(size(one.size_bytes)),
        ]);
    }
    table.text()
}

/// What goes, for people.
fn told(forgotten: &forget::Forgotten) -> String {
    let mut text = String::new();
    for key in &forgotten.runs {
        text.push_str(&format!("  run {}\n", escape(&key.to_string())));
    }
    text.push_str(&format!(
        "  {}\n",
        count(forgotten.checkpoints, "checkpoint")
    ));
    for path in &forgotten.removed {
        text.push_str(&format!("  {}\n", escape(path)));
    }
    for key in &forgotten.pruned {
        text.push_str(&format!(
            "  run {} on the remote\n",
            escape(&key.to_string())
        ));
    }
    text
}

/// How much of an error a row holds, in characters.
const ERROR_LENGTH: usize = 60;

/// Runs, newest first; a `*` marks the default run of commands that name none.
pub(crate) fn runs_table(ui: &Ui, listed: &[runs::Listed], now: Timestamp) -> String {
    if listed.is_empty() {
        return "No runs; recover run begins one, recover runs --all lists accepted and closed ones.\n"
            .to_owned();
    }
    // Where they are of one work tree alone, its name says nothing.
    let several = listed.iter().any(|one| one.worktree != listed[0].worktree);
    let mut columns = vec![column("", 0), column("RUN", 0)];
    columns.extend(several.then(|| column("WORK TREE", 2)));
    columns.extend([
        column("STATUS", 0),
        column("DONE", 1),
        column("ATTEMPTS", 4),
        column("STARTED", 2),
        column("COST", 5),
        column("TOKENS", 6),
        column("SIZE", 7),
        words("LAST ERROR", 3),
    ]);
    let mut table = Table::new(ui, &columns);
    let unknown = || "-".to_owned();
    for run in listed {
        let status = match run.driver_pid {
            Some(pid) => format!("{} (pid {pid})", run.state),
            None => run.state.clone(),
        };
        let mut done = run.iterations.done.to_string();
        if let Some(total) = run.iterations.total {
            done.push_str(&format!("/{total}"));
        }
        if run.iterations.given_up > 0 {
            done.push_str(&format!(", {} given up", run.iterations.given_up));
        }
        let error = run.last_error.as_deref().map(escape).unwrap_or_default();
        let held = run
            .limit
            .as_ref()
            .map(|limit| clock::local_times(&limit.text));
        let last = held.map_or_else(|| beginning(&error, ERROR_LENGTH), |held| escape(&held));
        let mut cells = vec![
            Cell::new(if run.chosen { "*" } else { "" }),
            Cell::new(escape(&run.key.to_string())),
        ];
        cells.extend(several.then(|| Cell::new(escape(&run.worktree))));
        cells.extend([
            toned(ui, &status),
            Cell::new(done),
            Cell::new(run.attempts),
            Cell::new(when(run.started_at, now)),
            Cell::new(
                run.usage
                    .cost_usd
                    .map_or_else(unknown, |cost| format!("${cost:.2}")),
            ),
            Cell::new(
                run.usage
                    .tokens
                    .map_or_else(unknown, |tokens| short_count(tokens.total)),
            ),
            Cell::new(size(run.size_bytes)),
            Cell::new(last),
        ]);
        table.add_row(cells);
    }
    table.text()
}
