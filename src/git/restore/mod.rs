//! Carries out the files' part of a restore: checks the plan, writes and removes files, verifies them.
//! Refreshes the user's index, and keeps the journal with which a restore that was cut off is finished. What is restored is
//! decided by `policy::restore`; HEAD, memory and nested repositories belong in `engine::restore`.

mod attributes;
mod execute;
pub(crate) mod git_file;
mod index;
mod journal;
mod nonempty_dirs;
mod outcomes;
mod preflight;
mod sparse_file;
mod temp_file;
mod verify;
mod write_batch;

pub(crate) use execute::leave_blocked;
pub use execute::{Expect, Restored, check, execute};
pub(crate) use index::{IndexContent, IndexPlan, IndexSides, plan_index, restore_index_paths};
pub use journal::{JOURNAL_VERSION, RestoreJournal};
pub(crate) use preflight::read_back;
pub use verify::{Verified, verify};
