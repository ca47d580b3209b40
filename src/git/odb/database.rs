//! Reads objects, so that a damaged one is an error.
//!
//! libgit2 (up to 1.9 at least) never returns from a loose object that was cut short, as a power failure leaves it. So
//! loose objects are read here, and whatever libgit2 reads by itself is examined first with [`Database::check`].
//!
//! An object that is not found is looked for once more: a `git gc` moves it from a file of its own to a pack, or from one
//! pack to another, at any time.
//!
//! [`Database::copy_blob`] holds no large object in memory that is loose, or that stands in a pack as a whole: so git puts
//! there what is larger than `core.bigFileThreshold`. Others are in memory one at a time. git's library has no stream for
//! that; what cannot be read here is left to it, since it says what is wrong.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::ZlibDecoder;
use git2::{ObjectType, Odb, OdbLookupFlags, Oid};
use parking_lot::Mutex;
use sha1::{Digest as _, Sha1};

use super::format::{Inflated, loose_path, read_head, whole_blob};
use super::pack::{self, PackIndex};
use crate::git::base::{Error, Result, id_of, object_header, parse_oid, present};
use crate::git::repo::repository::Repo;
use crate::model::manifest::ObjectId;

/// How many databases may borrow from one another in a row, as in git.
const MAX_ALTERNATES: usize = 5;

/// A blob of more bytes is large. The C library keeps for each thread about twice the largest block that was ever freed: the
/// larger what is read as a whole, the more memory.
const LARGE: usize = 512 << 10;
/// Who has a large blob in memory holds it.
static ONE_LARGE: Mutex<()> = Mutex::new(());

/// An object, whole.
#[derive(Debug)]
pub(in crate::git) struct Object {
    pub kind: ObjectType,
    pub data: Vec<u8>,
}

/// Kind and content of an object in memory.
pub(in crate::git) type InMemory = (ObjectType, Arc<Vec<u8>>);

impl Object {
    fn of(object: &git2::OdbObject<'_>) -> Self {
        Self {
            kind: object.kind(),
            data: object.data().to_vec(),
        }
    }
}

/// The objects of a repository and of those it borrows from.
pub(in crate::git) struct Database<'r> {
    odb: Odb<'r>,
    folders: Vec<PathBuf>,
    /// Objects that are in no file yet.
    memory: HashMap<Oid, InMemory>,
}

impl<'r> Database<'r> {
    /// Of the user's repository, or of a private one.
    pub(crate) fn open(repo: &'r Repo) -> Result<Self> {
        Self::of(&repo.inner)
    }

    /// Of a repository that git's library opened.
    pub(crate) fn of(repository: &'r git2::Repository) -> Result<Self> {
        set_options();
        let odb = repository
            .odb()
            .map_err(Error::git("open the object database"))?;
        let folders = folders(&repository.commondir().join("objects"));
        Ok(Self {
            odb,
            folders,
            memory: HashMap::new(),
        })
    }

    /// Of a folder of objects and what is in memory beside it.
    pub(super) fn with_memory(
        odb: Odb<'r>,
        objects: &Path,
        memory: HashMap<Oid, InMemory>,
    ) -> Self {
        set_options();
        Self {
            odb,
            folders: folders(objects),
            memory,
        }
    }

    /// Reads an object; a missing or damaged one is [`Error::Corrupt`], one that cannot be opened is not.
    pub(crate) fn read(&self, oid: Oid) -> Result<Object> {
        if let Some((kind, data)) = self.memory.get(&oid) {
            return Ok(Object {
                kind: *kind,
                data: data.to_vec(),
            });
        }
        let object = match self.loose(oid)? {
            Some(object) => object,
            None => self.packed(oid)?,
        };
        if id_of(object.kind, &object.data)? == oid {
            Ok(object)
        } else {
            Err(Error::corrupt(format!(
                "object {oid} is damaged: it has the content of another"
            )))
        }
    }

    fn packed(&self, oid: Oid) -> Result<Object> {
        if let Ok(object) = self.odb.read(oid) {
            return Ok(Object::of(&object));
        }
        self.odb
            .refresh()
            .map_err(Error::git("refresh the object database"))?;
        if let Some(object) = self.loose(oid)? {
            return Ok(object);
        }
        self.odb
            .read(oid)
            .map(|object| Object::of(&object))
            .map_err(|error| unread(oid, error))
    }

