//! What a tree and a manifest say together: everything, one path, or what two of them do not have in common.

use std::collections::{BTreeMap, BTreeSet};

use git2::Oid;

use super::capture::{Capture, kind_of};
use super::diff::Objects;
use super::error::Result;
use super::stored::{EMPTY_BLOB, StoredCheckpoint};
use super::tree_lookup::TreeLookup;
use super::trees::{self, TREE, child, parse_oid};
use crate::model::manifest::{Manifest, PathMode};
use crate::model::path::{NESTED, PathReason, RepoPath};
use crate::model::snapshot::{Entry, EntryKind, ObjectId, Snapshot};

/// A work tree as it is stored or was captured.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    tree: &'a ObjectId,
    manifest: &'a Manifest,
}

impl StoredCheckpoint {
    /// What it holds.
    pub fn side(&self) -> Side<'_> {
        Side { tree: &self.tree, manifest: &self.manifest }
    }
}

impl Capture {
    /// What it holds.
    pub fn side(&self) -> Side<'_> {
        Side { tree: &self.tree, manifest: &self.manifest }
    }

    /// Every path it holds.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let opened = Objects::Captured(self).open()?;
        self.side().snapshot(&TreeLookup::new(&opened)?)
    }
}

impl Side<'_> {
    /// The git tree.
    pub fn tree(&self) -> &ObjectId {
        self.tree
    }

    /// Every path.
    pub fn snapshot(&self, lookup: &TreeLookup<'_>) -> Result<Snapshot> {
        let mut collected = Collected::new(*self);
        for (path, (mode, oid)) in trees::read(lookup.database(), parse_oid(self.tree)?)? {
            collected.file(path, mode, oid)?;
        }
        collected.empty_folders();
        Ok(collected.finish())
    }

    /// One path; `None` where it holds nothing. A folder that holds something is nothing by itself.
    pub fn entry(&self, lookup: &TreeLookup<'_>, path: &RepoPath) -> Result<Option<Entry>> {
        if let Some(empty) = self.manifest.empty_folders.iter().find(|empty| empty.path == *path) {
            return Ok(Some(empty_folder(empty.mode)));
        }
        match lookup.find(self.tree, path)? {
            Some((mode, oid)) if mode != TREE => Collected::new(*self).entry(path, mode, oid).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether a path is a folder that holds something.
    pub fn is_folder(&self, lookup: &TreeLookup<'_>, path: &RepoPath) -> Result<bool> {
        Ok(matches!(lookup.find(self.tree, path)?, Some((TREE, _))))
    }
}

/// Two snapshots without the folders that are the same in both: a path that only one of them has, or that differs,
/// stands in them, with everything beside it in its folder; one that is the same in both may be missing from both. The
/// folders on the way to what stands in them are complete, too, and everything that is in `skipped`.
pub fn differing(lookup: &TreeLookup<'_>, a: Side<'_>, b: Side<'_>) -> Result<(Snapshot, Snapshot)> {
    if a.manifest.modes != b.manifest.modes {
        // What is usual in one of them is listed in the other: path by path there is little in common.
        return Ok((a.snapshot(lookup)?, b.snapshot(lookup)?));
    }
    let (mut one, mut other) = (Collected::new(a), Collected::new(b));
    let mut open = vec![(RepoPath::default(), Some(parse_oid(a.tree)?), Some(parse_oid(b.tree)?))];
    while let Some((folder, tree_a, tree_b)) = open.pop() {
        if tree_a == tree_b {
            continue;
        }
        let mut below: BTreeMap<RepoPath, (Option<Oid>, Option<Oid>)> = BTreeMap::new();
        for (path, tree) in one.level(lookup, &folder, tree_a)? {
            below.entry(path).or_default().0 = Some(tree);
        }
        for (path, tree) in other.level(lookup, &folder, tree_b)? {
            below.entry(path).or_default().1 = Some(tree);
        }
        open.extend(below.into_iter().map(|(path, (a, b))| (path, a, b)));
    }
    for path in not_in_both(&a.manifest.file_modes, &b.manifest.file_modes) {
        one.single(lookup, path)?;
        other.single(lookup, path)?;
    }
    for path in not_in_both(&a.manifest.folder_modes, &b.manifest.folder_modes) {
        one.folder(lookup, path)?;
        other.folder(lookup, path)?;
    }
    one.empty_folders();
    other.empty_folders();
    // An empty folder that only one side has lies in folders that both may have.
    let folders: BTreeSet<RepoPath> = one.folders.symmetric_difference(&other.folders).cloned().collect();
    for path in &folders {
        one.folder(lookup, path)?;
        other.folder(lookup, path)?;
    }
    Ok((one.finish(), other.finish()))
}

/// Paths that stand in one list and not, or with another mode, in the other.
fn not_in_both<'a>(a: &'a [PathMode], b: &'a [PathMode]) -> BTreeSet<&'a RepoPath> {
    let set = |list: &'a [PathMode]| list.iter().map(|listed| (&listed.path, listed.mode)).collect::<BTreeSet<_>>();
    set(a).symmetric_difference(&set(b)).map(|(path, _)| *path).collect()
}

fn empty_folder(mode: u32) -> Entry {
    Entry { kind: EntryKind::EmptyDir, oid: ObjectId(EMPTY_BLOB.to_owned()), mode }
}

/// A snapshot while it is put together.
struct Collected<'a> {
    side: Side<'a>,
    file_modes: BTreeMap<&'a RepoPath, u32>,
    entries: BTreeMap<RepoPath, Entry>,
    folders: BTreeSet<RepoPath>,
}

