//! What a supervised child and whoever watches over it know of each other: how much was printed, and that it is to end.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::table;

/// A handle that the supervisor and a watcher in another thread share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oversight(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    child: OnceLock<u32>,
    printed: AtomicU64,
    is_to_end: AtomicBool,
    /// Wakes the supervisor.
    wake: Mutex<Option<UnixStream>>,
}

impl Oversight {
    /// Bytes that the child has printed on both streams.
    pub(crate) fn printed(&self) -> u64 {
        self.0.printed.load(Ordering::Relaxed)
    }

    /// Has the child's group ended as a time limit ends it.
    pub(crate) fn end_child(&self) {
        self.0.is_to_end.store(true, Ordering::Release);
        if let Some(wake) = &mut *self.0.wake.lock() {
            // A full pipe wakes, too, and without one the supervisor notices within a second.
            let _ = wake.write(&[0]);
        }
    }

    /// Whether it is to end.
    pub(crate) fn is_to_end(&self) -> bool {
        self.0.is_to_end.load(Ordering::Acquire)
    }

    pub(super) fn add(&self, count: usize) {
        self.0.printed.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn wake_by(&self, wake: UnixStream) {
        *self.0.wake.lock() = Some(wake);
    }

    pub(super) fn begin(&self, child: u32) {
        // It is for one child.
        let _ = self.0.child.set(child);
    }

    /// Hundredths of a second of processor time that the child, its group and all that they started have used, with what they
    /// waited for; `None` where that is not known. What has ended unnoticed is no longer in it.
    pub(crate) fn cpu_time(&self) -> Option<u64> {
        let child = *self.0.child.get()?;
        let mut family = vec![child];
        let mut left = table::living()?;
        loop {
            let (found, others): (Vec<_>, Vec<_>) = left
                .into_iter()
                .partition(|one| one.group == child || family.contains(&one.parent));
            if found.is_empty() {
                family.sort_unstable();
                family.dedup();
                return Some(table::cpu_time(&family));
            }
            family.extend(found.iter().map(|entry| entry.pid));
            left = others;
        }
    }
}
