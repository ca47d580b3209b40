//! Linked work trees that are a run's own: made without a hook, filled from the one that they are made beside, and removed.
//!
//! Nothing is followed on the way to what is copied, and what is neither file, folder nor link is left out. Where the file
//! system clones files, the system does: a copy costs no time and no space.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::{Call, scratch};
use crate::durable::{Kind, Root, present};
use crate::git::base::openat::{self, open_error};
use crate::git::base::{At as _, DirfdCache, Error, Result};
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::repo::{Repo, WorktreeLock, resolve};
use crate::model::{EntryKind, ObjectId, RepoPath, Snapshot};

/// What keeps hooks from running: neither is a work tree of ours checked out by the user, nor is its branch.
const NO_HOOKS: [&str; 2] = ["-c", "core.hooksPath=/dev/null"];

impl Repo {
    /// The commit of a revision of the user's.
    pub(crate) fn commit_of(&self, revision: &str) -> Result<ObjectId> {
        resolve(self, revision)
    }

    /// Makes a linked work tree in a folder that is not there, on a run's branch that begins, or begins again, at a commit. No
    /// file of it is written.
    ///
    /// The branch is not git's to make, whose lock file, cut off by a kill, would stay.
    pub(crate) fn add_linked(
        &self,
        lock: &WorktreeLock,
        (folder, branch): (&Path, &str),
        commit: &ObjectId,
    ) -> Result<()> {
        if self.resolve_ref(branch).as_ref() != Some(commit) {
            self.delete_refs(lock, &[branch.to_owned()])?;
            self.set_ref(lock, branch, commit)?;
        }
        let name = branch.strip_prefix("refs/heads/").unwrap_or(branch);
        let words = ["worktree", "add", "--quiet", "--no-checkout"].map(OsStr::new);
        let mut words = words.to_vec();
        words.extend([folder.as_os_str(), name.as_ref()]);
        git_without_hooks(&self.main_worktree(), &words)?;
        for own in self.notes_of_linked(folder)? {
            self.note_project(&own)?;
        }
        Ok(())
    }

    /// Writes the files of its commit into this work tree as git does, by its filters.
    pub(crate) fn check_out_all(&self) -> Result<()> {
        git_without_hooks(self.workdir(), &["reset", "--hard", "--quiet"])
    }

    /// Makes the index of this work tree a tree's, or that of its commit.
    pub(crate) fn read_into_index(&self, tree: Option<&ObjectId>) -> Result<()> {
        let tree = tree.map_or("HEAD", |tree| tree.0.as_str());
        git_without_hooks(self.workdir(), &["read-tree", tree])
    }

    /// Writes the files of a checkpoint into this work tree, which has none, byte for byte, with the index that it had.
    pub(crate) fn fill(&self, stored: &StoredCheckpoint) -> Result<()> {
        scratch::write_all(self, self.workdir(), &stored.snapshot(self)?)?;
        self.read_into_index(stored.index_tree.as_ref())
    }

    /// Removes what git notes of a linked work tree whose folder is gone, also of one that `git worktree add` was killed at,
    /// which git itself does not take for one.
    pub(crate) fn forget_linked(&self, folder: &Path) -> Result<()> {
        for own in self.notes_of_linked(folder)? {
            let root = Root::shared(self.common_dir());
            // What a kill leaves of an unlocked one, git's own housekeeping removes.
            present(root.remove_file(&own.join("locked"))).at(&own)?;
            present(root.remove_dir_all(&own)).at(&own)?;
        }
        Ok(())
    }

    /// The folders in which git notes that there is a linked work tree in this folder.
    pub(crate) fn notes_of_linked(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let notes = Root::shared(self.common_dir().join("worktrees"));
        let all = present(notes.list(Path::new(""))).at(notes.path())?;
        let real = |path: &Path| {
            Some(
                fs::canonicalize(path.parent()?)
                    .ok()?
                    .join(path.file_name()?),
            )
        };
        let mut found = Vec::new();
        for (name, _) in all.unwrap_or_default() {
            let own = notes.path().join(name);
            let Some(link) = present(fs::read(own.join("gitdir"))).at(&own)? else {
                continue;
            };
            let link = own.join(OsStr::from_bytes(link.trim_ascii_end()));
            if link.parent().and_then(real) == real(folder) {
                found.push(own);
            }
        }
        Ok(found)
    }

    /// Moves a branch that no work tree has checked out, where it still is at `from`.
    pub(crate) fn set_branch(
        &self,
        _lock: &WorktreeLock,
        (branch, from): (&str, &ObjectId),
        to: &ObjectId,
        message: &str,
    ) -> Result<()> {
        let (to, from) = (to.0.as_str(), from.0.as_str());
        let words = ["update-ref", "-m", message, branch, to, from];
        git_without_hooks(&self.main_worktree(), &words)
    }

