//! The user's index, locked to be written.
//!
//! git's own protocol is kept: who holds `index.lock` (see `repo::locks`) may replace the index, by rename.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use git2::{Index, IndexEntry, IndexTime, Oid};

use super::index_file::{
    ASSUME_UNCHANGED, EXTENDED, EntryStat, INTENT_TO_ADD, IndexEntryRef, IndexFile, SKIP_WORKTREE,
};
use crate::durable::{Root, give_to_sudo_caller, temporary_prefix};
use crate::git::base::openat::{self, hash_file};
use crate::git::base::{
    At as _, DirfdCache, Error, FileStat, Result, parse_oid, present, sync_folder,
};
use crate::git::odb::trees::Flat;
use crate::git::repo::locks::GitLock;
use crate::git::repo::repository::Repo;
use crate::model::{Hint, IndexExtra, RepoPath};
use crate::os::file_type;

/// The user's index, locked; the lock goes with it.
pub(in crate::git) struct LockedIndex {
    index: PathBuf,
    draft: PathBuf,
    /// The way to the draft.
    own: Root,
    /// The root of the work tree.
    workdir: PathBuf,
    /// Whether git folds what it reads in full into a sparse index.
    is_folded: bool,
    _lock: GitLock,
}

impl LockedIndex {
    /// Takes git's lock of the index, waiting up to `timeout`; after that [`Error::Locked`].
    pub(crate) fn acquire(repo: &Repo, timeout: Duration) -> Result<Self> {
        let own = repo.recover_dir()?;
        let index = repo.git_dir().join("index");
        let lock = GitLock::acquire(repo, "index", &index, timeout)?;
        let draft = own.join(format!("{}index", temporary_prefix()));
        let config = repo.config()?;
        let is_set = |key: &&str| config.get_bool(key).unwrap_or(false);
        Ok(Self {
            index,
            draft,
            own: repo.own().clone(),
            workdir: repo.workdir().to_owned(),
            is_folded: ["core.sparseCheckout", "index.sparse"].iter().all(is_set),
            _lock: lock,
        })
    }

    fn fill(&self, bytes: &[u8]) -> Result<()> {
        let filled = self
            .own
            .for_all()
            .create(&self.draft)
            .and_then(|mut draft| draft.write_all(bytes));
        filled.at(&self.draft)
    }

    /// The entries of the index by path and stage; a split or sparse one in full. An entry whose file changed in the second in
    /// which the index was written is marked as git marks it: the index is about to be younger than that file.
    pub(crate) fn entries(&self, repo: &Repo, folders: &mut DirfdCache) -> Result<Entries> {
        let Some(read) = IndexFile::read(repo, &self.index)? else {
            return Ok(Entries::new());
        };
        let (written, mut entries) = (self.written()?, Entries::new());
        for found in read.entries() {
            let path = RepoPath::new(found.path);
            let mut one = entry_of(&found.extra())?;
            set_stat(&mut one, &found.stat);
            let doubtful =
                found.stat.mtime.0 >= written && found.stage == 0 && !found.intent_to_add;
            if doubtful
                && looks_like(folders, &path, &found)
                && content_of(folders, &path, found.mode, found.oid, None).is_none()
            {
                one.file_size = 0;
            }
            entries.insert((path, found.stage), one);
        }
        Ok(entries)
    }

