//! Git trees from sorted paths and back.
//!
//! They are written and read as raw bytes: a name may hold any bytes, and nothing is checked out or filtered.

use std::cell::OnceCell;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use git2::{ObjectType, Oid};

use super::database::{Database, Object};
use super::objects::ObjectWriter;
use crate::git::base::{Error, Result, TREE, id_of};
use crate::git::repo::repository::Repo;
use crate::model::{ObjectId, RepoPath};

/// Deeper than any path that the system can make; a tree that goes on is damaged or a trap.
const MAX_DEPTH: usize = 4096;

/// Paths of files with git file mode and id.
pub(in crate::git) type Flat = BTreeMap<RepoPath, (u32, Oid)>;

/// Stores a tree's bytes and says its id; or only says it.
pub(in crate::git) type Sink<'a> = &'a mut dyn FnMut(&[u8]) -> Result<Oid>;

/// Writes trees to the object database.
pub(in crate::git) fn into_writer(writer: &ObjectWriter) -> impl FnMut(&[u8]) -> Result<Oid> + '_ {
    |bytes| writer.write(ObjectType::Tree, bytes)
}

/// Only says ids; nothing is written.
pub(in crate::git) fn only_ids() -> impl FnMut(&[u8]) -> Result<Oid> {
    |bytes| id_of(ObjectType::Tree, bytes)
}

/// Writes the trees of these paths. Where a path is both a file and a folder (a conflicted index), the folder wins.
pub(in crate::git) fn write(writer: &ObjectWriter, paths: &Flat) -> Result<Oid> {
    let entries: Vec<_> = paths
        .iter()
        .map(|(path, (mode, oid))| (path.as_bytes(), *mode, *oid))
        .collect();
    build(&entries, &mut into_writer(writer))
}

/// The tree of files whose paths are sorted by their bytes, as an index and a map have them.
pub(in crate::git) fn build(paths: &[(&[u8], u32, Oid)], sink: Sink<'_>) -> Result<Oid> {
    build_level(paths, 0, sink)
}

/// The tree of paths that are the same up to `from`.
fn build_level(paths: &[(&[u8], u32, Oid)], from: usize, sink: Sink<'_>) -> Result<Oid> {
    let mut level = Level::default();
    let mut at = 0;
    while let Some((path, mode, oid)) = paths.get(at) {
        let rest = &path[from..];
        let Some(slash) = rest.iter().position(|byte| *byte == b'/') else {
            level.add(rest, *mode, *oid);
            at += 1;
            continue;
        };
        let prefix = &path[..=from + slash];
        let inside = paths[at..]
            .iter()
            .take_while(|(path, _, _)| path.starts_with(prefix))
            .count();
        let tree = build_level(&paths[at..at + inside], prefix.len(), sink)?;
        level.add(&rest[..slash], TREE, tree);
        at += inside;
    }
    sink(&level.into_bytes())
}

/// The entries of one tree while they are put together, in any order.
#[derive(Default)]
pub(in crate::git) struct Level<'a>(Vec<TreeEntry<'a>>);

impl<'a> Level<'a> {
    /// Adds an entry.
    pub(crate) fn add(&mut self, name: &'a [u8], mode: u32, oid: Oid) {
        self.0.push(TreeEntry { name, mode, oid });
    }

    /// Whether nothing was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tree's bytes. Of a file and a folder with one name the folder stays.
    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.0.sort_by(|a, b| a.key().cmp(b.key()));
        let mut folders: Vec<&[u8]> = self
            .0
            .iter()
            .filter(|entry| entry.mode == TREE)
            .map(|entry| entry.name)
            .collect();
        folders.sort_unstable();
        let mut bytes = Vec::with_capacity(self.0.iter().map(|entry| entry.name.len() + 28).sum());
        let mut mode_text = String::new();
        for TreeEntry { name, mode, oid } in self.0 {
            if mode != TREE && folders.binary_search(&name).is_ok() {
                continue;
            }
            mode_text.clear();
            let _ = write!(mode_text, "{mode:o} ");
            bytes.extend_from_slice(mode_text.as_bytes());
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend_from_slice(oid.as_bytes());
        }
        bytes
    }
}

/// One entry of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) struct TreeEntry<'a> {
    pub name: &'a [u8],
    /// The git file mode.
    pub mode: u32,
    pub oid: Oid,
}

