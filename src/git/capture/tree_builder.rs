//! Trees and manifest of what a scan found. Trees are written again only along folders that changed.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use git2::{ObjectType, Oid};
use rustix::fs::FileType;

use crate::git::base::{GITLINK, Result, SMALL_TASKS, TREE, id_of, parse_oid, work_queue};
use crate::git::odb::{Level, ObjectWriter, Tree};
use crate::git::tree::KnownTrees;
use crate::git::worktree::cache::{Cache, flag};
use crate::git::worktree::scan::{Content, FileEntry, Folder, Scan};
use crate::model::manifest::DefaultModes;
use crate::model::{Nested, PathMode, RepoPath};

/// Bytes of trees that wait to be written at a time.
const AT_ONCE: usize = 1 << 20;
/// Bytes of trees that are known once they are written.
const KNOWN: usize = 4 << 20;

/// What was made of a folder.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BuiltTree {
    /// Its tree; `None` if it holds nothing that has a place in one.
    pub tree: Option<Oid>,
    /// How many folders in it have a tree.
    pub subtrees: u32,
    /// Its tree and all below are those of the cache.
    pub same: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Not part of the capture.
    #[default]
    Out,
    /// It holds something captured.
    Holding,
    /// It represents itself.
    Empty,
}

/// The trees of all folders of a scan, in its order; and the latest of those that were made, to be compared with others.
pub(super) fn trees(
    writer: &ObjectWriter,
    cache: &Cache,
    scan: &Scan,
) -> Result<(Vec<BuiltTree>, KnownTrees)> {
    let folders = &scan.folders;
    let parents = parents(folders);
    let mut made = vec![
        BuiltTree {
            same: true,
            ..BuiltTree::default()
        };
        folders.len()
    ];
    let mut hidden: Vec<bool> = folders
        .iter()
        .map(|folder| folder.is(flag::HIDDEN))
        .collect();
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); folders.len()];
    let links: BTreeMap<&RepoPath, &Nested> = scan
        .nested
        .iter()
        .map(|nested| (&nested.path, nested))
        .collect();
    let relinked = relinked(&cache.header.nested, &scan.nested);
    let mut unwritten = Unwritten {
        writer,
        trees: Vec::new(),
        bytes: 0,
        known: KnownTrees::default(),
        known_bytes: 0,
    };
    for at in (0..folders.len()).rev() {
        let folder = &folders[at];
        if let Some(cached) = folder
            .cached
            .filter(|_| made[at].same && !relinked.contains(&folder.path))
        {
            made[at].same =
                made[at].subtrees == cached.subtrees && same_items(scan, folder, cached.items);
        } else {
            made[at].same = false;
        }
        let reused = folder
            .cached
            .filter(|_| made[at].same)
            .and_then(|cached| cached.tree);
        made[at].tree = match reused {
            Some(tree) => Some(tree),
            None => build(&mut unwritten, scan, at, &children[at], &made, &links)?,
        };
        children[at] = Vec::new();
        let Some(parent) = parents[at] else { continue };
        let link = links
            .get(&folder.path)
            .is_some_and(|nested| nested.commit.is_some());
        if made[at].tree.is_some() || made[at].state == State::Holding {
            made[at].state = State::Holding;
        } else if !hidden[at] && folder.is(flag::WANTED) {
            made[at].state = State::Empty;
        }
        if made[at].state != State::Out || link {
            made[parent].state = State::Holding;
        } else {
            hidden[parent] |= hidden[at];
        }
        if made[at].tree.is_some() {
            made[parent].subtrees += 1;
            children[parent].push(at);
        }
        // One that lost its tree shows in the number of them.
        made[parent].same &= made[at].tree.is_none() || made[at].same;
    }
    unwritten.write()?;
    Ok((made, unwritten.known))
}

/// Trees whose ids are known and that are not written yet: deflating them takes longer than saying what they are, and several
/// threads can do it.
struct Unwritten<'w> {
    writer: &'w ObjectWriter,
    trees: Vec<(Oid, Tree)>,
    bytes: usize,
    /// The latest that were written.
    known: KnownTrees,
    known_bytes: usize,
}

