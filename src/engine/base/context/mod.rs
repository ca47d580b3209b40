//! Where a command works and with what.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use place::{
    Discovered, Location, check_owners, discover, is_home_project, lane_root, last_head, roots,
    task_of_run,
};

use super::clock::{Clock, local_zone};
use super::error::{Error, ErrorKind, Result};
use super::heartbeat;
use super::heartbeat::Heartbeat;
use super::progress::{Progress, ProgressEvent};
use super::runs::{Naming, of_series};
use super::trust::TrustRecord;
use crate::config::{Around, Config, ConfigError, Guarded, UserConfig, is_mask};
use crate::durable::Root;
use crate::git::vault::Vault;
use crate::git::{Error as GitError, Repo};
use crate::model::{FolderId, Hint, ProcessId, RunId, RunKey, Timestamp};
use crate::policy::settings::{DEFAULT_LANE_FILE, SafeMode, Settings};
use crate::process::Interrupts;
use crate::store::{Loaded, Store};

pub(crate) use files::WORKTREES;
pub(crate) use place::mask_secrets;
pub(in crate::engine) use place::plain_path;

mod files;
mod hint;
pub(in crate::engine) mod place;

/// What happens where the project's configuration is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BrokenConfig {
    /// Nothing.
    Refuses,
    /// The file is ignored where something is recorded that one can look at or go back to; what the environment says has
    /// to be right.
    IsLeftOut,
    /// Nothing of it counts.
    IsIgnored,
}

/// What the caller knows; the rest of the [`Context`] is found from it.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(crate) struct Setup {
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
    /// The state directory is there for the moment, so that no command to copy names it; whether another machine holds what it
    /// shows.
    pub shows: Option<bool>,
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

/// Where a command works, what is set for it, and what watches it.
#[derive(Debug)]
pub(crate) struct Context {
    setup: Setup,
    location: Location,
    configuration: Configuration,
    /// The present moment.
    pub clock: Clock,
    /// Requests to stop.
    pub interrupts: Interrupts,
    /// The observer, its requests, and what is said beside the answer; shared by the contexts of a command.
    pub progress: Progress,
    /// Made to plan what a person is asked about: see [`Context::rehearsal`].
    is_rehearsal: bool,
    /// Of a process that supervises something.
    heartbeat: OnceCell<Option<Heartbeat>>,
    /// Of the repository that was here, once it was asked for.
    lost_vault: OnceCell<Option<Vault>>,
}

/// What is set.
#[derive(Debug)]
struct Configuration {
    config: Config,
    /// What the user trusts this project's configuration to start.
    trust: TrustRecord,
    /// Why the user's own configuration is ignored.
    user_problem: Option<ConfigError>,
    /// Why the project's does not.
    project_problem: Option<ConfigError>,
}

/// What is configured, and why the project's file does not count.
fn configured(
    setup: &Setup,
    (files, file, project): (&Root, &Path, &Path),
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
    let task = None;
    let mut without = Around { task, ..around };
    let left = Config::without_file(file, without).or_else(|error| {
        if setup.broken_config != BrokenConfig::IsIgnored {
            return Err(error);
        }
        without.env = &|_| None;
        Config::without_file(file, without)
    });
    let mut config = left?;
    // What was once trusted to be masked stays so.
    config.add_masks(&trust.latest().unwrap_or_default());
    Ok((config, Some(problem)))
}

