//! What is checked before a restore writes anything: whether something is in the way, whether there is room.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;

use git2::Oid;
use rustix::fs::FileType;

use super::write_batch::{BATCH_BYTES, FILES_PER_THREAD};
use crate::git::base::openat::{self, open_error};
use crate::git::base::{At as _, DirfdCache, Error, Result, parse_oid, work_queue};
use crate::git::odb::{Database, ObjectWriter};
use crate::git::repo::{Repo, WorktreeLock};
use crate::git::worktree::reading;
use crate::model::{Entry, EntryKind, PathReason, RepoPath};
use crate::policy::restore::RestorePlan;

/// Refuses a plan when something that is not to be deleted stands where it writes. `beside` are files that are deleted before.
pub(super) fn check_conflicts(
    root: &OwnedFd,
    plan: &RestorePlan,
    beside: &[RepoPath],
) -> Result<()> {
    let deleted = plan.delete.iter().map(|delete| &delete.path);
    let gone: BTreeSet<&RepoPath> = deleted.chain(beside).collect();
    let gone_dirs: BTreeSet<&RepoPath> = plan.remove_dirs.iter().map(|dir| &dir.path).collect();
    let mut conflicts = Vec::new();
    let mut conflict = |path: &RepoPath, reason: &str| {
        conflicts.push(PathReason::new(path.clone(), reason));
    };
    let mut folders = DirfdCache::new(
        root.try_clone()
            .map_err(|error| openat::io_error(&RepoPath::default(), error))?,
    );
    for path in plan.make_dirs.iter().map(|dir| &dir.path) {
        match kind_at(&mut folders, path)? {
            None | Some(FileType::Directory) => {}
            Some(_) if gone.contains(path) => {}
            Some(_) => conflict(
                path,
                "a file that was not captured is where the checkpoint has a folder",
            ),
        }
    }
    for write in &plan.write {
        match kind_at(&mut folders, &write.path)? {
            Some(FileType::Directory) if !gone_dirs.contains(&write.path) => {
                conflict(
                    &write.path,
                    "a folder that stays is where the checkpoint has a file",
                );
            }
            Some(FileType::Directory) => {
                if let Some(inside) = first_staying(root, &write.path, &gone, &gone_dirs)? {
                    conflict(
                        &inside,
                        "was not captured and is where the checkpoint has a file",
                    );
                }
            }
            Some(_) if write.from.is_none() && !gone.contains(&write.path) => {
                conflict(
                    &write.path,
                    "was not captured and is where the checkpoint has a file",
                );
            }
            _ => {}
        }
    }
    if conflicts.is_empty() {
        Ok(())
    } else {
        Err(Error::Conflict { paths: conflicts })
    }
}

/// What kind of thing is at a path. A file or link where a folder is wanted means that nothing is: it is examined when that
/// folder's own turn comes.
fn kind_at(folders: &mut DirfdCache, path: &RepoPath) -> Result<Option<FileType>> {
    let (parent, name) = openat::split(path);
    match folders.open(&parent) {
        Ok(dir) => {
            let stat = openat::stat(&dir, name).on(path)?;
            Ok(stat.map(|stat| stat.kind()))
        }
        Err(error) if openat::is_no_folder(&error) => Ok(None),
        Err(error) => Err(open_error(path, error)),
    }
}

