//! Whether a recorded `recover` is alive.
//!
//! Each one that supervises something holds a lock (`flock`) on a file of its own in the state directory, and writes the
//! time into it.
//! The lock is exact, also from another PID namespace, and ends with the process. The time is for where locks do not work or
//! do not reach. Process numbers are compared only within one boot and one PID namespace; elsewhere they are for messages.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::durable::{Root, Sync};
use crate::model::ProcessId;
use crate::policy::remote::is_elsewhere;
use crate::process::Supervised;
use crate::store::Store;

use super::clock::{Moment, millis};

/// The time between two beats.
pub(super) const PERIOD: Duration = Duration::from_secs(15);
/// A holder whose last beat is older was suspended: it verifies that nobody took its place.
const SUSPENDED_AFTER: u32 = 4;
/// Without a lock a process counts as dead after this many periods without a beat.
const DEAD_AFTER: u32 = 6;
/// How far a beat of another machine may lie in the future, as its clock may be ahead.
const CLOCK_SKEW: Duration = Duration::from_secs(3600);
/// The file of a process that was killed is removed after this time.
const LEFT: Duration = Duration::from_secs(24 * 3600);
/// The length of a beat, padded: a shorter one replaces a longer one by a single write.
const LENGTH: usize = 160;

/// What the file holds.
#[derive(Debug, Serialize, Deserialize)]
struct Beat {
    at: Moment,
    every_ms: u64,
}

impl Beat {
    /// Whether so long ago nobody can have been alive. A file without a beat has none for ever.
    fn is_stale(file: &File) -> bool {
        let mut bytes = vec![0; LENGTH];
        let Ok(length) = file.read_at(&mut bytes, 0) else {
            return true;
        };
        let Ok(beat) = serde_json::from_slice::<Self>(bytes[..length].trim_ascii()) else {
            return true;
        };
        let period = Duration::from_millis(beat.every_ms).min(PERIOD);
        let of_other_boot = || {
            let modified = file.metadata().and_then(|found| found.modified()).ok()?;
            let ahead = |error: std::time::SystemTimeError| {
                (error.duration() < CLOCK_SKEW).then_some(Duration::ZERO)
            };
            SystemTime::now()
                .duration_since(modified)
                .map_or_else(ahead, Some)
        };
        beat.at
            .age()
            .or_else(of_other_boot)
            .is_none_or(|age| age > period * DEAD_AFTER)
    }
}

fn folder(store: &Store) -> PathBuf {
    store.private_dir().join("heartbeats")
}

/// The heartbeat file of a process. The name came from the ledger: only a plain one is a file's.
fn file_of(store: &Store, id: &ProcessId) -> Option<PathBuf> {
    let name = id.heartbeat.as_deref()?;
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_plain.then(|| folder(store).join(name))
}

/// Whether a `recover` that was recorded is alive. One of a version before heartbeats is judged by its process number.
pub(crate) fn is_alive(store: &Store, id: &ProcessId) -> bool {
    if store.others_live() && id.boot_id.as_deref().is_some_and(is_elsewhere) {
        return true;
    }
    let Some(path) = file_of(store, id) else {
        return id.is_alive();
    };
    let Ok(file) = store.root().open(&path) else {
        return id.is_alive();
    };
    // Shared: who asks at the same time is not in the way.
    if matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        return true;
    }
    let is_gone = id.is_comparable() && !id.is_alive();
    !is_gone && !Beat::is_stale(&file)
}

/// When a recorded `recover` last beat, where its file is there.
pub(crate) fn last_beat(store: &Store, id: &ProcessId) -> Option<SystemTime> {
    let file = store.root().open(&file_of(store, id)?).ok()?;
    file.metadata().ok()?.modified().ok()
}

/// Marks a process that is not alive as replaced: if it comes back after all, from a suspended machine for example, it finds
/// that out and ends what it supervises.
pub(crate) fn mark_replaced(store: &Store, id: &ProcessId) {
    let Some(path) = file_of(store, id) else {
        return;
    };
    if let Err(error) = store.root().write(&path, b"replaced\n", Sync::Nothing) {
        tracing::debug!(%error, path = %path.display(), "the heartbeat file was not marked");
    }
}

