//! Bare `manual-fix` on a terminal: a display that watches, verifies and asks how to go on (B8).
//! With `--edit` the user's editor is opened at the first error before.
//!
//! The display only adds lines, so that it works on any terminal and what was printed can be scrolled back to. All of it goes to
//! stderr: stdout stays the answer's.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use itertools::Itertools as _;

use super::super::super::keys::{Key, Keys};
use super::super::super::replies::ExitCode;
use super::super::super::terminal_text::wrapped;
use super::super::super::ui::{Reply, Ui, escape};
use super::watch::Lines;
use super::{go_on, reply, show};
use crate::engine::manual_fix::{self, watch};
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::failure::Location;
use crate::model::time::format_duration;
use crate::model::{Hint, ManualFixSession};
use crate::process::{Show, Signal};

const KEYS: &str = "Keys: v verify now, c continue once verified, Enter the one of them that is next, a abort, q leave it open";
/// How often it is said when the last change was seen.
const TICK: Duration = Duration::from_secs(1);
/// What the return key asks for.
const ENTER: char = '\r';
/// What Ctrl-D sends.
const END_OF_INPUT: char = '\u{4}';
/// This many lines of an error are shown.
const LINES: usize = 10;

/// Opens or resumes a session and stays with it until a user says how to go on.
pub(super) fn screen(context: &Context, editor: Option<&Editor>, ui: &Ui) -> Result<Reply> {
    let fix = manual_fix::start(context)?;
    if context.dry_run() {
        return Ok(reply(context, &fix, ui));
    }
    if let Some(editor) = editor {
        editor.open(context, &fix.session, ui)?;
        // A Ctrl-C that was pressed there was not meant for us; who wants to end us still does.
        context.interrupts.take_only(Signal::Int);
    }
    introduce(&fix, ui);
    let mut watch = watch::Watch::new(context, Show::Nothing)?;
    if watch.loops().is_empty() {
        ui.note("No checks are configured: nothing can be verified.");
    }
    context
        .progress
        .observe(Arc::new(Lines::Stderr(ui.stderr_color)));
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
        End::Abort => Ok(reply(context, &manual_fix::abort(context)?, ui)),
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

fn attend(watch: &mut watch::Watch<'_>, context: &Context, ui: &Ui) -> Result<End> {
    let mut footer = Footer::default();
    loop {
        let step = watch.next(ui.moves.then(|| Instant::now() + TICK))?;
        if ui.moves && matches!(step, watch::Step::GaveUp) {
            footer.draw();
            continue;
        }
        footer.clear();
        if matches!(step, watch::Step::Changed(_) | watch::Step::Reverted(_)) {
            footer.detected = Some(Instant::now());
        }
        // With stderr closed there is nobody left to report to.
        let _ = Lines::Stderr(ui.stderr_color).tell(&step);
        match step {
            watch::Step::Judged(judged) => ask(&judged, context, ui),
            watch::Step::Asked('v' | ENTER) if watch.loops().is_empty() => {
                ui.note("There are no checks to run.");
            }
            watch::Step::Asked('c' | ENTER) if watch.fix()?.session.verified => {
                return Ok(End::Continue);
            }
            watch::Step::Asked('v' | ENTER) => watch.verify(),
            watch::Step::Asked('c') => ui.note("Not verified as it is: v runs the checks."),
            watch::Step::Asked('a') => return Ok(End::Abort),
            watch::Step::Asked('q' | END_OF_INPUT) | watch::Step::Ended | watch::Step::GaveUp => {
                return Ok(End::Leave(ExitCode::DONE));
            }
            watch::Step::Asked(_) => ui.note(KEYS),
            watch::Step::Stopped(code) => return Ok(End::Leave(ExitCode::other(code))),
            watch::Step::Polling(..)
            | watch::Step::Changed(_)
            | watch::Step::Reverted(_)
            | watch::Step::Verifying(_)
            | watch::Step::Restless => {}
        }
    }
}

/// The line below all others: when the last change was seen.
#[derive(Default)]
struct Footer {
    detected: Option<Instant>,
    shown: String,
}

impl Footer {
    fn draw(&mut self) {
        let text = match self.detected {
            Some(at) => format!(
                "Last detected: {} ago",
                format_duration(whole_seconds(at.elapsed()))
            ),
            None => "Watching for changes. Last detected: (waiting)".to_owned(),
        };
        if text != self.shown {
            // With stderr closed there is nobody left to see it.
            let _ = write!(io::stderr(), "\r\x1b[K{text}");
            self.shown = text;
        }
    }

    fn clear(&mut self) {
        if !std::mem::take(&mut self.shown).is_empty() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl Drop for Footer {
    fn drop(&mut self) {
        self.clear();
    }
}

fn whole_seconds(time: Duration) -> Duration {
    Duration::from_secs(time.as_secs())
}

/// What is to be fixed, and how.
fn introduce(fix: &manual_fix::Fix, ui: &Ui) {
    ui.note(&format!("Manual fix of run {}", fix.run.key));
    if let Some(issue) = &fix.session.issue {
        ui.note(&format!("Issue: {}", issue.message));
        // What was said just now need not be said again.
        let lines = issue.details.as_deref().unwrap_or_default().lines();
        let mut more = lines.filter(|line| !issue.message.contains(line.trim()));
        excerpt(&more.join("\n"), ui);
    }
    ui.note("Fix it in your editor and save: changes appear here.");
}

/// After a verification: what is wrong, and what can be done.
fn ask(judged: &manual_fix::Judged, context: &Context, ui: &Ui) {
    if let Some(failure) = &judged.failure {
        excerpt(failure.details.as_deref().unwrap_or(&failure.message), ui);
        let logs = manual_fix::log_dir(context, &judged.fix.session);
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
    let lines = lines.map(|line| wrapped(&line, width)).join("\n");
    for line in lines.lines().take(LINES) {
        ui.note(&format!("  {line}"));
    }
}

/// Keys that leave a verification behind.
fn listen(asker: watch::Asker) -> io::Result<Keys> {
    Keys::listen(move |key| match key {
        Key::Char(c) => match c.to_ascii_lowercase() {
            leaving @ ('a' | 'q') => asker.insist(leaving),
            other => asker.ask(other),
        },
        Key::Enter => asker.ask(ENTER),
        Key::EndOfInput | Key::Gone => asker.insist(END_OF_INPUT),
        _ => true,
    })
}

/// The user's editor, with its own arguments.
#[derive(Debug)]
pub(super) struct Editor(Vec<String>);

impl Editor {
    /// `$VISUAL`, else `$EDITOR`.
    pub(super) fn of(context: &Context) -> Result<Self> {
        let named = context.env("VISUAL").or_else(|| context.env("EDITOR"));
        let words = named
            .as_deref()
            .and_then(shlex::split)
            .filter(|words| !words.is_empty());
        words.map(Self).ok_or_else(|| {
            Error::new(
                ErrorKind::Usage,
                "--edit needs an editor, and neither VISUAL nor EDITOR names one",
            )
            .hint(Hint::recover(["manual-fix", "start"]))
        })
    }

    /// Opens the first place in a file of the work tree that the feedback loop names which failed last, else the failure
    /// that the session began with, and waits until the editor ends.
    pub(super) fn open(
        &self,
        context: &Context,
        session: &ManualFixSession,
        ui: &Ui,
    ) -> Result<()> {
        let Some(place) = manual_fix::first_place(context, session) else {
            ui.note(
                "The failure names no place in a file of this work tree: there is nothing to open.",
            );
            return Ok(());
        };
        let Some((program, own)) = self.0.split_first() else {
            return Ok(());
        };
        let mut command = Command::new(program);
        command
            .args(own)
            .args(arguments(program, &place))
            .current_dir(context.worktree());
        if ui.json {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        let ended = command
            .status()
            .with_context(|| format!("cannot start the editor {program}"))?;
        if !ended.success() {
            ui.note(&format!("The editor {program} ended with {ended}."));
        }
        Ok(())
    }
}

/// How an editor is given a place. One that nobody knows is given the file alone.
fn arguments(program: &str, place: &Location) -> Vec<String> {
    let name = Path::new(program)
        .file_stem()
        .map(|name| name.to_string_lossy().to_lowercase())
        .unwrap_or_default();
    let column = place
        .column
        .map(|column| format!(":{column}"))
        .unwrap_or_default();
    let with_colons = format!("{}:{}{column}", place.path, place.line);
    match name.as_str() {
        "vi" | "vim" | "nvim" | "gvim" | "nvi" | "view" | "emacs" | "emacsclient" | "nano"
        | "pico" | "micro" | "kak" | "joe" | "jed" | "mg" | "ne" | "gedit" | "less" => {
            vec![format!("+{}", place.line), place.path.clone()]
        }
        "code" | "code-insiders" | "codium" | "vscodium" | "cursor" | "windsurf" => {
            vec!["--goto".to_owned(), with_colons]
        }
        "hx" | "helix" | "subl" | "sublime_text" | "zed" | "zeditor" => vec![with_colons],
        _ => vec![place.path.clone()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_editor_is_told_in_its_own_way() {
        let place = Location {
            path: "/w/a.rs".to_owned(),
            line: 3,
            column: Some(5),
        };
        for (program, expected) in [
            ("vim", "+3 /w/a.rs"),
            ("/usr/bin/nvim", "+3 /w/a.rs"),
            ("nano", "+3 /w/a.rs"),
            ("code", "--goto /w/a.rs:3:5"),
            ("cursor", "--goto /w/a.rs:3:5"),
            ("hx", "/w/a.rs:3:5"),
            ("zed", "/w/a.rs:3:5"),
            ("something", "/w/a.rs"),
        ] {
            assert_eq!(arguments(program, &place).join(" "), expected, "{program}");
        }
    }
}
