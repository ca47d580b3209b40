//! The one place that reads the clock, so that tests can set it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use chrono::Utc;

use crate::model::time::Timestamp;
use crate::process::{Interrupts, Signal};

/// The present moment.
#[derive(Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// A clock that stands still but for the waits that are asked of it, which it takes at once.
    Fixed(Cell<Timestamp>),
}

impl Clock {
    /// The machine's clock; with `fixed` (`RECOVER_TEST_NOW`) one that stands at that moment.
    pub fn new(fixed: Option<Timestamp>) -> Self {
        fixed.map_or(Self::System, |at| Self::Fixed(Cell::new(at)))
    }

    /// Now.
    pub fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::new(Utc::now()),
            Self::Fixed(at) => at.get(),
        }
    }

    /// Sleeps until `until`, or until a signal comes. The wait is measured on a monotonic clock: a wall clock that is
    /// set back does not prolong it.
    pub fn sleep_until(&self, until: Timestamp, interrupts: &Interrupts) -> Result<(), Signal> {
        let wait = until.since(self.now());
        match self {
            Self::System => {
                let begun = Instant::now();
                while let Some(rest) = wait.checked_sub(begun.elapsed()).filter(|rest| !rest.is_zero()) {
                    interrupts.sleep(rest)?;
                }
                Ok(())
            }
            Self::Fixed(at) => {
                at.set(until.max(at.get()));
                interrupts.sleep(Duration::ZERO)
            }
        }
    }
}

/// Milliseconds of a duration, for documents and events.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