/// The first thing in a folder that the plan does not take away.
fn first_staying(
    root: &OwnedFd,
    folder: &RepoPath,
    gone: &BTreeSet<&RepoPath>,
    gone_dirs: &BTreeSet<&RepoPath>,
) -> Result<Option<RepoPath>> {
    let mut open = vec![folder.clone()];
    while let Some(folder) = open.pop() {
        let dir = openat::open_path(root, &folder).map_err(|error| open_error(&folder, error))?;
        for name in openat::names(&dir).on(&folder)? {
            let path = folder.join(&name);
            if gone_dirs.contains(&path) {
                open.push(path);
            } else if !gone.contains(&path) {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

/// Refuses a plan for which the file system has no room: for what is written but for what that replaces and what is deleted
/// before, and for the files of a batch, which are there twice for a moment.
pub(super) fn check_free_space(repo: &Repo, plan: &RestorePlan) -> Result<()> {
    let room = rustix::fs::statvfs(repo.workdir()).at(repo.workdir())?;
    let free = i128::from(room.f_bavail) * i128::from(room.f_frsize);
    let database = Database::open(repo)?;
    let size =
        |entry: &Entry| -> Result<i128> { Ok(i128::from(database.size(parse_oid(&entry.oid)?)?)) };
    let written = work_queue::each(&plan.write, FILES_PER_THREAD, |write| {
        size(&write.entry).map(Some)
    })?;
    let (all, largest) = (
        written.iter().sum::<i128>(),
        written.iter().max().copied().unwrap_or(0),
    );
    if all <= free {
        return Ok(());
    }
    // The blob may be missing where only the deletion counts; then nothing is taken as freed.
    let freed = |entry: &Entry| size(entry).unwrap_or(0);
    let deleted: i128 = plan.delete.iter().map(|one| freed(&one.from)).sum();
    let replaced = plan.write.iter().filter_map(|write| write.from.as_ref());
    let replaced: i128 = replaced.map(freed).sum();
    let twice = replaced.min(i128::from(BATCH_BYTES) + largest);
    let needed = all - deleted - replaced + twice;
    if needed <= free {
        return Ok(());
    }
    Err(Error::NoSpace {
        path: repo.workdir().to_owned(),
        needed: Some(u64::try_from(needed).unwrap_or(u64::MAX)),
    })
}

impl Repo {
    /// Reads every blob that a plan overwrites or deletes from the repository, whole: only then can it be brought back. One that
    /// is missing or damaged is stored again from the file that is still there. Returns the paths where that holds something
    /// else by now. The work tree is not changed.
    pub(crate) fn read_back_overwritten(
        &self,
        lock: &WorktreeLock,
        plan: &RestorePlan,
    ) -> Result<Vec<PathReason>> {
        let mut paths: BTreeMap<Oid, Vec<&RepoPath>> = BTreeMap::new();
        for (path, from) in plan
            .overwritten()
            .filter(|(_, from)| from.kind != EntryKind::Gitlink)
        {
            paths.entry(parse_oid(&from.oid)?).or_default().push(path);
        }
        let damaged = unreadable(self, &paths.keys().copied().collect::<Vec<_>>())?;
        if damaged.is_empty() {
            return Ok(Vec::new());
        }
        self.mark_odb_suspect()?;
        // It reads what is there before it believes that.
        let writer = ObjectWriter::new(self, lock)?;
        let mut folders = DirfdCache::of(self.workdir())?;
        for path in damaged.iter().flat_map(|oid| &paths[oid]) {
            let (parent, name) = openat::split(path);
            // What cannot be read is not stored, and found so below.
            if let Ok(dir) = folders.open(&parent) {
                reading::store_file(&dir, name, &writer)?;
            }
        }
        writer.publish()?;
        let lost = unreadable(self, &damaged)?;
        writer.secure()?;
        let reason = "its object is damaged, and the file changed meanwhile";
        let of = |path: &&RepoPath| PathReason::new((*path).clone(), reason);
        Ok(lost.iter().flat_map(|oid| &paths[oid]).map(of).collect())
    }
}

/// Which of these blobs cannot be read whole.
fn unreadable(repo: &Repo, blobs: &[Oid]) -> Result<Vec<Oid>> {
    let database = Database::open(repo)?;
    work_queue::each(blobs, FILES_PER_THREAD, |oid| {
        match database.check_blob(*oid) {
            Err(Error::Corrupt(_)) => Ok(Some(*oid)),
            checked => checked.map(|()| None),
        }
    })
}
