//! Makes one git folder a copy of another, as far as they differ.
//!
//! Both are walked by descriptors, without following links. What never changes under its name (objects, references of
//! checkpoints) is compared by name alone, and a folder of such only where its time says that a name was added; everything else by
//! size and time, which a copy has of its original. A copied file is put in place by a rename.

use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::time::{SystemTime, UNIX_EPOCH};

use flate2::read::ZlibDecoder;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Timespec, Timestamps, statat};
use rustix::io::Errno;
use sha1::{Digest as _, Sha1};

use crate::durable::{cannot_link, is_temporary, temporary_prefix};
use crate::git::base::openat::{self, FileStat, Listing};

/// Bytes of objects that are copied to another file system at most.
const MOST_COPIED: u64 = 1 << 30;
/// Bytes of a file up to which it is copied: a write in place ruins both names of one that is linked.
const SMALL: u64 = 1 << 20;
/// In nanoseconds: a folder that changed within that time may get another name without a new time of its own.
const FRESH: i64 = 1_000_000_000;
/// The time of a copied folder that may lack names of the folder.
const UNKNOWN: i64 = 0;

/// One folder follows another.
#[derive(Clone, Debug)]
pub(super) struct Mirror<'a> {
    /// Names of packs that are copied whatever their size; what is large is linked else, where that can be.
    pub own_packs: &'a BTreeSet<String>,
    /// What is large or seldom changes is followed too: submodules' databases, and what is noted beside the checkpoints.
    pub whole: bool,
    /// Bytes that were copied for want of a link.
    pub copied: u64,
}

/// How the files of a folder are compared with their copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// By size and time. What is gone here goes there.
    Changing,
    /// By name, as they never change. They stay where they are gone here.
    Fixed,
    /// Likewise, and linked where they are large.
    Objects,
    /// Not at all.
    Left,
}

impl<'a> Mirror<'a> {
    /// It follows in everything.
    pub(super) fn whole(own_packs: &'a BTreeSet<String>) -> Self {
        Self {
            own_packs,
            whole: true,
            copied: 0,
        }
    }

    /// What holds for a folder or file at this path below a git folder.
    fn rule(&self, path: &[u8]) -> Rule {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let parts: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        if name.ends_with(b".lock") || is_temporary(name) || name == b"gc.pid" {
            return Rule::Left;
        }
        match parts.as_slice() {
            [b"objects"] | [b"modules", .., b"objects"] | [b"lfs", b"objects"] => Rule::Objects,
            [b"refs", b"recover"] => Rule::Fixed,
            [b"modules" | b"lfs" | b"recover"] if !self.whole => Rule::Left,
            [b"recover"]
            | [
                b"recover",
                b"states" | b"vault" | b"precious" | b"written",
                ..,
            ] => Rule::Changing,
            [b"recover", ..]
            | [b"worktrees", _, b"recover", ..]
            | [b"logs", b"refs", b"recover"] => Rule::Left,
            _ => Rule::Changing,
        }
    }

    /// Makes `to` follow `from`; `path` is where they are below the git folder.
    pub(super) fn folder(&mut self, from: &OwnedFd, to: &OwnedFd, path: &[u8]) -> io::Result<()> {
        let (mut here, mut there) = (Listing::default(), Listing::default());
        here.read(&reopened(from)?)?;
        there.read(&reopened(to)?)?;
        for (name, kind) in here.iter() {
            let below = join(path, name);
            let rule = self.rule(&below);
            if rule == Rule::Left {
                continue;
            }
            let kind = known(from, name, kind)?;
            let done = match kind {
                Some(FileType::Directory) => self.inside(from, to, name, &below, rule),
                Some(FileType::RegularFile) => copy_changed(from, to, name),
                Some(FileType::Symlink) => link(from, to, name),
                _ => Ok(()),
            };
            vanished(done)?;
        }
        for (name, kind) in there.iter().filter(|(name, _)| !here.has(name)) {
            let below = join(path, name);
            if self.rule(&below) == Rule::Changing {
                remove(to, name, known(to, name, kind)?)?;
            }
        }
        Ok(())
    }

