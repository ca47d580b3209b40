//! What a watch tells, a line each.

use std::io::{self, Write};
use std::time::Duration;

use crate::engine::manual_fix::Judged;
use crate::engine::manual_fix::watch::Step;
use crate::model::feedback::FeedbackResult;
use crate::model::snapshot::Change;

use super::super::super::ui::{Ui, escape};

/// Where the lines go.
#[derive(Clone, Copy, Debug)]
pub enum Lines {
    /// They are the answer.
    Stdout,
    /// Stdout belongs to something else.
    Stderr,
    /// Nobody wants them.
    Nowhere,
}

impl Lines {
    /// Beside a document they go to stderr.
    pub fn of(ui: &Ui) -> Self {
        match (ui.json, ui.quiet) {
            (false, _) => Self::Stdout,
            (true, false) => Self::Stderr,
            (true, true) => Self::Nowhere,
        }
    }

    /// Writes what a step tells, if it tells anything.
    pub fn tell(self, step: &Step) -> io::Result<()> {
        let text = text(step);
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            // With stderr closed there is nobody left to tell.
            Self::Stderr => io::stderr().write_all(text.as_bytes()).or(Ok(())),
            Self::Nowhere => Ok(()),
        }
    }
}

/// The lines of a step.
fn text(step: &Step) -> String {
    match step {
        Step::Polling(reason, interval) => {
            format!("polling: {}; files are compared every {}\n", escape(reason), seconds(*interval))
        }
        Step::Changed(change) => changed(change),
        Step::Reverted(change) => format!("reverted {}\n", escape(&change.path.to_lossy())),
        Step::Verifying(names) => format!("verifying {}\n", escape(&names.join(", "))),
        Step::Judged(judged) => judged_text(judged),
        Step::Restless => {
            "files change whenever the feedback loops run: if the loops write them, let git ignore them\n".to_owned()
        }
        Step::Ended => "the session has ended\n".to_owned(),
        Step::Asked(_) | Step::GaveUp | Step::Stopped(_) => String::new(),
    }
}

fn changed(change: &Change) -> String {
    let lines = match (change.added, change.deleted) {
        (Some(added), Some(deleted)) => format!(" +{added} -{deleted}"),
        _ => String::new(),
    };
    let from = change.old_path.as_ref().map(|old| format!("{} -> ", escape(old))).unwrap_or_default();
    format!("{} {from}{}{lines}\n", change.kind.as_str(), escape(&change.path.to_lossy()))
}

fn judged_text(judged: &Judged) -> String {
    let session = &judged.fix.session;
    let mut text = String::new();
    for (name, result) in &session.verification_results {
        let mark = if result.passed { "passed" } else { "FAILED" };
        text.push_str(&format!("{mark} {}: {} ({})\n", escape(name), said(result), seconds(result.duration)));
    }
    text.push_str(match (judged.outdated, session.verified) {
        (true, _) => "outdated: files changed while the feedback loops ran; they run again\n",
        (false, true) => "verified\n",
        (false, false) => "not verified\n",
    });
    text
}

/// The counts where they are known, and the summary where it says something else.
fn said(result: &FeedbackResult) -> String {
    let counts = match (result.passed_count, result.failed_count) {
        (None, None) => return escape(&result.summary),
        (passed, failed) => format!("{} passed, {} failed", passed.unwrap_or(0), failed.unwrap_or(0)),
    };
    if result.flaky || result.exit_code.is_none() { format!("{counts}: {}", escape(&result.summary)) } else { counts }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1}s", duration.as_secs_f64())
}
