//! Stored trees with their manifests: everything they hold, one path, what was left out, or what two do not have in common.
//! Where they come from, a capture or a checkpoint, makes no difference here.

mod diff;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use git2::Oid;

use super::base::paths::kind_of;
use super::base::{EMPTY_BLOB, Globs, Result, SMALL_TASKS, TREE, parse_oid, work_queue};
use super::odb::{Database, ObjectWriter, Tree, TreeEntry, trees};
use super::repo::repository::Repo;
use super::worktree::ignore_rules::{FILE, Rules};
use crate::model::path::NESTED;
use crate::model::{
    Entry, EntryKind, Manifest, ObjectId, PathMode, PathReason, RepoPath, Snapshot,
};

pub use diff::Seen;

/// A work tree as it is stored or was captured.
#[derive(Clone, Copy, Debug)]
pub struct TreeView<'a> {
    tree: &'a ObjectId,
    index_tree: Option<&'a ObjectId>,
    manifest: &'a Manifest,
}

impl<'a> TreeView<'a> {
    /// Of a tree and what it cannot say; `index_tree` is that of the user's index, where there was one.
    pub(super) fn new(
        tree: &'a ObjectId,
        index_tree: Option<&'a ObjectId>,
        manifest: &'a Manifest,
    ) -> Self {
        Self {
            tree,
            index_tree,
            manifest,
        }
    }

    /// The git tree.
    pub fn tree(&self) -> &'a ObjectId {
        self.tree
    }

    /// The tree of the user's index; `None` where there was none.
    pub(super) fn index_tree(&self) -> Option<&'a ObjectId> {
        self.index_tree
    }

    /// What the trees cannot say.
    pub(super) fn manifest(&self) -> &'a Manifest {
        self.manifest
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
        if let Some(mode) = listed_mode(&self.manifest.empty_folders, path) {
            return Ok(Some(empty_folder(mode)));
        }
        match lookup.find(self.tree, path)? {
            Some((mode, oid)) if mode != TREE => self.entry_of(path, mode, oid).map(Some),
            _ => Ok(None),
        }
    }

    /// Files and symlinks, no more than `most`: these, as far as it holds them, then others, each in the order of their paths.
    /// Only the trees on the way to them are read.
    pub fn files_from(
        &self,
        lookup: &TreeLookup<'_>,
        first: &[RepoPath],
        most: usize,
    ) -> Result<Vec<(RepoPath, Entry)>> {
        let first: BTreeSet<&RepoPath> = first.iter().collect();
        let mut files = Vec::new();
        for path in first.iter().copied() {
            if files.len() == most {
                break;
            }
            files.extend(
                self.entry(lookup, path)?
                    .filter(Entry::is_file)
                    .map(|entry| (path.clone(), entry)),
            );
        }
        // What comes next is at the end.
        let mut ahead = vec![(RepoPath::default(), TREE, parse_oid(self.tree)?)];
        while let Some((path, mode, oid)) = ahead.pop().filter(|_| files.len() < most) {
            if mode == TREE {
                let (tree, from) = (lookup.tree(oid)?, ahead.len());
                ahead.extend(
                    tree.entries()
                        .map(|entry| (trees::child(&path, entry.name), entry.mode, entry.oid)),
                );
                ahead[from..].reverse();
            } else if !first.contains(&path) {
                let entry = self.entry_of(&path, mode, oid)?;
                files.extend(Some((path, entry)).filter(|(_, entry)| entry.is_file()));
            }
        }
        Ok(files)
    }

    /// Whether a path is a folder that holds something.
    pub fn is_folder(&self, lookup: &TreeLookup<'_>, path: &RepoPath) -> Result<bool> {
        Ok(matches!(lookup.find(self.tree, path)?, Some((TREE, _))))
    }

    /// What the tree has at a path, with the mode that the manifest knows.
    fn entry_of(&self, path: &RepoPath, mode: u32, oid: Oid) -> Result<Entry> {
        let kind = kind_of(mode)?;
        let usual = self.manifest.modes.of_file(mode & 0o100 != 0);
        let mode = match kind {
            EntryKind::File => listed_mode(&self.manifest.file_modes, path).unwrap_or(usual),
            _ => 0,
        };
        Ok(Entry {
            kind,
            oid: ObjectId(oid.to_string()),
            mode,
        })
    }
}

