//! Walks a work tree and says what a capture takes of it, without reading any content.
//!
//! Folders are read through descriptors and every entry is looked at with `lstat`, so that no symlink is followed and
//! no FIFO opened. Symlinks to folders are links like any other.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::FileType;

use super::dirs::{self, FileStat};
use super::error::{Error, Result};
use super::flood::Untracked;
use super::globs::Globs;
use super::ignore_rules::IgnoreRules;
use super::nested;
use super::repository::Repo;
use super::user_index::UserIndex;
use crate::model::manifest::{CaptureRules, Nested};
use crate::model::path::{PathReason, RepoPath, UNREADABLE};

/// A file or symlink to capture.
#[derive(Debug)]
pub(super) struct Found {
    pub path: RepoPath,
    pub stat: FileStat,
}

/// What a work tree holds, by the rules. Everything is sorted by path.
#[derive(Debug, Default)]
pub(super) struct Scan {
    pub files: Vec<Found>,
    /// Folders that hold something captured, with their permissions.
    pub dirs: BTreeMap<RepoPath, u32>,
    /// Folders that hold nothing captured.
    pub empty: BTreeMap<RepoPath, u32>,
    pub nested: Vec<Nested>,
    pub skipped: Vec<PathReason>,
    /// Whether something that should be captured could not be looked at.
    pub partial: bool,
}

/// Walks the work tree. `also` are paths to take even when they are ignored.
pub(super) fn scan(repo: &Repo, index: &UserIndex, rules: &CaptureRules, also: &BTreeSet<RepoPath>) -> Result<Scan> {
    let mut walk = Walk {
        repo,
        index,
        ignores: IgnoreRules::new(repo)?,
        include: Globs::new(&rules.include)?,
        exclude: Globs::new(&rules.exclude)?,
        left_out: left_out(repo, rules),
        also,
        max_file_size: rules.max_file_size,
        untracked: Untracked::new(rules, repo.is_private()),
        result: Scan::default(),
    };
    let root = dirs::open_root(repo.workdir())?;
    walk.folder(&root, &RepoPath::default(), Context::default())?;
    Ok(walk.result)
}

/// The folders that are no part of the work tree, relative to it: for a restore plan, which must not touch them either.
pub fn left_out(repo: &Repo, rules: &CaptureRules) -> BTreeSet<RepoPath> {
    let folders = rules.left_out.iter().map(|folder| std::fs::canonicalize(folder).unwrap_or_else(|_| folder.clone()));
    let inside = folders.filter_map(|folder| {
        let relative = folder.strip_prefix(repo.workdir()).ok()?;
        Some(RepoPath::new(relative.as_os_str().as_bytes()))
    });
    inside.filter(|path| !path.as_bytes().is_empty()).collect()
}

/// What holds for everything in a folder.
#[derive(Clone, Copy, Default)]
struct Context {
    /// The folder is ignored, and with it all that is not tracked or included.
    ignored: bool,
}

/// What a folder turned out to hold.
#[derive(Clone, Copy, Default)]
struct Holds {
    captured: bool,
    /// Something that is no part of the capture: the folder is not empty, and cannot stand for itself.
    hidden: bool,
}

struct Walk<'a> {
    repo: &'a Repo,
    index: &'a UserIndex,
    ignores: IgnoreRules,
    include: Globs,
    exclude: Globs,
    left_out: BTreeSet<RepoPath>,
    also: &'a BTreeSet<RepoPath>,
    max_file_size: u64,
    untracked: Untracked,
    result: Scan,
}

