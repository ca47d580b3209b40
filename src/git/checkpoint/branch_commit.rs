//! Makes an ordinary commit of what was captured on the user's branch (B12).
//! As `git add -A && git commit` would make it, but without hooks, signing or any program being run.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use git2::{AttrCheckFlags, AttrValue, ObjectType, Oid};

use crate::git::base::{Error, GITLINK, Result, openat, parse_oid};
use crate::git::capture::Capture;
use crate::git::history::write_commit;
use crate::git::index::locked_index::LockedIndex;
use crate::git::index::user_index::UserIndex;
use crate::git::odb::publish::sync_loose;
use crate::git::odb::{Database, Flat, trees};
use crate::git::repo::{Repo, WorktreeLock};
use crate::model::{EntryKind, Head, IndexExtra, ObjectId, RepoPath};

/// How things stand after a commit on the branch: what a checkpoint of the same moment records of HEAD and index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Committed {
    /// The new commit.
    pub commit: ObjectId,
    /// HEAD at it.
    pub head: Head,
    /// The tree of the index, which followed: the commit's own.
    pub index_tree: ObjectId,
    /// What that tree cannot say.
    pub index_extras: Vec<IndexExtra>,
}

impl Repo {
    /// Commits what was captured on top of HEAD; `None` where that is HEAD's content already.
    ///
    /// In it is what git would add: not what only an include glob took, nor an untracked nested repository. A tracked path
    /// that is there and was not captured (excluded, unreadable, outside a sparse checkout) stays as the index has it. Line
    /// ends and `ident` are converted as the attributes say; a path whose filter is a program, which is never run, is
    /// [`Error::Unsupported`]. The index follows first, then the branch: a kill in between leaves everything staged. HEAD
    /// elsewhere than at the capture is [`Error::HeadMoved`], a held `index.lock` [`Error::Locked`]; then nothing is changed.
    pub(crate) fn commit_on_branch(
        &self,
        lock: &WorktreeLock,
        capture: &Capture,
        message: &str,
        reflog: &str,
        timeout: Duration,
    ) -> Result<Option<Committed>> {
        if self.is_private() {
            return Err(Error::Unsupported(
                "a folder without git has no branch to commit on".to_owned(),
            ));
        }
        let locked = LockedIndex::acquire(self, timeout)?;
        let index = UserIndex::read(self)?;
        let flat = contents(self, capture, &index)?;
        let tree = ObjectId(trees::write(&capture.writer, &flat)?.to_string());
        let parent = capture.head.commit.as_ref();
        let unchanged = match parent {
            Some(parent) => self.tree_of(parent)? == tree,
            None => flat.is_empty(),
        };
        if unchanged {
            return Ok(None);
        }
        capture.writer.publish()?;
        let commit = write_commit(self, &capture.writer, &tree, parent, message)?;
        capture.writer.publish()?;
        let before = locked.content()?;
        locked.follow(self, &flat)?;
        if let Err(error) = self.move_branch(lock, &capture.head, Some(&commit), reflog) {
            locked.put(before.as_deref())?;
            return Err(error);
        }
        let flagged = |extra: &IndexExtra| {
            extra.stage == 0 && (extra.assume_unchanged || extra.skip_worktree)
        };
        let mut index_extras: Vec<IndexExtra> = index.extras.into_iter().filter(flagged).collect();
        index_extras.retain(|extra| flat.contains_key(&extra.path));
        let head = Head {
            commit: Some(commit.clone()),
            branch: capture.head.branch.clone(),
        };
        Ok(Some(Committed {
            commit,
            head,
            index_tree: tree,
            index_extras,
        }))
    }
}

/// What the commit holds.
fn contents(repo: &Repo, capture: &Capture, index: &UserIndex) -> Result<Flat> {
    let captured = &capture.snapshot()?.entries;
    let staged = index.flat();
    let links: BTreeSet<&[u8]> = index.gitlinks().map(|(path, _)| path).collect();
    let mut flat = Flat::new();
    // What git does not look for changes in.
    let unwatched: BTreeSet<&RepoPath> = index
        .extras
        .iter()
        .filter(|extra| extra.assume_unchanged || extra.skip_worktree)
        .map(|extra| &extra.path)
        .collect();
    for (path, entry) in &staged {
        // An empty folder, or one that holds something, may stand where the file was.
        let first_below = captured.range(path.join(b"")..).next();
        let taken = captured.contains_key(path)
            || first_below.is_some_and(|(below, _)| below.starts_with(path));
        let hidden = path
            .ancestors()
            .any(|folder| captured.contains_key(&folder));
        let there = || fs::symlink_metadata(path.below(repo.workdir())).is_ok();
        if unwatched.contains(path) || (!taken && !hidden && there()) {
            flat.insert(path.clone(), *entry);
        }
    }
    let mut filters = Filters::new(repo, capture, index)?;
    // Only an include glob takes what git ignores.
    let may_be_ignored = !capture.manifest.rules.include.is_empty();
    for (path, entry) in captured {
        if unwatched.contains(path) {
            continue;
        }
        let oid = parse_oid(&entry.oid)?;
        let known = staged.get(path);
        match entry.kind {
            EntryKind::Gitlink if links.contains(path.as_bytes()) => {
                flat.insert(path.clone(), (GITLINK, oid));
            }
            EntryKind::Gitlink | EntryKind::EmptyDir => {}
            EntryKind::File | EntryKind::Symlink => {
                let absolute = path.below(Path::new(""));
                let untracked = !index.has(path.as_bytes());
                if may_be_ignored
                    && untracked
                    && repo.inner.is_path_ignored(&absolute).unwrap_or(false)
                {
                    continue;
                }
                let mode = match entry.kind {
                    EntryKind::Symlink => 0o120_000,
                    // git is configured not to trust the executable bit.
                    _ if !filters.trusts_modes => known
                        .map(|(mode, _)| *mode)
                        .filter(|mode| *mode != 0o120_000)
                        .unwrap_or(0o100_644),
                    _ if entry.mode & 0o100 != 0 => 0o100_755,
                    _ => 0o100_644,
                };
                let same = known.is_some_and(|(_, known)| *known == oid);
                let oid = if same || entry.kind == EntryKind::Symlink {
                    oid
                } else {
                    filters.stored(path, oid)?
                };
                flat.insert(path.clone(), (mode, oid));
            }
        }
    }
    Ok(flat)
}