impl Unwritten<'_> {
    fn add(&mut self, tree: Tree) -> Result<Oid> {
        let oid = id_of(ObjectType::Tree, tree.bytes())?;
        self.bytes += tree.bytes().len();
        self.trees.push((oid, tree));
        if self.bytes >= AT_ONCE {
            self.write()?;
        }
        Ok(oid)
    }

    fn write(&mut self) -> Result<()> {
        let trees = std::mem::take(&mut self.trees);
        let bytes_of: Vec<(Oid, &[u8])> = trees
            .iter()
            .map(|(oid, tree)| (*oid, tree.bytes()))
            .collect();
        work_queue::each(&bytes_of, SMALL_TASKS, |(oid, bytes)| {
            self.writer.write_as(*oid, ObjectType::Tree, bytes)?;
            Ok(None::<()>)
        })?;
        let bytes = std::mem::take(&mut self.bytes);
        self.known_bytes += bytes;
        if self.known_bytes > KNOWN {
            self.known_bytes = bytes;
            self.known.borrow_mut().clear();
        }
        if bytes <= KNOWN {
            let written = trees.into_iter().map(|(oid, tree)| (oid, Rc::new(tree)));
            self.known.borrow_mut().extend(written);
        }
        Ok(())
    }
}

/// The folder that holds each folder.
fn parents(folders: &[Folder]) -> Vec<Option<usize>> {
    let mut above: Vec<usize> = Vec::new();
    let mut parents = Vec::with_capacity(folders.len());
    for (at, folder) in folders.iter().enumerate() {
        while above
            .last()
            .is_some_and(|last| !folder.path.starts_with(&folders[*last].path))
        {
            above.pop();
        }
        parents.push(above.last().copied());
        above.push(at);
    }
    parents
}

/// Folders whose repositories inside are not those of the cached trees.
fn relinked(before: &[Nested], now: &[Nested]) -> BTreeSet<RepoPath> {
    let key = |nested: &Nested| {
        nested
            .commit
            .clone()
            .map(|commit| (nested.path.clone(), commit.0))
    };
    let (before, now): (BTreeSet<_>, BTreeSet<_>) = (
        before.iter().filter_map(key).collect(),
        now.iter().filter_map(key).collect(),
    );
    before
        .symmetric_difference(&now)
        .map(|(path, _)| path.parent().unwrap_or_default())
        .collect()
}

/// Whether the files of a folder are those of its cached tree.
fn same_items(scan: &Scan, folder: &Folder, count: u32) -> bool {
    let items = scan.items(folder);
    items.len() == count as usize && items.iter().all(|item| item.flags & flag::SAME != 0)
}

fn build(
    unwritten: &mut Unwritten<'_>,
    scan: &Scan,
    at: usize,
    children: &[usize],
    made: &[BuiltTree],
    links: &BTreeMap<&RepoPath, &Nested>,
) -> Result<Option<Oid>> {
    let folder = &scan.folders[at];
    let mut level = Level::default();
    for (item, oid) in stored(scan, folder) {
        level.add(scan.name(item), item.stat.git_mode(), oid);
    }
    for child in children {
        if let Some(tree) = made[*child].tree {
            level.add(
                crate::git::base::openat::split(&scan.folders[*child].path).1,
                TREE,
                tree,
            );
        }
    }
    let first = folder.path.join(b"");
    let inside = links
        .range::<RepoPath, _>(&first..)
        .take_while(|(path, _)| path.as_bytes().starts_with(first.as_bytes()));
    for (path, nested) in inside {
        if let Some(commit) = nested
            .commit
            .as_ref()
            .filter(|_| path.parent().unwrap_or_default() == folder.path)
        {
            level.add(
                crate::git::base::openat::split(path).1,
                GITLINK,
                parse_oid(commit)?,
            );
        }
    }
    if level.is_empty() && at > 0 {
        return Ok(None);
    }
    unwritten.add(Tree::made(level)).map(Some)
}

