//! Files by folder descriptors: no path is ever followed through a symlink.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
use crate::model::path::RepoPath;
use crate::os::{file_type, for_each_name};

/// What `lstat` says of a path, as far as it is used here. Times are nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::git) struct FileStat {
    pub size: u64,
    pub mtime: i64,
    pub ctime: i64,
    pub ino: u64,
    pub dev: u64,
    /// Type and permission bits.
    pub mode: u32,
}

impl FileStat {
    pub(crate) fn kind(&self) -> FileType {
        file_type(self.mode)
    }

    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    pub(crate) fn set_permissions(&mut self, permissions: u32) {
        self.mode = self.mode & !0o7777 | permissions;
    }
}

impl From<Stat> for FileStat {
    // The C types differ between platforms; the values fit.
    #[allow(
        clippy::unnecessary_cast,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::cast_lossless
    )]
    fn from(stat: Stat) -> Self {
        let nanos =
            |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
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

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens the work tree's root.
pub(in crate::git) fn open_root(root: &Path) -> Result<OwnedFd> {
    rustix::fs::open(root, FOLDER, Mode::empty()).map_err(Error::at(root))
}

/// Opens the folder `name` in `dir`, unless it is a symlink.
pub(in crate::git) fn open_folder(dir: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, FOLDER, Mode::empty())?)
}

/// Whether the process or the system ran out of something: that says nothing about the file.
pub(in crate::git) fn is_exhausted(error: &io::Error) -> bool {
    let errnos = [Errno::MFILE, Errno::NFILE, Errno::NOMEM];
    errnos
        .iter()
        .any(|errno| Some(errno.raw_os_error()) == error.raw_os_error())
}

/// Opens a folder by its path, one component at a time; a symlink on the way is an error (`ENOTDIR` or `ELOOP`).
pub(in crate::git) fn open_path(root: &OwnedFd, folder: &RepoPath) -> io::Result<OwnedFd> {
    let mut current = root.try_clone()?;
    for name in folder
        .as_bytes()
        .split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
    {
        current = open_folder(&current, name)?;
    }
    Ok(current)
}

/// Splits a path into the folder that holds it and its name.
pub(in crate::git) fn split(path: &RepoPath) -> (RepoPath, &[u8]) {
    let bytes = path.as_bytes();
    let name = bytes
        .iter()
        .rposition(|byte| *byte == b'/')
        .map_or(bytes, |slash| &bytes[slash + 1..]);
    (path.parent().unwrap_or_default(), name)
}

/// `lstat`; `None` when there is nothing.
pub(in crate::git) fn stat(dir: &OwnedFd, name: &[u8]) -> io::Result<Option<FileStat>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat.into())),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// `fstat` of an open file.
pub(in crate::git) fn stat_open(file: impl std::os::fd::AsFd) -> io::Result<FileStat> {
    Ok(rustix::fs::fstat(file)?.into())
}

/// Opens a regular file for reading. Never follows a symlink and never blocks on a FIFO that took its place.
pub(in crate::git) fn open_file(dir: &OwnedFd, name: &[u8]) -> io::Result<File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(dir, name, flags, Mode::empty())?);
    if stat_open(&file)?.kind() != FileType::RegularFile {
        return Err(io::Error::other("not a regular file any more"));
    }
    Ok(file)
}

/// The target of a symlink.
pub(in crate::git) fn read_link(dir: &OwnedFd, name: &[u8]) -> io::Result<Vec<u8>> {
    Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes())
}

/// The names in a folder, without `.` and `..`, sorted by their bytes.
#[derive(Debug, Default)]
pub(in crate::git) struct Listing {
    bytes: Vec<u8>,
    /// Where each name is, and what the folder says that it is.
    entries: Vec<(usize, usize, FileType)>,
}

impl Listing {
    /// Reads a folder that was opened for it and not read yet. What was in the listing before is dropped, its memory is used again.
    pub(crate) fn read(&mut self, dir: &OwnedFd) -> io::Result<()> {
        self.bytes.clear();
        self.entries.clear();
        for_each_name(dir, |name, kind| {
            if name != b"." && name != b".." {
                self.entries.push((self.bytes.len(), name.len(), kind));
                self.bytes.extend_from_slice(name);
            }
        })?;
        let bytes = &self.bytes;
        self.entries
            .sort_unstable_by(|a, b| slice(bytes, *a).cmp(slice(bytes, *b)));
        Ok(())
    }

    /// The names in order, with the kind that the folder knows ([`FileType::Unknown`] where it knows none).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], FileType)> {
        self.entries
            .iter()
            .map(|entry| (slice(&self.bytes, *entry), entry.2))
    }

    /// Whether a name is in it.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        self.entries
            .binary_search_by(|entry| slice(&self.bytes, *entry).cmp(name))
            .is_ok()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

fn slice(bytes: &[u8], (start, length, _): (usize, usize, FileType)) -> &[u8] {
    &bytes[start..start + length]
}

/// The names in a folder that was not read yet, sorted, without `.` and `..`.
pub(in crate::git) fn names(dir: &OwnedFd) -> io::Result<Vec<Vec<u8>>> {
    let mut listing = Listing::default();
    listing.read(dir)?;
    Ok(listing.iter().map(|(name, _)| name.to_vec()).collect())
}

/// Whether opening a folder failed because there is nothing, or something else: a file or a symlink.
pub(in crate::git) fn is_no_folder(error: &io::Error) -> bool {
    let errnos = [Errno::NOENT, Errno::LOOP, Errno::NOTDIR];
    errnos
        .iter()
        .any(|errno| Some(errno.raw_os_error()) == error.raw_os_error())
}

/// An error of opening the folder of a path; a symlink or file in its place is unsafe.
pub(in crate::git) fn open_error(path: &RepoPath, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::conflict(path, "its folder is gone");
    }
    if is_no_folder(&error) {
        let path = path.below(std::path::Path::new(""));
        return Error::UnsafePath {
            path,
            reason: "a symlink or file is in the place of one of its folders".to_owned(),
        };
    }
    io_error(path, error)
}

/// An error of reading, for a file that must be readable.
pub(in crate::git) fn io_error(path: &RepoPath, error: io::Error) -> Error {
    use std::os::unix::ffi::OsStrExt as _;
    // The work tree itself has no name in it.
    let name = if path.as_bytes().is_empty() {
        b"."
    } else {
        path.as_bytes()
    };
    Error::io(
        std::path::Path::new(std::ffi::OsStr::from_bytes(name)),
        error,
    )
}
