//! Every other system: as its POSIX calls have it.

mod confine;
pub(super) mod processes;

pub(crate) use confine::{can_confine, confined};

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::fs::{Dir, FileType, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::pty::{OpenptFlags, openpt};
use rustix::time::ClockId;

use crate::os::Attributes;

/// Whether [`sync_file_system`] works.
pub(crate) const SYNCS_FILE_SYSTEMS: bool = false;

/// Whether [`processes::folder`] works.
pub(crate) const KNOWS_FOLDERS_OF_PROCESSES: bool = false;

/// The clock of [`since_boot`](super::since_boot).
pub(super) const BOOT_CLOCK: ClockId = ClockId::Monotonic;

/// Whether that counts from the start of the machine: from some moment, the same for all processes.
pub(super) const KNOWS_BOOT_TIME: bool = false;

/// The code of a key that does nothing.
pub(crate) const DISABLED_KEY: u8 = 0xff;

/// How a folder is opened that need not be readable; here it must be.
pub(crate) const FOLDER_BY_PATH: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a pseudo terminal.
pub(crate) fn open_pty() -> Result<OwnedFd, Errno> {
    let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    rustix::io::fcntl_setfd(&pty, FdFlags::CLOEXEC)?;
    Ok(pty)
}

/// This program.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// There is nothing here that becomes readable when a child ends.
pub(crate) fn end_of_child(_child: &Child) -> Option<File> {
    None
}

/// A pipe grows by itself.
pub(crate) fn enlarge_pipe(_pipe: &OwnedFd) {}

/// How many bytes a pipe can hold.
pub(crate) fn pipe_size(_pipe: &OwnedFd) -> usize {
    64 << 10
}

/// Renames to a name that nothing may have yet; `Errno::EXIST` where something has it.
///
/// # Errors
/// `INVAL` and `NOSYS` where the file system or the system cannot do that.
#[cfg(target_vendor = "apple")]
pub(crate) fn rename_to_new(
    from: (impl AsFd, impl rustix::path::Arg),
    to: (impl AsFd, impl rustix::path::Arg),
) -> Result<(), Errno> {
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    match rustix::fs::renameat_with(from.0, from.1, to.0, to.1, flags) {
        Err(Errno::NOTSUP) => Err(Errno::INVAL),
        renamed => renamed,
    }
}

/// There is no such call here: `Errno::NOSYS`.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn rename_to_new(
    _: (impl AsFd, impl rustix::path::Arg),
    _: (impl AsFd, impl rustix::path::Arg),
) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Calls `each` with every name in a folder, `.` and `..` among them.
pub(crate) fn for_each_name(
    dir: &OwnedFd,
    mut each: impl FnMut(&[u8], FileType),
) -> io::Result<()> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        each(entry.file_name().to_bytes(), entry.file_type());
    }
    Ok(())
}

/// None are known here.
pub(crate) fn attributes(_dir: &OwnedFd, _name: &[u8]) -> Attributes {
    Attributes::default()
}

/// Makes the content of an open file, or the names of an open folder, durable.
#[cfg(target_vendor = "apple")]
pub(crate) fn sync_file(file: impl AsFd) -> Result<(), Errno> {
    // `fsync` leaves it in the drive's own memory here; a file system over the network has no more than that.
    match rustix::fs::fcntl_fullfsync(&file) {
        Err(Errno::NOTSUP | Errno::NOTTY | Errno::INVAL) => rustix::fs::fsync(file),
        synced => synced,
    }
}

/// Makes the content of an open file, or the names of an open folder, durable.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn sync_file(file: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fsync(file)
}

/// There is no such call here: `Errno::NOSYS`.
pub(crate) fn sync_file_system(_file: impl AsFd) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// The system does not report it.
pub(crate) fn dirty_bytes() -> Option<u64> {
    None
}

/// Folders are always read here.
pub(crate) fn keeps_folder_times(_dir: &OwnedFd) -> bool {
    false
}

/// None is known here.
pub(crate) fn passing_file_system(_path: &Path) -> Option<&'static str> {
    None
}

/// The system's watcher knows by itself.
pub(crate) fn network_file_system(_path: &Path) -> Option<&'static str> {
    None
}

/// The program that holds off sleep until its input ends.
pub(crate) fn inhibitor(_why: &str) -> Vec<String> {
    ["caffeinate", "-i", "cat"].map(str::to_owned).into()
}

/// Whether the machine runs on its battery; that is not known.
pub(crate) fn is_on_battery() -> bool {
    false
}
