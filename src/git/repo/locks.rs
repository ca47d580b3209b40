//! The lock of a work tree, and git's own lock files.
//!
//! A work tree's is a kernel lock on `$GIT_DIR/recover/lock`: it is gone when its holder is, so nothing is ever stale. Everything
//! that writes takes a [`WorktreeLock`], so that a write without the lock does not compile.
//!
//! git's own are taken so that one left by a dead process of ours can be distinguished from a foreign one. git's protocol
//! is kept: who makes `X.lock` may replace `X`. Ours is a hard link to a mark in the worktree's own folder, which says which
//! lock it is; where there are no hard links, it holds the mark's name. Marks are made under the worktree's lock only, so
//! whoever holds that finds only those of the dead. A foreign lock is waited for and never deleted.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::repository::Repo;
use crate::durable::{FileLock, LockError, Root, Sync, TemporaryFolder, cannot_link};
use crate::git::base::error::{At as _, Error, Result, present};
use crate::model::time::spoken_duration;

/// How often a held lock is tried again.
const POLL: Duration = Duration::from_millis(20);

/// What the names of marks begin with; then a name of the lock.
const MARK: &str = "holds-";

/// A lock file of git's that is held; removed when dropped.
#[derive(Debug)]
pub(in crate::git) struct GitLock {
    lock: PathBuf,
    mark: PathBuf,
}

impl GitLock {
    /// Takes the lock of `path` (`path.lock`), waiting up to `timeout`. `name` marks the locks of a
    /// worktree that are held at once apart.
    pub(crate) fn acquire(repo: &Repo, name: &str, path: &Path, timeout: Duration) -> Result<Self> {
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let mark = repo.recover_dir()?.join(format!("{MARK}{name}"));
        // One of this process that could not be removed before: by another mark it would be a foreign one for ever.
        release(repo, &mark)?;
        repo.own()
            .write(&mark, lock.as_os_str().as_bytes(), Sync::Nothing)
            .at(&mark)?;
        let deadline = Instant::now() + timeout;
        loop {
            match link(&mark, &lock) {
                Ok(()) => return Ok(Self { lock, mark }),
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists
                        && Instant::now() < deadline =>
                {
                    std::thread::sleep(POLL);
                }
                Err(error) => {
                    // A mark without its lock is removed by whoever comes next.
                    let _ = fs::remove_file(&mark);
                    if error.kind() != io::ErrorKind::AlreadyExists {
                        return Err(Error::io(lock, error));
                    }
                    let holder = foreign_holder(&lock);
                    return Err(Error::Locked { file: lock, holder });
                }
            }
        }
    }
}

/// Makes the lock of a mark, unless there is one.
fn link(mark: &Path, lock: &Path) -> io::Result<()> {
    match fs::hard_link(mark, lock) {
        Err(error) if cannot_link(&error) => {}
        linked => return linked,
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(lock)?;
    file.write_all(mark.as_os_str().as_bytes())
        .inspect_err(|_| {
            // One that is empty would be a foreign one.
            let _ = fs::remove_file(lock);
        })
}

impl Drop for GitLock {
    fn drop(&mut self) {
        // The mark goes last: by it what cannot be removed now is distinguished from a foreign lock later on.
        if fs::remove_file(&self.lock).is_ok() {
            let _ = fs::remove_file(&self.mark);
        }
    }
}

/// Removes the locks that dead processes of ours left. The worktree's lock is held.
fn release_left_over(repo: &Repo) -> Result<()> {
    let own = repo.own_folder();
    for (name, _) in repo.own().list(&own).at(&own)? {
        if !name.as_encoded_bytes().starts_with(MARK.as_bytes()) {
            continue;
        }
        release(repo, &own.join(name))?;
    }
    Ok(())
}

/// Removes the lock that a mark is of, and the mark, where they are there.
fn release(repo: &Repo, mark: &Path) -> Result<()> {
    if let Some(lock) = marked(repo, mark)? {
        fs::remove_file(&lock).at(&lock)?;
    }
    present(mark, fs::remove_file(mark)).map(drop)
}

/// The lock that a mark is of, while it is there and ours. A mark that a power failure left empty, as it is not synced, is
/// of the lock that is the same file.
fn marked(repo: &Repo, mark: &Path) -> Result<Option<PathBuf>> {
    let (root, name) = Root::of_file(mark);
    let Some(lock) = present(mark, root.read(Path::new(name)))? else {
        return Ok(None);
    };
    let lock = PathBuf::from(OsStr::from_bytes(&lock));
    let Some(marked) = identity(mark) else {
        return Ok(None);
    };
    let is_ours = |lock: &PathBuf| identity(lock) == Some(marked) || names(lock, mark);
    if is_ours(&lock) {
        return Ok(Some(lock));
    }
    Ok(lock_files(repo)?.into_iter().find(is_ours))
}

/// Whether a lock says whose it is, as one does on a file system without hard links.
fn names(lock: &Path, mark: &Path) -> bool {
    fs::read(lock).is_ok_and(|content| content == mark.as_os_str().as_bytes())
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path)
        .map(|found| (found.dev(), found.ino()))
        .ok()
}

