//! The state directory: the ledger, which is the truth, and the views made from it.
//!
//! A command that only reads calls [`Store::load`], which takes no lock. A command that writes takes
//! [`Store::lock`]; only the [`Exclusive`] guard can append, so a write without the lock does not compile. State that came
//! from elsewhere ([`Origin::Foreign`]) gives out no lock.

mod error;
mod known_secrets;
mod ledger;
mod ledger_line;
mod masked;
mod origin;
mod packed_lines;
mod rebuild;
mod registry;
mod second_copy;
mod settled;
mod state_cache;
mod view_names;
pub mod views;
mod written;

pub use error::StoreError;
pub use ledger::{Exclusive, Loaded, NewEvent, Owned, Store};
pub use masked::masked;
pub use origin::{Foreign, Origin};
pub use rebuild::{Rebuilding, Salvaged, salvage};
pub use registry::Registry;
pub(crate) use registry::new_id;
pub use view_names::{ACTIVE, ATTEMPTS, LANES, RECOVERY, VIEWS};
pub use written::print_of;
