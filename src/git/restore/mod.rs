//! Carries out the files' part of a restore: checks the plan, writes and removes files, verifies them by reading them again.
//! Refreshes the user's index. What is restored is decided by `policy::restore`; HEAD, memory and nested repositories belong
//! in `engine::restore`.
//!
//! The journal of a restore, `$GIT_DIR/recover/journal.json`, is written before the first change of the work tree and removed after
//! the last. Who finds one finishes or reverts what it describes.

mod execute;
mod git_file;
mod index;
mod outcomes;
mod preflight;
mod temp_file;
mod write_batch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use execute::OTHER_MODE;
use git2::Oid;
use serde::{Deserialize, Serialize};
use write_batch::FILES_PER_THREAD;

use super::base::{At as _, DirfdCache, FileStat, OnDisk, Result, openat, work_queue};
use super::repo::{Repo, WorktreeLock};
use crate::durable::is_left_over;
use crate::model::id::OperationId;
use crate::model::{Entry, Head, ObjectId, PathReason, RepoPath};
use crate::policy::restore::RestorePlan;

pub use execute::{Expect, Restored};
pub(crate) use index::{IndexPlan, IndexSides};

/// What reading a restored work tree again has shown.
#[derive(Debug, Default)]
pub struct Verified {
    /// Paths that are not as planned; empty means verified.
    pub differing: Vec<PathReason>,
    /// The content of the files and symlinks that are.
    contents: BTreeMap<RepoPath, (Oid, FileStat)>,
}

impl Verified {
    /// The content of a path, and what the file was when it was read.
    pub(super) fn content(&self, path: &RepoPath) -> Option<(Oid, FileStat)> {
        self.contents.get(path).copied()
    }
}

impl Repo {
    /// Reads every path of a plan again and compares it with what was planned.
    pub fn verify_restore(&self, plan: &RestorePlan, restored: &Restored) -> Result<Verified> {
        let kept: BTreeSet<&RepoPath> = restored.kept.iter().map(|kept| &kept.path).collect();
        let mut expected: BTreeMap<&RepoPath, Option<&Entry>> = BTreeMap::new();
        expected.extend(plan.delete.iter().map(|delete| (&delete.path, None)));
        expected.extend(
            plan.write
                .iter()
                .map(|write| (&write.path, Some(&write.entry))),
        );
        expected.retain(|path, _| !kept.contains(path));
        let made: BTreeSet<&RepoPath> = plan.make_dirs.iter().map(|dir| &dir.path).collect();

        let expected: Vec<_> = expected.into_iter().collect();
        let threads = (expected.len() / FILES_PER_THREAD).clamp(1, work_queue::threads());
        let portion = expected.len().div_ceil(threads).max(1);
        let portions = expected.chunks(portion).collect();
        let root = self.workdir();
        let mut verified = Verified::default();
        for part in work_queue::run(portions, threads, |portion: &[_], _, part| {
            contents(root, portion, (&made, restored), part)
        })? {
            verified.differing.extend(part.differing);
            verified.contents.extend(part.contents);
        }
        verified.differing.sort();

        let mut folders = DirfdCache::of(root)?;
        let waits = |path: &RepoPath| kept.contains(path) || restored.last_modes.contains_key(path);
        for set in plan.set_mode.iter().filter(|set| !waits(&set.path)) {
            let (parent, name) = openat::split(&set.path);
            let stat = folders
                .open(&parent)
                .and_then(|dir| openat::stat(&dir, name))
                .ok()
                .flatten();
            if stat.is_none_or(|stat| stat.permissions() != set.mode) {
                let differs = PathReason::new(set.path.clone(), OTHER_MODE);
                verified.differing.push(differs);
            }
        }
        Ok(verified)
    }

    /// Writes the journal durably: temp file, sync, rename, sync of the folder.
    pub fn write_restore_journal(
        &self,
        _lock: &WorktreeLock,
        journal: &RestoreJournal,
    ) -> Result<()> {
        self.write_journal(JOURNAL_FILE, journal)
    }

    /// Reads the journal; `None` when no restore is under way.
    pub fn restore_journal(&self) -> Result<Option<RestoreJournal>> {
        self.read_journal(JOURNAL_FILE, RestoreJournal::VERSION)
    }

    /// Whether there is a journal.
    pub(crate) fn has_restore_journal(&self) -> bool {
        self.has_journal(JOURNAL_FILE)
    }

