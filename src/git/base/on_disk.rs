//! What stands at a path of the work tree: its kind, content and permissions.

use std::io;
use std::os::fd::OwnedFd;

use git2::{ObjectType, Oid};
use rustix::fs::FileType;
use sha1::{Digest as _, Sha1};

use super::object_id::object_header;
use super::openat::{self, FileStat};
use crate::model::manifest::{Entry, EntryKind};

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
    /// Whether it is this kind and content; `None` stands for nothing.
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
        None => Ok(if openat::stat(dir, name)?.is_some() {
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
    let Some(stat) = openat::stat(dir, name)? else {
        return Ok(None);
    };
    let mut hash = Sha1::new();
    let stat = match stat.kind() {
        FileType::Symlink => {
            let target = openat::read_link(dir, name)?;
            hash.update(object_header(ObjectType::Blob, target.len() as u64));
            hash.update(&target);
            stat
        }
        FileType::RegularFile => {
            let mut file = openat::open_file(dir, name)?;
            let stat = openat::stat_open(&file)?;
            hash.update(object_header(ObjectType::Blob, stat.size));
            let mut buffer = vec![
                0;
                usize::try_from(stat.size + 1)
                    .unwrap_or(usize::MAX)
                    .min(1 << 17)
            ];
            loop {
                match io::Read::read(&mut file, &mut buffer) {
                    Ok(0) => break,
                    Ok(count) => hash.update(&buffer[..count]),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            stat
        }
        _ => return Ok(None),
    };
    let oid = Oid::from_bytes(&hash.finalize()).map_err(io::Error::other)?;
    Ok(Some((oid, stat)))
}
