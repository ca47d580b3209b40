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

pub(crate) use chain::{Segment, base};
pub(crate) use claim::{Hold, hold, renewal_after, stop_after};
pub use digest::sha256;
pub(crate) use flaw::Flaw;
pub use names::Names;
pub use places::Places;
pub(crate) use places::is_elsewhere;
pub(crate) use verify::{RawFile, RawState, Standing, decode, follow, key_of, most_of};
