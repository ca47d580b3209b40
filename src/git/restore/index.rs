//! Writes the user's index: stat data of files that were restored, or the whole index of a checkpoint.
//!
//! git's own protocol is kept: who holds `index.lock` (see `marked_lock`) may replace the index, by rename.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use git2::{Index, IndexEntry, IndexTime, Oid};

use super::verify::Verified;
use crate::durable::{Root, temporary_prefix};
use crate::git::base::dirfd_cache::Folders;
use crate::git::base::error::{Error, Result};
use crate::git::base::object_id::parse_oid;
use crate::git::base::sync::sync_folder;
use crate::git::base::{found, openat};
use crate::git::checkpoint::stored::StoredCheckpoint;
use crate::git::index::index_file::IndexEntryRef;
use crate::git::index::index_file::patch::{EntryStat, IndexPatch};
use crate::git::index::user_index::{ASSUME_UNCHANGED, INTENT_TO_ADD, SKIP_WORKTREE, UserIndex, open_index};
use crate::git::odb::database::Database;
use crate::git::odb::trees::{self, Flat};
use crate::git::repo::index_lock::MarkedLock;
use crate::git::repo::lock::WorktreeLock;
use crate::git::repo::repository::Repo;
use crate::model::path::RepoPath;
use crate::model::snapshot::ObjectId;

/// The user's index, locked; the lock goes with it.
pub(in crate::git) struct LockedIndex {
    index: PathBuf,
    draft: PathBuf,
    /// The way to the draft.
    own: Root,
    _lock: MarkedLock,
}

impl LockedIndex {
    /// Takes git's lock of the index, waiting up to `timeout`; after that [`Error::Locked`].
    pub fn acquire(repo: &Repo, timeout: Duration) -> Result<Self> {
        let own = repo.recover_dir()?;
        let index = repo.git_dir().join("index");
        let lock = MarkedLock::acquire(repo, "index", &index, timeout)?;
        let draft = own.join(format!("{}index", temporary_prefix()));
        Ok(Self { index, draft, own: repo.own().clone(), _lock: lock })
    }

    /// A copy of the index to change; an empty one if there is none.
    fn draft(&self) -> Result<Index> {
        if let Some(bytes) = self.content()? {
            self.fill(&bytes)?;
        }
        open_index(&self.draft)
    }

    fn fill(&self, bytes: &[u8]) -> Result<()> {
        let filled = self.own.for_all().create(&self.draft).and_then(|mut draft| draft.write_all(bytes));
        filled.map_err(Error::at(&self.draft))
    }

    /// An empty index to fill.
    fn empty(&self) -> Result<Index> {
        match self.draft() {
            Ok(mut index) => index.clear().map(|()| index).map_err(Error::git("clear the index")),
            // One that cannot be changed, split or sparse or damaged, is written anew.
            Err(Error::Unsupported { .. } | Error::Corrupt { .. }) => {
                self.own.remove_file(&self.draft).map_err(Error::at(&self.draft))?;
                open_index(&self.draft)
            }
            Err(error) => Err(error),
        }
    }

    /// The index as it is.
    pub fn read(&self) -> Result<Index> {
        self.draft()
    }

    /// The bytes of the index; `None` where there is none.
    pub fn content(&self) -> Result<Option<Vec<u8>>> {
        match fs::read(&self.index) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io(&self.index, error)),
        }
    }

    /// The second in which the index was written, in 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn written(&self) -> Result<u32> {
        fs::metadata(&self.index).map(|found| found.mtime() as u32).map_err(Error::at(&self.index))
    }

    /// Puts the index that these bytes are in place of what is there; `None` is none.
    pub fn put(&self, content: Option<&[u8]>) -> Result<()> {
        match content {
            Some(bytes) => {
                self.fill(bytes)?;
                self.replace()
            }
            None => fs::remove_file(&self.index).map_err(Error::at(&self.index)),
        }
    }

    /// Makes the index hold exactly these entries, as after a commit of them. Entries that are right already keep their
    /// stat data and their flags.
    pub fn follow(&self, repo: &Repo, flat: &Flat) -> Result<()> {
        let mut index = self.draft()?;
        let mut folders = Folders::new(openat::open_root(repo.workdir())?);
        let on_disk = |path: &RepoPath| path.below(std::path::Path::new(""));
        let stage = |entry: &IndexEntry| (entry.flags >> 12) & 3;
        let right = |entry: &IndexEntry| {
            let wanted = flat.get(&RepoPath::new(entry.path.clone()));
            stage(entry) == 0 && entry.flags_extended & INTENT_TO_ADD == 0 && wanted == Some(&(entry.mode, entry.id))
        };
        let wrong: Vec<IndexEntry> = index.iter().filter(|entry| !right(entry)).collect();
        for entry in wrong {
            let (stage, path) = (i32::from(stage(&entry)), RepoPath::new(entry.path));
            index.remove(&on_disk(&path), stage).map_err(Error::git(format!("take {path} out of the index")))?;
        }
        for (path, (mode, oid)) in flat {
            if index.get_path(&on_disk(path), 0).is_none() {
                let mut entry = entry(path, *mode, *oid);
                refresh(&mut folders, path, &mut entry);
                index.add(&entry).map_err(Error::git(format!("put {path} into the index")))?;
            }
        }
        self.write(index)
    }

    fn write(&self, mut draft: Index) -> Result<()> {
        draft.write().map_err(Error::git("write the index"))?;
        self.replace()
    }

    /// Puts the draft in the index's place, durably.
    fn replace(&self) -> Result<()> {
        let file = self.own.open(&self.draft).map_err(Error::at(&self.draft))?;
        if let Ok(before) = fs::metadata(&self.index) {
            file.set_permissions(before.permissions()).map_err(Error::at(&self.draft))?;
        }
        file.sync_all().map_err(Error::at(&self.draft))?;
        fs::rename(&self.draft, &self.index).map_err(Error::at(&self.index))?;
        self.index.parent().map_or(Ok(()), sync_folder)
    }
}

