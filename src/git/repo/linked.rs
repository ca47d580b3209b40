//! The work trees of a repository: where they are, and what git still keeps of one whose folder is gone.

use std::fs;
use std::path::{Path, PathBuf};

use super::repository::Repo;
use crate::git::base::error::{Error, Result};
use crate::model::manifest::ObjectId;

/// What git still keeps of a linked work tree, apart from its folder: `HEAD`, its reflog, the index, a restore's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinkedWorktree {
    /// The commit that its `HEAD` names; `None` for a branch without any.
    pub head: Option<ObjectId>,
}

impl Repo {
    /// The folders of all work trees that git knows of, the main one's first; some of them may be gone.
    pub(crate) fn work_trees(&self) -> Result<Vec<PathBuf>> {
        let failed = || Error::git("list the work trees");
        let main = git2::Repository::open(self.common_dir()).map_err(failed())?;
        let names = main.worktrees().map_err(failed())?;
        let linked = names
            .iter()
            .flatten()
            .flatten()
            .filter_map(|name| Some(main.find_worktree(name).ok()?.path().to_owned()));
        Ok(main
            .workdir()
            .map(Path::to_owned)
            .into_iter()
            .chain(linked)
            .collect())
    }

    /// What git still keeps of the linked work tree at `path`; `None` where it knows of none there.
    pub(crate) fn find_linked(&self, path: &Path) -> Result<Option<LinkedWorktree>> {
        let failed = || Error::git(format!("look for the work tree {}", path.display()));
        let main = git2::Repository::open(self.common_dir()).map_err(failed())?;
        for name in main
            .worktrees()
            .map_err(failed())?
            .iter()
            .flatten()
            .flatten()
        {
            let Ok(known) = main.find_worktree(name) else {
                continue;
            };
            if known.path() != path {
                continue;
            }
            let file = self.common_dir().join("worktrees").join(name).join("HEAD");
            let text = fs::read_to_string(&file).map_err(Error::at(&file))?;
            let head = match text.trim().strip_prefix("ref: ") {
                Some(branch) => self.resolve_ref(branch),
                None => Some(ObjectId(text.trim().to_owned())),
            };
            return Ok(Some(LinkedWorktree { head }));
        }
        Ok(None)
    }
}
