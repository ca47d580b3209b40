//! Where a command works, before there is a [`Context`], and on whose behalf.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::config::{Config, ConfigError, Origin, Place};
use crate::durable::Root;
use crate::engine::base::error::Result;
use crate::engine::base::runs::{self, Wanted};
use crate::git::base::Unusable;
use crate::git::repo::{is_same_folder, owner};
use crate::git::{Repo, refuse_root};
use crate::model::id::TaskId;
use crate::model::path::FolderId;
use crate::model::state::State;
use crate::store::{self, Store};

use super::{Context, Setup, origin};

/// The task of the run that a command without `--task` works on, where the file has settings of its own for it (B16).
pub(super) fn task_of_run(
    setup: &Setup,
    config: &Config,
    store: &Store,
    worktree: &Path,
) -> Option<TaskId> {
    let is_new = setup.begins_run && setup.naming.run_id.is_none();
    if setup.naming.task.is_some() || config.tasks.is_empty() || is_new {
        return None;
    }
    // What is wrong with the state or the name, the command itself will say.
    let loaded = store.load().ok()?;
    let run = runs::find_as(
        store,
        &setup.naming,
        &FolderId::of(worktree),
        &loaded.state,
        Wanted::Course,
    )
    .ok()??;
    let works_on_it = setup.naming.run_id.is_some() || !run.status.has_ended();
    run.task_id
        .clone()
        .filter(|task| works_on_it && config.tasks.contains(task))
}

/// The folder in which nothing is followed on the way to the lane records. Where the project's file says their place, they
/// are in the project: whoever gives somebody a project writes nothing elsewhere. A person may have them anywhere.
pub(super) fn lane_root(config: &Config, project: &Path) -> Result<Root, ConfigError> {
    let file = Path::new(&config.settings.checkpoint.lane_file);
    if let Some(Origin::Environment(_) | Origin::Flag(_)) = config.origin("checkpoint.lane_file") {
        return Ok(Root::of_file(&project.join(file)).0);
    }
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(name) if name != ".git");
    if file.components().all(is_plain) {
        return Ok(Root::shared(project));
    }
    let message = format!(
        "[checkpoint] lane_file = {:?} is not in the project",
        config.settings.checkpoint.lane_file
    );
    let place = Place::File {
        path: config.file.clone(),
        at: None,
    };
    Err(ConfigError {
        place,
        message,
        hint: None,
        refused: None,
    })
}

/// Without git: the nearest folder with `.ultraplan` that may be one, else the current one. What an ancestor has that is
/// somebody else's is passed over, and added to `skipped` with its owner: anybody may put something into `/tmp`.
pub(super) fn project_root(
    cwd: &Path,
    home: Option<&Path>,
    skipped: &mut Vec<(PathBuf, u32)>,
) -> PathBuf {
    let mut folders = cwd
        .ancestors()
        .take_while(|folder| refuse_root(folder, home).is_ok());
    let root = folders.find(|folder| {
        let own = folder.join(".ultraplan");
        let foreign = || [folder, own.as_path()].into_iter().find_map(owner::foreign);
        match foreign() {
            // A link counts, too, and is refused then.
            _ if own.symlink_metadata().map_or(true, |found| found.is_file()) => false,
            // Whether the current folder may be worked in, is asked of every project.
            Some(owner) if *folder != cwd && !owner::is_declared_safe(folder) => {
                skipped.push((own, owner));
                false
            }
            _ => true,
        }
    });
    root.unwrap_or(cwd).to_owned()
}

/// Whether the project is a repository in the home folder itself, and that is allowed: for this call, or by what was recorded
/// there before.
pub(super) fn is_home_project(setup: &Setup) -> bool {
    let Some(home) = setup
        .home
        .as_deref()
        .and_then(|home| std::fs::canonicalize(home).ok())
    else {
        return false;
    };
    let place = setup
        .cwd
        .ancestors()
        .find(|folder| folder.join(".git").symlink_metadata().is_ok());
    place == Some(home.as_path()) && (setup.allow_home || home.join(".git/recover/states").is_dir())
}

/// What is around a folder.
pub(super) enum Discovered {
    /// No repository.
    Nothing,
    /// One.
    Repository(Box<Repo>),
    /// One that cannot be used, for who only reads what is recorded.
    Unusable(Box<Unusable>),
}

