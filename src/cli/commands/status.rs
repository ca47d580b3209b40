//! `recover status`: where the run stands, once or each time that it changes.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::json;

use crate::engine::flow::follow::{Follow, Noticed};
use crate::engine::flow::status::status as look;
use crate::engine::{Context, Error, ErrorKind, Result};

use super::super::args::StatusArgs;
use super::super::exit::ExitCode;
use super::super::render;
use super::super::ui::{Reply, Ui};

/// Clears a terminal and begins at its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// `recover status`.
pub fn status(context: &Context, args: &StatusArgs, ui: &Ui) -> Result<Reply> {
    if args.watch { watch(context, ui) } else { once(context, ui) }
}

/// Where the run stands now.
pub fn once(context: &Context, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let status = look(context)?;
    let now = context.clock.now();
    let text = ui.text(|| render::status_text(ui, &status, now));
    let key = Some(&status.run.key);
    let document = json!({
        "run": render::run(&status.run),
        "failure": status.run.failure,
        "options": status.options,
        "manual_steps": status.manual_steps,
        "manual_fix": status.manual_fix,
        "unfinished_operation": status.unfinished_operation,
        "checkpoints": {
            "count": status.checkpoint_count,
            "latest": status.latest,
            "last_good": status.last_good,
        },
        "retry": render::retry(&status.retry, now),
        "baseline": status.run.baseline,
        "iterations": render::latest_iterations(&status.run),
        "steps": status.run.steps.iter().map(|step| step.told(&status.run.key)).collect::<Vec<_>>(),
        "resume_hint": context.hint_command(key, render::way_on(&status.run)),
        "rollback_hint": context.hint_command(key, &["rollback", "--full"]),
    });
    Ok(Reply::new(document, text))
}

/// Shows it again whenever it has changed, until a signal comes. A terminal is redrawn, also where only a time that is
/// told has passed; elsewhere what is recorded decides.
fn watch(context: &Context, ui: &Ui) -> Result<Reply> {
    if ui.json {
        return Err(Error::new(ErrorKind::Usage, "--watch has no end, and --json is one document")
            .hint("recover status --json"));
    }
    let redraws = ui.width.is_some() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let mut follow = Follow::new(context)?;
    let mut shown = None;
    loop {
        let text = once(context, ui)?.text;
        if shown.as_ref() != Some(&text) {
            let between = match (redraws, &shown) {
                (true, _) => CLEAR,
                (false, Some(_)) => "\n",
                (false, None) => "",
            };
            let mut out = io::stdout().lock();
            match write!(out, "{between}{text}").and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ended(0)),
                written => written.map_err(|error| Error::io("cannot write to standard output", error))?,
            }
            shown = Some(text);
        }
        if let Noticed::Stopped(code) = follow.wait(redraws.then_some(Duration::from_secs(1))) {
            return Ok(ended(code));
        }
    }
}

/// The answer of what has told everything as it came.
pub fn ended(code: i32) -> Reply {
    Reply::new(json!({}), "").exit(if code == 0 { ExitCode::Done } else { ExitCode::other(code) })
}
