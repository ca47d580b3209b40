//! A thread's buffers and compressor for writing objects, and content that is too large for memory.
//!
//! That is hashed and deflated while it is read, into a file of its own.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use git2::{ObjectType, Odb, OdbLookupFlags, Oid};
use parking_lot::{Condvar, Mutex};
use sha1_checked::Digest as _;

use super::ObjectWriter;
use crate::git::base::{At as _, Error, Result, id_of, object_header};
use crate::git::odb::format::{self, Deflate};
use crate::git::odb::pack;
use crate::git::odb::publish::Staged;

impl ObjectWriter {
    /// Writes a blob of exactly `size` bytes without holding it in memory. Returns `None` if the source has fewer or more.
    ///
    /// The outer error is the source's, the inner one the database's.
    pub(crate) fn write_stream(
        &self,
        source: &mut dyn Read,
        size: u64,
    ) -> io::Result<Result<Option<Oid>>> {
        let path = match self.next_file(&mut self.state()) {
            Ok(path) => path,
            Err(error) => return Ok(Err(error)),
        };
        let written = self.stream(&path, source, size);
        if !matches!(written, Ok(Ok(Some((_, true))))) {
            // The next writer removes what cannot be removed now.
            let _ = fs::remove_file(&path);
        }
        if matches!(written, Ok(Ok(Some((_, true))))) {
            self.state().added += size;
        }
        Ok(written?.map(|found| found.map(|(oid, _)| oid)))
    }

    /// Takes over a loose object as another database has it, deflated, without holding it in memory.
    pub(crate) fn write_loose(&self, oid: Oid, source: &mut dyn Read) -> Result<()> {
        if self.state().known.contains(&oid) {
            return Ok(());
        }
        let path = self.next_file(&mut self.state())?;
        let mut file = pack::create(&path)?;
        io::copy(source, &mut file).at(&path)?;
        drop(file);
        if !format::is_whole(&path, oid).at(&path)? {
            // The next writer removes what cannot be removed now.
            let _ = fs::remove_file(&path);
            return Err(Error::corrupt(format!(
                "object {oid} is cut short or damaged"
            )));
        }
        let mut state = self.state();
        if state.known.insert(oid) {
            state.staged.push(Staged::Loose { oid, path });
        }
        Ok(())
    }

    /// Streams into a new loose object. Returns its id and whether the file is needed.
    fn stream(
        &self,
        path: &Path,
        source: &mut dyn Read,
        size: u64,
    ) -> io::Result<Result<Option<(Oid, bool)>>> {
        let file = match pack::create(path) {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        let mut packed = ZlibEncoder::new(file, Compression::new(format::LEVEL));
        let mut hash = sha1_checked::Sha1::new();
        let mut buffer = vec![0; 1 << 18];
        let head = object_header(ObjectType::Blob, size);
        let mut left = size;
        let mut part = head.as_bytes();
        loop {
            hash.update(part);
            if let Err(error) = packed.write_all(part) {
                return Ok(Err(Error::io(path, error)));
            }
            let count = source.read(&mut buffer)?;
            if count as u64 > left {
                return Ok(Ok(None));
            }
            if count == 0 {
                break;
            }
            left -= count as u64;
            part = &buffer[..count];
        }
        if left > 0 {
            return Ok(Ok(None));
        }
        Ok(self.end_stream(path, packed, hash).map(Some))
    }

    fn end_stream(
        &self,
        path: &Path,
        packed: ZlibEncoder<File>,
        hash: sha1_checked::Sha1,
    ) -> Result<(Oid, bool)> {
        packed.finish().at(path)?;
        let hash = hash.try_finalize();
        if hash.has_collision() {
            return Err(Error::corrupt(
                "content that was made to collide with another's id",
            ));
        }
        let oid = Oid::from_bytes(hash.hash()).map_err(Error::git("hash a large file"))?;
        let is_there = |tools: &mut Tools| {
            Ok(tools.target.exists(oid) && self.is_whole(tools, oid)? && self.relies_on(oid, None))
        };
        if self.state().known.contains(&oid) || self.with_tools(is_there)? {
            return Ok((oid, false));
        }
        let mut state = self.state();
        let new = state.known.insert(oid);
        if new {
            state.staged.push(Staged::Loose {
                oid,
                path: path.to_owned(),
            });
        }
        Ok((oid, new))
    }
}

/// What one thread needs at a time.
pub(super) struct Tools {
    pub target: Target,
    pub deflate: Deflate,
}

/// The objects that are there already.
pub(super) enum Target {
    Odb(Odb<'static>),
    /// Where the path is no valid UTF-8, which libgit2's wrapper asks for.
    Repository(git2::Repository),
}

impl Tools {
    /// Opens the folder of objects that are there already.
    pub(super) fn new(objects: &Path) -> Result<Self> {
        Ok(Self {
            target: Target::open(objects)?,
            deflate: format::deflate(),
        })
    }
}

impl Target {
    fn open(objects: &Path) -> Result<Self> {
        let failed = || Error::git("open the object database");
        if let Some(path) = objects.to_str() {
            let odb = Odb::new().map_err(failed())?;
            odb.add_disk_alternate(path).map_err(failed())?;
            return Ok(Self::Odb(odb));
        }
        git2::Repository::open(objects.parent().unwrap_or(objects))
            .map(Self::Repository)
            .map_err(failed())
    }

    /// Kind and content of an object; `None` where it cannot be read or is not what its id says.
    pub(super) fn read(&self, oid: Oid) -> Option<(ObjectType, Vec<u8>)> {
        let read = |odb: &Odb<'_>| {
            let object = odb.read(oid).ok()?;
            let whole = id_of(object.kind(), object.data()).is_ok_and(|read| read == oid);
            whole.then(|| (object.kind(), object.data().to_vec()))
        };
        match self {
            Self::Odb(odb) => read(odb),
            Self::Repository(repository) => read(&repository.odb().ok()?),
        }
    }

    /// Looked up without reading the list of packs again, which for many misses would cost more than everything else.
    pub(super) fn exists(&self, oid: Oid) -> bool {
        match self {
            Self::Odb(odb) => odb.exists_ext(oid, OdbLookupFlags::NO_REFRESH),
            Self::Repository(repository) => repository
                .odb()
                .is_ok_and(|odb| odb.exists_ext(oid, OdbLookupFlags::NO_REFRESH)),
        }
    }
}

/// Lets so many threads go on at a time.
pub(super) struct Permits {
    free: Mutex<usize>,
    given_back: Condvar,
}

pub(super) struct Permit<'p>(&'p Permits);

impl Permits {
    pub(super) fn new(count: usize) -> Self {
        Self {
            free: Mutex::new(count),
            given_back: Condvar::new(),
        }
    }

    pub(super) fn take(&self) -> Permit<'_> {
        let mut free = self.free.lock();
        self.given_back.wait_while(&mut free, |free| *free == 0);
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock() += 1;
        self.0.given_back.notify_one();
    }
}
