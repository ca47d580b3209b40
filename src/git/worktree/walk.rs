//! Walks a work tree, in several threads, and says what a capture takes of it, without reading any content.
//!
//! Folders are read through descriptors and every entry is examined with `lstat`, so that no symlink is followed and
//! no FIFO opened. Symlinks to folders are links like any other. What the last capture took under the same rules is
//! taken again without asking them.

mod entry;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use git2::Oid;
use parking_lot::Mutex;
use rustix::fs::FileType;

use super::cache::{Cache, CachedFolder, Other, flag, walk_order};
use super::ignore_rules::{self, Rules};
use super::scan::{CachedTree, Folder, Scan, Scope};
use super::untracked_limit::UntrackedLimit;
use crate::git::base::openat::{self, Listing};
use crate::git::base::{At as _, Error, Globs, Result, WorkQueue, parse_oid, work_queue};
use crate::git::index::user_index::{Inside, UserIndex};
use crate::git::odb::{Database, trees};
use crate::git::repo::nested::{self, Outer};
use crate::model::path::TOO_MANY;
use crate::model::{CaptureRules, ObjectId, PathReason, RepoPath};
use crate::os::keeps_folder_times;

/// This many untracked files of a folder are counted at a time.
const PORTION: u64 = 1024;

/// A folder that waits for its turn. Its parent stays open until then, so that no path is followed twice.
pub(in crate::git) struct PendingDir {
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
pub(in crate::git) struct WalkResult {
    pub scan: Scan,
    listing: Listing,
}

/// What all threads share.
pub(in crate::git) struct Walk<'a> {
    outer: Outer<'a>,
    cache: &'a Cache,
    index: Option<&'a UserIndex>,
    absent: BTreeSet<&'a RepoPath>,
    links: BTreeMap<RepoPath, Option<Oid>>,
    include: Globs,
    exclude: Globs,
    editor_temp: Globs,
    left_out: BTreeSet<RepoPath>,
    /// Whether folders are left out that another capture may have taken.
    leaves_out: bool,
    also: &'a BTreeSet<RepoPath>,
    max_file_size: u64,
    untracked: Mutex<UntrackedLimit>,
    /// The file system of the work tree, and whether the times of its folders show that names in them changed.
    dev: u64,
    keeps_times: bool,
}

/// What holds for all entries of the folder that a thread is in.
struct DirContext<'a> {
    dir: Arc<OwnedFd>,
    rules: Rules,
    ignored: bool,
    index: Option<Inside<'a>>,
    /// Whether what was taken then is taken now.
    same_rules: bool,
    untracked: (u64, u64),
    /// How many of its items are exactly as the cache has them.
    known: usize,
}

impl<'a> Walk<'a> {
    /// Prepares a walk.
    pub(crate) fn new(scope: Scope<'a>) -> Result<Self> {
        let links = match scope.index {
            Some(index) => index
                .gitlinks()
                .map(|(path, oid)| (RepoPath::new(path), Some(oid)))
                .collect(),
            None => scope
                .cache
                .header
                .gitlinks
                .iter()
                .map(|link| (link.path.clone(), nested::commit_of(link)))
                .collect(),
        };
        let (repo, rules) = (scope.repo, scope.rules);
        let root = openat::open_root(repo.workdir())?;
        Ok(Self {
            outer: repo.as_outer(),
            cache: scope.cache,
            index: scope.index,
            absent: scope.cache.header.absent.iter().collect(),
            links,
            include: Globs::new(&rules.include)?,
            exclude: Globs::new(&rules.exclude)?,
            editor_temp: Globs::new(&rules.editor_temp_globs)?,
            left_out: repo
                .left_out(rules)
                .into_iter()
                .chain(scope.left_out.keys().cloned())
                .collect(),
            leaves_out: !scope.left_out.is_empty(),
            also: scope.also,
            max_file_size: rules.max_file_size,
            untracked: Mutex::new(UntrackedLimit::new(rules, repo.is_private())),
            dev: openat::stat_open(&root).at(repo.workdir())?.dev,
            keeps_times: keeps_folder_times(&root),
        })
    }

    /// The first task: the work tree itself.
    pub(crate) fn top(&self, scope: Scope<'_>) -> Result<PendingDir> {
        let salt = format!(
            "{:?}",
            CaptureRules {
                excluded_dirs: Vec::new(),
                publish_incrementally: false,
                before: None,
                ..scope.rules.clone()
            }
        );
        Ok(PendingDir {
            parent: Arc::new(openat::open_root(self.outer.workdir)?),
            name: Vec::new(),
            path: RepoPath::default(),
            rules: Rules::of_tree(scope.repo, salt.as_bytes())?,
            ignored: scope.rules.tracked_only,
            wanted: true,
        })
    }

