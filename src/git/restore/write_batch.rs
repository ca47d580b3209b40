//! Batches of temp files: how many a restore writes before they are synced together and renamed.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::git::base::openat::{self, MANY};
use crate::git::base::{At as _, FileStat, OnDisk, Result, whole_is_cheaper, work_queue};
use crate::model::{EntryKind, RepoPath};
use crate::os::{SYNCS_FILE_SYSTEMS, sync_file, sync_file_system};
use crate::policy::restore::PlannedWrite;

/// How many files at most are written between two syncs.
const BATCH: usize = if SYNCS_FILE_SYSTEMS { 4096 } else { 64 };
/// And how many bytes.
pub(super) const BATCH_BYTES: u64 = 64 << 20;
/// This many files are worth a thread of their own.
pub(super) const FILES_PER_THREAD: usize = 128;
/// This many descriptors are left to each thread, and as many for the folders that it goes through and the objects it reads.
const OPEN_PER_THREAD: usize = 32;

/// A file that is written beside its place.
pub(super) struct Pending<'p> {
    pub(in crate::git) write: &'p PlannedWrite,
    pub(in crate::git) dir: Rc<OwnedFd>,
    pub(in crate::git) parent: RepoPath,
    pub(in crate::git) name: &'p [u8],
    pub(in crate::git) temp: String,
    /// What was at its place when that was compared.
    pub(in crate::git) before: Option<FileStat>,
    /// What it was then.
    pub(in crate::git) found: OnDisk,
}

impl Pending<'_> {
    pub(super) fn discard(&self) {
        // It is reaped later on if it cannot be removed now.
        let _ = rustix::fs::unlinkat(&self.dir, self.temp.as_str(), AtFlags::empty());
    }
}

/// How much is written between two syncs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub files: usize,
    /// So much is on disk twice for a moment.
    pub bytes: u64,
    /// Descriptors of files and folders: half of what the process may open.
    pub open: usize,
}

impl Limits {
    /// How many threads so many files are worth, and what each may do. There are more than processors, since they wait for
    /// the disk to take what is new and to free what it replaces.
    pub(super) fn of(files: usize) -> (usize, Self) {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let limit = limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(usize::MAX);
        Self::with(limit, files, 2 * work_queue::threads())
    }

    /// Where a process may have `limit` descriptors.
    fn with(limit: usize, files: usize, most: usize) -> (usize, Self) {
        let open = (limit / 2).clamp(8, 4096);
        let threads = (files / FILES_PER_THREAD)
            .min(open / OPEN_PER_THREAD)
            .clamp(1, most);
        let of_one = |all: usize| (all / threads).max(4);
        (
            threads,
            Self {
                files: of_one(BATCH),
                bytes: BATCH_BYTES / threads as u64,
                open: of_one(open),
            },
        )
    }
}

/// Temp files that are synced together and then renamed.
#[derive(Default)]
pub(super) struct Batch<'p> {
    pub pending: Vec<Pending<'p>>,
    /// Those that are open: all while they are few, then one of each file system. A symlink is only a name and has none.
    open: Vec<(&'p RepoPath, File)>,
    /// Whether they are not all open any more.
    are_closed: bool,
    /// How many of them are files.
    files: usize,
    bytes: u64,
    /// How many times the folder was another than that of the path before.
    folders: usize,
}

impl<'p> Batch<'p> {
    /// Adds a temp file; its descriptor is kept only as long as it is needed for the sync.
    pub(super) fn add(&mut self, pending: Pending<'p>, file: Option<File>) -> Result<()> {
        let path = &pending.write.path;
        let last = self.pending.last();
        self.folders +=
            usize::from(last.is_none_or(|last| !std::rc::Rc::ptr_eq(&last.dir, &pending.dir)));
        self.pending.push(pending);
        let Some(file) = file else { return Ok(()) };
        self.files += 1;
        self.bytes += openat::stat_open(&file).on(path)?.size;
        self.open.push((path, file));
        if SYNCS_FILE_SYSTEMS && self.files >= MANY {
            self.are_closed = true;
            // A mount inside the work tree is another file system, with a sync of its own.
            let mut devices = BTreeSet::new();
            let device = |file: &File| openat::stat_open(file).map(|stat| stat.dev).ok();
            self.open
                .retain(|(_, file)| device(file).is_none_or(|device| devices.insert(device)));
        }
        Ok(())
    }

    /// Whether it is time to sync it.
    pub(super) fn is_full(&self, limits: Limits) -> bool {
        self.pending.len() >= limits.files
            || self.bytes >= limits.bytes
            || self.folders + self.open.len() >= limits.open
    }

    /// Makes the content of all of them durable.
    pub(super) fn sync(&mut self) -> Result<()> {
        let mut sync = Sync::new(self.files);
        let result = if self.are_closed && !sync.many {
            self.sync_closed(&mut sync)
        } else {
            self.open
                .iter()
                .try_for_each(|(path, file)| sync.add(path, file))
        };
        self.open.clear();
        (self.files, self.bytes, self.folders, self.are_closed) = (0, 0, 0, false);
        result
    }

    /// Opens each again to sync it. Those that their own mode forbids to read are synced with all else.
    fn sync_closed(&self, sync: &mut Sync) -> Result<()> {
        let is_file = |pending: &&Pending<'_>| pending.write.entry.kind != EntryKind::Symlink;
        for pending in self.pending.iter().filter(is_file) {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(&pending.dir, pending.temp.as_str(), flags, Mode::empty()) {
                Ok(file) => sync.add(&pending.write.path, file)?,
                Err(rustix::io::Errno::ACCESS) => {
                    let mut sync = Sync {
                        many: true,
                        synced: BTreeSet::new(),
                    };
                    return self
                        .open
                        .iter()
                        .try_for_each(|(path, file)| sync.add(path, file));
                }
                Err(error) => return Err(openat::io_error(&pending.write.path, error.into())),
            }
        }
        Ok(())
    }
}

/// Makes files or folders durable: each by itself, or whole file systems where that is cheaper.
pub(in crate::git) struct Sync {
    many: bool,
    synced: BTreeSet<u64>,
}

impl Sync {
    /// For so many files or folders.
    pub(super) fn new(count: usize) -> Self {
        Self {
            many: whole_is_cheaper(count),
            synced: BTreeSet::new(),
        }
    }

    /// Syncs an open one. All of them must have been written before the first is given.
    pub(super) fn add(&mut self, path: &RepoPath, file: impl std::os::fd::AsFd) -> Result<()> {
        if self.many {
            if self.synced.insert(openat::stat_open(&file).on(path)?.dev) {
                sync_file_system(&file).on(path)?;
            }
            return Ok(());
        }
        sync_file(&file).on(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_leave_one_another_descriptors() {
        for limit in [64, 128, 200, 256, 1024, 1 << 20, usize::MAX] {
            for most in [1, 2, 4, 16, 128] {
                let (threads, limits) = Limits::with(limit, 20_000, most);
                // Root, twelve folders, index and pack of an object, and what the process has open in any case.
                assert!(
                    threads * (limits.open + 15) + 16 <= limit,
                    "{limit} {most}: {threads} threads, {limits:?}"
                );
                assert!(threads <= most && threads * limits.open <= 4096);
            }
        }
        assert_eq!(Limits::with(1024, 127, 4).0, 1);
        assert_eq!(Limits::with(1024, 256, 4).0, 2);
        assert_eq!(Limits::with(8, 20_000, 4).1.open, 8);
    }
}
