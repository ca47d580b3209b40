//! Path filter of an operation: all paths, or those that globs select.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::model::path::RepoPath;

/// All paths, or those that match one of some globs. `*` does not cross `/`; a glob also selects all below what it matches.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    globs: Option<GlobSet>,
}

impl Selection {
    /// Every path.
    pub fn all() -> Self {
        Self::default()
    }

    /// Paths that match one of the globs; every path if there is none.
    pub fn globs<S: AsRef<str>>(patterns: &[S]) -> Result<Self, globset::Error> {
        if patterns.is_empty() {
            return Ok(Self::all());
        }
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns {
            let trimmed = pattern
                .as_ref()
                .trim_start_matches("./")
                .trim_end_matches('/');
            let everything = trimmed.is_empty() || trimmed == ".";
            let texts = if everything {
                vec!["**".to_owned()]
            } else {
                vec![trimmed.to_owned(), format!("{trimmed}/**")]
            };
            for text in texts {
                builder.add(GlobBuilder::new(&text).literal_separator(true).build()?);
            }
        }
        Ok(Self {
            globs: Some(builder.build()?),
        })
    }

    /// Whether every path is selected.
    pub fn is_all(&self) -> bool {
        self.globs.is_none()
    }

    /// Whether a path is selected.
    pub fn matches(&self, path: &RepoPath) -> bool {
        self.globs
            .as_ref()
            .is_none_or(|globs| globs.is_match(Path::new(OsStr::from_bytes(path.as_bytes()))))
    }
}

/// A glob that selects a path: what would mean something in it stands for any one byte.
pub(crate) fn glob_of(path: &RepoPath) -> String {
    let mut glob = String::new();
    for chunk in path.as_bytes().utf8_chunks() {
        glob.extend(
            chunk
                .valid()
                .chars()
                .map(|one| if "*?[]{}\\!".contains(one) { '?' } else { one }),
        );
        glob.extend(chunk.invalid().iter().map(|_| '?'));
    }
    glob
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_glob_of_a_path_selects_it() {
        for name in [
            &b"src/a.rs"[..],
            b"a[1]*.txt",
            b"{x,y}",
            b"back\\slash",
            "\u{e9}?".as_bytes(),
            b"\xff\xfe.bin",
            b"!a",
        ] {
            let path = RepoPath::new(name);
            assert!(
                Selection::globs(&[glob_of(&path)]).unwrap().matches(&path),
                "{path:?}"
            );
        }
    }

    #[test]
    fn a_glob_selects_what_lies_below() {
        let selection = Selection::globs(&["src", "*.md"]).unwrap();
        for (path, selected) in [
            ("src", true),
            ("src/a/b", true),
            ("srcs", false),
            ("a.md", true),
            ("docs/a.md", false),
        ] {
            assert_eq!(selection.matches(&RepoPath::from(path)), selected, "{path}");
        }
        assert!(Selection::globs::<&str>(&[]).unwrap().is_all());
        assert!(
            Selection::globs(&["."])
                .unwrap()
                .matches(&RepoPath::from("a/b"))
        );
    }
}