/// The items that were captured, with their blobs.
pub(in crate::git) fn stored<'a>(
    scan: &'a Scan,
    folder: &Folder,
) -> impl Iterator<Item = (&'a FileEntry, Oid)> + Clone {
    scan.items(folder)
        .iter()
        .filter_map(|item| match item.content {
            Content::Known(oid) => Some((item, oid)),
            _ => None,
        })
}

/// What trees cannot say.
#[derive(Debug, Default)]
pub(super) struct ManifestParts {
    pub modes: DefaultModes,
    pub file_modes: Vec<PathMode>,
    pub folder_modes: Vec<PathMode>,
    pub empty_folders: Vec<PathMode>,
    pub files: u64,
    pub bytes: u64,
}

/// Counts, modes and empty folders.
pub(super) fn manifest_parts(scan: &Scan, made: &[BuiltTree]) -> ManifestParts {
    let mut counts: [Counts; 3] = Default::default();
    let mut beside = ManifestParts::default();
    let is_file = |item: &FileEntry| item.stat.kind() == FileType::RegularFile;
    let is_executable = |item: &FileEntry| item.stat.mode & 0o100 != 0;
    for item in scan
        .items
        .iter()
        .filter(|item| matches!(item.content, Content::Known(_)))
    {
        beside.files += 1;
        beside.bytes += item.stat.size;
        if is_file(item) {
            counts[usize::from(is_executable(item))].add(item.stat.permissions());
        }
    }
    let holding = |folder: &Folder, made: &BuiltTree| {
        made.state == State::Holding && !folder.path.as_bytes().is_empty()
    };
    for (folder, _) in scan
        .folders
        .iter()
        .zip(made)
        .filter(|(folder, made)| holding(folder, made))
    {
        counts[2].add(folder.stat.permissions());
    }
    let usual = DefaultModes::default();
    beside.modes = DefaultModes {
        file: counts[0].most_frequent(usual.file),
        executable: counts[1].most_frequent(usual.executable),
        folder: counts[2].most_frequent(usual.folder),
    };
    let are_all_usual = counts[0].0.len() < 2 && counts[1].0.len() < 2;
    for (folder, made) in scan.folders.iter().zip(made) {
        let unusual = |item: &&FileEntry| {
            item.stat.permissions() != beside.modes.of_file(is_executable(item))
        };
        let items = stored(scan, folder)
            .map(|(item, _)| item)
            .filter(|item| !are_all_usual && is_file(item));
        let listed = items.filter(unusual).map(|item| PathMode {
            path: folder.path.join(scan.name(item)),
            mode: item.stat.permissions(),
        });
        beside.file_modes.extend(listed);
        let listed = || PathMode {
            path: folder.path.clone(),
            mode: folder.stat.permissions(),
        };
        if made.state == State::Empty {
            beside.empty_folders.push(listed());
        } else if holding(folder, made) && folder.stat.permissions() != beside.modes.folder {
            beside.folder_modes.push(listed());
        }
    }
    for list in [
        &mut beside.file_modes,
        &mut beside.folder_modes,
        &mut beside.empty_folders,
    ] {
        list.sort_unstable();
    }
    beside
}

/// How often each mode occurs; there are few different ones.
#[derive(Default)]
struct Counts(Vec<(u32, u64)>);

impl Counts {
    fn add(&mut self, mode: u32) {
        match self.0.iter_mut().find(|(known, _)| *known == mode) {
            Some((_, count)) => *count += 1,
            None => self.0.push((mode, 1)),
        }
    }

    /// The mode that occurs most often, the smallest of equals; `otherwise` if there is none.
    fn most_frequent(&self, otherwise: u32) -> u32 {
        let best = self
            .0
            .iter()
            .max_by_key(|(mode, count)| (*count, std::cmp::Reverse(*mode)));
        best.map_or(otherwise, |(mode, _)| *mode)
    }
}
