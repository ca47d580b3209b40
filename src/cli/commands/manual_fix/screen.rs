//! Bare `manual-fix` on a terminal: a long-lived display that watches, verifies and asks how to go on (B8).
//!
//! It only adds lines, so that it works on any terminal and what was printed can be scrolled back to. All of it goes to
//! stderr: stdout stays the answer's.

use std::io;
use std::sync::Arc;

use anyhow::Context as _;

use crate::engine::flow::fix_session::{Fix, log_dir};
use crate::engine::flow::manual_fix::watch::{Asker, Step, Watch};
use crate::engine::flow::manual_fix::{Judged, abort, start};
use crate::engine::{Context, Result};
use crate::process::{Show, Signal};

use super::super::super::exit::ExitCode;
use super::super::super::keys::{Key, Keys};
use super::super::super::terminal_text::between_words;
use super::super::super::ui::{Reply, Ui, escape};
use super::edit::Editor;
use super::lines::Lines;
use super::reply::{go_on, reply, show};

const KEYS: &str = "Keys: v verify now, c continue once verified, a abort, q leave it open";
/// What Ctrl-D sends.
const END_OF_INPUT: char = '\u{4}';
/// So many lines of an error are shown.
const LINES: usize = 10;

/// Opens or takes up a session and stays with it until somebody says how to go on.
pub(super) fn screen(context: &Context, editor: Option<&Editor>, ui: &Ui) -> Result<Reply> {
    let fix = start(context)?;
    if context.dry_run() {
        return Ok(reply(context, &fix, ui));
    }
    if let Some(editor) = editor {
        editor.open(context, &fix.session, ui)?;
        // A Ctrl-C that was pressed there was not meant for us; who wants to end us still does.
        context.interrupts.take_only(Signal::Int);
    }
    introduce(&fix, ui);
    let mut watch = Watch::new(context, Show::Nothing)?;
    if watch.loops().is_empty() {
        ui.note("No checks are configured: nothing can be verified.");
    }
    context.progress.observe(Arc::new(Lines::Stderr));
    let keys = listen(watch.asker()).context("cannot talk to the terminal")?;
    // Only now: what is pressed on the strength of this is a key already.
    ui.note(KEYS);
    let end = attend(&mut watch, context, ui)?;
    // The terminal is as it was before anything else writes on it.
    drop(keys);
    let last = watch.fix()?;
    drop(watch);
    let same = match end {
        End::Continue => "recover manual-fix continue",
        End::Abort => "recover manual-fix abort",
        End::Leave(_) if last.session.verified => {
            "recover manual-fix start, recover manual-fix verify"
        }
        End::Leave(_) => "recover manual-fix start",
    };
    ui.note(&format!("Same as: {same}"));
    match end {
        End::Continue => go_on(context, None, false, show(ui), ui),
        End::Abort => Ok(reply(context, &abort(context)?, ui)),
        End::Leave(exit) => Ok(reply(context, &last, ui).exit(exit)),
    }
}

/// How it goes on.
enum End {
    Continue,
    Abort,
    /// The session stays open.
    Leave(ExitCode),
}

fn attend(watch: &mut Watch<'_>, context: &Context, ui: &Ui) -> Result<End> {
    loop {
        let step = watch.next(None)?;
        // With stderr closed there is nobody left to report to.
        let _ = Lines::Stderr.tell(&step);
        match step {
            Step::Judged(judged) => ask(&judged, context, ui),
            Step::Asked('v') if watch.loops().is_empty() => ui.note("There are no checks to run."),
            Step::Asked('v') => watch.verify(),
            Step::Asked('c') if watch.fix()?.session.verified => return Ok(End::Continue),
            Step::Asked('c') => ui.note("Not verified as it is: v runs the checks."),
            Step::Asked('a') => return Ok(End::Abort),
            Step::Asked('q' | END_OF_INPUT) | Step::Ended | Step::GaveUp => {
                return Ok(End::Leave(ExitCode::Done));
            }
            Step::Asked(_) => ui.note(KEYS),
            Step::Stopped(code) => return Ok(End::Leave(ExitCode::other(code))),
            Step::Polling(..)
            | Step::Changed(_)
            | Step::Reverted(_)
            | Step::Verifying(_)
            | Step::Restless => {}
        }
    }
}

/// What is to be fixed, and how.
fn introduce(fix: &Fix, ui: &Ui) {
    ui.note(&format!("Manual fix of run {}", fix.run.key));
    if let Some(issue) = &fix.session.issue {
        ui.note(&format!("Issue: {}", issue.message));
        // What was said just now need not be said again.
        let lines = issue.details.as_deref().unwrap_or_default().lines();
        let more: Vec<&str> = lines
            .filter(|line| !issue.message.contains(line.trim()))
            .collect();
        excerpt(&more.join("\n"), ui);
    }
    ui.note("Fix it in your editor and save: changes appear here.");
}

/// After a verification: what is wrong, and what can be done.
fn ask(judged: &Judged, context: &Context, ui: &Ui) {
    if let Some(failure) = &judged.failure {
        excerpt(failure.details.as_deref().unwrap_or(&failure.message), ui);
        let logs = log_dir(context, &judged.fix.session);
        ui.note(&format!("All of it: {}", logs.display()));
    }
    if judged.fix.session.verified {
        ui.note("Press c to continue with the fix.");
    }
    ui.note(KEYS);
}

/// The first lines of an error, none longer than a small terminal is wide.
fn excerpt(text: &str, ui: &Ui) {
    let width = usize::from(ui.width.unwrap_or(80))
        .saturating_sub(4)
        .max(20);
    let lines = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| escape(&line.replace('\t', "    ")));
    let lines = lines
        .map(|line| between_words(&line, width))
        .collect::<Vec<_>>()
        .join("\n");
    for line in lines.lines().take(LINES) {
        ui.note(&format!("  {line}"));
    }
}

/// Keys that leave a verification behind.
fn listen(asker: Asker) -> io::Result<Keys> {
    Keys::listen(move |key| match key {
        Key::Char(c) => match c.to_ascii_lowercase() {
            leaving @ ('a' | 'q') => asker.insist(leaving),
            other => asker.ask(other),
        },
        Key::EndOfInput | Key::Gone => asker.insist(END_OF_INPUT),
        _ => true,
    })
}
