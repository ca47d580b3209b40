//! Formats the events of a watch, a line each.

use std::io::{self, Write};

use super::super::super::{
    render::{said, seconds},
    ui::{Ui, escape},
};
use crate::engine::{
    base::progress::{Observer, ProgressEvent},
    manual_fix::{Judged, watch::Step},
};
use crate::model::{manifest::Change, time::Timestamp};
use crate::policy::secrets::redact;

/// Where the lines go.
#[derive(Clone, Copy, Debug)]
pub(super) enum Lines {
    /// They are the answer.
    Stdout,
    /// Stdout belongs to something else.
    Stderr,
    /// Nobody wants them.
    Nowhere,
}

impl Lines {
    /// Beside a document they go to stderr.
    pub(super) fn of(ui: &Ui) -> Self {
        match (ui.json, ui.quiet) {
            (false, _) => Self::Stdout,
            (true, false) => Self::Stderr,
            (true, true) => Self::Nowhere,
        }
    }

    /// Writes what a step reports, if anything.
    pub(super) fn tell(self, step: &Step) -> io::Result<()> {
        self.write(&text(step))
    }

    fn write(self, text: &str) -> io::Result<()> {
        let text = redact(text);
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            // With stderr closed there is nobody left to report to.
            Self::Stderr => io::stderr().write_all(text.as_bytes()).or(Ok(())),
            Self::Nowhere => Ok(()),
        }
    }
}

/// Tells what each feedback loop said as soon as it has said it.
impl Observer for Lines {
    fn on_event(&self, _now: Timestamp, event: ProgressEvent<'_>) {
        if let ProgressEvent::LoopEnded { name, result } = event {
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
fn text(step: &Step) -> String {
    match step {
        Step::Polling(reason, interval) => {
            format!(
                "polling: {}; files are compared every {}\n",
                escape(reason),
                seconds(*interval)
            )
        }
        Step::Changed(change) => changed(change),
        Step::Reverted(change) => format!("reverted {}\n", escape(&change.path.to_lossy())),
        Step::Verifying(names) => format!("verifying {}\n", escape(&names.join(", "))),
        Step::Judged(judged) => judged_text(judged),
        Step::Restless => {
            "files change whenever the checks run: if they write them, let git ignore them\n"
                .to_owned()
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

fn judged_text(judged: &Judged) -> String {
    let session = &judged.fix.session;
    match (judged.outdated, session.verified) {
        (true, _) => "outdated: files changed while the checks ran; they run again\n",
        (false, true) => "verified\n",
        (false, false) => "not verified\n",
    }
    .to_owned()
}
