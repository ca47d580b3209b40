//! Captures the work tree as it is, byte for byte, without touching the user's index or HEAD.
//!
//! What [`worktree`](super::worktree) found becomes trees and a manifest, and a cache for the next time. Commits and
//! references belong in [`checkpoint`](super::checkpoint).
//!
//! A tree keeps no times of files, and a list of all of them would be written anew with every checkpoint. Of a small work tree
//! all are kept: in the order of the paths, each as the difference to the one before, they take next to nothing. Of a larger one
//! those of the files that are not as the last capture found them. What is known of the others is what the last capture of the
//! worktree saw, as long as the content is still that.

mod cache_writer;
mod tree_builder;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use git2::Oid;

use super::base::error::{Error, Result};
use super::base::openat::split;
use super::base::work_queue::both;
use super::index::user_index::{Identity, UserIndex};
use super::odb::{ObjectWriter, trees};
use super::repo::{Loan, Repo, WorktreeLock};
use super::tree::{KnownTrees, Objects, TreeLookup, TreeView};
use super::worktree::cache::{Cache, Header, Other, flag, walk_order};
use super::worktree::reading::read_all;
use super::worktree::scan::{Content, FileEntry, Folder, Scan, Scope};
use super::worktree::walk;
use crate::model::checkpoint::CapturedTotals;
use crate::model::manifest::{FileTimes, MANIFEST_VERSION, PathTime};
use crate::model::{CaptureRules, Head, Manifest, ObjectId, RepoPath, Snapshot, Timestamp};
use cache_writer::{CacheInTheMaking, CaptureCacheBuilder};
use tree_builder::{BuiltTree, stored};

/// An index with this many entries is worth a thread for its tree.
const WORTH_A_THREAD: usize = 2048;

/// Pack size in bytes at which objects are published early, so that a killed capture keeps its progress: a second of work
/// or less.
const PORTION: u64 = 16 << 20;

/// The state of a work tree. Its objects are readable through it; they become part of the repository with
/// [`write_checkpoint`](super::checkpoint::write_checkpoint) or [`Capture::keep_objects`], else they are dropped.
///
/// It keeps the worktree's lock held until it is dropped.
#[derive(Debug)]
pub struct Capture {
    /// The git tree of everything captured.
    pub tree: ObjectId,
    /// The tree of the user's index; `None` where there is no index.
    pub index_tree: Option<ObjectId>,
    /// What the trees cannot say.
    pub manifest: Manifest,
    /// Whether something that should have been captured could not be; `manifest.skipped` says what.
    pub partial: bool,
    /// Where HEAD was.
    pub head: Head,
    /// How much it is.
    pub stats: CapturedTotals,
    pub(super) writer: ObjectWriter,
    /// Those that were made, or read to compare it with something.
    trees: KnownTrees,
    /// What was seen, until it is noted.
    cache_builder: RefCell<Option<Arc<CaptureCacheBuilder>>>,
    /// What of it is being noted.
    cache_in_the_making: RefCell<Option<CacheInTheMaking>>,
}

