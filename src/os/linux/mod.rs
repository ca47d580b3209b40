//! Linux.

mod confine;
pub(super) mod processes;

pub(crate) use confine::{can_confine, confined};

use std::fs::{self, File};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Child;

use rustix::fs::{AtFlags, FileType, OFlags, RawDir, RenameFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::pty::{OpenptFlags, openpt};
use rustix::time::ClockId;

use crate::os::Attributes;

/// Whether [`sync_file_system`] works.
pub(crate) const SYNCS_FILE_SYSTEMS: bool = true;

/// Whether [`processes::folder`] works.
pub(crate) const KNOWS_FOLDERS_OF_PROCESSES: bool = true;

/// The clock of [`since_boot`](super::since_boot).
pub(super) const BOOT_CLOCK: ClockId = ClockId::Boottime;

/// Whether that counts from the start of the machine.
pub(super) const KNOWS_BOOT_TIME: bool = true;

/// The code of a key that does nothing.
pub(crate) const DISABLED_KEY: u8 = 0;

/// How a folder is opened that need not be readable.
pub(crate) const FOLDER_BY_PATH: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens a pseudo terminal.
pub(crate) fn open_pty() -> Result<OwnedFd, Errno> {
    openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
}

/// This program, also where its file was replaced meanwhile.
#[expect(clippy::unnecessary_wraps, reason = "other systems may not know it")]
pub(crate) fn own_program() -> io::Result<PathBuf> {
    Ok(PathBuf::from("/proc/self/exe"))
}

/// Something that becomes readable when the child ends; `None` where there is no such thing.
pub(crate) fn end_of_child(child: &Child) -> Option<File> {
    pidfd_open(Pid::from_child(child), PidfdFlags::empty())
        .ok()
        .map(File::from)
}

/// Makes a pipe as large as it may be without privileges, so that a flood needs fewer turns.
pub(crate) fn enlarge_pipe(pipe: &OwnedFd) {
    // The most that the system allows, if its administrator did not change that.
    let _ = rustix::pipe::fcntl_setpipe_size(pipe, 1 << 20);
}

/// How many bytes a pipe can hold.
pub(crate) fn pipe_size(pipe: &OwnedFd) -> usize {
    rustix::pipe::fcntl_getpipe_size(pipe).unwrap_or(64 << 10)
}

/// Renames to a name that nothing may have yet; `Errno::EXIST` where something has it.
///
/// # Errors
/// `INVAL` and `NOSYS` where the file system cannot do that.
pub(crate) fn rename_to_new(
    from: (impl AsFd, impl rustix::path::Arg),
    to: (impl AsFd, impl rustix::path::Arg),
) -> Result<(), Errno> {
    rustix::fs::renameat_with(from.0, from.1, to.0, to.1, RenameFlags::NOREPLACE)
}

/// Calls `each` with every name in a folder, `.` and `..` among them.
pub(crate) fn for_each_name(
    dir: &OwnedFd,
    mut each: impl FnMut(&[u8], FileType),
) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 16 << 10];
    let mut entries = RawDir::new(dir, &mut buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        each(entry.file_name().to_bytes(), entry.file_type());
    }
    Ok(())
}

/// The attributes of `name` in `dir`; an old kernel reports none.
pub(crate) fn attributes(dir: &OwnedFd, name: &[u8]) -> Attributes {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let Ok(found) = rustix::fs::statx(dir, name, flags, StatxFlags::MODE) else {
        return Attributes::default();
    };
    let has = |attribute| found.stx_attributes.contains(attribute);
    let is_known = found
        .stx_attributes_mask
        .contains(StatxAttributes::MOUNT_ROOT);
    Attributes {
        is_mount: is_known.then(|| has(StatxAttributes::MOUNT_ROOT)),
        is_fixed: has(StatxAttributes::IMMUTABLE) || has(StatxAttributes::APPEND),
    }
}

/// Makes the content of an open file, or the names of an open folder, durable.
pub(crate) fn sync_file(file: impl AsFd) -> Result<(), Errno> {
    rustix::fs::fsync(file)
}