    /// Makes the index hold exactly these entries; but none that is only intended to be added below a folder, where git folds
    /// folders: git 2.47 counts such a folder as -1 entries then, and repeats and loses others.
    pub(crate) fn set(&self, mut entries: Entries) -> Result<()> {
        let mut left = Vec::new();
        entries.retain(|(path, _), entry| {
            let is_left = self.is_folded
                && entry.flags_extended & INTENT_TO_ADD != 0
                && path.as_bytes().contains(&b'/');
            if is_left {
                left.push(path.below(Path::new("")));
            }
            !is_left
        });
        if !left.is_empty() {
            let again = Hint::git(["add", "--intent-to-add", "--"]).args(left);
            tracing::warn!(
                "the index is without what git add -N marked, as git damages it where index.sparse is set; this marks it \
                again: {}",
                again.at(self.workdir.as_path())
            );
        }
        let failed = || Error::git("write the index");
        present(&self.draft, self.own.remove_file(&self.draft))?;
        let mut index = Index::open(&self.draft).map_err(failed())?;
        // The version that git was told to write stays.
        if let Some(version) = self.content()?.as_deref().and_then(|bytes| bytes.get(7)) {
            index.set_version(u32::from(*version)).map_err(failed())?;
        }
        for ((path, _), entry) in entries {
            let added = index.add(&entry);
            added.map_err(Error::git(format!("put {path} into the index")))?;
        }
        index.write().map_err(failed())?;
        self.replace()
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

    /// Makes the index hold exactly these files, as after a commit of them. Entries that are right already keep their
    /// stat data and their flags.
    pub(crate) fn follow(&self, repo: &Repo, flat: &Flat) -> Result<()> {
        let mut folders = DirfdCache::of(repo.workdir())?;
        let mut entries = self.entries(repo, &mut folders)?;
        entries.retain(|(path, stage), entry| {
            *stage == 0
                && entry.flags_extended & INTENT_TO_ADD == 0
                && flat.get(path) == Some(&(entry.mode, entry.id))
        });
        for (path, file) in flat {
            let place = entries.entry((path.clone(), 0));
            place.or_insert_with(|| fresh(&mut folders, path, *file));
        }
        self.set(entries)
    }

    /// Makes the index hold this of some paths (`None`: nothing), and leaves the others as they are.
    pub(crate) fn change(
        &self,
        repo: &Repo,
        wanted: &BTreeMap<RepoPath, Option<(u32, Oid)>>,
    ) -> Result<()> {
        let mut folders = DirfdCache::of(repo.workdir())?;
        let mut entries = self.entries(repo, &mut folders)?;
        for (path, file) in wanted {
            let key = (path.clone(), 0);
            match file {
                Some(file) => drop(entries.insert(key, fresh(&mut folders, path, *file))),
                None => drop(entries.remove(&key)),
            }
        }
        self.set(entries)
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

/// What the index has of some paths, for git's library, which reads no split or sparse one itself. The entries are without
/// metadata: it compares contents.
pub(in crate::git) fn excerpt(repo: &Repo, is_wanted: impl Fn(&[u8]) -> bool) -> Result<Index> {
    let failed = || Error::git("read the index");
    let mut index = Index::new().map_err(failed())?;
    let Some(read) = IndexFile::read(repo, &repo.git_dir().join("index"))? else {
        return Ok(index);
    };
    for found in read.entries().filter(|found| is_wanted(found.path)) {
        index.add(&entry_of(&found.extra())?).map_err(failed())?;
    }
    Ok(index)
}

/// Entries by path and stage.
pub(in crate::git) type Entries = BTreeMap<(RepoPath, u8), IndexEntry>;

/// An entry with the metadata of the file, where that has its content.
fn fresh(folders: &mut DirfdCache, path: &RepoPath, (mode, id): (u32, Oid)) -> IndexEntry {
    let mut entry = entry(path, mode, id);
    refresh(folders, path, &mut entry);
    entry
}

/// An entry of a checkpoint, with the metadata of the file where that has its content.
pub(in crate::git) fn fresh_entry(
    folders: &mut DirfdCache,
    extra: &IndexExtra,
) -> Result<IndexEntry> {
    let mut one = entry_of(extra)?;
    if extra.stage == 0 && !extra.intent_to_add {
        refresh(folders, &extra.path, &mut one);
    }
    Ok(one)
}

/// An entry of a checkpoint, without metadata.
fn entry_of(extra: &IndexExtra) -> Result<IndexEntry> {
    let flag = |is_set: bool, flag: u16| if is_set { flag } else { 0 };
    let mut one = entry(&extra.path, extra.mode, parse_oid(&extra.oid)?);
    one.flags_extended =
        flag(extra.intent_to_add, INTENT_TO_ADD) | flag(extra.skip_worktree, SKIP_WORKTREE);
    // git's library sets the last itself, but not in an index of version 4.
    one.flags = u16::from(extra.stage) << 12
        | flag(extra.assume_unchanged, ASSUME_UNCHANGED)
        | flag(one.flags_extended != 0, EXTENDED);
    Ok(one)
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
fn refresh(folders: &mut DirfdCache, path: &RepoPath, entry: &mut IndexEntry) {
    if let Some(stat) = content_of(folders, path, entry.mode, entry.id, None) {
        set_stat(entry, &stat);
    }
}

/// Gives an entry this metadata.
#[allow(clippy::cast_possible_wrap)]
fn set_stat(entry: &mut IndexEntry, stat: &EntryStat) {
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
