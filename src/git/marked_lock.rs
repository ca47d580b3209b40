//! git's own lock files, taken so that one left by a dead process of ours can be told from a foreign one.
//!
//! git's protocol is kept: who makes `X.lock` may replace `X`. Ours is a hard link to a mark in the worktree's own
//! folder, which says which lock it is. Marks are made under the worktree's lock only, so whoever holds that finds only
//! those of the dead. A foreign lock is waited for and never deleted.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::{Error, Result};
use crate::durable::write_atomic_unsynced;

/// How often a held lock is tried again.
const POLL: Duration = Duration::from_millis(20);

/// What the names of marks begin with; then a name of the lock.
const MARK: &str = "holds-";

/// A lock file of git's that is held; removed when dropped.
#[derive(Debug)]
pub(super) struct MarkedLock {
    lock: PathBuf,
    mark: PathBuf,
}

impl MarkedLock {
    /// Takes the lock of `path` (`path.lock`), waiting up to `timeout`. `own` is the worktree's own folder; `name` tells
    /// the locks that are held at once apart.
    pub fn acquire(own: &Path, name: &str, path: &Path, timeout: Duration) -> Result<Self> {
        let mut lock = path.as_os_str().to_owned();
        lock.push(".lock");
        let lock = PathBuf::from(lock);
        let mark = own.join(format!("{MARK}{name}"));
        write_atomic_unsynced(&mark, lock.as_os_str().as_bytes()).map_err(Error::at(&mark))?;
        let deadline = Instant::now() + timeout;
        loop {
            match fs::hard_link(&mark, &lock) {
                Ok(()) => return Ok(Self { lock, mark }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && Instant::now() < deadline => {
                    std::thread::sleep(POLL);
                }
                Err(error) => {
                    // A mark without its lock is removed by whoever comes next.
                    let _ = fs::remove_file(&mark);
                    return Err(match error.kind() {
                        io::ErrorKind::AlreadyExists => {
                            Error::Locked { file: lock, holder: "another git process".to_owned() }
                        }
                        _ => Error::io(lock, error),
                    });
                }
            }
        }
    }
}

impl Drop for MarkedLock {
    fn drop(&mut self) {
        // The mark goes last: what cannot be removed now is told from a foreign lock by it later on.
        if fs::remove_file(&self.lock).is_ok() {
            let _ = fs::remove_file(&self.mark);
        }
    }
}

/// Removes the locks that dead processes of ours left. The worktree's lock is held.
pub(super) fn release_left_over(own: &Path) -> Result<()> {
    for entry in fs::read_dir(own).map_err(Error::at(own))?.flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(MARK.as_bytes()) {
            continue;
        }
        let mark = entry.path();
        let lock = PathBuf::from(OsStr::from_bytes(&fs::read(&mark).map_err(Error::at(&mark))?));
        let same = |one: &fs::Metadata, other: &fs::Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
        if let (Ok(marked), Ok(found)) = (fs::symlink_metadata(&mark), fs::symlink_metadata(&lock))
            && same(&marked, &found)
        {
            fs::remove_file(&lock).map_err(Error::at(&lock))?;
        }
        fs::remove_file(&mark).map_err(Error::at(&mark))?;
    }
    Ok(())
}
