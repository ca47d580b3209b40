//! Who may speak for a run, by what is seen of its claim.
//!
//! No machine's clock is believed but the observer's own, and of that only how long it saw nothing change. A holder stops
//! after two thirds of a lease without a confirmed sign of life, counted from when that was *sent*; whoever watches waits for a
//! whole one from when it was *seen*, which is later. So clocks may run apart by a third before two hold a run at once.

use std::time::Duration;

use crate::model::remote::Claim;

/// How a run stands for who looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nobody holds it.
    Free,
    /// The observer does.
    Ours,
    /// Somebody else does, and may be at work.
    Held,
    /// Somebody else did, and has shown no sign of life for a whole lease.
    Expired,
}

/// How a claim stands. `ours` is the nonce of the observer's own claim; `unchanged` is for how long the observer has seen this
/// very state.
pub(crate) fn hold(
    claim: Option<&Claim>,
    ours: Option<&str>,
    unchanged: Duration,
    lease: Duration,
) -> Hold {
    match claim {
        None => Hold::Free,
        Some(claim) if claim.released => Hold::Free,
        Some(claim) if ours == Some(claim.nonce.as_str()) => Hold::Ours,
        Some(_) if unchanged >= lease => Hold::Expired,
        Some(_) => Hold::Held,
    }
}

/// After what time without a confirmed sign of life the holder stops its agent.
pub(crate) fn stop_after(lease: Duration) -> Duration {
    lease * 2 / 3
}

/// After what time in which nothing was sent the holder gives a sign of life. `spread` (0 to 1) keeps many runs from doing so
/// at the same moment.
pub(crate) fn renewal_after(lease: Duration, spread: f64) -> Duration {
    (lease / 3).mul_f64(1.0 - 0.25 * spread.clamp(0.0, 1.0))
}

impl Claim {
    /// The claim that follows `before`.
    pub(crate) fn after(
        before: Option<&Self>,
        holder: String,
        host: String,
        nonce: String,
    ) -> Self {
        let fencing = before.map_or(0, |before| before.fencing).saturating_add(1);
        Self {
            holder,
            host,
            nonce,
            fencing,
            released: false,
        }
    }

    /// Its last state: the holder is done.
    #[must_use]
    pub(crate) fn released(&self) -> Self {
        Self {
            released: true,
            ..self.clone()
        }
    }
}
