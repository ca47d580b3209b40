//! `manual-fix …`.

mod edit;
mod lines;
mod screen;
mod watch;

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::engine::flow::fix_session::{Fix, status};
use crate::engine::flow::manual_fix::{abort, resume_with_fix, start, verify};
use crate::engine::flow::run::DriveOptions;
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::manual_fix::ManualFixStatus;
use crate::process::Show;

use super::super::args::{ManualFixArgs, ManualFixCommand, Wait};
use super::super::exit::ExitCode;
use super::super::live::Display;
use super::super::render;
use super::super::ui::{Reply, Ui, escape};
use super::run::{driven_document, driven_text, told};

use self::edit::Editor;

/// Dispatches.
pub fn execute(context: &Context, args: &ManualFixArgs, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    match &args.command {
        None if ui.interactive => {
            let editor = args.edit.then(|| Editor::of(context)).transpose()?;
            screen::screen(context, editor.as_ref(), ui)
        }
        None => opened(context, args.edit, true, ui),
        Some(ManualFixCommand::Start { edit }) => opened(context, *edit || args.edit, false, ui),
        Some(_) if args.edit => {
            let message = "--edit goes with a bare manual-fix, or with manual-fix start";
            Err(Error::new(ErrorKind::Usage, message).hint("recover manual-fix --help"))
        }
        Some(ManualFixCommand::Status) => Ok(reply(context, &status(context)?)),
        Some(ManualFixCommand::Watch { wait }) => watch::watch(context, *wait, ui),
        Some(ManualFixCommand::Verify) => {
            let fix = verify(context, show(ui))?;
            let exit = if fix.session.verified { ExitCode::Done } else { ExitCode::VerificationFailed };
            Ok(reply(context, &fix).exit(exit))
        }
        Some(ManualFixCommand::Continue { wait, prepare_only }) => go_on(context, *wait, *prepare_only, show(ui), ui),
        Some(ManualFixCommand::Abort) => Ok(reply(context, &abort(context)?)),
    }
}

/// The screen of a session, opened or taken up.
pub fn attend(context: &Context, ui: &Ui) -> Result<Reply> {
    screen::screen(context, None, ui)
}

/// Opens a session, and the editor where that is asked for; nobody is asked anything. With `look` the answer has what
/// has changed by now.
fn opened(context: &Context, edit: bool, look: bool, ui: &Ui) -> Result<Reply> {
    let editor = edit.then(|| Editor::of(context)).transpose()?;
    let fix = start(context)?;
    if context.dry_run() || !(edit || look) {
        return Ok(reply(context, &fix));
    }
    if let Some(editor) = editor {
        editor.open(context, &fix.session, ui)?;
    }
    Ok(reply(context, &status(context)?))
}

/// Where the feedback loops' output goes: it is not the answer.
fn show(ui: &Ui) -> Show {
    if ui.quiet { Show::Nothing } else { Show::Stderr }
}

fn go_on(context: &Context, wait: Option<Wait>, prepare_only: bool, show: Show, ui: &Ui) -> Result<Reply> {
    let longest: Option<Duration> = match wait {
        Some(Wait::AtMost(longest)) => Some(longest),
        Some(Wait::Forever) | None => None,
    };
    let options = DriveOptions { no_wait: false, show, longest_wait: longest };
    let display = if prepare_only { None } else { Display::start(context, ui) };
    let continued = resume_with_fix(context, &options, prepare_only)?;
    drop(display);
    let mut answer = reply(context, &continued.fix);
    match &continued.driven {
        Some(driven) => {
            told(driven, ui);
            if let Value::Object(fields) = driven_document(context, driven) {
                answer.document.extend(fields);
            }
            answer.text.push_str(&driven_text(context, driven, ui));
            answer.exit = ExitCode::of_driven(driven);
        }
        None => {
            answer.document.insert("outcome".to_owned(), Value::Null);
        }
    }
    Ok(answer)
}

fn reply(context: &Context, fix: &Fix) -> Reply {
    let session = &fix.session;
    let mut text = String::new();
    // Writing to a String cannot fail.
    if let Some(issue) = &session.issue {
        let _ = writeln!(text, "Issue: {}", escape(&issue.message));
    }
    for change in &session.detected_changes {
        let lines = match (change.added, change.deleted) {
            (Some(added), Some(deleted)) => format!(" (+{added}, -{deleted} lines)"),
            _ => String::new(),
        };
        let _ = writeln!(text, "  {} {}{lines}", change.kind.as_str(), escape(&change.path.to_lossy()));
    }
    for (name, result) in &session.verification_results {
        let mark = if result.passed { "passed" } else { "FAILED" };
        let seconds = result.duration.as_secs_f64();
        let _ = writeln!(text, "  {mark} {name}: {} ({seconds:.1}s)", escape(&result.summary));
    }
    let key = Some(&fix.run.key);
    let next = match session.status {
        ManualFixStatus::Active if session.verified => {
            format!("Verified. Go on: {}", context.hint_command(key, &["manual-fix", "continue"]))
        }
        ManualFixStatus::Active => {
            let tried = !session.verification_results.is_empty();
            let said = if tried { "Verification failed. Try again" } else { "Fix it in your editor, then" };
            format!("{said}: {}", context.hint_command(key, &["manual-fix", "verify"]))
        }
        ManualFixStatus::Completed => "The run goes on with the fix.".to_owned(),
        ManualFixStatus::Aborted => "Given up; files stay as they are.".to_owned(),
    };
    let _ = writeln!(text, "{next}");
    Reply::new(document(fix), text)
}

/// A session and its run (the contract of every `manual-fix`).
fn document(fix: &Fix) -> Value {
    json!({"session": fix.session, "run": render::run(&fix.run)})
}