/// What git makes of a file's content before it stores it.
struct Filters<'a> {
    repo: &'a Repo,
    index: &'a UserIndex,
    converts_line_ends: bool,
    trusts_modes: bool,
    root: std::os::fd::OwnedFd,
    config: git2::Config,
    capture: &'a Capture,
}

impl<'a> Filters<'a> {
    fn new(repo: &'a Repo, capture: &'a Capture, index: &'a UserIndex) -> Result<Self> {
        let config = repo.config()?;
        let line_ends = config.get_string("core.autocrlf").unwrap_or_default();
        Ok(Self {
            repo,
            index,
            converts_line_ends: !matches!(&*line_ends, "" | "false" | "no" | "off" | "0"),
            trusts_modes: config.get_bool("core.filemode").unwrap_or(true),
            root: openat::open_root(repo.workdir())?,
            config,
            capture,
        })
    }

    /// The blob to commit for a file whose captured content is `oid` and differs from the index.
    fn stored(&mut self, path: &RepoPath, oid: Oid) -> Result<Oid> {
        let relative = path.below(Path::new(""));
        let said = |name: &str| -> Result<AttrValue<'_>> {
            let flags = AttrCheckFlags::FILE_THEN_INDEX;
            let value = self.repo.inner.get_attr_bytes(&relative, name, flags);
            Ok(AttrValue::from_bytes(value.map_err(Error::git(
                format!("read the attributes of {path}"),
            ))?))
        };
        let by_program = match said("filter")? {
            AttrValue::String(name) => self.is_program(name).then(|| format!("filter {name}")),
            _ => None,
        };
        let by_program = match said("working-tree-encoding")? {
            AttrValue::String(encoding) => Some(format!("working-tree-encoding {encoding}")),
            _ => by_program,
        };
        if let Some(what) = by_program {
            return self.unchanged(path).ok_or_else(|| Error::Unsupported(format!("{path} is stored through {what}, which only git itself can do: commit it with git")));
        }
        let mut converted = self.converts_line_ends;
        for name in ["text", "crlf", "eol", "ident"] {
            converted |= !matches!(said(name)?, AttrValue::Unspecified);
        }
        if converted {
            self.convert(path, oid)
        } else {
            Ok(oid)
        }
    }

    fn is_program(&self, name: &str) -> bool {
        ["clean", "process"].iter().any(|key| {
            self.config
                .get_string(&format!("filter.{name}.{key}"))
                .is_ok()
        })
    }

    /// What the index has of a file that it knows as it is.
    fn unchanged(&self, path: &RepoPath) -> Option<Oid> {
        let (folder, name) = openat::split(path);
        let known = self.index.folder(folder.as_bytes()).get(name)?;
        let dir = openat::open_path(&self.root, &folder).ok()?;
        let found = openat::stat(&dir, name).ok()??;
        known
            .stat
            .is_some_and(|stat| stat.matches(&found))
            .then_some(known.oid)
    }

    /// The content as the attributes have it stored, from the file, which must be what was captured still.
    fn convert(&self, path: &RepoPath, captured: Oid) -> Result<Oid> {
        // As libgit2 names it: only of a file below its own work tree it knows the attributes.
        let file = path.below(self.repo.inner.workdir().unwrap_or(self.repo.workdir()));
        let failed = Error::git(format!("convert {path}"));
        // libgit2 writes into the real database; it holds the objects that the capture has in quarantine too.
        self.capture.writer.publish()?;
        let oid = self.repo.inner.blob_path(&file).map_err(failed)?;
        let (parent, name) = openat::split(path);
        let now = openat::open_path(&self.root, &parent)
            .and_then(|dir| crate::git::base::openat::hash_file(&dir, name));
        if now.ok().flatten().map(|(oid, _)| oid) != Some(captured) {
            return Err(Error::Unsupported(format!(
                "{path} changed while it was committed"
            )));
        }
        sync_loose(&self.repo.common_dir().join("objects"), oid)?;
        // What libgit2 wrote, nothing else would keep from a `git gc` meanwhile.
        self.capture
            .writer
            .write(ObjectType::Blob, &Database::open(self.repo)?.blob(oid)?)?;
        Ok(oid)
    }
}