    fn inside(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        name: &[u8],
        path: &[u8],
        rule: Rule,
    ) -> io::Result<()> {
        let from = openat::open_folder(from, name)?;
        let to = made(to, name)?;
        match rule {
            Rule::Changing => self.folder(&from, &to, path),
            _ => self.fixed(&from, &to, name, rule == Rule::Objects),
        }
    }

    /// Follows a folder of this name whose files never change, at any depth: its copy gets what it lacks by name, and the
    /// folder's time. Of an object database only what is one's.
    pub(super) fn fixed(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        folder: &[u8],
        is_objects: bool,
    ) -> io::Result<()> {
        let found = openat::stat_open(from)?;
        let is_same = is_same_time(&found, &openat::stat_open(to)?);
        let (mut here, mut there) = (Listing::default(), Listing::default());
        here.read(&reopened(from)?)?;
        if !is_same {
            there.read(&reopened(to)?)?;
        }
        // An index comes last, as git takes it for the whole of its pack.
        let (indexes, others): (Vec<_>, Vec<_>) =
            here.iter().partition(|(name, _)| name.ends_with(b".idx"));
        for (name, kind) in others.into_iter().chain(indexes) {
            let is_skipped = || -> io::Result<bool> {
                let is_part = is_hex(name) && name.len() == 2 || name == b"pack" || name == b"info";
                Ok(is_objects && (!is_part || is_followed(from, to, name)?))
            };
            let done = match known(from, name, kind)? {
                Some(FileType::Directory) if is_skipped()? => Ok(()),
                Some(FileType::Directory) => {
                    let below = openat::open_folder(from, name);
                    below.and_then(|from| self.fixed(&from, &made(to, name)?, name, is_objects))
                }
                // It is the only one that changes.
                Some(FileType::RegularFile) if folder == b"info" && name == b"alternates" => {
                    copy_changed(from, to, name)
                }
                Some(FileType::RegularFile) if !is_same && !there.has(name) => {
                    self.add(from, to, folder, name, is_objects)
                }
                _ => Ok(()),
            };
            vanished(done)?;
        }
        if is_same || found.mtime == UNKNOWN {
            return Ok(());
        }
        let is_old = now().saturating_sub(found.mtime) > FRESH;
        set_time(to, if is_old { found.mtime } else { UNKNOWN })
    }

    /// Copies a file that never changes.
    fn add(
        &mut self,
        from: &OwnedFd,
        to: &OwnedFd,
        folder: &[u8],
        name: &[u8],
        is_objects: bool,
    ) -> io::Result<()> {
        let text = String::from_utf8_lossy(name);
        let is_pack_file = |end| matches!(end, "pack" | "idx" | "rev" | "bitmap" | "mtimes");
        match text.split_once('.') {
            _ if !is_objects && (name.ends_with(b".lock") || is_temporary(name)) => Ok(()),
            _ if !is_objects => copy_changed(from, to, name),
            Some((pack, end)) if folder == b"pack" && is_pack_file(end) => {
                if self.own_packs.contains(pack) {
                    copy_changed(from, to, name)
                } else {
                    self.object(from, to, name)
                }
            }
            None if is_hex(name) && name.len() >= 38 => self.object(from, to, name),
            _ => Ok(()),
        }
    }

