//! The temp files of a restore: each is written beside its place, given its owner and mode, and renamed.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use super::attributes::{Carried, carry};
use super::sparse_file::SparseWriter;
use super::write_batch::Pending;
use crate::git::base::error::{Error, Result};
use crate::git::base::object_id::parse_oid;
use crate::git::base::openat;
use crate::git::odb::database::Database;
use crate::model::manifest::EntryKind;
use crate::os::{mode, rename_to_new};

/// What the owner of a file needs to read it.
pub(super) const READABLE: u32 = 0o400;

/// A temp file that was written.
#[derive(Default)]
pub(in crate::git) struct Filled {
    /// Open; a symlink has none.
    pub file: Option<File>,
    /// Permissions that it has in the place of those that were planned, which would have given others more than before.
    pub narrower: Option<u32>,
    /// What of the file that it replaces is lost.
    pub lost: Vec<String>,
}

/// Writes the content of a planned path under its temp name, with owner and mode, which lets its owner read it in any case. It is not synced; a file is returned open.
///
/// That the object was whole is seen when the path is read again, by [`verify`](super::verify()).
pub(in crate::git) fn fill(database: &Database<'_>, pending: &Pending<'_>) -> Result<Filled> {
    let (write, dir, temp) = (pending.write, &*pending.dir, pending.temp.as_bytes());
    let path = &write.path;
    let failed = |error: io::Error| openat::io_error(path, error);
    let oid = parse_oid(&write.entry.oid)?;
    let about = |error: Error| match error {
        Error::Corrupt { what } => Error::corrupt(format!("{path}: {what}")),
        other => other,
    };
    if write.entry.kind == EntryKind::Symlink {
        let content = database.blob(oid).map_err(about)?;
        rustix::fs::symlinkat(content.as_slice(), dir, temp)
            .map_err(|error| failed(error.into()))?;
        keep_owner(dir, pending.name, temp).map_err(failed)?;
        return Ok(Filled::default());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(dir, temp, flags, Mode::from_raw_mode(0o600));
    let file = File::from(opened.map_err(|error| failed(error.into()))?);
    let mut content = SparseWriter::new(&file);
    let size = database
        .copy_blob(oid, &mut content)
        .map_err(failed)?
        .map_err(about)?;
    content.end().map_err(failed)?;
    if openat::stat_open(&file).map_err(failed)?.size != size {
        return Err(Error::conflict(path, "changed while it was written"));
    }
    // Another owner takes some permissions away, so that they come after it.
    keep_owner(dir, pending.name, temp).map_err(failed)?;
    let replaces = pending
        .before
        .is_some_and(|before| before.kind() == FileType::RegularFile);
    let carried = if replaces {
        carry(dir, pending.name, &file).map_err(failed)?
    } else {
        Carried::default()
    };
    let allowed = carried.group.map_or(write.entry.mode, |group| {
        write.entry.mode & !(0o70 & !(group << 3))
    });
    rustix::fs::fchmod(&file, mode(allowed | READABLE)).map_err(|error| failed(error.into()))?;
    let narrower = Some(allowed).filter(|allowed| *allowed != write.entry.mode);
    Ok(Filled {
        file: Some(file),
        narrower,
        lost: carried.lost,
    })
}

/// Gives `made` the owner and group of what stands at `name`, in whose place it comes; what is new there, made by root,
/// those of the folder. Where the system does not allow that, it stays as it was made.
pub(super) fn keep_owner(dir: &OwnedFd, name: &[u8], made: &[u8]) -> io::Result<()> {
    let at = |name: &[u8]| rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
    let own = at(made)?;
    let wanted = match if name == made {
        Err(Errno::NOENT)
    } else {
        at(name)
    } {
        Err(Errno::NOENT) if rustix::process::geteuid().is_root() => rustix::fs::fstat(dir)?,
        Err(Errno::NOENT) => return Ok(()),
        found => found?,
    };
    if (own.st_uid, own.st_gid) == (wanted.st_uid, wanted.st_gid) {
        return Ok(());
    }
    let (owner, group) = (Uid::from_raw(wanted.st_uid), Gid::from_raw(wanted.st_gid));
    let change =
        |owner| match rustix::fs::chownat(dir, made, owner, Some(group), AtFlags::SYMLINK_NOFOLLOW)
        {
            // An owner that this user name space does not know, a file system without owners, no right to give files away.
            Err(Errno::PERM | Errno::INVAL | Errno::NOTSUP) => Ok(false),
            done => done.map(|()| true),
        };
    // Whoever may not give a file away may still give it to another group of their own.
    if !change(Some(owner))? && own.st_gid != wanted.st_gid {
        change(None)?;
    }
    Ok(())
}

/// Puts a temp file in its place. With `new` nothing may be there: it fails with `AlreadyExists`.
pub(in crate::git) fn rename(dir: &OwnedFd, temp: &[u8], name: &[u8], new: bool) -> io::Result<()> {
    if new {
        match rename_to_new((dir, temp), (dir, name)) {
            // Some file systems cannot do that; the look right before has to be enough there.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            other => return Ok(other?),
        }
    }
    Ok(rustix::fs::renameat(dir, temp, dir, name)?)
}

/// Gives the owner of a file the right to read it.
pub(super) fn make_readable(dir: &OwnedFd, name: &[u8]) -> io::Result<()> {
    match openat::stat(dir, name)? {
        Some(stat) if stat.kind() == FileType::RegularFile => {
            chmod(dir, name, stat.permissions() | READABLE)
        }
        _ => Ok(()),
    }
}

/// Sets the permissions of a file or folder that is no symlink.
pub(super) fn chmod(dir: &OwnedFd, name: &[u8], mode: u32) -> io::Result<()> {
    Ok(rustix::fs::chmodat(
        dir,
        name,
        crate::os::mode(mode),
        AtFlags::empty(),
    )?)
}
