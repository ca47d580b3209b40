//! The temp files of a restore: each is written beside its place, given its owner, attributes and mode, and renamed.
//!
//! What is all zeros takes no room in them. Extended attributes and POSIX ACLs of a file are carried over to the one that
//! replaces it; what cannot be carried never gives anybody more rights than before.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;

use super::write_batch::Pending;
use crate::git::base::{At as _, Error, Result, openat, parse_oid};
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
/// That the object was whole is seen when the path is read again, by [`Repo::verify_restore`](crate::git::Repo::verify_restore).
pub(in crate::git) fn fill(database: &Database<'_>, pending: &Pending<'_>) -> Result<Filled> {
    let (write, dir, temp) = (pending.write, &*pending.dir, pending.temp.as_bytes());
    let path = &write.path;
    let oid = parse_oid(&write.entry.oid)?;
    let about = |error: Error| match error {
        Error::Corrupt(what) => Error::corrupt(format!("{path}: {what}")),
        other => other,
    };
    if write.entry.kind == EntryKind::Symlink {
        let content = database.blob(oid).map_err(about)?;
        rustix::fs::symlinkat(content.as_slice(), dir, temp).on(path)?;
        keep_owner(dir, pending.name, temp).on(path)?;
        return Ok(Filled::default());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(dir, temp, flags, Mode::from_raw_mode(0o600));
    let file = File::from(opened.on(path)?);
    let mut content = SparseWriter::new(&file);
    let size = database
        .copy_blob(oid, &mut content)
        .on(path)?
        .map_err(about)?;
    content.end().on(path)?;
    if openat::stat_open(&file).on(path)?.size != size {
        return Err(Error::conflict(path, "changed while it was written"));
    }
    // Another owner takes some permissions away, so that they come after it.
    keep_owner(dir, pending.name, temp).on(path)?;
    let replaces = pending
        .before
        .is_some_and(|before| before.kind() == FileType::RegularFile);
    let carried = if replaces {
        carry(dir, pending.name, &file).on(path)?
    } else {
        Carried::default()
    };
    let allowed = carried.group.map_or(write.entry.mode, |group| {
        write.entry.mode & !(0o70 & !(group << 3))
    });
    rustix::fs::fchmod(&file, mode(allowed | READABLE)).on(path)?;
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
            openat::chmod(dir, name, stat.permissions() | READABLE)
        }
        _ => Ok(()),
    }
}

/// File systems leave out whole blocks of this size, or multiples of it.
const BLOCK: usize = 4096;

static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Writes an empty file from its beginning and leaves out the zeros: what is not written reads as zeros.
pub(super) struct SparseWriter<'f> {
    file: &'f File,
    /// How long the content is so far, and how long the file.
    at: u64,
    written: u64,
}

impl<'f> SparseWriter<'f> {
    pub(super) fn new(file: &'f File) -> Self {
        Self {
            file,
            at: 0,
            written: 0,
        }
    }

    /// Gives the file its length, where it ends with zeros.
    pub(super) fn end(self) -> io::Result<()> {
        if self.written < self.at {
            self.file.set_len(self.at)
        } else {
            Ok(())
        }
    }

    fn put(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        if !bytes.is_empty() {
            self.file.write_all_at(bytes, at)?;
            self.written = at + bytes.len() as u64;
        }
        Ok(())
    }
}

impl Write for SparseWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is to be written at once: pieces of blocks with something in them, one behind the other.
        let (mut from, mut to) = (0, 0);
        while to < bytes.len() {
            let in_block = usize::try_from((self.at + to as u64) % BLOCK as u64).unwrap_or(0);
            let end = bytes.len().min(to + BLOCK - in_block);
            let piece = &bytes[to..end];
            if *piece == ZEROS[..piece.len()] {
                self.put(&bytes[from..to], self.at + from as u64)?;
                from = end;
            }
            to = end;
        }
        self.put(&bytes[from..], self.at + from as u64)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const ACL: &str = "system.posix_acl_access";
const DEFAULT_ACL: &str = "system.posix_acl_default";
const CAPABILITIES: &str = "security.capability";
/// What the kernel makes of a file's content by itself.
const OF_CONTENT: [&str; 2] = ["security.ima", "security.evm"];
/// The largest list of names, and the largest value.
const MOST: usize = 64 << 10;

/// What became of the attributes of a file that is replaced.
#[derive(Default)]
pub(super) struct Carried {
    /// What the group may have at most, where the ACL that said so could not be carried.
    pub group: Option<u32>,
    /// What is lost, a sentence each.
    pub lost: Vec<String>,
}

