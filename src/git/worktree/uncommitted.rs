//! Files that nothing but the work tree has.

use std::collections::BTreeSet;

use git2::{ErrorCode, Status};

use crate::git::base::error::{Error, Result};
use crate::git::repo::repository::Repo;
use crate::model::path::RepoPath;

/// Those of `paths` that HEAD does not have as they are: changed, staged, deleted, untracked or ignored. A path where nothing
/// is, and where HEAD has nothing, is none of them; nor is a folder.
pub(crate) fn uncommitted(repo: &Repo, paths: &BTreeSet<RepoPath>) -> Result<BTreeSet<RepoPath>> {
    let mut found = BTreeSet::new();
    for path in paths {
        let place = path.below(repo.workdir());
        if place.symlink_metadata().is_ok_and(|there| there.is_dir()) {
            continue;
        }
        let relative = place.strip_prefix(repo.workdir()).unwrap_or(&place);
        match repo.inner.status_file(relative) {
            Ok(Status::CURRENT) => {}
            Err(error) if error.code() == ErrorCode::NotFound => {}
            Ok(_) => drop(found.insert(path.clone())),
            Err(source) => {
                return Err(Error::Git {
                    action: format!("compare {path} with HEAD"),
                    source,
                });
            }
        }
    }
    Ok(found)
}
