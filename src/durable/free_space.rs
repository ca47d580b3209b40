//! Whether a folder's file system has free space and can be written to.

use std::io;
use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags, access, statvfs};

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
