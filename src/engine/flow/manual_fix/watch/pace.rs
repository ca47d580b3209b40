//! When a watch looks at the work tree and when it runs the loops: soon after a change, and never most of the time.

use std::time::{Duration, Instant};

/// Reports that come so shortly after each other belong together.
const CALM: Duration = Duration::from_millis(80);
/// But no look waits longer for calm.
const RESTLESS: Duration = Duration::from_millis(300);
/// The tree is examined without a reason after so many times the poll interval.
const SELDOM: u32 = 12;
/// After a look there is a pause of so many times as long as it took.
const SHARE: u32 = 3;
/// But where something changed a pause is no longer than this, or than the look was.
const PAUSE: Duration = Duration::from_millis(500);
/// So many results in a row were outdated when they came: a note is printed about it.
const SUSPICIOUS: u32 = 3;
/// The longest pause before the loops run again after that.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// What happened last, and what follows from it for the next time.
pub(super) struct Pace {
    /// The first and the last report since the last look.
    reported: Option<(Instant, Instant)>,
    /// When the last look ended, and how long it took.
    looked: (Instant, Duration),
    changed_at: Instant,
    /// How many results in a row were outdated.
    outdated: u32,
}

impl Pace {
    /// Begins with a look.
    pub(super) fn new(now: Instant) -> Self {
        Self {
            reported: Some((now, now)),
            looked: (now, Duration::ZERO),
            changed_at: now,
            outdated: 0,
        }
    }

    /// Something may have changed.
    pub(super) fn report(&mut self, now: Instant) {
        self.reported = Some((self.reported.map_or(now, |(first, _)| first), now));
    }

    /// Whether something was reported since the last look.
    pub(super) fn is_reported(&self) -> bool {
        self.reported.is_some()
    }

    /// A look begins: what is reported from here on may be too late for it.
    pub(super) fn look_begins(&mut self) {
        self.reported = None;
    }

    /// A look that began then has ended.
    pub(super) fn look_ended(&mut self, begun: Instant) {
        let now = Instant::now();
        self.looked = (now, now - begun);
    }

    /// When the last look ended.
    pub(super) fn last_look(&self) -> Instant {
        self.looked.0
    }

    /// Something changed, or has to be quiet anew.
    pub(super) fn changed(&mut self, now: Instant) {
        self.changed_at = now;
    }

    /// The loops' results hold.
    pub(super) fn judged(&mut self) {
        self.outdated = 0;
    }

    /// The loops' results were outdated when they came; answers whether that is suspicious by now, once.
    pub(super) fn outdated(&mut self, now: Instant) -> bool {
        self.changed_at = now;
        self.outdated += 1;
        self.outdated == SUSPICIOUS
    }

    /// When to look next: soon after a report, else seldom; at the poll interval where nothing is reported.
    pub(super) fn look_at(&self, poll_interval: Duration, polls: bool) -> Instant {
        let (ended, took) = self.looked;
        let seldom = poll_interval
            .saturating_mul(SELDOM)
            .max(took.saturating_mul(20));
        let interval = if polls { poll_interval } else { seldom };
        let seldom = ended + interval.max(took.saturating_mul(SHARE)).min(LONGEST_PAUSE);
        let calm = self
            .reported
            .map(|(first, last)| (last + CALM).min(first + RESTLESS));
        let pause = took.saturating_mul(SHARE).min(took.max(PAUSE));
        calm.map_or(seldom, |calm| seldom.min(calm.max(ended + pause)))
    }

    /// When it was quiet for long enough; that takes the longer, the more results were outdated in a row.
    pub(super) fn quiet_at(&self, quiet_period: Duration) -> Instant {
        let longer = 1 << self.outdated.saturating_sub(1).min(16);
        self.changed_at
            + quiet_period
                .saturating_mul(longer)
                .min(LONGEST_PAUSE.max(quiet_period))
    }
}
