//! Files beneath a folder that is known: no link is followed on the way to one, and none that waits is opened.
//!
//! Whoever hands over a repository may have put a symbolic link, a FIFO, a socket or a device in a place of ours. A
//! [`Root`] goes down to a file one folder at a time, each opened by the descriptor of the one above it without following
//! links, and hands out regular files only. Anything else is [`Refused`].

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::os::{
    fd::{AsFd, OwnedFd},
    unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
};
use std::path::{Component, Path, PathBuf};

use rustix::{
    fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat},
    io::Errno,
};

use super::refused::{Refused, Wanted};
use super::sudo::{create_dir_all, give, give_to_sudo_caller};
use crate::os;
use crate::os::{rename_to_new, sync_file};

/// How a folder is opened, and a file that is nothing else.
pub(crate) const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
pub(crate) const FILE: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// A larger file, in bytes, is read only where it was written throughout: what costs nobody a byte of disk would cost us
/// hours and all memory.
const SOLID: i64 = 64 << 20;

/// What only we and the user read.
const OWN_FOLDER: u32 = 0o700;
pub(super) const OWN_FILE: u32 = 0o600;
/// What everybody reads, as far as the umask allows.
const SHARED_FOLDER: u32 = 0o777;
const SHARED_FILE: u32 = 0o644;

/// A folder that was resolved once, beneath which nothing is followed.
///
/// Paths are given below it, or absolute and in it; one that leads out of it is an error. Files and folders that are made
/// in our own part are for the user alone (0600, 0700), others as the umask says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    anchor: PathBuf,
    /// Our own part, below the anchor.
    own: Option<PathBuf>,
    /// Whether the anchor is made where it is missing.
    made: bool,
}

impl Root {
    /// A folder that is ours with all that is in it.
    pub fn own(folder: impl Into<PathBuf>) -> Self {
        Self {
            anchor: folder.into(),
            own: Some(PathBuf::new()),
            made: true,
        }
    }

    /// A folder of which only the part `own` is ours. It is another program's: where it is missing, nothing makes it.
    pub fn with_own(folder: impl Into<PathBuf>, own: impl Into<PathBuf>) -> Self {
        Self {
            anchor: folder.into(),
            own: Some(own.into()),
            made: false,
        }
    }

    /// The same folder, made where it is missing.
    #[must_use]
    pub fn made(self) -> Self {
        Self { made: true, ..self }
    }

    /// A folder of which nothing is ours alone.
    pub fn shared(folder: impl Into<PathBuf>) -> Self {
        Self {
            anchor: folder.into(),
            own: None,
            made: true,
        }
    }

    /// The folder that a file is in, which is resolved, and the file's name, for one that the user named.
    pub fn of_file(path: &Path) -> (Self, &OsStr) {
        let folder = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        (Self::shared(folder), path.file_name().unwrap_or_default())
    }

    /// A folder beneath this root as one of its own, with the same part of it ours. It must be a folder and no link.
    #[must_use]
    pub fn inside(&self, folder: &Path) -> Self {
        Self {
            anchor: self.full(folder),
            ..self.clone()
        }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.anchor
    }

    /// The mode of a new file.
    pub(super) fn file_mode(&self, path: &Path) -> u32 {
        if self.relative(path).is_ok_and(|path| self.is_own(path)) {
            OWN_FILE
        } else {
            SHARED_FILE
        }
    }

    fn is_own(&self, relative: &Path) -> bool {
        self.own
            .as_ref()
            .is_some_and(|own| relative.starts_with(own))
    }

