//! Reads objects, so that a damaged one is an error.
//!
//! libgit2 (up to 1.9 at least) never returns from a loose object that was cut short, as a power failure leaves it. So
//! loose objects are read here, and whatever libgit2 reads by itself is looked at first with [`Database::check`].

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use git2::{ObjectType, Odb, Oid};

use super::error::{Error, Result};

/// How many databases may borrow from one another in a row, as in git.
const MAX_ALTERNATES: usize = 5;

/// An object, whole.
#[derive(Debug)]
pub(super) struct Object {
    pub kind: ObjectType,
    pub data: Vec<u8>,
}

/// The objects of a repository and of those it borrows from.
pub(super) struct Database<'r> {
    odb: Odb<'r>,
    folders: Vec<PathBuf>,
}

impl<'r> Database<'r> {
    pub fn open(repository: &'r git2::Repository) -> Result<Self> {
        let odb = repository.odb().map_err(Error::git("open the object database"))?;
        let mut folders = Vec::new();
        add_folder(&repository.commondir().join("objects"), &mut folders);
        Ok(Self { odb, folders })
    }

    /// Reads an object; a missing or damaged one is [`Error::Corrupt`].
    pub fn read(&self, oid: Oid) -> Result<Object> {
        if let Some(object) = self.loose(oid)? {
            return Ok(object);
        }
        let object = self.odb.read(oid).map_err(|error| match error.code() {
            git2::ErrorCode::NotFound => Error::corrupt(format!("object {oid} is missing")),
            _ => Error::corrupt(format!("object {oid}: {}", error.message())),
        })?;
        Ok(Object { kind: object.kind(), data: object.data().to_vec() })
    }

    /// Reads a blob.
    pub fn blob(&self, oid: Oid) -> Result<Vec<u8>> {
        match self.read(oid)? {
            Object { kind: ObjectType::Blob, data } => Ok(data),
            _ => Err(Error::corrupt(format!("{oid} is not a blob"))),
        }
    }

    /// The size of an object.
    pub fn size(&self, oid: Oid) -> Result<u64> {
        let header = self.odb.read_header(oid);
        let (size, _) = header.map_err(|error| Error::corrupt(format!("object {oid}: {}", error.message())))?;
        Ok(size as u64)
    }

    /// Makes sure that libgit2 can read an object, before it does so.
    pub fn check(&self, oid: Oid) -> Result<()> {
        self.loose(oid).map(drop)
    }

    fn loose(&self, oid: Oid) -> Result<Option<Object>> {
        let hex = oid.to_string();
        for folder in &self.folders {
            let path = folder.join(&hex[..2]).join(&hex[2..]);
            let packed = match fs::read(&path) {
                Ok(packed) => packed,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(Error::io(path, source)),
            };
            return unpack(&packed)
                .map(Some)
                .ok_or_else(|| Error::corrupt(format!("object {oid} is cut short or damaged")));
        }
        Ok(None)
    }
}

/// Adds a folder of objects and those it borrows from.
fn add_folder(folder: &Path, folders: &mut Vec<PathBuf>) {
    if folders.len() > MAX_ALTERNATES || folders.iter().any(|known| known == folder) {
        return;
    }
    folders.push(folder.to_owned());
    let borrowed = fs::read(folder.join("info/alternates")).unwrap_or_default();
    for line in borrowed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
        add_folder(&folder.join(std::ffi::OsStr::from_bytes(line)), folders);
    }
}

/// The content of a loose object: `kind SP size NUL data`, deflated.
fn unpack(packed: &[u8]) -> Option<Object> {
    let mut bytes = Vec::new();
    ZlibDecoder::new(packed).read_to_end(&mut bytes).ok()?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (kind, size) = std::str::from_utf8(&bytes[..end]).ok()?.split_once(' ')?;
    let kind = ObjectType::from_str(kind)?;
    let size: usize = size.parse().ok()?;
    let data = bytes.split_off(end + 1);
    (data.len() == size).then_some(Object { kind, data })
}
