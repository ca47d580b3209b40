//! Moves the complete files of a quarantine into the real object database.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use git2::Oid;

use super::error::{Error, Result};
use super::pack::Pack;

/// From this many files or folders on, one sync of the whole file system is cheaper than one for each.
const MANY: usize = 32;

/// A complete file of a quarantine, or two.
#[derive(Clone, Debug)]
pub(super) enum Staged {
    /// An object in a file of its own.
    Loose { oid: Oid, path: PathBuf },
    /// A pack with its index.
    Pack(Pack),
}

/// What was not in the real database before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Published {
    /// Loose objects.
    pub loose: BTreeSet<Oid>,
    /// The names of packs, without folder and ending.
    pub packs: BTreeSet<String>,
}

impl Staged {
    /// Moves a loose object to where git's library looks for it. Packs are there already.
    pub fn move_into(&mut self, objects: &Path) -> Result<()> {
        let Self::Loose { oid, path } = self else { return Ok(()) };
        let to = loose_path(objects, *oid);
        if *path != to {
            to.parent().map_or(Ok(()), fs::create_dir_all).map_err(Error::at(&to))?;
            fs::rename(&*path, &to).map_err(Error::at(&to))?;
            *path = to;
        }
        Ok(())
    }
}

impl Published {
    pub fn add(&mut self, other: Self) {
        self.loose.extend(other.loose);
        self.packs.extend(other.packs);
    }
}

/// Syncs staged files, renames them into `target`, a pack's index after the pack, and syncs the folders.
pub(super) fn publish(quarantine: &Path, target: &Path, staged: &[Staged]) -> Result<Published> {
    let mut published = Published::default();
    if staged.is_empty() {
        return Ok(published);
    }
    // From where to where, loose objects before packs.
    let mut moves = BTreeMap::new();
    let mut packs = Vec::new();
    for one in staged {
        match one {
            Staged::Loose { oid, path } => drop(moves.insert(*oid, path)),
            Staged::Pack(pack) => packs.push(pack),
        }
    }
    let files: Vec<&Path> = moves
        .values()
        .map(|path| path.as_path())
        .chain(packs.iter().flat_map(|pack| [pack.pack.as_path(), pack.index.as_path()]))
        .collect();
    sync(quarantine, &files)?;
    let mut folders = BTreeSet::new();
    for (oid, path) in moves {
        let to = loose_path(target, oid);
        if place(path, &to, target, &mut folders)? {
            published.loose.insert(oid);
        }
    }
    for pack in packs {
        let folder = target.join("pack");
        let to = |file: &Path| folder.join(file.file_name().unwrap_or_default());
        let new = place(&pack.pack, &to(&pack.pack), target, &mut folders)?;
        place(&pack.index, &to(&pack.index), target, &mut folders)?;
        if let Some(name) = pack.pack.file_stem().and_then(|name| name.to_str()).filter(|_| new) {
            published.packs.insert(name.to_owned());
        }
    }
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    sync(target, &folders)?;
    Ok(published)
}

/// Syncs files or folders that all lie on one file system, that of `folder`.
fn sync(folder: &Path, all: &[&Path]) -> Result<()> {
    #[cfg(target_os = "linux")]
    if all.len() >= MANY {
        let open = File::open(folder).map_err(Error::at(folder))?;
        return rustix::fs::syncfs(&open).map_err(Error::at(folder));
    }
    all.iter().try_for_each(|path| File::open(path).and_then(|open| open.sync_all()).map_err(Error::at(path)))
}

/// Renames a file into its place and notes the folders that changed. Returns whether nothing was there; what is there
/// stays, as it has the same content.
fn place(from: &Path, to: &Path, target: &Path, folders: &mut BTreeSet<PathBuf>) -> Result<bool> {
    let folder = to.parent().unwrap_or(target);
    let mut result = rename_new(from, to);
    if matches!(&result, Err(error) if error.kind() == io::ErrorKind::NotFound) {
        match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(Error::io(folder, error)),
            _ => drop(folders.insert(target.to_owned())),
        }
        result = rename_new(from, to);
    }
    folders.insert(folder.to_owned());
    match result {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Whoever made it need not have synced it.
            File::open(to).and_then(|file| file.sync_all()).map_err(Error::at(to))?;
            fs::remove_file(from).map_err(Error::at(from))?;
            Ok(false)
        }
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => copy_file(from, to).map(|()| true),
        Err(error) => Err(Error::io(to, error)),
    }
}

/// Renames unless something is there: `AlreadyExists`.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_vendor = "apple"))]
    {
        let cwd = rustix::fs::CWD;
        match rustix::fs::renameat_with(cwd, from, cwd, to, rustix::fs::RenameFlags::NOREPLACE) {
            // Some file systems cannot do that.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            other => return Ok(other?),
        }
    }
    if to.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// Moves a synced file by a synced copy: the database lies on another file system.
fn copy_file(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().unwrap_or(to);
    let mut copy = tempfile::NamedTempFile::with_prefix_in("tmp_obj_", folder).map_err(Error::at(to))?;
    let mut source = File::open(from).map_err(Error::at(from))?;
    io::copy(&mut source, &mut copy).map_err(Error::at(to))?;
    let metadata = source.metadata().map_err(Error::at(from))?;
    copy.as_file().set_permissions(metadata.permissions()).map_err(Error::at(to))?;
    copy.as_file().sync_all().map_err(Error::at(to))?;
    copy.persist(to).map_err(|error| Error::io(to, error.error))?;
    fs::remove_file(from).map_err(Error::at(from))
}

/// Where an object of its own lies below a folder of objects.
pub(super) fn loose_path(objects: &Path, oid: Oid) -> PathBuf {
    let hex = oid.to_string();
    objects.join(&hex[..2]).join(&hex[2..])
}

/// Removes everything of a quarantine's folder of objects but its configuration.
pub(super) fn empty(objects: &Path) -> Result<()> {
    empty_but(objects, "info")
}

/// Removes everything of a quarantine but its objects.
pub(super) fn empty_but_objects(quarantine: &Path) -> Result<()> {
    empty_but(quarantine, "objects")
}

fn empty_but(folder: &Path, kept: &str) -> Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(Error::io(folder, source)),
    };
    for entry in entries {
        let entry = entry.map_err(Error::at(folder))?;
        let path = entry.path();
        if entry.file_name() == kept {
            continue;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let removed = if is_folder { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(Error::at(&path))?;
    }
    Ok(())
}

/// Syncs a folder, so that the names in it are durable.
pub(super) fn sync_folder(folder: &Path) -> Result<()> {
    crate::durable::sync_dir(folder).map_err(Error::at(folder))
}
