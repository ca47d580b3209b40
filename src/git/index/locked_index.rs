//! The user's index, locked to be written.
//!
//! git's own protocol is kept: who holds `index.lock` (see `repo::locks`) may replace the index, by rename.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use git2::{Index, IndexEntry, IndexTime, Oid};

use super::index_file::{EntryStat, INTENT_TO_ADD, IndexEntryRef};
use super::user_index::open_index;
use crate::durable::{Root, give_to_sudo_caller, temporary_prefix};
use crate::git::base::openat::{self, hash_file};
use crate::git::base::{At as _, DirfdCache, Error, FileStat, Result, present, sync_folder};
use crate::git::odb::trees::Flat;
use crate::git::repo::locks::GitLock;
use crate::git::repo::repository::Repo;
use crate::model::path::RepoPath;
use crate::os::file_type;

/// The user's index, locked; the lock goes with it.
pub(in crate::git) struct LockedIndex {
    index: PathBuf,
    draft: PathBuf,
    /// The way to the draft.
    own: Root,
    _lock: GitLock,
}

impl LockedIndex {
    /// Takes git's lock of the index, waiting up to `timeout`; after that [`Error::Locked`].
    pub(crate) fn acquire(repo: &Repo, timeout: Duration) -> Result<Self> {
        let own = repo.recover_dir()?;
        let index = repo.git_dir().join("index");
        let lock = GitLock::acquire(repo, "index", &index, timeout)?;
        let draft = own.join(format!("{}index", temporary_prefix()));
        Ok(Self {
            index,
            draft,
            own: repo.own().clone(),
            _lock: lock,
        })
    }

    /// A copy of the index to change; an empty one if there is none.
    fn draft(&self) -> Result<Index> {
        if let Some(bytes) = self.content()? {
            self.fill(&bytes)?;
        }
        open_index(&self.draft)
    }

    fn fill(&self, bytes: &[u8]) -> Result<()> {
        let filled = self
            .own
            .for_all()
            .create(&self.draft)
            .and_then(|mut draft| draft.write_all(bytes));
        filled.at(&self.draft)
    }

    /// An empty index to fill.
    pub(crate) fn empty(&self) -> Result<Index> {
        match self.draft() {
            Ok(mut index) => index
                .clear()
                .map(|()| index)
                .map_err(Error::git("clear the index")),
            // One that cannot be changed, split or sparse or damaged, is written anew.
            Err(Error::Unsupported(_) | Error::Corrupt(_)) => {
                self.own.remove_file(&self.draft).at(&self.draft)?;
                open_index(&self.draft)
            }
            Err(error) => Err(error),
        }
    }

    /// The index as it is.
    pub(crate) fn read(&self) -> Result<Index> {
        self.draft()
    }

    /// The bytes of the index; `None` where there is none.
    pub(crate) fn content(&self) -> Result<Option<Vec<u8>>> {
        present(&self.index, fs::read(&self.index))
    }

    /// The second in which the index was written, in 32 bits.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn written(&self) -> Result<u32> {
        fs::metadata(&self.index)
            .map(|found| found.mtime() as u32)
            .at(&self.index)
    }

    /// Puts the index that these bytes are in place of what is there; `None` is none.
    pub(crate) fn put(&self, content: Option<&[u8]>) -> Result<()> {
        match content {
            Some(bytes) => {
                self.fill(bytes)?;
                self.replace()
            }
            None => fs::remove_file(&self.index).at(&self.index),
        }
    }

    /// Removes the index, where there is one.
    pub(crate) fn remove(&self) -> Result<()> {
        present(&self.index, fs::remove_file(&self.index)).map(drop)
    }

    /// Makes the index hold exactly these entries, as after a commit of them. Entries that are right already keep their
    /// stat data and their flags.
    pub(crate) fn follow(&self, repo: &Repo, flat: &Flat) -> Result<()> {
        let mut index = self.draft()?;
        let mut folders = DirfdCache::of(repo.workdir())?;
        let on_disk = |path: &RepoPath| path.below(std::path::Path::new(""));
        let stage = |entry: &IndexEntry| (entry.flags >> 12) & 3;
        let right = |entry: &IndexEntry| {
            let wanted = flat.get(&RepoPath::new(entry.path.clone()));
            stage(entry) == 0
                && entry.flags_extended & INTENT_TO_ADD == 0
                && wanted == Some(&(entry.mode, entry.id))
        };
        let wrong: Vec<IndexEntry> = index.iter().filter(|entry| !right(entry)).collect();
        for entry in wrong {
            let (stage, path) = (i32::from(stage(&entry)), RepoPath::new(entry.path));
            index
                .remove(&on_disk(&path), stage)
                .map_err(Error::git(format!("take {path} out of the index")))?;
        }
        for (path, entry) in flat {
            if index.get_path(&on_disk(path), 0).is_none() {
                put_fresh(&mut index, &mut folders, path, *entry)?;
            }
        }
        self.write(index)
    }

    /// Makes the index hold this of some paths (`None`: nothing), and leaves the others as they are.
    pub(crate) fn change(
        &self,
        repo: &Repo,
        wanted: &BTreeMap<RepoPath, Option<(u32, Oid)>>,
    ) -> Result<()> {
        let mut index = self.draft()?;
        let mut folders = DirfdCache::of(repo.workdir())?;
        let on_disk = |path: &RepoPath| path.below(std::path::Path::new(""));
        // First what goes: a file may stand where a folder was.
        let known: Vec<&RepoPath> = wanted
            .keys()
            .filter(|path| index.get_path(&on_disk(path), 0).is_some())
            .collect();
        for path in known {
            index
                .remove(&on_disk(path), 0)
                .map_err(Error::git(format!("take {path} out of the index")))?;
        }
        for (path, entry) in wanted {
            if let Some(entry) = entry {
                put_fresh(&mut index, &mut folders, path, *entry)?;
            }
        }
        self.write(index)
    }

    pub(crate) fn write(&self, mut draft: Index) -> Result<()> {
        draft.write().map_err(Error::git("write the index"))?;
        self.replace()
    }

    /// Puts the draft in the index's place, durably.
    fn replace(&self) -> Result<()> {
        // git's library made it.
        give_to_sudo_caller(&self.draft).at(&self.draft)?;
        let file = self.own.open(&self.draft).at(&self.draft)?;
        if let Ok(before) = fs::metadata(&self.index) {
            file.set_permissions(before.permissions()).at(&self.draft)?;
        }
        file.sync_all().at(&self.draft)?;
        fs::rename(&self.draft, &self.index).at(&self.index)?;
        self.index.parent().map_or(Ok(()), sync_folder)
    }
}

