//! Links the complete files of a quarantine into the real object database.
//!
//! They keep the name that they have in the quarantine: should a `git gc` take the other one away before something
//! refers to the object, its content is still there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use git2::Oid;

use super::format::{is_whole, loose_path};
use super::pack::Pack;
use crate::durable::{Kind, Root, cannot_link, create_dir_all, give_to_sudo_caller};
use crate::git::base::{
    At as _, Error, Result, WorkQueue, present, sync_folder, whole_is_cheaper, work_queue,
};
use crate::os::sync_file_system;

/// This many files or folders are synced at a time: the disk writes what several wait for in one go.
const AT_ONCE: usize = 4;

/// A complete file of a quarantine, or two.
#[derive(Clone, Debug)]
pub(in crate::git) enum Staged {
    /// An object in a file of its own.
    Loose { oid: Oid, path: PathBuf },
    /// A pack with its index.
    Pack(Pack),
}

/// What was not in the real database before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct Published {
    /// Loose objects, and those of small packs.
    pub objects: BTreeSet<Oid>,
    /// The names of other packs, without folder and ending.
    pub packs: BTreeSet<String>,
}

impl Staged {
    /// Moves a loose object to where git's library looks for it. Packs are there already.
    pub(crate) fn move_into(&mut self, objects: &Path) -> Result<()> {
        let Self::Loose { oid, path } = self else {
            return Ok(());
        };
        let to = loose_path(objects, *oid);
        if *path != to {
            to.parent().map_or(Ok(()), create_dir_all).at(&to)?;
            fs::rename(&*path, &to).at(&to)?;
            *path = to;
        }
        Ok(())
    }
}

impl Published {
    pub(crate) fn add(&mut self, other: Self) {
        self.objects.extend(other.objects);
        self.packs.extend(other.packs);
    }
}

/// Syncs staged files, and a file that is `also` to be durable, links the staged ones into `target` and syncs the folders.
/// What keeps a pack comes before it, its index after it.
pub(in crate::git) fn publish(
    quarantine: &Path,
    target: &Path,
    staged: &[Staged],
    also: Option<&Path>,
) -> Result<Published> {
    let mut published = Published::default();
    if staged.is_empty() && also.is_none() {
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
        .chain(
            packs
                .iter()
                .flat_map(|pack| [pack.file.as_path(), pack.index.as_path()]),
        )
        .chain(also)
        .collect();
    sync(quarantine, &files, |synced| synced)?;
    let mut folders = BTreeSet::new();
    for (oid, path) in moves {
        let to = loose_path(target, oid);
        if place(path, &to, target, Some(oid), &mut folders)? {
            published.objects.insert(oid);
        }
    }
    for pack in packs {
        let folder = target.join("pack");
        let to = |file: &Path| folder.join(file.file_name().unwrap_or_default());
        for file in pack.keep.iter().chain([&pack.file, &pack.index]) {
            place(file, &to(file), target, None, &mut folders)?;
        }
        if pack.is_small {
            published.objects.extend(pack.ids());
        } else {
            published.packs.insert(pack.name());
        }
    }
    let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
    // git removes folders that are empty: what they held was taken by a collection, and has to be published again.
    sync(target, &folders, gone)?;
    Ok(published)
}

/// Syncs an object that git's library wrote, where it is loose, and its folder.
pub(in crate::git) fn sync_loose(objects: &Path, oid: Oid) -> Result<()> {
    let path = loose_path(objects, oid);
    match (File::open(&path), path.parent()) {
        (Ok(file), Some(folder)) => {
            file.sync_all().at(&path)?;
            sync_folder(folder)
        }
        _ => Ok(()),
    }
}

/// Syncs files or folders that all lie on one file system, that of `folder`. `forgive` may make a failure none.
pub(super) fn sync(
    folder: &Path,
    all: &[&Path],
    forgive: fn(io::Result<()>) -> io::Result<()>,
) -> Result<()> {
    if whole_is_cheaper(all.len()) {
        let open = File::open(folder).at(folder)?;
        return sync_file_system(&open).at(folder);
    }
    let one = |path: &Path, _: &mut WorkQueue<&Path>, (): &mut ()| {
        forgive(File::open(path).and_then(|open| open.sync_all())).at(path)
    };
    work_queue::run(all.to_vec(), all.len().clamp(1, AT_ONCE), one).map(drop)
}

/// Links a file into its place and notes the folders that changed. Returns whether nothing was there; what is there
/// stays, as it has the same content, but for a loose object that is damaged.
fn place(
    from: &Path,
    to: &Path,
    target: &Path,
    loose: Option<Oid>,
    folders: &mut BTreeSet<PathBuf>,
) -> Result<bool> {
    let folder = to.parent().unwrap_or(target);
    folders.insert(folder.to_owned());
    let mut tries = 3;
    loop {
        let placed = match fs::hard_link(from, to) {
            Err(error) if !cannot_link(&error) => Err(error),
            Err(_) if to.symlink_metadata().is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => copy_file(from, to),
            linked => linked,
        };
        match placed {
            Ok(()) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                match stays(from, to, loose) {
                    Ok(()) => return Ok(false),
                    Err(error) if error.kind() == io::ErrorKind::NotFound && tries > 0 => {}
                    Err(source) => return Err(Error::io(to, source)),
                }
            }
            // The folder is new, or git removed it because it was empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound && tries > 0 => {
                match fs::create_dir(folder).and_then(|()| give_to_sudo_caller(folder)) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(Error::io(folder, error));
                    }
                    _ => drop(folders.insert(target.to_owned())),
                }
            }
            Err(source) => return Err(Error::io(to, source)),
        }
        tries -= 1;
    }
}

