//! Reads the content of files into blobs, byte for byte, and notices when a file changes meanwhile.

use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::OwnedFd;

use git2::{ObjectType, Oid};
use rustix::fs::FileType;

use crate::git::base::error::Result;
use crate::git::base::openat::{self, FileStat, io_error};
use crate::git::odb::objects::ObjectWriter;
use crate::model::path::{RepoPath, UNREADABLE};

/// Up to this size a file is read at once; a larger one is streamed.
const WHOLE: u64 = 8 << 20;
/// How often a file that changes is read.
const TRIES: usize = 3;

/// What became of a file.
#[derive(Debug)]
pub(in crate::git) enum Read {
    /// Its blob, and its metadata at the time.
    Stored(Oid, FileStat),
    /// The same of one that changes all the time. Two reads of its first bytes, as many as it had when it was opened, were
    /// alike: of a file that only grows it is what was there then.
    Unsettled(Oid, FileStat),
    /// It is gone, or is no file or symlink any more.
    Gone,
    /// It cannot be captured; the reason.
    Failed(String),
}

/// Reads a file or symlink and writes its blob.
pub(in crate::git) fn store(dir: &OwnedFd, name: &[u8], writer: &ObjectWriter) -> Result<Read> {
    let mut last = None;
    for _ in 0..TRIES {
        match attempt(dir, name, writer) {
            Ok(stored) => match stored? {
                Some((oid, stat, true)) => return Ok(Read::Stored(oid, stat)),
                Some((oid, stat, false)) => last = Some((oid, stat)),
                None => {}
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Read::Gone),
            Err(error) if openat::is_exhausted(&error) => {
                return Err(io_error(&RepoPath::new(name), error));
            }
            Err(error) => return Ok(Read::Failed(format!("{UNREADABLE}: {error}"))),
        }
    }
    Ok(match last {
        Some((oid, stat)) => Read::Unsettled(oid, stat),
        None => Read::Failed(format!("{UNREADABLE}: changed while it was read")),
    })
}

/// One try: the blob, the metadata of when it was opened, and whether it is like that still; `None` where what was read may be
/// a mix of several states. The outer error is the file's, the inner one the database's.
fn attempt(
    dir: &OwnedFd,
    name: &[u8],
    writer: &ObjectWriter,
) -> io::Result<Result<Option<(Oid, FileStat, bool)>>> {
    let Some(before) = openat::stat(dir, name)? else {
        return Err(io::ErrorKind::NotFound.into());
    };
    if before.kind() == FileType::Symlink {
        let target = openat::read_link(dir, name)?;
        let same = openat::stat(dir, name)? == Some(before);
        return Ok(writer
            .write(ObjectType::Blob, &target)
            .map(|oid| same.then_some((oid, before, true))));
    }
    if before.kind() != FileType::RegularFile {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut file = openat::open_file(dir, name)?;
    let opened = openat::stat_open(&file)?;
    let read = |file: &mut File| -> io::Result<Result<Option<Oid>>> {
        file.rewind()?;
        let mut file = file.take(opened.size);
        if opened.size > WHOLE {
            return writer.write_stream(&mut file, opened.size);
        }
        let mut data = Vec::with_capacity(usize::try_from(opened.size).unwrap_or(0));
        file.read_to_end(&mut data)?;
        if data.len() as u64 != opened.size {
            return Ok(Ok(None));
        }
        Ok(writer.write(ObjectType::Blob, &data).map(Some))
    };
    let oid = match read(&mut file)? {
        Ok(Some(oid)) => oid,
        Ok(None) => return Ok(Ok(None)),
        Err(error) => return Ok(Err(error)),
    };
    if openat::stat_open(&file)? == opened {
        return Ok(Ok(Some((oid, opened, true))));
    }
    // What it was when it was opened is whole where reading it again gives the same.
    Ok(read(&mut file)?.map(|again| (again == Some(oid)).then_some((oid, opened, false))))
}
