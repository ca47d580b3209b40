//! One step of a scan: what a folder holds, and which of it a capture takes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use git2::Oid;
use rustix::fs::FileType;

use super::cache::{Cache, CachedFolder, CachedItem, flag, is_settled};
use super::crew::Stack;
use super::dirs::{self, FileStat, Listing};
use super::error::{Error, Result};
use super::flood::Untracked;
use super::globs::Globs;
use super::ignore_rules::{self, Rules};
use super::nested;
use super::scan::{Content, Folder, Scan, Scope, Shape, git_mode, left_out};
use super::user_index::{GITLINK, Inside, UserIndex};
use crate::model::manifest::CaptureRules;
use crate::model::path::RepoPath;

/// So many untracked files of a folder are counted at a time.
const PORTION: u64 = 1024;

/// A folder that waits for its turn. Its parent stays open until then, so that no path is followed twice.
pub(super) struct Task {
    parent: Arc<OwnedFd>,
    name: Vec<u8>,
    path: RepoPath,
    /// The rules of its parent.
    rules: Rules,
    ignored: bool,
    wanted: bool,
}

/// What one thread found.
#[derive(Default)]
pub(super) struct Found {
    pub scan: Scan,
    listing: Listing,
}

/// What all threads share.
pub(super) struct Walk<'a> {
    workdir: &'a Path,
    cache: &'a Cache,
    index: Option<&'a UserIndex>,
    absent: BTreeSet<&'a RepoPath>,
    links: BTreeMap<RepoPath, Option<Oid>>,
    include: Globs,
    exclude: Globs,
    left_out: BTreeSet<RepoPath>,
    also: &'a BTreeSet<RepoPath>,
    max_file_size: u64,
    untracked: Mutex<Untracked>,
}

/// What holds for all entries of the folder that a thread is in.
struct Here<'a> {
    dir: Arc<OwnedFd>,
    rules: Rules,
    ignored: bool,
    index: Option<Inside<'a>>,
    /// Whether what was taken then is taken now.
    same_rules: bool,
    untracked: (u64, u64),
}

impl<'a> Walk<'a> {
    /// Prepares a walk.
    pub fn new(scope: Scope<'a>) -> Result<Self> {
        let links = match scope.index {
            Some(index) => index.gitlinks().map(|(path, oid)| (RepoPath::new(path), Some(oid))).collect(),
            None => {
                scope.cache.header.gitlinks.iter().map(|link| (link.path.clone(), nested::commit_of(link))).collect()
            }
        };
        let (repo, rules) = (scope.repo, scope.rules);
        Ok(Self {
            workdir: repo.workdir(),
            cache: scope.cache,
            index: scope.index,
            absent: scope.cache.header.absent.iter().collect(),
            links,
            include: Globs::new(&rules.include)?,
            exclude: Globs::new(&rules.exclude)?,
            left_out: left_out(repo, rules),
            also: scope.also,
            max_file_size: rules.max_file_size,
            untracked: Mutex::new(Untracked::new(rules, repo.is_private())),
        })
    }

    /// The first task: the work tree itself.
    pub fn top(&self, scope: Scope<'_>) -> Result<Task> {
        let salt = format!("{:?}", CaptureRules { left_out: Vec::new(), ..scope.rules.clone() });
        Ok(Task {
            parent: Arc::new(dirs::open_root(self.workdir)?),
            name: Vec::new(),
            path: RepoPath::default(),
            rules: Rules::of_tree(scope.repo, salt.as_bytes())?,
            ignored: false,
            wanted: true,
        })
    }
}

impl Here<'_> {
    fn below(&self, name: &[u8], path: RepoPath, ignored: bool, wanted: bool) -> Task {
        let (parent, rules) = (Arc::clone(&self.dir), self.rules.clone());
        Task { parent, name: name.to_vec(), path, rules, ignored, wanted }
    }
}

