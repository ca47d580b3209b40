//! Commits in the making.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use git2::{AttrCheckFlags, ConfigLevel, Odb, Oid};
use tempfile::TempDir;

use super::held::{Held, differing};
use super::{Call, Saved, place, write_entry};
use crate::durable::{TemporaryFolder, temporary_prefix};
use crate::git::base::openat::{self, inspect};
use crate::git::base::{
    At as _, DirfdCache, Error, GITLINK, OnDisk, Result, oid_of, parse_oid, paths,
};
use crate::git::capture::Capture;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::index::user_index::UserIndex;
use crate::git::odb::{Database, Flat, ObjectWriter, trees};
use crate::git::repo::{Repo, WorktreeLock};
use crate::git::tree::{Differing, TreeLookup};
use crate::model::{Entry, EntryKind, ObjectId, RepoPath};

/// An index of its own and a place for new objects. Nothing of the user's is written before [`Staging::publish`]; it goes
/// when this is dropped, and what a kill leaves of it with the next lock of the work tree.
#[derive(Debug)]
pub(crate) struct Staging<'r> {
    pub(super) repo: &'r Repo,
    folder: Folder,
}

/// Where it lies.
#[derive(Debug)]
enum Folder {
    /// Of a rehearsal: outside of the repository.
    Outside(TemporaryFolder),
    /// In the worktree's own folder, whose lock is held.
    Own(TempDir),
}

impl Folder {
    fn path(&self) -> &Path {
        match self {
            Self::Outside(folder) => folder.path(),
            Self::Own(folder) => folder.path(),
        }
    }
}

impl<'r> Staging<'r> {
    /// An empty one; in a rehearsal nothing of it lies in the repository.
    pub(crate) fn new(repo: &'r Repo, is_rehearsal: bool) -> Result<Self> {
        let folder = if is_rehearsal {
            Folder::Outside(TemporaryFolder::new().at(&std::env::temp_dir())?)
        } else {
            let parent = repo.recover_dir()?;
            let prefix = format!("{}commit", temporary_prefix());
            let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(&parent);
            Folder::Own(folder.at(&parent)?)
        };
        let staging = Self { repo, folder };
        for part in ["objects/info", "objects/pack", "git", "tree"] {
            let path = staging.part(part);
            fs::create_dir_all(&path).at(&path)?;
        }
        Ok(staging)
    }