/// The repository around a folder. One that somebody else put into an ancestor into which everybody may put something is
/// passed over, and added to `skipped` with its owner.
pub(super) fn discover(setup: &Setup, skipped: &mut Vec<(PathBuf, u32)>) -> Result<Discovered> {
    match Repo::discover(&setup.cwd, setup.refused_home()) {
        Ok(repo) => Ok(Discovered::Repository(Box::new(repo))),
        Err(crate::git::Error::NotARepository { .. }) => Ok(Discovered::Nothing),
        Err(crate::git::Error::ForeignOwner { path, owner, root })
            if root != setup.cwd && owner::is_open_to_all(&root) =>
        {
            skipped.push((path, owner));
            Ok(Discovered::Nothing)
        }
        Err(_) if setup.settings_only => Ok(Discovered::Nothing),
        Err(crate::git::Error::Unusable(unusable)) if setup.reads => {
            refuse_root(&unusable.place, setup.refused_home())?;
            for folder in [
                Some(unusable.place.join(".git")),
                unusable.common_dir.clone(),
            ]
            .into_iter()
            .flatten()
            {
                owner::check(&folder, &unusable.place)?;
            }
            Ok(Discovered::Unusable(unusable))
        }
        Err(error) => Err(error.into()),
    }
}

/// Refuses a project of somebody else's: its folders, and the state directory wherever that is.
pub(super) fn check_owners(
    worktree: &Path,
    project: &Path,
    state_dir: &Path,
) -> crate::git::Result<()> {
    for folder in [worktree, project] {
        owner::check(folder, folder)?;
        owner::check(&folder.join(".ultraplan"), folder)?;
    }
    let declared = if state_dir.starts_with(project) {
        project
    } else {
        state_dir
    };
    owner::check(state_dir, declared)?;
    owner::check(&state_dir.join("recover"), declared)
}

/// The path without symlinks and `..`, as far as it is there: one state directory has one name.
pub(in crate::engine) fn plain_path(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => plain_path(parent).join(name),
        (Some(parent), Some(Component::ParentDir)) => {
            plain_path(parent).parent().unwrap_or(parent).to_owned()
        }
        _ => path.to_owned(),
    }
}

impl Context {
    /// Whether a work tree of this repository is at a place. One that was moved is not: a checkpoint that names it may well
    /// be of this one.
    pub fn is_worktree_of_repo(&self, place: &FolderId) -> bool {
        let place = place.path();
        let its = Repo::discover(&place, self.home()).ok();
        let its = its.filter(|its| its.workdir() == place);
        its.is_some_and(|its| {
            self.repo()
                .is_ok_and(|repo| is_same_folder(its.common_dir(), repo.common_dir()))
        })
    }

    /// Whether that is this state directory, as it is recorded.
    pub fn is_state_dir(&self, place: &FolderId) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let (own, there) = (self.store.dir(), place.path());
        there == own || real(&there).is_some_and(|there| Some(there) == real(own))
    }

    /// The work trees that are recorded in state which came from elsewhere, or did and is taken over for this call, and are
    /// none of this project: their runs are those of the work tree here. `None` for state that was recorded here. Projects
    /// may share a state directory: while it lies where it was recorded, another one's work tree stays that one's.
    pub fn brought_from(&self, state: &State) -> Option<BTreeSet<FolderId>> {
        let is_foreign = self.store.origin() != store::Origin::Ours;
        if !is_foreign && !origin::trusts_for_this_call(&self.setup) {
            return None;
        }
        let has_moved = state.places.iter().any(|place| !self.is_state_dir(place));
        if !is_foreign && !has_moved {
            return None;
        }
        let here = self.worktree_id();
        let recorded: BTreeSet<&FolderId> = state.runs.iter().map(|run| &run.worktree).collect();
        let is_elsewhere = |place: &&FolderId| {
            let is_ours = **place == here || self.has_git && self.is_worktree_of_repo(place);
            !is_ours && (has_moved || !place.path().is_dir())
        };
        Some(recorded.into_iter().filter(is_elsewhere).cloned().collect())
    }

    /// Makes the runs that were [brought](Self::brought_from) those of the work tree here, so that what they hold back is
    /// held back wherever a clone or a cache puts them.
    pub(super) fn take_home(&self, state: &mut Arc<State>) {
        let Some(from) = self.brought_from(state).filter(|from| !from.is_empty()) else {
            return;
        };
        let brought = Arc::make_mut(state)
            .runs
            .iter_mut()
            .filter(|run| from.contains(&run.worktree));
        brought.for_each(|run| run.worktree = self.worktree_id());
    }
}
