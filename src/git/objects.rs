//! Writes objects so that the user's object database never holds a half-written one.
//!
//! New objects go into a quarantine, a bare repository in `$GIT_DIR/recover/quarantine` that borrows the real
//! database. [`ObjectWriter::publish`] syncs all of them, many with one call, and only then renames them into place and syncs the
//! folders. A process that dies, or a full disk, leaves objects in the quarantine only; the next writer empties it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use git2::{ObjectType, Oid};

use super::error::{Error, Result};
use super::lock::{Slot, WorktreeLock};
use super::repository::{Repo, init_bare};

/// From this many objects on, one sync of the whole file system is cheaper than one a file.
const MANY: usize = 32;

/// Writes objects of one operation.
pub(super) struct ObjectWriter {
    quarantine: std::sync::Mutex<git2::Repository>,
    path: PathBuf,
    /// The quarantine's folder of objects.
    objects: PathBuf,
    /// The real one.
    target: PathBuf,
    /// Keeps the quarantine ours, and with it the worktree's lock.
    slot: Slot,
}

impl std::fmt::Debug for ObjectWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectWriter").field("objects", &self.objects).finish_non_exhaustive()
    }
}

impl ObjectWriter {
    /// Opens the worktree's quarantine, emptying it of what a dead process left.
    pub fn new(repo: &Repo, lock: &WorktreeLock) -> Result<Self> {
        let own = repo.recover_dir()?;
        let busy =
            || Error::Locked { file: own.join("quarantine"), holder: "too many captures of this process".to_owned() };
        let slot = lock.slot().ok_or_else(busy)?;
        let path =
            own.join(if slot.number == 0 { "quarantine".to_owned() } else { format!("quarantine-{}", slot.number) });
        let target = fs::canonicalize(repo.common_dir().join("objects")).map_err(Error::at(repo.common_dir()))?;
        let objects = path.join("objects");
        // A quarantine that cannot be opened (cut off while it was made) is made again.
        if git2::Repository::open_bare(&path).is_err() {
            if path.exists() {
                fs::remove_dir_all(&path).map_err(Error::at(&path))?;
            }
            init_bare(&path)?;
        }
        let alternates = objects.join("info/alternates");
        let mut line = std::os::unix::ffi::OsStrExt::as_bytes(target.as_os_str()).to_vec();
        line.push(b'\n');
        if fs::read(&alternates).ok().as_ref() != Some(&line) {
            fs::create_dir_all(objects.join("info")).map_err(Error::at(&alternates))?;
            fs::write(&alternates, &line).map_err(Error::at(&alternates))?;
        }
        empty(&objects)?;
        let quarantine = git2::Repository::open_bare(&path).map_err(Error::git("open the quarantine"))?;
        Ok(Self { quarantine: std::sync::Mutex::new(quarantine), path, objects, target, slot })
    }

    pub fn repository(&self) -> Result<git2::Repository> {
        git2::Repository::open_bare(&self.path).map_err(Error::git("open the quarantine"))
    }

    pub fn contains(&self, oid: Oid) -> Result<bool> {
        let q = self.quarantine.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(q.odb().map_err(Error::git("open the object database"))?.exists_ext(oid, git2::OdbLookupFlags::NO_REFRESH))
    }

    /// Writes an object from memory.
    pub fn write(&self, kind: ObjectType, data: &[u8]) -> Result<Oid> {
        {
            let q = self.quarantine.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            q.odb().and_then(|odb| odb.write(kind, data)).map_err(Error::git("write an object"))
        }
    }

    /// Writes a blob of exactly `size` bytes without holding it in memory. Returns `None` if the source has fewer or more.
    pub fn write_stream(&self, source: &mut dyn Read, size: u64) -> io::Result<Result<Option<Oid>>> {
        let q = self.quarantine.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let odb = match q.odb() {
            Ok(odb) => odb,
            Err(error) => return Ok(Err(Error::git("open")(error))),
        };
        let Ok(length) = usize::try_from(size) else { return Ok(Ok(None)) };
        let mut writer = match odb.writer(length, ObjectType::Blob) {
            Ok(writer) => writer,
            Err(source) => return Ok(Err(Error::git("write a large object")(source))),
        };
        let mut buffer = vec![0; 1 << 18];
        let mut left = length;
        loop {
            let count = source.read(&mut buffer)?;
            if count > left {
                return Ok(Ok(None));
            }
            if count == 0 {
                break;
            }
            left -= count;
            if let Err(error) = writer.write_all(&buffer[..count]) {
                return Ok(Err(Error::io(&self.objects, error)));
            }
        }
        if left > 0 {
            return Ok(Ok(None));
        }
        Ok(writer.finalize().map(Some).map_err(Error::git("write a large object")))
    }