impl TreeLookup<'_> {
    /// Two snapshots without what is the same in both: a path that only one of them has, or that differs, stands in them; one
    /// that is the same in both may be missing from both. The folders on the way to what stands in them are complete, and so is
    /// everything that is in `skipped`.
    pub fn diff(&self, a: TreeView<'_>, b: TreeView<'_>) -> Result<(Snapshot, Snapshot)> {
        if a.manifest.modes != b.manifest.modes {
            // What is usual in one of them is listed in the other: path by path there is little in common.
            return Ok((a.snapshot(self)?, b.snapshot(self)?));
        }
        let (mut one, mut other) = (Collected::new(a), Collected::new(b));
        // Folders that differ, one level after the other.
        let mut level = BTreeMap::from([(
            RepoPath::default(),
            (Some(parse_oid(a.tree)?), Some(parse_oid(b.tree)?)),
        )]);
        while !level.is_empty() {
            level.retain(|_, (tree_a, tree_b)| tree_a != tree_b);
            self.read_ahead(
                level
                    .values()
                    .flat_map(|(tree_a, tree_b)| [*tree_a, *tree_b])
                    .flatten(),
            )?;
            let mut below: BTreeMap<RepoPath, (Option<Oid>, Option<Oid>)> = BTreeMap::new();
            for (folder, (tree_a, tree_b)) in level {
                let read = |tree: Option<Oid>| {
                    tree.map_or_else(|| Ok(Rc::default()), |tree| self.tree(tree))
                };
                for (in_a, in_b) in read(tree_a)?.diff(&*read(tree_b)?) {
                    if let Some((path, tree)) =
                        in_a.map_or(Ok(None), |entry| one.child(&folder, entry))?
                    {
                        below.entry(path).or_default().0 = Some(tree);
                    }
                    if let Some((path, tree)) =
                        in_b.map_or(Ok(None), |entry| other.child(&folder, entry))?
                    {
                        below.entry(path).or_default().1 = Some(tree);
                    }
                }
            }
            level = below;
        }
        for path in not_in_both(&a.manifest.file_modes, &b.manifest.file_modes) {
            one.single(self, path)?;
            other.single(self, path)?;
        }
        for path in not_in_both(&a.manifest.folder_modes, &b.manifest.folder_modes) {
            one.folder(self, path)?;
            other.folder(self, path)?;
        }
        one.empty_folders();
        other.empty_folders();
        // What only one side has lies in folders that both may have.
        let folders: BTreeSet<RepoPath> = one
            .folders
            .symmetric_difference(&other.folders)
            .cloned()
            .collect();
        for path in &folders {
            one.folder(self, path)?;
            other.folder(self, path)?;
        }
        Ok((one.finish(), other.finish()))
    }
}

/// Paths that stand in one list and not, or with another mode, in the other.
fn not_in_both<'a>(a: &'a [PathMode], b: &'a [PathMode]) -> BTreeSet<&'a RepoPath> {
    let set = |list: &'a [PathMode]| {
        list.iter()
            .map(|listed| (&listed.path, listed.mode))
            .collect::<BTreeSet<_>>()
    };
    set(a)
        .symmetric_difference(&set(b))
        .map(|(path, _)| *path)
        .collect()
}

/// The mode that a manifest's list has for a path.
fn listed_mode(list: &[PathMode], path: &RepoPath) -> Option<u32> {
    list.binary_search_by(|listed| listed.path.cmp(path))
        .ok()
        .map(|at| list[at].mode)
}

fn empty_folder(mode: u32) -> Entry {
    Entry {
        kind: EntryKind::EmptyDir,
        oid: ObjectId(EMPTY_BLOB.to_owned()),
        mode,
    }
}

/// A snapshot while it is put together.
struct Collected<'a> {
    side: TreeView<'a>,
    entries: BTreeMap<RepoPath, Entry>,
    folders: BTreeSet<RepoPath>,
}

impl<'a> Collected<'a> {
    fn new(side: TreeView<'a>) -> Self {
        Self {
            side,
            entries: BTreeMap::new(),
            folders: BTreeSet::new(),
        }
    }

