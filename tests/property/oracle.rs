//! What must come of a restore, worked out from plain listings of the tree: nothing here uses the program's own code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A path below the work tree, as bytes.
pub type Name = Vec<u8>;

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    File(u32, Vec<u8>),
    Link(Vec<u8>),
    Dir(u32),
}

impl Node {
    pub fn is_dir(&self) -> bool {
        matches!(self, Self::Dir(_))
    }
}

/// Everything in a work tree.
pub type World = BTreeMap<Name, Node>;

/// Lists a folder, some names at its top aside.
pub fn walk(root: &Path, aside: &[&str]) -> World {
    let mut world = World::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec();
            if aside.iter().any(|aside| aside.as_bytes() == name) {
                continue;
            }
            let found = path.symlink_metadata().unwrap();
            let mode = found.mode() & 0o7777;
            let node = if found.is_symlink() {
                Node::Link(fs::read_link(&path).unwrap().into_os_string().into_vec())
            } else if found.is_dir() {
                folders.push(path);
                Node::Dir(mode)
            } else {
                Node::File(mode, fs::read(&path).unwrap())
            };
            world.insert(name, node);
        }
    }
    world
}

/// The folders above a path, the outermost first.
pub fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .map(|(at, _)| &path[..at])
}

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.len() > folder.len() && path.starts_with(folder) && path[folder.len()] == b'/'
}

/// Ignore rules: those of the top `.gitignore`, then those of `info/exclude`, which count less.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<String>, Vec<String>);

impl Rules {
    pub fn of(world: &World, exclude: &str) -> Self {
        let lines = |text: &str| text.lines().map(str::to_owned).collect();
        let own = match world.get(b".gitignore".as_slice()) {
            Some(Node::File(_, content)) => lines(&String::from_utf8_lossy(content)),
            _ => Vec::new(),
        };
        Self(own, lines(exclude))
    }

    /// Whether git ignores a path that is not tracked: itself, or a folder above it.
    pub fn ignore(&self, path: &[u8], is_dir: bool) -> bool {
        above(path).any(|folder| self.one(folder, true)) || self.one(path, is_dir)
    }

    fn one(&self, path: &[u8], is_dir: bool) -> bool {
        let last = |lines: &[String]| {
            lines
                .iter()
                .rev()
                .find_map(|line| verdict(line, path, is_dir))
        };
        last(&self.0).or_else(|| last(&self.1)).unwrap_or(false)
    }
}

/// What one line says of one path; only the few forms that the test writes.
fn verdict(line: &str, path: &[u8], is_dir: bool) -> Option<bool> {
    let (line, ignore) = line
        .strip_prefix('!')
        .map_or((line, true), |rest| (rest, false));
    let (line, folders_only) = line
        .strip_suffix('/')
        .map_or((line, false), |rest| (rest, true));
    let anchored = line.contains('/');
    let line = line.strip_prefix('/').unwrap_or(line).as_bytes();
    let subject = if anchored {
        path
    } else {
        path.rsplit(|byte| *byte == b'/').next()?
    };
    let fits = line
        .strip_prefix(b"*")
        .map_or(line == subject, |end| subject.ends_with(end));
    (!line.is_empty() && fits && (is_dir || !folders_only)).then_some(ignore)
}

/// A work tree and what of it a checkpoint holds.
#[derive(Clone, Debug)]
pub struct Kept {
    pub world: World,
    /// Files, links and folders that hold nothing captured.
    pub entries: BTreeSet<Name>,
    /// Folders that hold something captured.
    pub folders: BTreeSet<Name>,
    tracked: BTreeSet<Name>,
}

impl Kept {
    /// What a checkpoint of this tree takes. `also` are paths that it takes though they are ignored.
    pub fn of(
        world: World,
        rules: &Rules,
        tracked: &BTreeSet<Name>,
        also: &BTreeSet<Name>,
    ) -> Self {
        let (entries, folders) = (BTreeSet::new(), BTreeSet::new());
        let mut kept = Self {
            world,
            entries,
            folders,
            tracked: tracked.clone(),
        };
        // The deepest come first.
        for (path, node) in kept.world.iter().rev() {
            let held = kept.folders.contains(path);
            let wanted =
                !rules.ignore(path, node.is_dir()) || tracked.contains(path) || also.contains(path);
            if !held && wanted {
                kept.entries.insert(path.clone());
            }
            if held || wanted {
                kept.folders.extend(above(path).map(<[u8]>::to_vec));
            }
        }
        kept
    }

