//! A work tree and the object database behind it: the user's repository, or a private one.
//! Which other work trees it has, too.

use std::cell::OnceCell;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Oid, RepositoryOpenFlags, RepositoryState};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::nested::{Outer, is_repository, stray};
use super::owner;
use crate::durable::{Root, Sync};
use crate::git::base::{At as _, Error, Result, Unusable, openat, present};
use crate::model::{Head, ObjectId, RepoPath};

/// The name of the folder in a git folder that is ours.
pub(in crate::git) const OWN: &str = "recover";

/// The name and address of every commit of ours.
pub(in crate::git) const IDENTITY: (&str, &str) = ("recover", "recover@localhost");

/// A work tree with its object database and references.
///
/// Either the user's repository, found from a folder, or a private one for a folder without any. Inherited `GIT_DIR`,
/// `GIT_INDEX_FILE`, `GIT_WORK_TREE` and the like are ignored: libgit2 reads them only when asked to. No hook, filter
/// or fsmonitor is ever run: libgit2 runs no program for anything that is done here.
pub struct Repo {
    pub(in crate::git) inner: git2::Repository,
    workdir: PathBuf,
    private: bool,
    /// The git folder of this worktree, with our own part of it, and the one that linked worktrees share.
    own: Root,
    common: Root,
    /// The main worktree, where this is another one, and the repository by the folder that all share, once asked for.
    pub(super) main: OnceCell<MainWorktree>,
    pub(super) by_common: OnceCell<Option<git2::Repository>>,
}

/// The main worktree, as a linked one finds it.
pub(super) enum MainWorktree {
    /// There is none, or it cannot be opened: this one counts as the main one.
    None,
    /// What was noted leads to it.
    Noted(git2::Repository),
    /// Git's library finds it from the folder that all share.
    Found,
    /// Nothing says where it is.
    Unknown,
}

impl std::fmt::Debug for Repo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repo")
            .field("workdir", &self.workdir)
            .field("git_dir", &self.git_dir())
            .finish_non_exhaustive()
    }
}

/// Files of git's own that are read here or by its library.
const READ: [&str; 8] = [
    "HEAD",
    "config",
    "index",
    "packed-refs",
    "shallow",
    "info/exclude",
    "info/attributes",
    "objects/info/alternates",
];

impl Repo {
    /// Finds the repository of `start`, in it or above it (within one file system, as git does).
    ///
    /// `home` is the user's home folder: it, its ancestors and `/` are refused as roots. A repository of another user is
    /// refused with [`Error::ForeignOwner`] unless git's own `safe.directory` names it; those of root are not, nor, for
    /// root, those of the user who called `sudo`.
    pub fn discover(start: &Path, home: Option<&Path>) -> Result<Self> {
        let repo = Self::open(start, RepositoryOpenFlags::empty(), home)?;
        repo.refuse_unknown_main()?;
        Ok(repo)
    }

    /// Opens the repository whose work tree is this very folder of another one's work tree.
    ///
    /// A folder without a repository of its own is [`Error::NotARepository`], one whose `core.worktree` is elsewhere, or
    /// whose `.git` leads into another project, [`Error::Unsupported`].
    pub fn nested(outer: &Self, path: &RepoPath, home: Option<&Path>) -> Result<Self> {
        let folder = path.below(&outer.workdir);
        let repo = Self::open(&folder, RepositoryOpenFlags::NO_SEARCH, home)?;
        if repo.workdir != folder {
            return Err(Error::Unsupported(format!(
                "its work tree is {}",
                repo.workdir.display()
            )));
        }
        match stray(outer.as_outer(), &folder, &repo.inner) {
            Some(what) => Err(Error::Unsupported(what)),
            None => Ok(repo),
        }
    }

    /// Whether an object is there.
    pub fn has_object(&self, oid: &ObjectId) -> bool {
        let found = git2::Oid::from_str(&oid.0).and_then(|oid| Ok(self.inner.odb()?.exists(oid)));
        found.unwrap_or(false)
    }

    /// Whether a folder of the work tree is one of a repository of its own, whatever that is like.
    pub fn has_nested(&self, path: &RepoPath) -> bool {
        let Ok(root) = openat::open_root(&self.workdir) else {
            return false;
        };
        openat::open_path(&root, path).is_ok_and(|dir| is_repository(&dir))
    }

