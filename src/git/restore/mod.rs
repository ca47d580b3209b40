//! Carries out the files' part of a restore: checks the plan, writes and removes files, verifies them.
//! Refreshes the user's index, and keeps the journal with which a restore that was cut off is finished. What is restored is
//! decided by `policy::restore_plan`; HEAD, memory and nested repositories belong in `engine::restore`.

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

pub use execute::{Expect, Restored, check, execute};
pub(crate) use execute::{leave_blocked, set_last_modes};
pub(crate) use index::{
    IndexContent, IndexPlan, IndexSides, check_index, check_index_lock, plan_index,
    restore_index_paths,
};
pub use index::{index_is, refresh_index, restore_index};
pub(crate) use journal::has_journal;
pub use journal::{
    JOURNAL_VERSION, RestoreJournal, read_journal, reap_temp_files, remove_journal, write_journal,
};
pub(crate) use nonempty_dirs::keep_nonempty_dirs;
pub(crate) use preflight::read_back;
pub use verify::{Verified, verify};
