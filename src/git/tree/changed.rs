//! Reads the content of files that differ between two snapshots out of git objects, bounded (`policy::changed`).

use super::lookup::TreeLookup;
use super::objects::Objects;
use super::view::{TreeView, diff_trees};
use crate::git::base::error::Result;
use crate::git::base::object_id::parse_oid;
use crate::git::odb::database::Database;
use crate::model::manifest::{Entry, EntryKind};
use crate::model::path::RepoPath;
use crate::policy::changes::{ChangedFile, Content};

/// Content over this size is not read.
const MAX_FILE_BYTES: u64 = 256 << 10;
/// Nor is any more once so much was read.
const MAX_TOTAL_BYTES: u64 = 4 << 20;
/// More paths than this are not listed.
const MAX_FILES: usize = 2_000;

/// Files that differ, those that `first` names before the others, with their text as far as the bounds go.
pub(crate) fn changed_files(
    objects: Objects<'_>,
    from: TreeView<'_>,
    to: TreeView<'_>,
    first: impl Fn(&str) -> bool,
) -> Result<Vec<ChangedFile>> {
    let opened = objects.open();
    let (from, to) = diff_trees(&TreeLookup::new(&opened)?, from, to)?;
    let file = |entry: Option<&Entry>| entry.filter(|entry| entry.kind == EntryKind::File).cloned();
    let mut paths: Vec<(bool, &RepoPath)> = Vec::new();
    for path in from.entries.keys().chain(
        to.entries
            .keys()
            .filter(|path| !from.entries.contains_key(*path)),
    ) {
        let (before, after) = (from.entries.get(path), to.entries.get(path));
        let either = before
            .into_iter()
            .chain(after)
            .any(|entry| entry.kind == EntryKind::File);
        if either && before.map(|entry| &entry.oid) != after.map(|entry| &entry.oid) {
            paths.push((!first(&path.to_lossy()), path));
        }
    }
    paths.sort();
    let mut reader = Reader {
        database: opened.database()?,
        left: MAX_TOTAL_BYTES,
    };
    let mut changed = Vec::new();
    for (_, path) in paths.into_iter().take(MAX_FILES) {
        let before = file(from.entries.get(path))
            .map(|entry| reader.content(&entry))
            .transpose()?;
        let after = file(to.entries.get(path))
            .map(|entry| reader.content(&entry))
            .transpose()?;
        changed.push(ChangedFile {
            path: path.to_lossy().into_owned(),
            before,
            after,
        });
    }
    Ok(changed)
}

struct Reader<'r> {
    database: Database<'r>,
    left: u64,
}

impl Reader<'_> {
    fn content(&mut self, entry: &Entry) -> Result<Content> {
        let oid = parse_oid(&entry.oid)?;
        let size = self.database.size(oid)?;
        let mut text = None;
        if size <= MAX_FILE_BYTES.min(self.left) {
            self.left -= size;
            let bytes = self.database.blob(oid)?;
            let binary = bytes.iter().take(8000).any(|byte| *byte == 0);
            text = (!binary).then(|| String::from_utf8_lossy(&bytes).into_owned());
        }
        Ok(Content {
            oid: entry.oid.clone(),
            text,
        })
    }
}
