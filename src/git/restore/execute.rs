//! Executes a restore plan.
//!
//! Everything goes through folder descriptors, opened one component at a time without following symlinks, so that a
//! symlink put in the way leads nowhere. A file is written beside its place, given its mode, synced and renamed. What
//! is there is compared with what the safety capture saw right before it is replaced or deleted: an edit made
//! meanwhile stops the restore.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{AtFlags, FileType, Mode};

use super::outcomes::{HOLDS_OTHERS, Outcomes};
use super::write_batch::{Batch, Limits, Pending, Sync};
use super::{outcomes, preflight, temp_file};
use crate::durable::temporary_prefix;
use crate::git::base::{
    At as _, DirfdCache, Error, FileStat, OnDisk, Result, openat, paths, work_queue,
};
use crate::git::odb::database::Database;
use crate::git::repo::{Loan, Repo, WorktreeLock};
use crate::model::{Entry, EntryKind, PathReason, RepoPath};
use crate::policy::restore::{PlannedWrite, RestorePlan};

/// What may stand at a path before it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Exactly what the safety capture saw; anything else stops the restore.
    Captured,
    /// A restore was interrupted or failed: either what it found, what it wanted, or nothing. What is neither is left as it
    /// is and listed in [`Restored::kept`].
    CutOff,
}

/// Why a path is not as planned that has other permissions.
pub(super) const OTHER_MODE: &str = "has another mode than the checkpoint";
/// What the owner of a folder needs to change names in it.
const OWNERS: u32 = 0o700;
/// What the owner of a folder needs to read what is in it.
const READABLE_FOLDER: u32 = 0o500;

/// Whether a user wants the restore to stop.
pub(crate) type Stop<'s> = &'s (dyn Fn() -> bool + std::marker::Sync);

/// What a restore did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Paths written, mode changes included.
    pub written: Vec<RepoPath>,
    /// Paths deleted, folders included.
    pub deleted: Vec<RepoPath>,
    /// Paths left as they are, beside those that the plan keeps.
    pub kept: Vec<PathReason>,
    /// Modes that do not let the owner read: [`set_last_modes`](Repo::set_last_modes) sets them once what was written was read again.
    pub last_modes: BTreeMap<RepoPath, u32>,
    /// Attributes, ACLs and capabilities that are lost.
    pub lost: Vec<PathReason>,
}

impl Repo {
    /// Takes out of a plan what the system does not let be replaced, and lends it the rights that the owner of a folder may give.
    /// Returns what was taken out, each with the word of a [`Blocked`](crate::model::path::Blocked).
    ///
    /// Nothing is changed on disk.
    pub(crate) fn leave_blocked(
        &self,
        plan: &mut RestorePlan,
        loan: Option<&Loan>,
    ) -> Result<Vec<PathReason>> {
        let Outcomes { blocked, mut lent } = outcomes::outcomes(self, plan)?;
        // What is lent for the capture is given back before the restore begins.
        lent.extend(
            loan.iter()
                .flat_map(|loan| loan.lent())
                .map(|(path, mode)| (path.clone(), *mode)),
        );
        let blocked = plan.leave_blocked(blocked);
        plan.lend(lent);
        Ok(blocked)
    }

    /// Checks everything that can be checked before the first write: names, what is in the way, free space. `beside` are files
    /// that are deleted before it.
    ///
    /// Nothing is changed.
    pub fn check_restore(&self, plan: &RestorePlan, beside: &[RepoPath]) -> Result<()> {
        refuse(plan)?;
        let root = openat::open_root(self.workdir())?;
        preflight::check_conflicts(&root, plan, beside)?;
        preflight::check_free_space(self, plan)
    }