    fn relative<'a>(&self, path: &'a Path) -> io::Result<&'a Path> {
        let relative = path.strip_prefix(&self.anchor).unwrap_or(path);
        if relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
        {
            return Ok(relative);
        }
        let message = format!("{} is not in {}", path.display(), self.anchor.display());
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    /// Opens a folder.
    pub(super) fn folder(&self, path: &Path) -> io::Result<OwnedFd> {
        let relative = self.relative(path)?;
        let mut dir = self.open_anchor()?;
        let mut at = self.anchor.clone();
        for name in relative {
            at.push(name);
            dir = open_folder(&dir, name, &at)?;
        }
        Ok(dir)
    }

    fn open_anchor(&self) -> io::Result<OwnedFd> {
        Ok(rustix::fs::open(
            &self.anchor,
            FOLDER.difference(OFlags::NOFOLLOW),
            Mode::empty(),
        )?)
    }

    /// Opens the folder that something is in; the second is its name there.
    pub(super) fn parent<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let relative = self.relative(path)?;
        match (relative.parent(), relative.file_name()) {
            (Some(folder), Some(name)) => Ok((self.folder(folder)?, name)),
            _ => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        }
    }

    pub(super) fn full(&self, path: &Path) -> PathBuf {
        self.anchor.join(path)
    }

    /// Opens a file from the descriptor of its folder; `flags` say for what. What is there and no file is not even opened.
    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let full = self.anchor.join(self.relative(path)?);
        let (dir, name) = self.parent(path)?;
        let is_made = flags.contains(OFlags::CREATE);
        let there = stat(&dir, name)?;
        match &there {
            None if is_made => {}
            None => return Err(io::Error::from(io::ErrorKind::NotFound)),
            Some(found) => regular(found, &full)?,
        }
        let mode = if is_made {
            os::mode(self.file_mode(path))
        } else {
            Mode::empty()
        };
        let file = rustix::fs::openat(&dir, name, flags | FILE, mode)
            .map(File::from)
            .map_err(|error| match error {
                // It was a file a moment ago.
                Errno::LOOP => Refused::new(&full, FileType::Symlink, Wanted::File).into(),
                error => io::Error::from(error),
            })?;
        let found = rustix::fs::fstat(&file)?;
        regular(&found, &full)?;
        if there.is_none() {
            give(&dir, &file)?;
        }
        if self.own.is_some() && found.st_size > SOLID && has_hole(&file, found.st_size)? {
            return Err(Refused::new(&full, FileType::RegularFile, Wanted::Solid).into());
        }
        Ok(file)
    }

    /// Whether `path` still names this open file. What is on the way is not asked about: the file was opened through it.
    pub fn names(&self, path: &Path, file: &File) -> io::Result<bool> {
        let own = rustix::fs::fstat(file)?;
        match rustix::fs::lstat(self.full(path)) {
            Ok(there) => Ok((own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a file for reading.
    pub fn open(&self, path: &Path) -> io::Result<File> {
        self.open_with(path, OFlags::RDONLY)
    }

    /// Opens a file that is there for reading and writing at any place.
    pub fn open_to_write(&self, path: &Path) -> io::Result<File> {
        self.open_with(path, OFlags::RDWR)
    }

    /// Opens a file that is there for writing at its end.
    pub fn open_to_append(&self, path: &Path) -> io::Result<File> {
        self.open_with(path, OFlags::WRONLY | OFlags::APPEND)
    }

    /// Opens a file for reading and writing, which serves as a lock or a stamp; it is made where it is not there. One with
    /// another name somewhere is not ours, and refused.
    pub fn open_or_create(&self, path: &Path) -> io::Result<File> {
        let file = self.open_with(path, OFlags::RDWR | OFlags::CREATE)?;
        if rustix::fs::fstat(&file)?.st_nlink > 1 {
            return Err(
                Refused::new(&self.full(path), FileType::RegularFile, Wanted::OneName).into(),
            );
        }
        Ok(file)
    }

    /// Makes an empty file in the place of the one that may be there: what has another name somewhere keeps its content.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        let (dir, name) = self.parent(path)?;
        if let Some(found) = stat(&dir, name)? {
            regular(&found, &self.full(path))?;
            rustix::fs::unlinkat(&dir, name, AtFlags::empty())?;
        }
        create_in(&dir, name, self.file_mode(path)).map_err(io::Error::from)
    }

    /// This root for what is not ours alone, as git's objects or the loop's own files: what is made is as readable for
    /// others as the umask allows.
    #[must_use]
    pub fn for_all(&self) -> Self {
        Self {
            own: None,
            ..self.clone()
        }
    }

    /// A file's content.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// A file's content; `None` where there is none.
    pub fn read_present(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        present(self.read(path))
    }

    /// What a file says that can be done without: `None` where it cannot be read. What is in its place and is no file is
    /// an error even so.
    pub fn read_if_possible(&self, path: &Path) -> io::Result<Option<Vec<u8>>> {
        match self.read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if Refused::of(&error).is_some() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// A file's content; an error of the kind `InvalidData` where that is more than `limit` bytes.
    pub fn read_at_most(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?
            .take(limit.saturating_add(1))
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("it has more than {limit} bytes"),
            ));
        }
        Ok(bytes)
    }

    /// The kind of what is there, links not followed; `None` where nothing is.
    pub fn kind(&self, path: &Path) -> io::Result<Option<FileType>> {
        if self.relative(path)?.as_os_str().is_empty() {
            return Ok(present(self.open_anchor())?.map(|_| FileType::Directory));
        }
        match present(self.parent(path))? {
            Some((dir, name)) => Ok(stat(&dir, name)?.map(|found| kind_of(&found))),
            None => Ok(None),
        }
    }

    /// Whether a file or folder is there. What is neither is an error.
    pub fn has(&self, path: &Path) -> io::Result<bool> {
        match self.kind(path)? {
            None => Ok(false),
            Some(FileType::RegularFile | FileType::Directory) => Ok(true),
            Some(kind) => Err(Refused::new(&self.full(path), kind, Wanted::File).into()),
        }
    }

    /// Makes a folder with those above it.
    pub fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        match self.folder(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            there => return there.map(drop),
        }
        let relative = self.relative(path)?;
        let mut dir = match self.open_anchor() {
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.made => {
                self.create_anchor()?;
                self.open_anchor()?
            }
            open => open?,
        };
        let mut at = PathBuf::new();
        for name in relative {
            at.push(name);
            let mode = if self.is_own(&at) {
                OWN_FOLDER
            } else {
                SHARED_FOLDER
            };
            let is_new = match rustix::fs::mkdirat(&dir, name, os::mode(mode)) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(error.into()),
            };
            let inside = open_folder(&dir, name, &self.anchor.join(&at))?;
            if is_new {
                give(&dir, &inside)?;
            }
            dir = inside;
        }
        Ok(())
    }

    fn create_anchor(&self) -> io::Result<()> {
        if let Some(folder) = self.anchor.parent() {
            create_dir_all(folder)?;
        }
        let own = self.is_own(Path::new(""));
        let mut builder = DirBuilder::new();
        builder
            .recursive(true)
            .mode(if own { OWN_FOLDER } else { SHARED_FOLDER })
            .create(&self.anchor)?;
        give_to_sudo_caller(&self.anchor)
    }

    /// Takes from a file or folder of ours what it allows others. Best effort: what is not there, or belongs to
    /// another user, stays.
    pub fn tighten(&self, path: &Path) {
        let open = || {
            let (dir, name) = self.parent(path)?;
            Ok::<_, io::Error>(rustix::fs::openat(
                &dir,
                name,
                OFlags::RDONLY | FILE,
                Mode::empty(),
            )?)
        };
        if let Err(error) = open().and_then(tighten) {
            tracing::debug!(%error, path = %self.full(path).display(), "its mode was not looked at");
        }
    }

    /// Removes a file, or whatever else than a folder has its name.
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        Ok(rustix::fs::unlinkat(&dir, name, AtFlags::empty())?)
    }

    /// Removes a folder that is empty.
    pub fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        Ok(rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a folder with all that is in it.
    pub fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let (dir, name) = self.parent(path)?;
        remove_all(&dir, name, &self.full(path))
    }

    /// Gives a file another name beneath this root, in one step where there is one of that name.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        Ok(rustix::fs::renameat(
            &from_dir, from_name, &to_dir, to_name,
        )?)
    }

    /// Gives a file a second name beneath `root`.
    pub fn hard_link(&self, from: &Path, root: &Self, to: &Path) -> io::Result<()> {
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = root.parent(to)?;
        Ok(rustix::fs::linkat(
            &from_dir,
            from_name,
            &to_dir,
            to_name,
            AtFlags::empty(),
        )?)
    }

    /// Gives a file the name `to` beneath `root`, unless something has that name: as a second one, or where the file system
    /// has no hard links by moving it there.
    pub fn link_or_move(&self, from: &Path, root: &Self, to: &Path) -> io::Result<()> {
        match self.hard_link(from, root, to) {
            Err(error) if cannot_link(&error) => {}
            linked => return linked,
        }
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = root.parent(to)?;
        match rename_to_new((&from_dir, from_name), (&to_dir, to_name)) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            moved => return Ok(moved?),
        }
        // Not in one step, which exFAT does not have: such names are made under a lock of ours.
        match stat(&to_dir, to_name)? {
            Some(_) => Err(Errno::EXIST.into()),
            None => Ok(rustix::fs::renameat(
                &from_dir, from_name, &to_dir, to_name,
            )?),
        }
    }

    /// What is in a folder, with its kind, in the order of the names.
    pub fn list(&self, path: &Path) -> io::Result<Vec<(OsString, FileType)>> {
        list(&mut Dir::new(self.folder(path)?)?)
    }

    /// Makes names in a folder (created, renamed or removed ones) survive a crash of the machine.
    pub fn sync_dir(&self, path: &Path) -> io::Result<()> {
        Ok(sync_file(self.folder(path)?)?)
    }

    /// Refuses a folder of ours that holds anything else than files and folders, itself or, with `deep`, below. One that
    /// is not there holds nothing.
    pub fn check(&self, path: &Path, deep: bool) -> io::Result<()> {
        let Some(entries) = present(self.list(path))? else {
            return Ok(());
        };
        for (name, kind) in entries {
            let inside = path.join(name);
            match kind {
                FileType::Directory if deep => self.check(&inside, deep)?,
                FileType::RegularFile | FileType::Directory => {}
                kind => return Err(Refused::new(&self.full(&inside), kind, Wanted::File).into()),
            }
        }
        Ok(())
    }
}