    /// Makes everything written durable and part of the real database.
    pub fn publish(&self) -> Result<()> {
        let files = loose(&self.objects)?;
        if files.is_empty() {
            return Ok(());
        }
        self.sync(&files)?;
        let mut folders = BTreeSet::new();
        for file in &files {
            let relative = file.strip_prefix(&self.objects).unwrap_or(file);
            let to = self.target.join(relative);
            if let Some(folder) = to.parent() {
                match fs::create_dir(folder) {
                    Ok(()) => drop(folders.insert(self.target.clone())),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(Error::io(folder, error)),
                }
                folders.insert(folder.to_owned());
            }
            move_file(file, &to)?;
        }
        folders.iter().try_for_each(|folder| sync_folder(folder))
    }

    fn sync(&self, files: &[PathBuf]) -> Result<()> {
        #[cfg(target_os = "linux")]
        if files.len() >= MANY {
            let folder = fs::File::open(&self.objects).map_err(Error::at(&self.objects))?;
            return rustix::fs::syncfs(&folder).map_err(Error::at(&self.objects));
        }
        files.iter().try_for_each(|file| fs::File::open(file).and_then(|open| open.sync_all()).map_err(Error::at(file)))
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        // What is left behind is removed by the next writer.
        let _ = empty(&self.objects);
        // The first one is kept for the next capture; another is rarely needed.
        if self.slot.number > 0
            && let Some(folder) = self.objects.parent()
        {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Syncs a folder, so that the names in it are durable.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    crate::durable::sync_dir(folder).map_err(Error::at(folder))
}

/// Moves a synced file; where the database lies on another file system, by a synced copy.
fn move_file(from: &Path, to: &Path) -> Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        other => return other.map_err(Error::at(to)),
    }
    let folder = to.parent().unwrap_or(to);
    let mut copy = tempfile::NamedTempFile::with_prefix_in("tmp_obj_", folder).map_err(Error::at(to))?;
    let mut source = fs::File::open(from).map_err(Error::at(from))?;
    io::copy(&mut source, &mut copy).map_err(Error::at(to))?;
    let metadata = source.metadata().map_err(Error::at(from))?;
    copy.as_file().set_permissions(metadata.permissions()).map_err(Error::at(to))?;
    copy.as_file().sync_all().map_err(Error::at(to))?;
    copy.persist(to).map_err(|error| Error::io(to, error.error))?;
    fs::remove_file(from).map_err(Error::at(from))
}

/// The loose objects in a folder of objects.
fn loose(objects: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for folder in fan_out(objects)? {
        for file in fs::read_dir(&folder).map_err(Error::at(&folder))? {
            let file = file.map_err(Error::at(&folder))?;
            if file.file_name().len() == 38 {
                files.push(file.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// The folders `00` to `ff` that exist.
fn fan_out(objects: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for folder in fs::read_dir(objects).map_err(Error::at(objects))? {
        let folder = folder.map_err(Error::at(objects))?;
        if folder.file_name().len() == 2 {
            folders.push(folder.path());
        }
    }
    Ok(folders)
}

/// Removes every object and temp file of a quarantine.
fn empty(objects: &Path) -> Result<()> {
    for folder in fan_out(objects)? {
        fs::remove_dir_all(&folder).map_err(Error::at(&folder))?;
    }
    // libgit2's streams put their temp files beside the folders.
    for file in fs::read_dir(objects).map_err(Error::at(objects))? {
        let file = file.map_err(Error::at(objects))?;
        if file.file_type().is_ok_and(|kind| kind.is_file()) {
            fs::remove_file(file.path()).map_err(Error::at(objects))?;
        }
    }
    Ok(())
}