    fn file(&mut self, path: RepoPath, mode: u32, oid: Oid) -> Result<()> {
        let entry = self.side.entry_of(&path, mode, oid)?;
        self.folders_above(&path);
        self.entries.insert(path, entry);
        Ok(())
    }

    /// Takes an entry of a folder; one that is a folder is returned with its tree.
    fn child(
        &mut self,
        folder: &RepoPath,
        entry: TreeEntry<'_>,
    ) -> Result<Option<(RepoPath, Oid)>> {
        let path = trees::child(folder, entry.name);
        if entry.mode != TREE {
            return self.file(path, entry.mode, entry.oid).map(|()| None);
        }
        self.folder_itself(&path);
        Ok(Some((path, entry.oid)))
    }

    fn folder_itself(&mut self, path: &RepoPath) {
        if self.folders.insert(path.clone()) {
            self.folders_above(path);
        }
    }

    fn folders_above(&mut self, path: &RepoPath) {
        let mut above = path.parent();
        // Of a folder that is known those above it are known, too.
        while let Some(folder) =
            above.filter(|folder| !folder.as_bytes().is_empty() && !self.folders.contains(folder))
        {
            above = folder.parent();
            self.folders.insert(folder);
        }
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
            self.folder_itself(path);
        }
        Ok(())
    }

    fn empty_folders(&mut self) {
        for empty in &self.side.manifest.empty_folders {
            self.folders_above(&empty.path);
            self.entries
                .insert(empty.path.clone(), empty_folder(empty.mode));
        }
    }

    fn finish(self) -> Snapshot {
        let manifest = self.side.manifest;
        let mode = |path: &RepoPath| {
            listed_mode(&manifest.folder_modes, path).unwrap_or(manifest.modes.folder)
        };
        let with_mode = |path: RepoPath| {
            let mode = mode(&path);
            (path, mode)
        };
        let dirs = self.folders.into_iter().map(with_mode).collect();
        // What lies in a nested repository is none of this one's paths, whether it was captured there or not.
        let listed: BTreeSet<&RepoPath> = manifest
            .skipped
            .iter()
            .map(|skipped| &skipped.path)
            .collect();
        let nested = manifest
            .nested
            .iter()
            .filter(|nested| !listed.contains(&nested.path));
        let nested = nested.map(|one| PathReason::new(one.path.clone(), NESTED));
        let mut skipped: Vec<_> = manifest.skipped.iter().cloned().chain(nested).collect();
        skipped.sort();
        Snapshot {
            entries: self.entries,
            dirs,
            skipped,
        }
    }
}

/// Looks paths up in the trees of one object database.
pub struct TreeLookup<'r> {
    database: Database<'r>,
    known: KnownTrees,
}

impl<'r> TreeLookup<'r> {
    /// For the trees that a repository sees.
    pub fn new(objects: &'r Objects<'_>) -> Result<Self> {
        Ok(Self {
            database: objects.database()?,
            known: Rc::clone(&objects.trees),
        })
    }

    /// For stored trees.
    pub fn stored(repo: &'r Repo) -> Result<Self> {
        Ok(Self {
            database: Database::open(repo)?,
            known: KnownTrees::default(),
        })
    }

