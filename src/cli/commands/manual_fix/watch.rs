//! `manual-fix watch`: the changes and results, a line each.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use super::super::super::render::{said, seconds, tinted};
use super::super::super::replies::ExitCode;
use super::super::super::ui::{Reply, Ui, escape};
use super::show;
use crate::engine::base::{clock, progress};
use crate::engine::manual_fix::{self, watch};
use crate::engine::{Context, Error, ErrorKind, Result, run};
use crate::model::{Change, Hint, ManualFixStatus, Timestamp};
use crate::policy::secrets::redact;

/// Tells changes and results as they come, until a signal, the deadline or (with `wait`) a verified fix ends it.
pub(super) fn watch(context: &Context, wait: Option<clock::WaitLimit>, ui: &Ui) -> Result<Reply> {
    if context.dry_run() {
        return planned(context);
    }
    let mut watch = watch::Watch::new(context, show(ui))?;
    let longest = wait.and_then(clock::WaitLimit::longest);
    // One that is too far away to be expressed never comes.
    let deadline = longest.and_then(|longest| Instant::now().checked_add(longest));
    let goal = wait.is_some();
    let exit = if goal && watch.fix()?.session.verified {
        ExitCode::DONE
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
    watch: &mut watch::Watch<'_>,
    deadline: Option<Instant>,
    goal: bool,
    lines: Lines,
) -> Result<ExitCode> {
    loop {
        let step = watch.next(deadline)?;
        match lines.tell(&step) {
            Ok(()) => {}
            // Who read the lines is gone, and has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::DONE),
            Err(error) => return Err(Error::io("cannot write to standard output", error)),
        }
        match step {
            watch::Step::Judged(judged) if goal && judged.fix.session.verified => {
                return Ok(ExitCode::DONE);
            }
            watch::Step::Ended => return Ok(ExitCode::DONE),
            watch::Step::GaveUp => return Ok(ExitCode::GAVE_UP_WAITING),
            watch::Step::Stopped(code) => return Ok(ExitCode::other(code)),
            _ => {}
        }
    }
}

/// What a watch would do.
fn planned(context: &Context) -> Result<Reply> {
    let fix = manual_fix::status(context)?;
    is_open(&fix)?;
    let settings = &context.settings().manual_fix;
    let names: Vec<String> = run::loops_of_fix(context, &fix.run)
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

fn is_open(fix: &manual_fix::Fix) -> Result<()> {
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

/// Where the lines go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lines {
    /// They are the answer; whether in colour.
    Stdout(bool),
    /// Stdout belongs to something else; whether in colour.
    Stderr(bool),
    /// Nobody wants them.
    Nowhere,
}

impl Lines {
    /// Beside a document they go to stderr.
    pub(super) fn of(ui: &Ui) -> Self {
        match (ui.json, ui.quiet) {
            (false, _) => Self::Stdout(ui.color),
            (true, false) => Self::Stderr(ui.stderr_color),
            (true, true) => Self::Nowhere,
        }
    }

    /// Writes what a step reports, if anything.
    pub(super) fn tell(self, step: &watch::Step) -> io::Result<()> {
        self.write(&text(step))
    }

    fn write(self, text: &str) -> io::Result<()> {
        let mut text = redact(text);
        if matches!(self, Self::Stdout(true) | Self::Stderr(true)) {
            text = Cow::Owned(tinted(text.into_owned()));
        }
        match self {
            Self::Stdout(_) => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            // With stderr closed there is nobody left to report to.
            Self::Stderr(_) => io::stderr().write_all(text.as_bytes()).or(Ok(())),
            Self::Nowhere => Ok(()),
        }
    }
}

/// Tells what each feedback loop said as soon as it has said it.
impl progress::Observer for Lines {
    fn on_event(&self, _now: Timestamp, event: progress::ProgressEvent<'_>) {
        if let progress::ProgressEvent::LoopEnded { name, result } = event {
            let mark = if result.passed { "passed" } else { "FAILED" };
            let line = format!(
                "{mark} {}: {} ({})\n",
                escape(name),
                said(result),
                seconds(result.duration)
            );
            // Whether anybody still reads is asked with the next step.
            let _ = self.write(&line);
        }
    }
}

/// The lines of a step.
fn text(step: &watch::Step) -> String {
    match step {
        watch::Step::Polling(reason, interval) => {
            format!(
                "polling: {}; files are compared every {}\n",
                escape(reason),
                seconds(*interval)
            )
        }
        watch::Step::Changed(change) => changed(change),
        watch::Step::Reverted(change) => format!("reverted {}\n", escape(&change.path.to_lossy())),
        watch::Step::Verifying(names) => format!("verifying {}\n", escape(&names.join(", "))),
        watch::Step::Judged(judged) => judged_text(judged),
        watch::Step::Restless => {
            "files change whenever the checks run: if they write them, let git ignore them\n"
                .to_owned()
        }
        watch::Step::Ended => "the session has ended\n".to_owned(),
        watch::Step::Asked(_) | watch::Step::GaveUp | watch::Step::Stopped(_) => String::new(),
    }
}

fn changed(change: &Change) -> String {
    let lines = match (change.added, change.deleted) {
        (Some(added), Some(deleted)) => format!(" +{added} -{deleted}"),
        _ => String::new(),
    };
    let from = change
        .old_path
        .as_ref()
        .map(|old| format!("{} -> ", escape(old)))
        .unwrap_or_default();
    format!(
        "{} {from}{}{lines}\n",
        change.kind.as_str(),
        escape(&change.path.to_lossy())
    )
}

fn judged_text(judged: &manual_fix::Judged) -> String {
    let session = &judged.fix.session;
    match (judged.outdated, session.verified) {
        (true, _) => "outdated: files changed while the checks ran; they run again\n",
        (false, true) => "verified\n",
        (false, false) => "not verified\n",
    }
    .to_owned()
}