    /// Carries out a plan. Whoever has not begun with it yet calls [`Repo::check_restore`] before: here each path is examined only when its
    /// turn comes.
    ///
    /// On an error the work tree is in between: the caller reverts with `plan.invert().execute_restore(Expect::CutOff)`.
    ///
    /// `stop` is asked before each path: once it says yes, nothing more is done and the error is [`Error::Stopped`].
    pub fn execute_restore(
        &self,
        _lock: &WorktreeLock,
        plan: &RestorePlan,
        expect: Expect,
        stop: Stop<'_>,
    ) -> Result<Restored> {
        refuse(plan)?;
        let database = Database::open(self)?;
        let mut run = Execution::new(self.workdir(), &database, (expect, stop), 0)?;
        for lent in &plan.lend {
            run.lend(&lent.path)?;
        }
        for delete in &plan.delete {
            run.delete(&delete.path, &delete.from)?;
        }
        run.folders.clear();
        for dir in plan.remove_dirs.iter().rev() {
            run.remove_dir(&dir.path)?;
        }
        for dir in &plan.make_dirs {
            run.make_dir(&dir.path)?;
        }
        run.folders.clear();
        run.write(self, &plan.write)?;
        for set in &plan.set_mode {
            run.end_with(&set.path, set.mode)?;
            run.done.written.push(set.path.clone());
        }
        // Folders get their modes last: a read-only one could not be written into.
        let made = plan
            .make_dirs
            .iter()
            .filter(|dir| run.changed.contains(&dir.path))
            .map(|dir| (&dir.path, dir.mode));
        let mut folders: BTreeMap<&RepoPath, u32> = made.collect();
        for lent in &plan.lend {
            // One that was removed, or replaced, has nothing to give back.
            if run.is_folder(&lent.path)? {
                folders.insert(&lent.path, lent.mode);
            }
        }
        for (path, mode) in folders.into_iter().rev() {
            run.end_with(path, mode)?;
        }
        run.sync()?;
        Ok(run.done)
    }

    /// Sets the modes that had to wait until what was written was read again. Returns what has another mode after that.
    pub(crate) fn set_last_modes(
        &self,
        _lock: &WorktreeLock,
        restored: &Restored,
    ) -> Result<Vec<PathReason>> {
        let mut folders = DirfdCache::of(self.workdir())?;
        let mut differing = Vec::new();
        // The deepest first: a folder without rights hides what is in it.
        for (path, mode) in restored.last_modes.iter().rev() {
            let (parent, name) = openat::split(path);
            let dir = folders
                .open(&parent)
                .map_err(|error| openat::open_error(path, error))?;
            openat::chmod(&dir, name, *mode).on(path)?;
            if openat::stat(&dir, name)
                .on(path)?
                .is_none_or(|stat| stat.permissions() != *mode)
            {
                differing.push(PathReason::new(path.clone(), OTHER_MODE));
            }
        }
        Ok(differing)
    }
}

/// Refuses a plan that must not be carried out, whatever is there.
fn refuse(plan: &RestorePlan) -> Result<()> {
    for path in plan.paths() {
        if let Some(reason) = paths::unsafe_path(path) {
            return Err(Error::unsafe_path(path, reason));
        }
    }
    if plan.conflicts.is_empty() {
        Ok(())
    } else {
        Err(Error::Conflict {
            paths: plan.conflicts.clone(),
        })
    }
}

/// One thread's work.
struct Execution<'r> {
    folders: DirfdCache,
    database: &'r Database<'r>,
    expect: Expect,
    stop: Stop<'r>,
    /// Folders in which names changed, and folders that were made.
    changed: BTreeSet<RepoPath>,
    done: Restored,
    /// The number of the last temp file.
    temp: u64,
}

impl<'r> Execution<'r> {
    /// Temp files are numbered from `temp` on.
    fn new(
        root: &Path,
        database: &'r Database<'r>,
        (expect, stop): (Expect, Stop<'r>),
        temp: u64,
    ) -> Result<Self> {
        Ok(Self {
            folders: DirfdCache::of(root)?,
            database,
            expect,
            stop,
            changed: BTreeSet::new(),
            done: Restored::default(),
            temp,
        })
    }

    fn go_on(&self) -> Result<()> {
        if (self.stop)() {
            Err(Error::Stopped)
        } else {
            Ok(())
        }
    }

    fn delete(&mut self, path: &RepoPath, from: &Entry) -> Result<()> {
        self.go_on()?;
        let (parent, name) = openat::split(path);
        let Some(dir) = self.parent(path, &parent)? else {
            return Ok(());
        };
        let folder = || matches!(openat::stat(&dir, name), Ok(Some(stat)) if stat.kind() == FileType::Directory);
        if self.expect == Expect::CutOff && folder() {
            // The restore was interrupted before it put the file in the folder's place.
            return Ok(());
        }
        if self.ready(&dir, path, name, &[Some(from), None])?.is_none() {
            return Ok(());
        }
        let lost = temp_file::lost_with_file(&dir, name);
        match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
            Ok(()) => {
                self.lose(path, lost);
                self.changed.insert(parent);
                self.done.deleted.push(path.clone());
                Ok(())
            }
            Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(openat::io_error(path, error.into())),
        }
    }