impl Drop for LockedIndex {
    fn drop(&mut self) {
        // Reaped later on if it cannot be removed now.
        let _ = self.own.remove_file(&self.draft);
    }
}

/// Adds an entry, with the metadata of the file where that has its content.
fn put_fresh(
    index: &mut Index,
    folders: &mut DirfdCache,
    path: &RepoPath,
    (mode, oid): (u32, Oid),
) -> Result<()> {
    let mut entry = entry(path, mode, oid);
    refresh(folders, path, &mut entry);
    index
        .add(&entry)
        .map_err(Error::git(format!("put {path} into the index")))
}

pub(in crate::git) fn entry(path: &RepoPath, mode: u32, id: Oid) -> IndexEntry {
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
pub(in crate::git) fn refresh(folders: &mut DirfdCache, path: &RepoPath, entry: &mut IndexEntry) {
    if let Some(stat) = content_of(folders, path, entry.mode, entry.id, None) {
        set_stat(entry, &stat);
    }
}

/// Gives an entry this metadata.
#[allow(clippy::cast_possible_wrap)]
pub(in crate::git) fn set_stat(entry: &mut IndexEntry, stat: &EntryStat) {
    let time = |(seconds, nanos): (u32, u32)| IndexTime::new(seconds as i32, nanos);
    (entry.ctime, entry.mtime) = (time(stat.ctime), time(stat.mtime));
    (entry.dev, entry.ino, entry.uid, entry.gid, entry.file_size) =
        (stat.dev, stat.ino, stat.uid, stat.gid, stat.size);
}

/// Whether size and time of a file are those of its entry.
pub(in crate::git) fn looks_like(
    folders: &mut DirfdCache,
    path: &RepoPath,
    entry: &IndexEntryRef<'_>,
) -> bool {
    let (parent, name) = openat::split(path);
    let stat = folders
        .open(&parent)
        .and_then(|dir| openat::stat(&dir, name));
    stat.ok().flatten().is_some_and(|stat| {
        let (now, then) = (EntryStat::of(&stat, (0, 0)), entry.stat);
        (now.size, now.mtime.0) == (then.size, then.mtime.0)
    })
}

/// The metadata of a file that has this git file mode and this content, which is read unless it is `known`, and the file
/// is the same since.
pub(in crate::git) fn content_of(
    folders: &mut DirfdCache,
    path: &RepoPath,
    mode: u32,
    oid: Oid,
    known: Option<(Oid, FileStat)>,
) -> Option<EntryStat> {
    let (parent, name) = openat::split(path);
    let dir = folders.open(&parent).ok()?;
    let owner = rustix::fs::statat(&*dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let known =
        known.filter(|(_, seen)| openat::stat(&dir, name).is_ok_and(|now| now == Some(*seen)));
    let (found, stat) = known.or_else(|| hash_file(&dir, name).ok()?)?;
    let same_kind = stat.kind() == file_type(mode);
    let executable = stat.mode & 0o100 != 0;
    let same_mode = mode == 0o120_000 || (mode == 0o100_755) == executable;
    if found != oid || !same_kind || !same_mode {
        return None;
    }
    Some(EntryStat::of(&stat, (owner.st_uid, owner.st_gid)))
}