/// Puts on `made` what the file at `name` has. What the folder's default ACL gave it goes, where that file has none.
pub(super) fn carry(dir: &OwnedFd, name: &[u8], made: &File) -> io::Result<Carried> {
    let mut carried = Carried::default();
    // It is gone by now, or is no file: the restore sees to that.
    let Ok(from) = openat::open_file(dir, name) else {
        return Ok(carried);
    };
    let names = attribute_names(&from)?;
    if !names.iter().any(|name| name == ACL) && has_attribute(made, ACL) {
        rustix::fs::fremovexattr(made, ACL)?;
    }
    for name in names
        .iter()
        .filter(|name| !OF_CONTENT.contains(&name.as_str()))
    {
        if name == CAPABILITIES {
            // They were given to other content.
            carried.lost.push(capabilities_lost());
            continue;
        }
        let mut value = vec![0; MOST];
        let length = rustix::fs::fgetxattr(&from, name.as_str(), value.as_mut_slice())?;
        value.truncate(length);
        if let Err(error) = rustix::fs::fsetxattr(made, name.as_str(), &value, XattrFlags::empty())
        {
            let what = if name == ACL {
                "its ACL".to_owned()
            } else {
                format!("its extended attribute {name}")
            };
            carried.lost.push(format!(
                "{what} could not be put back: {}",
                io::Error::from(error)
            ));
            if name == ACL {
                carried.group = Some(group_of(&value));
            }
        }
    }
    Ok(carried)
}

/// What is lost with a file that is deleted.
pub(super) fn lost_with_file(dir: &OwnedFd, name: &[u8]) -> Vec<String> {
    let Ok(file) = openat::open_file(dir, name) else {
        return Vec::new();
    };
    let names = attribute_names(&file).unwrap_or_default();
    let lost = names.iter().filter_map(|name| match name.as_str() {
        ACL => Some("its ACL is lost with it".to_owned()),
        CAPABILITIES => Some(capabilities_lost()),
        _ => None,
    });
    lost.collect()
}

/// What is lost with a folder that is removed.
pub(super) fn lost_with_folder(dir: &OwnedFd, name: &[u8]) -> Option<String> {
    let folder = openat::open_folder(dir, name).ok()?;
    has_attribute(&folder, DEFAULT_ACL).then(|| "its default ACL is lost with it".to_owned())
}

fn capabilities_lost() -> String {
    "its file capabilities are not put back".to_owned()
}

fn has_attribute(file: impl AsFd, name: &str) -> bool {
    rustix::fs::fgetxattr_query(file, name).is_ok()
}

/// The names of a file's attributes; none where its file system has no attributes.
fn attribute_names(file: &File) -> io::Result<Vec<String>> {
    match rustix::fs::flistxattr_query(file) {
        Ok(0) | Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(Vec::new()),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let mut list = vec![0; MOST];
    let length = rustix::fs::flistxattr(file, list.as_mut_slice())?;
    let names = list[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty());
    Ok(names
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect())
}

/// The rights that an ACL gives the group itself: the permissions of the file show its mask.
fn group_of(acl: &[u8]) -> u32 {
    // A version (4 bytes), then entries of tag (2), permissions (2) and id (4), all little-endian; 4 is the tag of the group.
    let mut entries = acl.get(4..).unwrap_or_default().chunks_exact(8);
    entries
        .find(|entry| entry[..2] == [4, 0])
        .map_or(0, |entry| u32::from(entry[2]) & 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // Runs of zeros and of other bytes, written in pieces of any size.
        #[test]
        fn every_byte_is_as_it_was(
            runs in prop::collection::vec((any::<bool>(), 0_usize..9000), 0..6), piece in 1_usize..10_000
        ) {
            let content: Vec<u8> =
                runs.iter().flat_map(|(zero, length)| vec![if *zero { 0 } else { 7 }; *length]).collect();
            let file = tempfile::NamedTempFile::new().unwrap();
            let mut writer = SparseWriter::new(file.as_file());
            for part in content.chunks(piece) {
                writer.write_all(part).unwrap();
            }
            writer.end().unwrap();
            prop_assert_eq!(std::fs::read(file.path()).unwrap(), content);
        }
    }
}

#[cfg(test)]
mod attributes_tests {
    use super::*;

    #[test]
    fn the_mask_is_not_the_groups_right() {
        let entry = |tag: u8, rights: u8| [tag, 0, rights, 0, 0xFF, 0xFF, 0xFF, 0xFF];
        let acl = [
            &[2, 0, 0, 0][..],
            &entry(1, 6),
            &entry(2, 6),
            &entry(4, 0),
            &entry(16, 6),
            &entry(32, 4),
        ]
        .concat();
        assert_eq!(group_of(&acl), 0);
        assert_eq!(group_of(&[&[2, 0, 0, 0][..], &entry(4, 5)].concat()), 5);
        assert_eq!(group_of(b""), 0);
    }
}