    fn remove_dir(&mut self, path: &RepoPath) -> Result<()> {
        let (parent, name) = openat::split(path);
        let Some(dir) = self.parent(path, &parent)? else {
            return Ok(());
        };
        let lost = temp_file::lost_with_folder(&dir, name);
        match rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR) {
            Ok(()) => {
                self.lose(path, lost);
                // It needs no sync any more, and something else may stand there later.
                self.changed.remove(path);
                self.changed.insert(parent);
                self.done.deleted.push(path.clone());
                Ok(())
            }
            Err(rustix::io::Errno::NOENT) => Ok(()),
            // Something that was not captured lies in it, so it stays.
            Err(rustix::io::Errno::NOTEMPTY | rustix::io::Errno::EXIST) => {
                self.keep(path, HOLDS_OTHERS);
                Ok(())
            }
            Err(rustix::io::Errno::NOTDIR) if self.expect == Expect::CutOff => Ok(()),
            Err(error) => Err(openat::io_error(path, error.into())),
        }
    }

    fn make_dir(&mut self, path: &RepoPath) -> Result<()> {
        let (parent, name) = openat::split(path);
        let dir = self.open(path, &parent)?;
        // Writable until its files are in it; the mode comes last.
        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o700)) {
            Ok(()) => {
                temp_file::keep_owner(&dir, name, name).on(path)?;
                self.changed.insert(parent);
                self.changed.insert(path.clone());
                self.done.written.push(path.clone());
                Ok(())
            }
            Err(rustix::io::Errno::EXIST) => match openat::stat(&dir, name) {
                Ok(Some(stat)) if stat.kind() == FileType::Directory => {
                    if self.expect == Expect::CutOff {
                        // It may have been made without getting its mode.
                        self.changed.insert(path.clone());
                    }
                    Ok(())
                }
                _ => Err(Error::conflict(path, "not a folder")),
            },
            Err(error) => Err(openat::io_error(path, error.into())),
        }
    }

    /// Writes files: many of them by several threads.
    fn write(&mut self, repo: &Repo, writes: &[PlannedWrite]) -> Result<()> {
        let (threads, limits) = Limits::of(writes.len());
        if threads == 1 {
            return self.write_all(writes, limits);
        }
        let (root, database, how) = (repo.workdir(), self.database, (self.expect, self.stop));
        let portions = writes
            .chunks(writes.len().div_ceil(threads))
            .zip(0_u64..)
            .collect();
        let done = work_queue::run(
            portions,
            threads,
            |(writes, number), _, done: &mut Vec<_>| {
                let mut part = Execution::new(root, database, how, number << 32)?;
                part.write_all(writes, limits)?;
                done.push((part.done, part.changed));
                Ok(())
            },
        )?;
        for (restored, changed) in done.into_iter().flatten() {
            self.done.written.extend(restored.written);
            self.done.kept.extend(restored.kept);
            self.done.last_modes.extend(restored.last_modes);
            self.done.lost.extend(restored.lost);
            self.changed.extend(changed);
        }
        Ok(())
    }

    /// Writes files in batches: all temp files of one, one sync for them, then the renames. Until its rename a place holds
    /// what it held, and what is renamed is durable: no instant shows a half-written file.
    fn write_all(&mut self, writes: &[PlannedWrite], limits: Limits) -> Result<()> {
        let mut batch = Batch::default();
        let result = writes.iter().try_for_each(|write| {
            self.prepare(write, &mut batch)?;
            if batch.is_full(limits) {
                self.place(&mut batch)
            } else {
                Ok(())
            }
        });
        let result = result.and_then(|()| self.place(&mut batch));
        for pending in batch.pending {
            pending.discard();
        }
        result
    }

    /// Writes the temp file of one path, unless the path is to stay as it is.
    fn prepare<'p>(&mut self, write: &'p PlannedWrite, batch: &mut Batch<'p>) -> Result<()> {
        self.go_on()?;
        let path = &write.path;
        let (parent, name) = openat::split(path);
        let dir = self.open(path, &parent)?;
        let accepted = [write.from.as_ref(), Some(&write.entry)];
        let accepted = if self.expect == Expect::Captured {
            &accepted[..1]
        } else {
            &accepted[..]
        };
        let Some(found) = self.ready(&dir, path, name, accepted)? else {
            return Ok(());
        };
        if self.expect == Expect::CutOff
            && found.is(Some(&write.entry))
            && found.has_mode(Some(&write.entry))
        {
            // It was put there before the cut, or never replaced: nothing that could fail is needed.
            self.note_last_mode(write);
            self.done.written.push(path.clone());
            self.changed.insert(parent);
            return Ok(());
        }
        self.temp += 1;
        let pending = Pending {
            write,
            dir,
            parent,
            name,
            temp: format!("{}{}", temporary_prefix(), self.temp),
            // It may have got the right to be read: what was there before that is not compared.
            before: found.stat(),
            found,
        };
        match temp_file::fill(self.database, &pending) {
            Ok(filled) => {
                self.lose(path, filled.lost);
                self.done
                    .last_modes
                    .extend(filled.narrower.map(|mode| (path.clone(), mode)));
                batch.add(pending, filled.file)
            }
            Err(error) => {
                pending.discard();
                Err(error)
            }
        }
    }

    /// Syncs a batch and renames it into place. On an error the rest of it stays in the batch.
    fn place(&mut self, batch: &mut Batch<'_>) -> Result<()> {
        batch.sync()?;
        while let Some(pending) = batch.pending.pop() {
            if let Err(stopped) = self.go_on() {
                batch.pending.push(pending);
                return Err(stopped);
            }
            let path = &pending.write.path;
            // The last look: what was compared before it was written must still be the same file.
            let now = openat::stat(&pending.dir, pending.name).on(path);
            let placed = now.and_then(|now| {
                if now != pending.before && !is_same_but_links(&pending, now.as_ref())? {
                    return Err(Error::conflict(path, "changed while it was restored"));
                }
                temp_file::rename(
                    &pending.dir,
                    pending.temp.as_bytes(),
                    pending.name,
                    now.is_none(),
                )
                .map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => {
                        Error::conflict(path, "made while it was restored")
                    }
                    _ => openat::io_error(path, error),
                })
            });
            if let Err(error) = placed {
                batch.pending.push(pending);
                return Err(error);
            }
            self.note_last_mode(pending.write);
            self.done.written.push(path.clone());
            self.changed.insert(pending.parent);
        }
        Ok(())
    }

    /// A file that its owner may not read is given that mode once it was read again.
    fn note_last_mode(&mut self, write: &PlannedWrite) {
        if write.entry.kind == EntryKind::File && write.entry.mode & temp_file::READABLE == 0 {
            self.done
                .last_modes
                .insert(write.path.clone(), write.entry.mode);
        }
    }

    /// Gives the owner of a folder all rights in it. How it ends is in the plan, and the plan in the journal.
    fn lend(&mut self, path: &RepoPath) -> Result<()> {
        let (parent, name) = openat::split(path);
        let Some(dir) = self.parent(path, &parent)? else {
            return Ok(());
        };
        // The work tree's root has no name.
        let name = if name.is_empty() { b"." } else { name };
        match openat::stat(&dir, name).on(path)? {
            Some(stat)
                if stat.kind() == FileType::Directory && stat.permissions() & OWNERS != OWNERS =>
            {
                openat::chmod(&dir, name, stat.permissions() | OWNERS).on(path)
            }
            _ => Ok(()),
        }
    }

    fn is_folder(&mut self, path: &RepoPath) -> Result<bool> {
        match self.folders.open(path) {
            Ok(_) => Ok(true),
            Err(error) if openat::is_no_folder(&error) => Ok(false),
            Err(error) => Err(openat::open_error(path, error)),
        }
    }

    /// Sets the permissions that a path ends with: now, or last where they would not let it be read again.
    fn end_with(&mut self, path: &RepoPath, mode: u32) -> Result<()> {
        if path.as_bytes().is_empty() {
            let root = self.open(path, path)?;
            return openat::chmod(&root, b".", mode).on(path);
        }
        if mode & READABLE_FOLDER == READABLE_FOLDER {
            return self.chmod(path, mode);
        }
        let (parent, name) = openat::split(path);
        let Some(dir) = self.parent(path, &parent)? else {
            return Ok(());
        };
        match openat::stat(&dir, name).on(path)?.map(|stat| stat.kind()) {
            Some(FileType::RegularFile) if mode & temp_file::READABLE != 0 => {
                self.chmod(path, mode)
            }
            Some(FileType::RegularFile | FileType::Directory) => {
                self.done.last_modes.insert(path.clone(), mode);
                Ok(())
            }
            // What is not there, or no file, is for it to say.
            _ => self.chmod(path, mode),
        }
    }

    /// Sets permissions of a file or folder; never through a symlink.
    fn chmod(&mut self, path: &RepoPath, mode: u32) -> Result<()> {
        let (parent, name) = openat::split(path);
        let dir = self.open(path, &parent)?;
        let stat = openat::stat(&dir, name).on(path)?;
        match stat.map(|stat| stat.kind()) {
            Some(FileType::RegularFile | FileType::Directory) => {}
            None if self.expect == Expect::CutOff => return Ok(()),
            _ => return Err(Error::conflict(path, "changed while it was restored")),
        }
        openat::chmod(&dir, name, mode).on(path)
    }

    /// What is there, if the path may be changed now: it is what one of `accepted` says (`None` is nothing).
    fn ready(
        &mut self,
        dir: &OwnedFd,
        path: &RepoPath,
        name: &[u8],
        accepted: &[Option<&Entry>],
    ) -> Result<Option<OnDisk>> {
        let found = match openat::inspect(dir, name) {
            // Its owner may read it: it is deleted or replaced after that, or gets its mode last.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                temp_file::make_readable(dir, name).and_then(|()| openat::inspect(dir, name))
            }
            found => found,
        };
        let found = found.on(path)?;
        let nothing_is_fine = self.expect == Expect::CutOff && found == OnDisk::Nothing;
        if nothing_is_fine || accepted.iter().any(|entry| found.is(*entry)) {
            return Ok(Some(found));
        }
        if self.expect == Expect::Captured {
            return Err(Error::conflict(path, "changed since the safety checkpoint"));
        }
        self.keep(path, "changed while it was restored");
        Ok(None)
    }

    fn lose(&mut self, path: &RepoPath, lost: impl IntoIterator<Item = String>) {
        let about = |reason| PathReason::new(path.clone(), reason);
        self.done.lost.extend(lost.into_iter().map(about));
    }

    fn keep(&mut self, path: &RepoPath, reason: &str) {
        self.done.kept.push(PathReason::new(path.clone(), reason));
    }

    /// The folder of a path that is to go away; `None` when it is gone, or a file by now, in a restore that was interrupted.
    fn parent(&mut self, path: &RepoPath, parent: &RepoPath) -> Result<Option<Rc<OwnedFd>>> {
        match self.folders.open(parent) {
            Ok(dir) => Ok(Some(dir)),
            Err(error) if self.expect == Expect::CutOff && openat::is_no_folder(&error) => Ok(None),
            Err(error) => Err(openat::open_error(path, error)),
        }
    }

    fn open(&mut self, path: &RepoPath, parent: &RepoPath) -> Result<Rc<OwnedFd>> {
        self.folders
            .open(parent)
            .map_err(|error| openat::open_error(path, error))
    }

    /// Makes the names durable.
    fn sync(&mut self) -> Result<()> {
        let changed = std::mem::take(&mut self.changed);
        self.folders.clear();
        let mut sync = Sync::new(changed.len());
        for folder in &changed {
            match self.folders.open(folder) {
                Ok(dir) => sync.add(folder, &*dir)?,
                // It was removed later on; its own folder is in the set.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // A folder whose own mode forbids reading it cannot be opened to be synced.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(openat::open_error(folder, error)),
            }
        }
        Ok(())
    }
}

/// Whether a file is the one that was compared although it has other times now, as it gets when another of its names is
/// replaced: then it is read again.
fn is_same_but_links(pending: &Pending<'_>, now: Option<&FileStat>) -> Result<bool> {
    let (Some(before), Some(now)) = (&pending.before, now) else {
        return Ok(false);
    };
    if (FileStat {
        ctime: now.ctime,
        ..*before
    }) != *now
    {
        return Ok(false);
    }
    let found = openat::inspect(&pending.dir, pending.name).on(&pending.write.path)?;
    Ok(found.is_as(&pending.found))
}