    /// Reads a folder; what is in it is added to `found`, and what is to be read after it to `queue`.
    pub(crate) fn folder(
        &self,
        task: PendingDir,
        queue: &mut WorkQueue<PendingDir>,
        found: &mut WalkResult,
    ) -> Result<()> {
        let is_top = task.name.is_empty();
        let opened = if is_top {
            task.parent.try_clone()
        } else {
            openat::open_folder(&task.parent, &task.name)
        };
        let dir = match opened {
            Ok(dir) => Arc::new(dir),
            // It went away since its folder was read: it is not there.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if openat::is_exhausted(&error) => {
                return Err(openat::io_error(&task.path, error));
            }
            Err(error) => {
                found.scan.unreadable(task.path, &error);
                return Ok(());
            }
        };
        drop(task.parent);
        let stat = match openat::stat_open(&*dir) {
            Ok(stat) => stat,
            Err(error) => {
                found.scan.unreadable(task.path, &error);
                return Ok(());
            }
        };
        let (items, others) = found.scan.next();
        let mut folder = Folder {
            path: task.path,
            stat,
            items,
            others,
            rules: task.rules.id(),
            flags: (if task.ignored { flag::IGNORED } else { 0 })
                | if task.wanted { flag::WANTED } else { 0 },
            cached: None,
        };
        let cached = self.cache.folder(folder.path.as_bytes());
        if let Some(cached) = cached
            .as_ref()
            .filter(|cached| self.holds_the_same(cached, &folder))
            && self.known(
                &mut folder,
                cached,
                &dir,
                &task.rules,
                queue,
                &mut found.scan,
            )?
        {
            found.scan.folders.push(folder);
            return Ok(());
        }
        let mut listing = std::mem::take(&mut found.listing);
        match listing.read(&dir) {
            Ok(()) => self.entries(
                &mut folder,
                &listing,
                dir,
                (task.rules, cached),
                queue,
                found,
            )?,
            // Without the top folder there is no capture; an empty one in its place would be a lie.
            Err(error) if is_top => return Err(Error::io(self.outer.workdir, error)),
            Err(error) => {
                found.scan.unreadable(folder.path.clone(), &error);
                folder.flags |= flag::HIDDEN | flag::CHANGED;
            }
        }
        found.listing = listing;
        found.scan.folders.push(folder);
        Ok(())
    }

    /// Whether the names in a folder need not be read: they are those that the cache has.
    fn holds_the_same(&self, cached: &CachedFolder<'_>, folder: &Folder) -> bool {
        self.keeps_times
            && self.index.is_none()
            && self.also.is_empty()
            && !self.leaves_out
            && self.cache.alive
            && folder.stat.dev == self.dev
            && cached.is_as(folder.flags)
            && cached.holds_the_same(&folder.stat)
    }

    /// Looks at the files of a folder that holds the names that it held. Returns `false`, with nothing noted, where
    /// something else turns up.
    fn known(
        &self,
        folder: &mut Folder,
        cached: &CachedFolder<'a>,
        dir: &Arc<OwnedFd>,
        rules: &Rules,
        queue: &mut WorkQueue<PendingDir>,
        scan: &mut Scan,
    ) -> Result<bool> {
        let has_rules = !folder.is(flag::IGNORED) && cached.has_file(ignore_rules::FILE);
        let rules = if has_rules {
            rules.with_file(dir, &folder.path)?
        } else {
            rules.clone()
        };
        if rules.id() != cached.rules {
            return Ok(false);
        }
        let mut here = DirContext::new(Arc::clone(dir), rules, folder.is(flag::IGNORED));
        for item in cached.items() {
            let stat = match openat::stat(dir, item.name) {
                Ok(Some(stat))
                    if stat.kind() == item.stat.kind() && item.flags & flag::BY_RULES != 0 =>
                {
                    stat
                }
                _ => {
                    scan.discard(folder);
                    return Ok(false);
                }
            };
            self.take(
                folder,
                &mut here,
                item.name,
                &stat,
                item.flags & !flag::SETTLED,
                Some(&item),
                scan,
            );
        }
        let mut tasks = Vec::new();
        for (name, what) in cached.others() {
            scan.add_other(folder, name, what);
            if what == Other::Folder {
                let path = folder.path.join(name);
                let inside = self.cache.folder(path.as_bytes());
                let flags = inside.map(|inside| {
                    (
                        inside.flags & flag::IGNORED != 0,
                        inside.flags & flag::WANTED != 0,
                    )
                });
                // An ignored one may have been taken on request, which holds for one capture.
                let Some((ignored, wanted)) = flags.filter(|flags| *flags != (true, true)) else {
                    scan.discard(folder);
                    return Ok(false);
                };
                tasks.push(here.below(name, path, ignored, wanted));
            }
        }
        folder.rules = cached.rules;
        folder.flags |= flag::COMPLETE;
        self.finish(folder, &here, Some(cached), true, scan);
        self.count(&folder.path, &mut here)?;
        for task in tasks {
            queue.push(task);
        }
        Ok(true)
    }

    fn entries(
        &self,
        folder: &mut Folder,
        listing: &Listing,
        dir: Arc<OwnedFd>,
        (rules, cached): (Rules, Option<CachedFolder<'a>>),
        queue: &mut WorkQueue<PendingDir>,
        found: &mut WalkResult,
    ) -> Result<()> {
        let is_top = folder.path.as_bytes().is_empty();
        // A submodule's folder without its repository, and not empty, holds files like any other.
        let link = self
            .links
            .get(&folder.path)
            .filter(|_| !is_top && listing.is_empty());
        if link.is_some() || (!is_top && listing.has(b".git") && nested::is_repository(&dir)) {
            let all_known =
                cached.is_some_and(|known| known.is_as(folder.flags) && known.count == 0);
            folder.flags |= flag::NESTED | flag::HIDDEN | if all_known { 0 } else { flag::CHANGED };
            if folder.is(flag::WANTED) {
                found.scan.nested(
                    self.outer,
                    folder,
                    listing.is_empty(),
                    link.copied().flatten(),
                );
            }
            return Ok(());
        }
        let has_rules = !folder.is(flag::IGNORED) && listing.has(ignore_rules::FILE);
        let rules = if has_rules {
            rules.with_file(&dir, &folder.path)?
        } else {
            rules
        };
        folder.rules = rules.id();
        let same_rules = cached.as_ref().is_some_and(|cached| {
            cached.rules == folder.rules
                && (cached.flags & flag::IGNORED != 0) == folder.is(flag::IGNORED)
        });
        let index = self.index.map(|index| index.folder(folder.path.as_bytes()));
        let mut before = cached
            .as_ref()
            .map(CachedFolder::items)
            .into_iter()
            .flatten()
            .peekable();
        // What the rules left out they leave out again, unless the path may be tracked by now or is asked for.
        let still_out = same_rules && self.index.is_none() && self.also.is_empty();
        let others = cached
            .as_ref()
            .filter(|_| still_out)
            .map(CachedFolder::others);
        let mut others = others.into_iter().flatten().peekable();
        let mut here = DirContext {
            index,
            same_rules,
            ..DirContext::new(dir, rules, folder.is(flag::IGNORED))
        };
        let left_out: Vec<_> = self
            .left_out
            .iter()
            .filter(|path| path.parent().unwrap_or_default() == folder.path)
            .collect();
        for (name, kind) in listing.iter() {
            while before.next_if(|item| item.name < name).is_some() {}
            let known = before.next_if(|item| item.name == name);
            while others.next_if(|(other, _)| *other < name).is_some() {}
            let was = others
                .next_if(|(other, _)| *other == name)
                .map(|(_, what)| what);
            match (was, kind) {
                (Some(what @ Other::IgnoredFolder), FileType::Directory)
                | (Some(what @ Other::IgnoredFile), FileType::RegularFile | FileType::Symlink) => {
                    found.scan.add_other(folder, name, what);
                    continue;
                }
                _ => {}
            }
            if name == b".git" {
                // At the top it is the repository; deeper it would have made its folder a nested one if it were any.
                if !is_top {
                    found.scan.skip(
                        folder.path.join(name),
                        "a name that stands for the repository itself",
                        None,
                    );
                }
            } else if left_out.iter().any(|path| openat::split(path).1 == name) {
                folder.flags |= flag::HIDDEN;
            } else {
                self.entry(folder, &mut here, name, kind, known, queue, &mut found.scan);
            }
            // A folder that goes on and on is refused before all of it was examined.
            if here.untracked.0 >= PORTION {
                self.count(&folder.path, &mut here)?;
            }
        }
        // The repository itself is at the top of every one.
        let nameless = usize::from(is_top && listing.has(b".git"));
        if Scan::entry_count(folder) + nameless == listing.len() {
            folder.flags |= flag::COMPLETE;
        }
        self.finish(folder, &here, cached.as_ref(), same_rules, &mut found.scan);
        self.count(&folder.path, &mut here)
    }

    /// Notes what the cache has of a folder, and whether that is all that was found.
    fn finish(
        &self,
        folder: &mut Folder,
        here: &DirContext<'_>,
        cached: Option<&CachedFolder<'_>>,
        same_rules: bool,
        scan: &mut Scan,
    ) {
        if let Some(cached) = cached.filter(|_| self.cache.alive) {
            folder.cached = Some(CachedTree {
                tree: cached.tree,
                subtrees: cached.subtrees,
                items: cached.count,
            });
        }
        let all_known = cached.is_some_and(|cached| {
            let items = scan.items(folder).len();
            same_rules
                && cached.is_as(folder.flags)
                && here.known == items
                && here.known == cached.count as usize
                && (cached.holds_the_same(&folder.stat) || !folder.is(flag::COMPLETE))
        });
        folder.flags |= if all_known { 0 } else { flag::CHANGED };
    }

    fn count(&self, folder: &RepoPath, here: &mut DirContext<'_>) -> Result<()> {
        let (files, bytes) = std::mem::take(&mut here.untracked);
        self.untracked.lock().add(folder, files, bytes)
    }
}