    /// The object database.
    pub(super) fn database(&self) -> &Database<'r> {
        &self.database
    }

    /// A tree.
    pub(super) fn tree(&self, oid: Oid) -> Result<Rc<Tree>> {
        if let Some(known) = self.known.borrow().get(&oid) {
            return Ok(Rc::clone(known));
        }
        let tree = Rc::new(Tree::read(&self.database, oid)?);
        self.known.borrow_mut().insert(oid, Rc::clone(&tree));
        Ok(tree)
    }

    /// Reads trees that will be asked for, by several threads where they are many.
    pub(super) fn read_ahead(&self, trees: impl Iterator<Item = Oid>) -> Result<()> {
        let missing: HashSet<Oid> = trees
            .filter(|oid| !self.known.borrow().contains_key(oid))
            .collect();
        let missing: Vec<Oid> = missing.into_iter().collect();
        let database = &self.database;
        let read = work_queue::each(&missing, SMALL_TASKS, |oid| {
            Tree::read(database, *oid).map(|tree| Some((*oid, tree)))
        })?;
        let read = read.into_iter().map(|(oid, tree)| (oid, Rc::new(tree)));
        self.known.borrow_mut().extend(read);
        Ok(())
    }

    /// The git file mode and id of a path in a tree; `None` where it has none.
    pub(super) fn find(&self, tree: &ObjectId, path: &RepoPath) -> Result<Option<(u32, Oid)>> {
        let mut oid = parse_oid(tree)?;
        let mut names = path.as_bytes().split(|byte| *byte == b'/').peekable();
        while let Some(name) = names.next() {
            let tree = self.tree(oid)?;
            let Some(entry) = tree.find(name) else {
                return Ok(None);
            };
            if names.peek().is_none() {
                return Ok(Some((entry.mode, entry.oid)));
            }
            if entry.mode != TREE {
                return Ok(None);
            }
            oid = entry.oid;
        }
        Ok(None)
    }

    /// The files that two trees do not have in common, with what each of them has there; `None` is an empty tree.
    pub(super) fn differing(&self, one: Option<Oid>, other: Option<Oid>) -> Result<Differing> {
        let read = |oid: Option<Oid>| oid.map_or_else(|| Ok(Rc::default()), |oid| self.tree(oid));
        let mut differing = Differing::new();
        let mut open = vec![(RepoPath::default(), [one, other])];
        while let Some((folder, [one, other])) = open.pop() {
            if one == other {
                continue;
            }
            let (one, other) = (read(one)?, read(other)?);
            for (a, b) in one.diff(&other) {
                let Some(entry) = a.or(b) else { continue };
                let path = trees::child(&folder, entry.name);
                let sides = [a, b];
                let trees = sides.map(|side| Some(side.filter(|side| side.mode == TREE)?.oid));
                let files = sides.map(|side| Some((side?.mode, side?.oid)));
                let files = files.map(|file| file.filter(|(mode, _)| *mode != TREE));
                if files != [None, None] {
                    differing.insert(path.clone(), files);
                }
                open.push((path, trees));
            }
        }
        Ok(differing)
    }

    /// The content of a blob.
    pub(super) fn blob(&self, oid: Oid) -> Result<Vec<u8>> {
        self.database.blob(oid)
    }
}

/// The objects of a comparison: those of a repository, or of a writer that has not published them yet.
pub struct Objects<'a> {
    source: Source<'a>,
    /// The repository that sees what a writer has written.
    quarantine: OnceCell<git2::Repository>,
    /// Those that were read already.
    trees: KnownTrees,
}

enum Source<'a> {
    Stored(&'a Repo),
    Writer(&'a ObjectWriter),
}

impl<'a> Objects<'a> {
    /// Those of a repository: both sides are stored.
    pub fn stored(repo: &'a Repo) -> Self {
        Self {
            source: Source::Stored(repo),
            quarantine: OnceCell::new(),
            trees: KnownTrees::default(),
        }
    }

    /// Those of a writer and of the repository behind it; `known` holds the trees that were read already. What is written
    /// after this need not be seen.
    pub(super) fn of_writer(writer: &'a ObjectWriter, known: &KnownTrees) -> Self {
        Self {
            source: Source::Writer(writer),
            quarantine: OnceCell::new(),
            trees: Rc::clone(known),
        }
    }

    /// The database that has them. What a writer holds in memory is read from there.
    pub(super) fn database(&self) -> Result<Database<'_>> {
        match self.source {
            Source::Stored(repo) => Database::open(repo),
            Source::Writer(writer) => match writer.database()? {
                Some(database) => Ok(database),
                None => Database::of(self.repository()?),
            },
        }
    }

    /// A repository that sees them, for what git's library reads by itself.
    pub(super) fn repository(&self) -> Result<&git2::Repository> {
        match self.source {
            Source::Stored(repo) => Ok(&repo.inner),
            Source::Writer(writer) => match self.quarantine.get() {
                Some(repository) => Ok(repository),
                None => writer
                    .repository()
                    .map(|repository| self.quarantine.get_or_init(|| repository)),
            },
        }
    }
}

/// Files with their modes and ids on both sides of a comparison.
pub(super) type Differing = BTreeMap<RepoPath, [Option<(u32, Oid)>; 2]>;

