//! What differs between two snapshots: a list with line counts, the content of the files, and patches that `git apply` takes.
//!
//! Patch files say everything a git tree can: binary content, executable bits, symlinks, names with any bytes, a file that
//! became a link. They are made without attributes, drivers or configuration: the same two trees always make the same patch.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::{self, Write};

use flate2::{Compression, write::ZlibEncoder};
use git2::{DiffFormat, DiffOptions, Oid, Patch};

use super::{Objects, TreeLookup, TreeView};
use crate::git::base::{EMPTY_BLOB, Error, GITLINK, Result, parse_oid};
use crate::git::odb::{Database, Flat, trees};
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
        self,
        from: TreeView<'_>,
        to: TreeView<'_>,
        selection: &Selection,
    ) -> Result<Vec<Change>> {
        self.changes_with(from, to, selection, &Seen::new())
    }

    /// [`Objects::changes`] that reuses the line counts of `seen` for paths that are unchanged since.
    pub fn changes_with(
        self,
        from: TreeView<'_>,
        to: TreeView<'_>,
        selection: &Selection,
        seen: &Seen,
    ) -> Result<Vec<Change>> {
        let opened = self.open();
        let lookup = TreeLookup::new(&opened)?;
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
    pub fn patch(self, from: &ObjectId, to: &ObjectId, selection: &Selection) -> Result<Vec<u8>> {
        let failed = || Error::git("compare two trees");
        let opened = self.open();
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

    /// Files that differ, those that `first` names before the others, with their text as far as the bounds go.
    pub(crate) fn changed_files(
        self,
        from: TreeView<'_>,
        to: TreeView<'_>,
        first: impl Fn(&str) -> bool,
    ) -> Result<Vec<ChangedFile>> {
        let opened = self.open();
        let (from, to) = TreeLookup::new(&opened)?.diff(from, to)?;
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

    /// Writes the patch from the tree of `base` (a commit; `None` for nothing) to `tree`.
    ///
    /// Applied with `git apply` to a clean checkout of `base` it gives the content and modes of `tree`. Nested repositories
    /// are left out: a patch cannot carry them. So are files whose content is one of `without`, which are returned.
    pub(crate) fn write_patch(
        self,
        base: Option<&ObjectId>,
        tree: &ObjectId,
        without: &BTreeSet<ObjectId>,
        out: &mut dyn Write,
    ) -> Result<Vec<RepoPath>> {
        let without: HashSet<Oid> = without.iter().map(parse_oid).collect::<Result<_>>()?;
        let opened = self.open();
        let database = opened.database()?;
        let from = match base {
            Some(base) => {
                let oid = parse_oid(base)?;
                database.check(oid)?;
                let commit = opened
                    .repository()?
                    .find_commit(oid)
                    .map_err(Error::git(format!("read commit {base}")))?;
                trees::read(&database, commit.tree_id())?
            }
            None => Flat::new(),
        };
        let to = trees::read(&database, parse_oid(tree)?)?;
        let side = |entry: Option<&(u32, Oid)>| -> Result<Option<Side>> {
            let Some((mode, oid)) = entry.copied().filter(|(mode, _)| *mode != GITLINK) else {
                return Ok(None);
            };
            Ok(Some(Side {
                mode,
                oid,
                content: database.blob(oid)?,
            }))
        };
        let mut paths: Vec<&RepoPath> = from
            .keys()
            .filter(|path| from.get(*path) != to.get(*path))
            .collect();
        paths.extend(to.keys().filter(|path| !from.contains_key(*path)));
        paths.sort();
        let is_out =
            |entry: Option<&(u32, Oid)>| entry.is_some_and(|(_, oid)| without.contains(oid));
        let mut left_out = Vec::new();
        for path in paths {
            if is_out(from.get(path)) || is_out(to.get(path)) {
                left_out.push(path.clone());
                continue;
            }
            let (old, new) = (side(from.get(path))?, side(to.get(path))?);
            let same_kind = matches!((&old, &new), (Some(old), Some(new)) if old.mode & KIND == new.mode & KIND);
            if same_kind || old.is_none() || new.is_none() {
                one(path, old.as_ref(), new.as_ref(), out)?;
            } else {
                // git says it as a removal and a new file.
                one(path, old.as_ref(), None, out)?;
                one(path, None, new.as_ref(), out)?;
            }
        }
        Ok(left_out)
    }
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
        path: path.clone(),
        kind,
        old_path: None,
        added,
        deleted,
        diff: None,
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

/// Content over this many bytes is not compared line by line.
const MAX_HUNK_BYTES: usize = 8 << 20;
/// The bits of a file mode that say what kind of file it is.
const KIND: u32 = 0o170_000;
/// Bytes in one line of a binary patch.
const BINARY_LINE: usize = 52;
const DIGITS: &[u8; 85] =
    b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/// What a path is on one side: git file mode, id, content.
struct Side {
    mode: u32,
    oid: Oid,
    content: Vec<u8>,
}

fn one(path: &RepoPath, old: Option<&Side>, new: Option<&Side>, out: &mut dyn Write) -> Result<()> {
    let mut text = Vec::new();
    let (a, b) = (quoted("a/", path), quoted("b/", path));
    text.extend([b"diff --git ", &*a, b" ", &*b, b"\n"].concat());
    let mut line = |words: String| text.extend(words.into_bytes());
    match (old, new) {
        (None, None) => return Ok(()),
        (Some(old), None) => line(format!("deleted file mode {:o}\n", old.mode)),
        (None, Some(new)) => line(format!("new file mode {:o}\n", new.mode)),
        (Some(old), Some(new)) if old.mode != new.mode => {
            line(format!(
                "old mode {:o}\nnew mode {:o}\n",
                old.mode, new.mode
            ));
        }
        (Some(_), Some(_)) => {}
    }
    let id = |side: Option<&Side>| side.map_or(Oid::ZERO_SHA1, |side| side.oid);
    if id(old) != id(new) {
        let mode = match (old, new) {
            (Some(old), Some(new)) if old.mode == new.mode => format!(" {:o}", new.mode),
            _ => String::new(),
        };
        line(format!("index {}..{}{mode}\n", id(old), id(new)));
        let content =
            |side: Option<&'_ Side>| side.map_or_else(Vec::new, |side| side.content.clone());
        let (before, after) = (content(old), content(new));
        if is_binary(&before) || is_binary(&after) {
            text.extend(b"GIT binary patch\n");
            literal(&after, &mut text)
                .and_then(|()| literal(&before, &mut text))
                .map_err(written())?;
        } else if before != after {
            // A name with a space ends in a tab here, or readers would take a part of it for a date.
            let end: &[u8] = if path.as_bytes().contains(&b' ') && !a.starts_with(b"\"") {
                b"\t\n"
            } else {
                b"\n"
            };
            let name = |side: Option<&Side>, name: &[u8]| match side {
                Some(_) => [name, end].concat(),
                None => b"/dev/null\n".to_vec(),
            };
            text.extend([&b"--- "[..], &name(old, &a), b"+++ ", &name(new, &b)].concat());
            text.extend(hunks(&before, &after)?);
        }
    }
    out.write_all(&text).map_err(written())
}

fn written() -> impl Fn(io::Error) -> Error {
    |error| Error::io("the patch", error)
}

fn is_binary(content: &[u8]) -> bool {
    content.len() > MAX_HUNK_BYTES || content.iter().take(8000).any(|byte| *byte == 0)
}

/// The hunks of a comparison line by line.
fn hunks(before: &[u8], after: &[u8]) -> Result<Vec<u8>> {
    let failed = || Error::git("compare two files");
    let mut options = DiffOptions::new();
    options.context_lines(3).force_text(true);
    let mut patch =
        Patch::from_buffers(before, None, after, None, Some(&mut options)).map_err(failed())?;
    let text = patch.to_buf().map_err(failed())?;
    // What stands before the first hunk names the buffers.
    let first = text
        .windows(4)
        .position(|part| part == b"\n@@ ")
        .map_or(text.len(), |at| at + 1);
    Ok(text[first..].to_vec())
}

/// One side of a binary patch: its size and its deflated content in base 85.
fn literal(content: &[u8], text: &mut Vec<u8>) -> io::Result<()> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(content)?;
    let packed = encoder.finish()?;
    text.extend(format!("literal {}\n", content.len()).into_bytes());
    for line in packed.chunks(BINARY_LINE) {
        let length = u8::try_from(line.len()).unwrap_or(0);
        text.push(if length <= 26 {
            b'A' + length - 1
        } else {
            b'a' + length - 27
        });
        for word in line.chunks(4) {
            let mut bytes = [0; 4];
            bytes[..word.len()].copy_from_slice(word);
            let mut rest = u32::from_be_bytes(bytes);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = DIGITS[(rest % 85) as usize];
                rest /= 85;
            }
            text.extend(digits);
        }
        text.push(b'\n');
    }
    text.push(b'\n');
    Ok(())
}

/// A name as git writes it: in quotes where it holds what would end it or what is not ASCII.
fn quoted(side: &str, path: &RepoPath) -> Vec<u8> {
    let bytes = path.as_bytes();
    let plain = |byte: &u8| (0x20..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
    if bytes.iter().all(plain) {
        return [side.as_bytes(), bytes].concat();
    }
    let mut out = format!("\"{side}").into_bytes();
    for byte in bytes {
        match byte {
            b'\t' => out.extend(b"\\t"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            byte if plain(byte) => out.push(*byte),
            byte => out.extend(format!("\\{byte:03o}").into_bytes()),
        }
    }
    out.push(b'"');
    out
}
