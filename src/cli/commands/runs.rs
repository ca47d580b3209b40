//! Runs `runs`, `close` and `forget`.

use crate::engine::flow::forget::{Forgotten, forget as forget_runs, plan};
use crate::engine::flow::remote;
use crate::engine::flow::runs::{Chosen, Planned, Runs, close as close_runs, list};
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::id::RunId;

use super::super::args::{CloseArgs, ForgetArgs, RunsArgs};
use super::super::render;
use super::super::screens::{self, agrees};
use super::super::ui::{Paged, Reply, Ui};
use crate::policy::amounts::count;
use crate::policy::escape::escape;

/// `recover runs`.
pub(super) fn runs(context: &Context, args: &RunsArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let listed = if args.remote.is_some() {
        let runs = remote::runs(context, args.all, args.limit)?;
        Runs {
            runs: runs.iter().map(Into::into).collect(),
        }
    } else {
        list(context, args.all, args.limit)?
    };
    let text = ui.text(|| render::runs_table(ui, &listed.runs, context.clock.now()));
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
    let chosen = if args.all_ended {
        Chosen::Ended
    } else {
        Chosen::Ids(args.run_id.iter().cloned().map(RunId::from).collect())
    };
    close_chosen(context, &chosen)
}

/// Closes these and answers.
pub(super) fn close_chosen(context: &Context, chosen: &Chosen) -> Result<Reply> {
    let closed = close_runs(context, chosen)?;
    if !context.dry_run() {
        closed
            .runs
            .iter()
            .for_each(|run| remote::release(context, &run.key, false));
    }
    let verb = if context.dry_run() {
        "Would close"
    } else {
        "Closed"
    };
    let mut text = String::new();
    for run in &closed.runs {
        text.push_str(&format!("{verb} run {}.\n", run.key));
    }
    if text.is_empty() {
        text.push_str("Nothing to close.\n");
    }
    Ok(Reply::new(closed, text))
}

/// `recover forget`.
pub(super) fn forget(context: &mut Context, args: &ForgetArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let chosen =
        (!args.all).then(|| Chosen::Ids(args.run_id.iter().cloned().map(RunId::from).collect()));
    if ui.interactive && !context.says_yes() && !context.dry_run() {
        let planned = plan(context, chosen.as_ref())?;
        if planned.changed {
            if !agrees(
                context,
                ui,
                &told(&planned),
                "Remove it for good? This cannot be undone.",
            )? {
                return Err(Error::new(
                    ErrorKind::Interrupted(130),
                    "cancelled; nothing was changed",
                ));
            }
            context.confirm();
        }
    }
    let forgotten = forget_runs(context, chosen.as_ref())?;
    let text = match forgotten.plan {
        Some(Planned { changed: true }) => format!(
            "Would remove for good, which cannot be undone:\n{}",
            told(&forgotten)
        ),
        None if forgotten.changed => format!("Removed for good:\n{}", told(&forgotten)),
        _ => "Nothing to remove.\n".to_owned(),
    };
    Ok(Reply::new(forgotten, text))
}

/// What goes, for people.
fn told(forgotten: &Forgotten) -> String {
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
    text
}
