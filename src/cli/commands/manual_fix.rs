//! Runs `manual-fix`; here what each of its commands answers.

mod screen;
mod watch;

use std::fmt::Write;
use std::time::Duration;

use self::screen::Editor;
use super::super::args::{ManualFixArgs, ManualFixCommand};
use super::super::live::Watch;
use super::super::render;
use super::super::replies::ExitCode;
use super::super::ui::{Reply, Ui, escape};
use crate::engine::base::clock;
use crate::engine::{Context, Error, ErrorKind, Result, answers, manual_fix, run};
use crate::model::{Hint, ManualFixStatus};
use crate::process::Show;

/// Dispatches.
pub(super) fn execute(context: &Context, args: &ManualFixArgs, ui: &Ui) -> Result<Reply> {
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
            Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["manual-fix", "--help"])))
        }
        Some(ManualFixCommand::Status) => Ok(reply(context, &manual_fix::status(context)?, ui)),
        Some(ManualFixCommand::Watch { wait }) => watch::watch(context, *wait, ui),
        Some(ManualFixCommand::Verify) => {
            let fix = manual_fix::verify(context, show(ui))?;
            let exit = ExitCode::VERIFICATION_FAILED.unless(fix.session.verified);
            Ok(reply(context, &fix, ui).exit(exit))
        }
        Some(ManualFixCommand::Continue { wait, prepare_only }) => {
            go_on(context, *wait, *prepare_only, show(ui), ui)
        }
        Some(ManualFixCommand::Abort) => Ok(reply(context, &manual_fix::abort(context)?, ui)),
    }
}

/// The screen of a session, opened or resumed.
pub(super) fn attend(context: &Context, ui: &Ui) -> Result<Reply> {
    screen::screen(context, None, ui)
}

/// Opens a session, and the editor where that is asked for; nobody is asked anything. With `look` the answer has what
/// has changed by now.
fn opened(context: &Context, edit: bool, look: bool, ui: &Ui) -> Result<Reply> {
    let editor = edit.then(|| Editor::of(context)).transpose()?;
    let fix = manual_fix::start(context)?;
    if context.dry_run() || !(edit || look) {
        return Ok(reply(context, &fix, ui));
    }
    if let Some(editor) = editor {
        editor.open(context, &fix.session, ui)?;
    }
    Ok(reply(context, &manual_fix::status(context)?, ui))
}

/// Where the feedback loops' output goes: it is not the answer.
pub(crate) fn show(ui: &Ui) -> Show {
    if ui.quiet {
        Show::Nothing
    } else {
        Show::Stderr
    }
}

/// Resumes the run with the fix.
pub(super) fn go_on(
    context: &Context,
    wait: Option<clock::WaitLimit>,
    prepare_only: bool,
    show: Show,
    ui: &Ui,
) -> Result<Reply> {
    let longest: Option<Duration> = wait.and_then(clock::WaitLimit::longest);
    let options = run::DriveOptions {
        no_wait: false,
        unattended: false,
        show,
        longest_wait: longest,
        digest: run::Digest::Profile,
    };
    let watch = if prepare_only {
        Watch::default()
    } else {
        Watch::start(context, ui)
    };
    let continued = manual_fix::resume_with_fix(context, &options, prepare_only)?;
    watch.end(
        context,
        continued.driven.as_ref().map(|driven| &driven.run.key),
    );
    let text = text(context, &continued.fix, ui);
    let document = answers::ContinuedFix::new(context, &continued);
    let (Some(driven), Some(document)) = (&continued.driven, document) else {
        let fix = &continued.fix;
        return Ok(Reply::new(answers::PreparedFix { fix, outcome: () }, text));
    };
    render::note_report(driven, ui);
    let text = text + &render::driven_text(context, driven, ui);
    Ok(Reply::new(document, text).exit(ExitCode::of_driven(driven)))
}

/// A session and its run, as every `manual-fix` answers.
pub(super) fn reply(context: &Context, fix: &manual_fix::Fix, ui: &Ui) -> Reply {
    Reply::new(fix, text(context, fix, ui))
}

/// Where the session stands, and the next command.
fn text(context: &Context, fix: &manual_fix::Fix, ui: &Ui) -> String {
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
        let _ = writeln!(
            text,
            "  {} {}{lines}",
            change.kind.as_str(),
            escape(&change.path.to_lossy())
        );
    }
    if session.detected_changes.is_empty() && session.status == ManualFixStatus::Active {
        text.push_str("  no changes yet\n");
    }
    if let Some(at) = session.last_detected_at {
        let ago = render::when(at, context.clock.now());
        let _ = writeln!(text, "Last detected: {ago}");
    }
    for (name, result) in &session.verification_results {
        let mark = if result.passed { "passed" } else { "FAILED" };
        let seconds = result.duration.as_secs_f64();
        let _ = writeln!(
            text,
            "  {mark} {name}: {} ({seconds:.1}s)",
            escape(&result.summary)
        );
    }
    let ui = ui.knowing(context);
    let line = |words: &[&str]| {
        let hint = Hint::recover(words).run(&fix.run.key);
        ui.command(&context.placed(hint))
    };
    let next = match session.status {
        ManualFixStatus::Active if session.verified => {
            format!("Verified. Continue: {}", line(&["manual-fix", "continue"]))
        }
        ManualFixStatus::Active if run::is_unchecked(context, &fix.run) => {
            format!(
                "No checks are configured that could verify a fix. Fix it in your editor, then end the fix: {}\nand go on \
                 from the files as they are: {}",
                line(&["manual-fix", "abort"]),
                line(&["resume", "--strategy", "continue_next"])
            )
        }
        ManualFixStatus::Active => {
            let tried = !session.verification_results.is_empty();
            let said = if tried {
                "Verification failed. Try again"
            } else {
                "Fix it in your editor, then"
            };
            format!("{said}: {}", line(&["manual-fix", "verify"]))
        }
        ManualFixStatus::Completed => "The run continues with the fix.".to_owned(),
        ManualFixStatus::Aborted => "Abandoned; files stay as they are.".to_owned(),
    };
    let _ = writeln!(text, "{next}");
    text
}
