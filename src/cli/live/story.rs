//! A run that goes on where nobody watches: what happens, a line each with its time, on stderr.

use std::io::Write as _;
use std::sync::{Arc, Mutex};

use crate::engine::Context;
use crate::engine::base::progress::{Observer, ProgressEvent};
use crate::engine::inspect::report_of_key;
use crate::model::run::RunKey;
use crate::model::time::Timestamp;
use crate::policy::report::markdown;
use crate::process::Stderr;

use super::super::render::{said, seconds};
use super::super::ui::{Ui, escape};
use super::github::Github;
use super::status_line::View;
use super::{is_usual, lock};

/// The story of a run, printed as it goes on.
#[derive(Debug)]
pub(super) struct Story(Arc<Told>);

#[derive(Debug)]
struct Told {
    view: Mutex<View>,
    github: Option<Github>,
    /// What is as it should be is not printed.
    sparing: bool,
}

impl Story {
    /// Tells what `context` does from now on, or with `sparing` only what nobody expects; `None` where somebody watches,
    /// or nobody wants to know.
    pub(super) fn start(context: &Context, ui: &Ui, sparing: bool) -> Option<Self> {
        if ui.stderr_terminal || ui.quiet || context.dry_run() {
            return None;
        }
        let github = Github::of(context);
        if github.is_some() {
            // With stderr closed there is nobody left to report to.
            let _ = Stderr::write_as_is(Github::masks().as_bytes());
        }
        let told = Arc::new(Told {
            view: Mutex::default(),
            github,
            sparing,
        });
        context.progress.observe(Arc::<Told>::clone(&told));
        Some(Self(told))
    }

    /// What a job of GitHub wants of a run that is over: its report in the job's summary.
    pub(super) fn end(&self, context: &Context, key: Option<&RunKey>) {
        let Some(github) = &self.0.github else { return };
        write(github.end_group());
        match key.map(|key| report_of_key(context, key)).transpose() {
            Ok(Some(report)) => github.summarize(context, &markdown(&report)),
            Ok(None) => {}
            Err(error) => context.warn(format!(
                "the run has no report for the job's summary: {error}"
            )),
        }
    }
}

impl Observer for Told {
    fn on_event(&self, now: Timestamp, progress: ProgressEvent<'_>) {
        let mut lines = lock(&self.view).take(&progress, |at| at.to_string());
        if let ProgressEvent::LoopEnded { name, result } = progress {
            let verdict = if result.passed { "passed" } else { "FAILED" };
            lines.push(format!(
                "Check {name} {verdict}: {} ({})",
                said(result),
                seconds(result.duration)
            ));
        }
        let (before, after) = self
            .github
            .as_ref()
            .map(|github| github.around(&progress))
            .unwrap_or_default();
        write(&before);
        if !(self.sparing && is_usual(&progress)) {
            // A line each, whatever others said.
            let timed: Vec<String> = lines
                .iter()
                .map(|line| format!("[{now}] {}\n", escape(line)))
                .collect();
            write(&timed.concat());
        }
        write(&after);
    }
}

/// With stderr closed there is nobody left to report to.
fn write(text: &str) {
    if !text.is_empty() {
        let _ = Stderr.write_all(text.as_bytes());
    }
}
