//! Where a command works and with what.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;

use super::clock::Clock;
use super::error::{Error, ErrorKind, Result};
use super::heartbeat;
use super::heartbeat::Heartbeat;
use super::progress::{Progress, ProgressEvent};
use super::runs::Naming;
use super::trust::TrustRecord;
use crate::config::{Around, Config, ConfigError, Guarded, UserConfig, is_mask};
use crate::durable::{Root, TemporaryFolder};
use crate::git::base::{RepositoryState, Unusable};
use crate::git::{Error as GitError, Repo, WorktreeLock};
use crate::model::failure::Cause;
use crate::model::hint::Hint;
use crate::model::id::RunId;
use crate::model::manifest::{CaptureRules, Head};
use crate::model::path::FolderId;
use crate::model::run::RunKey;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::policy::settings::{DEFAULT_LANE_FILE, SafeMode, Settings};
use crate::process::{self, Interrupts, ProcessId, Signal, Watchdog};
use crate::store::{Foreign, Loaded, Origin, Store};
use place::{
    Discovered, check_owners, discover, is_home_project, lane_root, project_root, task_of_run,
};

mod hint;
pub(in crate::engine) mod place;

pub(crate) use place::mask_secrets;
pub(in crate::engine) use place::plain_path;

/// What happens where the project's configuration is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BrokenConfig {
    /// Nothing.
    Refuses,
    /// The file does not count where something is recorded that one can look at or go back to; what the environment says has
    /// to be right.
    IsLeftOut,
    /// Nothing of it counts.
    IsIgnored,
}

/// What the caller knows; the rest of the [`Context`] is found from it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Setup {
    /// The folder to work from, absolute.
    pub cwd: PathBuf,
    /// The user's home folder, which is never captured.
    pub home: Option<PathBuf>,
    /// The state directory, where it was named.
    pub state_dir: Option<PathBuf>,
    /// How the run is named.
    pub naming: Naming,
    /// How long to wait for other processes.
    pub lock_timeout: Duration,
    /// The home folder may be a project.
    pub allow_home: bool,
    /// Show plans only.
    pub dry_run: bool,
    /// Answer yes.
    pub yes: bool,
    /// What the project's configuration asks for is trusted for this call.
    pub trust: bool,
    /// What a person was shown of it and trusted for this call.
    pub trusted: Option<Guarded>,
    /// What a broken configuration of the project keeps it from.
    pub broken_config: BrokenConfig,
    /// What was configured when this began: a run keeps that, whatever becomes of the file.
    pub known_config: Option<Config>,
    /// The words of the command line without the program's name, to give it again; `None` where they are no text.
    pub asked: Option<Vec<String>>,
    /// The git remote that keeps the run, where it was named.
    pub remote: Option<String>,
    /// A run that is not named is a new one, whatever else is open here.
    pub begins_run: bool,
    /// It writes: which of several runs it took is said.
    pub writes: bool,
    /// It works with what the user's own configuration says, and fails where that is broken.
    pub needs_user_config: bool,
    /// It works from what is recorded, also where the repository cannot be opened.
    pub reads: bool,
    /// Only the settings are wanted: any folder will do, also one that is no place for a run.
    pub settings_only: bool,
    /// The environment.
    pub env: fn(&str) -> Option<String>,
    /// Says a line beside the answer, for people.
    pub note: fn(&str),
}

impl Setup {
    /// The folder that is refused as a project, with those above it.
    fn refused_home(&self) -> Option<&Path> {
        self.home.as_deref().filter(|_| !self.allow_home)
    }
}

