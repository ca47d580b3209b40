//! Waiting for what is not the agent's doing: when the next attempt, a probe, finds out whether it is over.

use std::time::Duration;

use crate::model::failure::{Cause, CauseDetail, Failure, Weather};
use crate::model::run::Waits;
use crate::model::time::Timestamp;
use crate::policy::settings::WeatherSettings;

/// A usage limit is over a little after it says so, and runs that wait for it together must not come back together: this many
/// gaps between runs later, and up to as many more.
const BUFFER: u32 = 3;
/// An attempt with an answer of the model that is cut off more often than this is charged: maybe its work is why.
const FREE_WITH_ANSWER: u32 = 3;

/// Whose trouble with a provider is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Provider {
    /// That of an agent which `recover` started.
    Agent,
    /// Of a loop with its own commands what names its end: its budgets are those of the specification (S8).
    #[default]
    Loop,
    /// That of a check or a command which is no agent: its error is its own.
    Nobody,
}

impl Provider {
    /// What is waited for after `failure`.
    pub(super) fn weather(self, failure: &Failure) -> Option<Weather> {
        let weather = failure.weather()?;
        let is_limit = weather == Weather::UsageLimit || failure.retry_after.is_some();
        let is_named = failure.cause == Cause::RateLimited && is_limit;
        match self {
            Self::Agent => Some(weather),
            Self::Loop => Some(weather).filter(|_| is_named),
            Self::Nobody => None,
        }
    }
}

/// How long to wait before the next probe; `random`, in `[0, 1)`, spreads those of several runs. An API that asks for seconds
/// again and again is not asked more often than others: a loop waits the first time as long as it is asked to.
pub(super) fn next_probe(
    (provider, failure): (Provider, &Failure),
    waits: &Waits,
    settings: &WeatherSettings,
    (now, random): (Timestamp, f64),
) -> Duration {
    let random = random.clamp(0.0, 1.0);
    let named = failure.retry_after.filter(|at| *at > now);
    let named = named.map(|at| at.since(now));
    match named {
        Some(reset) if failure.names_reset(now) => {
            let buffer = settings.gap.saturating_mul(BUFFER);
            reset + buffer + buffer.mul_f64(random)
        }
        Some(named) if provider == Provider::Loop && waits.unnamed == 0 => named,
        _ => step(&settings.probes, waits.unnamed, random).max(named.unwrap_or_default()),
    }
}

/// The wait after `before` others of the schedule.
fn step(probes: &[Duration], before: u32, random: f64) -> Duration {
    let Some((last, first)) = probes.split_last() else {
        return Duration::ZERO;
    };
    let listed = usize::try_from(before)
        .ok()
        .and_then(|before| first.get(before));
    listed.map_or_else(|| last.mul_f64(0.9 + 0.2 * random), |listed| *listed)
}

/// Whether answers of the model were cut off so often that the next time is charged.
pub(super) fn is_too_often(waits: &Waits) -> bool {
    waits.answered >= FREE_WITH_ANSWER
}

/// Whether the next probe tries another session: this one ended twice with the same error of the service.
pub(super) fn tries_another_session(failure: &Failure, waits: &Waits) -> bool {
    waits.in_session && is_same_error(failure, waits)
}

/// Whether the service failed in the same way as the time before.
pub(super) fn is_same_error(failure: &Failure, waits: &Waits) -> bool {
    let is_same = |before: &Failure| before.signature == failure.signature;
    failure.detail == Some(CauseDetail::ServiceError)
        && waits.failure.as_deref().is_some_and(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn waited(probes: &[Duration], length: Duration, random: f64) -> Vec<Duration> {
        let mut all = Vec::new();
        let mut at = Duration::ZERO;
        while at < length {
            let before = u32::try_from(all.len()).unwrap();
            let wait = step(probes, before, random);
            all.push(wait);
            at += wait;
        }
        all
    }

    #[test]
    fn probes_come_after_half_a_minute_then_less_and_less_often() {
        let probes = WeatherSettings::default().probes;
        let hour = waited(&probes, Duration::from_secs(3600), 0.5);
        let seconds: Vec<u64> = hour.iter().map(Duration::as_secs).collect();
        assert_eq!(seconds, [30, 60, 120, 300, 600, 900, 900, 900]);
        assert_eq!(step(&probes, 5, 0.0).as_secs(), 810);
        // What is configured may be a single step.
        let minute = [Duration::from_secs(60)];
        assert_eq!(step(&minute, u32::MAX, 0.5), minute[0]);
    }

    proptest! {
        /// Whatever is configured, a wait is near a step of it, and the steps but the last are exact.
        #[test]
        fn every_wait_is_a_step(
            seconds in prop::collection::vec(1u64..10_000, 1..8),
            before in 0u32..1000,
            random in 0.0f64..1.0,
        ) {
            let probes: Vec<Duration> = seconds.iter().copied().map(Duration::from_secs).collect();
            let wait = step(&probes, before, random);
            match probes.get(before as usize) {
                Some(listed) if before as usize + 1 < probes.len() => prop_assert_eq!(wait, *listed),
                _ => {
                    let last = probes[probes.len() - 1];
                    prop_assert!(wait >= last.mul_f64(0.899) && wait <= last.mul_f64(1.101));
                }
            }
        }
    }
}