/// A lock of git's that no `recover` made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignLock {
    /// The lock file.
    pub path: PathBuf,
    /// When it was last written to.
    pub modified: SystemTime,
    identity: (u64, u64),
}

impl ForeignLock {
    fn of(path: PathBuf) -> Option<Self> {
        let found = fs::symlink_metadata(&path).ok()?;
        Some(Self {
            modified: found.modified().ok()?,
            identity: (found.dev(), found.ino()),
            path,
        })
    }

    /// How long ago it was last written to.
    pub(crate) fn age(&self) -> Duration {
        self.modified.elapsed().unwrap_or_default()
    }

    /// Removes it where it is still the same; whether it was.
    pub(crate) fn remove(&self) -> Result<bool> {
        if Self::of(self.path.clone()).as_ref() != Some(self) {
            return Ok(false);
        }
        fs::remove_file(&self.path).at(&self.path)?;
        Ok(true)
    }
}

fn foreign_holder(lock: &Path) -> String {
    let age = ForeignLock::of(lock.to_owned()).map(|lock| spoken_duration(lock.age()));
    age.map_or_else(
        || "another git process".to_owned(),
        |age| format!("another git process, or left by one ({age} old)"),
    )
}

impl Repo {
    /// The locks that others than `recover` hold, or left, in this work tree and its repository.
    pub(crate) fn foreign_locks(&self) -> Result<Vec<ForeignLock>> {
        let locks = lock_files(self)?.into_iter().filter_map(ForeignLock::of);
        let marks: Vec<PathBuf> = all_marks(self)?
            .into_iter()
            .flat_map(|(_, marks)| marks)
            .collect();
        let is_of = |lock: &ForeignLock, mark: &PathBuf| {
            identity(mark) == Some(lock.identity) || names(&lock.path, mark)
        };
        Ok(locks
            .filter(|lock| !marks.iter().any(|mark| is_of(lock, mark)))
            .collect())
    }