/// Makes a file that is not there.
pub(super) fn create_in(dir: &OwnedFd, name: &OsStr, mode: u32) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | FILE;
    let file = rustix::fs::openat(dir, name, flags, os::mode(mode)).map(File::from)?;
    give(dir, &file).map(|()| file)
}

/// Takes from an open file or folder what it allows others.
fn tighten(open: impl AsFd) -> io::Result<()> {
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&open)?.st_mode);
    if mode.intersects(Mode::RWXG | Mode::RWXO) {
        rustix::fs::fchmod(&open, mode & Mode::RWXU)?;
    }
    Ok(())
}

/// Whether something of a file of this many bytes was never written. Where the file system does not report it, nothing.
fn has_hole(file: &File, size: i64) -> io::Result<bool> {
    use rustix::fs::{SeekFrom, seek};
    let hole = seek(file, SeekFrom::Hole(0)).map_or(size, |at| i64::try_from(at).unwrap_or(size));
    seek(file, SeekFrom::Start(0))?;
    Ok(hole < size)
}

/// `None` for what is not there.
pub(crate) fn present<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

pub(super) fn stat(dir: impl AsFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn kind_of(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

/// Refuses what is no regular file.
pub(super) fn regular(found: &Stat, full: &Path) -> io::Result<()> {
    match kind_of(found) {
        FileType::RegularFile => Ok(()),
        kind => Err(Refused::new(full, kind, Wanted::File).into()),
    }
}

/// Whether a file system has no hard links, or none from one place to the other.
pub(crate) fn cannot_link(error: &io::Error) -> bool {
    let unable = [Errno::XDEV, Errno::PERM, Errno::OPNOTSUPP, Errno::NOSYS];
    is_one_of(error, &unable) || is_one_of(error, &[Errno::MLINK])
}

/// Whether the system's error is one of these.
pub(crate) fn is_one_of(error: &io::Error, errnos: &[Errno]) -> bool {
    let is = |errno: &Errno| Some(errno.raw_os_error()) == error.raw_os_error();
    errnos.iter().any(is)
}

fn open_folder(dir: impl AsFd, name: &OsStr, full: &Path) -> io::Result<OwnedFd> {
    match rustix::fs::openat(&dir, name, FOLDER, Mode::empty()) {
        Ok(open) => Ok(open),
        Err(error @ (Errno::LOOP | Errno::NOTDIR | Errno::MLINK)) => match stat(&dir, name)? {
            Some(found) if kind_of(&found) != FileType::Directory => {
                Err(Refused::new(full, kind_of(&found), Wanted::Folder).into())
            }
            _ => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

fn list(dir: &mut Dir) -> io::Result<Vec<(OsString, FileType)>> {
    let mut all = Vec::new();
    while let Some(entry) = dir.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Not every file system says it in the folder.
            FileType::Unknown => match stat(dir.fd()?, name)? {
                Some(found) => kind_of(&found),
                None => continue,
            },
            kind => kind,
        };
        all.push((name.to_owned(), kind));
    }
    all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
    Ok(all)
}

fn remove_all(dir: impl AsFd, name: &OsStr, full: &Path) -> io::Result<()> {
    let mut inside = Dir::new(open_folder(&dir, name, full)?)?;
    for (name, kind) in list(&mut inside)? {
        match kind {
            FileType::Directory => remove_all(inside.fd()?, &name, &full.join(&name))?,
            _ => match rustix::fs::unlinkat(inside.fd()?, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            },
        }
    }
    Ok(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}
