//! Carries out a restore plan: checks it, writes and removes files, verifies them, refreshes the user's index, and keeps the
//! journal with which a restore that was cut off is finished. What decides what is restored is `policy::restore_plan`.

mod execute;
pub mod git_file;
mod index;
mod journal;
mod nonempty_dirs;
mod preflight;
mod sparse_file;
mod temp_file;
mod verify;
mod write_batch;

pub use execute::{Expect, Restored, Stop, check, execute};
pub use index::{index_is, refresh_index, restore_index};
pub use journal::{
    JOURNAL_VERSION, RestoreJournal, has_journal, read_journal, reap_temp_files, remove_journal, write_journal,
};
pub use nonempty_dirs::keep_nonempty_dirs;
pub use verify::{Verified, verify};