    fn part(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where git works, and where it keeps what it writes.
    pub(super) fn environment(&self, workdir: &Path) -> Vec<(OsString, OsString)> {
        let mut env = place(self.repo, workdir, &self.part("index"));
        env.push(("GIT_OBJECT_DIRECTORY".into(), self.part("objects").into()));
        let mut real = self.repo.common_dir().join("objects").into_os_string();
        if real.as_encoded_bytes().contains(&b':') {
            // It is a list that colons separate, unless it is quoted.
            let quoted = real.as_bytes().iter().flat_map(|byte| match byte {
                b'"' | b'\\' => vec![b'\\', *byte],
                _ => vec![*byte],
            });
            real = OsString::from_vec([b"\"".to_vec(), quoted.collect(), b"\"".to_vec()].concat());
        }
        env.push(("GIT_ALTERNATE_OBJECT_DIRECTORIES".into(), real));
        // What is committed does not depend on what of it is checked out.
        let mut settings = vec![("core.sparseCheckout".to_owned(), "false")];
        if matches!(self.folder, Folder::Outside(_)) {
            settings.extend(without_programs(self.repo));
            // A partial clone would connect with whatever is configured.
            env.push(("GIT_NO_LAZY_FETCH".into(), "1".into()));
        }
        env.push(("GIT_CONFIG_COUNT".into(), settings.len().to_string().into()));
        for (at, (key, value)) in settings.into_iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{at}").into(), key.into()));
            env.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.into()));
        }
        env
    }

    pub(super) fn git<S: AsRef<OsStr>>(&self, words: &[S], input: &[u8]) -> Result<Vec<u8>> {
        self.git_in(self.repo.workdir(), words, input)
    }

    fn git_in<S: AsRef<OsStr>>(&self, folder: &Path, words: &[S], input: &[u8]) -> Result<Vec<u8>> {
        let env = &self.environment(folder);
        Call { folder, env }.run(words, input)
    }

    /// Makes the index that of a commit; `None` empties it.
    pub(crate) fn read(&self, commit: Option<&ObjectId>) -> Result<()> {
        let tree = commit.map_or("--empty", |commit| commit.0.as_str());
        self.git(&["read-tree", tree], b"").map(drop)
    }

    /// Takes paths of the work tree into the index as they are, through git's own filters; one that is not there goes. What
    /// neither has is left out.
    pub(crate) fn add<'p>(&self, paths: impl IntoIterator<Item = &'p RepoPath>) -> Result<()> {
        self.add_from(self.repo.workdir(), paths)
    }

    fn add_from<'p>(
        &self,
        workdir: &Path,
        paths: impl IntoIterator<Item = &'p RepoPath>,
    ) -> Result<()> {
        let known = self.entries()?;
        let is_there = |path: &&RepoPath| {
            known.contains_key(*path) || path.below(workdir).symlink_metadata().is_ok()
        };
        // Where a folder stands now the file is gone; what lies in it was not asked for. So it is where a link leads elsewhere.
        let is_gone = |path: &&RepoPath| {
            let place = path.below(workdir);
            let is_folder = place.symlink_metadata().is_ok_and(|found| found.is_dir());
            let is_beyond = |folder: RepoPath| folder.below(workdir).is_symlink();
            is_folder && place.join(".git").symlink_metadata().is_err()
                || path.ancestors().any(is_beyond)
        };
        let (gone, there): (Vec<_>, Vec<_>) = paths.into_iter().filter(is_there).partition(is_gone);
        let gone = nul_separated(gone.into_iter());
        if !gone.is_empty() {
            self.git(&["update-index", "--force-remove", "-z", "--stdin"], &gone)?;
        }
        let list = nul_separated(there.into_iter());
        if list.is_empty() {
            return Ok(());
        }
        let words = [
            "--literal-pathspecs",
            "add",
            "-f",
            "-A",
            "--pathspec-from-file=-",
            "--pathspec-file-nul",
        ];
        self.git_in(workdir, &words, &list).map(drop)
    }

    /// Takes paths into the index as a checkpoint has them; one that it does not have goes.
    pub(crate) fn add_stored(
        &self,
        stored: &StoredCheckpoint,
        paths: &BTreeSet<RepoPath>,
    ) -> Result<()> {
        let root = self.part("tree");
        fs::remove_dir_all(&root)
            .and_then(|()| fs::create_dir(&root))
            .at(&root)?;
        let (lookup, database) = (TreeLookup::stored(self.repo)?, Database::open(self.repo)?);
        let mut links = Vec::new();
        for path in paths {
            let Some(entry) = stored.view().entry(&lookup, path)? else {
                continue;
            };
            if entry.kind == EntryKind::Gitlink {
                links.push((path, entry.oid));
            } else {
                write_out(&database, &root, path, &entry)?;
            }
        }
        let is_link = |path: &&RepoPath| links.iter().any(|(link, _)| link == path);
        self.add_from(&root, paths.iter().filter(|path| !is_link(path)))?;
        let line = |(path, oid): &(&RepoPath, ObjectId)| {
            [
                format!("{GITLINK:o} {oid}\t").as_bytes(),
                path.as_bytes(),
                b"\0",
            ]
            .concat()
        };
        let all: Vec<Vec<u8>> = links.iter().map(line).collect();
        if all.is_empty() {
            return Ok(());
        }
        self.git(&["update-index", "-z", "--index-info"], &all.concat())
            .map(drop)
    }

    /// What the index holds.
    pub(in crate::git) fn entries(&self) -> Result<Flat> {
        let listed = self.git(&["ls-files", "-s", "-z"], b"")?;
        let mut flat = Flat::new();
        for line in listed
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
        {
            let damaged = || Error::corrupt("what git ls-files printed");
            let tab = line
                .iter()
                .position(|byte| *byte == b'\t')
                .ok_or_else(damaged)?;
            let head = std::str::from_utf8(&line[..tab]).map_err(|_| damaged())?;
            let mut words = head.split(' ');
            let (mode, oid) = (
                words.next().unwrap_or_default(),
                words.next().unwrap_or_default(),
            );
            let mode = u32::from_str_radix(mode, 8).map_err(|_| damaged())?;
            let oid = Oid::from_str(oid).map_err(|_| damaged())?;
            flat.insert(RepoPath::new(&line[tab + 1..]), (mode, oid));
        }
        Ok(flat)
    }

    /// What the index holds now.
    pub(crate) fn held(&self) -> Result<Held> {
        self.entries().map(Held)
    }

    /// Copies of files of the work tree, by this name and for as long as this is there.
    pub(crate) fn save(&self, name: &str, paths: &BTreeSet<RepoPath>) -> Result<Saved> {
        let folder = self.part(name);
        fs::create_dir(&folder).at(&folder)?;
        Saved::new(folder, self.repo.workdir(), paths)
    }

    /// Writes paths of the index into the work tree.
    pub(crate) fn check_out<'p>(&self, paths: impl Iterator<Item = &'p RepoPath>) -> Result<()> {
        self.git(
            &["checkout-index", "-f", "-z", "--stdin"],
            &nul_separated(paths),
        )
        .map(drop)
    }

    /// The paths that the index has otherwise than a commit, or than nothing.
    pub(crate) fn changed_since(&self, commit: Option<&ObjectId>) -> Result<BTreeSet<RepoPath>> {
        Ok(differing(&flat_of(self.repo, commit)?, &self.entries()?))
    }

    /// Writes the index as a tree.
    pub(crate) fn write_tree(&self) -> Result<ObjectId> {
        self.git(&["write-tree"], b"").map(|id| object_id(&id))
    }

    /// Makes a commit, signed where the user's commits are.
    pub(crate) fn commit<'p>(
        &self,
        tree: &ObjectId,
        parents: impl IntoIterator<Item = &'p ObjectId>,
        message: &str,
    ) -> Result<ObjectId> {
        let mut words = vec!["commit-tree", tree.0.as_str()];
        for parent in parents {
            words.extend(["-p", parent.0.as_str()]);
        }
        if self.repo.signs_commits() {
            words.push("-S");
        }
        words.extend(["-F", "-"]);
        self.git(&words, message.as_bytes())
            .map(|id| object_id(&id))
    }

    /// Refuses where git does not know who commits.
    pub(crate) fn require_identity(&self) -> Result<()> {
        ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"]
            .iter()
            .try_for_each(|who| self.git(&["var", who], b"").map(drop))
    }

    /// A message without what git takes off: blanks at the ends of lines, empty lines at both ends and more than one between.
    pub(crate) fn clean(&self, message: &str) -> Result<String> {
        let cleaned = self.git(&["stripspace"], message.as_bytes())?;
        Ok(String::from_utf8_lossy(&cleaned).into_owned())
    }

    /// The file in which hooks find and change the message.
    pub(crate) fn message_file(&self) -> PathBuf {
        self.part("COMMIT_EDITMSG")
    }

    /// Writes the message for hooks.
    pub(crate) fn write_message(&self, message: &str) -> Result<()> {
        let file = self.message_file();
        fs::write(&file, message).at(&file)
    }

    /// The message as hooks left it.
    pub(crate) fn read_message(&self) -> Result<String> {
        let file = self.message_file();
        let text = fs::read(&file).at(&file)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// What hooks find of the commit: the index, and a HEAD at `parent` where that is not the user's own.
    pub(crate) fn hook_environment(
        &self,
        parent: Option<&ObjectId>,
    ) -> Result<Vec<(OsString, OsString)>> {
        let mut env: Vec<(OsString, OsString)> = vec![
            ("GIT_INDEX_FILE".into(), self.part("index").into()),
            ("GIT_EDITOR".into(), ":".into()),
        ];
        let head = self.repo.head()?;
        if let Some(parent) = parent.filter(|parent| head.commit.as_ref() != Some(parent)) {
            let folder = self.part("git");
            let write = |name: &str, text: &[u8]| {
                let file = folder.join(name);
                fs::write(&file, text).at(&file)
            };
            write("HEAD", format!("{parent}\n").as_bytes())?;
            // As for a linked work tree: all but HEAD is shared.
            write(
                "commondir",
                &[self.repo.common_dir().as_os_str().as_bytes(), b"\n"].concat(),
            )?;
            env.push(("GIT_DIR".into(), folder.into()));
            env.push(("GIT_WORK_TREE".into(), self.repo.workdir().into()));
        }
        Ok(env)
    }

    /// Puts all objects that were written so far into the real database.
    pub(crate) fn publish(&self, lock: &WorktreeLock) -> Result<()> {
        let failed = || Error::git("read what git wrote");
        let odb = Odb::new().map_err(failed())?;
        let place = self.part("objects");
        odb.add_disk_alternate(&place.to_string_lossy())
            .map_err(failed())?;
        let writer = ObjectWriter::new(self.repo, lock)?;
        writer.write_all_of(&odb)?.map_err(failed())?;
        writer.publish()
    }
}