impl<'a> TreeEntry<'a> {
    /// What git sorts by: a folder as if its name ended in a slash.
    fn key(&self) -> impl Iterator<Item = u8> + 'a {
        self.name
            .iter()
            .copied()
            .chain((self.mode == TREE).then_some(b'/'))
    }
}

/// The bytes of one tree, which are known to be a list of entries.
#[derive(Debug, Default)]
pub(in crate::git) struct Tree {
    bytes: Vec<u8>,
    /// Where the entries begin, by name: made for a tree that is searched for one.
    by_name: OnceCell<Vec<usize>>,
}

impl Tree {
    /// Reads a tree; a missing or damaged one is [`Error::Corrupt`].
    pub(crate) fn read(database: &Database<'_>, tree: Oid) -> Result<Self> {
        Self::of(tree, database.read(tree)?)
    }

    /// An object that was read already.
    pub(crate) fn of(tree: Oid, object: Object) -> Result<Self> {
        if object.kind != ObjectType::Tree {
            return Err(Error::corrupt(format!("{tree} is not a tree")));
        }
        Self::parse(object.data)
            .ok_or_else(|| Error::corrupt(format!("tree {tree} cannot be read")))
    }

    /// The tree of a folder's entries.
    pub(crate) fn made(level: Level<'_>) -> Self {
        Self {
            bytes: level.into_bytes(),
            ..Self::default()
        }
    }

    /// The tree as it is stored.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// A tree from its bytes; `None` where they are none.
    pub(crate) fn parse(bytes: Vec<u8>) -> Option<Self> {
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            rest = first_entry(rest)?.1;
        }
        Some(Self {
            bytes,
            ..Self::default()
        })
    }

    /// The entries, as git sorts them.
    pub(crate) fn entries(&self) -> impl Iterator<Item = TreeEntry<'_>> {
        self.placed().map(|(_, entry)| entry)
    }

    /// The entries with where they begin.
    fn placed(&self) -> impl Iterator<Item = (usize, TreeEntry<'_>)> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let begin = self.bytes.len() - rest.len();
            let (entry, after) = first_entry(rest)?;
            rest = after;
            Some((begin, entry))
        })
    }

    /// What is not the same in both: entries that one of them has alone, and pairs with the same name.
    pub(crate) fn diff<'t>(
        &'t self,
        other: &'t Self,
    ) -> impl Iterator<Item = (Option<TreeEntry<'t>>, Option<TreeEntry<'t>>)> {
        let (mut one, mut other) = (self.entries().peekable(), other.entries().peekable());
        std::iter::from_fn(move || {
            while one.peek().is_some() && one.peek() == other.peek() {
                one.next();
                other.next();
            }
            let order = match (one.peek(), other.peek()) {
                (Some(a), Some(b)) => a.key().cmp(b.key()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return None,
            };
            let (a, b) = (
                one.next_if(|_| order.is_le()),
                other.next_if(|_| order.is_ge()),
            );
            Some((a, b))
        })
    }

    /// The entry of a name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<TreeEntry<'_>> {
        let by_name = self.by_name.get_or_init(|| {
            let mut all: Vec<(usize, &[u8])> = self
                .placed()
                .map(|(begin, entry)| (begin, entry.name))
                .collect();
            all.sort_by_key(|(_, name)| *name);
            all.into_iter().map(|(begin, _)| begin).collect()
        });
        let at = |begin: usize| first_entry(&self.bytes[begin..]).map(|(entry, _)| entry);
        let place =
            by_name.partition_point(|begin| at(*begin).is_some_and(|entry| entry.name < name));
        by_name
            .get(place)
            .and_then(|begin| at(*begin))
            .filter(|entry| entry.name == name)
    }
}

/// The first entry of a tree's bytes, and what follows it.
fn first_entry(bytes: &[u8]) -> Option<(TreeEntry<'_>, &[u8])> {
    let space = bytes.iter().position(|byte| *byte == b' ')?;
    let mode = u32::from_str_radix(std::str::from_utf8(&bytes[..space]).ok()?, 8).ok()?;
    let end = space + bytes[space..].iter().position(|byte| *byte == 0)?;
    let oid = Oid::from_bytes(bytes.get(end + 1..end + 21)?).ok()?;
    Some((
        TreeEntry {
            name: &bytes[space + 1..end],
            mode,
            oid,
        },
        &bytes[end + 21..],
    ))
}

