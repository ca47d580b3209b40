//! The second copy's sync, once for many appends.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// In a process that goes on, later appends than this since the last sync are synced at once.
const LONGEST: Duration = Duration::from_secs(1);

/// The second copy's file as long as it may not be on disk. The ledger itself always is: a crash of the machine before
/// the sync costs nothing but another copy. Synced at the end of the process, and in between at most once a second.
#[derive(Debug)]
pub(super) struct Unsynced(Mutex<Pending>);

#[derive(Debug)]
struct Pending {
    file: Option<Arc<File>>,
    synced: Instant,
}

impl Default for Unsynced {
    fn default() -> Self {
        Self(Mutex::new(Pending {
            file: None,
            synced: Instant::now(),
        }))
    }
}

impl Unsynced {
    /// Something was written to the copy.
    pub(super) fn add(&self, file: Arc<File>) {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pending.file = Some(file);
        if pending.synced.elapsed() >= LONGEST {
            pending.sync();
        }
    }
}

impl Pending {
    fn sync(&mut self) {
        if let Some(file) = self.file.take()
            && let Err(error) = file.sync_data()
        {
            tracing::warn!(%error, "the ledger's second copy may not survive a crash of the machine");
        }
        self.synced = Instant::now();
    }
}

impl Drop for Unsynced {
    fn drop(&mut self) {
        self.0
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .sync();
    }
}