impl Drop for LockedIndex {
    fn drop(&mut self) {
        // Reaped later on if it cannot be removed now.
        let _ = self.own.remove_file(&self.draft);
    }
}

/// Brings the stat data of entries up to date whose content is that of the file, so that git need not read it again.
///
/// Only `paths` are looked at, and only content that is equal byte for byte counts: what a filter changes is left to git.
/// A held `index.lock` is waited for up to `timeout`, then [`Error::Locked`]. A split index is left as it is: git then
/// reads those files once more.
pub fn refresh_index(
    repo: &Repo,
    _lock: &WorktreeLock,
    paths: &[RepoPath],
    verified: &Verified,
    timeout: Duration,
) -> Result<()> {
    if repo.is_private() || paths.is_empty() || !repo.git_dir().join("index").exists() {
        return Ok(());
    }
    let locked = LockedIndex::acquire(repo, timeout)?;
    let Some(bytes) = locked.content()? else { return Ok(()) };
    let mut index = match IndexPatch::new(bytes) {
        Err(Error::Unsupported { .. }) => return Ok(()),
        other => other?,
    };
    let mut folders = Folders::new(openat::open_root(repo.workdir())?);
    let mut set = BTreeSet::new();
    for path in paths {
        let found = index.entry(path.as_bytes()).map(|entry| (entry.mode, entry.oid));
        if let Some(stat) = found.and_then(|(mode, oid)| content_of(&mut folders, path, mode, oid, verified)) {
            index.set(path.as_bytes(), &stat);
            set.insert(path);
        }
    }
    if set.is_empty() {
        return Ok(());
    }
    // A file that was changed in the second in which the index was written may look as if it was not. git knows from the
    // age of the index, which is about to be younger.
    let young: Vec<RepoPath> = index.young(locked.written()?).map(RepoPath::new).collect();
    for path in young.iter().filter(|path| !set.contains(path)) {
        let looks_unchanged = index.entry(path.as_bytes()).filter(|entry| looks_like(&mut folders, path, entry));
        let Some((mode, oid)) = looks_unchanged.map(|entry| (entry.mode, entry.oid)) else { continue };
        if content_of(&mut folders, path, mode, oid, verified).is_none() {
            index.doubt(path.as_bytes());
        }
    }
    match index.finish() {
        Some(bytes) => locked.put(Some(&bytes)),
        None => Ok(()),
    }
}