/// All files below a tree.
pub(in crate::git) fn read(database: &Database<'_>, tree: Oid) -> Result<Flat> {
    let mut flat = Flat::new();
    let mut open = vec![(RepoPath::default(), tree, 0)];
    while let Some((folder, oid, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::corrupt(format!("tree {tree} is nested too deeply")));
        }
        for entry in Tree::read(database, oid)?.entries() {
            let path = child(&folder, entry.name);
            if entry.mode == TREE {
                open.push((path, entry.oid, depth + 1));
            } else {
                flat.insert(path, (entry.mode, entry.oid));
            }
        }
    }
    Ok(flat)
}

/// The path of a tree's entry.
pub(in crate::git) fn child(folder: &RepoPath, name: &[u8]) -> RepoPath {
    // `join` would drop an empty name; it must reach the check of names instead.
    if name.is_empty() {
        folder.join(b".")
    } else {
        folder.join(name)
    }
}

/// The git file mode and id of a path in a tree; `None` where it has none.
pub(in crate::git) fn find_path(
    database: &Database<'_>,
    tree: Oid,
    path: &[u8],
) -> Result<Option<(u32, Oid)>> {
    let mut found = (TREE, tree);
    for name in path.split(|byte| *byte == b'/') {
        if found.0 != TREE {
            return Ok(None);
        }
        match Tree::read(database, found.1)?.find(name) {
            Some(entry) => found = (entry.mode, entry.oid),
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// The entry of one name in a tree.
pub(in crate::git) fn find(database: &Database<'_>, tree: Oid, name: &[u8]) -> Result<Option<Oid>> {
    Ok(Tree::read(database, tree)?
        .find(name)
        .map(|entry| entry.oid))
}

impl Repo {
    /// The tree without an entry, which is written where it is not there yet.
    pub(crate) fn empty_tree(&self) -> Result<ObjectId> {
        let written = self
            .inner
            .odb()
            .and_then(|odb| odb.write(ObjectType::Tree, b""))
            .map_err(Error::git("write the empty tree"))?;
        Ok(ObjectId(written.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 7] = ["a", "a-", "a.", "a.b", "a0", "b", "\u{e9}"];

    /// Entries by what git sorts them by.
    fn entries() -> impl Strategy<Value = BTreeMap<Vec<u8>, (&'static str, u32, u8)>> {
        let mode = prop::sample::select(vec![TREE, 0o100_644, 0o100_755, 0o120_000]);
        let entries =
            prop::collection::vec((prop::sample::select(NAMES.to_vec()), mode, 0..2_u8), 0..12);
        entries.prop_map(|entries| {
            let by_name: BTreeMap<_, _> = entries
                .into_iter()
                .map(|(name, mode, id)| (name, (mode, id)))
                .collect();
            let key = |name: &str, mode| {
                [name.as_bytes(), if mode == TREE { b"/" } else { b"" }].concat()
            };
            by_name
                .into_iter()
                .map(|(name, (mode, id))| (key(name, mode), (name, mode, id)))
                .collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

        // However often it is asked for.
        #[test]
        fn a_name_is_found_where_it_is(a in entries()) {
            let mut level = Level::default();
            for (name, mode, id) in a.values().rev() {
                level.add(name.as_bytes(), *mode, Oid::from_bytes(&[*id; 20]).unwrap());
            }
            let tree = Tree::parse(level.into_bytes()).unwrap();
            for name in NAMES.repeat(3) {
                let known = a.values().find(|(known, ..)| *known == name);
                let found = tree.find(name.as_bytes()).map(|entry| (entry.mode, entry.oid.as_bytes()[0]));
                prop_assert_eq!(found, known.map(|(_, mode, id)| (*mode, *id)));
            }
        }

        #[test]
        fn what_is_unlike_is_all_that_is_not_the_same(a in entries(), b in entries()) {
            let entry = |(name, mode, id): (&'static str, u32, u8)| {
                TreeEntry { name: name.as_bytes(), mode, oid: Oid::from_bytes(&[id; 20]).unwrap() }
            };
            let [one, other] = [&a, &b].map(|entries| {
                let mut level = Level::default();
                entries.values().rev().map(|found| entry(*found)).for_each(|e| level.add(e.name, e.mode, e.oid));
                Tree::parse(level.into_bytes()).unwrap()
            });
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            let pairs = keys.into_iter().map(|key| [&a, &b].map(|side| side.get(key).copied().map(entry)));
            let expected: Vec<_> = pairs.filter(|[a, b]| a != b).map(|[a, b]| (a, b)).collect();
            prop_assert_eq!(one.diff(&other).collect::<Vec<_>>(), expected);
        }
    }
}