    /// As the one that others lie in.
    pub(in crate::git) fn as_outer(&self) -> Outer<'_> {
        Outer {
            workdir: &self.workdir,
            git_dir: self.git_dir(),
            common_dir: self.common_dir(),
        }
    }

    fn open(start: &Path, flags: RepositoryOpenFlags, home: Option<&Path>) -> Result<Self> {
        let none: [&std::ffi::OsStr; 0] = [];
        let entry = place_of_git(start).map(|place| place.join(".git"));
        entry.as_deref().map_or(Ok(()), refuse_endless)?;
        let inner = match git2::Repository::open_ext(start, flags, none) {
            Err(error) if error.code() == ErrorCode::Owner => {
                open_unjudged(start, flags).ok_or_else(|| open_error(start, error))?
            }
            opened => opened.map_err(|source| open_error(start, source))?,
        };
        refuse_misled(start)?;
        let Some(workdir) = inner.workdir() else {
            return Err(Error::Unsupported(format!(
                "{} is a bare repository, without files: git clone it and work there",
                inner.path().display()
            )));
        };
        refuse_posing(start, inner.path())?;
        if let Some(place) = inner.is_worktree().then(|| place_of_link(start)).flatten()
            && !is_same_folder(workdir, &place)
        {
            return Err(Error::StrayWorktree {
                place,
                known: workdir.components().collect(),
            });
        }
        let workdir = fs::canonicalize(workdir).at(workdir)?;
        // One in a work tree is judged by who opens it.
        if !flags.contains(RepositoryOpenFlags::NO_SEARCH)
            && let Some(known) = place_of_link(start).and_then(|_| owner_of_git_folder(&inner))
        {
            return Err(Error::UnsafePath {
                path: workdir.join(".git"),
                reason: format!("it leads to the repository of {}", known.display()),
            });
        }
        // What leads to the repository is not trusted either.
        let folders = [
            Some(workdir.as_path()),
            entry.as_deref(),
            Some(inner.path()),
            Some(inner.commondir()),
        ];
        for folder in folders.into_iter().flatten() {
            owner::check(folder, &workdir)?;
        }
        Self::refuse_root(&workdir, home)?;
        let roots = [inner.path(), inner.commondir()].map(|folder| Root::with_own(folder, OWN));
        Self::of(inner, workdir, false, roots).checked()
    }

    fn of(
        inner: git2::Repository,
        workdir: PathBuf,
        private: bool,
        [own, common]: [Root; 2],
    ) -> Self {
        Self {
            inner,
            workdir,
            private,
            own,
            common,
            main: OnceCell::new(),
            by_common: OnceCell::new(),
        }
    }

    /// Refuses what is neither file nor folder in the folders for what is ours.
    fn checked(self) -> Result<Self> {
        for root in [&self.own, &self.common] {
            root.check(Path::new(OWN), false)
                .at(&root.path().join(OWN))?;
            if self.own == self.common {
                break;
            }
        }
        Ok(self)
    }

    /// The private repository for a folder without git, `recover/shadow.git` in the state directory, which lies in `root`;
    /// made when it is not there.
    ///
    /// It has no index and no HEAD of a user's; objects and references are all that is used of it.
    pub fn private(
        root: &Root,
        state_dir: &Path,
        workdir: &Path,
        home: Option<&Path>,
    ) -> Result<Self> {
        let workdir = fs::canonicalize(workdir).at(workdir)?;
        Self::refuse_root(&workdir, home)?;
        let path = private_path(state_dir);
        let inner = if Self::has_private(root, state_dir)? {
            git2::Repository::open_bare(&path).map_err(|source| open_error(&path, source))?
        } else {
            init_bare(&path)?
        };
        let roots = [(); 2].map(|()| Root::own(path.clone()));
        Self::of(inner, workdir, true, roots).checked()
    }

    /// Whether the state directory has a private repository already. One with anything else in it than files and folders,
    /// which git's library would follow, is refused.
    pub fn has_private(root: &Root, state_dir: &Path) -> Result<bool> {
        let path = private_path(state_dir);
        if root.kind(&path).at(&path)?.is_none() {
            return Ok(false);
        }
        let parts = [
            ("", false),
            ("objects", false),
            ("objects/info", false),
            ("objects/pack", false),
            ("refs", true),
        ];
        for (part, deep) in parts {
            root.check(&path.join(part), deep).at(&path.join(part))?;
        }
        root.has(&path.join("HEAD")).at(&path)
    }

    /// The root of the work tree, absolute and without symlinks.
    pub fn workdir(&self) -> &Path {
        &self.workdir
    }

    /// The git folder of this worktree.
    pub fn git_dir(&self) -> &Path {
        self.inner.path()
    }

    /// The git folder that linked worktrees share.
    pub fn common_dir(&self) -> &Path {
        self.inner.commondir()
    }

    /// Whether this is a private repository for a folder without git.
    pub fn is_private(&self) -> bool {
        self.private
    }

    /// Whether this is a linked worktree of another one.
    pub fn is_linked(&self) -> bool {
        self.inner.is_worktree()
    }

    /// Where this worktree's own folder for cache, journal and lock is, or would be.
    pub(in crate::git) fn own_folder(&self) -> PathBuf {
        self.git_dir().join(OWN)
    }

    /// Makes the repository's own folder of ours if it is missing.
    pub fn recover_dir(&self) -> Result<PathBuf> {
        let path = self.own_folder();
        self.own.create_dir_all(&path).at(&path)?;
        // Versions before this one let everybody in.
        self.own.tighten(&path);
        self.note_main()?;
        Ok(path)
    }

    /// The configuration as it is now.
    pub(in crate::git) fn config(&self) -> Result<git2::Config> {
        let config = self.inner.config().and_then(|mut all| all.snapshot());
        config.map_err(Error::git("read the configuration"))
    }

    /// Warns of what is particular about this place, once in the life of the repository.
    pub(in crate::git) fn say_once(&self, name: &str, text: &str) {
        let marker = self.own_folder().join(name);
        if matches!(self.own.kind(&marker), Ok(None)) && self.own.create(&marker).is_ok() {
            tracing::warn!("{}: {text}", self.workdir.display());
        }
    }

    /// The present time of the file system's clock, which need not be ours: that of a file written now. In nanoseconds.
    pub(in crate::git) fn file_system_time(&self) -> Result<i64> {
        let path = self.recover_dir()?.join("cache-stamp");
        // Not emptied first: file systems hurry to get the content of such a file to disk.
        let mut stamp = self.own().open_or_create(&path).at(&path)?;
        stamp.write_all(b"\n").at(&path)?;
        Ok(openat::stat_open(&stamp).at(&path)?.mtime)
    }

    /// The way to what is in [`Self::own_folder`].
    pub(in crate::git) fn own(&self) -> &Root {
        &self.own
    }

    /// Where all worktrees' own folder is, or would be: that of the main one.
    pub(in crate::git) fn shared_folder(&self) -> PathBuf {
        self.common_dir().join(OWN)
    }

    /// The way to what is in [`Self::shared_folder`].
    pub(in crate::git) fn shared(&self) -> &Root {
        &self.common
    }

    /// Removes what dead processes left in the folders of ours. Returns how many files that were.
    pub fn reap(&self) -> usize {
        self.own.reap_below(&self.own_folder()) + self.common.reap_below(&self.shared_folder())
    }

    /// Where git looks for hooks: `core.hooksPath`, which is relative to the root of the work tree, else its own folder.
    pub fn hooks_dir(&self) -> Result<PathBuf> {
        let folder = match self.config()?.get_path("core.hooksPath") {
            Ok(path) => self.workdir.join(path),
            Err(error) if error.code() == ErrorCode::NotFound => self.common_dir().join("hooks"),
            Err(error) => return Err(Error::git("read core.hooksPath")(error)),
        };
        Ok(fs::canonicalize(&folder).unwrap_or(folder))
    }

    /// Where HEAD points. A private repository has none.
    pub fn head(&self) -> Result<Head> {
        if self.private {
            return Ok(Head::default());
        }
        let head = self
            .inner
            .find_reference("HEAD")
            .map_err(Error::git("read HEAD"))?;
        let branch = head
            .symbolic_target_bytes()
            .map(|name| String::from_utf8_lossy(name).into_owned());
        let commit = match head.resolve() {
            Ok(resolved) => resolved.target().map(|oid| ObjectId(oid.to_string())),
            Err(error) if error.code() == ErrorCode::NotFound => None,
            Err(error) => return Err(Error::git("resolve HEAD")(error)),
        };
        Ok(Head { commit, branch })
    }

    /// The git operation that is in progress, if any: `merge`, `rebase`, `cherry-pick`, `revert`, `bisect`, `am`.
    pub fn operation(&self) -> Option<&'static str> {
        if self.private {
            return None;
        }
        match self.inner.state() {
            RepositoryState::Clean => None,
            RepositoryState::Merge => Some("merge"),
            RepositoryState::Revert | RepositoryState::RevertSequence => Some("revert"),
            RepositoryState::CherryPick | RepositoryState::CherryPickSequence => {
                Some("cherry-pick")
            }
            RepositoryState::Bisect => Some("bisect"),
            RepositoryState::Rebase
            | RepositoryState::RebaseInteractive
            | RepositoryState::RebaseMerge
            | RepositoryState::ApplyMailboxOrRebase => Some("rebase"),
            RepositoryState::ApplyMailbox => Some("am"),
        }
    }

    /// The tip of the branch that is being rebased, which giving the rebase up goes back to.
    pub(crate) fn rebased(&self) -> Option<ObjectId> {
        let tip = |folder: &str| {
            let file = self.git_dir().join(folder).join("orig-head");
            let tip = self.own().read(&file).ok()?;
            let oid = Oid::from_str(String::from_utf8(tip).ok()?.trim()).ok()?;
            let is_there = self.inner.find_commit(oid).is_ok();
            is_there.then(|| ObjectId(oid.to_string()))
        };
        ["rebase-merge", "rebase-apply"].into_iter().find_map(tip)
    }

    /// Whether some objects may be missing because a server has promised them.
    pub(in crate::git) fn is_partial_clone(&self) -> bool {
        let Ok(config) = self.config() else {
            return false;
        };
        let Ok(mut entries) = config.entries(Some("^remote\\..*\\.promisor$")) else {
            return false;
        };
        let mut partial = false;
        while let Some(Ok(entry)) = entries.next() {
            // Without a value it means yes.
            partial |= !entry.has_value()
                || git2::Config::parse_bool(entry.value_bytes()).unwrap_or(false);
        }
        partial
    }

    /// Refuses `/`, the home folder and what is above it as a work tree.
    pub(crate) fn refuse_root(workdir: &Path, home: Option<&Path>) -> Result<()> {
        let home = home.map(|home| fs::canonicalize(home).unwrap_or_else(|_| home.to_owned()));
        let reason = if workdir.parent().is_none() {
            "the root folder is not a project"
        } else if home.as_deref() == Some(workdir) && workdir.join(".git").exists() {
            "the home folder is no project, unless --allow-home is given: then the files that git tracks in it are one"
        } else if home.is_some_and(|home| home.starts_with(workdir)) {
            "refusing to work in the home folder or above it: start recover inside a project"
        } else {
            return Ok(());
        };
        Err(Error::UnsafePath {
            path: workdir.to_owned(),
            reason: reason.to_owned(),
        })
    }

    /// Whether both are the same repository, also where it is mounted twice.
    pub(crate) fn is_same_repository(&self, other: &Self) -> bool {
        is_same_folder(self.common_dir(), other.common_dir())
    }

    /// The folders of all work trees that git knows of, the main one's first; some of them may be gone.
    pub(crate) fn work_trees(&self) -> Result<Vec<PathBuf>> {
        let failed = || Error::git("list the work trees");
        let main = git2::Repository::open(self.common_dir()).map_err(failed())?;
        let names = main.worktrees().map_err(failed())?;
        let linked = names
            .iter()
            .flatten()
            .flatten()
            .filter_map(|name| Some(main.find_worktree(name).ok()?.path().to_owned()));
        Ok(main
            .workdir()
            .map(|_| self.main_worktree())
            .into_iter()
            .chain(linked)
            .collect())
    }

    /// The `HEAD` of the linked work tree at `path`, which git has beside its folder; `None` where it knows of none there.
    pub(crate) fn find_linked(&self, path: &Path) -> Result<Option<Head>> {
        let failed = || Error::git(format!("look for the work tree {}", path.display()));
        let main = git2::Repository::open(self.common_dir()).map_err(failed())?;
        for name in main
            .worktrees()
            .map_err(failed())?
            .iter()
            .flatten()
            .flatten()
        {
            let Ok(known) = main.find_worktree(name) else {
                continue;
            };
            if known.path() != path {
                continue;
            }
            let file = self.common_dir().join("worktrees").join(name).join("HEAD");
            let text = fs::read_to_string(&file).at(&file)?;
            let branch = text.trim().strip_prefix("ref: ").map(str::to_owned);
            let commit = match &branch {
                Some(branch) => self.resolve_ref(branch),
                None => Some(ObjectId(text.trim().to_owned())),
            };
            return Ok(Some(Head { commit, branch }));
        }
        Ok(None)
    }
}

