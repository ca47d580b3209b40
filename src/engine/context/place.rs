//! Where a command works, before there is a [`Context`](super::Context), and on whose behalf.

use std::path::{Component, Path, PathBuf};

use crate::config::Config;
use crate::git::refuse_root;
use crate::model::folder::FolderId;
use crate::store::Store;

use super::super::select;
use super::Setup;

/// The task of the run that a command without `--task` works on, where the file has settings of its own for it (B16).
pub(super) fn task_of_run(setup: &Setup, config: &Config, store: &Store, worktree: &Path) -> Option<String> {
    let is_new = setup.begins_run && setup.naming.run_id.is_none();
    if setup.naming.task.is_some() || config.tasks.is_empty() || is_new {
        return None;
    }
    // What is wrong with the state or the name, the command itself will say.
    let loaded = store.load().ok()?;
    let run = select::find_as(&setup.naming, &FolderId::of(worktree), &loaded.state).ok()??;
    let works_on_it = setup.naming.run_id.is_some() || !run.status.has_ended();
    run.task_id.clone().filter(|task| works_on_it && config.tasks.contains(task))
}

/// Without git: the nearest folder with `.ultraplan` that may be one, else the current one.
pub(super) fn project_root(cwd: &Path, home: Option<&Path>) -> PathBuf {
    let mut folders = cwd.ancestors().take_while(|folder| refuse_root(folder, home).is_ok());
    folders.find(|folder| folder.join(".ultraplan").is_dir()).unwrap_or(cwd).to_owned()
}

/// The path without symlinks and `..`, as far as it is there: one state directory has one name.
pub(in super::super) fn plain_path(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => plain_path(parent).join(name),
        (Some(parent), Some(Component::ParentDir)) => plain_path(parent).parent().unwrap_or(parent).to_owned(),
        _ => path.to_owned(),
    }
}
