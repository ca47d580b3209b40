//! Reads what a restore changed again.

use std::collections::{BTreeMap, BTreeSet};

use super::content;
use super::dirs;
use super::error::Result;
use super::folders::Folders;
use super::place;
use super::repository::Repo;
use super::restore::Restored;
use crate::model::path::{PathReason, RepoPath};
use crate::model::snapshot::Entry;
use crate::policy::restore_plan::RestorePlan;

/// Reads every path of a plan again and compares it with what was planned. Returns what differs; empty means verified.
pub fn verify(repo: &Repo, plan: &RestorePlan, restored: &Restored) -> Result<Vec<PathReason>> {
    let mut folders = Folders::new(dirs::open_root(repo.workdir())?);
    let kept: BTreeSet<&RepoPath> = restored.kept.iter().map(|kept| &kept.path).collect();
    let mut expected: BTreeMap<&RepoPath, Option<&Entry>> = BTreeMap::new();
    expected.extend(plan.delete.iter().map(|delete| (&delete.path, None)));
    expected.extend(plan.write.iter().map(|write| (&write.path, Some(&write.entry))));
    let made: BTreeSet<&RepoPath> = plan.make_dirs.iter().map(|dir| &dir.path).collect();
    let mut wrong = Vec::new();
    for (path, entry) in expected.into_iter().filter(|(path, _)| !kept.contains(path)) {
        let (parent, name) = dirs::split(path);
        let found = match folders.open(&parent) {
            Ok(dir) => place::look(&dir, name).map_err(|error| content::io_error(path, error))?,
            Err(error) if place::is_no_folder(&error) => place::Found::Nothing,
            Err(error) => return Err(place::open_error(path, error)),
        };
        let folder_now = found == place::Found::Other && made.contains(path);
        if !(found.is(entry) && found.has_mode(entry) || entry.is_none() && folder_now) {
            wrong.push(PathReason { path: path.clone(), reason: "differs from the checkpoint".to_owned(), size: None });
        }
    }
    for set in plan.set_mode.iter().filter(|set| !kept.contains(&set.path)) {
        let (parent, name) = dirs::split(&set.path);
        let stat = folders.open(&parent).and_then(|dir| dirs::stat(&dir, name)).ok().flatten();
        if stat.is_none_or(|stat| stat.permissions() != set.mode) {
            let reason = "has another mode than the checkpoint".to_owned();
            wrong.push(PathReason { path: set.path.clone(), reason, size: None });
        }
    }
    Ok(wrong)
}