/// Journals: files of [`Repo::own_folder`] that are there while something is under way.
impl Repo {
    /// Writes a journal durably: temporary file, sync, rename, sync of the folder.
    pub(in crate::git) fn write_journal(&self, name: &str, journal: &impl Serialize) -> Result<()> {
        let path = self.recover_dir()?.join(name);
        let text = serde_json::to_vec(journal)
            .map_err(|error| Error::corrupt(format!("{name}: {error}")))?;
        let written = self.own.write(&path, &text, Sync::All);
        written.at(&path)
    }

    /// Reads a journal of this `version` or an older one; `None` where there is none.
    pub(in crate::git) fn read_journal<T: DeserializeOwned>(
        &self,
        name: &str,
        version: u32,
    ) -> Result<Option<T>> {
        let path = self.own_folder().join(name);
        let Some(text) = present(&path, self.own.read(&path))? else {
            return Ok(None);
        };
        let damaged =
            |error: serde_json::Error| Error::corrupt(format!("{}: {error}", path.display()));
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(damaged)?;
        let written_by = value.get("version").and_then(serde_json::Value::as_u64);
        if written_by.is_some_and(|writer| writer > u64::from(version)) {
            let what = path.display().to_string();
            return Err(Error::Newer(what));
        }
        serde_json::from_value(value).map(Some).map_err(damaged)
    }

