//! Folders that a restore would remove, and cannot: something lies in them that nobody captured.

use std::collections::BTreeSet;

use crate::git::base::error::Result;
use crate::git::base::openat;
use crate::git::repo::repository::Repo;
use crate::model::path::{PathReason, RepoPath};
use crate::policy::restore::RestorePlan;

/// Why such a folder is kept.
pub(super) const HOLDS_OTHERS: &str = "holds files that were not captured";

impl Repo {
    /// Takes them out of the plan and lists them as kept, so that nothing is announced that will not happen. What turns up in
    /// a folder after this keeps it as well: the restore only ever removes empty ones. `files` go beside the plan.
    pub(crate) fn keep_nonempty_dirs(
        &self,
        plan: &mut RestorePlan,
        files: impl Iterator<Item = RepoPath>,
    ) -> Result<()> {
        let root = openat::open_root(self.workdir())?;
        let mut going: BTreeSet<RepoPath> = plan
            .delete
            .iter()
            .map(|delete| delete.path.clone())
            .chain(files)
            .collect();
        let mut staying = BTreeSet::new();
        // The deepest first: a folder that stays keeps those above it.
        for folder in plan.remove_dirs.iter().rev().map(|dir| &dir.path) {
            // One that cannot be opened is reported by the restore.
            let names = match openat::open_path(&root, folder) {
                Ok(dir) => openat::names(&dir).map_err(|error| openat::io_error(folder, error))?,
                Err(_) => Vec::new(),
            };
            if names.iter().all(|name| going.contains(&folder.join(name))) {
                going.insert(folder.clone());
            } else {
                staying.insert(folder.clone());
            }
        }
        plan.remove_dirs.retain(|dir| !staying.contains(&dir.path));
        let kept = |path| PathReason::new(path, HOLDS_OTHERS);
        plan.kept.extend(staying.into_iter().map(kept));
        plan.kept.sort();
        plan.kept.dedup();
        Ok(())
    }
}
