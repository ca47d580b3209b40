//! The report of a run (A6, S13, B1): what went wrong, what was tried, what to do now, and the whole story in order.
//!
//! [`report()`] turns what is known into a [`Report`], bounded and redacted; [`markdown()`] and [`html()`] write it for
//! people, serde writes the same as JSON. Whatever others wrote (messages, names, output) is text here and nothing else.

mod actions;
mod attempts;
mod data;
mod files;
mod html;
mod markdown;
mod moment;
mod night;
mod pull_request;
mod source;
mod summary;
mod timeline;
mod words;

use crate::model::state::Named;

pub(crate) use data::{CheckpointLine, Checkpoints, Report, RunLine, Stuck};
pub(crate) use files::{Span, spans};
pub(crate) use html::html;
pub(crate) use markdown::markdown;
pub(crate) use night::{Around, ChangedFiles, Night, Outside, ToLookAt, to_look_at, unfinished};
pub(crate) use pull_request::pull_request;
pub(crate) use source::{AttemptChanges, Source};
pub(crate) use summary::run_line;
pub(crate) use words::{MARK, outcome};

/// Makes the report.
pub(crate) fn report(source: &Source<'_>) -> Report {
    let stuck = summary::stuck_in_scope(source);
    let (attempts, attempts_omitted) = attempts::attempts(source);
    let (timeline, timeline_omitted) = timeline::timeline(source);
    Report {
        kind: summary::kind(source.run, &stuck),
        generated_at: source.now,
        subtask: source.subtask.map(words::line),
        night: source.night.cloned(),
        summary: summary::summary(source, &stuck),
        recommended_actions: actions::recommended(source),
        stuck_subtasks: stuck,
        attempts,
        attempts_omitted,
        error_details: attempts::errors(source),
        files: files::files(source),
        checkpoints: checkpoints(source),
        timeline,
        timeline_omitted,
    }
}

fn checkpoints(source: &Source<'_>) -> Checkpoints {
    let key = &source.run.key;
    let initial = source.state.initial(key).and_then(Named::kept);
    Checkpoints {
        count: source.state.checkpoints.count_of(key),
        last_good: source.state.last_good(key).map(CheckpointLine::of),
        initial: initial.map(CheckpointLine::of),
        latest: source.state.latest(key).map(CheckpointLine::of),
    }
}
