//! Files by folder descriptors: no path is ever followed through a symlink.
//!
//! Beside what is at a path: when the times of a file show that it has not changed, and how many files are made durable in
//! the cheapest way.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use git2::{ObjectType, Oid};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha1::{Digest as _, Sha1};

pub(in crate::git) use super::error::io_error;
use super::error::{At as _, Error, Result};
use super::paths::object_header;
use crate::durable::{self, FOLDER, is_one_of};
use crate::model::{Entry, EntryKind, RepoPath};
use crate::os::{SYNCS_FILE_SYSTEMS, dirty_bytes, file_type, for_each_name};

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

    /// The mode that git gives to a file or symlink.
    pub(crate) fn git_mode(&self) -> u32 {
        match self.kind() {
            FileType::Symlink => 0o120_000,
            _ if self.mode & 0o100 != 0 => 0o100_755,
            _ => 0o100_644,
        }
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

/// Opens the work tree's root.
pub(in crate::git) fn open_root(root: &Path) -> Result<OwnedFd> {
    rustix::fs::open(root, FOLDER, Mode::empty()).at(root)
}

/// Opens the folder `name` in `dir`, unless it is a symlink.
pub(in crate::git) fn open_folder(dir: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(dir, name, FOLDER, Mode::empty())?)
}

/// Whether the process or the system ran out of something: that says nothing about the file.
pub(in crate::git) fn is_exhausted(error: &io::Error) -> bool {
    is_one_of(error, &[Errno::MFILE, Errno::NFILE, Errno::NOMEM])
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
    let flags = OFlags::RDONLY | durable::FILE;
    let file = File::from(rustix::fs::openat(dir, name, flags, Mode::empty())?);
    if stat_open(&file)?.kind() != FileType::RegularFile {
        return Err(io::Error::other("not a regular file any more"));
    }
    Ok(file)
}

/// Sets the permissions of a file or folder that is no symlink.
pub(in crate::git) fn chmod(dir: &OwnedFd, name: &[u8], mode: u32) -> io::Result<()> {
    let mode = crate::os::mode(mode);
    Ok(rustix::fs::chmodat(dir, name, mode, AtFlags::empty())?)
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
    is_one_of(error, &[Errno::NOENT, Errno::LOOP, Errno::NOTDIR])
}

/// An error of opening the folder of a path; a symlink or file in its place is unsafe.
pub(in crate::git) fn open_error(path: &RepoPath, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::NotFound {
        return Error::conflict(path, "its folder is gone");
    }
    if is_no_folder(&error) {
        return Error::unsafe_path(
            path,
            "a symlink or file is in the place of one of its folders",
        );
    }
    io_error(path, error)
}

/// How many folders are open at most, of the 1,024 descriptors that a process has as a rule.
pub(in crate::git) const MAX_OPEN: usize = 64;

/// The last folder that was opened, with those above it.
///
/// An open folder stays the one that it was, wherever its name leads by then: nothing is ever reached through a symlink.
#[derive(Debug)]
pub(in crate::git) struct DirfdCache {
    root: Rc<OwnedFd>,
    /// Each with its path, every one inside the one before; of deep paths only the innermost.
    open: VecDeque<(RepoPath, Rc<OwnedFd>)>,
}

impl DirfdCache {
    /// Begins at this root of a work tree.
    pub(crate) fn of(root: &Path) -> Result<Self> {
        open_root(root).map(Self::new)
    }

    /// Begins at the root of the work tree.
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self {
            root: Rc::new(root),
            open: VecDeque::new(),
        }
    }

    /// Forgets what is open: names changed.
    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    /// Opens a folder, one component at a time; a symlink on the way is an error (`ENOTDIR` or `ELOOP`).
    pub(crate) fn open(&mut self, folder: &RepoPath) -> io::Result<Rc<OwnedFd>> {
        let bytes = folder.as_bytes();
        let inside = |above: &RepoPath| {
            bytes
                .strip_prefix(above.as_bytes())
                .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        };
        let shared = self
            .open
            .iter()
            .take_while(|(path, _)| inside(path))
            .count();
        self.open.truncate(shared);
        let mut current = self
            .open
            .back()
            .map_or_else(|| Rc::clone(&self.root), |(_, dir)| Rc::clone(dir));
        let mut path = self
            .open
            .back()
            .map_or_else(RepoPath::default, |(path, _)| path.clone());
        let rest = &bytes[path.as_bytes().len()..];
        for name in rest
            .split(|byte| *byte == b'/')
            .filter(|name| !name.is_empty())
        {
            current = Rc::new(open_folder(&current, name)?);
            path = path.join(name);
            if self.open.len() == MAX_OPEN {
                self.open.pop_front();
            }
            self.open.push_back((path.clone(), Rc::clone(&current)));
        }
        Ok(current)
    }
}

/// Kernel ticks are at most 10 ms; network file systems lag a little more.
pub(super) const MARGIN: i64 = 50_000_000;

/// Where times are whole seconds (or two, on FAT), a tick is that long.
const COARSE_MARGIN: i64 = 2_000_000_000;

/// Whether a change at `moment` or later would show in the times of this file.
pub(in crate::git) fn is_settled(stat: &FileStat, moment: i64) -> bool {
    stat.mtime.max(stat.ctime) < moment.saturating_sub(margin(stat.ctime))
}

/// How much older than a moment a time of a file must be, so that a change after the moment gives another time.
pub(in crate::git) fn margin(time: i64) -> i64 {
    if time % 1_000_000_000 == 0 {
        COARSE_MARGIN
    } else {
        MARGIN
    }
}

/// Syncs a folder, so that the names in it are durable.
pub(in crate::git) fn sync_folder(folder: &Path) -> Result<()> {
    durable::sync_dir(folder).at(folder)
}

