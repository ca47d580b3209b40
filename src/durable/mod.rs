//! Files that survive a kill: written whole or not at all, and locks that die with their holder.
//!
//! Everything that is ours is reached through a [`Root`]: no link is followed below it.
//!
//! The guarantee of [`Root::write`]: after it returns, the new content is on disk under the name; if the process or
//! the machine dies before, the old content is still there. Locks are kernel locks (`flock`), so a dead holder never
//! blocks anybody and no age is ever judged; where the file system has none, a file names the holder.

mod atomic;
mod exclusive;
mod lock;
mod refused;
mod root;
mod sudo;
mod temporary;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

pub(crate) use atomic::Sync;
pub(crate) use atomic::sync_dir;
pub(crate) use atomic::write_atomic;
pub(crate) use exclusive::has_no_locks;
pub use lock::FileLock;
pub(crate) use lock::LockError;
pub(crate) use refused::Refused;
pub use root::Root;
pub(crate) use root::cannot_link;
pub(crate) use root::tighten;
pub(crate) use rustix::fs::FileType as Kind;
pub(crate) use sudo::create_dir_all;
pub(crate) use sudo::give_to_sudo_caller;
pub(crate) use sudo::sudo_caller;
pub(crate) use temporary::TemporaryFolder;
pub(crate) use temporary::is_left_over;
pub(crate) use temporary::is_temporary;
pub(crate) use temporary::reap;
pub(crate) use temporary::temporary_prefix;

/// With fewer bytes than these nothing can be relied on.
const LEAST: u64 = 64 * 1024;

/// Why nothing more can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// No bytes, or no files, are left.
    Space,
    /// It is read-only, or may not be written.
    Permission,
}

/// What stands in the way of writing in `folder`; nothing is tried.
pub(crate) fn lack(folder: &Path) -> io::Result<Option<Lack>> {
    let found = statvfs(folder)?;
    if found.f_flag.contains(StatVfsMountFlags::RDONLY) || access(folder, Access::WRITE_OK).is_err()
    {
        return Ok(Some(Lack::Permission));
    }
    let full = found.f_bavail.saturating_mul(found.f_frsize) < LEAST
        || (found.f_files > 0 && found.f_ffree == 0);
    Ok(full.then_some(Lack::Space))
}