impl Context {
    /// Finds work tree, state directory and settings.
    pub(crate) fn new(setup: Setup, interrupts: Interrupts) -> Result<Self> {
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

        let (mut config, project_problem) = match &setup.known_config {
            _ if !is_ours => {
                let task = None;
                (
                    Config::without_file(&file, Around { task, ..around })?,
                    None,
                )
            }
            Some(known) => (known.clone(), None),
            None => configured(&setup, (&files, &file, &project), around, (&store, &trust))?,
        };
        let store = store.with_copy(common);
        store.check()?;
        let store = store.with_registry(place::registry(common, &setup));
        let origin = place::origin(&store, found.as_ref(), &worktree, &setup)?;
        let holds = setup.shows == Some(true);
        let store = store.of_origin(origin).of_holder(holds);
        let is_whole = setup.known_config.is_none() && project_problem.is_none();
        if let Some(task) = task_of_run(&setup, &config, &store, &worktree).filter(|_| is_whole) {
            let task = Some(&task);
            config = Config::load(&files, &file, Around { task, ..around })?;
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
        let series = setup.naming.series.as_deref();
        if let Some(series) = series.filter(|_| setup.naming.run_id.is_none() && !setup.begins_run)
        {
            let state = store.load()?.state;
            let latest = of_series(&state, &FolderId::of(&worktree), series);
            // Of one that has none yet the first would have its name.
            let id = latest.map_or_else(|| RunId::from(series), |run| run.key.run_id.clone());
            setup.naming.run_id = Some(id);
        }
        if let Some(unusable) = &mut unusable
            && let Some((head, at)) = last_head(&store, &worktree)
        {
            unusable.remember(&head, at);
        }
        Ok(Self {
            location: Location::new(worktree, found, unusable, store, skipped)?,
            setup,
            configuration: Configuration {
                config,
                trust,
                user_problem,
                project_problem,
            },
            clock: Clock::new(fixed),
            interrupts,
            progress: Progress::default(),
            is_rehearsal: false,
            heartbeat: OnceCell::new(),
            lost_vault: OnceCell::new(),
        })
    }

    /// A context of this place for another thread, with its own view of the repository, to take checkpoints of a run there. What
    /// this one was allowed to do, that one is.
    pub(crate) fn for_run(&self, key: &RunKey) -> Result<Self> {
        let mut setup = self.setup.clone();
        setup.naming.run_id = Some(key.run_id.clone());
        setup.naming.phase = Some(key.phase.clone());
        setup.naming.lane = Some(key.lane.clone());
        setup.yes = true;
        setup.writes = false;
        setup.known_config = Some(self.config().clone());
        Self::new(setup, Interrupts::disconnected())
    }

    /// A context for the same command in another work tree of the repository.
    pub(crate) fn at(&self, folder: &Path) -> Result<Self> {
        let state_dir = self.setup.state_dir.as_ref().map(|_| self.store().dir());
        self.at_state(folder, state_dir)
    }

    /// A context for the same command in another work tree, with its own state directory unless another is named.
    pub(crate) fn at_state(&self, folder: &Path, state_dir: Option<&Path>) -> Result<Self> {
        self.derived(Setup {
            cwd: folder.to_owned(),
            settings_only: false,
            state_dir: state_dir.map(Path::to_owned),
            ..self.setup.clone()
        })
    }

    /// A context of this place which reads what is recorded in a state directory that is there for the moment; another machine
    /// may hold that.
    pub(crate) fn showing(&self, state_dir: PathBuf, is_held: bool) -> Result<Self> {
        self.derived(Setup {
            state_dir: Some(state_dir),
            shows: Some(is_held),
            ..self.setup.clone()
        })
    }

    /// A context of this place in which what this one's configuration asks for is trusted, and nothing that came since.
    pub(crate) fn trusting(&self) -> Result<Self> {
        self.derived(Setup {
            trusted: Some(self.config().guarded().clone()),
            ..self.setup.clone()
        })
    }

    /// Opens what is here anew. The repository is closed before: what a process has open of a pack is what it was.
    pub(crate) fn reopen(&mut self) -> Result<()> {
        drop(self.location.repo.take());
        *self = self.derived(self.setup.clone())?;
        Ok(())
    }

    /// A context of this place in which everything is only planned, as in a dry run.
    pub(crate) fn rehearsal(&self) -> Result<Self> {
        let known_config = Some(self.config().clone());
        let derived = self.derived(Setup {
            known_config,
            ..self.setup.clone()
        })?;
        Ok(Self {
            is_rehearsal: true,
            ..derived
        })
    }

    /// A context of the same command.
    fn derived(&self, setup: Setup) -> Result<Self> {
        Ok(Self {
            progress: self.progress.clone(),
            is_rehearsal: self.is_rehearsal,
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
            let started = Heartbeat::start(self.store(), period);
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
        heartbeat.map_or_else(ProcessId::own, |heartbeat| heartbeat.id().clone())
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

    /// The git remote that was named for the run, else the one that the user's own configuration names.
    pub(crate) fn remote_name(&self) -> Option<String> {
        self.setup
            .remote
            .clone()
            .or_else(|| self.settings().remote.name.clone())
    }

    /// Whether what came with the project, or from a remote, is trusted for this call.
    pub(crate) fn trusts_call(&self) -> bool {
        self.setup.trust || place::trusts_for_this_call(&self.setup)
    }

    /// Whether the remote was named with the command.
    pub(crate) fn names_remote(&self) -> bool {
        self.setup.remote.is_some()
    }

    /// The work tree's root.
    pub(crate) fn worktree(&self) -> &Path {
        &self.location.worktree
    }

    /// The folder that the command was started in.
    pub(crate) fn cwd(&self) -> &Path {
        &self.setup.cwd
    }

    /// The work tree as it is recorded.
    pub(crate) fn worktree_id(&self) -> FolderId {
        FolderId::of(self.worktree())
    }

    /// The state directory as it is recorded.
    pub(crate) fn state_dir_id(&self) -> FolderId {
        FolderId::of(self.store().dir())
    }

    /// The state directory.
    pub(crate) fn store(&self) -> &Store {
        &self.location.store
    }

    /// For a process that is about to end: what was read, and what git's library has open, is left to the system rather than
    /// freed piece by piece.
    pub(crate) fn leave(&mut self) {
        self.location.store.leave();
        std::mem::forget(self.location.repo.take());
    }

    /// Makes a folder in the state directory, with those above it.
    pub(crate) fn create_state_dir(&self, folder: &Path) -> Result<()> {
        let made = self.store().root().create_dir_all(folder);
        Ok(made.with_context(|| format!("cannot create {}", folder.display()))?)
    }

    /// The settings that hold here.
    pub(crate) fn settings(&self) -> &Settings {
        &self.configuration.config.settings
    }

    /// The configuration with its origins.
    pub(crate) fn config(&self) -> &Config {
        &self.configuration.config
    }

    /// What the user trusts the project's configuration to start.
    pub(crate) fn trust_record(&self) -> &TrustRecord {
        &self.configuration.trust
    }

    /// Whether the work tree belongs to a git repository of the user's.
    pub(crate) fn has_git(&self) -> bool {
        self.location.has_git
    }

    /// How the run is named.
    pub(crate) fn naming(&self) -> &Naming {
        &self.setup.naming
    }

    /// Show plans only: asked for, or configured.
    pub(crate) fn dry_run(&self) -> bool {
        self.only_plans() || self.is_rehearsal
    }

    /// Whether nothing but plans is asked of the whole program.
    pub(in crate::engine) fn only_plans(&self) -> bool {
        self.setup.dry_run || self.settings().rollback.safe_mode == SafeMode::DryRun
    }

    /// Whether the project's configuration says something that is ignored, as it cannot be read.
    pub(crate) fn is_config_left_out(&self) -> bool {
        self.configuration.project_problem.is_some()
    }

    /// Says which configuration is broken, where the command can do without.
    pub(crate) fn warn_of_config(&self) {
        let own = "your own configuration is ignored, defaults are used";
        let project = "the project's configuration is ignored, defaults are used, and no run starts until it is fixed";
        let set = &self.configuration;
        for (what, problem) in [(own, &set.user_problem), (project, &set.project_problem)] {
            if let Some(problem) = problem {
                self.warn(format!("{what}: {}", Error::from(problem.clone())));
            }
        }
    }

    /// Says what was passed over: what is another user's, with whose the state is, and a broken configuration.
    pub(crate) fn warn_of_others(&self) {
        self.warn_of_config();
        for (path, owner) in &self.location.skipped {
            self.warn(format!(
                "{} belongs to another user (uid {owner}): it is ignored",
                path.display()
            ));
        }
        let withheld = self.config().withheld();
        if withheld.iter().any(|entry| is_mask(&entry.key)) {
            let way = self.line(Hint::recover(["trust"]));
            self.warn(format!(
                "the project's [redact] masks nothing until it is trusted: {way}"
            ));
        }
        let problem = if self.setup.reads || self.lost_vault().is_some() {
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
    pub(crate) fn warn(&self, text: String) {
        // What is examined again and again is said once.
        self.progress
            .say_once(text, |text| tracing::warn!("{text}"));
    }

    /// Says what was done that nobody asked for, and in the answer's document.
    pub(crate) fn note(&self, text: String) {
        self.progress.say_once(text, self.setup.note);
    }

    /// Whether the command changes what is recorded, or files.
    pub(crate) fn writes(&self) -> bool {
        self.setup.writes
    }

    /// The run that the series comes to which was named.
    pub(crate) fn name_run(&mut self, id: RunId) {
        self.setup.naming.run_id = Some(id);
    }

    /// A person saw what is to be done and said yes.
    pub(crate) fn confirm(&mut self) {
        self.setup.yes = true;
    }

    /// Whether questions are answered with yes.
    pub(crate) fn says_yes(&self) -> bool {
        self.setup.yes
    }

    /// How long to wait for other processes.
    pub(crate) fn lock_timeout(&self) -> Duration {
        self.setup.lock_timeout
    }

    /// The user's home folder, where it is no project.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.setup.refused_home()
    }

    /// The folder of the user's own state.
    pub(crate) fn user_state_home(&self) -> Option<PathBuf> {
        place::user_state_home(&self.setup)
    }

    /// A variable of the environment.
    pub(crate) fn env(&self, name: &str) -> Option<String> {
        (self.setup.env)(name)
    }

    /// The zone of local times, as `TZ` names it.
    pub(crate) fn time_zone(&self) -> Option<String> {
        local_zone(self.env("TZ"))
    }

    /// The session whose budget a run shares.
    pub(crate) fn session(&self, run_id: &RunId) -> String {
        self.setup
            .naming
            .session
            .clone()
            .unwrap_or_else(|| run_id.to_string())
    }

    /// The state as it is, without a lock. What came from elsewhere is about the work tree here.
    pub(crate) fn load(&self) -> Result<Loaded> {
        let mut loaded = self.store().load()?;
        self.take_home(&mut loaded.state);
        Ok(loaded)
    }

    /// Refuses to write a file of the user's in `read_only` (S16): there only what is recover's own is written.
    pub(crate) fn check_writes(&self, what: &str) -> Result<()> {
        if self.settings().rollback.safe_mode == SafeMode::ReadOnly {
            self.check_safe_mode(what)
        } else {
            Ok(())
        }
    }

    /// Refuses what the configured safe mode forbids (S16): anything that changes files in `read_only`, anything that
    /// overwrites or removes without a yes in `conservative`, whether a user asked for it or a failure led to it.
    pub(crate) fn check_safe_mode(&self, what: &str) -> Result<()> {
        match self.settings().rollback.safe_mode {
            SafeMode::ReadOnly if !self.setup.dry_run => {
                let message = format!(
                    "safe_mode = \"read_only\" forbids {what}: RECOVER_SAFE_MODE=off allows it once, [rollback] safe_mode \
                     in .ultraplan/recover.toml for good"
                );
                Err(Error::new(ErrorKind::SafeMode, message).hint(self.rerun(&["--dry-run"])))
            }
            SafeMode::Conservative if !self.says_yes() && !self.dry_run() => {
                let message = format!(
                    "safe_mode = \"conservative\" asks before {what}: pass --yes to continue"
                );
                Err(Error::new(ErrorKind::ConfirmationNeeded, message)
                    .hint(self.rerun(&["--dry-run"])))
            }
            _ => Ok(()),
        }
    }

    /// Neither a repository nor anything recorded: a command that needs one of them has nothing to work on.
    pub(crate) fn require_something(&self) -> Result<()> {
        if self.has_git() || self.store().exists() || !self.store().foreign_views().is_empty() {
            return Ok(());
        }
        if self.unusable().is_some() {
            return self.repo().map(|_| ());
        }
        let place = self.worktree().display();
        let message = format!(
            "no git repository and no state in {place}: cd into your project, or name its folder with -C DIR"
        );
        Err(Error::new(ErrorKind::NoRepository, message).hint(Hint::recover(["run", "--help"])))
    }
}
