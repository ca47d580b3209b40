//! Under `sudo` root gives what it makes in a folder of the caller to the caller.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::LazyLock;
use std::{fs, io};

use rustix::fs::{FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

static CALLER: LazyLock<Option<u32>> = LazyLock::new(|| {
    let named = || std::env::var("SUDO_UID").ok()?.parse::<u32>().ok();
    if rustix::process::geteuid().is_root() {
        named()
    } else {
        None
    }
});

/// Who called `sudo`, where this process is root by that.
pub(crate) fn sudo_caller() -> Option<u32> {
    *CALLER
}

/// Gives what was just made in a folder of the caller's of `sudo` to them, with the folder's group: they could not use it
/// afterwards. Where the system does not allow that, it stays root's.
pub(super) fn give(folder: impl AsFd, made: impl AsFd) -> Result<(), Errno> {
    let Some(caller) = sudo_caller() else {
        return Ok(());
    };
    let (folder, found) = (rustix::fs::fstat(folder)?, rustix::fs::fstat(&made)?);
    // What has another name was not made here.
    let is_new = found.st_uid == 0
        && (found.st_nlink == 1 || FileType::from_raw_mode(found.st_mode) == FileType::Directory);
    if folder.st_uid != caller || !is_new {
        return Ok(());
    }
    match rustix::fs::fchown(
        made,
        Some(Uid::from_raw(caller)),
        Some(Gid::from_raw(folder.st_gid)),
    ) {
        // An owner that this user name space does not know, or a file system without owners.
        Err(Errno::PERM | Errno::INVAL | Errno::NOTSUP) => Ok(()),
        given => given,
    }
}

/// The same of what was just made at a path.
pub(crate) fn give_to_sudo_caller(path: &Path) -> io::Result<()> {
    if sudo_caller().is_none() {
        return Ok(());
    }
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let folder = rustix::fs::open(parent, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let made = rustix::fs::openat(
        &folder,
        path.file_name().unwrap_or_default(),
        flags,
        Mode::empty(),
    )?;
    Ok(give(folder, made)?)
}

/// Makes a folder with those above it, which are the caller's of `sudo` as far as the folder is that they are in.
pub(crate) fn create_dir_all(path: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|folder| !folder.exists())
        .collect();
    fs::create_dir_all(path)?;
    missing.into_iter().rev().try_for_each(give_to_sudo_caller)
}