    /// The locks of git's that dead processes of ours left in any work tree of the repository: they keep git from working.
    /// Nothing is waited for: where a process of ours is at work, its locks are its own.
    pub(crate) fn left_over_locks(&self) -> Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for (own, marks) in all_marks(self)? {
            match FileLock::acquire_unnoticed(&Root::own(&own), Path::new("lock"), Duration::ZERO) {
                Ok(_held) => {
                    for mark in marks {
                        found.extend(marked(self, &mark)?);
                    }
                }
                Err(LockError::Held { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    /// Removes them. Returns which.
    pub(crate) fn remove_left_over_locks(&self, timeout: Duration) -> Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        for (own, marks) in all_marks(self)? {
            let _held = FileLock::acquire(&Root::own(&own), Path::new("lock"), timeout)?;
            for mark in marks {
                removed.extend(marked(self, &mark)?);
                release(self, &mark)?;
            }
        }
        Ok(removed)
    }
}

/// The lock files of index, HEAD, references and configuration that there are.
fn lock_files(repo: &Repo) -> Result<Vec<PathBuf>> {
    let (own, common) = (repo.git_dir(), repo.common_dir());
    let of_own = ["index.lock", "HEAD.lock", "config.worktree.lock"].map(|name| own.join(name));
    let of_all = [
        "config.lock",
        "packed-refs.lock",
        "shallow.lock",
        "refs/stash.lock",
    ];
    let of_all = of_all.map(|name| common.join(name));
    let mut found: Vec<PathBuf> = of_own.into_iter().chain(of_all).collect();
    found.retain(|path| fs::symlink_metadata(path).is_ok());
    let mut folders = vec![];
    folders.extend(["refs/heads", "refs/remotes", "refs/tags"].map(|name| common.join(name)));
    while let Some(folder) = folders.pop() {
        for path in list(&folder)? {
            let kind = fs::symlink_metadata(&path).map(|found| found.file_type());
            if kind.is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if path.extension() == Some(OsStr::new("lock")) {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// The folders of our own, one for each work tree of the repository, in which there are marks.
fn all_marks(repo: &Repo) -> Result<Vec<(PathBuf, Vec<PathBuf>)>> {
    let linked = list(&repo.common_dir().join("worktrees"))?;
    let folders = linked
        .into_iter()
        .chain([repo.common_dir().to_owned()])
        .map(|folder| folder.join("recover"));
    let mut all = Vec::new();
    for own in folders {
        let is_mark = |path: &PathBuf| {
            path.file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(MARK.as_bytes()))
        };
        let marks: Vec<PathBuf> = list(&own)?.into_iter().filter(is_mark).collect();
        if !marks.is_empty() {
            all.push((own, marks));
        }
    }
    Ok(all)
}

/// What a folder holds; nothing where it is not there.
fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = present(folder, fs::read_dir(folder))?.into_iter().flatten();
    entries.map(|entry| Ok(entry.at(folder)?.path())).collect()
}

/// Proof that this process alone writes in the work tree.
///
/// Released when it and every [`Capture`](crate::git::capture::Capture) made under it are dropped: a capture's objects lie in
/// the worktree's quarantine until they are published, and nobody else may write there meanwhile.
#[derive(Debug)]
pub struct WorktreeLock {
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    /// Holds the kernel lock; closed on drop. Without it where a rehearsal found nothing to lock.
    _file: Option<FileLock>,
    /// Where quarantines are.
    folder: PathBuf,
    /// The folder of quarantines of a rehearsal, removed with it.
    scratch: Option<TemporaryFolder>,
    /// One bit for each quarantine that is in use.
    slots: AtomicU64,
}

/// A quarantine of this worktree that nobody else uses.
#[derive(Debug)]
pub(in crate::git) struct Slot {
    held: Arc<Held>,
    /// Which one, from 0.
    pub number: u32,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.held
            .slots
            .fetch_and(!(1 << self.number), Ordering::AcqRel);
    }
}

impl WorktreeLock {
    /// Takes the lock, waiting up to `timeout`; after that [`Error::Locked`] names the holder.
    pub fn acquire(repo: &Repo, timeout: Duration) -> Result<Self> {
        let own = repo.recover_dir()?;
        let file = FileLock::acquire(repo.own(), &own.join("lock"), timeout)?;
        if file.is_without_kernel() {
            let text = "the file system has no kernel locks (flock): files that name their holder are used instead";
            repo.say_once("without-flock", text);
        }
        // Temporary files in the worktree's own folder are written under this lock only.
        repo.own().reap(&own);
        release_left_over(repo)?;
        Ok(Self::of(Some(file), own, None))
    }

    /// The lock for a rehearsal: what is captured under it lies in a temporary folder elsewhere, cannot be published and
    /// is removed with it. Neither the repository nor the worktree's own folder is written to, and nothing is made there.
    pub fn rehearse(repo: &Repo, timeout: Duration) -> Result<Self> {
        let file =
            FileLock::acquire_unnoticed(repo.own(), &repo.own_folder().join("lock"), timeout)?;
        let scratch = TemporaryFolder::new().at(&std::env::temp_dir())?;
        Ok(Self::of(file, scratch.path().to_owned(), Some(scratch)))
    }

    fn of(file: Option<FileLock>, folder: PathBuf, scratch: Option<TemporaryFolder>) -> Self {
        Self {
            held: Arc::new(Held {
                _file: file,
                folder,
                scratch,
                slots: AtomicU64::new(0),
            }),
        }
    }

    /// The folder that holds the quarantines.
    pub(in crate::git) fn folder(&self) -> &Path {
        &self.held.folder
    }

    /// Whether nothing may come of what is done under it.
    pub fn is_rehearsal(&self) -> bool {
        self.held.scratch.is_some()
    }

    /// A free quarantine; `None` when 64 captures are held at once.
    pub(in crate::git) fn slot(&self) -> Option<Slot> {
        let free = |used: u64| (used != u64::MAX).then_some(used | (used + 1));
        let used = self
            .held
            .slots
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, free);
        Some(Slot {
            held: Arc::clone(&self.held),
            number: used.ok()?.trailing_ones(),
        })
    }

    /// Whether no capture is held.
    pub(in crate::git) fn is_idle(&self) -> bool {
        self.held.slots.load(Ordering::Acquire) == 0
    }
}
