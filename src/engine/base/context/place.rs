//! Where a command works, before there is a [`Context`], and on whose behalf.
//!
//! Decides whether a project's state is ours or came with a clone.
//!
//! State that a clone, an archive or a cache brought may hold back what it says (its cooldowns, its counts), but nothing
//! that is recorded in it is run, and nothing is added to it, until a user takes it over: `recover trust --state`, or
//! `RECOVER_TRUST=1` for one call. The decision is made once, where a [`Context`] is made, and lies in its
//! [`Store`]: one of foreign origin gives out no lock.
//!
//! The mark by which processes of an attempt are recognised.
//!
//! The user's own configuration: where it is, and reading it.
//!
//! What is masked in this process.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;

use super::{Context, Setup};
use crate::config::{Config, ConfigError, MAX_FILE, Place, UserConfig};
use crate::durable::{Root, TemporaryFolder};
use crate::engine::base::error::{Error, ErrorKind as Kind, Result};
use crate::engine::base::runs::{self, Wanted};
use crate::git::base::Unusable;
use crate::git::repo::owner;
use crate::git::{Error as GitError, Repo, WorktreeLock};
use crate::model::{FolderId, Head, Hint, RepositoryState, State, TaskId, Timestamp};
use crate::policy::secrets::{Fingerprints, Redactor};
use crate::policy::settings::RedactSettings;
use crate::process::Mark;
use crate::store::{Foreign, Origin, Registry, Store};
use crate::{config, store};

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
/// are in the project: whoever hands over a project writes nothing elsewhere. A person may have them anywhere.
pub(super) fn lane_root(config: &Config, project: &Path) -> Result<Root, ConfigError> {
    let file = Path::new(&config.settings.checkpoint.lane_file);
    if let Some(config::Origin::Environment(_)) = config.origin("checkpoint.lane_file") {
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
    Err(wrong(&config.file, message))
}

/// What is wrong with a file of the configuration as a whole.
fn wrong(file: &Path, message: String) -> ConfigError {
    let (path, at) = (file.to_owned(), None);
    ConfigError {
        place: Place::File { path, at },
        message,
        hint: None,
        refused: None,
    }
}

/// Without git: the nearest folder with `.ultraplan` that may be one, else the current one. What an ancestor has that is
/// another user's is passed over, and added to `skipped` with its owner: anybody may put something into `/tmp`.
pub(super) fn project_root(
    cwd: &Path,
    home: Option<&Path>,
    skipped: &mut Vec<(PathBuf, u32)>,
) -> PathBuf {
    let mut folders = cwd
        .ancestors()
        .take_while(|folder| Repo::refuse_root(folder, home).is_ok());
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

/// The roots of the work tree and of the project.
pub(super) fn roots(
    setup: &Setup,
    found: Option<&Repo>,
    unusable: Option<&Unusable>,
    skipped: &mut Vec<(PathBuf, u32)>,
) -> Result<(PathBuf, PathBuf)> {
    if let Some(repo) = found {
        return Ok((repo.workdir().to_owned(), repo.main_worktree()));
    }
    if let Some(unusable) = unusable {
        return Ok((unusable.place.clone(), unusable.project()));
    }
    let root = project_root(&setup.cwd, setup.home.as_deref(), skipped);
    // Before anything is made in it.
    if !setup.settings_only {
        Repo::refuse_root(&root, setup.home.as_deref())?;
    }
    Ok((root.clone(), root))
}

/// HEAD of a work tree at its latest checkpoint, and when that was.
pub(super) fn last_head(store: &Store, worktree: &Path) -> Option<(Head, Timestamp)> {
    let id = FolderId::of(worktree);
    let state = store.load().ok()?.state;
    let latest = state
        .checkpoints
        .values()
        .rev()
        .find(|checkpoint| checkpoint.worktree == id)?;
    let head = Head {
        commit: latest.base_commit.clone(),
        branch: latest.head_ref.clone(),
    };
    Some((head, latest.created_at)).filter(|_| store.origin() == Origin::Ours)
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

/// The repository around a folder. One that another user put into an ancestor into which everybody may put something is
/// passed over, and added to `skipped` with its owner.
pub(super) fn discover(setup: &Setup, skipped: &mut Vec<(PathBuf, u32)>) -> Result<Discovered> {
    match Repo::discover(&setup.cwd, setup.refused_home()) {
        Ok(repo) => Ok(Discovered::Repository(Box::new(repo))),
        Err(GitError::NotARepository(_)) => Ok(Discovered::Nothing),
        Err(GitError::ForeignOwner { path, owner, root })
            if root != setup.cwd && owner::is_open_to_all(&root) =>
        {
            skipped.push((path, owner));
            Ok(Discovered::Nothing)
        }
        Err(_) if setup.settings_only => Ok(Discovered::Nothing),
        Err(GitError::Unusable(unusable)) if setup.reads => {
            Repo::refuse_root(&unusable.place, setup.refused_home())?;
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

/// Refuses a project of another user's: its folders, and the state directory wherever that is.
pub(super) fn check_owners(
    worktree: &Path,
    project: &Path,
    state_dir: &Path,
) -> Result<(), GitError> {
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

/// Where a command works.
#[derive(Debug)]
pub(super) struct Location {
    /// The work tree's root.
    pub worktree: PathBuf,
    /// Whether it belongs to a git repository of the user's that can be used.
    pub has_git: bool,
    /// The one that it belongs to and that cannot be.
    unusable: Option<Unusable>,
    /// The user's, else the private one, opened when it is first needed. That of a dry run, and of state that is only read,
    /// is in a folder that is removed at the end.
    pub repo: OnceCell<(Repo, Option<TemporaryFolder>)>,
    /// The project became a git repository after its checkpoints were taken: they are still in the private one.
    has_private: bool,
    pub store: Store,
    /// What was passed over because it is another user's, with its owner.
    pub skipped: Vec<(PathBuf, u32)>,
}

impl Location {
    pub(super) fn new(
        worktree: PathBuf,
        found: Option<Repo>,
        unusable: Option<Unusable>,
        store: Store,
        skipped: Vec<(PathBuf, u32)>,
    ) -> Result<Self> {
        let has_git = found.is_some();
        // Of what a clone brought nothing is taken over.
        let has_private = has_git
            && store.origin() == Origin::Ours
            && Repo::has_private(store.root(), store.dir())?;
        Ok(Self {
            worktree,
            has_git,
            unusable,
            repo: found.map_or_else(OnceCell::new, |repo| OnceCell::from((repo, None))),
            has_private,
            store,
            skipped,
        })
    }
}

impl Context {
    /// The repository: the user's, else a private one in the state directory, which is made now.
    pub(crate) fn repo(&self) -> Result<&Repo> {
        if let Some((repo, _)) = self.location.repo.get() {
            return Ok(repo);
        }
        if let Some(unusable) = self.unusable() {
            return Err(GitError::Unusable(Box::new(unusable.clone())).into());
        }
        let (store, home) = (self.store(), self.setup.home.as_deref());
        // What is only rehearsed is done next: that one is made for good. Nothing is made in foreign state.
        let makes = !self.only_plans() && store.origin() == Origin::Ours;
        let opened = if makes || Repo::has_private(store.root(), store.dir())? {
            if makes {
                store.create_dirs()?;
            }
            let private = Repo::private(store.root(), store.dir(), self.worktree(), home)?;
            (private, None)
        } else {
            // What is captured is kept elsewhere.
            let scratch = TemporaryFolder::new().context("cannot make a temporary folder")?;
            let root = Root::own(scratch.path());
            let private = Repo::private(&root, scratch.path(), self.worktree(), home)?;
            (private, Some(scratch))
        };
        Ok(&self.location.repo.get_or_init(|| opened).0)
    }

    /// The user's repository, where there is one that can be opened.
    pub(crate) fn git(&self) -> Option<&Repo> {
        self.has_git().then(|| self.repo().ok()).flatten()
    }

    /// The repository of this work tree, where it cannot be used.
    pub(crate) fn unusable(&self) -> Option<&Unusable> {
        self.location.unusable.as_ref()
    }

    /// Whether the repository that holds what is recorded here can be used.
    pub(crate) fn repository_state(&self) -> Result<RepositoryState> {
        if let Some(unusable) = &self.location.unusable {
            return Ok(unusable.state());
        }
        let is_recorded_here = |state: &State| {
            !state.checkpoints.is_empty()
                && state.places.iter().any(|place| self.is_state_dir(place))
        };
        let is_unknown = self.store().origin() == Origin::Foreign(Foreign::UnknownId);
        Ok(match self.has_git() {
            true if is_unknown && is_recorded_here(&self.store().load()?.state) => {
                RepositoryState::Replaced
            }
            false
                if !Repo::has_private(self.store().root(), self.store().dir())?
                    && is_recorded_here(&self.store().load()?.state) =>
            {
                RepositoryState::Missing
            }
            _ if self.lost_vault().is_none() => RepositoryState::Ok,
            true => RepositoryState::Replaced,
            false => RepositoryState::Missing,
        })
    }

    /// Says what is wrong with the repository that holds what is recorded here, and what helps.
    pub(crate) fn repository_problem(&self) -> Result<Option<String>> {
        let place = self.worktree().display();
        let state = self.repository_state()?;
        if let Some(vault) = self.lost_vault() {
            let what = match (state, vault.about.private) {
                (RepositoryState::Missing, true) => format!("what was recorded of {place} is gone"),
                (RepositoryState::Missing, false) => {
                    format!("the git repository of {place} is gone")
                }
                _ => format!(
                    "the git repository of {place} is not the one in which its runs were recorded"
                ),
            };
            let back = self.line(Hint::recover(["doctor", "--repair"]));
            let on = self.line(Hint::recover(["trust", "--state"]));
            return Ok(Some(format!(
                "{what}: `{back}` restores it from its vault in {}; if it was removed on purpose, run `{on}`",
                vault.folder().display()
            )));
        }
        Ok(match (state, &self.location.unusable) {
            (RepositoryState::Missing, None) => Some(format!(
                "the git repository of {place} is gone, and its checkpoints with it"
            )),
            (RepositoryState::Replaced, _) => {
                let way = self.line(Hint::recover(["trust", "--state"]));
                Some(format!(
                    "the git repository of {place} is not the one in which its runs were recorded: their checkpoints \
                     are gone; `{way}` goes on recording here"
                ))
            }
            (_, Some(unusable)) => {
                let error = self.locate(GitError::Unusable(Box::new(unusable.clone())).into());
                let way = match error.hint {
                    _ if unusable.is_head_lost() => {
                        "; write into it which branch it is on, as in 'ref: refs/heads/main'"
                            .to_owned()
                    }
                    Some(hint) => format!("; `{hint}` helps"),
                    None => String::new(),
                };
                Some(format!("{}{way}", error.message))
            }
            (_, None) => None,
        })
    }

    /// Whether the project became a git repository after its checkpoints were taken, and they are not in it yet.
    pub(crate) fn has_private(&self) -> bool {
        self.location.has_private
    }

    /// Takes over what the private repository holds from before the project was a git repository, whatever the command: without
    /// it no checkpoint of then can be read. How many that were.
    pub(crate) fn take_over_private(&self) -> Result<Option<usize>> {
        if !self.location.has_private {
            return Ok(None);
        }
        if self.dry_run() {
            let message = "this folder became a git repository after its checkpoints were taken: any command takes them over first";
            return Err(Error::new(Kind::SafeMode, message).hint(Hint::recover(["status"])));
        }
        let repo = self.repo()?;
        let lock = WorktreeLock::acquire(repo, self.lock_timeout())?;
        // Another process may have done it meanwhile.
        if !Repo::has_private(self.store().root(), self.store().dir())? {
            return Ok(None);
        }
        Ok(Some(repo.take_over_private(
            &lock,
            self.store().root(),
            self.store().dir(),
        )?))
    }

    /// The lock of a work tree. In a dry run it is one under which nothing is written.
    pub(crate) fn lock_worktree(&self, repo: &Repo) -> Result<WorktreeLock, GitError> {
        let lock = if self.dry_run() {
            WorktreeLock::rehearse
        } else {
            WorktreeLock::acquire
        };
        lock(repo, self.lock_timeout())
    }

    /// Whether a work tree of this repository is at a place. One that was moved is not: a checkpoint that names it may well
    /// be of this one.
    pub(crate) fn is_worktree_of_repo(&self, place: &FolderId) -> bool {
        let place = place.path();
        let its = Repo::discover(&place, self.home()).ok();
        let its = its.filter(|its| its.workdir() == place);
        its.is_some_and(|its| self.repo().is_ok_and(|repo| its.is_same_repository(repo)))
    }

    /// Whether that is this state directory, as it is recorded.
    pub(crate) fn is_state_dir(&self, place: &FolderId) -> bool {
        let real = |path: &Path| std::fs::canonicalize(path).ok();
        let (own, there) = (self.store().dir(), place.path());
        there == own || real(&there).is_some_and(|there| Some(there) == real(own))
    }

    /// The work trees that are recorded in state which came from elsewhere, or did and is taken over for this call, and are
    /// none of this project: their runs are those of the work tree here. `None` for state that was recorded here. Projects
    /// may share a state directory: while it lies where it was recorded, another one's work tree stays that one's.
    pub(crate) fn brought_from(&self, state: &State) -> Option<BTreeSet<FolderId>> {
        let is_foreign = self.store().origin() != store::Origin::Ours;
        if !is_foreign && !trusts_for_this_call(&self.setup) {
            return None;
        }
        let has_moved = state.places.iter().any(|place| !self.is_state_dir(place));
        if !is_foreign && !has_moved {
            return None;
        }
        let here = self.worktree_id();
        let recorded: BTreeSet<&FolderId> = state.runs.iter().map(|run| &run.worktree).collect();
        let is_elsewhere = |place: &&FolderId| {
            let is_ours = **place == here || self.has_git() && self.is_worktree_of_repo(place);
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

/// The variable that takes state over, and trusts what the project's configuration asks for, for one call.
const TRUST: &str = "RECOVER_TRUST";

/// What of a state directory is `recover`'s own and decides whose it is. Its views are shared with other systems.
const OWN: [&str; 2] = ["events.jsonl", "recover"];

/// Where the ids of our state directories are kept: in the folder that the work trees of a repository share, without one in
/// the user's own. What was made before there was a repository stays known.
pub(super) fn registry(common: Option<&Path>, setup: &Setup) -> Registry {
    Registry::new(common, user_state_home(setup))
}

/// `$XDG_STATE_HOME`, by default `~/.local/state`.
pub(super) fn user_state_home(setup: &Setup) -> Option<PathBuf> {
    let named = (setup.env)("XDG_STATE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    let home = || setup.home.clone().or_else(std::env::home_dir);
    let folder = named.or_else(|| Some(home()?.join(".local").join("state")))?;
    folder.is_absolute().then_some(folder)
}

/// Whether the environment trusts what it finds, for this call.
pub(super) fn trusts_for_this_call(setup: &Setup) -> bool {
    (setup.env)(TRUST).is_some_and(|value| value == "1")
}

/// Finds out whose the state is.
///
/// Ours is what has an id that is known here, unless git brought the ledger since; what the ledger's second copy in the
/// repository shows to be recorded here, also before there were ids and where it was written over; and without git what has no id yet and has captured
/// the files of this very place.
///
/// # Errors
/// The system could not look: nothing is said of whose it is then.
pub(super) fn origin(
    store: &Store,
    repo: Option<&Repo>,
    worktree: &Path,
    setup: &Setup,
) -> Result<Origin> {
    // A supervised agent trusts nothing on the user's behalf, also where the variable is set for the whole job.
    let is_trusted = || trusts_for_this_call(setup) && !is_part_of_attempt(store.dir(), worktree);
    if !store.has_content() || is_trusted() {
        return Ok(Origin::Ours);
    }
    let is_tracked = || repo.is_some_and(|repo| repo.tracks_any(store.dir(), &OWN));
    let is_known = store.has_known_id().map_err(|error| {
        let what = format!(
            "cannot find out whose the state in {} is",
            store.dir().display()
        );
        Error::io(what, error)
    })?;
    let is_ours = is_known && !(store.ledger_path().exists() && is_tracked())
        || store.is_vouched_for(!is_tracked())
        || repo.is_none()
            && !store.is_named()
            && Repo::was_captured_privately(store.root(), store.dir(), worktree);
    Ok(match is_ours {
        true => Origin::Ours,
        false if is_tracked() => Origin::Foreign(Foreign::Tracked),
        false => Origin::Foreign(Foreign::UnknownId),
    })
}

/// Says that the state is only read, where it is another user's.
pub(super) fn warn_if_foreign(context: &Context) {
    if let Origin::Foreign(why) = context.store().origin() {
        let (dir, way) = (
            context.store().dir().display(),
            context.line(Hint::recover(["trust", "--state"])),
        );
        context.warn(format!(
            "the state in {dir} was not created here ({why}): its cooldowns and attempt counts apply, nothing in it \
            is run or changed; `{way}` adopts it"
        ));
    }
}

/// Whether this process is part of an attempt that is about this state directory or this work tree, by its marks alone.
pub(in crate::engine) fn is_part_of_attempt(state_dir: &Path, worktree: &Path) -> bool {
    let [state, tree] = attempt_numbers(state_dir, worktree);
    let all = Mark::all();
    all.iter()
        .any(|(mark, _)| mark.places[0] == state || mark.places[1] == tree)
}

pub(in crate::engine) fn attempt_numbers(state_dir: &Path, worktree: &Path) -> [u32; 2] {
    use std::os::unix::ffi::OsStrExt;
    [state_dir, worktree].map(|place| {
        let place = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
        crc32fast::hash(place.as_os_str().as_bytes())
    })
}

/// `$XDG_CONFIG_HOME/recover/config.toml`, by default below `~/.config`; `None` where neither is set.
fn user_file(setup: &Setup) -> Option<PathBuf> {
    let named = (setup.env)("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute());
    let folder = named.or_else(|| Some(setup.home.as_ref()?.join(".config")))?;
    Some(folder.join("recover").join("config.toml"))
}

/// Reads it; one that is not there says nothing. A link is followed where what it leads to is the user's own: many keep
/// their settings in a repository and link to them.
///
/// # Errors
/// It cannot be read, belongs to another user, or says something without meaning.
pub(super) fn load_user_config(setup: &Setup) -> Result<UserConfig, ConfigError> {
    let Some(path) = user_file(setup) else {
        return Ok(UserConfig::default());
    };
    let wrong = |message: String| wrong(&path, message);
    let is_link = match path.symlink_metadata() {
        Ok(found) => found.is_symlink(),
        // What is no folder on the way holds no file.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(UserConfig::default());
        }
        Err(error) => return Err(wrong(format!("cannot be read: {error}"))),
    };
    let real = std::fs::canonicalize(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound if is_link => wrong("is a broken symbolic link".to_owned()),
        _ => wrong(format!("cannot be read: {error}")),
    })?;
    if let Some(owner) = [&path, &real]
        .into_iter()
        .find_map(|place| owner::foreign(place))
    {
        return Err(wrong(format!("belongs to another user (uid {owner})")));
    }
    let (root, name) = Root::of_file(&real);
    let bytes = root.read_at_most(name.as_ref(), MAX_FILE);
    UserConfig::read(
        &path,
        bytes.map_err(|error| wrong(format!("cannot be read: {error}")))?,
    )
}

/// Has everything masked from now on that is a secret of this process's environment, that `settings` name, or that is
/// `known` from what was recorded.
pub(crate) fn mask_secrets(settings: &RedactSettings, known: Fingerprints) {
    let env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Redactor::new(env, settings, |value| Path::new(value).exists())
        .knowing(known)
        .install();
}