/// Trees that were read. What an id represents never changes, so that several lookups may share them.
pub(super) type KnownTrees = Rc<RefCell<HashMap<Oid, Rc<Tree>>>>;

/// What a capture leaves out as ignored: what its rules exclude, and what the `.gitignore` files in its tree ignore and is
/// neither tracked in its index nor included by its rules. `info/exclude` and the user's excludes are those of now. Files are
/// read when a path needs them.
pub struct TreeIgnores<'a> {
    lookup: &'a TreeLookup<'a>,
    side: TreeView<'a>,
    /// What is tracked and in no tree of an index: conflicts, and what is only to be added.
    extras: BTreeSet<&'a RepoPath>,
    include: Globs,
    exclude: Globs,
    top: Rules,
    folders: RefCell<HashMap<RepoPath, Rules>>,
}

impl<'a> TreeIgnores<'a> {
    /// Of a capture or a checkpoint.
    pub fn new(repo: &Repo, lookup: &'a TreeLookup<'a>, side: TreeView<'a>) -> Result<Self> {
        let extras = side
            .manifest()
            .index_extras
            .iter()
            .filter(|extra| extra.stage > 0 || extra.intent_to_add);
        Ok(Self {
            lookup,
            side,
            extras: extras.map(|extra| &extra.path).collect(),
            include: Globs::new(&side.manifest().rules.include)?,
            exclude: Globs::new(&side.manifest().rules.exclude)?,
            top: Rules::of_tree(repo, b"")?,
            folders: RefCell::default(),
        })
    }

    /// With the rules of an `info/exclude` that is there no more.
    pub fn with_rules(mut self, rules: Option<&[u8]>) -> Result<Self> {
        if let Some(rules) = rules {
            self.top = self.top.with(&RepoPath::default(), rules.to_vec())?;
        }
        Ok(self)
    }

    /// Whether it left out `path`, a file or a folder, or would have: what it has not says nothing then.
    pub fn has(&self, path: &RepoPath, is_folder: bool) -> Result<bool> {
        let by_git = || {
            Ok(self.by_rules(path, is_folder)?
                && !self.include.matches(path)
                && !self.is_tracked(path)?)
        };
        if self.exclude.matches(path) {
            Ok(true)
        } else {
            by_git()
        }
    }

    /// Whether `path` was perhaps not examined: its rules exclude it, or git would ignore it if it was not tracked.
    pub fn says_nothing_of(&self, path: &RepoPath) -> Result<bool> {
        Ok(self.exclude.matches(path)
            || self.by_rules(path, false)?
            || self.by_rules(path, true)?)
    }

    fn is_tracked(&self, path: &RepoPath) -> Result<bool> {
        let found = self
            .side
            .index_tree()
            .map_or(Ok(None), |tree| self.lookup.find(tree, path))?;
        Ok(found.is_some_and(|(mode, _)| mode != TREE) || self.extras.contains(path))
    }

    /// Whether git would ignore it if it was not tracked: itself or one of its folders.
    fn by_rules(&self, path: &RepoPath, is_folder: bool) -> Result<bool> {
        for folder in path.ancestors() {
            if self
                .of(&folder.parent().unwrap_or_default())?
                .matches(folder.as_bytes(), true)
            {
                return Ok(true);
            }
        }
        Ok(self
            .of(&path.parent().unwrap_or_default())?
            .matches(path.as_bytes(), is_folder))
    }

    fn of(&self, folder: &RepoPath) -> Result<Rules> {
        if let Some(known) = self.folders.borrow().get(folder) {
            return Ok(known.clone());
        }
        let is_top = folder.as_bytes().is_empty();
        let above = if is_top {
            self.top.clone()
        } else {
            self.of(&folder.parent().unwrap_or_default())?
        };
        let rules = match self.lookup.find(self.side.tree(), &folder.join(FILE))? {
            Some((mode, oid)) if mode & 0o170_000 == 0o100_000 => {
                above.with(folder, self.lookup.blob(oid)?)?
            }
            _ => above,
        };
        self.folders
            .borrow_mut()
            .insert(folder.clone(), rules.clone());
        Ok(rules)
    }
}

#[cfg(test)]
mod tests;
