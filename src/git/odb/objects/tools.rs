//! A thread's buffers and compressor for writing objects.

use std::path::Path;
use std::sync::{Condvar, Mutex, PoisonError};

use flate2::{Compress, Compression};
use git2::{ObjectType, Odb, OdbLookupFlags, Oid};

use crate::git::base::error::{Error, Result};
use crate::git::base::object_id;
use crate::git::odb::format::LEVEL;

/// What one thread needs at a time.
pub(super) struct Tools {
    pub target: Target,
    pub compress: Compress,
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
            compress: Compress::new(Compression::new(LEVEL), true),
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
            let whole =
                object_id::id_of(object.kind(), object.data()).is_ok_and(|read| read == oid);
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
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self
            .given_back
            .wait_while(free, |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Permit(self)
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.given_back.notify_one();
    }
}