impl Walk<'_> {
    fn folder(&mut self, dir: &OwnedFd, path: &RepoPath, context: Context) -> Result<Holds> {
        let pushed = !context.ignored && self.ignores.push(dir, path);
        let mut holds = Holds::default();
        let names = match dirs::names(dir) {
            Ok(names) => names,
            // Without the top folder there is no capture; an empty one in its place would be a lie.
            Err(error) if path.as_bytes().is_empty() => return Err(Error::io(self.repo.workdir(), error)),
            Err(error) => {
                self.unreadable(path, &error);
                holds.hidden = true;
                Vec::new()
            }
        };
        for name in names {
            let child = path.join(&name);
            if name.as_slice() == b".git" {
                // At the top it is the repository; deeper it would have made its folder a nested one if it were any.
                if !path.as_bytes().is_empty() {
                    self.skip(child, "a name that stands for the repository itself", None);
                }
                continue;
            }
            let one = self.entry(dir, &name, child, context)?;
            holds.captured |= one.captured;
            holds.hidden |= one.hidden;
        }
        if pushed {
            self.ignores.pop();
        }
        Ok(holds)
    }

    fn entry(&mut self, dir: &OwnedFd, name: &[u8], path: RepoPath, context: Context) -> Result<Holds> {
        if self.left_out.contains(&path) {
            return Ok(Holds { captured: false, hidden: true });
        }
        let stat = match dirs::stat(dir, name) {
            Ok(Some(stat)) => stat,
            // It went away since the folder was read: it is not there.
            Ok(None) => return Ok(Holds::default()),
            Err(error) => {
                self.unreadable(&path, &error);
                return Ok(Holds::default());
            }
        };
        let is_folder = stat.kind() == FileType::Directory;
        let tracked = self.index.contains(&path);
        let ignored = context.ignored || self.ignores.matches(&path, is_folder);
        let wanted = !ignored || tracked || self.include.matches(&path) || self.also.contains(&path);
        let below =
            is_folder && (self.index.has_below(&path) || self.also_below(&path) || self.include.may_match_below(&path));
        if !wanted && !below {
            return Ok(Holds::default());
        }
        if self.exclude.matches(&path) {
            self.skip(path, "excluded", (!is_folder).then_some(stat.size));
            return Ok(Holds::default());
        }
        if let Some(reason) = super::names::unsafe_name(name) {
            self.skip(path, reason, (!is_folder).then_some(stat.size));
            return Ok(Holds::default());
        }
        match stat.kind() {
            FileType::Directory => self.subfolder(dir, name, path, stat, Context { ignored }, wanted),
            FileType::RegularFile | FileType::Symlink if wanted => self.file(path, stat, tracked),
            FileType::Fifo => Ok(self.skip(path, "a FIFO", Some(stat.size))),
            FileType::Socket => Ok(self.skip(path, "a socket", Some(stat.size))),
            FileType::RegularFile | FileType::Symlink => Ok(Holds::default()),
            _ => Ok(self.skip(path, "a device", Some(stat.size))),
        }
    }

    fn also_below(&self, folder: &RepoPath) -> bool {
        let first = folder.join(b"");
        self.also.range(&first..).next().is_some_and(|path| path.as_bytes().starts_with(first.as_bytes()))
    }

    fn subfolder(
        &mut self,
        parent: &OwnedFd,
        name: &[u8],
        path: RepoPath,
        stat: FileStat,
        context: Context,
        wanted: bool,
    ) -> Result<Holds> {
        let dir = match dirs::open_folder(parent, name) {
            Ok(dir) => dir,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Holds::default()),
            Err(error) => {
                self.unreadable(&path, &error);
                return Ok(Holds::default());
            }
        };
        let gitlink = self.index.gitlink(&path);
        if gitlink.is_some() || nested::is_repository(&dir) {
            if !wanted {
                return Ok(Holds::default());
            }
            let captured = self.nested(&dir, path, gitlink);
            return Ok(Holds { captured, hidden: true });
        }
        let inside = self.folder(&dir, &path, context)?;
        if inside.captured {
            self.result.dirs.insert(path, stat.permissions());
            return Ok(Holds { captured: true, hidden: false });
        }
        // A folder that only leads to the state directory comes and goes with it.
        if inside.hidden || !wanted {
            return Ok(Holds { captured: false, hidden: inside.hidden });
        }
        self.result.empty.insert(path, stat.permissions());
        Ok(Holds { captured: true, hidden: false })
    }

    /// Notes a repository inside. Returns whether it gets an entry: one without a commit has none.
    fn nested(&mut self, dir: &OwnedFd, path: RepoPath, gitlink: Option<git2::Oid>) -> bool {
        let own = nested::is_repository(dir);
        let head = own.then(|| nested::head(&nested::absolute(self.repo.workdir(), &path))).flatten();
        let commit = head.or(if own { None } else { gitlink });
        // A submodule that was never checked out is an empty folder: nothing is left out.
        if own || !dirs::names(dir).is_ok_and(|names| names.is_empty()) {
            self.skip(path.clone(), "nested repository", None);
        }
        let commit = commit.map(|oid| crate::model::snapshot::ObjectId(oid.to_string()));
        let captured = commit.is_some();
        self.result.nested.push(Nested { path, commit });
        captured
    }

    fn file(&mut self, path: RepoPath, stat: FileStat, tracked: bool) -> Result<Holds> {
        if !tracked && stat.kind() == FileType::RegularFile && stat.size > self.max_file_size {
            return Ok(self.skip(path, "over max_file_size", Some(stat.size)));
        }
        if !tracked {
            self.untracked.add(&path, stat.size)?;
        }
        self.result.files.push(Found { path, stat });
        Ok(Holds { captured: true, hidden: false })
    }

    fn skip(&mut self, path: RepoPath, reason: &str, size: Option<u64>) -> Holds {
        self.result.skipped.push(PathReason { path, reason: reason.to_owned(), size });
        Holds::default()
    }

    fn unreadable(&mut self, path: &RepoPath, error: &io::Error) {
        self.result.partial = true;
        self.skip(path.clone(), &format!("{UNREADABLE}: {error}"), None);
    }
}