/// Fewer files are synced each by itself, whatever else waits for the disk.
pub(in crate::git) const MANY: usize = 16;
/// About the bytes that the disk writes in the time of one more sync.
const BYTES_A_SYNC: u64 = 256 << 10;

/// Whether one sync of the whole file system, which waits for everybody's data, is cheaper than one for each of this many
/// files or folders: not where a build has just written a gigabyte.
pub(in crate::git) fn whole_is_cheaper(count: usize) -> bool {
    let is_cheaper = |dirty: u64| dirty <= count as u64 * BYTES_A_SYNC;
    SYNCS_FILE_SYSTEMS && count >= MANY && dirty_bytes().is_none_or(is_cheaper)
}

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::git) enum OnDisk {
    Nothing,
    /// A file or symlink with this content.
    Entry(Oid, FileStat),
    /// A folder, FIFO, socket or device.
    Other,
}

impl OnDisk {
    /// Whether it is this kind and content; `None` represents nothing.
    pub(crate) fn is(&self, entry: Option<&Entry>) -> bool {
        match (self, entry) {
            (Self::Nothing, None) => true,
            (Self::Entry(oid, stat), Some(entry)) => {
                let kind = if stat.kind() == FileType::Symlink {
                    EntryKind::Symlink
                } else {
                    EntryKind::File
                };
                kind == entry.kind && oid.to_string() == entry.oid.0
            }
            _ => false,
        }
    }

    /// What `lstat` said of it before it was read.
    pub(crate) fn stat(&self) -> Option<FileStat> {
        match self {
            Self::Entry(_, stat) => Some(*stat),
            Self::Nothing | Self::Other => None,
        }
    }

    /// Whether it is of the same kind and content as this.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Entry(oid, stat), Self::Entry(of, then)) => {
                (oid, stat.kind()) == (of, then.kind())
            }
            (one, other) => one == other,
        }
    }

    /// Whether its permissions are those of the entry. Symlinks have none.
    pub(crate) fn has_mode(&self, entry: Option<&Entry>) -> bool {
        match (self, entry) {
            (Self::Entry(_, stat), Some(entry)) if stat.kind() != FileType::Symlink => {
                stat.permissions() == entry.mode
            }
            _ => true,
        }
    }
}

/// Reads what is there.
pub(in crate::git) fn inspect(dir: &OwnedFd, name: &[u8]) -> io::Result<OnDisk> {
    match hash_file(dir, name)? {
        Some((oid, stat)) => Ok(OnDisk::Entry(oid, stat)),
        None => Ok(if stat(dir, name)?.is_some() {
            OnDisk::Other
        } else {
            OnDisk::Nothing
        }),
    }
}

/// The id that a file's or symlink's content would have, without holding it in memory. `None` if it is neither, or is
/// gone.
///
/// It only says whether content is that of a known id, so that it need not look for collisions: what was stored has none.
pub(in crate::git) fn hash_file(dir: &OwnedFd, name: &[u8]) -> io::Result<Option<(Oid, FileStat)>> {
    let Some(stat) = stat(dir, name)? else {
        return Ok(None);
    };
    let mut hash = Sha1::new();
    let stat = match stat.kind() {
        FileType::Symlink => {
            let target = read_link(dir, name)?;
            hash.update(object_header(ObjectType::Blob, target.len() as u64));
            hash.update(&target);
            stat
        }
        FileType::RegularFile => {
            let file = open_file(dir, name)?;
            let stat = stat_open(&file)?;
            hash.update(object_header(ObjectType::Blob, stat.size));
            let buffer = usize::try_from(stat.size + 1).map_or(1 << 17, |size| size.min(1 << 17));
            io::copy(&mut BufReader::with_capacity(buffer, file), &mut hash)?;
            stat
        }
        _ => return Ok(None),
    };
    let oid = Oid::from_bytes(&hash.finalize()).map_err(io::Error::other)?;
    Ok(Some((oid, stat)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_deep_path_holds_few_descriptors() {
        let root = tempfile::tempdir().unwrap();
        let mut folders = DirfdCache::new(super::open_root(root.path()).unwrap());
        let deep = ["d"; 200].join("/");
        fs::create_dir_all(root.path().join(&deep)).unwrap();
        for depth in (0..200).rev().chain([199]) {
            let path = RepoPath::new(["d"].repeat(depth).join("/"));
            let open = folders.open(&path).unwrap();
            let real = fs::metadata(path.below(root.path())).unwrap();
            assert_eq!(
                rustix::fs::fstat(&open).unwrap().st_ino,
                std::os::unix::fs::MetadataExt::ino(&real),
                "{depth}"
            );
            assert!(folders.open.len() <= MAX_OPEN);
        }
    }

    #[test]
    fn folders_that_share_the_beginning_of_a_name_are_told_apart() {
        let root = tempfile::tempdir().unwrap();
        for folder in ["a/b/c", "a/bc", "ab"] {
            fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        std::os::unix::fs::symlink("a", root.path().join("link")).unwrap();
        let mut folders = DirfdCache::new(super::open_root(root.path()).unwrap());
        for folder in ["", "a/b/c", "a/b", "a/bc", "a", "ab", "a/b/c", ""] {
            let open = folders.open(&RepoPath::from(folder)).unwrap();
            let found = rustix::fs::fstat(&open).unwrap().st_ino;
            let real = std::os::unix::fs::MetadataExt::ino(
                &fs::metadata(root.path().join(folder)).unwrap(),
            );
            assert_eq!(found, real, "{folder}");
        }
        assert!(
            folders.open(&RepoPath::from("link/b")).is_err()
                && folders.open(&RepoPath::from("a/x")).is_err()
        );
    }
}