impl Capture {
    /// What it holds.
    pub fn view(&self) -> TreeView<'_> {
        TreeView::new(&self.tree, self.index_tree.as_ref(), &self.manifest)
    }

    /// Where its objects are read from, stored or not.
    pub fn objects(&self) -> Objects<'_> {
        Objects::of_writer(&self.writer, &self.trees)
    }

    /// Every path it holds.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let objects = self.objects();
        self.view().snapshot(&TreeLookup::new(&objects)?)
    }

    /// How many paths it has an entry for: files, symlinks, empty folders, linked repositories.
    pub fn entry_count(&self) -> u64 {
        let linked = self
            .manifest
            .nested
            .iter()
            .filter(|nested| nested.commit.is_some())
            .count();
        self.stats.files + (self.manifest.empty_folders.len() + linked) as u64
    }

    /// The folders whose content was examined, the work tree's root among them: those that are not ignored, and those
    /// with something tracked. Empty once what was seen is noted.
    pub fn folders(&self) -> Vec<RepoPath> {
        let cache_builder = self.cache_builder.borrow();
        let folders = cache_builder
            .iter()
            .flat_map(|cache_builder| &cache_builder.scan.folders);
        folders
            .filter(|folder| !folder.is(flag::NESTED))
            .map(|folder| folder.path.clone())
            .collect()
    }

    /// The files and folders that the ignore rules left out of the folders that were examined, and whether each is a folder.
    /// Empty once what was seen is noted.
    pub(super) fn ignored(&self) -> Vec<(RepoPath, bool)> {
        let cache_builder = self.cache_builder.borrow();
        let Some(CaptureCacheBuilder { scan, .. }) = cache_builder.as_deref() else {
            return Vec::new();
        };
        let ignored = |(folder, (name, what)): (&Folder, (&[u8], Other))| match what {
            Other::Folder => None,
            what => Some((folder.path.join(name), what == Other::IgnoredFolder)),
        };
        let below = scan.folders.iter();
        below
            .flat_map(|folder| scan.others(folder).map(move |other| (folder, other)))
            .filter_map(ignored)
            .collect()
    }

    /// The checkpoint that was recorded last of this work tree, while its reference holds it.
    pub(super) fn last_recorded(&self) -> Option<ObjectId> {
        let cache_builder = self.cache_builder.borrow();
        let cache = &cache_builder.as_ref()?.cache;
        cache.alive.then(|| ObjectId(cache.header.commit.clone()))
    }

    /// Bytes (uncompressed) of what was written so far that the repository did not have.
    pub fn added_bytes(&self) -> u64 {
        self.writer.added_bytes()
    }

    /// Whether there is so little new in it that to make it durable takes no longer than a few syncs.
    pub fn is_little(&self) -> bool {
        self.writer.is_in_memory()
    }

    /// Makes the captured objects durable without a checkpoint (nothing refers to them, so that `git gc` may drop them).
    pub fn keep_objects(&self) -> Result<()> {
        self.writer.publish()
    }

    /// Notes what was seen, so that the next capture reads only what changes from here on. `commit` is the checkpoint
    /// of this capture, and `reference` holds it. Without the note the next capture is slower and as right, so that a
    /// failure is reported and no more. What was seen is forgotten here; that of a large work tree is written by when this
    /// capture is dropped.
    pub fn write_cache(&self, reference: &str, commit: &ObjectId) {
        if let Some(cache_builder) = self.cache_builder.take() {
            self.store(&cache_builder, reference, commit);
        }
    }

    /// Refreshes the cache after a capture that is not recorded because it is what this checkpoint holds. One that had to
    /// write something is not believed: the checkpoint may lack it.
    pub fn write_cache_of_same(&self, reference: &str, commit: &ObjectId) {
        if self.added_bytes() == 0 && !self.writer.doubts() {
            self.write_cache(reference, commit);
        }
    }

    fn store(&self, cache_builder: &CaptureCacheBuilder, reference: &str, commit: &ObjectId) {
        if cache_builder.is_up_to_date() {
            return;
        }
        let recorded = Header {
            reference: reference.to_owned(),
            commit: commit.0.clone(),
            tree: self.tree.0.clone(),
            index_tree: self.index_tree.clone(),
            index_extras: self.manifest.index_extras.clone(),
            ..Header::default()
        };
        if let Some(making) = self.cache_in_the_making.borrow_mut().as_mut() {
            making.store(recorded);
        } else if let Err(error) = cache_builder
            .store(recorded)
            .and_then(|()| self.writer.end_doubt())
        {
            tracing::debug!(%error, "the capture's cache could not be written");
        }
    }

    /// Keeps what was damaged or missing and is written again, and syncs what others wrote, where the capture itself is not
    /// recorded.
    pub fn repair(&self) -> Result<()> {
        let is_any = self.writer.doubts() || self.added_bytes() > 0 || self.writer.has_unsynced();
        if is_any { self.keep_objects() } else { Ok(()) }
    }

    /// The states of these files, then those of others, as many as wanted; none once the capture is noted. Nothing is read.
    pub fn file_states(&self, first: &[RepoPath], most: usize) -> Vec<FileState> {
        let cache_builder = self.cache_builder.borrow();
        let Some(cache_builder) = cache_builder.as_ref() else {
            return Vec::new();
        };
        let scan = &cache_builder.scan;
        let state = |folder: &Folder, item: &FileEntry, blob: Oid| FileState {
            path: folder.path.join(scan.name(item)),
            blob: ObjectId(blob.to_string()),
            size: item.stat.size,
            modified: Some(Timestamp::from_millis(millis(item.stat.mtime))),
        };
        let find = |path: &RepoPath| {
            let (above, name) = (path.parent().unwrap_or_default(), split(path).1);
            let by_path = |folder: &Folder| walk_order(folder.path.as_bytes(), above.as_bytes());
            let folder = &scan.folders[scan.folders.binary_search_by(by_path).ok()?];
            let (item, blob) = stored(scan, folder).find(|(item, _)| scan.name(item) == name)?;
            Some(state(folder, item, blob))
        };
        let mut states: Vec<FileState> = first.iter().filter_map(find).take(most).collect();
        let known: BTreeSet<&RepoPath> = first.iter().collect();
        let all = scan
            .folders
            .iter()
            .flat_map(|folder| stored(scan, folder).map(move |(item, blob)| (folder, item, blob)));
        let others = all
            .map(|(folder, item, blob)| state(folder, item, blob))
            .filter(|one| !known.contains(&one.path));
        let left = most - states.len();
        states.extend(others.take(left));
        states
    }
}