/// Makes what is there durable, or puts the file in its place where it is damaged.
fn stays(from: &Path, to: &Path, loose: Option<Oid>) -> io::Result<()> {
    if let Some(oid) = loose
        && !is_whole(to, oid)?
    {
        let beside = to.with_file_name(format!("tmp_obj_{oid}"));
        gone(fs::remove_file(&beside))?;
        return match fs::hard_link(from, &beside) {
            Err(error) if cannot_link(&error) => copy_file(from, to),
            linked => linked.and_then(|()| fs::rename(&beside, to)),
        };
    }
    // Whoever made it need not have synced it.
    File::open(to).and_then(|file| file.sync_all())
}

/// Places a synced copy of a file.
fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut copy = tempfile::NamedTempFile::with_prefix_in("tmp_obj_", to.parent().unwrap_or(to))?;
    let mut source = File::open(from)?;
    io::copy(&mut source, &mut copy)?;
    copy.as_file()
        .set_permissions(source.metadata()?.permissions())?;
    copy.as_file().sync_all()?;
    copy.persist(to)?;
    Ok(())
}

/// What a file says that keeps a pack until a checkpoint refers to its objects.
const KEEP: &str = "recover: until the checkpoint's reference is set";

/// Gives a pack of the quarantine a file that keeps it; it becomes part of the database before the pack.
pub(super) fn write_keep(pack: &mut Pack) -> Result<()> {
    let keep = pack.file.with_extension("keep");
    fs::write(&keep, format!("{KEEP}\n")).at(&keep)?;
    pack.keep = Some(keep);
    Ok(())
}

/// Lets go of the packs that the files of a quarantine keep, also those that a dead process left.
pub(in crate::git) fn release(quarantine: &Path, target: &Path) -> Result<()> {
    for keep in files(&quarantine.join("pack"), "keep")? {
        let to = target
            .join("pack")
            .join(keep.file_name().unwrap_or_default());
        for path in [&to, &keep] {
            present(path, fs::remove_file(path))?;
        }
    }
    Ok(())
}

/// Takes away the packs of a quarantine that have no index in their place: it was not possible to publish them whole.
fn take_back(quarantine: &Path, target: &Path) -> Result<()> {
    for pack in files(&quarantine.join("pack"), "pack")? {
        let placed = target
            .join("pack")
            .join(pack.file_name().unwrap_or_default());
        if !placed.with_extension("idx").exists() {
            present(&placed, fs::remove_file(&placed))?;
        }
    }
    Ok(())
}

/// Lets go of all packs that this program keeps. No capture may be under way in any worktree.
pub(in crate::git) fn release_all(target: &Path) -> Result<()> {
    for keep in files(&target.join("pack"), "keep")? {
        if fs::read(&keep).is_ok_and(|text| text.starts_with(KEEP.as_bytes())) {
            present(&keep, fs::remove_file(&keep))?;
        }
    }
    Ok(())
}

/// The files in a folder whose names end so.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in present(folder, fs::read_dir(folder))?.into_iter().flatten() {
        let path = entry.at(folder)?.path();
        files.extend(Some(path).filter(|path| path.extension().is_some_and(|end| end == ending)));
    }
    Ok(files)
}

/// What is not there needs nothing done to it.
fn gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes everything of a quarantine's folder of objects but the folder of its packs, which is empty then, and what is
/// half published of it.
pub(in crate::git) fn clear(objects: &Path, target: &Path) -> Result<()> {
    release(objects, target)?;
    take_back(objects, target)?;
    empty_but(objects, Some("pack"))
}

/// Removes everything in a folder, but only what is in the folder of this name in it.
fn empty_but(folder: &Path, stays: Option<&str>) -> Result<()> {
    for entry in present(folder, fs::read_dir(folder))?.into_iter().flatten() {
        let entry = entry.at(folder)?;
        let path = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            fs::remove_file(&path).at(&path)?;
        } else if stays.is_some_and(|stays| entry.file_name() == stays) {
            empty_but(&path, None)?;
        } else {
            fs::remove_dir_all(&path).at(&path)?;
        }
    }
    Ok(())
}

/// Removes everything of a quarantine but its objects, beneath the root that it is in.
pub(super) fn empty_but_objects(root: &Root, quarantine: &Path) -> io::Result<()> {
    let entries = match root.list(quarantine) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed?,
    };
    for (name, kind) in entries.iter().filter(|(name, _)| name != "objects") {
        let path = quarantine.join(name);
        if *kind == Kind::Directory {
            root.remove_dir_all(&path)?;
        } else {
            root.remove_file(&path)?;
        }
    }
    Ok(())
}