/// Makes everything in the file system of an open file durable.
pub(crate) fn sync_file_system(file: impl AsFd) -> Result<(), Errno> {
    rustix::fs::syncfs(file)
}

/// How many bytes wait for a disk or are on their way to it.
pub(crate) fn dirty_bytes() -> Option<u64> {
    dirty(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn dirty(memory: &str) -> Option<u64> {
    let kilobytes = |name| {
        let line = memory.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    Some((kilobytes("Dirty:")? + kilobytes("Writeback:")?) << 10)
}

/// The kind of file system by its magic number of statfs(2), which has 32 bits.
// The C type differs between machines.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::unnecessary_cast
)]
fn magic(found: &rustix::fs::StatFs) -> u32 {
    found.f_type as u32
}

/// Whether a folder of this file system gets new times whenever a name in it is added, removed or renamed: true of
/// the local ones that are known to, and of no other.
pub(crate) fn keeps_folder_times(dir: &OwnedFd) -> bool {
    // ext2 to ext4, XFS, btrfs, tmpfs, F2FS, bcachefs.
    const KNOWN: [u32; 6] = [
        0xEF53,
        0x5846_5342,
        0x9123_683E,
        0x0102_1994,
        0xF2F5_2010,
        0xCA45_1A4E,
    ];
    rustix::fs::fstatfs(dir).is_ok_and(|found| KNOWN.contains(&magic(&found)))
}

/// The name of the file system, if it is one on which others can change files without notifying this machine.
pub(crate) fn network_file_system(path: &Path) -> Option<&'static str> {
    network_name(magic(&rustix::fs::statfs(path).ok()?))
}

/// Where a file system keeps its files that lose them with the machine, or with the container.
pub(crate) fn passing_file_system(path: &Path) -> Option<&'static str> {
    match magic(&rustix::fs::statfs(path).ok()?) {
        // tmpfs and ramfs.
        0x0102_1994 | 0x8584_58f6 => Some("in memory"),
        0x794c_7630 => Some("in an overlay"),
        _ => None,
    }
}

fn network_name(magic: u32) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0x517b | 0xfe53_4d42 | 0xff53_4d42 => "SMB",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x00c3_6400 => "Ceph",
        0x7375_7245 => "Coda",
        0x564c => "NCP",
        0x786f_4256 => "a shared folder",
        0x0bd0_0bd0 => "Lustre",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x4750_4653 => "GPFS",
        _ => return None,
    })
}

/// The program that holds off sleep until its input ends.
pub(crate) fn inhibitor(why: &str) -> Vec<String> {
    let why = format!("--why={why}");
    [
        "systemd-inhibit",
        "--no-ask-password",
        "--what=sleep",
        "--who=recover",
        &why,
        "cat",
    ]
    .map(str::to_owned)
    .into()
}

/// Whether the machine runs on its battery, as far as that is known.
pub(crate) fn is_on_battery() -> bool {
    let supplies = fs::read_dir("/sys/class/power_supply")
        .into_iter()
        .flatten();
    let of = |folder: &fs::DirEntry, name: &str| {
        let text = fs::read_to_string(folder.path().join(name));
        text.map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    let mains: Vec<bool> = supplies
        .flatten()
        .filter(|supply| of(supply, "type") == "Mains")
        .map(|supply| of(&supply, "online") == "1")
        .collect();
    !mains.is_empty() && !mains.contains(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known_by_their_numbers() {
        assert_eq!(network_name(0x6969), Some("NFS"));
        assert_eq!(network_name(0xef53), None, "ext4");
        assert_eq!(network_name(0x9fa0), None, "proc");
        assert_eq!(network_file_system(Path::new("/proc")), None);
        assert_eq!(network_file_system(Path::new("/no/such/path")), None);
    }

    #[test]
    fn what_waits_for_the_disk_is_read() {
        let memory = "MemTotal:  16384 kB\nDirty:              1540 kB\nWriteback:            60 kB\nWritebackTmp: 9 kB\n";
        assert_eq!(dirty(memory), Some(1600 << 10));
        assert_eq!(dirty("MemTotal:  16384 kB\n"), None);
    }
}
