//! Takes everything that git does not ignore of a work tree, byte for byte, without touching the user's index or HEAD.

use std::collections::{BTreeMap, BTreeSet};

use git2::Oid;
use rustix::fs::FileType;

use super::cache::Cache;
use super::content::{self, Read};
use super::dirs::{self, FileStat};
use super::error::{Error, Result};
use super::lock::WorktreeLock;
use super::objects::ObjectWriter;
use super::repository::Repo;
use super::scan::{Scan, scan};
use super::trees::{self, Flat};
use super::user_index::{GITLINK, UserIndex};
use crate::model::manifest::{CaptureRules, Head, MANIFEST_VERSION, Manifest};
use crate::model::path::{PathReason, RepoPath, UNREADABLE};
use crate::model::snapshot::{Entry, EntryKind, ObjectId, Snapshot};

/// How much a capture holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureStats {
    /// Files and symlinks.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The state of a work tree. Its objects are readable through it; they become part of the repository with
/// [`write_checkpoint`](super::checkpoint::write_checkpoint) or [`Capture::keep_objects`], else they are dropped.
///
/// It keeps the worktree's lock held until it is dropped.
#[derive(Debug)]
pub struct Capture {
    /// Every captured path.
    pub snapshot: Snapshot,
    /// The git tree of it.
    pub tree: ObjectId,
    /// The tree of the user's index; `None` where there is no index.
    pub index_tree: Option<ObjectId>,
    /// What the trees cannot say.
    pub manifest: Manifest,
    /// Whether something that should have been captured could not be; `snapshot.skipped` says what.
    pub partial: bool,
    /// Where HEAD was.
    pub head: Head,
    /// How much it is.
    pub stats: CaptureStats,
    pub(super) writer: ObjectWriter,
}

impl Capture {
    /// Makes the captured objects durable without a checkpoint (nothing refers to them, so that `git gc` may drop them).
    pub fn keep_objects(&self) -> Result<()> {
        self.writer.publish()
    }
}

/// Captures the work tree.
///
/// `also` are paths to take even when they are ignored: those that a restore is going to write. A path that cannot be
/// read is listed in `skipped` and makes the capture `partial`; anything else that goes wrong is an error, never an
/// older or emptier tree. Ignored, nested and oversized paths are left out as `rules` say.
pub fn capture(repo: &Repo, lock: &WorktreeLock, rules: &CaptureRules, also: &BTreeSet<RepoPath>) -> Result<Capture> {
    let writer = ObjectWriter::new(repo, lock)?;
    let mut cache = Cache::open(repo)?;
    let index = UserIndex::read(repo)?;
    let head = repo.head()?;
    let operation = repo.operation().map(str::to_owned);
    let mut scan = scan(repo, &index, rules, also)?;
    let (files, stats) = read_files(repo, &writer, &mut cache, &mut scan)?;
    let mut flat: Flat = files.iter().map(|(path, (stat, oid))| (path.clone(), (git_mode(stat), *oid))).collect();
    for nested in &scan.nested {
        if let Some(commit) = &nested.commit {
            flat.insert(nested.path.clone(), (GITLINK, trees::parse_oid(commit)?));
        }
    }
    let tree = ObjectId(trees::write(&writer, &flat)?.to_string());
    let index_tree = if index.exists { Some(ObjectId(trees::write(&writer, &index.tree)?.to_string())) } else { None };
    let nested = std::mem::take(&mut scan.nested);
    let partial = scan.partial;
    let snapshot = snapshot(&writer, scan, &files, &flat)?;
    let manifest = Manifest {
        version: MANIFEST_VERSION,
        modes: crate::model::manifest::DefaultModes::default(),
        file_modes: Vec::new(),
        folder_modes: Vec::new(),
        empty_folders: Vec::new(),
        skipped: Vec::new(),
        partial,
        nested,
        rules: rules.clone(),
        head: head.clone(),
        operation,
        has_index: index.exists,
        index_extras: index.extras,
        memory_modes: Vec::new(),
    }
    .with_snapshot(&snapshot);
    // Without a cache the next capture is slower and as right.
    let _ = cache.store(files);
    Ok(Capture { snapshot, tree, index_tree, manifest, partial, head, stats, writer })
}