    /// Whether a journal is there; no descriptor is needed to know.
    pub(in crate::git) fn has_journal(&self, name: &str) -> bool {
        !matches!(self.own.kind(&self.own_folder().join(name)), Ok(None))
    }

    /// Removes a journal durably.
    pub(in crate::git) fn remove_journal(&self, name: &str) -> Result<()> {
        let path = self.own_folder().join(name);
        match present(&path, self.own.remove_file(&path))? {
            Some(()) => openat::sync_folder(&self.own_folder()),
            None => Ok(()),
        }
    }
}

pub(in crate::git) fn private_path(state_dir: &Path) -> PathBuf {
    state_dir.join("recover").join("shadow.git")
}

/// Makes a bare repository without any template: no hooks, nothing that another program put there.
fn init_bare(path: &Path) -> Result<git2::Repository> {
    let mut options = git2::RepositoryInitOptions::new();
    options
        .bare(true)
        .external_template(false)
        .mkpath(true)
        .initial_head("none");
    git2::Repository::init_opts(path, &options)
        .map_err(Error::git(format!("make {}", path.display())))
}

/// The work tree that a repository's `.git` lies in, where nothing says that another one is its own: a file that leads
/// there from elsewhere makes what is done here that project's.
fn owner_of_git_folder(inner: &git2::Repository) -> Option<PathBuf> {
    let git_dir = fs::canonicalize(inner.path()).ok()?;
    let is_said = inner.is_worktree()
        || inner
            .config()
            .is_ok_and(|config| config.get_entry("core.worktree").is_ok());
    let is_of_parent = git_dir.file_name().is_some_and(|name| name == ".git");
    git_dir
        .parent()
        .filter(|_| is_of_parent && !is_said)
        .map(Path::to_owned)
}