    /// Reads a blob.
    pub(crate) fn blob(&self, oid: Oid) -> Result<Vec<u8>> {
        match self.read(oid)? {
            Object {
                kind: ObjectType::Blob,
                data,
            } => Ok(data),
            _ => Err(Error::corrupt(format!("{oid} is not a blob"))),
        }
    }

    /// Writes the content of a blob to `out` and returns its size in bytes. The outer error is that of `out`.
    ///
    /// It is an error if the object is missing, damaged or has another size than it says; what was written by then is to
    /// be thrown away. The content is not hashed: who must know that reads again what was written.
    pub(crate) fn copy_blob(&self, oid: Oid, out: &mut dyn Write) -> io::Result<Result<u64>> {
        if let Some((ObjectType::Blob, data)) = self.memory.get(&oid) {
            return out.write_all(data).map(|()| Ok(data.len() as u64));
        }
        let damaged = || Error::corrupt(format!("object {oid} is cut short or damaged"));
        let (mut reader, size) = match self.open_loose(oid) {
            Ok(Some(mut reader)) => match read_head(&mut reader) {
                Some((ObjectType::Blob, size)) => (reader, size),
                Some(_) => return Ok(Err(Error::corrupt(format!("{oid} is not a blob")))),
                None => return Ok(Err(damaged())),
            },
            Ok(None) => {
                let is_large = self
                    .odb
                    .read_header(oid)
                    .is_ok_and(|(size, _)| size > LARGE);
                match is_large
                    .then(|| open_packed_blob(&self.folders, oid))
                    .flatten()
                {
                    Some(opened) => opened,
                    None => return self.copy_packed(oid, is_large, out),
                }
            }
            Err(error) => return Ok(Err(error)),
        };
        let mut left = size;
        loop {
            // The last read has to see the end of the stream, where zlib's own checksum is.
            let count = match reader.fill_buf() {
                Ok([]) if left == 0 => return Ok(Ok(size)),
                Ok(bytes) if !bytes.is_empty() && bytes.len() as u64 <= left => {
                    out.write_all(bytes)?;
                    bytes.len()
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                _ => return Ok(Err(damaged())),
            };
            left -= count as u64;
            reader.consume(count);
        }
    }

    /// Reads a blob and compares its content with its id; a missing or damaged one is [`Error::Corrupt`]. It takes as much
    /// memory as [`Self::copy_blob`].
    pub(crate) fn check_blob(&self, oid: Oid) -> Result<()> {
        let size = self.size(oid)?;
        let mut hash = Sha1::new_with_prefix(object_header(ObjectType::Blob, size));
        self.copy_blob(oid, &mut hash)
            .map_err(|source| Error::io(format!("object {oid}"), source))??;
        if hash.finalize()[..] == *oid.as_bytes() {
            return Ok(());
        }
        Err(Error::corrupt(format!(
            "object {oid} is damaged: it has the content of another"
        )))
    }

    /// Writes the content of a blob that is read as a whole: of large ones one at a time, and without a copy where that can be.
    fn copy_packed(
        &self,
        oid: Oid,
        is_large: bool,
        out: &mut dyn Write,
    ) -> io::Result<Result<u64>> {
        let _alone = is_large.then(|| ONE_LARGE.lock());
        if let Ok(object) = self.odb.read(oid)
            && object.kind() == ObjectType::Blob
        {
            return out
                .write_all(object.data())
                .map(|()| Ok(object.len() as u64));
        }
        match self.packed(oid) {
            Ok(Object {
                kind: ObjectType::Blob,
                data,
            }) => out.write_all(&data).map(|()| Ok(data.len() as u64)),
            Ok(_) => Ok(Err(Error::corrupt(format!("{oid} is not a blob")))),
            Err(error) => Ok(Err(error)),
        }
    }

    /// The size of an object in bytes. Of a loose one only the beginning is read, so that damage further on is not seen.
    pub(crate) fn size(&self, oid: Oid) -> Result<u64> {
        if let Some((_, data)) = self.memory.get(&oid) {
            return Ok(data.len() as u64);
        }
        if let Some(mut reader) = self.open_loose(oid)? {
            let head = read_head(&mut reader).map(|(_, size)| size);
            return head
                .ok_or_else(|| Error::corrupt(format!("object {oid} is cut short or damaged")));
        }
        match self.odb.read_header(oid) {
            Ok((size, _)) => Ok(size as u64),
            // It is read whole then; that is rare.
            Err(_) => self.read(oid).map(|object| object.data.len() as u64),
        }
    }

    /// Whether an object is there.
    pub(crate) fn has(&self, oid: Oid) -> bool {
        let found = || {
            self.memory.contains_key(&oid) || self.odb.exists_ext(oid, OdbLookupFlags::NO_REFRESH)
        };
        found() || (self.odb.refresh().is_ok() && found())
    }

    /// Makes sure that libgit2 can read an object, before it does so.
    pub(crate) fn check(&self, oid: Oid) -> Result<()> {
        self.read(oid).map(drop)
    }

    fn loose(&self, oid: Oid) -> Result<Option<Object>> {
        let Some(mut file) = self.open_file(oid)? else {
            return Ok(None);
        };
        let mut packed = Vec::new();
        file.read_to_end(&mut packed)
            .map_err(|source| Error::io(format!("object {oid}"), source))?;
        let damaged = || Error::corrupt(format!("object {oid} is cut short or damaged"));
        unpack(&packed).map(Some).ok_or_else(damaged)
    }

    /// A loose object to read from.
    fn open_loose(&self, oid: Oid) -> Result<Option<Inflated>> {
        Ok(self
            .open_file(oid)?
            .map(|file| BufReader::with_capacity(1 << 16, ZlibDecoder::new(file))))
    }

    /// The file of a loose object, deflated; `None` where it is not in a file of its own.
    pub(crate) fn open_file(&self, oid: Oid) -> Result<Option<File>> {
        for folder in &self.folders {
            let path = loose_path(folder, oid);
            if let Some(file) = present(&path, File::open(&path))? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }
}

/// What libgit2 need not do: every object is hashed here after it was read, several times faster, and what is asked for
/// again is kept where that is known.
fn set_options() {
    git2::opts::strict_hash_verification(false);
    git2::opts::enable_caching(false);
}

/// A folder of objects and those it borrows from.
pub(in crate::git) fn folders(objects: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    add_folder(objects, &mut folders);
    folders
}

/// What it means that git's library did not read an object: only what is not there or not whole is damage, not what the
/// system refused to open.
pub(in crate::git) fn unread(oid: Oid, error: git2::Error) -> Error {
    match (error.code(), error.class()) {
        (git2::ErrorCode::NotFound, _) => Error::corrupt(format!("object {oid} is missing")),
        (_, git2::ErrorClass::Os) => Error::git(format!("read object {oid}"))(error),
        _ => Error::corrupt(format!("object {oid}: {}", error.message())),
    }
}

/// Adds a folder of objects and those it borrows from.
fn add_folder(folder: &Path, folders: &mut Vec<PathBuf>) {
    if folders.len() > MAX_ALTERNATES || folders.iter().any(|known| known == folder) {
        return;
    }
    folders.push(folder.to_owned());
    let borrowed = fs::read(folder.join("info/alternates")).unwrap_or_default();
    for line in borrowed
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty() && !line.starts_with(b"#"))
    {
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

impl Repo {
    /// The size of a stored blob in bytes.
    pub(crate) fn blob_size(&self, oid: &ObjectId) -> Result<u64> {
        let database = Database::open(self)?;
        database.size(parse_oid(oid)?)
    }

    /// The content of a stored blob; `None` where it is larger than the limit.
    pub(crate) fn small_blob(&self, oid: &ObjectId, most: u64) -> Result<Option<Vec<u8>>> {
        let (database, oid) = (Database::open(self)?, parse_oid(oid)?);
        if database.size(oid)? > most {
            return Ok(None);
        }
        database.blob(oid).map(Some)
    }
}

/// Opens a blob of the packs in these folders of objects, and says its size in bytes. `None` where none of them has it as a
/// whole, and undamaged as far as its pack can tell.
fn open_packed_blob(folders: &[PathBuf], oid: Oid) -> Option<(Inflated, u64)> {
    let mut packs = folders.iter().flat_map(|folder| {
        let names = pack::pack_names(folder).into_iter();
        names.map(|name| folder.join("pack").join(name))
    });
    packs.find_map(|pack| open_in(&pack, oid).ok().flatten())
}

fn open_in(pack: &Path, oid: Oid) -> io::Result<Option<(Inflated, u64)>> {
    let index = pack.with_extension("idx");
    if !(fs::metadata(&index)?.is_file() && fs::metadata(pack)?.is_file()) {
        return Ok(None);
    }
    let Some(offset) = PackIndex::open(&index)?.offset(oid)? else {
        return Ok(None);
    };
    let mut file = File::open(pack)?;
    file.seek(SeekFrom::Start(offset))?;
    let Some(size) = whole_blob(&mut file)? else {
        return Ok(None);
    };
    // Once to nowhere: what was written of a damaged one could not be taken back, and another pack may have it.
    let begin = file.stream_position()?;
    let is_whole = io::copy(
        &mut ZlibDecoder::new(&file).take(size.saturating_add(1)),
        &mut io::sink(),
    )? == size;
    file.seek(SeekFrom::Start(begin))?;
    Ok(is_whole.then(|| {
        (
            BufReader::with_capacity(1 << 16, ZlibDecoder::new(file)),
            size,
        )
    }))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    fn git(folder: &Path, args: &[&str]) -> String {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=t", "-c", "user.email=t@t"])
            .args(args)
            .current_dir(folder)
            .stderr(Stdio::null());
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"GIT_"))
        {
            command.env_remove(name);
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{args:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    #[test]
    fn what_git_packed_as_a_whole_is_read_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        git(folder.path(), &["init", "-q"]);
        let mut text: Vec<u8> = (0..200_000).map(|_| fastrand::u8(..)).collect();
        // Versions of one file become differences; the sizes need one byte in the pack, and more.
        for size in [0, 1, 15, 16, 2047, 2048, 262_143, 262_144, 700_000] {
            std::fs::write(folder.path().join("large"), &text).unwrap();
            std::fs::write(
                folder.path().join(size.to_string()),
                fastrand::u64(..).to_ne_bytes().repeat(size),
            )
            .unwrap();
            text.truncate(199_000 - size / 10);
            git(folder.path(), &["add", "-A"]);
            git(folder.path(), &["commit", "-q", "-m", "a"]);
        }
        git(folder.path(), &["repack", "-adfq"]);
        let objects = folder.path().join(".git/objects");
        let pack = objects
            .join("pack")
            .join(pack::pack_names(&objects).first().unwrap());
        let (mut whole, mut others) = (0, 0);
        for line in git(
            folder.path(),
            &["verify-pack", "-v", pack.to_str().unwrap()],
        )
        .lines()
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            // id, kind, size, size in the pack, offset; of a difference also how deep and of what.
            let &[id, kind, size, _, _, ref base @ ..] = words.as_slice() else {
                continue;
            };
            let Ok(oid) = Oid::from_str(id).map_err(drop) else {
                continue;
            };
            let opened = open_packed_blob(&[folder.path().to_owned(), objects.clone()], oid);
            if kind == "blob" && base.is_empty() {
                let (mut reader, said) = opened.unwrap();
                let mut content = Vec::new();
                reader.read_to_end(&mut content).unwrap();
                assert_eq!(
                    (said.to_string().as_str(), content.len() as u64),
                    (size, said)
                );
                assert_eq!(
                    crate::git::base::paths::id_of(git2::ObjectType::Blob, &content).unwrap(),
                    oid
                );
                whole += 1;
            } else {
                assert!(opened.is_none(), "{line}");
                others += 1;
            }
        }
        assert!(whole >= 9 && others >= 20, "{whole} {others}");
        // Of two packs that have it, one is damaged: whichever comes first.
        let oid = Oid::from_str(git(folder.path(), &["rev-parse", "HEAD:700000"]).trim()).unwrap();
        let copied = |name: &str| {
            let copy = objects.join("pack").join(name);
            for end in ["pack", "idx"] {
                std::fs::copy(pack.with_extension(end), copy.with_extension(end)).unwrap();
            }
            copy
        };
        let all = std::fs::read(&pack).unwrap();
        let at = usize::try_from(
            PackIndex::open(&pack.with_extension("idx"))
                .and_then(|index| index.offset(oid))
                .unwrap()
                .unwrap(),
        )
        .unwrap();
        let damaged = [&all[..at + 8], &[0; 8], &all[at + 16..]].concat();
        for (name, bytes) in [
            ("pack-0.pack", &all[..at + 20]),
            ("pack-z.pack", &all[..at + 20]),
            ("pack-0.pack", &damaged),
        ] {
            let copy = copied(name);
            std::fs::remove_file(&copy).unwrap();
            std::fs::write(&copy, bytes).unwrap();
            assert!(open_in(&copy, oid).ok().flatten().is_none(), "{name}");
            assert_eq!(
                open_packed_blob(std::slice::from_ref(&objects), oid)
                    .unwrap()
                    .1,
                5_600_000,
                "{name}"
            );
            std::fs::remove_file(&copy).unwrap();
        }
        assert!(open_packed_blob(&[objects], Oid::from_bytes(&[7; 20]).unwrap()).is_none());
    }
}
