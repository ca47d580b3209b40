//! A work tree for the moment, outside of the user's, in which one checkpoint after the other is shown.
//!
//! git knows it as a work tree of the repository, though it stands in none of git's lists: its HEAD and its index are its
//! own, everything else is shared. A note of it lies in our folder, so that what a kill leaves is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use tempfile::TempDir;

use super::{Call, write_entry};
use crate::durable::{Sync, is_left_over};
use crate::git::base::{At as _, Error, Result, paths};
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::odb::database::Database;
use crate::git::odb::publish;
use crate::git::repo::repository::Repo;
use crate::model::{Entry, EntryKind, ObjectId, RepoPath, Snapshot};

/// What the names of such work trees begin with.
const PREFIX: &str = "recover-bisect-";
/// What the names of notes begin with; then the process id.
const NOTE: &str = "scratch-";

/// Which file it is and when it was changed: time, size and number.
type Stat = (i64, i64, u64, u64, u32);

/// The work tree. It goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch<'r> {
    repo: &'r Repo,
    folder: TempDir,
    note: PathBuf,
    /// What was written, as it was then.
    shown: BTreeMap<RepoPath, (Entry, Option<Stat>)>,
}

impl<'r> Scratch<'r> {
    /// An empty one in the folder for temporary files.
    pub(crate) fn new(repo: &'r Repo) -> Result<Self> {
        let temporary = fs::canonicalize(std::env::temp_dir()).at(&std::env::temp_dir())?;
        let note = repo
            .recover_dir()?
            .join(format!("{NOTE}{}", std::process::id()));
        // The name is noted before it is there.
        let name = format!("{PREFIX}{}-{:x}", std::process::id(), note_number());
        let place = temporary.join(&name);
        repo.own()
            .write(&note, place.as_os_str().as_bytes(), Sync::Nothing)
            .at(&note)?;
        let made = tempfile::Builder::new()
            .prefix(&name)
            .rand_bytes(0)
            .tempdir_in(&temporary);
        let folder = made.at(&place)?;
        let scratch = Self {
            repo,
            folder,
            note,
            shown: BTreeMap::new(),
        };
        for part in ["git", "tree"] {
            let path = scratch.folder.path().join(part);
            fs::create_dir(&path).at(&path)?;
        }
        if !repo.is_private() {
            let git = scratch.folder.path().join("git");
            let file = scratch.path().join(".git");
            let line =
                |text: &[u8], path: &Path| [text, path.as_os_str().as_bytes(), b"\n"].concat();
            fs::write(&file, line(b"gitdir: ", &git)).at(&file)?;
            fs::write(git.join("gitdir"), line(b"", &file)).at(&git)?;
            fs::write(git.join("commondir"), line(b"", repo.common_dir())).at(&git)?;
            repo.note_project(&git)?;
        }
        Ok(scratch)
    }

    /// Where its files are.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    /// Makes the files those of a checkpoint, byte for byte. What is right already stays untouched, and so does what is in no
    /// checkpoint that was shown: what a command made there, unless it is in the way.
    pub(crate) fn show(&mut self, stored: &StoredCheckpoint) -> Result<()> {
        let snapshot = stored.snapshot(self.repo)?;
        let database = Database::open(self.repo)?;
        let root = self.path();
        refuse_unsafe(&snapshot)?;
        let gone: Vec<RepoPath> = self
            .shown
            .keys()
            .filter(|path| !snapshot.entries.contains_key(*path))
            .cloned()
            .collect();
        for path in gone.iter().rev() {
            self.shown.remove(path);
            if path
                .ancestors()
                .all(|folder| is_folder(&folder.below(&root)))
            {
                remove_file(&path.below(&root))?;
                // Folders that hold nothing any more.
                let above = path.ancestors().collect::<Vec<_>>();
                above
                    .iter()
                    .rev()
                    .take_while(|folder| fs::remove_dir(folder.below(&root)).is_ok())
                    .count();
            }
        }
        let mut folders = BTreeSet::new();
        for (path, entry) in &snapshot.entries {
            make_folders(&root, path, &mut folders)?;
            let place = path.below(&root);
            let is_right = matches!(self.shown.get(path), Some((shown, stat))
                if shown == entry && stat.is_some() && *stat == stat_of(&place));
            if is_right {
                continue;
            }
            write(&database, &place, entry)?;
            self.shown
                .insert(path.clone(), (entry.clone(), stat_of(&place)));
        }
        self.point_head(stored)
    }

    /// Makes the files those that a clone at this commit has. Nothing was shown before.
    pub(crate) fn check_out(&self, commit: &ObjectId) -> Result<()> {
        self.git(&format!("{commit}\n"), &["reset", "--hard", "--quiet"])
    }

    /// Calls git there, with this HEAD.
    fn git(&self, head: &str, words: &[&str]) -> Result<()> {
        let (git, folder) = (self.folder.path().join("git"), &self.path());
        fs::write(git.join("HEAD"), head).at(&git)?;
        let env: &[(OsString, OsString)] = &[
            ("GIT_DIR".into(), git.into()),
            ("GIT_WORK_TREE".into(), folder.into()),
        ];
        Call { folder, env }.run(words, b"").map(drop)
    }

