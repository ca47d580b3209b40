//! What differs between two snapshots: a list with line counts, and a patch.

use std::collections::BTreeMap;

use git2::{DiffFormat, DiffOptions, Oid, Patch};

use super::lookup::TreeLookup;
use super::objects::Objects;
use super::view::{TreeView, diff_trees};
use crate::git::base::error::{Error, Result};
use crate::git::base::modes::GITLINK;
use crate::git::base::object_id::{self, parse_oid};
use crate::git::odb::database::Database;
use crate::git::odb::trees::{self, Flat};
use crate::model::manifest::{Change, ChangeType, Entry, EntryKind, ObjectId};
use crate::model::path::RepoPath;
use crate::policy::restore::Selection;

/// Content over this size is not compared line by line.
const MAX_LINES_BYTES: u64 = 8 << 20;

/// The changes from one side to another, sorted by path. A file that moved with the same content is `renamed`.
///
/// A change of the mode alone is `modified` with no lines. Empty folders count as paths where there was no folder, or is
/// none any more; nested repositories are compared by their commit.
pub fn changes(
    objects: Objects<'_>,
    from: TreeView<'_>,
    to: TreeView<'_>,
    selection: &Selection,
) -> Result<Vec<Change>> {
    changes_with(objects, from, to, selection, &Seen::new())
}

/// The changes of an earlier comparison with the same side, with what was there then.
pub type Seen = BTreeMap<RepoPath, (Change, Option<Entry>)>;

