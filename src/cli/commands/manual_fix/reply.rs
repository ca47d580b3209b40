//! What every `manual-fix` answers.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use crate::engine::flow::fix_session::Fix;
use crate::engine::flow::manual_fix::resume_with_fix;
use crate::engine::flow::run::DriveOptions;
use crate::engine::{Context, Result};
use crate::model::manual_fix::ManualFixStatus;
use crate::process::Show;

use super::super::super::args::Wait;
use super::super::super::exit::ExitCode;
use super::super::super::live::Display;
use super::super::super::render;
use super::super::super::ui::{Reply, Ui, escape};

/// Where the feedback loops' output goes: it is not the answer.
pub fn show(ui: &Ui) -> Show {
    if ui.quiet { Show::Nothing } else { Show::Stderr }
}

/// Resumes the run with the fix.
pub fn go_on(context: &Context, wait: Option<Wait>, prepare_only: bool, show: Show, ui: &Ui) -> Result<Reply> {
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
            render::note_report(driven, ui);
            if let Value::Object(fields) = render::driven(context, driven) {
                answer.document.extend(fields);
            }
            answer.text.push_str(&render::driven_text(context, driven, ui));
            answer.exit = ExitCode::of_driven(driven);
        }
        None => {
            answer.document.insert("outcome".to_owned(), Value::Null);
        }
    }
    Ok(answer)
}

/// Where the session stands, and the next command.
pub fn reply(context: &Context, fix: &Fix) -> Reply {
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
pub fn document(fix: &Fix) -> Value {
    json!({"session": fix.session, "run": render::run(&fix.run)})
}
