//! Object ids, modes and names as a tree has them, and the globs of the capture rules.
//!
//! A tree that names `.git` in any spelling could plant a hook or a configuration. git refuses such names; so do we,
//! both when capturing (they are listed, not captured) and before a restore writes anything.
//!
//! SHA-1 is the only algorithm that is supported. What is written as a file, a pack or the index computes its own as it goes.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{ObjectType, Oid};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use sha1::{Digest as _, Sha1};

use super::error::{Error, Result};
use crate::model::manifest::EntryKind;
use crate::model::path::RepoPath;

/// Why one component of a path must not be written; `None` if it may.
pub(in crate::git) fn unsafe_name(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("an empty name"),
        b"." | b".." => Some("a name that leaves its folder"),
        _ if name.contains(&b'/') || name.contains(&0) => Some("a name with a separator"),
        _ if is_git_name(name) => Some("a name that stands for the repository itself"),
        _ => None,
    }
}

/// Why a path must not be written; `None` if it may.
pub(in crate::git) fn unsafe_path(path: &RepoPath) -> Option<&'static str> {
    path.as_bytes()
        .split(|byte| *byte == b'/')
        .find_map(unsafe_name)
}

/// `.git` as any file system may read it: in any case, as an NTFS short name or with what NTFS drops at the end, and
/// with the characters that HFS+ ignores.
fn is_git_name(name: &[u8]) -> bool {
    let visible = without_hfs_ignorable(name);
    if visible.eq_ignore_ascii_case(b".git") {
        return true;
    }
    // NTFS ends a name at `:` (a stream) and drops dots and spaces at the end; a backslash separates there.
    let first = visible
        .split(|byte| matches!(byte, b':' | b'\\'))
        .next()
        .unwrap_or_default();
    let end = first
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b' '))
        .map_or(0, |at| at + 1);
    let stem = &first[..end];
    stem.eq_ignore_ascii_case(b".git") || stem.eq_ignore_ascii_case(b"git~1")
}

/// The name without the characters that HFS+ drops when it compares names.
fn without_hfs_ignorable(name: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(name) else {
        return name.to_vec();
    };
    let ignorable = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    text.chars()
        .filter(|c| !ignorable(*c))
        .collect::<String>()
        .into_bytes()
}

/// A set of globs over paths of the work tree. `*` does not cross `/`; a pattern also matches all below a match.
#[derive(Debug)]
pub(in crate::git) struct Globs {
    set: GlobSet,
    /// Of each pattern the folders before its first wildcard.
    prefixes: Vec<RepoPath>,
}

impl Globs {
    /// Compiles the patterns. One that is no glob is [`Error::UnsafePath`], naming it.
    pub(crate) fn new(patterns: &[String]) -> Result<Self> {
        let mut builder = GlobSetBuilder::new();
        let mut prefixes = Vec::new();
        for pattern in patterns {
            let trimmed = pattern.trim_start_matches("./").trim_matches('/');
            for text in [trimmed.to_owned(), format!("{trimmed}/**")] {
                let glob = GlobBuilder::new(&text).literal_separator(true).build();
                builder.add(glob.map_err(|error| invalid(pattern, &error))?);
            }
            let literal = trimmed
                .split('/')
                .take_while(|name| !name.contains(['*', '?', '[', '{', '\\']));
            prefixes.push(RepoPath::from(
                literal.collect::<Vec<_>>().join("/").as_str(),
            ));
        }
        let set = builder
            .build()
            .map_err(|error| invalid("the patterns together", &error))?;
        Ok(Self { set, prefixes })
    }

    /// Whether a pattern matches the path or a folder it lies in.
    pub(crate) fn matches(&self, path: &RepoPath) -> bool {
        !self.set.is_empty()
            && self
                .set
                .is_match(Path::new(std::ffi::OsStr::from_bytes(path.as_bytes())))
    }

    /// Whether something below the folder could match.
    pub(crate) fn may_match_below(&self, folder: &RepoPath) -> bool {
        self.prefixes
            .iter()
            .any(|prefix| prefix.starts_with(folder) || folder.starts_with(prefix))
    }
}

fn invalid(pattern: &str, error: &globset::Error) -> Error {
    Error::UnsafePath {
        path: pattern.into(),
        reason: format!("not a glob: {error}"),
    }
}

/// The id that git gives to empty content.
pub(in crate::git) const EMPTY_BLOB: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/// Reads an object id of the model.
pub(in crate::git) fn parse_oid(id: &crate::model::manifest::ObjectId) -> Result<Oid> {
    Oid::from_str(&id.0).map_err(|_| Error::corrupt(format!("'{id}' is not an object id")))
}

/// [`parse_oid`] of what may be missing.
pub(in crate::git) fn oid_of(id: Option<&crate::model::manifest::ObjectId>) -> Result<Option<Oid>> {
    id.map(parse_oid).transpose()
}

/// The id of an object, without a look for content that was made to collide: for what has to be that of a known id, and
/// for trees, which are made here.
pub(in crate::git) fn id_of(kind: ObjectType, data: &[u8]) -> Result<Oid> {
    let mut hash = Sha1::new();
    hash.update(object_header(kind, data.len() as u64));
    hash.update(data);
    Oid::from_bytes(&hash.finalize()).map_err(Error::git("hash an object"))
}

/// What a loose object begins with, and what is hashed before the content.
pub(in crate::git) fn object_header(kind: ObjectType, size: u64) -> String {
    format!("{} {size}\0", kind.str())
}

/// The git file mode of a tree.
pub(in crate::git) const TREE: u32 = 0o040_000;

/// The git file mode of a submodule.
pub(in crate::git) const GITLINK: u32 = 0o160_000;

/// The kind of an entry with this git file mode.
pub(in crate::git) fn kind_of(mode: u32) -> Result<EntryKind> {
    match mode & 0o170_000 {
        0o100_000 => Ok(EntryKind::File),
        0o120_000 => Ok(EntryKind::Symlink),
        0o160_000 => Ok(EntryKind::Gitlink),
        _ => Err(Error::corrupt(format!("file mode {mode:o} in a tree"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_the_repository_are_refused() {
        for name in [
            ".git",
            ".GIT",
            ".Git",
            "git~1",
            "GIT~1",
            ".git ",
            ".git.",
            ".git. .",
            ".git:x",
            ".git\\x",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".",
            "..",
            "",
            "a/b",
        ] {
            assert!(unsafe_name(name.as_bytes()).is_some(), "{name:?}");
        }
    }

    #[test]
    fn ordinary_names_are_allowed() {
        for name in [
            ".gitignore",
            ".gitmodules",
            "git",
            "git~10",
            "...",
            " ",
            "a\nb",
            ".git2",
            "x.git",
            "a\\b",
        ] {
            assert!(unsafe_name(name.as_bytes()).is_none(), "{name:?}");
        }
        assert!(unsafe_name(b"\xff\xfe").is_none());
        assert!(unsafe_path(&RepoPath::from("a/../b")).is_some());
        assert!(unsafe_path(&RepoPath::from("a/b")).is_none());
    }
}
