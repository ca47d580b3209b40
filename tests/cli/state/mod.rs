//! The state directory: ledger, views, imports, other versions, repair.

pub mod doctor;
pub mod foreign_state;
pub mod import;
pub mod ledger_copy;
pub mod rebuild;
pub mod tidy;
pub mod upgrade;
pub mod vault;
pub mod views;