impl Repo {
    /// Captures the work tree.
    ///
    /// `also` are paths to take even when they are ignored: those that a restore is going to write. A path that cannot be
    /// read is listed in `skipped` and makes the capture `partial`; anything else that goes wrong is an error, never an
    /// older or emptier tree. Ignored, nested and oversized paths are left out as `rules` say.
    pub fn capture(
        &self,
        lock: &WorktreeLock,
        rules: &CaptureRules,
        also: &BTreeSet<RepoPath>,
    ) -> Result<Capture> {
        self.capture_lent(lock, rules, also, None)
    }

    /// [`Repo::capture`] of a work tree in which rights are lent: it has the permissions that there were before.
    pub(crate) fn capture_lent(
        &self,
        lock: &WorktreeLock,
        rules: &CaptureRules,
        also: &BTreeSet<RepoPath>,
        loan: Option<&Loan>,
    ) -> Result<Capture> {
        let mut writer = ObjectWriter::new(self, lock)?;
        if rules.publish_incrementally && !lock.is_rehearsal() {
            writer.publish_from(PORTION);
        }
        let cache = if lock.is_rehearsal() {
            Cache::open_readonly(self, !writer.trusts_earlier())
        } else {
            Cache::open(self, !writer.trusts_earlier())?
        };
        let is_same_index =
            cache.alive && cache.len() > 0 && cache.header.index == Identity::of(self)?;
        let index = if is_same_index {
            None
        } else {
            Some(UserIndex::read(self)?)
        };
        let head = self.head()?;
        let operation = self.operation().map(str::to_owned);
        let scope = Scope {
            repo: self,
            cache: &cache,
            index: index.as_ref(),
            rules,
            also,
            left_out: &BTreeMap::new(),
        };
        let mut scan = match &rules.before {
            None => walk::scan(scope)?,
            Some(before) => walk::scan_since(scope, before)?,
        };
        read_all(self, &writer, &cache, index.as_ref(), &mut scan)?;
        if let Some(loan) = loan {
            scan.set_modes(|path| loan.mode(path));
        }
        scan.skipped.sort();
        scan.unsettled.sort();
        scan.unsettled.dedup();
        let lost = index.as_ref().map_or(Ok(HashSet::new()), |index| {
            lost_blobs(self, &writer, index, &scan)
        })?;
        let (made, known, index_tree) =
            both_trees(&writer, &cache, &scan, (index.as_ref(), &lost))?;
        let tree = made
            .first()
            .and_then(|root| root.tree)
            .ok_or_else(|| Error::corrupt("the work tree is gone"))?;
        let index_tree = match &index {
            Some(_) => index_tree.map(|tree| ObjectId(tree.to_string())),
            None => cache.header.index_tree.clone(),
        };
        let seen = Arc::new(CaptureCacheBuilder {
            scan,
            made,
            cache,
            index,
        });
        // One that ends a doubt is written where that is seen, and a rehearsal writes none.
        let is_apart = !writer.doubts() && !lock.is_rehearsal();
        let making = if is_apart {
            CacheInTheMaking::begin(&seen)
        } else {
            None
        };
        let CaptureCacheBuilder {
            scan,
            made,
            cache,
            index,
        } = &*seen;
        let beside = tree_builder::manifest_parts(scan, made);
        let manifest = Manifest {
            version: MANIFEST_VERSION,
            modes: beside.modes,
            file_modes: beside.file_modes,
            folder_modes: beside.folder_modes,
            empty_folders: beside.empty_folders,
            skipped: scan.skipped.clone(),
            unsettled: scan.unsettled.clone(),
            partial: scan.partial,
            nested: scan.nested.clone(),
            rules: rules.clone(),
            head: head.clone(),
            operation,
            has_index: index_tree.is_some(),
            index_extras: index.as_ref().map_or_else(
                || cache.header.index_extras.clone(),
                |index| index.extras.clone(),
            ),
            memory_modes: Vec::new(),
            outputs: self.own_outputs().paths(),
            times: times(scan),
        };
        Ok(Capture {
            tree: ObjectId(tree.to_string()),
            index_tree,
            partial: manifest.partial,
            manifest,
            head,
            stats: CapturedTotals {
                files: beside.files,
                bytes: beside.bytes,
            },
            writer,
            trees: known,
            cache_in_the_making: RefCell::new(making),
            cache_builder: RefCell::new(Some(seen)),
        })
    }

