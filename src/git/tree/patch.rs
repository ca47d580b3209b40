//! Writes patch files that `git apply` takes and that say everything a git tree can.
//! Binary content, executable bits, symlinks, names with any bytes, a file that became a link.
//!
//! They are made without attributes, drivers or configuration: the same two trees always make the same patch.

use std::collections::{BTreeSet, HashSet};
use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use git2::{DiffOptions, Oid, Patch};

use super::objects::Objects;
use crate::git::base::error::{Error, Result};
use crate::git::base::modes::GITLINK;
use crate::git::base::object_id::parse_oid;
use crate::git::odb::trees::{self, Flat};
use crate::model::manifest::ObjectId;
use crate::model::path::RepoPath;

/// Content over this many bytes is not compared line by line.
const MAX_LINES_BYTES: usize = 8 << 20;
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

/// Writes the patch from the tree of `base` (a commit; `None` for nothing) to `tree`.
///
/// Applied with `git apply` to a clean checkout of `base` it gives the content and modes of `tree`. Nested repositories
/// are left out: a patch cannot carry them. So are files whose content is one of `without`, which are returned.
pub(crate) fn write_patch(
    objects: Objects<'_>,
    base: Option<&ObjectId>,
    tree: &ObjectId,
    without: &BTreeSet<ObjectId>,
    out: &mut dyn Write,
) -> Result<Vec<RepoPath>> {
    let without: HashSet<Oid> = without.iter().map(parse_oid).collect::<Result<_>>()?;
    let opened = objects.open();
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
    let is_out = |entry: Option<&(u32, Oid)>| entry.is_some_and(|(_, oid)| without.contains(oid));
    let mut left_out = Vec::new();
    for path in paths {
        if is_out(from.get(path)) || is_out(to.get(path)) {
            left_out.push(path.clone());
            continue;
        }
        let (old, new) = (side(from.get(path))?, side(to.get(path))?);
        let same_kind =
            matches!((&old, &new), (Some(old), Some(new)) if old.mode & KIND == new.mode & KIND);
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
    content.len() > MAX_LINES_BYTES || content.iter().take(8000).any(|byte| *byte == 0)
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
