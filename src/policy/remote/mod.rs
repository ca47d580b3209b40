//! Runs that lie on a git server: who may speak for one, what is written of it, and what of it is believed.
//!
//! Everything that was fetched is somebody else's word until [`decode`] and [`follow`] found nothing wrong with it.

mod chain;
mod claim;
mod digest;
mod flaw;
mod names;
mod places;
mod verify;

#[cfg(test)]
mod tests;

pub use chain::{Segment, base, event_id};
pub use claim::{Hold, hold, renewal_after, stop_after};
pub use digest::sha256;
pub use flaw::Flaw;
pub use names::Names;
pub use places::{Places, is_elsewhere};
pub use verify::{RawFile, RawState, Standing, decode, follow, key_of, most_of};