/// The filters that the repository's own configuration defines: whoever may write to that has it start anything.
fn own_filters(repo: &Repo) -> BTreeSet<String> {
    let Ok(config) = repo.inner.config() else {
        return BTreeSet::new();
    };
    let Ok(mut entries) = config.entries(Some("^filter\\.")) else {
        return BTreeSet::new();
    };
    let mut names = BTreeSet::new();
    while let Some(Ok(entry)) = entries.next() {
        let is_own = matches!(entry.level(), ConfigLevel::Local | ConfigLevel::Worktree);
        let name = entry
            .name()
            .ok()
            .and_then(|name| Some(name.strip_prefix("filter.")?.rsplit_once('.')?.0.to_owned()));
        names.extend(name.filter(|_| is_own));
    }
    names
}

/// The settings with which git starts no program that the repository names: a rehearsal changes nothing and starts nothing.
fn without_programs(repo: &Repo) -> Vec<(String, &'static str)> {
    let mut settings = vec![("core.hooksPath".to_owned(), "/dev/null")];
    for name in own_filters(repo) {
        settings.extend(
            ["clean", "smudge", "process"].map(|part| (format!("filter.{name}.{part}"), "")),
        );
        settings.push((format!("filter.{name}.required"), "false"));
    }
    settings
}

