//! The include and exclude globs of the capture rules.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::error::{Error, Result};
use crate::model::path::RepoPath;

/// A set of globs over paths of the work tree. `*` does not cross `/`; a pattern also stands for all below a match.
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
