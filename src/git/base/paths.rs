//! Which file names a tree may hold, and the globs of the capture rules.
//!
//! A tree that names `.git` in any spelling could plant a hook or a configuration. git refuses such names; so do we,
//! both when capturing (they are listed, not captured) and before a restore writes anything.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::error::{Error, Result};
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