/// Those of `paths` that can be compared: in a rehearsal none that a filter of the repository's own would change.
fn comparable(repo: &Repo, paths: BTreeSet<RepoPath>, is_rehearsal: bool) -> BTreeSet<RepoPath> {
    let filters = if is_rehearsal {
        own_filters(repo)
    } else {
        BTreeSet::new()
    };
    if filters.is_empty() {
        return paths;
    }
    let is_filtered = |path: &RepoPath| {
        let found = repo.inner.get_attr(
            &path.below(Path::new("")),
            "filter",
            AttrCheckFlags::FILE_THEN_INDEX,
        );
        found
            .ok()
            .flatten()
            .is_some_and(|name| filters.contains(name))
    };
    paths
        .into_iter()
        .filter(|path| !is_filtered(path))
        .collect()
}

impl Repo {
    /// Those of `paths` that were not committed as a checkpoint has them, or were staged: a person's own work.
    pub(crate) fn uncommitted_at(
        &self,
        stored: &StoredCheckpoint,
        paths: &BTreeSet<RepoPath>,
        is_rehearsal: bool,
    ) -> Result<BTreeSet<RepoPath>> {
        let head = stored.manifest.head.commit.as_ref();
        let committed = flat_of(self, head)?;
        let staged = flat_of_tree(self, stored.index_tree.as_ref())?;
        let (mut uncommitted, as_committed): (BTreeSet<_>, BTreeSet<_>) = paths
            .iter()
            .cloned()
            .partition(|path| staged.get(path) != committed.get(path));
        uncommitted.extend(self.unlike_stored(stored, head, &as_committed, is_rehearsal)?);
        Ok(uncommitted)
    }

    /// Those of `paths` that a commit has otherwise than a checkpoint.
    pub(crate) fn unlike_stored(
        &self,
        stored: &StoredCheckpoint,
        commit: Option<&ObjectId>,
        paths: &BTreeSet<RepoPath>,
        is_rehearsal: bool,
    ) -> Result<BTreeSet<RepoPath>> {
        let committed = flat_of(self, commit)?;
        let lookup = TreeLookup::stored(self)?;
        let (mut unlike, mut perhaps) = (BTreeSet::new(), BTreeSet::new());
        for path in paths {
            let entry = stored
                .view()
                .entry(&lookup, path)?
                .filter(|entry| entry.kind != EntryKind::EmptyDir);
            match (entry, committed.get(path)) {
                (None, None) => {}
                (Some(entry), Some(committed)) if has(committed, &entry) => {}
                (Some(_), Some(_)) => drop(perhaps.insert(path.clone())),
                _ => drop(unlike.insert(path.clone())),
            }
        }
        let perhaps = comparable(self, perhaps, is_rehearsal);
        if !perhaps.is_empty() {
            let staging = Staging::new(self, is_rehearsal)?;
            staging.read(commit)?;
            staging.add_stored(stored, &perhaps)?;
            let entries = staging.entries()?;
            unlike.extend(
                perhaps
                    .into_iter()
                    .filter(|path| entries.get(path) != committed.get(path)),
            );
        }
        Ok(unlike)
    }