/// Refuses what would be waited for, or read without an end, in the place of a file in a repository's folder. A link to a
/// file is one.
fn refuse_endless(git_dir: &Path) -> Result<()> {
    for file in READ.map(|name| git_dir.join(name)) {
        if fs::metadata(&file).is_ok_and(|found| !found.is_file()) {
            let reason = "git keeps an ordinary file there, and this is none".to_owned();
            return Err(Error::UnsafePath { path: file, reason });
        }
    }
    Ok(())
}

/// Opens a repository that libgit2 refuses for its owner, so that the owner can be judged here: libgit2 knows neither root's
/// projects nor all places where a folder is declared safe.
fn open_unjudged(start: &Path, flags: RepositoryOpenFlags) -> Option<git2::Repository> {
    let place = place_of_git(start).filter(|place| place.join(".git").is_dir())?;
    if flags.contains(RepositoryOpenFlags::NO_SEARCH) && !is_same_folder(&place, start) {
        return None;
    }
    let inner = git2::Repository::open_bare(place.join(".git")).ok()?;
    let has_place_elsewhere = inner.config().ok()?.get_entry("core.worktree").is_ok();
    inner
        .set_workdir(&place, false)
        .ok()
        .filter(|()| !has_place_elsewhere)?;
    Some(inner)
}

