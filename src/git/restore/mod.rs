//! Carries out the files' part of a restore: checks the plan, writes and removes files, verifies them.
//! Refreshes the user's index, and keeps the journal with which a restore that was cut off is finished. What is restored is
//! decided by `policy::restore_plan`; HEAD, memory and nested repositories belong in `engine::restore`.

mod attributes;
mod execute;
pub mod git_file;
mod index;
mod journal;
mod nonempty_dirs;
mod outcomes;
mod preflight;
mod sparse_file;
mod temp_file;
mod verify;
mod write_batch;

pub use execute::{Expect, Restored, Stop, check, execute, leave_blocked, set_last_modes};
pub use index::{
    IndexContent, IndexPlan, IndexSides, check_index, index_is, plan_index, refresh_index,
    restore_index, restore_index_paths,
};
pub use journal::{
    JOURNAL_VERSION, RestoreJournal, has_journal, read_journal, reap_temp_files, remove_journal,
    write_journal,
};
pub use nonempty_dirs::keep_nonempty_dirs;
pub use preflight::read_back;
pub use verify::{Verified, verify};
