//! What every `manual-fix` answers.

use std::fmt::Write;
use std::time::Duration;

use crate::engine::flow::fix_session::Fix;
use crate::engine::flow::manual_fix::resume_with_fix;
use crate::engine::flow::run::{Digest, DriveOptions};
use crate::engine::record::run_settings::is_unchecked;
use crate::engine::{Context, Result};
use crate::model::hint::Hint;
use crate::model::manual_fix::ManualFixStatus;
use crate::process::Show;

use super::super::super::exit::ExitCode;
use super::super::super::live::Watch;
use super::super::super::render;
use super::super::super::replies::run::{ContinuedReply, PreparedReply};
use super::super::super::ui::{Reply, Ui, escape};
use crate::engine::base::clock::WaitLimit;

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
    wait: Option<WaitLimit>,
    prepare_only: bool,
    show: Show,
    ui: &Ui,
) -> Result<Reply> {
    let longest: Option<Duration> = wait.and_then(WaitLimit::longest);
    let options = DriveOptions {
        no_wait: false,
        show,
        longest_wait: longest,
        digest: Digest::Profile,
    };
    let watch = if prepare_only {
        Watch::default()
    } else {
        Watch::start(context, ui)
    };
    let continued = resume_with_fix(context, &options, prepare_only)?;
    watch.end(
        context,
        continued.driven.as_ref().map(|driven| &driven.run.key),
    );
    let text = text(context, &continued.fix, ui);
    let Some(driven) = &continued.driven else {
        let document = PreparedReply {
            fix: &continued.fix,
            outcome: (),
        };
        return Ok(Reply::new(document, text));
    };
    render::note_report(driven, ui);
    let document = ContinuedReply::new(context, &continued.fix, driven);
    let text = text + &render::driven_text(context, driven, ui);
    Ok(Reply::new(document, text).exit(ExitCode::of_driven(driven)))
}

/// A session and its run, as every `manual-fix` answers.
pub(super) fn reply(context: &Context, fix: &Fix, ui: &Ui) -> Reply {
    Reply::new(fix, text(context, fix, ui))
}

/// Where the session stands, and the next command.
fn text(context: &Context, fix: &Fix, ui: &Ui) -> String {
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
        ManualFixStatus::Active if is_unchecked(context, &fix.run) => {
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
