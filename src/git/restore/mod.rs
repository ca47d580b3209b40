//! Carries out the files' part of a restore: checks the plan, writes and removes files, verifies them by reading them again.
//! Refreshes the user's index, and keeps the journal with which a restore that was cut off is finished. What is restored is
//! decided by `policy::restore_plan`; HEAD, memory and nested repositories belong in `engine::restore`.

mod execute;
pub(crate) mod git_file;
mod index;
mod journal;
mod outcomes;
mod preflight;
mod temp_file;
mod write_batch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use git2::Oid;

use super::base::error::Result;
use super::base::openat::{self, DirfdCache, FileStat, OnDisk};
use super::base::work_queue;
use super::repo::repository::Repo;
use crate::model::manifest::Entry;
use crate::model::path::{PathReason, RepoPath};
use crate::policy::restore_plan::RestorePlan;
use execute::OTHER_MODE;
use write_batch::FILES_PER_THREAD;

pub use execute::{Expect, Restored};
pub(crate) use index::{IndexContent, IndexPlan, IndexSides};
pub use journal::{JOURNAL_VERSION, RestoreJournal};

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
        let portions = expected
            .chunks(expected.len().div_ceil(threads).max(1))
            .collect();
        let root = self.workdir();
        let mut verified = Verified::default();
        for part in work_queue::run(portions, threads, |portion: &[_], _, part| {
            contents(root, portion, (&made, restored), part)
        })? {
            verified.differing.extend(part.differing);
            verified.contents.extend(part.contents);
        }
        verified.differing.sort();

        let mut folders = DirfdCache::new(openat::open_root(root)?);
        let waits = |path: &RepoPath| kept.contains(path) || restored.last_modes.contains_key(path);
        for set in plan.set_mode.iter().filter(|set| !waits(&set.path)) {
            let (parent, name) = openat::split(&set.path);
            let stat = folders
                .open(&parent)
                .and_then(|dir| openat::stat(&dir, name))
                .ok()
                .flatten();
            if stat.is_none_or(|stat| stat.permissions() != set.mode) {
                let reason = OTHER_MODE.to_owned();
                verified
                    .differing
                    .push(PathReason::new(set.path.clone(), reason));
            }
        }
        Ok(verified)
    }
}

/// Compares content, kind and mode of some paths, but for modes that are set last; `made` are folders that may stand where a file was.
fn contents(
    root: &Path,
    expected: &[(&RepoPath, Option<&Entry>)],
    (made, restored): (&BTreeSet<&RepoPath>, &Restored),
    verified: &mut Verified,
) -> Result<()> {
    let mut folders = DirfdCache::new(openat::open_root(root)?);
    for (path, entry) in expected {
        let (parent, name) = openat::split(path);
        let found = match folders.open(&parent) {
            Ok(dir) => {
                openat::inspect(&dir, name).map_err(|error| openat::io_error(path, error))?
            }
            Err(error) if openat::is_no_folder(&error) => OnDisk::Nothing,
            Err(error) => return Err(openat::open_error(path, error)),
        };
        let has_mode = restored.last_modes.contains_key(*path) || found.has_mode(*entry);
        let folder_now = found == OnDisk::Other && made.contains(path);
        if !(found.is(*entry) && has_mode || entry.is_none() && folder_now) {
            let reason = "differs from the checkpoint".to_owned();
            verified
                .differing
                .push(PathReason::new((*path).clone(), reason));
        } else if let OnDisk::Entry(oid, stat) = found {
            verified.contents.insert((*path).clone(), (oid, stat));
        }
    }
    Ok(())
}
