//! Runs `remote`.

use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::Cell;

use super::super::args::{RemoteArgs, RemoteCheckArgs, RemoteCommand};
use super::super::render::{Table, column};
use super::super::replies::ExitCode;
use super::super::screens::require_yes;
use super::super::ui::{Reply, Ui, escape};
use crate::engine::base::clock;
use crate::engine::{Context, ErrorKind, Result, remote};
use crate::model::time::format_duration;

/// `recover remote`.
pub(super) fn execute(context: &mut Context, args: &RemoteArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let report = match &args.command {
        RemoteCommand::Check(args) => return check(context, args),
        RemoteCommand::Status(_) => remote::status(context)?,
        RemoteCommand::Fetch(_) => remote::fetch(context)?,
        RemoteCommand::Prune(_) => prune(context, ui)?,
        RemoteCommand::Push(args) => remote::push(context, how(false, args.wait))?,
        RemoteCommand::Claim(args) => {
            if args.steal {
                confirm_steal(context, ui)?;
            }
            remote::claim_run(context, how(args.steal, args.wait))?
        }
        RemoteCommand::Release(args) => {
            if args.force {
                confirm_steal(context, ui)?;
            }
            remote::release_run(context, args.force, how(false, None))?
        }
    };
    let text = ui.text(|| remote_text(ui, &report, context.dry_run()));
    Ok(Reply::new(report, text))
}

/// On a terminal it asks, with what would be removed.
fn prune(context: &mut Context, ui: &Ui) -> Result<remote::RemoteReport> {
    match remote::prune(context) {
        Err(error) if error.kind == ErrorKind::ConfirmationNeeded && ui.interactive => {
            let shown = format!("{}\n", escape(&error.message));
            require_yes(context, ui, &shown, "Remove it?")?;
            remote::prune(context)
        }
        done => done,
    }
}

/// How a run is taken.
pub(super) fn how(steals: bool, wait: Option<clock::WaitLimit>) -> remote::TakeOver {
    remote::TakeOver { steals, wait }
}

/// Asks on a terminal whether a run is taken from a machine that may be at work.
pub(super) fn confirm_steal(context: &mut Context, ui: &Ui) -> Result<()> {
    if !ui.interactive || context.says_yes() || context.dry_run() {
        return Ok(());
    }
    let about = "Whoever holds the run may be at work on it, and would stop with its next push.\n";
    require_yes(context, ui, about, "Take it?")
}

fn check(context: &Context, args: &RemoteCheckArgs) -> Result<Reply> {
    let found = remote::check(context, args.name.remote.as_deref(), args.size)?;
    let (name, url) = (escape(&found.remote), escape(&found.url));
    if context.dry_run() {
        let text = format!("Would try a reference for the moment at {url} (remote {name}).\n");
        return Ok(Reply::new(found, text));
    }
    let mut text = format!("{url} (remote {name})\n");
    for one in &found.guarantees {
        let mark = match one.holds {
            Some(true) => "yes",
            Some(false) => "no",
            None => "?",
        };
        let need = if one.required { "" } else { " (not needed)" };
        let _ = writeln!(
            text,
            "  {:<17} {mark:<4} {}{need}",
            one.name,
            escape(&one.detail)
        );
    }
    if let Some(left) = &found.left {
        let _ = writeln!(
            text,
            "The server kept {}; whoever may can delete it.",
            escape(left)
        );
    }
    let code = ExitCode::REFUSED.unless(found.usable);
    text.push_str(if found.usable {
        "Runs can be kept there.\n"
    } else {
        "Runs cannot be kept there: something that they need is missing.\n"
    });
    Ok(Reply::new(found, text).exit(code))
}

/// The runs there, and what was done.
pub(crate) fn remote_text(ui: &Ui, report: &remote::RemoteReport, is_plan: bool) -> String {
    let mut text = String::new();
    let (sent, removed) = if is_plan {
        ("Would send", "Would remove")
    } else {
        ("Sent", "Removed")
    };
    for (verb, keys) in [
        (sent, &report.pushed),
        ("Fetched", &report.fetched),
        (removed, &report.pruned),
    ] {
        for key in keys {
            text.push_str(&format!("{verb} run {}.\n", escape(&key.to_string())));
        }
    }
    if report.runs.is_empty() {
        text.push_str(&format!("No runs on {}.\n", escape(&report.remote)));
        return text;
    }
    let mut table = Table::new(
        ui,
        &[
            column("RUN", 0),
            column("HELD BY", 0),
            column("CLAIM", 2),
            column("UNCHANGED", 3),
            column("NOT SENT", 1),
            column("NOT HERE", 1),
            column("FILES", 4),
        ],
    );
    for run in &report.runs {
        let holder = match (&run.holder, &run.host) {
            (Some(_), Some(host)) => escape(host),
            (None, Some(_)) => "nobody".to_owned(),
            (_, None) => "not there".to_owned(),
        };
        let unchanged = run
            .seen_unchanged_ms
            .map(|millis| format_duration(Duration::from_millis(millis / 1000 * 1000)));
        table.add_row([
            Cell::new(escape(&run.key.to_string())),
            Cell::new(holder),
            Cell::new(run.fencing),
            Cell::new(unchanged.unwrap_or_else(|| "-".to_owned())),
            Cell::new(run.ahead),
            Cell::new(run.behind),
            Cell::new(if run.partial { "partial" } else { "all" }),
        ]);
    }
    text + &table.text()
}