/// The heartbeat of this process, until it is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat {
    id: ProcessId,
    root: Root,
    path: PathBuf,
    /// Whether the file system has locks.
    pub has_lock: bool,
    is_replaced: Arc<AtomicBool>,
    beating: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Heartbeat {
    /// Starts it, in a thread of its own.
    pub(crate) fn start(store: &Store, period: Duration) -> io::Result<Self> {
        let (root, folder) = (store.root().clone(), folder(store));
        root.create_dir_all(&folder)?;
        remove_left(&root, &folder);
        let name = format!("{:032x}", fastrand::u128(..));
        let path = folder.join(&name);
        let id = ProcessId {
            heartbeat: Some(name),
            ..ProcessId::own()
        };
        let mut beater = Beater {
            file: root.open_or_create(&path)?,
            root: root.clone(),
            path: path.clone(),
            period,
        };
        let has_lock = beater.lock()?;
        beater.beat()?;
        let is_replaced = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = channel::<()>();
        let shared = Arc::clone(&is_replaced);
        let thread = thread::Builder::new()
            .name("heartbeat".to_owned())
            .spawn(move || {
                let mut last = Moment::now();
                while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
                    let was_suspended =
                        last.age().is_some_and(|age| age > period * SUSPENDED_AFTER);
                    let mut goes_on = || {
                        let goes_on = beater.go_on();
                        shared.store(!goes_on, Ordering::SeqCst);
                        goes_on
                    };
                    if was_suspended {
                        Supervised::hold_all_while(goes_on);
                    } else if !goes_on() {
                        Supervised::hold_all_while(|| false);
                    }
                    if shared.load(Ordering::SeqCst) {
                        break;
                    }
                    last = Moment::now();
                }
            })?;
        Ok(Self {
            id,
            root,
            path,
            has_lock,
            is_replaced,
            beating: Some((stop, thread)),
        })
    }

    /// The id to record this process by.
    pub(crate) fn id(&self) -> &ProcessId {
        &self.id
    }

    /// Whether another process took this one for dead and went on in its place.
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::SeqCst)
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.beating.take() {
            drop(stop);
            // It does not panic; if it did, there is nothing left to stop.
            let _ = thread.join();
        }
        if let Err(error) = self.root.remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the heartbeat file stays");
        }
    }
}

/// What the thread works with.
struct Beater {
    root: Root,
    path: PathBuf,
    file: File,
    period: Duration,
}

impl Beater {
    /// Takes the lock; false where the file system has none.
    fn lock(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => {
                let unsupported =
                    [Errno::NOLCK, Errno::NOSYS, Errno::OPNOTSUPP].map(Errno::raw_os_error);
                if error
                    .raw_os_error()
                    .is_some_and(|code| unsupported.contains(&code))
                {
                    Ok(false)
                } else {
                    Err(error)
                }
            }
        }
    }

    fn beat(&self) -> io::Result<()> {
        let beat = Beat {
            at: Moment::now(),
            every_ms: millis(self.period),
        };
        let line = serde_json::to_string(&beat)?;
        self.file.write_all_at(
            format!("{line:<width$}\n", width = LENGTH - 1).as_bytes(),
            0,
        )
    }

    /// Beats. False where the file was replaced, which says that another process took this one for dead; one that was only
    /// removed is made again.
    fn go_on(&mut self) -> bool {
        let beaten = (|| {
            if !self.root.names(&self.path, &self.file)? {
                if self.root.has(&self.path)? {
                    return Ok(false);
                }
                if let Some(folder) = self.path.parent() {
                    self.root.create_dir_all(folder)?;
                }
                self.file = self.root.open_or_create(&self.path)?;
                self.lock()?;
            }
            self.beat().map(|()| true)
        })();
        // A full disk is no reason to stop: the lock is still held.
        beaten.unwrap_or_else(|error: io::Error| {
            tracing::debug!(%error, path = %self.path.display(), "no heartbeat");
            true
        })
    }
}

/// Removes what processes left that were killed long ago, and at once what they had not finished.
fn remove_left(root: &Root, folder: &Path) {
    root.reap(folder);
    for (name, _) in root.list(folder).unwrap_or_default() {
        let path = folder.join(name);
        let is_left = || -> io::Result<bool> {
            let file = root.open(&path)?;
            let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
            Ok(age > LEFT && file.try_lock_shared().is_ok())
        };
        if is_left().unwrap_or(false)
            && let Err(error) = root.remove_file(&path)
        {
            tracing::debug!(%error, path = %path.display(), "the heartbeat file stays");
        }
    }
}