/// Puts the index of a checkpoint back: all stages, intent-to-add, assume-unchanged and skip-worktree.
pub fn restore_index(repo: &Repo, _lock: &WorktreeLock, from: &StoredCheckpoint, timeout: Duration) -> Result<()> {
    if repo.is_private() {
        return Ok(());
    }
    let locked = LockedIndex::acquire(repo, timeout)?;
    let Some(tree) = &from.index_tree else {
        return match fs::remove_file(&locked.index) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(&locked.index, error)),
            _ => Ok(()),
        };
    };
    let database = Database::open(repo)?;
    let mut folders = Folders::new(openat::open_root(repo.workdir())?);
    let flat = trees::read(&database, parse_oid(tree)?)?;
    let mut entries: BTreeMap<(RepoPath, u8), IndexEntry> = BTreeMap::new();
    for (path, (mode, oid)) in flat {
        entries.insert((path.clone(), 0), entry(&path, mode, oid));
    }
    for extra in &from.manifest.index_extras {
        let mut one = entry(&extra.path, extra.mode, parse_oid(&extra.oid)?);
        if extra.stage != 0 {
            // A conflicted path has no stage 0; the tree only held one of its sides.
            entries.remove(&(extra.path.clone(), 0));
        }
        one.flags |= u16::from(extra.stage) << 12;
        if extra.assume_unchanged {
            one.flags |= ASSUME_UNCHANGED;
        }
        one.flags_extended |= if extra.intent_to_add { INTENT_TO_ADD } else { 0 };
        one.flags_extended |= if extra.skip_worktree { SKIP_WORKTREE } else { 0 };
        entries.insert((extra.path.clone(), extra.stage), one);
    }
    let mut index = locked.empty()?;
    for ((path, stage), mut entry) in entries {
        if stage == 0 && entry.flags_extended & INTENT_TO_ADD == 0 {
            refresh(&mut folders, &path, &mut entry);
        }
        index.add(&entry).map_err(Error::git(format!("put {path} into the index")))?;
    }
    locked.write(index)
}

/// Whether the user's index holds what a checkpoint's does.
pub fn index_is(repo: &Repo, stored: &StoredCheckpoint) -> Result<bool> {
    let now = UserIndex::read(repo)?;
    let tree = now.tree(&mut trees::only_ids())?.map(|tree| ObjectId(tree.to_string()));
    Ok(tree == stored.index_tree && now.extras == stored.manifest.index_extras)
}

fn entry(path: &RepoPath, mode: u32, id: Oid) -> IndexEntry {
    let zero = IndexTime::new(0, 0);
    IndexEntry {
        ctime: zero,
        mtime: zero,
        dev: 0,
        ino: 0,
        mode,
        uid: 0,
        gid: 0,
        file_size: 0,
        id,
        flags: 0,
        flags_extended: 0,
        path: path.as_bytes().to_vec(),
    }
}

/// Takes over the stat data of the file if it is what the entry says.
fn refresh(folders: &mut Folders, path: &RepoPath, entry: &mut IndexEntry) {
    let none = Verified::default();
    let Some(stat) = content_of(folders, path, entry.mode, entry.id, &none) else { return };
    entry.ctime = time(stat.ctime);
    entry.mtime = time(stat.mtime);
    (entry.dev, entry.ino, entry.uid, entry.gid, entry.file_size) = (stat.dev, stat.ino, stat.uid, stat.gid, stat.size);
}

#[allow(clippy::cast_possible_wrap)]
fn time((seconds, nanos): (u32, u32)) -> IndexTime {
    IndexTime::new(seconds as i32, nanos)
}

/// Whether size and time of a file are those of its entry.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn looks_like(folders: &mut Folders, path: &RepoPath, entry: &IndexEntryRef<'_>) -> bool {
    let (parent, name) = openat::split(path);
    let stat = folders.open(&parent).and_then(|dir| openat::stat(&dir, name));
    stat.ok().flatten().is_some_and(|stat| {
        stat.size as u32 == entry.size && stat.mtime.div_euclid(1_000_000_000) as u32 == entry.mtime.0
    })
}

/// The metadata of a file that has this git file mode and this content, which is read unless it was verified and the file
/// is the same since. git keeps 32 bits of each number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn content_of(folders: &mut Folders, path: &RepoPath, mode: u32, oid: Oid, verified: &Verified) -> Option<EntryStat> {
    let (parent, name) = openat::split(path);
    let dir = folders.open(&parent).ok()?;
    let owner = rustix::fs::statat(&*dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let known = verified.content(path).filter(|(_, seen)| openat::stat(&dir, name).is_ok_and(|now| now == Some(*seen)));
    let (found, stat) = known.or_else(|| found::hash(&dir, name).ok()?)?;
    let same_kind = stat.kind() == rustix::fs::FileType::from_raw_mode(mode);
    let executable = stat.mode & 0o100 != 0;
    let same_mode = mode == 0o120_000 || (mode == 0o100_755) == executable;
    if found != oid || !same_kind || !same_mode {
        return None;
    }
    let time = |nanos: i64| (nanos.div_euclid(1_000_000_000) as u32, nanos.rem_euclid(1_000_000_000) as u32);
    Some(EntryStat {
        ctime: time(stat.ctime),
        mtime: time(stat.mtime),
        dev: stat.dev as u32,
        ino: stat.ino as u32,
        uid: owner.st_uid,
        gid: owner.st_gid,
        size: stat.size as u32,
    })
}