/// Refuses a repository whose settings lead away from the work tree in which its git folder lies, or whose HEAD is damaged.
fn refuse_misled(start: &Path) -> Result<()> {
    let misled = place_of_git(start).and_then(|place| Unusable::examine(&place, None));
    misled.map_or(Ok(()), |unusable| Err(Error::Unusable(Box::new(unusable))))
}

fn open_error(start: &Path, source: git2::Error) -> Error {
    let message = source.message();
    let examined = |message| {
        Some(Error::Unusable(Box::new(Unusable::examine(
            &place_of_git(start)?,
            message,
        )?)))
    };
    match source.code() {
        ErrorCode::NotFound => {
            return examined(None).unwrap_or_else(|| Error::NotARepository(start.to_owned()));
        }
        ErrorCode::Owner => {
            let root = place_of_git(start).unwrap_or_else(|| start.to_owned());
            let foreign = |path: PathBuf| owner::foreign(&path).map(|owner| (path, owner));
            let found = [root.join(".git"), root.clone()]
                .into_iter()
                .find_map(foreign);
            let (path, owner) = found.unwrap_or_else(|| (root.clone(), u32::MAX));
            return Error::ForeignOwner { path, owner, root };
        }
        _ => {}
    }
    let format = [
        "extension",
        "object format",
        "repository version",
        "refstorage",
    ];
    let is_format = format.iter().any(|word| message.contains(word));
    if is_format || source.class() == git2::ErrorClass::Config {
        return examined(Some(message)).unwrap_or_else(|| Error::Unsupported(message.to_owned()));
    }
    Error::git(format!("open the repository of {}", start.display()))(source)
}

/// Refuses a folder that is found by its looks: what a clone brings can be laid out as git's own folder, with a state that
/// would be taken for ours. One that is named `.git`, or that a `.git` leads to, no clone brings.
fn refuse_posing(start: &Path, git_folder: &Path) -> Result<()> {
    let (Ok(start), Ok(folder)) = (fs::canonicalize(start), fs::canonicalize(git_folder)) else {
        return Ok(());
    };
    if start.starts_with(&folder) && !folder.iter().any(|name| name == ".git") {
        let reason =
            "it is laid out as a git folder, which is believed only where it is named .git"
                .to_owned();
        return Err(Error::UnsafePath {
            path: folder,
            reason,
        });
    }
    Ok(())
}

/// Whether both are the same folder, also where it is mounted twice.
pub(super) fn is_same_folder(one: &Path, other: &Path) -> bool {
    let number = |path| {
        fs::metadata(path)
            .map(|found| (found.dev(), found.ino()))
            .ok()
    };
    number(one).is_some_and(|found| Some(found) == number(other))
}

/// The nearest folder from `start` upwards that has a `.git`, whatever that is.
fn place_of_git(start: &Path) -> Option<PathBuf> {
    let start = fs::canonicalize(start).ok()?;
    start
        .ancestors()
        .find(|folder| folder.join(".git").symlink_metadata().is_ok())
        .map(Path::to_owned)
}

/// The nearest folder from `start` upwards where a file leads to a repository elsewhere; `None` where it is a folder.
fn place_of_link(start: &Path) -> Option<PathBuf> {
    let start = fs::canonicalize(start).ok()?;
    let place = start
        .ancestors()
        .find(|folder| folder.join(".git").exists())?;
    place.join(".git").is_file().then(|| place.to_owned())
}