impl<'a> Walk<'a> {
    /// Reads a folder; what is in it is added to `found`, and what is to be read after it to `stack`.
    pub fn folder(&self, task: Task, stack: &mut Stack<'_, Task>, found: &mut Found) -> Result<()> {
        let is_top = task.name.is_empty();
        let opened = if is_top { task.parent.try_clone() } else { dirs::open_folder(&task.parent, &task.name) };
        let dir = match opened {
            Ok(dir) => Arc::new(dir),
            // It went away since its folder was read: it is not there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => {
                found.scan.unreadable(task.path, &error);
                return Ok(());
            }
        };
        drop(task.parent);
        let stat = match dirs::stat_open(&*dir) {
            Ok(stat) => stat,
            Err(error) => {
                found.scan.unreadable(task.path, &error);
                return Ok(());
            }
        };
        let mut folder = Folder {
            path: task.path,
            stat,
            items: found.scan.items.len()..found.scan.items.len(),
            rules: task.rules.id(),
            flags: (if task.ignored { flag::IGNORED } else { 0 }) | if task.wanted { flag::WANTED } else { 0 },
            cached: None,
        };
        let mut listing = std::mem::take(&mut found.listing);
        match listing.read(&dir) {
            Ok(()) => self.entries(&mut folder, &listing, dir, task.rules, stack, found)?,
            // Without the top folder there is no capture; an empty one in its place would be a lie.
            Err(error) if is_top => return Err(Error::io(self.workdir, error)),
            Err(error) => {
                found.scan.unreadable(folder.path.clone(), &error);
                folder.flags |= flag::HIDDEN;
            }
        }
        found.listing = listing;
        found.scan.folders.push(folder);
        Ok(())
    }

    fn entries(
        &self,
        folder: &mut Folder,
        listing: &Listing,
        dir: Arc<OwnedFd>,
        rules: Rules,
        stack: &mut Stack<'_, Task>,
        found: &mut Found,
    ) -> Result<()> {
        let is_top = folder.path.as_bytes().is_empty();
        let link = self.links.get(&folder.path).filter(|_| !is_top);
        if link.is_some() || (!is_top && listing.has(b".git") && nested::is_repository(&dir)) {
            folder.flags |= flag::NESTED | flag::HIDDEN;
            if folder.is(flag::WANTED) {
                found.scan.nested(self.workdir, folder, listing, link.copied().flatten(), &dir);
            }
            return Ok(());
        }
        let has_rules = !folder.is(flag::IGNORED) && listing.has(ignore_rules::FILE);
        let rules = if has_rules { rules.with_file(&dir, &folder.path)? } else { rules };
        folder.rules = rules.id();
        let cached = self.cache.folder(folder.path.as_bytes());
        let same_rules = cached.as_ref().is_some_and(|cached| {
            cached.rules == folder.rules && (cached.flags & flag::IGNORED != 0) == folder.is(flag::IGNORED)
        });
        if let Some(cached) = cached.as_ref().filter(|_| self.cache.alive) {
            folder.cached = Some(Shape { tree: cached.tree, subtrees: cached.subtrees, items: cached.count });
        }
        let index = self.index.map(|index| index.folder(folder.path.as_bytes()));
        let mut before = cached.as_ref().map(CachedFolder::items).into_iter().flatten().peekable();
        let mut here = Here { dir, rules, ignored: folder.is(flag::IGNORED), index, same_rules, untracked: (0, 0) };
        let left_out: Vec<_> =
            self.left_out.iter().filter(|path| path.parent().unwrap_or_default() == folder.path).collect();
        for (name, kind) in listing.iter() {
            while before.next_if(|item| item.name < name).is_some() {}
            let known = before.next_if(|item| item.name == name);
            if name == b".git" {
                // At the top it is the repository; deeper it would have made its folder a nested one if it were any.
                if !is_top {
                    found.scan.skip(folder.path.join(name), "a name that stands for the repository itself", None);
                }
            } else if left_out.iter().any(|path| dirs::split(path).1 == name) {
                folder.flags |= flag::HIDDEN;
            } else {
                self.entry(folder, &mut here, name, kind, known, stack, &mut found.scan);
            }
            // A folder that goes on and on is refused before all of it was looked at.
            if here.untracked.0 >= PORTION {
                self.count(&folder.path, &mut here)?;
            }
        }
        self.count(&folder.path, &mut here)
    }

    fn count(&self, folder: &RepoPath, here: &mut Here<'_>) -> Result<()> {
        let (files, bytes) = std::mem::take(&mut here.untracked);
        self.untracked.lock().unwrap_or_else(PoisonError::into_inner).add(folder, files, bytes)
    }

    #[allow(clippy::too_many_arguments)]
    fn entry(
        &self,
        folder: &mut Folder,
        here: &mut Here<'a>,
        name: &[u8],
        kind: FileType,
        known: Option<CachedItem<'a>>,
        stack: &mut Stack<'_, Task>,
        scan: &mut Scan,
    ) {
        if kind == FileType::Directory {
            return self.subfolder(folder, here, name, stack, scan);
        }
        let stat = match dirs::stat(&here.dir, name) {
            Ok(Some(stat)) => stat,
            // It went away since the folder was read: it is not there.
            Ok(None) => return,
            Err(error) => return scan.unreadable(folder.path.join(name), &error),
        };
        if stat.kind() == FileType::Directory {
            return self.subfolder(folder, here, name, stack, scan);
        }
        let is_content = matches!(stat.kind(), FileType::RegularFile | FileType::Symlink);
        let tracked = self.tracked(folder, here, name, known.as_ref());
        let was = known.map_or(0, |item| item.flags);
        let taken_before = here.same_rules && was & flag::BY_RULES != 0 && was & flag::TRACKED == 0;
        let mut flags = flag::BY_RULES | if tracked { flag::TRACKED } else { 0 };
        let settled = here.same_rules && is_content && (taken_before || (tracked && was & flag::TRACKED != 0));
        if !settled {
            let path = folder.path.join(name);
            let wanted =
                tracked || !(here.ignored || here.rules.matches(path.as_bytes(), false)) || self.include.matches(&path);
            if !wanted && !self.also.contains(&path) {
                return;
            }
            if !wanted {
                flags = 0;
            }
            if self.exclude.matches(&path) {
                return scan.skip(path, "excluded", Some(stat.size));
            }
            if let Some(reason) = super::names::unsafe_name(name) {
                return scan.skip(path, reason, Some(stat.size));
            }
            match stat.kind() {
                FileType::RegularFile | FileType::Symlink => {}
                FileType::Fifo => return scan.skip(path, "a FIFO", Some(stat.size)),
                FileType::Socket => return scan.skip(path, "a socket", Some(stat.size)),
                _ => return scan.skip(path, "a device", Some(stat.size)),
            }
        }
        if !tracked && stat.kind() == FileType::RegularFile && stat.size > self.max_file_size {
            return scan.skip(folder.path.join(name), "over max_file_size", Some(stat.size));
        }
        if !tracked {
            here.untracked = (here.untracked.0 + 1, here.untracked.1.saturating_add(stat.size));
        }
        let content = self.content(here, name, &stat, known.as_ref());
        let is_same =
            |item: CachedItem<'_>| content == Content::Known(item.oid) && git_mode(&item.stat) == git_mode(&stat);
        if known.is_some_and(is_same) {
            flags |= flag::SAME;
        }
        scan.add(folder, name, flags, stat, content);
    }

    /// Whether the user's index has the path.
    fn tracked(&self, folder: &Folder, here: &Here<'_>, name: &[u8], known: Option<&CachedItem<'_>>) -> bool {
        match &here.index {
            Some(inside) => inside.get(name).is_some_and(|entry| entry.mode != GITLINK),
            None => match known {
                Some(item) => item.flags & flag::TRACKED != 0,
                None => !self.absent.is_empty() && self.absent.contains(&folder.path.join(name)),
            },
        }
    }

    fn content(&self, here: &Here<'_>, name: &[u8], stat: &FileStat, known: Option<&CachedItem<'_>>) -> Content {
        if let Some(item) = known.filter(|item| item.flags & flag::SETTLED != 0 && item.stat == *stat) {
            return if self.cache.alive { Content::Known(item.oid) } else { Content::Cached(item.oid) };
        }
        let entry = here.index.and_then(|inside| inside.get(name));
        let written =
            self.index.and_then(|index| index.identity.as_ref()).map_or(0, super::user_index::Identity::mtime);
        match entry {
            Some(entry) if same_kind(entry.mode, stat) && entry.seed.is_some_and(|seed| seed.is(stat)) => {
                // git takes content for unchanged that changed in the tick in which the index was written; we do not.
                if is_settled(stat, written) { Content::Seeded(entry.oid) } else { Content::Unread }
            }
            _ => Content::Unread,
        }
    }

    fn subfolder(&self, folder: &Folder, here: &Here<'_>, name: &[u8], stack: &mut Stack<'_, Task>, scan: &mut Scan) {
        let path = folder.path.join(name);
        let known = self.cache.folder(path.as_bytes()).filter(|_| here.same_rules);
        let taken_before = known.is_some_and(|known| known.flags & (flag::WANTED | flag::IGNORED) == flag::WANTED);
        if taken_before {
            return stack.push(here.below(name, path, false, true));
        }
        let ignored = here.ignored || here.rules.matches(path.as_bytes(), true);
        let tracked = self.links.contains_key(&path);
        let wanted = !ignored || tracked || self.include.matches(&path) || self.also.contains(&path);
        let below = || self.tracked_below(&path) || self.also_below(&path) || self.include.may_match_below(&path);
        if !wanted && !below() {
            return;
        }
        if self.exclude.matches(&path) {
            return scan.skip(path, "excluded", None);
        }
        if let Some(reason) = super::names::unsafe_name(name) {
            return scan.skip(path, reason, None);
        }
        stack.push(here.below(name, path, ignored, wanted));
    }

    fn tracked_below(&self, folder: &RepoPath) -> bool {
        if let Some(index) = self.index {
            return index.has_below(folder.as_bytes());
        }
        let first = folder.join(b"");
        let inside = |path: &&RepoPath| path.as_bytes().starts_with(first.as_bytes());
        // A folder that is ignored is in the cache only for something tracked or included in it.
        self.cache.folder(folder.as_bytes()).is_some()
            || self.absent.range::<RepoPath, _>(&first..).next().is_some_and(inside)
    }

    fn also_below(&self, folder: &RepoPath) -> bool {
        let first = folder.join(b"");
        self.also.range(&first..).next().is_some_and(|path| path.as_bytes().starts_with(first.as_bytes()))
    }
}

/// Whether an index entry is of the kind that the file is.
fn same_kind(mode: u32, stat: &FileStat) -> bool {
    mode & 0o170_000 == git_mode(stat) & 0o170_000
}