impl DirContext<'_> {
    fn new(dir: Arc<OwnedFd>, rules: Rules, ignored: bool) -> Self {
        Self {
            dir,
            rules,
            ignored,
            index: None,
            same_rules: true,
            untracked: (0, 0),
            known: 0,
        }
    }

    fn below(&self, name: &[u8], path: RepoPath, ignored: bool, wanted: bool) -> PendingDir {
        let (parent, rules) = (Arc::clone(&self.dir), self.rules.clone());
        PendingDir {
            parent,
            name: name.to_vec(),
            path,
            rules,
            ignored,
            wanted,
        }
    }
}

/// Work trees with fewer folders than this are walked in one thread: starting another takes longer.
const FEW_FOLDERS: usize = 64;

/// Walks the work tree; more untracked files than the rules allow are [`Error::UntrackedFlood`].
pub(in crate::git) fn scan(scope: Scope<'_>) -> Result<Scan> {
    scan_by(scope, &Walk::new(scope)?)
}

/// Walks the work tree where what was there before a run is `before`, and what came since may be left out: the largest
/// folders without a tracked file, and without one of `before`, until the rest is within the limits.
pub(in crate::git) fn scan_since(scope: Scope<'_>, before: &ObjectId) -> Result<Scan> {
    let mut walk = Walk::new(scope)?;
    let limit = walk.untracked.into_inner();
    walk.untracked = Mutex::new(limit.counting_all());
    let scan = scan_by(scope, &walk)?;
    let untracked = walk.untracked.into_inner();
    let Err(flood) = untracked.check() else {
        return Ok(scan);
    };
    let has_tracked = |folder: &&Folder| {
        scan.items(folder)
            .iter()
            .any(|item| item.flags & flag::TRACKED != 0)
    };
    let with_tracked = scan.folders.iter().filter(has_tracked);
    let with_tracked: BTreeSet<RepoPath> = with_tracked
        .flat_map(|folder| folder.path.ancestors().chain([folder.path.clone()]))
        .collect();
    let database = Database::open(scope.repo)?;
    let before = parse_oid(before)?;
    let was_there = |folder: &RepoPath| -> Result<bool> {
        Ok(trees::find_path(&database, before, folder.as_bytes())?.is_some())
    };
    let is_kept = |folder: &RepoPath| Ok(with_tracked.contains(folder) || was_there(folder)?);
    let Some(left_out) = untracked.folders_to_leave_out(is_kept)? else {
        return Err(flood);
    };
    let mut scan = self::scan(Scope {
        left_out: &left_out,
        ..scope
    })?;
    scan.skipped
        .extend(left_out.into_iter().map(|(path, files)| PathReason {
            path,
            reason: TOO_MANY.to_owned(),
            size: None,
            files: Some(files),
        }));
    Ok(scan)
}

fn scan_by(scope: Scope<'_>, walk: &Walk<'_>) -> Result<Scan> {
    let first = walk.top(scope)?;
    let few = (1..FEW_FOLDERS).contains(&scope.cache.len());
    let found = work_queue::run(
        vec![first],
        if few { 1 } else { work_queue::threads() },
        |task, queue, found: &mut WalkResult| walk.folder(task, queue, found),
    )?;
    let mut scan = found
        .into_iter()
        .map(|one| one.scan)
        .reduce(Scan::join)
        .unwrap_or_default();
    scan.folders
        .sort_by(|a, b| walk_order(a.path.as_bytes(), b.path.as_bytes()));
    scan.nested.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(scan)
}
