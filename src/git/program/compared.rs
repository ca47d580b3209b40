//! What an index would hold, and what of it a clone would not get.

use std::collections::BTreeSet;

use super::held::Held;
use super::staging::Staging;
use crate::git::base::Result;
use crate::model::{ObjectId, RepoPath};

impl Staging<'_> {
    /// The repositories inside that one index has and another had not, and that `.gitmodules` does not name: a clone has none of
    /// their files.
    pub(crate) fn embedded(&self, had: &Held, has: &Held) -> BTreeSet<RepoPath> {
        let is_named = |path: &RepoPath| {
            let found = self.repo.inner.find_submodule(&path.to_lossy());
            found.is_ok_and(|found| found.opt_url_bytes().is_some())
        };
        let mut new = had.unlike(has);
        new.retain(|path| has.has_link(path) && !had.has_link(path) && !is_named(path));
        new
    }

    /// What an index would hold of `paths` on top of a commit, as the work tree has them.
    pub(crate) fn as_in_work_tree(
        &self,
        commit: Option<&ObjectId>,
        paths: &BTreeSet<RepoPath>,
    ) -> Result<Held> {
        let other = Self::new(self.repo, false)?;
        other.read(commit)?;
        other.add(paths)?;
        other.held()
    }
}
