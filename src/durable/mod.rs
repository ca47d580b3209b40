//! Files that survive a kill: written whole or not at all, and locks that die with their holder.
//!
//! Everything that is ours is reached through a [`Root`]: no link is followed below it.
//!
//! The guarantee of [`Root::write`]: after it returns, the new content is on disk under the name; if the process or
//! the machine dies before, the old content is still there. Locks are kernel locks (`flock`), so a dead holder never
//! blocks anybody and no age is ever judged; where the file system has none, a file names the holder.

mod atomic;
mod exclusive;
mod free_space;
mod lock;
mod refused;
mod root;
mod sudo;
mod temporary;
#[cfg(test)]
mod tests;

pub(crate) use atomic::{Sync, sync_dir, write_atomic};
pub(crate) use exclusive::has_no_locks;
pub(crate) use free_space::{Lack, lack};
pub use lock::FileLock;
pub(crate) use lock::LockError;
pub(crate) use refused::Refused;
pub use root::Root;
pub(crate) use root::{cannot_link, tighten};
pub(crate) use rustix::fs::FileType as Kind;
pub(crate) use sudo::{create_dir_all, give_to_sudo_caller, sudo_caller};
pub(crate) use temporary::{TemporaryFolder, is_left_over, is_temporary, reap, temporary_prefix};
