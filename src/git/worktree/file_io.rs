//! Reads the content of files into blobs, byte for byte, and notices when a file changes meanwhile.

use std::io::{self, Read as _};
use std::os::fd::OwnedFd;

use git2::{ObjectType, Oid};
use rustix::fs::FileType;

use crate::git::base::error::Result;
use crate::git::base::openat::{self, FileStat, io_error};
use crate::git::odb::objects::ObjectWriter;
use crate::model::path::{RepoPath, UNREADABLE};

/// Up to this size a file is read at once; a larger one is streamed.
const WHOLE: u64 = 8 << 20;
/// How often a file that changes is read before it is given up.
const TRIES: usize = 4;

/// What became of a file.
#[derive(Debug)]
pub(in crate::git) enum Read {
    /// Its blob, and its metadata at the time.
    Stored(Oid, FileStat),
    /// It is gone, or is no file or symlink any more.
    Gone,
    /// It cannot be captured; the reason.
    Failed(String),
}

/// Reads a file or symlink and writes its blob.
pub(in crate::git) fn store(dir: &OwnedFd, name: &[u8], writer: &ObjectWriter) -> Result<Read> {
    for _ in 0..TRIES {
        match attempt(dir, name, writer) {
            Ok(stored) => {
                if let Some((oid, stat)) = stored? {
                    return Ok(Read::Stored(oid, stat));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Read::Gone),
            Err(error) if openat::is_exhausted(&error) => return Err(io_error(&RepoPath::new(name), error)),
            Err(error) => return Ok(Read::Failed(format!("{UNREADABLE}: {error}"))),
        }
    }
    Ok(Read::Failed(format!("{UNREADABLE}: changed while it was read")))
}

/// One try; `None` when the file changed. The outer error is the file's, the inner one the database's.
fn attempt(dir: &OwnedFd, name: &[u8], writer: &ObjectWriter) -> io::Result<Result<Option<(Oid, FileStat)>>> {
    let Some(before) = openat::stat(dir, name)? else { return Err(io::ErrorKind::NotFound.into()) };
    if before.kind() == FileType::Symlink {
        let target = openat::read_link(dir, name)?;
        let same = openat::stat(dir, name)? == Some(before);
        return Ok(writer.write(ObjectType::Blob, &target).map(|oid| same.then_some((oid, before))));
    }
    if before.kind() != FileType::RegularFile {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut file = openat::open_file(dir, name)?;
    let opened = openat::stat_open(&file)?;
    let written = if opened.size > WHOLE {
        match writer.write_stream(&mut file, opened.size)? {
            Ok(Some(oid)) => Ok(oid),
            Ok(None) => return Ok(Ok(None)),
            Err(error) => Err(error),
        }
    } else {
        let mut data = Vec::with_capacity(usize::try_from(opened.size).unwrap_or(0) + 1);
        // One byte more than expected is enough to know that it grew.
        file.by_ref().take(opened.size + 1).read_to_end(&mut data)?;
        if data.len() as u64 != opened.size {
            return Ok(Ok(None));
        }
        writer.write(ObjectType::Blob, &data)
    };
    let same = openat::stat_open(&file)? == opened;
    Ok(written.map(|oid| same.then_some((oid, opened))))
}