    /// Lets HEAD and the index be those that the checkpoint came on top of.
    fn point_head(&self, stored: &StoredCheckpoint) -> Result<()> {
        if self.repo.is_private() {
            return Ok(());
        }
        let head = &stored.manifest.head;
        let text = match (&head.commit, &head.branch) {
            (Some(commit), _) => format!("{commit}\n"),
            (None, branch) => format!("ref: {}\n", branch.as_deref().unwrap_or("refs/heads/main")),
        };
        let tree = head.commit.as_ref();
        let tree = tree.map_or("--empty", |commit| commit.0.as_str());
        self.git(&text, &["read-tree", tree])
    }
}

fn refuse_unsafe(snapshot: &Snapshot) -> Result<()> {
    let reason = |path| Some((path, paths::unsafe_path(path)?));
    match snapshot.entries.keys().find_map(reason) {
        Some((path, reason)) => Err(Error::unsafe_path(path, reason)),
        None => Ok(()),
    }
}

/// Makes the folders above a path that are not among those that were made.
fn make_folders(root: &Path, path: &RepoPath, made: &mut BTreeSet<RepoPath>) -> Result<()> {
    let above: Vec<RepoPath> = path.ancestors().filter(|one| !made.contains(one)).collect();
    for folder in above {
        make_folder(&folder.below(root))?;
        made.insert(folder);
    }
    Ok(())
}

/// Writes all files of a snapshot, byte for byte, into a folder that has none of them.
pub(super) fn write_all(repo: &Repo, root: &Path, snapshot: &Snapshot) -> Result<()> {
    refuse_unsafe(snapshot)?;
    let (database, mut folders) = (Database::open(repo)?, BTreeSet::new());
    for (path, entry) in &snapshot.entries {
        make_folders(root, path, &mut folders)?;
        write(&database, &path.below(root), entry)?;
    }
    for (path, mode) in snapshot.dirs.iter().rev() {
        let place = path.below(root);
        fs::set_permissions(&place, fs::Permissions::from_mode(*mode)).at(&place)?;
    }
    Ok(())
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        // What cannot be removed now, as a folder without rights, is tried again by the next command.
        if remove_all(self.folder.path()).is_ok() {
            let _ = self.repo.own().remove_file(&self.note);
        }
    }
}

impl Repo {
    /// Removes the work trees that dead processes left.
    pub(crate) fn sweep_scratch(&self) -> Result<usize> {
        let own = self.own_folder();
        let mut removed = 0;
        for (name, _) in self.own().list(&own).unwrap_or_default() {
            let Some(pid) = name.to_str().and_then(|name| name.strip_prefix(NOTE)) else {
                continue;
            };
            if !is_left_over(format!(".recover-tmp-{pid}-scratch").as_bytes()) {
                continue;
            }
            let note = own.join(&name);
            let text = self.own().read(&note).at(&note)?;
            let place = PathBuf::from(OsString::from_vec(text));
            let is_ours = place
                .file_name()
                .is_some_and(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
            if is_ours && is_folder(&place) {
                // With what it had half published.
                let written = place.join("git/recover/quarantine/objects");
                publish::clear(&written, &self.common_dir().join("objects"))?;
                remove_all(&place).at(&place)?;
                removed += 1;
            }
            self.own().remove_file(&note).at(&note)?;
        }
        Ok(removed)
    }
}

/// So that one process can have several, one after the other.
fn note_number() -> u128 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_nanos())
}

/// Removes a folder with all that is in it, also what a command took the rights from.
fn remove_all(folder: &Path) -> io::Result<()> {
    if fs::remove_dir_all(folder).is_ok() || folder.symlink_metadata().is_err() {
        return Ok(());
    }
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
    }
    fs::remove_dir_all(folder)
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

fn remove_file(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => {
            // One that holds what a command made stays.
            let _ = fs::remove_dir(path);
            Ok(())
        }
        Ok(_) => fs::remove_file(path).at(path),
        Err(_) => Ok(()),
    }
}

/// Makes a folder; what stands in its place, a link in particular, goes.
fn make_folder(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => fs::remove_file(path).at(path)?,
        Err(_) => {}
    }
    fs::create_dir(path).at(path)
}

fn stat_of(path: &Path) -> Option<Stat> {
    let found = path.symlink_metadata().ok()?;
    Some((
        found.mtime(),
        found.mtime_nsec(),
        found.size(),
        found.ino(),
        found.mode(),
    ))
}

/// Writes an entry, in a folder that is there.
fn write(database: &Database<'_>, place: &Path, entry: &Entry) -> Result<()> {
    if matches!(entry.kind, EntryKind::EmptyDir | EntryKind::Gitlink) {
        return make_folder(place);
    }
    match place.symlink_metadata() {
        Ok(found) if found.is_dir() => remove_all(place).at(place)?,
        Ok(_) => fs::remove_file(place).at(place)?,
        Err(_) => {}
    }
    write_entry(database, place, entry, entry.mode)
}
