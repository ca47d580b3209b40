//! How long to wait (S7).

use std::time::Duration;

use super::settings::{DelayKind, DelaySettings, Jitter};

/// The wait before attempt `failures + 1`, by the cause's delay alone; `None` for none.
///
/// Exponential is `base · 2^(failures−1)`, at most `max`, with full jitter: anything from nothing to that. `random`
/// is in `[0, 1)`. `cooldown` is the general pause after an error.
pub(crate) fn delay(
    settings: &DelaySettings,
    failures: u32,
    cooldown: Duration,
    random: f64,
) -> Option<Duration> {
    match settings.kind {
        DelayKind::None | DelayKind::Immediate | DelayKind::Conditional => None,
        DelayKind::Cooldown => Some(cooldown),
        DelayKind::Delayed => Some(settings.base.min(settings.max)),
        DelayKind::Exponential => {
            let doublings = failures.saturating_sub(1).min(31);
            let full = settings
                .base
                .saturating_mul(1 << doublings)
                .min(settings.max);
            Some(match settings.jitter {
                Jitter::Full => full.mul_f64(random.clamp(0.0, 1.0)),
                Jitter::None => full,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exponential(jitter: Jitter) -> DelaySettings {
        let (base, max) = (Duration::from_secs(1), Duration::from_secs(30));
        DelaySettings {
            kind: DelayKind::Exponential,
            base,
            max,
            jitter,
        }
    }

    #[test]
    fn exponential_doubles_up_to_the_cap() {
        let seconds: Vec<_> = (1..=7)
            .filter_map(|failures| delay(&exponential(Jitter::None), failures, Duration::ZERO, 0.5))
            .map(|delay| delay.as_secs())
            .collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 30, 30]);
    }

    proptest! {
        #[test]
        fn jittered_delays_stay_within_the_cap(failures in 0u32..2000, random in 0.0f64..1.0) {
            let jittered = delay(&exponential(Jitter::Full), failures, Duration::ZERO, random).unwrap();
            let full = delay(&exponential(Jitter::None), failures, Duration::ZERO, random).unwrap();
            prop_assert!(jittered <= full && full <= Duration::from_secs(30));
        }
    }
}