impl<'a> Collected<'a> {
    fn new(side: Side<'a>) -> Self {
        let file_modes = side.manifest.file_modes.iter().map(|listed| (&listed.path, listed.mode)).collect();
        Self { side, file_modes, entries: BTreeMap::new(), folders: BTreeSet::new() }
    }

    fn entry(&self, path: &RepoPath, mode: u32, oid: Oid) -> Result<Entry> {
        let kind = kind_of(mode)?;
        let usual = self.side.manifest.modes.of_file(mode & 0o100 != 0);
        let mode = if kind == EntryKind::File { self.file_modes.get(path).copied().unwrap_or(usual) } else { 0 };
        Ok(Entry { kind, oid: ObjectId(oid.to_string()), mode })
    }

    fn file(&mut self, path: RepoPath, mode: u32, oid: Oid) -> Result<()> {
        let entry = self.entry(&path, mode, oid)?;
        self.folders.extend(path.ancestors());
        self.entries.insert(path, entry);
        Ok(())
    }

    /// Takes what is directly in a folder, and says which folders are.
    fn level(&mut self, lookup: &TreeLookup<'_>, folder: &RepoPath, tree: Option<Oid>) -> Result<Vec<(RepoPath, Oid)>> {
        let mut below = Vec::new();
        let Some(tree) = tree else { return Ok(below) };
        for (name, mode, oid) in lookup.entries(tree)?.iter() {
            let path = child(folder, name);
            if *mode == TREE {
                self.folders.extend(path.ancestors().chain([path.clone()]));
                below.push((path, *oid));
            } else {
                self.file(path, *mode, *oid)?;
            }
        }
        Ok(below)
    }

    /// Takes one file, if there is one.
    fn single(&mut self, lookup: &TreeLookup<'_>, path: &RepoPath) -> Result<()> {
        match lookup.find(self.side.tree, path)? {
            Some((mode, oid)) if mode != TREE => self.file(path.clone(), mode, oid),
            _ => Ok(()),
        }
    }

    /// Takes a folder without what is in it, if there is one.
    fn folder(&mut self, lookup: &TreeLookup<'_>, path: &RepoPath) -> Result<()> {
        if self.side.is_folder(lookup, path)? {
            self.folders.extend(path.ancestors().chain([path.clone()]));
        }
        Ok(())
    }

    fn empty_folders(&mut self) {
        for empty in &self.side.manifest.empty_folders {
            self.folders.extend(empty.path.ancestors());
            self.entries.insert(empty.path.clone(), empty_folder(empty.mode));
        }
    }

    fn finish(self) -> Snapshot {
        let manifest = self.side.manifest;
        let listed: BTreeMap<_, _> = manifest.folder_modes.iter().map(|listed| (&listed.path, listed.mode)).collect();
        let mode = |path: &RepoPath| listed.get(path).copied().unwrap_or(manifest.modes.folder);
        let dirs = self.folders.iter().map(|path| (path.clone(), mode(path))).collect();
        // What lies in a nested repository is none of this one's paths, whether it was captured there or not.
        let listed: BTreeSet<&RepoPath> = manifest.skipped.iter().map(|skipped| &skipped.path).collect();
        let nested = manifest.nested.iter().filter(|nested| !listed.contains(&nested.path));
        let nested = nested.map(|one| PathReason { path: one.path.clone(), reason: NESTED.to_owned(), size: None });
        let mut skipped: Vec<_> = manifest.skipped.iter().cloned().chain(nested).collect();
        skipped.sort();
        Snapshot { entries: self.entries, dirs, skipped }
    }
}