    /// Those of `paths` that a commit has otherwise than the work tree.
    pub(crate) fn unlike_work_tree(
        &self,
        commit: Option<&ObjectId>,
        paths: &BTreeSet<RepoPath>,
        is_rehearsal: bool,
    ) -> Result<BTreeSet<RepoPath>> {
        let staging = Staging::new(self, is_rehearsal)?;
        staging.read(commit)?;
        let paths = comparable(self, paths.clone(), is_rehearsal);
        staging.add(&paths)?;
        Ok(differing(&staging.entries()?, &flat_of(self, commit)?)
            .intersection(&paths)
            .cloned()
            .collect())
    }

    /// The paths of which a commit has something else than a capture of the work tree, which is as it was captured.
    pub(crate) fn differs_from_captured(
        &self,
        commit: &ObjectId,
        capture: &Capture,
    ) -> Result<BTreeSet<RepoPath>> {
        let mut committed = flat_of(self, Some(commit))?;
        let objects = capture.objects();
        let (mut unlike, mut perhaps) = (BTreeSet::new(), BTreeSet::new());
        for (path, entry) in capture
            .view()
            .snapshot(&TreeLookup::new(&objects)?)?
            .entries
        {
            match committed.remove(&path) {
                None if entry.kind == EntryKind::EmptyDir => {}
                Some(committed) if has(&committed, &entry) => {}
                Some(_) => drop(perhaps.insert(path)),
                None => drop(unlike.insert(path)),
            }
        }
        unlike.extend(committed.into_keys());
        unlike.extend(self.unlike_work_tree(Some(commit), &perhaps, false)?);
        Ok(unlike)
    }

    /// Those of `paths` of which the work tree has something else than a checkpoint.
    pub(crate) fn unlike_on_disk(
        &self,
        stored: &StoredCheckpoint,
        paths: &BTreeSet<RepoPath>,
    ) -> Result<BTreeSet<RepoPath>> {
        let lookup = TreeLookup::stored(self)?;
        let mut folders = DirfdCache::of(self.workdir())?;
        let mut unlike = BTreeSet::new();
        for path in paths {
            let entry = stored
                .view()
                .entry(&lookup, path)?
                .filter(|entry| entry.kind != EntryKind::EmptyDir);
            let (folder, name) = openat::split(path);
            let found = match folders.open(&folder) {
                Ok(folder) => inspect(&folder, name).at(&path.below(self.workdir()))?,
                Err(_) => OnDisk::Nothing,
            };
            let is_same = match (&entry, found) {
                (None, OnDisk::Nothing) => true,
                (Some(entry), OnDisk::Entry(oid, stat)) => {
                    entry.oid.0 == oid.to_string() && mode_of(entry) == stat.git_mode()
                }
                (entry, OnDisk::Other) => {
                    let is_folder = entry
                        .as_ref()
                        .is_none_or(|entry| entry.kind == EntryKind::Gitlink);
                    is_folder && path.below(self.workdir()).is_dir()
                }
                _ => false,
            };
            if !is_same {
                unlike.insert(path.clone());
            }
        }
        Ok(unlike)
    }

    /// Writes a file of a checkpoint into the work tree under a name that nothing has; `false` where the checkpoint has no file.
    pub(crate) fn write_beside(
        &self,
        stored: &StoredCheckpoint,
        path: &RepoPath,
        name: &RepoPath,
    ) -> Result<bool> {
        let entry = stored.view().entry(&TreeLookup::stored(self)?, path)?;
        let Some(entry) =
            entry.filter(|entry| matches!(entry.kind, EntryKind::File | EntryKind::Symlink))
        else {
            return Ok(false);
        };
        write_out(&Database::open(self)?, self.workdir(), name, &entry)?;
        Ok(true)
    }

