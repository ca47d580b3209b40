//! What differs between two snapshots: a list with line counts, the content of the files, and patches that `git apply` takes.
//!
//! Patches say everything a git tree can: binary content, executable bits, symlinks, names with any bytes, a file that became
//! a link. What is binary is what git takes for it: attributes count.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;

use git2::{Diff, DiffDelta, DiffFile, DiffFormat, DiffOptions, FileMode, Oid, Patch};

use super::{Objects, TreeLookup, TreeView};
use crate::git::base::{EMPTY_BLOB, Error, GITLINK, Result, parse_oid};
use crate::git::odb::{Database, trees};
use crate::model::{Change, ChangeType, Entry, EntryKind, ObjectId, RepoPath};
use crate::policy::changes::{ChangedFile, Content};
use crate::policy::restore::Selection;

/// Content over this size is not compared line by line.
const MAX_LINES_BYTES: u64 = 8 << 20;

impl Objects<'_> {
    /// The changes from one side to another, sorted by path. A file that moved with the same content is `renamed`.
    ///
    /// A change of the mode alone is `modified` with no lines. Empty folders count as paths where there was no folder, or is
    /// none any more; nested repositories are compared by their commit.
    pub fn changes(
        &self,
        from: TreeView<'_>,
        to: TreeView<'_>,
        selection: &Selection,
    ) -> Result<Vec<Change>> {
        self.changes_with(from, to, selection, &Seen::new())
    }

    /// [`Objects::changes`] that reuses the line counts of `seen` for paths that are unchanged since.
    pub fn changes_with(
        &self,
        from: TreeView<'_>,
        to: TreeView<'_>,
        selection: &Selection,
        seen: &Seen,
    ) -> Result<Vec<Change>> {
        let lookup = TreeLookup::new(self)?;
        let (from, to) = lookup.diff(from, to)?;
        let database = lookup.database();
        let mut created: BTreeMap<&RepoPath, &Entry> = BTreeMap::new();
        let mut deleted: BTreeMap<&RepoPath, &Entry> = BTreeMap::new();
        let mut changes = Vec::new();
        let change = |path: &RepoPath, kind, from: Option<&Entry>, to: Option<&Entry>| match seen
            .get(path)
        {
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
                    diff: None,
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

    /// A patch from one tree to another, with binary content, that `git apply` takes. Only selected paths are in it.
    pub fn patch(&self, from: &ObjectId, to: &ObjectId, selection: &Selection) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut options = DiffOptions::new();
        options.include_typechange(true).ignore_submodules(false);
        let diff = compare(self, Some(parse_oid(from)?), parse_oid(to)?, &mut options)?;
        print(&diff, |delta| selection.matches(&path_of(delta)), &mut text)?;
        Ok(text)
    }

    /// Files that differ, those that `first` names before the others, with their text as far as the bounds go.
    pub(crate) fn changed_files(
        &self,
        from: TreeView<'_>,
        to: TreeView<'_>,
        first: impl Fn(&str) -> bool,
    ) -> Result<Vec<ChangedFile>> {
        let (from, to) = TreeLookup::new(self)?.diff(from, to)?;
        let file =
            |entry: Option<&Entry>| entry.filter(|entry| entry.kind == EntryKind::File).cloned();
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
            database: self.database()?,
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

    /// Writes the patch from the tree of `base` (a commit; `None` for nothing) to `tree`.
    ///
    /// Applied with `git apply` to a clean checkout of `base` it gives the content and modes of `tree`. Nested repositories
    /// are left out: a patch cannot carry them. So are files whose content is one of `without`, which are returned.
    pub(crate) fn write_patch(
        &self,
        base: Option<&ObjectId>,
        tree: &ObjectId,
        without: &BTreeSet<ObjectId>,
        out: &mut dyn Write,
    ) -> Result<Vec<RepoPath>> {
        let without: HashSet<Oid> = without.iter().map(parse_oid).collect::<Result<_>>()?;
        let base = base.map(|base| -> Result<Oid> {
            let oid = parse_oid(base)?;
            self.database()?.check(oid)?;
            let commit = self.repository()?.find_commit(oid);
            Ok(commit
                .map_err(Error::git(format!("read commit {base}")))?
                .tree_id())
        });
        let mut options = DiffOptions::new();
        options.id_abbrev(40);
        let diff = compare(self, base.transpose()?, parse_oid(tree)?, &mut options)?;
        let is_any = |delta: &DiffDelta<'_>, is: &dyn Fn(DiffFile<'_>) -> bool| {
            is(delta.old_file()) || is(delta.new_file())
        };
        let left_out: BTreeSet<RepoPath> = diff
            .deltas()
            .filter(|delta| is_any(delta, &|file| without.contains(&file.id())))
            .map(|delta| path_of(&delta))
            .collect();
        let is_link =
            |delta: &DiffDelta<'_>| is_any(delta, &|file| file.mode() == FileMode::Commit);
        let is_wanted =
            |delta: &DiffDelta<'_>| !is_link(delta) && !left_out.contains(&path_of(delta));
        print(&diff, is_wanted, out)?;
        Ok(left_out.into_iter().collect())
    }
}