/// [`changes`] that reuses the line counts of `seen` for paths that are unchanged since.
pub fn changes_with(
    objects: Objects<'_>,
    from: TreeView<'_>,
    to: TreeView<'_>,
    selection: &Selection,
    seen: &Seen,
) -> Result<Vec<Change>> {
    let opened = objects.open();
    let lookup = TreeLookup::new(&opened)?;
    let (from, to) = diff_trees(&lookup, from, to)?;
    let database = lookup.database();
    let mut created: BTreeMap<&RepoPath, &Entry> = BTreeMap::new();
    let mut deleted: BTreeMap<&RepoPath, &Entry> = BTreeMap::new();
    let mut changes = Vec::new();
    let change =
        |path: &RepoPath, kind, from: Option<&Entry>, to: Option<&Entry>| match seen.get(path) {
            Some((known, entry)) if known.kind == kind && entry.as_ref() == to => Ok(known.clone()),
            _ => change(database, path, kind, from, to),
        };
    for (path, before, after) in from
        .unlike(&to)
        .filter(|(path, ..)| selection.matches(path))
    {
        match (before, after) {
            (None, Some(after)) => drop(created.insert(path, after)),
            (Some(before), None) => drop(deleted.insert(path, before)),
            _ => changes.push(change(path, ChangeType::Modified, before, after)?),
        }
    }
    // The same content under a new path; an empty file says nothing about where it came from.
    let mut sources: BTreeMap<&ObjectId, Vec<&RepoPath>> = BTreeMap::new();
    for (path, entry) in deleted.iter().rev().filter(|(_, entry)| is_content(entry)) {
        sources.entry(&entry.oid).or_default().push(path);
    }
    for (path, entry) in created {
        let source = sources
            .get_mut(&entry.oid)
            .filter(|_| is_content(entry))
            .and_then(Vec::pop);
        if let Some(source) = source {
            deleted.remove(source);
            changes.push(Change {
                path: path.clone(),
                kind: ChangeType::Renamed,
                old_path: Some(source.to_lossy().into_owned()),
                added: Some(0),
                deleted: Some(0),
            });
        } else {
            changes.push(change(path, ChangeType::Created, None, Some(entry))?);
        }
    }
    for (path, entry) in deleted {
        changes.push(change(path, ChangeType::Deleted, Some(entry), None)?);
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

fn is_content(entry: &Entry) -> bool {
    entry.kind == EntryKind::File && entry.oid.0 != object_id::EMPTY_BLOB
}

fn change(
    database: &Database<'_>,
    path: &RepoPath,
    kind: ChangeType,
    from: Option<&Entry>,
    to: Option<&Entry>,
) -> Result<Change> {
    let lines = lines(database, from, to)?;
    let (added, deleted) = lines.map_or((None, None), |(added, deleted)| {
        (Some(added), Some(deleted))
    });
    Ok(Change {
        path: path.clone(),
        kind,
        old_path: None,
        added,
        deleted,
    })
}

/// Lines added and removed; `None` for binary or very large content.
fn lines(
    database: &Database<'_>,
    from: Option<&Entry>,
    to: Option<&Entry>,
) -> Result<Option<(u64, u64)>> {
    let has_lines = |entry: &&Entry| entry.is_file();
    let read = |entry: Option<&Entry>| -> Result<Option<Vec<u8>>> {
        let Some(entry) = entry.filter(has_lines) else {
            return Ok(Some(Vec::new()));
        };
        let oid = parse_oid(&entry.oid)?;
        if database.size(oid)? > MAX_LINES_BYTES {
            Ok(None)
        } else {
            database.blob(oid).map(Some)
        }
    };
    let (Some(old), Some(new)) = (read(from)?, read(to)?) else {
        return Ok(None);
    };
    if old == new {
        return Ok(Some((0, 0)));
    }
    let binary = |content: &[u8]| content.iter().take(8000).any(|byte| *byte == 0);
    if binary(&old) || binary(&new) {
        return Ok(None);
    }
    let failed = || Error::git("compare two files");
    let mut options = DiffOptions::new();
    options.context_lines(0).force_text(true);
    let patch = Patch::from_buffers(&old, None, &new, None, Some(&mut options)).map_err(failed())?;
    let (_, added, deleted) = patch.line_stats().map_err(failed())?;
    Ok(Some((added as u64, deleted as u64)))
}

/// Makes sure that everything a comparison of two trees reads is whole.
fn check_differing(database: &Database<'_>, from: Oid, to: Oid) -> Result<()> {
    let (from, to) = (trees::read(database, from)?, trees::read(database, to)?);
    let differs = |one: &Flat, other: &Flat| -> Result<()> {
        let mut changed = one
            .iter()
            .filter(|(path, entry)| other.get(*path) != Some(entry) && entry.0 != GITLINK);
        changed.try_for_each(|(_, (_, oid))| database.check(*oid))
    };
    differs(&from, &to)?;
    differs(&to, &from)
}

/// A patch from one tree to another, with binary content, that `git apply` takes. Only selected paths are in it.
pub fn patch_text(
    objects: Objects<'_>,
    from: &ObjectId,
    to: &ObjectId,
    selection: &Selection,
) -> Result<Vec<u8>> {
    let failed = || Error::git("compare two trees");
    let opened = objects.open();
    let repository = opened.repository()?;
    let tree = |id: &ObjectId| repository.find_tree(parse_oid(id)?).map_err(failed());
    check_differing(&Database::of(repository)?, parse_oid(from)?, parse_oid(to)?)?;
    let (from, to) = (tree(from)?, tree(to)?);
    let mut options = DiffOptions::new();
    options
        .show_binary(true)
        .include_typechange(true)
        .ignore_submodules(false);
    let diff = repository
        .diff_tree_to_tree(Some(&from), Some(&to), Some(&mut options))
        .map_err(failed())?;
    let mut text = Vec::new();
    let print = diff.print(DiffFormat::Patch, |delta, _, line| {
        let path = delta
            .new_file()
            .path_bytes()
            .or_else(|| delta.old_file().path_bytes())
            .unwrap_or_default();
        if selection.matches(&RepoPath::new(path)) {
            if matches!(line.origin(), '+' | '-' | ' ') {
                text.push(line.origin() as u8);
            }
            text.extend_from_slice(line.content());
        }
        true
    });
    print.map_err(failed())?;
    Ok(text)
}
