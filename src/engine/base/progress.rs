//! Progress of a run for an observer, and the observer's interactive requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::model::agent_record::Usage;
use crate::model::{CheckpointId, Decision, Failure, FeedbackResult, Run, Timestamp};
use crate::process::Signal;

/// What is going on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProgressEvent<'a> {
    /// The feedback loops run before the first attempt.
    Baseline {
        /// The run.
        run: &'a Run,
    },
    /// An attempt begins.
    Attempt {
        /// The run.
        run: &'a Run,
        /// Its iteration.
        iteration: u32,
        /// Its number.
        attempt: u32,
        /// How many attempts are allowed.
        limit: Option<u32>,
        /// How long its command may run.
        deadline: Option<Duration>,
    },
    /// A feedback loop begins.
    LoopBegun {
        /// Its name.
        name: &'a str,
        /// How long it may run.
        deadline: Option<Duration>,
        /// It failed and is run once more, unchanged.
        again: bool,
    },
    /// A feedback loop has ended.
    LoopEnded {
        /// Its name.
        name: &'a str,
        /// What it said.
        result: &'a FeedbackResult,
    },
    /// The feedback loops are through.
    LoopsEnded,
    /// An attempt has ended and was recorded.
    Ended {
        /// Its iteration.
        iteration: u32,
        /// Its number.
        attempt: u32,
        /// Why it failed.
        failure: Option<&'a Failure>,
        /// What was decided.
        decision: Option<&'a Decision>,
        /// What it used up.
        used: Usage,
        /// What the run used up with it.
        in_all: Usage,
    },
    /// The next attempt has to wait.
    Waiting {
        /// Until when.
        until: Timestamp,
        /// Whether it is parked rather than cooling down.
        parked: bool,
        /// Why.
        reason: &'a str,
    },
    /// The wait is over.
    Waited,
    /// Files go back to a checkpoint.
    RollingBack {
        /// Which.
        checkpoint: &'a CheckpointId,
    },
}

/// Receives what is going on, at once and on the thread that does it: it must not take long.
pub(crate) trait Observer: Send + Sync {
    /// Takes note of what is going on at `now`.
    fn on_event(&self, now: Timestamp, event: ProgressEvent<'_>);
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeReason {
    /// It is time.
    InTime,
    /// A user asked for the next attempt now.
    Now,
    /// A user asked to stop.
    Stop,
}

/// The connection to an observer, and what is said beside the answer. Clones are handles to the same.
#[derive(Clone, Default)]
pub(crate) struct Progress {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    observer: Option<Arc<dyn Observer>>,
    now: bool,
    stop: bool,
    waived: Option<Timestamp>,
    warnings: Vec<String>,
    stopped_late: Option<Signal>,
}

impl Progress {
    /// Reports everything to `observer` from now on, and to nobody else.
    pub(crate) fn observe(&self, observer: Arc<dyn Observer>) {
        self.shared.lock().observer = Some(observer);
    }

    /// Whether anybody watches.
    pub(crate) fn is_observed(&self) -> bool {
        self.shared.lock().observer.is_some()
    }

    /// Reports to the observer what happens at `now`.
    pub(in crate::engine) fn emit(&self, now: Timestamp, event: ProgressEvent<'_>) {
        // Not under the lock: it may answer with a request.
        let observer = self.shared.lock().observer.clone();
        if let Some(observer) = observer {
            observer.on_event(now, event);
        }
    }

    /// Asks for the next attempt now: the wait under way is cut short. Budgets hold.
    pub(crate) fn retry_now(&self) {
        self.shared.lock().now = true;
    }

    /// Asks to stop after the attempt under way, or not any more; answers what holds now.
    pub(crate) fn toggle_stop(&self) -> bool {
        let mut shared = self.shared.lock();
        shared.stop = !shared.stop;
        shared.stop
    }

    /// Whether it was asked to stop after the attempt under way.
    pub(crate) fn is_to_stop(&self) -> bool {
        self.shared.lock().stop
    }

    /// Begins a wait: what was asked before was not about it.
    pub(in crate::engine) fn begin_wait(&self) {
        self.shared.lock().now = false;
    }

    /// What was asked during a wait until `until`. That wait is waited for no more.
    pub(in crate::engine) fn take_request(&self, until: Timestamp) -> Option<WakeReason> {
        let mut shared = self.shared.lock();
        if shared.stop {
            return Some(WakeReason::Stop);
        }
        std::mem::take(&mut shared.now).then(|| {
            shared.waived = Some(until);
            WakeReason::Now
        })
    }

    /// The wait until `until` need not be taken any more.
    pub(in crate::engine) fn waive(&self, until: Timestamp) {
        self.shared.lock().waived = Some(until);
    }

    /// Whether a user said that this very wait need not be taken. A later attempt's own wait is another, also where it
    /// is over sooner.
    pub(in crate::engine) fn skips_wait(&self, until: Timestamp) -> bool {
        self.shared.lock().waived == Some(until)
    }

    /// Says a warning and remembers it for the answer's document, unless it was said before.
    pub(super) fn say_once(&self, warning: String, say: impl FnOnce(&str)) {
        let warnings = &mut self.shared.lock().warnings;
        if !warnings.contains(&warning) {
            say(&warning);
            warnings.push(warning);
        }
    }

    /// What was warned of so far.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.shared.lock().warnings.clone()
    }

    /// Remembers a request to stop that came when a restore was nearly done.
    pub(in crate::engine) fn stop_late(&self, signal: Signal) {
        self.shared.lock().stopped_late = Some(signal);
    }

    /// That request: the program ends with its code.
    pub(crate) fn stopped_late(&self) -> Option<Signal> {
        self.shared.lock().stopped_late
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress")
            .field("observed", &self.is_observed())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_wait_that_was_cut_short_is_waived() {
        let progress = Progress::default();
        let at = Timestamp::from_millis;
        progress.retry_now();
        progress.begin_wait();
        assert_eq!(
            progress.take_request(at(5)),
            None,
            "asked before the wait began"
        );
        progress.retry_now();
        assert_eq!(progress.take_request(at(5)), Some(WakeReason::Now));
        assert!(
            progress.skips_wait(at(5))
                && !progress.skips_wait(at(6))
                && !progress.skips_wait(at(4))
        );
        assert!(progress.toggle_stop());
        assert_eq!(progress.take_request(at(5)), Some(WakeReason::Stop));
        assert!(!progress.toggle_stop() && !progress.is_to_stop());
    }
}
