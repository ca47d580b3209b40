//! The one place that reads the clock, so that tests can set it.

use std::cell::Cell;
use std::time::{Duration, Instant};

use chrono::{DateTime, Local, Utc};
use serde::{Deserialize, Serialize};

use crate::model::Timestamp;
use crate::os::processes::boot_id;
use crate::os::since_boot;
use crate::process::{Interrupts, Signal};

/// The present moment.
#[derive(Debug)]
pub(crate) enum Clock {
    /// The machine's.
    System,
    /// A clock that stands still but for the waits that are asked of it, which it takes at once.
    Fixed(Cell<Timestamp>),
}

/// How long a command waits that was called with `--wait`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitLimit {
    /// As long as it takes.
    Forever,
    /// At most so long, then exit 9.
    AtMost(Duration),
}

impl WaitLimit {
    /// The longest time; `None` where there is no limit.
    pub(crate) fn longest(self) -> Option<Duration> {
        match self {
            Self::Forever => None,
            Self::AtMost(longest) => Some(longest),
        }
    }
}

/// A wait that is never longer than it looked when it began: what ends it first, the wall clock or a monotonic one. A
/// wall clock that is set back does not prolong it, and a machine that slept meanwhile is not waited for twice.
#[derive(Debug)]
pub(crate) struct Wait {
    until: Timestamp,
    length: Duration,
    begun: Instant,
}

/// A sentence of the record with its times in the user's own: `2026-01-05 04:19` for `2026-01-05T04:19:02.150Z`.
pub(crate) fn local_times(text: &str) -> String {
    let local = |word: &str| {
        let end = word.find('Z')? + 1;
        let at = DateTime::parse_from_rfc3339(word.get(..end)?)
            .ok()?
            .with_timezone(&Local);
        Some(format!("{}{}", at.format("%Y-%m-%d %H:%M"), &word[end..]))
    };
    let words = text
        .split(' ')
        .map(|word| local(word).unwrap_or_else(|| word.to_owned()));
    words.collect::<Vec<_>>().join(" ")
}

/// The zone of local times, as `TZ` names it: by that variable's value, else by the rule in /etc/localtime.
pub(crate) fn local_zone(tz: Option<String>) -> Option<String> {
    tz.or_else(|| rule_of(&std::fs::read("/etc/localtime").ok()?))
}

/// The rule for times to come with which a file of a zone ends, in the form of `TZ`.
fn rule_of(file: &[u8]) -> Option<String> {
    let mut lines = file.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n');
    String::from_utf8(lines.next()?.to_vec()).ok()
}

impl Clock {
    /// The machine's clock; with `fixed` (`RECOVER_TEST_NOW`) one that stands at that moment.
    pub(crate) fn new(fixed: Option<Timestamp>) -> Self {
        fixed.map_or(Self::System, |at| Self::Fixed(Cell::new(at)))
    }

    /// Now.
    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::System => Timestamp::new(Utc::now()),
            Self::Fixed(at) => at.get(),
        }
    }

    /// A wait until `until` that begins now.
    pub(crate) fn wait(&self, until: Timestamp) -> Wait {
        Wait {
            until,
            length: until.since(self.now()),
            begun: Instant::now(),
        }
    }

    /// What is left of a wait.
    pub(crate) fn left(&self, wait: &Wait) -> Duration {
        let by_wall_clock = wait.until.since(self.now());
        match self {
            Self::System => by_wall_clock.min(wait.length.saturating_sub(wait.begun.elapsed())),
            Self::Fixed(_) => by_wall_clock,
        }
    }

    /// Sleeps so long, or until a signal comes.
    pub(crate) fn sleep(&self, length: Duration, interrupts: &Interrupts) -> Result<(), Signal> {
        match self {
            Self::System => interrupts.sleep(length),
            Self::Fixed(at) => {
                at.set(at.get().plus(length));
                interrupts.sleep(Duration::ZERO)
            }
        }
    }
}

/// A moment by the clock that counts since the machine's start, suspended or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Moment {
    /// Milliseconds since then.
    pub millis: u64,
    /// Which start.
    pub boot_id: Option<String>,
}

impl Moment {
    /// Now.
    pub(crate) fn now() -> Self {
        Self {
            millis: u64::try_from(since_boot().as_millis()).unwrap_or(u64::MAX),
            boot_id: boot_id(),
        }
    }

    /// How long ago it was; `None` where the machine was started again since.
    pub(crate) fn age(&self) -> Option<Duration> {
        let now = Self::now();
        let is_of_this_boot = self.boot_id.is_some() && self.boot_id == now.boot_id;
        is_of_this_boot.then(|| Duration::from_millis(now.millis.saturating_sub(self.millis)))
    }
}

/// Milliseconds of a duration, for documents and events.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_what_its_file_ends_with() {
        let file = b"TZif2\0\n\xff\0\0\nCET-1CEST,M3.5.0,M10.5.0/3\n";
        let rule = Some("CET-1CEST,M3.5.0,M10.5.0/3");
        assert_eq!(rule_of(file).as_deref(), rule);
        assert_eq!(rule_of(b"TZif\0 of the first version"), None);
        assert_eq!(local_zone(Some("UTC".to_owned())).as_deref(), Some("UTC"));
    }
}
