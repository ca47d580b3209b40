//! `manual-fix watch`.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::engine::base::clock::WaitLimit;
use crate::engine::manual_fix::watch::{Step, Watch};
use crate::engine::record::run_settings::loops_of_fix;
use crate::engine::run::fix_session::{Fix, status};
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::hint::Hint;
use crate::model::manual_fix::ManualFixStatus;

use super::super::super::exit::ExitCode;
use super::super::super::ui::{Reply, Ui};
use super::lines::Lines;
use super::reply::show;

/// Tells changes and results as they come, until a signal, the deadline or (with `wait`) a verified fix ends it.
pub(super) fn watch(context: &Context, wait: Option<WaitLimit>, ui: &Ui) -> Result<Reply> {
    if context.dry_run() {
        return planned(context);
    }
    let mut watch = Watch::new(context, show(ui))?;
    let longest = wait.and_then(WaitLimit::longest);
    // One that is too far away to be expressed never comes.
    let deadline = longest.and_then(|longest| Instant::now().checked_add(longest));
    let goal = wait.is_some();
    let exit = if goal && watch.fix()?.session.verified {
        ExitCode::Done
    } else {
        ui.note(&format!(
            "Watching {}; Ctrl-C ends it, and the session stays open.",
            context.worktree().display()
        ));
        if watch.loops().is_empty() {
            ui.note("No checks are configured: nothing is verified.");
        }
        let lines = Lines::of(ui);
        context.progress.observe(Arc::new(lines));
        follow(&mut watch, deadline, goal, lines)?
    };
    let fix = watch.fix()?;
    let key = Some(&fix.run.key);
    let next = match fix.session.status {
        ManualFixStatus::Active if fix.session.verified => "continue",
        ManualFixStatus::Active => "watch",
        ManualFixStatus::Completed | ManualFixStatus::Aborted => "status",
    };
    ui.note(&format!(
        "Continue: {}",
        context.line(Hint::recover(["manual-fix", next]).run(key))
    ));
    Ok(Reply::new(fix, "").exit(exit))
}

fn follow(
    watch: &mut Watch<'_>,
    deadline: Option<Instant>,
    goal: bool,
    lines: Lines,
) -> Result<ExitCode> {
    loop {
        let step = watch.next(deadline)?;
        match lines.tell(&step) {
            Ok(()) => {}
            // Who read the lines is gone, and has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::Done),
            Err(error) => return Err(Error::io("cannot write to standard output", error)),
        }
        match step {
            Step::Judged(judged) if goal && judged.fix.session.verified => {
                return Ok(ExitCode::Done);
            }
            Step::Ended => return Ok(ExitCode::Done),
            Step::GaveUp => return Ok(ExitCode::GaveUpWaiting),
            Step::Stopped(code) => return Ok(ExitCode::other(code)),
            _ => {}
        }
    }
}

/// What a watch would do.
fn planned(context: &Context) -> Result<Reply> {
    let fix = status(context)?;
    is_open(&fix)?;
    let settings = &context.settings().manual_fix;
    let names: Vec<String> = loops_of_fix(context, &fix.run)
        .into_iter()
        .map(|feedback| feedback.name)
        .collect();
    let then = match (settings.verify_on_change, names.is_empty()) {
        (false, _) => "run nothing (verify_on_change = false)".to_owned(),
        (true, true) => "run nothing: no checks are configured".to_owned(),
        (true, false) => format!("run {} after each change", names.join(", ")),
    };
    let text = format!("Would watch {} and {then}.\n", context.worktree().display());
    Ok(Reply::new(fix, text))
}

fn is_open(fix: &Fix) -> Result<()> {
    if fix.session.status == ManualFixStatus::Active {
        return Ok(());
    }
    let key = &fix.run.key;
    Err(Error::new(
        ErrorKind::NoSession,
        format!("no manual fix of run {key} is open"),
    )
    .hint(Hint::recover(["manual-fix", "start"]).run(key)))
}