    /// Links a large file that never changes, or copies it where that cannot be.
    fn object(&mut self, from: &OwnedFd, to: &OwnedFd, name: &[u8]) -> io::Result<()> {
        let Some(found) = openat::stat(from, name)? else {
            return Ok(());
        };
        if found.size <= SMALL {
            return copy_changed(from, to, name);
        }
        match rustix::fs::linkat(from, name, to, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) if error == Errno::XDEV || cannot_link(&error.into()) => {
                self.copied += found.size;
                if self.copied > MOST_COPIED {
                    let message =
                        "the repository is on another file system and has more than 1 GiB";
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
                }
                copy_changed(from, to, name)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Removes from `to` the copies that were written since a moment, in nanoseconds, and whose originals are in `from` to be copied
/// again. Links are none.
pub(super) fn drop_since(from: &OwnedFd, to: &OwnedFd, since: i64) -> io::Result<()> {
    for name in openat::names(&reopened(to)?)? {
        let (Some(found), Some(original)) = (openat::stat(to, &name)?, openat::stat(from, &name)?)
        else {
            continue;
        };
        match (found.kind(), original.kind()) {
            (FileType::Directory, FileType::Directory) => {
                let (from, to) = (
                    openat::open_folder(from, &name)?,
                    openat::open_folder(to, &name)?,
                );
                drop_since(&from, &to, since)?;
            }
            (FileType::RegularFile, FileType::RegularFile)
                if found.ctime >= since
                    && (found.dev, found.ino) != (original.dev, original.ino) =>
            {
                remove(to, &name, Some(FileType::RegularFile))?;
            }
            _ => {}
        }
    }
    set_time(to, UNKNOWN)
}

/// Replaces files of an object database that are damaged by their copies, where these are whole. Returns how many.
pub(super) fn replace_damaged(from: &OwnedFd, to: &OwnedFd, folder: &[u8]) -> io::Result<u64> {
    let mut replaced = 0;
    for name in openat::names(&reopened(from)?)? {
        let (Some(copy), Some(found)) = (openat::stat(from, &name)?, openat::stat(to, &name)?)
        else {
            continue;
        };
        match (copy.kind(), found.kind()) {
            (FileType::Directory, FileType::Directory) => {
                let (from, to) = (
                    openat::open_folder(from, &name)?,
                    openat::open_folder(to, &name)?,
                );
                replaced += replace_damaged(&from, &to, &name)?;
            }
            (FileType::RegularFile, FileType::RegularFile)
                if (copy.dev, copy.ino) != (found.dev, found.ino)
                    && !is_whole(to, folder, &name)?
                    && is_whole(from, folder, &name)? =>
            {
                copy_file(from, to, &name, &copy)?;
                replaced += 1;
            }
            _ => {}
        }
    }
    Ok(replaced)
}

/// Whether a file of an object database is one, and has the checksum that its name or its end says.
fn is_whole(dir: &OwnedFd, folder: &[u8], name: &[u8]) -> io::Result<bool> {
    let mut file = openat::open_file(dir, name)?;
    let mut hash = Sha1::new();
    let end = name.rsplit(|byte| *byte == b'.').next();
    if let Some(b"pack" | b"idx" | b"rev" | b"mtimes" | b"bitmap") = end {
        let mut checksum = [0; 20];
        let Some(length) = file.metadata()?.len().checked_sub(20) else {
            return Ok(false);
        };
        io::copy(&mut (&mut file).take(length), &mut hash)?;
        file.read_exact(&mut checksum)?;
        return Ok(hash.finalize()[..] == checksum);
    }
    // Whatever cannot be inflated is damaged.
    let inflated = io::copy(&mut ZlibDecoder::new(file), &mut hash);
    let id = [folder, name].concat();
    Ok(inflated.is_ok() && format!("{:x}", hash.finalize()).as_bytes() == id)
}

fn is_hex(name: &[u8]) -> bool {
    name.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a file may hold credentials, which are left out of its copy.
fn is_config(name: &[u8]) -> bool {
    name == b"config" || name == b"config.worktree"
}

/// Copies a file that is another one than its copy.
fn copy_changed(from: &OwnedFd, to: &OwnedFd, name: &[u8]) -> io::Result<()> {
    let is_config = is_config(name);
    let Some(found) = openat::stat(from, name)? else {
        return Ok(());
    };
    let is_same =
        |copy: &FileStat| copy.mtime == found.mtime && (is_config || copy.size == found.size);
    if openat::stat(to, name)?.as_ref().is_some_and(is_same) {
        return Ok(());
    }
    copy_file(from, to, name, &found)
}

/// Puts a copy of a file in place by a rename.
fn copy_file(from: &OwnedFd, to: &OwnedFd, name: &[u8], found: &FileStat) -> io::Result<()> {
    let is_config = is_config(name);
    let mut source = openat::open_file(from, name)?;
    let temporary = temporary_prefix() + "copy";
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut copy: File =
        rustix::fs::openat(to, temporary.as_str(), flags, Mode::from_raw_mode(0o600))?.into();
    let mut write = || {
        if is_config {
            let mut text = Vec::new();
            source.read_to_end(&mut text)?;
            copy.write_all(&super::without_credentials(&text))?;
        } else {
            io::copy(&mut source, &mut copy)?;
        }
        copy.set_permissions(Permissions::from_mode(found.permissions()))?;
        set_time(&copy, found.mtime)?;
        Ok(rustix::fs::renameat(to, temporary.as_str(), to, name)?)
    };
    write().inspect_err(|_: &io::Error| {
        // What cannot be removed now is removed when it is copied again.
        let _ = rustix::fs::unlinkat(to, temporary.as_str(), AtFlags::empty());
    })
}

/// Whether the copy of a folder of objects has the folder's time: no name was added since. What is added to a folder within,
/// as git LFS has them, does not show in it.
fn is_followed(from: &OwnedFd, to: &OwnedFd, name: &[u8]) -> io::Result<bool> {
    let (Some(found), Some(copy)) = (openat::stat(from, name)?, openat::stat(to, name)?) else {
        return Ok(false);
    };
    // A folder without folders has two names. Where they are not counted, each is read.
    let is_flat = || statat(from, name, AtFlags::SYMLINK_NOFOLLOW).map(|found| found.st_nlink == 2);
    Ok(is_same_time(&found, &copy) && name != b"info" && is_flat()?)
}

/// Whether a folder has had no other name since its copy was made.
fn is_same_time(found: &FileStat, copy: &FileStat) -> bool {
    found.mtime == copy.mtime && found.mtime != UNKNOWN
}

/// A listing reads a descriptor to its end.
fn reopened(dir: &OwnedFd) -> io::Result<OwnedFd> {
    openat::open_folder(dir, b".")
}

/// The folder, made where it is missing.
fn made(dir: &OwnedFd, name: &[u8]) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o777)) {
        Ok(()) | Err(Errno::EXIST) => openat::open_folder(dir, name),
        Err(error) => Err(error.into()),
    }
}

/// What a name is, where the folder does not know it.
fn known(dir: &OwnedFd, name: &[u8], kind: FileType) -> io::Result<Option<FileType>> {
    if kind != FileType::Unknown {
        return Ok(Some(kind));
    }
    Ok(openat::stat(dir, name)?.map(|found| found.kind()))
}

/// What went away while it was followed is no error.
fn vanished(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn link(from: &OwnedFd, to: &OwnedFd, name: &[u8]) -> io::Result<()> {
    let target = openat::read_link(from, name)?;
    if openat::read_link(to, name).is_ok_and(|copy| copy == target) {
        return Ok(());
    }
    if let Some(found) = openat::stat(to, name)? {
        remove(to, name, Some(found.kind()))?;
    }
    Ok(rustix::fs::symlinkat(target, to, name)?)
}

fn remove(dir: &OwnedFd, name: &[u8], kind: Option<FileType>) -> io::Result<()> {
    if kind != Some(FileType::Directory) {
        return vanished(
            rustix::fs::unlinkat(dir, name, AtFlags::empty()).map_err(io::Error::from),
        );
    }
    let inner = openat::open_folder(dir, name)?;
    for below in openat::names(&reopened(&inner)?)? {
        let kind = openat::stat(&inner, &below)?.map(|found| found.kind());
        remove(&inner, &below, kind)?;
    }
    Ok(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?)
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    if path.is_empty() {
        name.to_vec()
    } else {
        [path, b"/", name].concat()
    }
}

/// Sets the time of a file or folder, in nanoseconds since the epoch.
fn set_time(file: impl AsFd, nanos: i64) -> io::Result<()> {
    let time = Timespec {
        tv_sec: nanos.div_euclid(1_000_000_000),
        tv_nsec: nanos.rem_euclid(1_000_000_000),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(rustix::fs::futimens(file, &times)?)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}
