//! The lock of one work tree.
//!
//! A kernel lock on `$GIT_DIR/recover/lock`: it is gone when its holder is, so nothing is ever stale. Everything that writes takes a [`WorktreeLock`], so that a write without the lock does
//! not compile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::error::Result;
use super::marked_lock::release_left_over;
use super::repository::Repo;
use crate::durable::{FileLock, reap};

/// Proof that this process alone writes in the work tree.
///
/// Released when it and every [`Capture`](super::capture::Capture) made under it are dropped: a capture's objects lie in
/// the worktree's quarantine until they are published, and nobody else may write there meanwhile.
#[derive(Debug)]
pub struct WorktreeLock {
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    /// Holds the kernel lock; closed on drop.
    _file: FileLock,
    /// One bit for each quarantine that is in use.
    slots: AtomicU64,
}

/// A quarantine of this worktree that nobody else uses.
#[derive(Debug)]
pub(super) struct Slot {
    held: Arc<Held>,
    /// Which one, from 0.
    pub number: u32,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.held.slots.fetch_and(!(1 << self.number), Ordering::AcqRel);
    }
}

impl WorktreeLock {
    /// Takes the lock, waiting up to `timeout`; after that [`Error::Locked`](super::Error::Locked) names the holder.
    pub fn acquire(repo: &Repo, timeout: Duration) -> Result<Self> {
        let own = repo.recover_dir()?;
        let file = FileLock::acquire(&own.join("lock"), timeout)?;
        // Temporary files in the worktree's own folder are written under this lock only.
        reap(&own);
        release_left_over(&own)?;
        Ok(Self { held: Arc::new(Held { _file: file, slots: AtomicU64::new(0) }) })
    }

    /// A free quarantine; `None` when 64 captures are held at once.
    pub(super) fn slot(&self) -> Option<Slot> {
        loop {
            let used = self.held.slots.load(Ordering::Acquire);
            let number = used.trailing_ones();
            if number >= u64::BITS {
                return None;
            }
            let taken = self.held.slots.fetch_or(1 << number, Ordering::AcqRel);
            if taken & (1 << number) == 0 {
                return Some(Slot { held: Arc::clone(&self.held), number });
            }
        }
    }

    /// Whether no capture is held.
    pub(super) fn is_idle(&self) -> bool {
        self.held.slots.load(Ordering::Acquire) == 0
    }
}
