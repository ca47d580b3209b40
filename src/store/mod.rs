//! The state directory: the ledger, which is the truth, and the views made from it.
//!
//! A command that only reads calls [`Store::load`], which takes no lock. A command that writes takes
//! [`Store::lock`]; only the [`Exclusive`] guard can append, so a write without the lock does not compile. State that came
//! from elsewhere ([`Origin::Foreign`]) gives out no lock.

mod error;
mod ledger;
mod ledger_line;
mod masked;
mod rebuild;
mod ref_scan_stamp;
mod registry;
mod second_copy;
mod state_cache;
mod view_fingerprints;
pub(crate) mod views;

pub use error::StoreError;
pub(crate) use ledger::{ACTIVE, ATTEMPTS, Exclusive, LANES, Loaded, RECOVERY, VIEWS};
pub use ledger::{NewEvent, Store};
pub use ledger_line::salvage;
pub(crate) use masked::masked;
pub(crate) use registry::{Foreign, Origin, Registry, new_id};
pub(crate) use view_fingerprints::ViewFingerprints;