    /// Removes the journal durably: the restore is settled.
    pub fn remove_restore_journal(&self, _lock: &WorktreeLock) -> Result<()> {
        self.remove_journal(JOURNAL_FILE)
    }

    /// Removes temp files that dead processes left in the folders of a plan, and in this worktree's own folder. Returns how many.
    pub fn reap_temp_files(&self, lock: &WorktreeLock, plan: &RestorePlan) -> Result<usize> {
        let root = openat::open_root(self.workdir())?;
        let folders: BTreeSet<RepoPath> = plan
            .write
            .iter()
            .map(|write| write.path.parent().unwrap_or_default())
            .collect();
        let mut count = 0;
        for folder in folders {
            // A folder that is not there holds nothing to remove.
            let Ok(dir) = openat::open_path(&root, &folder) else {
                continue;
            };
            for name in openat::names(&dir)
                .unwrap_or_default()
                .iter()
                .filter(|name| is_left_over(name))
            {
                match rustix::fs::unlinkat(&dir, name.as_slice(), rustix::fs::AtFlags::empty()) {
                    Ok(()) => count += 1,
                    Err(rustix::io::Errno::NOENT) => {}
                    // It would be captured.
                    Err(error) => return Err(openat::io_error(&folder.join(name), error.into())),
                }
            }
        }
        // The worktree's lock is ours, so every other quarantine is a dead process's.
        let own = self.recover_dir()?;
        for (name, _) in self.own().list(&own).at(&own)? {
            if lock.is_idle() && name.as_encoded_bytes().starts_with(b"quarantine-") {
                count += usize::from(self.own().remove_dir_all(&own.join(name)).is_ok());
            }
        }
        Ok(count)
    }
}

/// Compares content, kind and mode of some paths, but for modes that are set last; `made` are folders that may stand where a file was.
fn contents(
    root: &Path,
    expected: &[(&RepoPath, Option<&Entry>)],
    (made, restored): (&BTreeSet<&RepoPath>, &Restored),
    verified: &mut Verified,
) -> Result<()> {
    let mut folders = DirfdCache::of(root)?;
    for (path, entry) in expected {
        let (parent, name) = openat::split(path);
        let found = match folders.open(&parent) {
            Ok(dir) => openat::inspect(&dir, name).on(path)?,
            Err(error) if openat::is_no_folder(&error) => OnDisk::Nothing,
            Err(error) => return Err(openat::open_error(path, error)),
        };
        let has_mode = restored.last_modes.contains_key(*path) || found.has_mode(*entry);
        let folder_now = found == OnDisk::Other && made.contains(path);
        if !(found.is(*entry) && has_mode || entry.is_none() && folder_now) {
            let differs = PathReason::new((*path).clone(), "differs from the checkpoint");
            verified.differing.push(differs);
        } else if let OnDisk::Entry(oid, stat) = found {
            verified.contents.insert((*path).clone(), (oid, stat));
        }
    }
    Ok(())
}

const JOURNAL_FILE: &str = "journal.json";

/// Everything needed to finish or revert a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreJournal {
    /// [`Self::VERSION`] of the writer.
    pub version: u32,
    /// The operation, as the ledger will name it.
    pub operation_id: OperationId,
    /// `rollback`, `restore`, `undo`, `redo`, …
    pub kind: String,
    /// The safety checkpoint's commit.
    pub safety_commit: ObjectId,
    /// The target's commit.
    pub target_commit: ObjectId,
    /// The globs that were given.
    #[serde(default)]
    pub selection: Vec<String>,
    /// What is done to the files.
    pub plan: RestorePlan,
    /// What is kept on purpose.
    #[serde(default)]
    pub kept: Vec<PathReason>,
    /// HEAD before.
    pub head_before: Head,
    /// HEAD afterwards, when it is moved.
    pub head_after: Option<Head>,
    /// Whether the target's index is restored as a whole: only of a journal of an older version.
    #[serde(default)]
    pub restore_index: bool,
    /// Paths of the index that get the target's entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub index_paths: Vec<RepoPath>,
    /// Whatever else the caller needs to finish its own part.
    #[serde(default)]
    pub context: serde_json::Value,
}

impl RestoreJournal {
    /// The version that this program writes.
    pub const VERSION: u32 = 1;
}