    /// Copies what a capture of this work tree holds into another, which has nothing of it. What is gone by now is left out.
    pub(crate) fn copy_captured(&self, captured: &Snapshot, to: &Path) -> Result<()> {
        let mut folders = DirfdCache::of(self.workdir())?;
        for (path, mode) in &captured.dirs {
            make_folder(&path.below(to), *mode)?;
        }
        for (path, entry) in &captured.entries {
            let place = path.below(to);
            if matches!(entry.kind, EntryKind::EmptyDir | EntryKind::Gitlink) {
                make_folder(&place, entry.mode)?;
                continue;
            }
            let (above, name) = openat::split(path);
            let copied = folders
                .open(&above)
                .and_then(|dir| copy_file(&dir, name, &place));
            present(copied).map_err(|error| open_error(path, error))?;
        }
        Ok(())
    }

    /// Copies a file, or a folder with all that is in it, to the same place in another work tree; what is there stays.
    /// Returns whether there is one.
    ///
    /// # Errors
    /// It is a link, or one is on the way.
    pub(crate) fn copy_into(&self, path: &RepoPath, to: &Path) -> Result<bool> {
        let Some((dir, kind)) = self.plain(path, to)? else {
            return Ok(false);
        };
        let (_, name) = openat::split(path);
        let place = path.below(to);
        if kind == Kind::Directory {
            copy_folder(&dir, name, &place).map_err(|error| open_error(path, error))?;
        } else if place.symlink_metadata().is_err() {
            copy_file(&dir, name, &place).map_err(|error| open_error(path, error))?;
        }
        Ok(true)
    }

    /// Makes a link to a file or folder of this work tree in the same place of another. Returns whether there is one.
    ///
    /// # Errors
    /// It is a link, or one is on the way; the other work tree has something in its place.
    pub(crate) fn link_into(&self, path: &RepoPath, to: &Path) -> Result<bool> {
        if self.plain(path, to)?.is_none() {
            return Ok(false);
        }
        let place = path.below(to);
        symlink(path.below(self.workdir()), &place).at(&place)?;
        Ok(true)
    }

    /// The folder of a path that is a file or a folder of this work tree, and which it is; the folders above it are made in
    /// another work tree. `None` where nothing is there.
    fn plain(&self, path: &RepoPath, to: &Path) -> Result<Option<(OwnedFd, Kind)>> {
        let (above, name) = openat::split(path);
        let root = openat::open_root(self.workdir())?;
        let dir =
            present(openat::open_path(&root, &above)).map_err(|error| open_error(path, error))?;
        let Some(dir) = dir else { return Ok(None) };
        let found = openat::stat(&dir, name).map_err(|error| open_error(path, error))?;
        let Some(kind) = found.map(|found| found.kind()) else {
            return Ok(None);
        };
        if !matches!(kind, Kind::Directory | Kind::RegularFile) {
            return Err(Error::unsafe_path(path, "is neither a file nor a folder"));
        }
        for folder in above.ancestors().chain([above.clone()]) {
            let place = folder.below(to);
            if folder.as_bytes().is_empty() || place.is_dir() && !place.is_symlink() {
                continue;
            }
            fs::create_dir(&place).at(&place)?;
        }
        Ok(Some((dir, kind)))
    }
}

fn git_without_hooks<S: AsRef<OsStr>>(folder: &Path, words: &[S]) -> Result<()> {
    let words = words.iter().map(AsRef::as_ref);
    let words: Vec<_> = NO_HOOKS.map(OsStr::new).into_iter().chain(words).collect();
    Call { folder, env: &[] }.run(&words, b"").map(drop)
}

fn make_folder(place: &Path, mode: u32) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(mode | 0o700);
    builder.create(place).at(place)
}

/// Copies a file with its rights, or a link as it is; anything else is left out.
fn copy_file(dir: &OwnedFd, name: &[u8], place: &Path) -> io::Result<()> {
    match openat::stat(dir, name)?.map(|found| found.kind()) {
        Some(Kind::Symlink) => {
            let target = openat::read_link(dir, name)?;
            symlink(OsStr::from_bytes(&target), place)
        }
        Some(Kind::RegularFile) => {
            let mut from = openat::open_file(dir, name)?;
            let rights = from.metadata()?.permissions().mode() & 0o777;
            let mut to = File::options()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(place)?;
            io::copy(&mut from, &mut to)?;
            to.set_permissions(fs::Permissions::from_mode(rights))
        }
        _ => Ok(()),
    }
}

/// Copies a folder with all that is in it; what is there already stays.
fn copy_folder(dir: &OwnedFd, name: &[u8], place: &Path) -> io::Result<()> {
    let folder = openat::open_folder(dir, name)?;
    match fs::create_dir(place) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    for name in openat::names(&folder)? {
        let place = place.join(OsStr::from_bytes(&name));
        let is_folder =
            openat::stat(&folder, &name)?.is_some_and(|found| found.kind() == Kind::Directory);
        if is_folder {
            copy_folder(&folder, &name, &place)?;
        } else if place.symlink_metadata().is_err() {
            copy_file(&folder, &name, &place)?;
        }
    }
    let found = openat::stat_open(&folder)?;
    fs::set_permissions(
        place,
        fs::Permissions::from_mode(found.permissions() | 0o700),
    )
}