type Files = BTreeMap<RepoPath, (FileStat, Oid)>;

/// Reads the files that the cache does not know and writes their blobs.
fn read_files(repo: &Repo, writer: &ObjectWriter, cache: &mut Cache, scan: &mut Scan) -> Result<(Files, CaptureStats)> {
    let root = dirs::open_root(repo.workdir())?;
    let odb = writer.odb()?;
    let mut files = Files::new();
    let mut stats = CaptureStats::default();
    let mut folder = None;
    for found in std::mem::take(&mut scan.files) {
        // A cached blob may have been collected as garbage; it is then read and written again.
        let known = cache.get(&found.path, &found.stat).filter(|oid| odb.exists(*oid));
        let read = if let Some(oid) = known {
            Read::Stored(oid, found.stat)
        } else {
            let (parent, name) = dirs::split(&found.path);
            if folder.as_ref().is_none_or(|(path, _)| *path != parent) {
                folder = dirs::open_path(&root, &parent).ok().map(|dir| (parent, dir));
            }
            match &folder {
                Some((_, dir)) => content::store(dir, name, writer)?,
                None => Read::Failed(format!("{UNREADABLE}: its folder changed meanwhile")),
            }
        };
        match read {
            Read::Stored(oid, stat) => {
                stats.files += 1;
                stats.bytes += stat.size;
                files.insert(found.path, (stat, oid));
            }
            Read::Gone => {}
            Read::Failed(reason) => {
                scan.partial = true;
                scan.skipped.push(PathReason { path: found.path, reason, size: Some(found.stat.size) });
            }
        }
    }
    Ok((files, stats))
}

fn git_mode(stat: &FileStat) -> u32 {
    match stat.kind() {
        FileType::Symlink => 0o120_000,
        _ if stat.mode & 0o100 != 0 => 0o100_755,
        _ => 0o100_644,
    }
}

fn snapshot(writer: &ObjectWriter, scan: Scan, files: &Files, flat: &Flat) -> Result<Snapshot> {
    let mut entries: BTreeMap<RepoPath, Entry> = BTreeMap::new();
    for (path, (mode, oid)) in flat {
        let kind = kind_of(*mode)?;
        let permissions = files.get(path).map_or(0, |(stat, _)| stat.permissions());
        let mode = if kind == EntryKind::File { permissions } else { 0 };
        entries.insert(path.clone(), Entry { kind, oid: ObjectId(oid.to_string()), mode });
    }
    let empty_blob = ObjectId(writer.write(git2::ObjectType::Blob, b"")?.to_string());
    let empty_dir = |mode| Entry { kind: EntryKind::EmptyDir, oid: empty_blob.clone(), mode };
    entries.extend(scan.empty.iter().map(|(path, mode)| (path.clone(), empty_dir(*mode))));
    let mut holding: BTreeSet<RepoPath> =
        entries.keys().flat_map(|path| path.ancestors().collect::<Vec<_>>()).collect();
    // A folder whose files all turned out unreadable or gone holds nothing captured either; the deepest come first.
    for (path, mode) in scan.dirs.iter().rev() {
        if !holding.contains(path) {
            holding.extend(path.ancestors());
            entries.insert(path.clone(), empty_dir(*mode));
        }
    }
    let dirs = scan.dirs.into_iter().filter(|(path, _)| holding.contains(path)).collect();
    let mut skipped = scan.skipped;
    skipped.sort();
    Ok(Snapshot { entries, dirs, skipped })
}

/// The kind of an entry with this git file mode.
pub(super) fn kind_of(mode: u32) -> Result<EntryKind> {
    match mode & 0o170_000 {
        0o100_000 => Ok(EntryKind::File),
        0o120_000 => Ok(EntryKind::Symlink),
        0o160_000 => Ok(EntryKind::Gitlink),
        _ => Err(Error::corrupt(format!("file mode {mode:o} in a tree"))),
    }
}