/// Where a command works and with what.
#[derive(Debug)]
pub struct Context {
    setup: Setup,
    /// The work tree's root.
    worktree: PathBuf,
    /// Whether the work tree belongs to a git repository of the user's that can be used.
    has_git: bool,
    /// The one that it belongs to and that cannot be.
    unusable: Option<Unusable>,
    repo: OnceCell<Repo>,
    /// The project became a git repository after its checkpoints were taken: they are still in the private one.
    has_private: bool,
    /// Where the private repository is of a dry run, or where the state is only read; removed at the end.
    scratch: OnceCell<TemporaryFolder>,
    store: Store,
    config: Config,
    /// What the user trusts this project's configuration to start.
    trust: TrustRecord,
    /// Why the user's own configuration does not count.
    user_problem: Option<ConfigError>,
    /// Why the project's does not.
    project_problem: Option<ConfigError>,
    /// The present moment.
    pub clock: Clock,
    /// Requests to stop.
    pub interrupts: Interrupts,
    /// Progress observer and its interactive requests.
    pub progress: Progress,
    /// A request to stop that came when a restore was nearly done.
    pub stopped_late: Cell<Option<Signal>>,
    /// Where something would have been sent without consent.
    pub consent_url: RefCell<Option<String>>,
    /// Made to plan what a person is asked about: see [`Context::rehearsal`].
    is_rehearsal: bool,
    /// What was passed over because it is somebody else's, with its owner.
    skipped: Vec<(PathBuf, u32)>,
    /// What was warned of so far, by this and its rehearsals.
    warnings: Arc<Mutex<Vec<String>>>,
    /// Failures that this process saw and charged since the subtask's last success: whatever becomes of the ledger
    /// meanwhile, they count for what this process does.
    pub(in crate::engine) witnessed: RefCell<Vec<(String, Cause)>>,
    /// Of a run that this process drives and that lies on a remote: ends the agent when the claim is too old, or when this
    /// process is gone.
    pub(in crate::engine) watchdog: RefCell<Option<Arc<Watchdog>>>,
    /// The number of the claim under which processes are started, for systems that can compare it; it rises with each claim of
    /// a run.
    pub(in crate::engine) fencing: Cell<Option<u64>>,
    /// Of a process that supervises something.
    heartbeat: OnceCell<Option<Heartbeat>>,
}

/// Where a project's configuration is.
#[derive(Clone, Copy)]
struct Places<'a> {
    files: &'a Root,
    file: &'a Path,
    project: &'a Path,
}

