//! The report of a run (A6, S13, B1): what went wrong, what was tried, what to do now, and the whole story in order.
//!
//! [`report()`] turns what is known into a [`Report`], bounded and redacted; [`markdown()`] and [`html()`] write it for
//! people, serde writes the same as JSON. Whatever others wrote (messages, names, output) is text here and nothing else.

use std::collections::BTreeMap;

mod actions;
pub(crate) mod commit_message;
mod data;
mod html;
mod markdown;
mod night;
mod otlp;
mod summary;
mod team;
mod timeline;
mod to_look_at;
mod words;

pub(crate) use commit_message::pull_request;
pub(crate) use data::{AttemptRef, CheckpointLine, Checkpoints, Report, RunLine, Stuck, Work};
pub(crate) use html::{html, team_html};
pub(crate) use markdown::markdown;
pub(crate) use night::{Around, ChangedFiles, LeftInTree, Night, summary_of, unfinished};
pub(crate) use otlp::otlp;
pub(crate) use summary::{Span, run_line, spans};
pub(crate) use team::{TeamReport, TeamRun};
pub(crate) use to_look_at::{LookAtKind, Outside, ToLookAt, to_look_at};
pub(crate) use words::{MARK, is_over, iteration_state, outcome, run_state, task, tasks_counted};

use super::retry::{Outlook, RetryStatus};
use crate::model::{Attempt, Change, Event, FeedbackLoop, Iteration, Named, Run, State, Timestamp};

/// Makes the report.
pub(crate) fn report(source: &Source<'_>) -> Report {
    let stuck = summary::stuck_in_scope(source);
    let (attempts, attempts_omitted) = summary::attempts(source);
    let (timeline, timeline_omitted) = timeline::timeline(source);
    Report {
        kind: summary::kind(source.run, &stuck),
        generated_at: source.now,
        subtask: source.subtask.map(words::line),
        night: source.night.cloned(),
        summary: summary::summary(source, &stuck),
        tasks: summary::tasks(source.run),
        recommended_actions: actions::recommended(source),
        stuck_subtasks: stuck,
        attempts,
        attempts_omitted,
        error_details: summary::errors(source),
        files: summary::files(source),
        checkpoints: checkpoints(source),
        timeline,
        timeline_omitted,
        work: BTreeMap::new(),
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

/// What a report is made from.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// Everything known.
    pub state: &'a State,
    /// The run.
    pub run: &'a Run,
    /// The run's events, oldest first.
    pub events: &'a [Event],
    /// Where it stands with its budgets.
    pub retry: &'a RetryStatus,
    /// The feedback loops that hold for it.
    pub loops: &'a [FeedbackLoop],
    /// Subtasks that were given up (A7), of whatever run.
    pub stuck: &'a [Stuck],
    /// What attempts changed, as far as it could be found.
    pub changes: &'a [AttemptChanges],
    /// What came of it, where it has attempts.
    pub night: Option<&'a Night>,
    /// What its record does not say of it.
    pub outlook: Outlook,
    /// A restore that was interrupted and waits to be finished.
    pub unfinished: Option<&'a str>,
    /// Only the attempts of this subtask.
    pub subtask: Option<&'a str>,
    /// A command about this run that works from any folder.
    pub command: &'a dyn Fn(&[&str]) -> String,
    /// The present moment.
    pub now: Timestamp,
}

impl Source<'_> {
    /// The attempts that the report is about.
    pub(crate) fn attempts(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.run.attempts().filter(|(_, attempt)| {
            self.subtask
                .is_none_or(|subtask| attempt.subtask == subtask)
        })
    }
}

/// What one attempt changed.
#[derive(Clone, Debug)]
pub(crate) struct AttemptChanges {
    /// The attempt.
    pub attempt: AttemptRef,
    /// Its changes, by path.
    pub changes: Vec<Change>,
}
