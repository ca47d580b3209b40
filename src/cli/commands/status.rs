//! `recover status`: where the run stands, once or each time that it changes.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context as _;

use super::super::args::StatusArgs;
use super::super::render;
use super::super::replies::ExitCode;
use super::super::ui::{Form, Reply, Ui};
use crate::engine::{Context, Error, ErrorKind, Result, status as engine, status};
use crate::model::hint::Hint;
use crate::policy::secrets::redact;

/// Clears a terminal and begins at its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// `recover status`.
pub(super) fn status(context: &Context, args: &StatusArgs, ui: &Ui) -> Result<Reply> {
    if args.watch {
        watch(context, ui)
    } else {
        once(context, ui)
    }
}

/// Where the run stands now.
fn once(context: &Context, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let status = engine::status_anywhere(context)?;
    let now = context.clock.now();
    let text = ui.text(|| render::status_text(&ui.knowing(context), &status, now));
    Ok(Reply::new(status.document(context), text))
}

/// `recover` alone: where the run stands that `status` shows, then the other runs that ended since the last look, in all work
/// trees of the repository, newest first; `None` where nothing is recorded. A look is what a person sees on a terminal.
pub(crate) fn overview(context: &Context, ui: &Ui) -> Result<Option<Reply>> {
    if !context.store().exists() {
        return Ok(None);
    }
    let ended = engine::ended_since(context, engine::last_look(context))?;
    let mut status = engine::status_anywhere(context)?;
    let now = context.clock.now();
    let ui = &ui.knowing(context);
    let text = ui.text(|| {
        let is_own = |one: &engine::EndedRun| {
            one.run.key == status.run.key && one.run.worktree == status.run.worktree
        };
        let others = ended.iter().filter(|one| !is_own(one)).collect::<Vec<_>>();
        render::status_text(ui, &status, now) + &render::ended_text(ui, &others)
    });
    if ui.width.is_some() && !ui.json {
        engine::note_look(context);
    }
    status.ended = ended;
    Ok(Some(Reply::new(status.document(context), text)))
}

/// Shows it again whenever it has changed, until a signal comes. A terminal is redrawn, also where only a time that is
/// printed has passed; elsewhere what is recorded decides.
fn watch(context: &Context, ui: &Ui) -> Result<Reply> {
    if ui.json {
        return Err(Error::new(
            ErrorKind::Usage,
            "--watch has no end, and --json is one document",
        )
        .hint(Hint::recover(["status", "--json"])));
    }
    let redraws = ui.width.is_some() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let mut follow = status::Follow::new(context);
    let mut shown = None;
    loop {
        let text = once(context, ui)?.text;
        let text = ui.fitted(redact(&text), Form::Text).into_owned();
        if shown.as_ref() != Some(&text) {
            let between = match (redraws, &shown) {
                (true, _) => CLEAR,
                (false, Some(_)) => "\n",
                (false, None) => "",
            };
            let mut out = io::stdout().lock();
            match write!(out, "{between}{text}").and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ended(0)),
                written => written.context("cannot write to standard output")?,
            }
            shown = Some(text);
        }
        if let status::Noticed::Stopped(code) =
            follow.wait(redraws.then_some(Duration::from_secs(1)))
        {
            return Ok(ended(code));
        }
    }
}

/// The answer of what has printed everything as it came.
pub(super) fn ended(code: i32) -> Reply {
    Reply::text("").exit(if code == 0 {
        ExitCode::DONE
    } else {
        ExitCode::other(code)
    })
}