/// The roots of the work tree and of the project.
fn roots(
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
fn last_head(store: &Store, worktree: &Path) -> Option<(Head, Timestamp)> {
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

/// What is configured, and why the project's file does not count.
fn configured(
    setup: &Setup,
    Places {
        files,
        file,
        project,
    }: Places<'_>,
    around: Around<'_>,
    (store, trust): (&Store, &TrustRecord),
) -> Result<(Config, Option<ConfigError>)> {
    let loaded = Config::load(files, file, around);
    let problem = match loaded.and_then(|config| lane_root(&config, project).map(|_| config)) {
        Ok(config) => return Ok((config, None)),
        Err(problem) => problem,
    };
    let may_go_without = match setup.broken_config {
        BrokenConfig::Refuses => false,
        BrokenConfig::IsLeftOut => store.exists(),
        BrokenConfig::IsIgnored => true,
    };
    if !may_go_without || problem.refused.is_some() {
        return Err(problem.into());
    }
    let without = Around {
        task: None,
        ..around
    };
    let mut config = match Config::without_file(file, without) {
        Err(_) if setup.broken_config == BrokenConfig::IsIgnored => Config::without_file(
            file,
            Around {
                env: &|_| None,
                ..without
            },
        ),
        left => left,
    }?;
    // What was once trusted to be masked stays so.
    config.add_masks(&trust.latest().unwrap_or_default());
    Ok((config, Some(problem)))
}

impl Context {
    /// Finds work tree, state directory and settings.
    pub fn new(setup: Setup, interrupts: Interrupts) -> Result<Self> {
        let start = setup.cwd.clone();
        Self::find(setup, interrupts).map_err(|error| hint::explained(error, &start))
    }

    fn find(mut setup: Setup, interrupts: Interrupts) -> Result<Self> {
        let mut skipped = Vec::new();
        setup.allow_home = is_home_project(&setup);
        let (found, mut unusable) = match discover(&setup, &mut skipped)? {
            Discovered::Nothing => (None, None),
            Discovered::Repository(repo) => (Some(*repo), None),
            Discovered::Unusable(unusable) => (None, Some(*unusable)),
        };
        let has_git = found.is_some();
        let (worktree, project) = roots(&setup, found.as_ref(), unusable.as_ref(), &mut skipped)?;
        let state_dir = match &setup.state_dir {
            Some(dir) => plain_path(&setup.cwd.join(dir)),
            None => project.join(".ultraplan").join("state"),
        };
        let is_ours = match check_owners(&worktree, &project, &state_dir) {
            Err(GitError::ForeignOwner { path, owner, .. }) if setup.settings_only => {
                skipped.push((path, owner));
                false
            }
            checked => checked.map(|()| true)?,
        };
        let name = Path::new(".ultraplan").join("recover.toml");
        // What stands there and is no file is refused when it is read.
        let has_own = !matches!(Root::shared(&worktree).kind(&name), Ok(None));
        let files = Root::shared(if has_own { &worktree } else { &project });
        let file = files.path().join(name);
        let (user, user_problem) = match place::load_user_config(&setup) {
            Err(error) if !setup.needs_user_config => (UserConfig::default(), Some(error)),
            loaded => (loaded?, None),
        };
        let of_unusable = unusable
            .as_ref()
            .and_then(|unusable| unusable.common_dir.as_deref());
        let common = found.as_ref().map(Repo::common_dir).or(of_unusable);
        let subject = plain_path(common.unwrap_or(&project));
        let trust = TrustRecord::new(place::user_state_home(&setup), subject, common);
        let trusts = |values: &Guarded| {
            // Within an attempt, too: its call starts what the agent could start itself, and remembers nothing.
            setup.trust
                || setup.trusted.as_ref() == Some(values)
                || place::trusts_for_this_call(&setup)
                || trust.holds(values)
        };
        let around = Around {
            env: &setup.env,
            user: &user,
            task: setup.naming.task.as_ref(),
            trusts: &trusts,
        };
        let store = match &setup.state_dir {
            Some(dir) => Store::new(plain_path(&setup.cwd.join(dir)), setup.lock_timeout),
            None => Store::of_project(&project, setup.lock_timeout),
        };
        let places = Places {
            files: &files,
            file: &file,
            project: &project,
        };
        let (mut config, project_problem) = match &setup.known_config {
            _ if !is_ours => (
                Config::without_file(
                    &file,
                    Around {
                        task: None,
                        ..around
                    },
                )?,
                None,
            ),
            Some(known) => (known.clone(), None),
            None => configured(&setup, places, around, (&store, &trust))?,
        };
        let store = store.with_copy(common);
        store.check()?;
        let store = store.with_registry(place::registry(common, &setup));
        let origin = place::origin(&store, found.as_ref(), &worktree, &setup)?;
        let store = store.of_origin(origin);
        let is_whole = setup.known_config.is_none() && project_problem.is_none();
        if let Some(task) = task_of_run(&setup, &config, &store, &worktree).filter(|_| is_whole) {
            config = Config::load(
                &files,
                &file,
                Around {
                    task: Some(&task),
                    ..around
                },
            )?;
        }
        mask_secrets(&config.settings.redact, store.known_secrets());
        let fixed = (setup.env)("RECOVER_TEST_NOW").and_then(|text| text.parse::<Timestamp>().ok());
        // The default is the state directory's, wherever that is.
        let store = match config.settings.checkpoint.lane_file.as_str() {
            DEFAULT_LANE_FILE => store,
            file => {
                let root = lane_root(&config, &project)?;
                store.with_lane_file(root, project.join(file))
            }
        };
        let repo = OnceCell::new();
        if let Some(found) = found {
            // The cell is new: there is nothing in it to give back.
            let _ = repo.set(found);
        }
        if let Some(unusable) = &mut unusable
            && let Some((head, at)) = last_head(&store, &worktree)
        {
            unusable.remember(&head, at);
        }
        Ok(Self {
            setup,
            worktree,
            has_git,
            unusable,
            // Of what a clone brought nothing is taken over.
            has_private: has_git
                && store.origin() == Origin::Ours
                && Repo::has_private(store.root(), store.dir())?,
            repo,
            scratch: OnceCell::new(),
            store,
            config,
            trust,
            user_problem,
            project_problem,
            clock: Clock::new(fixed),
            interrupts,
            progress: Progress::default(),
            stopped_late: Cell::new(None),
            consent_url: RefCell::default(),
            is_rehearsal: false,
            skipped,
            warnings: Arc::default(),
            witnessed: RefCell::default(),
            watchdog: RefCell::default(),
            fencing: Cell::default(),
            heartbeat: OnceCell::new(),
        })
    }

    /// A context of this place for another thread, with its own view of the repository, to take checkpoints of a run there. What
    /// this one was allowed to do, that one is.
    pub fn for_run(&self, key: &RunKey) -> Result<Self> {
        let mut setup = self.setup.clone();
        setup.naming.run_id = Some(key.run_id.clone());
        setup.naming.phase = Some(key.phase.clone());
        setup.naming.lane = Some(key.lane.clone());
        setup.yes = true;
        setup.writes = false;
        setup.known_config = Some(self.config.clone());
        Self::new(setup, Interrupts::disconnected())
    }

    /// A context for the same command in another work tree of the repository.
    pub fn at(&self, folder: &Path) -> Result<Self> {
        let state_dir = self
            .setup
            .state_dir
            .as_ref()
            .map(|_| self.store.dir().to_owned());
        let setup = Setup {
            cwd: folder.to_owned(),
            state_dir,
            ..self.setup.clone()
        };
        let (warnings, is_rehearsal) = (Arc::clone(&self.warnings), self.is_rehearsal);
        Ok(Self {
            is_rehearsal,
            warnings,
            ..Self::new(setup, self.interrupts.clone())?
        })
    }

    /// A context of this place in which what this one's configuration asks for is trusted, and nothing that came since.
    pub fn trusting(&self) -> Result<Self> {
        let setup = Setup {
            trusted: Some(self.config.guarded().clone()),
            ..self.setup.clone()
        };
        let warnings = Arc::clone(&self.warnings);
        let is_rehearsal = self.is_rehearsal;
        Ok(Self {
            is_rehearsal,
            warnings,
            ..Self::new(setup, self.interrupts.clone())?
        })
    }

    /// A context of this place as it is now.
    pub fn reopened(&self) -> Result<Self> {
        let warnings = Arc::clone(&self.warnings);
        Ok(Self {
            warnings,
            ..Self::new(self.setup.clone(), self.interrupts.clone())?
        })
    }

    /// A context of this place in which everything is only planned, as in a dry run.
    pub fn rehearsal(&self) -> Result<Self> {
        let setup = Setup {
            known_config: Some(self.config.clone()),
            ..self.setup.clone()
        };
        let warnings = Arc::clone(&self.warnings);
        Ok(Self {
            is_rehearsal: true,
            warnings,
            ..Self::new(setup, self.interrupts.clone())?
        })
    }

    /// The id by which this process is recorded as a supervisor; from now on it has a heartbeat.
    pub(in crate::engine) fn supervisor_id(&self) -> ProcessId {
        let start = || {
            // For tests: milliseconds.
            let period = self
                .env("RECOVER_TEST_HEARTBEAT")
                .and_then(|text| text.parse().ok());
            let period = period.map_or(heartbeat::PERIOD, Duration::from_millis);
            let started = Heartbeat::start(&self.store, period);
            started
                .inspect_err(|error| tracing::debug!(%error, "there is no heartbeat"))
                .ok()
        };
        let heartbeat = self.heartbeat.get_or_init(start).as_ref();
        if heartbeat.is_some_and(|heartbeat| !heartbeat.has_lock) {
            self.note(
                "the file system of the state directory has no file locks (flock): a run that is killed counts as alive \
                 for up to 90 s"
                    .to_owned(),
            );
        }
        heartbeat.map_or_else(process::own_id, |heartbeat| heartbeat.id().clone())
    }

    /// Refuses to go on with `key` where another process took this one for dead and has it now (11).
    pub(in crate::engine) fn refuse_replaced(&self, key: &RunKey) -> Result<()> {
        if !self
            .heartbeat
            .get()
            .and_then(Option::as_ref)
            .is_some_and(Heartbeat::is_replaced)
        {
            return Ok(());
        }
        let message = format!(
            "this process was suspended, and another recover recorded run {key} as crashed meanwhile: nothing more is done"
        );
        Err(Error::new(ErrorKind::Locked, message).hint(Hint::recover(["status"]).run(key)))
    }

    /// The causes of the failures of a subtask that this process saw.
    pub(in crate::engine) fn witnessed_at(&self, subtask: &str) -> Vec<Cause> {
        let all = self.witnessed.borrow();
        all.iter()
            .filter(|(of, _)| of == subtask)
            .map(|(_, cause)| *cause)
            .collect()
    }

    /// The git remote that was named for the run, else the one that the user's own configuration names.
    pub fn remote_name(&self) -> Option<String> {
        self.setup
            .remote
            .clone()
            .or_else(|| self.settings().remote.name.clone())
    }

    /// Whether what came with the project, or from a remote, is trusted for this call.
    pub fn trusts_call(&self) -> bool {
        self.setup.trust || place::trusts_for_this_call(&self.setup)
    }

    /// Whether the remote was named with the command.
    pub fn names_remote(&self) -> bool {
        self.setup.remote.is_some()
    }

    /// The work tree's root.
    pub fn worktree(&self) -> &Path {
        &self.worktree
    }

    /// The folder that the command was started in.
    pub fn cwd(&self) -> &Path {
        &self.setup.cwd
    }

    /// The work tree as it is recorded.
    pub fn worktree_id(&self) -> FolderId {
        FolderId::of(&self.worktree)
    }

    /// The state directory as it is recorded.
    pub fn state_dir_id(&self) -> FolderId {
        FolderId::of(self.store.dir())
    }

    /// The state directory.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// For a process that is about to end: what was read, and what git's library has open, is left to the system rather than
    /// freed piece by piece.
    pub fn leave(&mut self) {
        self.store.leave();
        std::mem::forget(self.repo.take());
    }

    /// Makes a folder in the state directory, with those above it.
    pub fn create_state_dir(&self, folder: &Path) -> Result<()> {
        let made = self.store.root().create_dir_all(folder);
        Ok(made.with_context(|| format!("cannot create {}", folder.display()))?)
    }

    /// The settings that hold here.
    pub fn settings(&self) -> &Settings {
        &self.config.settings
    }

    /// The configuration with its origins.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What the user trusts the project's configuration to start.
    pub fn trust_record(&self) -> &TrustRecord {
        &self.trust
    }

    /// The repository: the user's, else a private one in the state directory, which is made now.
    pub fn repo(&self) -> Result<&Repo> {
        if let Some(repo) = self.repo.get() {
            return Ok(repo);
        }
        if let Some(unusable) = &self.unusable {
            return Err(GitError::Unusable(Box::new(unusable.clone())).into());
        }
        let home = self.setup.home.as_deref();
        // What is only rehearsed is done next: that one is made for good. Nothing is made in somebody else's state.
        let makes = !self.only_plans() && self.store.origin() == Origin::Ours;
        let has_one = Repo::has_private(self.store.root(), self.store.dir())?;
        let for_good = makes || has_one;
        let private = if for_good {
            if makes {
                self.store.create_dirs()?;
            }
            Repo::private(self.store.root(), self.store.dir(), &self.worktree, home)?
        } else {
            // What is captured is kept elsewhere.
            let scratch = TemporaryFolder::new().context("cannot make a temporary folder")?;
            let private = Repo::private(
                &Root::own(scratch.path()),
                scratch.path(),
                &self.worktree,
                home,
            )?;
            self.scratch.get_or_init(|| scratch);
            private
        };
        Ok(self.repo.get_or_init(|| private))
    }

    /// The repository of this work tree, where it cannot be used.
    pub fn unusable(&self) -> Option<&Unusable> {
        self.unusable.as_ref()
    }

    /// Whether the repository that holds what is recorded here can be used.
    pub fn repository_state(&self) -> Result<RepositoryState> {
        if let Some(unusable) = &self.unusable {
            return Ok(unusable.state());
        }
        let is_recorded_here = |state: &State| {
            !state.checkpoints.is_empty()
                && state.places.iter().any(|place| self.is_state_dir(place))
        };
        let is_unknown = self.store.origin() == Origin::Foreign(Foreign::UnknownId);
        Ok(match self.has_git {
            true if is_unknown && is_recorded_here(&self.store.load()?.state) => {
                RepositoryState::Replaced
            }
            false
                if !Repo::has_private(self.store.root(), self.store.dir())?
                    && is_recorded_here(&self.store.load()?.state) =>
            {
                RepositoryState::Missing
            }
            _ => RepositoryState::Ok,
        })
    }

    /// Says what is wrong with the repository that holds what is recorded here, and what helps.
    pub fn repository_problem(&self) -> Result<Option<String>> {
        let place = self.worktree.display();
        Ok(match (self.repository_state()?, &self.unusable) {
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
    pub fn has_private(&self) -> bool {
        self.has_private
    }

    /// Takes over what the private repository holds from before the project was a git repository, whatever the command: without
    /// it no checkpoint of then can be read. How many that were.
    pub fn take_over_private(&self) -> Result<Option<usize>> {
        if !self.has_private {
            return Ok(None);
        }
        if self.dry_run() {
            let message = "this folder became a git repository after its checkpoints were taken: any command takes them over first";
            return Err(Error::new(ErrorKind::SafeMode, message).hint(Hint::recover(["status"])));
        }
        let repo = self.repo()?;
        let lock = WorktreeLock::acquire(repo, self.lock_timeout())?;
        // Another process may have done it meanwhile.
        if !Repo::has_private(self.store.root(), self.store.dir())? {
            return Ok(None);
        }
        Ok(Some(repo.take_over_private(
            &lock,
            self.store.root(),
            self.store.dir(),
        )?))
    }

    /// Whether the work tree belongs to a git repository of the user's.
    pub fn has_git(&self) -> bool {
        self.has_git
    }

    /// How the run is named.
    pub fn naming(&self) -> &Naming {
        &self.setup.naming
    }

    /// Show plans only: asked for, or configured.
    pub fn dry_run(&self) -> bool {
        self.only_plans() || self.is_rehearsal
    }

    /// Whether nothing but plans is asked of the whole program.
    pub(in crate::engine) fn only_plans(&self) -> bool {
        self.setup.dry_run || self.settings().rollback.safe_mode == SafeMode::DryRun
    }

    /// The lock of a work tree. In a dry run it is one under which nothing is written.
    pub fn lock_worktree(&self, repo: &Repo) -> Result<WorktreeLock, GitError> {
        let lock = if self.dry_run() {
            WorktreeLock::rehearse
        } else {
            WorktreeLock::acquire
        };
        lock(repo, self.lock_timeout())
    }

    /// Whether the project's configuration says something that does not count, as it cannot be read.
    pub fn is_config_left_out(&self) -> bool {
        self.project_problem.is_some()
    }

    /// Says which configuration is broken, where the command can do without.
    pub fn warn_of_config(&self) {
        let own = "your own configuration does not count, the defaults do";
        let project = "the project's configuration does not count, the defaults do, and no run starts until it is mended";
        for (what, problem) in [(own, &self.user_problem), (project, &self.project_problem)] {
            if let Some(problem) = problem {
                self.warn(format!("{what}: {}", Error::from(problem.clone())));
            }
        }
    }

    /// Says what was passed over: what is somebody else's, with whose the state is, and a broken configuration.
    pub fn warn_of_others(&self) {
        self.warn_of_config();
        for (path, owner) in &self.skipped {
            self.warn(format!(
                "{} belongs to another user (uid {owner}): it is ignored",
                path.display()
            ));
        }
        if self
            .config
            .withheld()
            .iter()
            .any(|entry| is_mask(&entry.key))
        {
            let way = self.line(Hint::recover(["trust"]));
            self.warn(format!(
                "the project's [redact] masks nothing until it is trusted: {way}"
            ));
        }
        let problem = if self.setup.reads {
            self.repository_problem().unwrap_or_default()
        } else {
            None
        };
        match problem {
            Some(problem) => self.warn(problem),
            None if !self.setup.settings_only => place::warn_if_foreign(self),
            None => {}
        }
    }

    /// Reports progress to the observer.
    pub(in crate::engine) fn emit(&self, event: ProgressEvent<'_>) {
        self.progress.emit(self.clock.now(), event);
    }

    /// Warns on stderr, and in the answer's document.
    pub fn warn(&self, text: String) {
        // What is examined again and again is said once.
        let mut warnings = self.locked_warnings();
        if !warnings.contains(&text) {
            tracing::warn!("{text}");
            warnings.push(text);
        }
    }

    /// Says what was done that nobody asked for, and in the answer's document.
    pub fn note(&self, text: String) {
        let mut warnings = self.locked_warnings();
        if !warnings.contains(&text) {
            (self.setup.note)(&text);
            warnings.push(text);
        }
    }

    /// Whether the command changes what is recorded, or files.
    pub fn writes(&self) -> bool {
        self.setup.writes
    }

    /// What was warned of so far.
    pub fn warnings(&self) -> Vec<String> {
        self.locked_warnings().clone()
    }

    fn locked_warnings(&self) -> MutexGuard<'_, Vec<String>> {
        self.warnings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A person saw what is to be done and said yes.
    pub fn confirm(&mut self) {
        self.setup.yes = true;
    }

    /// Whether questions are answered with yes.
    pub fn says_yes(&self) -> bool {
        self.setup.yes
    }

    /// How long to wait for other processes.
    pub fn lock_timeout(&self) -> Duration {
        self.setup.lock_timeout
    }

    /// The user's home folder, where it is no project.
    pub fn home(&self) -> Option<&Path> {
        self.setup.refused_home()
    }

    /// The folder of the user's own state.
    pub fn user_state_home(&self) -> Option<PathBuf> {
        place::user_state_home(&self.setup)
    }

    /// A variable of the environment.
    pub fn env(&self, name: &str) -> Option<String> {
        (self.setup.env)(name)
    }

    /// The session whose budget a run shares.
    pub fn session(&self, run_id: &RunId) -> String {
        self.setup
            .naming
            .session
            .clone()
            .unwrap_or_else(|| run_id.to_string())
    }

    /// What a capture takes: the configured rules, and never what is ours: the state directory and the lane records.
    pub fn capture_rules(&self) -> CaptureRules {
        let settings = &self.settings().checkpoint;
        // Without an index everything is untracked.
        let factor = if self.has_git { 1 } else { 10 };
        CaptureRules {
            max_file_size: settings.max_file_size.saturating_mul(factor),
            max_untracked_files: settings.max_untracked_files.saturating_mul(factor),
            max_untracked_bytes: settings.max_untracked_bytes.saturating_mul(factor),
            include: settings.include.clone(),
            exclude: settings.exclude.clone(),
            editor_temp_globs: Vec::new(),
            excluded_dirs: vec![
                self.store.dir().to_owned(),
                self.store.lane_file().to_owned(),
            ],
            publish_incrementally: false,
            tracked_only: self.setup.allow_home,
            before: None,
        }
    }

    /// Globs of ignored files that are copied beside the checkpoints; none in CI, where what such files hold is the machine's.
    pub fn precious(&self) -> Vec<String> {
        if self.env("CI").is_some() {
            Vec::new()
        } else {
            self.settings().capture.precious.clone()
        }
    }

    /// The state as it is, without a lock. What came from elsewhere is about the work tree here.
    pub fn load(&self) -> Result<Loaded> {
        let mut loaded = self.store.load()?;
        self.take_home(&mut loaded.state);
        Ok(loaded)
    }

    /// Refuses to write a file of the user's in `read_only` (S16): there only what is recover's own is written.
    pub fn check_writes(&self, what: &str) -> Result<()> {
        if self.settings().rollback.safe_mode == SafeMode::ReadOnly {
            self.check_safe_mode(what)
        } else {
            Ok(())
        }
    }

    /// Refuses what the configured safe mode forbids (S16): anything that changes files in `read_only`, anything that
    /// overwrites or removes without a yes in `conservative`, whether somebody asked for it or a failure led to it.
    pub fn check_safe_mode(&self, what: &str) -> Result<()> {
        match self.settings().rollback.safe_mode {
            SafeMode::ReadOnly if !self.setup.dry_run => {
                let message = format!(
                    "safe_mode = \"read_only\" forbids {what}: RECOVER_SAFE_MODE=off allows it once, [rollback] safe_mode \
                     in .ultraplan/recover.toml for good"
                );
                Err(Error::new(ErrorKind::SafeMode, message).hint(self.rerun(&["--dry-run"])))
            }
            SafeMode::Conservative if !self.says_yes() && !self.dry_run() => {
                let message =
                    format!("safe_mode = \"conservative\" asks before {what}: --yes allows it");
                Err(Error::new(ErrorKind::ConfirmationNeeded, message)
                    .hint(self.rerun(&["--dry-run"])))
            }
            _ => Ok(()),
        }
    }

    /// Neither a repository nor anything recorded: a command that needs one of them has nothing to work on.
    pub fn require_something(&self) -> Result<()> {
        if self.has_git || self.store.exists() || !self.store.foreign_views().is_empty() {
            return Ok(());
        }
        if self.unusable.is_some() {
            return self.repo().map(|_| ());
        }
        let place = self.worktree.display();
        let message = format!(
            "no git repository and no state in {place}: cd into your project, or name its folder with -C DIR"
        );
        Err(Error::new(ErrorKind::NoRepository, message).hint(Hint::recover(["run", "--help"])))
    }
}
