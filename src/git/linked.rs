//! Linked work trees: made again where their folder is gone.

use std::fs;
use std::path::Path;

use git2::{WorktreeAddOptions, WorktreePruneOptions};

use super::error::{Error, Result};
use super::repository::Repo;
use super::trees::parse_oid;
use crate::model::snapshot::ObjectId;

/// Makes the linked work tree at `path` again, with `branch` (`refs/heads/…`) checked out. A branch that is gone is made
/// again at `commit`. What git still knows of the old folder is forgotten; nothing is done while the folder is there.
pub fn add_again(repo: &Repo, path: &Path, branch: &str, commit: Option<&ObjectId>) -> Result<()> {
    let failed = || Error::git(format!("make the work tree {} again", path.display()));
    let main = git2::Repository::open(repo.common_dir()).map_err(failed())?;
    for name in main.worktrees().map_err(failed())?.iter().flatten() {
        let Ok(known) = main.find_worktree(name) else { continue };
        if known.path() == path && known.is_prunable(None).map_err(failed())? {
            let mut options = WorktreePruneOptions::new();
            known.prune(Some(options.valid(false).locked(false).working_tree(false))).map_err(failed())?;
        }
    }
    if main.find_reference(branch).is_err() {
        let Some(commit) = commit else {
            return Err(Error::Unsupported { what: format!("{branch} is gone, and no commit of it is known") });
        };
        let oid = parse_oid(commit)?;
        main.reference(branch, oid, false, "recover: the branch of a lane that was gone").map_err(failed())?;
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(Error::at(parent))?;
    }
    let reference = main.find_reference(branch).map_err(failed())?;
    let base = path.file_name().map_or_else(|| "lane".to_owned(), |name| name.to_string_lossy().into_owned());
    let taken = |name: &str| main.find_worktree(name).is_ok();
    let name = (1..u32::MAX)
        .map(|number| if number == 1 { base.clone() } else { format!("{base}{number}") })
        .find(|name| !taken(name))
        .unwrap_or(base);
    let mut options = WorktreeAddOptions::new();
    options.reference(Some(&reference));
    main.worktree(&name, path, Some(&options)).map(drop).map_err(failed())
}
