//! Files by folder descriptors: no path is ever followed through a symlink.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

use super::error::{Error, Result};
use crate::model::path::RepoPath;

/// What `lstat` says of a path, as far as it is used here. Times are nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStat {
    pub size: u64,
    pub mtime: i64,
    pub ctime: i64,
    pub ino: u64,
    pub dev: u64,
    /// Type and permission bits.
    pub mode: u32,
}

impl FileStat {
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

impl From<Stat> for FileStat {
    // The C types differ between platforms; the values fit.
    #[allow(clippy::unnecessary_cast, clippy::cast_possible_wrap, clippy::cast_sign_loss, clippy::cast_lossless)]
    fn from(stat: Stat) -> Self {
        let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
        Self {
            size: stat.st_size as u64,
            mtime: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
            ino: stat.st_ino as u64,
            dev: stat.st_dev as u64,
            mode: stat.st_mode as u32,
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the work tree's root.
pub(super) fn open_root(root: &Path) -> Result<OwnedFd> {
    rustix::fs::open(root, FOLDER, Mode::empty()).map_err(Error::at(root))
}

/// Opens the folder `name` in `dir`, unless it is a symlink.
pub(super) fn open_folder(dir: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, FOLDER, Mode::empty())?)
}

/// Opens a folder by its path, one component at a time; a symlink on the way is an error (`ENOTDIR` or `ELOOP`).
pub(super) fn open_path(root: &OwnedFd, folder: &RepoPath) -> io::Result<OwnedFd> {
    let mut current = root.try_clone()?;
    for name in folder.as_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        current = open_folder(&current, name)?;
    }
    Ok(current)
}

/// Splits a path into the folder that holds it and its name.
pub(super) fn split(path: &RepoPath) -> (RepoPath, &[u8]) {
    let bytes = path.as_bytes();
    let name = bytes.iter().rposition(|byte| *byte == b'/').map_or(bytes, |slash| &bytes[slash + 1..]);
    (path.parent().unwrap_or_default(), name)
}

/// `lstat`; `None` when there is nothing.
pub(super) fn stat(dir: &OwnedFd, name: &[u8]) -> io::Result<Option<FileStat>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat.into())),
        Err(rustix::io::Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// `fstat` of an open file.
pub(super) fn stat_open(file: &File) -> io::Result<FileStat> {
    Ok(rustix::fs::fstat(file)?.into())
}

/// Opens a regular file for reading. Never follows a symlink and never blocks on a FIFO that took its place.
pub(super) fn open_file(dir: &OwnedFd, name: &[u8]) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(dir, name, flags, Mode::empty())?);
    if stat_open(&file)?.kind() != FileType::RegularFile {
        return Err(io::Error::other("not a regular file any more"));
    }
    Ok(file)
}

/// The target of a symlink.
pub(super) fn read_link(dir: &OwnedFd, name: &[u8]) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes())
}

/// The names in a folder, sorted, without `.` and `..`.
pub(super) fn names(dir: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    names.sort_unstable();
    Ok(names)
}