    /// Those of `paths` that git knows: a commit or the user's index has them.
    pub(crate) fn known_to_git(
        &self,
        commit: Option<&ObjectId>,
        paths: &BTreeSet<RepoPath>,
    ) -> Result<BTreeSet<RepoPath>> {
        let (committed, staged) = (flat_of(self, commit)?, UserIndex::read(self)?);
        let is_known =
            |path: &&RepoPath| committed.contains_key(*path) || staged.has(path.as_bytes());
        Ok(paths.iter().filter(is_known).cloned().collect())
    }

    /// Those of `paths` that are there, unknown to the user's index, and ignored.
    pub(crate) fn ignored_now(&self, paths: &BTreeSet<RepoPath>) -> Result<BTreeSet<RepoPath>> {
        let (staged, top) = (UserIndex::read(self)?, self.workdir());
        let is_ignored = |path: &&RepoPath| {
            fs::symlink_metadata(path.below(top)).is_ok()
            && !staged.has(path.as_bytes())
            // Where git cannot say, it is a file like any other.
            && self.inner.is_path_ignored(path.below(Path::new(""))).unwrap_or(false)
        };
        Ok(paths.iter().filter(is_ignored).cloned().collect())
    }

    /// The paths that are not the same in two commits; `None` has none.
    pub(crate) fn differs_between(
        &self,
        one: Option<&ObjectId>,
        other: Option<&ObjectId>,
    ) -> Result<BTreeSet<RepoPath>> {
        Ok(differing_commits(self, one, other)?.into_keys().collect())
    }
}

/// The files that are not the same in two commits, with what each of them has there; `None` has none.
pub(super) fn differing_commits(
    repo: &Repo,
    one: Option<&ObjectId>,
    other: Option<&ObjectId>,
) -> Result<Differing> {
    let tree = |commit: Option<&ObjectId>| {
        let tree = commit.map(|commit| repo.tree_of(commit)).transpose()?;
        oid_of(tree.as_ref())
    };
    TreeLookup::stored(repo)?.differing(tree(one)?, tree(other)?)
}

/// The mode that git gives an entry.
fn mode_of(entry: &Entry) -> u32 {
    match entry.kind {
        EntryKind::File if entry.mode & 0o100 != 0 => 0o100_755,
        EntryKind::File => 0o100_644,
        EntryKind::Symlink => 0o120_000,
        EntryKind::Gitlink | EntryKind::EmptyDir => GITLINK,
    }
}

/// Whether a commit has an entry as it is. Where not, filters or a mode that `core.fileMode` has git ignore may yet make the
/// same of it.
fn has(committed: &(u32, Oid), entry: &Entry) -> bool {
    entry.oid.0 == committed.1.to_string() && committed.0 == mode_of(entry)
}

/// Every path of a commit.
pub(super) fn flat_of(repo: &Repo, commit: Option<&ObjectId>) -> Result<Flat> {
    let tree = commit.map(|commit| repo.tree_of(commit)).transpose()?;
    flat_of_tree(repo, tree.as_ref())
}

/// Every path of a tree.
pub(super) fn flat_of_tree(repo: &Repo, tree: Option<&ObjectId>) -> Result<Flat> {
    tree.map_or_else(
        || Ok(Flat::new()),
        |tree| trees::read(&Database::open(repo)?, parse_oid(tree)?),
    )
}

fn nul_separated<'p>(paths: impl Iterator<Item = &'p RepoPath>) -> Vec<u8> {
    paths
        .flat_map(|path| [path.as_bytes(), b"\0"].concat())
        .collect()
}

pub(super) fn object_id(printed: &[u8]) -> ObjectId {
    ObjectId(String::from_utf8_lossy(printed).trim().to_owned())
}

/// Writes a file or a link below a folder that was empty.
fn write_out(database: &Database<'_>, root: &Path, path: &RepoPath, entry: &Entry) -> Result<()> {
    let place = path.below(root);
    if let Some(reason) = paths::unsafe_path(path) {
        return Err(Error::unsafe_path(path, reason));
    }
    let folder = place.parent().unwrap_or(root);
    fs::create_dir_all(folder).at(folder)?;
    match entry.kind {
        EntryKind::File | EntryKind::Symlink => {
            write_entry(database, &place, entry, mode_of(entry) & 0o777)
        }
        EntryKind::Gitlink | EntryKind::EmptyDir => Ok(()),
    }
}
