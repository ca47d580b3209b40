//! What a report is made from.

use crate::model::event::Event;
use crate::model::feedback::FeedbackLoop;
use crate::model::manifest::Change;
use crate::model::run::{Attempt, Iteration, Run};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::policy::recommended::Outlook;
use crate::policy::retry_status::RetryStatus;

use super::data::{AttemptRef, Stuck};
use super::night::Night;

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
    /// A restore that was cut off and waits to be finished.
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
    pub(super) fn attempts(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
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