/// Compares two trees, the first one empty for `None`, by git's library, whatever the user has configured of prefixes.
fn compare<'o>(
    objects: &'o Objects<'_>,
    from: Option<Oid>,
    to: Oid,
    options: &mut DiffOptions,
) -> Result<Diff<'o>> {
    let failed = || Error::git("compare two trees");
    let repository = objects.repository()?;
    let is_large = check_differing(&Database::of(repository)?, from, to)?;
    let tree = |oid: Oid| repository.find_tree(oid).map_err(failed());
    let (from, to) = (from.map(tree).transpose()?, tree(to)?);
    options.show_binary(true).force_binary(is_large);
    options.old_prefix("a").new_prefix("b");
    repository
        .diff_tree_to_tree(from.as_ref(), Some(&to), Some(options))
        .map_err(failed())
}

/// Writes a comparison as a patch that `git apply` takes, as far as its files are wanted.
fn print(
    diff: &Diff<'_>,
    is_wanted: impl Fn(&DiffDelta<'_>) -> bool,
    out: &mut dyn Write,
) -> Result<()> {
    let mut stopped = None;
    let printed = diff.print(DiffFormat::Patch, |delta, _, line| {
        let mark = [line.origin() as u8];
        let is_marked = matches!(line.origin(), '+' | '-' | ' ');
        let mark = if is_marked { &mark[..] } else { b"" };
        if is_wanted(&delta) {
            let written = out.write_all(mark);
            stopped = written.and_then(|()| out.write_all(line.content())).err();
        }
        stopped.is_none()
    });
    match stopped {
        Some(error) => Err(Error::io("the patch", error)),
        None => printed.map_err(Error::git("compare two trees")),
    }
}

fn path_of(delta: &DiffDelta<'_>) -> RepoPath {
    let new = delta.new_file().path_bytes().map(RepoPath::new);
    let path = new.or_else(|| delta.old_file().path_bytes().map(RepoPath::new));
    path.unwrap_or_default()
}

/// The changes of an earlier comparison with the same side, with what was there then.
pub type Seen = BTreeMap<RepoPath, (Change, Option<Entry>)>;

fn is_content(entry: &Entry) -> bool {
    entry.kind == EntryKind::File && entry.oid.0 != EMPTY_BLOB
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
        added,
        deleted,
        ..Change::new(path.clone(), kind)
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

/// Content over this many bytes git's library does not compare line by line.
const MAX_LINE_DIFF_BYTES: usize = 512 << 20;

/// Makes sure that everything a comparison of two trees reads is whole. Returns whether something is too large to be compared
/// line by line.
fn check_differing(database: &Database<'_>, from: Option<Oid>, to: Oid) -> Result<bool> {
    let from = from.map(|from| trees::read(database, from)).transpose()?;
    let (from, to) = (from.unwrap_or_default(), trees::read(database, to)?);
    let mut is_large = false;
    for (one, other) in [(&from, &to), (&to, &from)] {
        let changed = one
            .iter()
            .filter(|(path, entry)| other.get(*path) != Some(entry) && entry.0 != GITLINK);
        for (_, (_, oid)) in changed {
            is_large |= database.read(*oid)?.data.len() > MAX_LINE_DIFF_BYTES;
        }
    }
    Ok(is_large)
}

/// Content over this size is not read.
const MAX_FILE_BYTES: u64 = 256 << 10;
/// Nor is any more once so much was read.
const MAX_TOTAL_BYTES: u64 = 4 << 20;
/// More paths than this are not listed.
const MAX_FILES: usize = 2_000;

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
