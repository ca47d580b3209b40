//! Git trees from sorted paths and back.
//!
//! They are written and read as raw bytes: a name may hold any bytes, and nothing is checked out or filtered.

use std::collections::BTreeMap;

use git2::{ObjectType, Oid};

use super::database::Database;

use super::error::{Error, Result};
use super::objects::ObjectWriter;
use crate::model::path::RepoPath;

/// The git file mode of a tree.
const TREE: u32 = 0o040_000;
/// Deeper than any path that the system can make; a tree that goes on is damaged or a trap.
const MAX_DEPTH: usize = 4096;

/// Paths of files with git file mode and id.
pub(super) type Flat = BTreeMap<RepoPath, (u32, Oid)>;

#[derive(Default)]
struct Node {
    files: BTreeMap<Vec<u8>, (u32, Oid)>,
    folders: BTreeMap<Vec<u8>, Node>,
}

/// Writes the trees of these paths. Where a path is both a file and a folder (a conflicted index), the folder wins.
pub(super) fn write(writer: &ObjectWriter, paths: &Flat) -> Result<Oid> {
    let mut root = Node::default();
    for (path, entry) in paths {
        let mut names: Vec<_> = path.as_bytes().split(|byte| *byte == b'/').collect();
        let name = names.pop().unwrap_or_default();
        let mut node = &mut root;
        for folder in names {
            node = node.folders.entry(folder.to_vec()).or_default();
        }
        node.files.insert(name.to_vec(), *entry);
    }
    write_node(writer, &root)
}

fn write_node(writer: &ObjectWriter, node: &Node) -> Result<Oid> {
    // git sorts a folder as if its name ended in a slash.
    let mut entries: BTreeMap<Vec<u8>, (&[u8], u32, Oid)> = BTreeMap::new();
    for (name, (mode, oid)) in node.files.iter().filter(|(name, _)| !node.folders.contains_key(*name)) {
        entries.insert(name.clone(), (name, *mode, *oid));
    }
    for (name, folder) in &node.folders {
        let mut key = name.clone();
        key.push(b'/');
        entries.insert(key, (name, TREE, write_node(writer, folder)?));
    }
    let mut bytes = Vec::new();
    for (name, mode, oid) in entries.values() {
        bytes.extend_from_slice(format!("{mode:o} ").as_bytes());
        bytes.extend_from_slice(name);
        bytes.push(0);
        bytes.extend_from_slice(oid.as_bytes());
    }
    writer.write(ObjectType::Tree, &bytes)
}

/// The entries of one tree: name, git file mode, id.
pub(super) fn entries(database: &Database<'_>, tree: Oid) -> Result<Vec<(Vec<u8>, u32, Oid)>> {
    let object = database.read(tree)?;
    if object.kind != ObjectType::Tree {
        return Err(Error::corrupt(format!("{tree} is not a tree")));
    }
    parse(&object.data).ok_or_else(|| Error::corrupt(format!("tree {tree} cannot be read")))
}

fn parse(mut bytes: &[u8]) -> Option<Vec<(Vec<u8>, u32, Oid)>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|byte| *byte == b' ')?;
        let mode = u32::from_str_radix(std::str::from_utf8(&bytes[..space]).ok()?, 8).ok()?;
        let end = space + bytes[space..].iter().position(|byte| *byte == 0)?;
        let oid = bytes.get(end + 1..end + 21)?;
        entries.push((bytes[space + 1..end].to_vec(), mode, Oid::from_bytes(oid).ok()?));
        bytes = &bytes[end + 21..];
    }
    Some(entries)
}

/// All files below a tree.
pub(super) fn read(database: &Database<'_>, tree: Oid) -> Result<Flat> {
    let mut flat = Flat::new();
    let mut open = vec![(RepoPath::default(), tree, 0)];
    while let Some((folder, oid, depth)) = open.pop() {
        if depth > MAX_DEPTH {
            return Err(Error::corrupt(format!("tree {tree} is nested too deeply")));
        }
        for (name, mode, oid) in entries(database, oid)? {
            // `join` would drop an empty name; it must reach the check of names instead.
            let path = if name.is_empty() { folder.join(b".") } else { folder.join(&name) };
            if mode == TREE {
                open.push((path, oid, depth + 1));
            } else {
                flat.insert(path, (mode, oid));
            }
        }
    }
    Ok(flat)
}

/// The entry of one name in a tree.
pub(super) fn find(database: &Database<'_>, tree: Oid, name: &[u8]) -> Result<Option<Oid>> {
    Ok(entries(database, tree)?.into_iter().find(|(known, _, _)| known == name).map(|(_, _, oid)| oid))
}

/// Reads an object id of the model.
pub(super) fn parse_oid(id: &crate::model::snapshot::ObjectId) -> Result<Oid> {
    Oid::from_str(&id.0).map_err(|_| Error::corrupt(format!("'{id}' is not an object id")))
}
