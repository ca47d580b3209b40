//! Files that nothing but the work tree has.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use git2::{Status, StatusOptions};

use crate::git::base::error::{Error, Result};
use crate::git::repo::repository::Repo;
use crate::model::path::RepoPath;

/// Those of `paths` that HEAD does not have as they are: changed, staged, deleted, untracked or ignored. A path where nothing
/// is, and where HEAD has nothing, is none of them; nor is a folder.
pub(crate) fn uncommitted(repo: &Repo, paths: &BTreeSet<RepoPath>) -> Result<BTreeSet<RepoPath>> {
    let is_folder = |path: &RepoPath| {
        let there = path.below(repo.workdir()).symlink_metadata();
        there.is_ok_and(|there| there.is_dir())
    };
    let mut options = StatusOptions::new();
    options
        .disable_pathspec_match(true)
        .include_untracked(true)
        .recurse_untracked_dirs(true)
        .include_ignored(true)
        .recurse_ignored_dirs(true);
    let mut wanted = BTreeSet::new();
    for path in paths.iter().filter(|path| !is_folder(path)) {
        options.pathspec(Path::new(OsStr::from_bytes(path.as_bytes())));
        wanted.insert(path);
    }
    // Without a path it would be about all there are.
    if wanted.is_empty() {
        return Ok(BTreeSet::new());
    }
    let statuses = repo
        .inner
        .statuses(Some(&mut options))
        .map_err(|source| Error::Git {
            action: "compare the work tree with HEAD".to_owned(),
            source,
        })?;
    let changed = statuses
        .iter()
        .filter(|entry| entry.status() != Status::CURRENT)
        .map(|entry| RepoPath::new(entry.path_bytes()));
    Ok(changed.filter(|path| wanted.contains(path)).collect())
}
