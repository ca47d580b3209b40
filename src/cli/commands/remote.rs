//! Runs `remote`.

use std::fmt::Write as _;

use crate::engine::base::clock::WaitLimit;
use crate::engine::remote::{self, RemoteReport, TakeOver, check};
use crate::engine::{Context, Error, ErrorKind, Result};

use super::super::args::{RemoteArgs, RemoteCheckArgs, RemoteCommand};
use super::super::exit::ExitCode;
use super::super::render;
use super::super::screens::agrees;
use super::super::ui::{Reply, Ui, escape};

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
    let text = ui.text(|| render::remote_text(ui, &report, context.dry_run()));
    Ok(Reply::new(report, text))
}

/// On a terminal it asks, with what would be removed.
fn prune(context: &mut Context, ui: &Ui) -> Result<RemoteReport> {
    match remote::prune(context) {
        Err(error) if error.kind == ErrorKind::ConfirmationNeeded && ui.interactive => {
            if !agrees(
                context,
                ui,
                &format!("{}\n", escape(&error.message)),
                "Remove it?",
            )? {
                return Err(Error::new(
                    ErrorKind::Interrupted(130),
                    "cancelled; nothing was changed",
                ));
            }
            context.confirm();
            remote::prune(context)
        }
        done => done,
    }
}

/// How a run is taken.
pub(super) fn how(steals: bool, wait: Option<WaitLimit>) -> TakeOver {
    TakeOver { steals, wait }
}

/// Asks on a terminal whether a run is taken from a machine that may be at work.
pub(super) fn confirm_steal(context: &mut Context, ui: &Ui) -> Result<()> {
    if !ui.interactive || context.says_yes() || context.dry_run() {
        return Ok(());
    }
    let about = "Whoever holds the run may be at work on it, and would stop with its next push.\n";
    if !agrees(context, ui, about, "Take it?")? {
        return Err(Error::new(
            ErrorKind::Interrupted(130),
            "cancelled; nothing was changed",
        ));
    }
    context.confirm();
    Ok(())
}

fn check(context: &Context, args: &RemoteCheckArgs) -> Result<Reply> {
    let found = check::check(context, args.name.remote.as_deref(), args.size)?;
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
    let code = if found.usable {
        ExitCode::Done
    } else {
        ExitCode::Refused
    };
    text.push_str(if found.usable {
        "Runs can be kept there.\n"
    } else {
        "Runs cannot be kept there: something that they need is missing.\n"
    });
    Ok(Reply::new(found, text).exit(code))
}
