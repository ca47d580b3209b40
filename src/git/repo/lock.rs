//! The lock of one work tree.
//!
//! A kernel lock on `$GIT_DIR/recover/lock`: it is gone when its holder is, so nothing is ever stale. Everything that
//! writes takes a [`WorktreeLock`], so that a write without the lock does not compile.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::git_lock::release_left_over;
use super::repository::Repo;
use crate::durable::{FileLock, TemporaryFolder};
use crate::git::base::error::{Error, Result};

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
        repo.untracked.write();
        Ok(Self::of(Some(file), own, None))
    }

    /// The lock for a rehearsal: what is captured under it lies in a temporary folder elsewhere, cannot be published and
    /// is removed with it. Neither the repository nor the worktree's own folder is written to, and nothing is made there.
    pub fn rehearse(repo: &Repo, timeout: Duration) -> Result<Self> {
        let file =
            FileLock::acquire_unnoticed(repo.own(), &repo.own_folder().join("lock"), timeout)?;
        let scratch = TemporaryFolder::new().map_err(Error::at(&std::env::temp_dir()))?;
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
        loop {
            let used = self.held.slots.load(Ordering::Acquire);
            let number = used.trailing_ones();
            if number >= u64::BITS {
                return None;
            }
            let taken = self.held.slots.fetch_or(1 << number, Ordering::AcqRel);
            if taken & (1 << number) == 0 {
                return Some(Slot {
                    held: Arc::clone(&self.held),
                    number,
                });
            }
        }
    }

    /// Whether no capture is held.
    pub(in crate::git) fn is_idle(&self) -> bool {
        self.held.slots.load(Ordering::Acquire) == 0
    }
}