    /// Whether the checkpoint would not take a path, by these rules.
    pub fn ignores(&self, rules: &Rules, path: &[u8], is_dir: bool) -> bool {
        rules.ignore(path, is_dir) && !self.tracked.contains(path)
    }

    fn has_folder(&self, path: &[u8]) -> bool {
        self.folders.contains(path) || (self.entries.contains(path) && self.world[path].is_dir())
    }
}

/// The tree after `target` was put back over `now`, or `None` if that must be refused. `keep` says what
/// either side ignores; `selected` what may be touched.
pub fn after(
    now: &Kept,
    target: &Kept,
    keep: &dyn Fn(&[u8], bool) -> bool,
    selected: &dyn Fn(&[u8]) -> bool,
) -> Option<World> {
    let mut result = World::new();
    let put_back = |path: &Name| target.entries.contains(path) && selected(path);
    // Files that stay as they are: those that no checkpoint holds, and those that are ignored.
    for (path, node) in now.world.iter().filter(|(_, node)| !node.is_dir()) {
        let goes = now.entries.contains(path) && selected(path);
        if !put_back(path) && (!goes || keep(path, false)) {
            result.insert(path.clone(), node.clone());
        }
    }
    // A folder stays with what stays in it, or where no checkpoint holds it, or where it is empty and ignored.
    for (path, node) in now.world.iter().filter(|(_, node)| node.is_dir()).rev() {
        let holds = result.keys().any(|inside| is_below(inside, path));
        let ignored = keep(path, true) && !now.folders.contains(path);
        let goes = now.has_folder(path) && selected(path) && (!ignored || put_back(path));
        if holds || !goes {
            result.insert(path.clone(), node.clone());
        }
    }
    // Nothing is put where something else stays, or below a file that stays.
    for (path, node) in target.world.iter().filter(|(path, _)| put_back(path)) {
        let stays = |place: &[u8], as_dir: bool| {
            result
                .get(place)
                .is_some_and(|node| node.is_dir() == as_dir)
        };
        if above(path).any(|folder| stays(folder, false)) || (!node.is_dir() && stays(path, true)) {
            return None;
        }
    }
    for (path, node) in target.world.iter().filter(|(path, _)| put_back(path)) {
        for folder in above(path) {
            let mode = result
                .get(folder)
                .or(now.world.get(folder))
                .filter(|node| node.is_dir())
                .cloned();
            let mode = if selected(folder) || mode.is_none() {
                target.world[folder].clone()
            } else {
                mode?
            };
            result.insert(folder.to_vec(), mode);
        }
        result.insert(path.clone(), node.clone());
    }
    // Folders on both sides have the modes of the checkpoint.
    for path in target.folders.iter().filter(|path| selected(path)) {
        if let Some(Node::Dir(mode)) = result.get_mut(path)
            && let Node::Dir(then) = target.world[path]
        {
            *mode = then;
        }
    }
    Some(result)
}

/// What an index says: path and stage to mode, object and flags; times and sizes of files aside.
pub type Staged = BTreeMap<(Name, u16), (u32, Vec<u8>, u16, u16)>;

/// Reads an index of version 2 or 3.
pub fn staged(index: &[u8]) -> Staged {
    let number = |at: usize| u32::from_be_bytes(index[at..at + 4].try_into().unwrap());
    let short = |at: usize| u16::from_be_bytes(index[at..at + 2].try_into().unwrap());
    assert_eq!(&index[..4], b"DIRC");
    assert!(number(4) < 4, "version {}", number(4));
    let mut all = Staged::new();
    let mut at = 12;
    for _ in 0..number(8) {
        let flags = short(at + 60);
        let extended = flags & 0x4000 != 0;
        let begin = at + if extended { 64 } else { 62 };
        let length = index[begin..].iter().position(|byte| *byte == 0).unwrap();
        let more = if extended { short(at + 62) } else { 0 };
        let path = index[begin..begin + length].to_vec();
        let oid = index[at + 40..at + 60].to_vec();
        all.insert(
            (path, (flags >> 12) & 3),
            (number(at + 24), oid, flags & 0x8000, more),
        );
        at += (begin - at + length + 8) & !7;
    }
    all
}