    /// When these files were last modified, each with its blob, as the last recorded capture of this worktree saw them.
    pub(crate) fn last_seen_times(
        &self,
        wanted: &BTreeSet<&RepoPath>,
    ) -> BTreeMap<RepoPath, (ObjectId, Timestamp)> {
        let cache = Cache::read(self);
        let mut seen = BTreeMap::new();
        for path in wanted {
            let (above, name) = (path.parent().unwrap_or_default(), split(path).1);
            let folder = cache.folder(above.as_bytes());
            let found = folder.and_then(|folder| folder.items().find(|item| item.name == name));
            seen.extend(found.map(|item| {
                let at = Timestamp::from_millis(millis(item.stat.mtime));
                ((*path).clone(), (ObjectId(item.oid.to_string()), at))
            }));
        }
        seen
    }
}

/// Blobs of the index that are damaged or gone, and that no file has either: its tree cannot hold them. In a partial clone
/// blobs are missing anyway.
fn lost_blobs(
    repo: &Repo,
    writer: &ObjectWriter,
    index: &UserIndex,
    scan: &Scan,
) -> Result<HashSet<Oid>> {
    if repo.is_partial_clone() {
        return Ok(HashSet::new());
    }
    // A power failure can leave an index that names objects which never reached the disk, without any damaged one.
    let stored = |item: &FileEntry| match item.content {
        Content::Known(oid) | Content::Cached(oid) => Some(oid),
        Content::FromIndex(_) | Content::Unread | Content::Lost => None,
    };
    let in_files: HashSet<Oid> = if writer.trusts_earlier() {
        scan.items.iter().filter_map(stored).collect()
    } else {
        HashSet::new()
    };
    let (paths, blobs): (Vec<&[u8]>, Vec<Oid>) = index
        .blobs()
        .filter(|(_, blob)| !in_files.contains(blob))
        .unzip();
    let is_there = writer.contained(&blobs)?;
    let all = paths.into_iter().zip(blobs).zip(is_there);
    let lost: Vec<(&[u8], Oid)> = all
        .filter_map(|(entry, is_there)| (!is_there).then_some(entry))
        .collect();
    if let Some((first, _)) = lost.first() {
        let (path, count) = (RepoPath::new(*first), lost.len());
        tracing::warn!(
            "what is staged is lost of {count} of the index's files ({path}): the checkpoint's index lacks it"
        );
    }
    Ok(lost.into_iter().map(|(_, blob)| blob).collect())
}

/// Makes the trees of the work tree and, where it was read, the tree of the index: at the same time where they are large.
fn both_trees(
    writer: &ObjectWriter,
    cache: &Cache,
    scan: &Scan,
    (index, lost): (Option<&UserIndex>, &HashSet<Oid>),
) -> Result<(Vec<BuiltTree>, KnownTrees, Option<Oid>)> {
    let of_index = || {
        index.map_or(Ok(None), |index| {
            index.tree(lost, &mut trees::into_writer(writer))
        })
    };
    if index.is_none_or(|index| index.len() < WORTH_A_THREAD) {
        let (made, known) = tree_builder::trees(writer, cache, scan)?;
        return Ok((made, known, of_index()?));
    }
    let (made, of_index) = both(|| tree_builder::trees(writer, cache, scan), of_index);
    let (made, known) = made?;
    Ok((made, known, of_index?))
}

/// A file as it was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Where.
    pub path: RepoPath,
    /// Its content.
    pub blob: ObjectId,
    /// Bytes.
    pub size: u64,
    /// When it was last modified, where that is known.
    pub modified: Option<Timestamp>,
}

/// The most times that a manifest keeps.
const MAX_TIMES: usize = 1000;

/// The times of a capture, once all that changed was read. Of more than are kept it is the latest.
pub(super) fn times(scan: &Scan) -> FileTimes {
    let all = || {
        scan.folders
            .iter()
            .flat_map(|folder| stored(scan, folder).map(move |(item, _)| (folder, item)))
    };
    let is_small = all().nth(MAX_TIMES).is_none();
    let mut times: Vec<_> = all()
        .filter(|(_, item)| is_small || item.flags & flag::SAME == 0)
        .collect();
    if times.len() > MAX_TIMES {
        times.select_nth_unstable_by_key(MAX_TIMES, |(_, item)| std::cmp::Reverse(item.stat.mtime));
        times.truncate(MAX_TIMES);
    }
    let named = times.into_iter().map(|(folder, item)| {
        let modified = Timestamp::from_millis(millis(item.stat.mtime));
        PathTime {
            path: folder.path.join(scan.name(item)),
            modified,
        }
    });
    let mut named: Vec<PathTime> = named.collect();
    named.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    if !is_small {
        return FileTimes::Some(named);
    }
    let mut before = 0;
    let steps = named
        .iter()
        .map(|one| one.modified.millis() - std::mem::replace(&mut before, one.modified.millis()));
    FileTimes::All(steps.collect())
}

fn millis(nanos: i64) -> i64 {
    nanos.div_euclid(1_000_000)
}
