//! What a work tree holds at one moment, as data: the input and output of a restore plan.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::path::{PathReason, RepoPath};

/// The object id of a blob, tree or commit, as lower-case hexadecimal.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ObjectId(pub String);

impl ObjectId {
    /// The first characters, for people.
    pub fn short(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A symbolic link; its content is the target.
    Symlink,
    /// A submodule or nested repository: recorded, never written or deleted.
    Gitlink,
    /// A folder that holds no captured path.
    EmptyDir,
}

/// One captured path.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// What it is.
    pub kind: EntryKind,
    /// Its content: blob, or the commit of a gitlink; the empty blob's id for an empty folder.
    pub oid: ObjectId,
    /// Permission bits (`0o7777`); 0 for symlinks and gitlinks.
    pub mode: u32,
}

impl Entry {
    /// Whether it has content of its own: a regular file or a symbolic link.
    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind, EntryKind::File | EntryKind::Symlink)
    }
}

/// Everything captured of a work tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Files, links and empty folders by path.
    pub entries: BTreeMap<RepoPath, Entry>,
    /// Permission bits of every folder that holds an entry, by path (the root excluded).
    pub dirs: BTreeMap<RepoPath, u32>,
    /// What was left out, and why.
    pub skipped: Vec<PathReason>,
}

/// A path that is not the same before and after: what it was, and what it is.
pub(crate) type Unlike<'a> = (&'a RepoPath, Option<&'a Entry>, Option<&'a Entry>);

impl Snapshot {
    /// What is not the same in a later one, sorted by path.
    ///
    /// A folder that holds something is no entry, and one that holds nothing is: emptying or filling it makes or removes
    /// no folder, so that only those are reported that were not there at all before, or are not any more.
    pub fn unlike<'a>(&'a self, later: &'a Self) -> impl Iterator<Item = Unlike<'a>> {
        let mut unlike: BTreeMap<&RepoPath, (Option<&Entry>, Option<&Entry>)> = BTreeMap::new();
        for (path, entry) in &later.entries {
            match self.entries.get(path) {
                Some(before) if before == entry => {}
                Some(before) => drop(unlike.insert(path, (Some(before), Some(entry)))),
                None if self.has_folder_of(path, entry) => {}
                None => drop(unlike.insert(path, (None, Some(entry)))),
            }
        }
        let gone = self
            .entries
            .iter()
            .filter(|(path, _)| !later.entries.contains_key(*path));
        let gone = gone.filter(|(path, entry)| !later.has_folder_of(path, entry));
        unlike.extend(gone.map(|(path, entry)| (path, (Some(entry), None))));
        unlike
            .into_iter()
            .map(|(path, (before, after))| (path, before, after))
    }

    /// Whether an empty folder of another snapshot is here, too, with something in it.
    fn has_folder_of(&self, path: &RepoPath, entry: &Entry) -> bool {
        entry.kind == EntryKind::EmptyDir && self.dirs.contains_key(path)
    }
}

/// How one path differs between two snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeType {
    /// In both, different.
    Modified,
    /// Only in the newer.
    Created,
    /// Only in the older.
    Deleted,
    /// Same content under another path.
    Renamed,
}

impl ChangeType {
    /// The contract's name of it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Modified => "modified",
            Self::Created => "created",
            Self::Deleted => "deleted",
            Self::Renamed => "renamed",
        }
    }
}

/// One line of a diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The path (the new one after a rename).
    #[serde(flatten)]
    pub path: RepoPath,
    /// How it differs.
    #[serde(rename = "type")]
    pub kind: ChangeType,
    /// Where it was before a rename.
    #[serde(default)]
    pub old_path: Option<String>,
    /// Lines added; `None` for binary content.
    pub added: Option<u64>,
    /// Lines removed; `None` for binary content.
    pub deleted: Option<u64>,
}
