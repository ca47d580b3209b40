//! Work trees that are a run's own: linked ones in the user's state folder, made, reached, removed and made again.
//!
//! What the user does meanwhile and what the run does never meet. The ledger is the repository's, as for every linked work
//! tree. A lock file beside its folder is held while one is made: what a kill leaves of one that no run knows of is removed by
//! the next command that writes. One is removed only once all that is in it, but for what git ignores, is in a checkpoint, by
//! which it comes back.

pub(crate) mod lanes;
pub(crate) mod worker;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use crate::durable::{FileLock, Root, Sync, present};
use crate::engine::base::runs::{self, driver, run_of};
use crate::engine::base::{Context, Error, ErrorKind, Result, WORKTREES};
use crate::engine::record::checkpoint;
use crate::engine::record::storage::Request;
use crate::engine::{recovery, trust};
use crate::git::Repo;
use crate::model::checkpoint::trigger;
use crate::model::spec::Isolated;
use crate::model::{CheckpointId, FolderId, Hint, ObjectId, RepoPath, Run, RunKey, State};
use crate::os::own_program;
use crate::process::{Program, Show, Supervised};

/// What the name of a lock begins with. It is there while a work tree is made, and until its run is recorded.
const LOCK: &str = ".lock-";
/// What the name of the note begins with that a work tree is being made again.
const BACK: &str = ".back-";
/// What the name of a work tree begins with that is being removed.
const REMOVED: &str = ".removed-";

/// How a work tree is begun.
#[derive(Clone, Debug, Default)]
pub(crate) struct How {
    /// The commit that it begins at, without what is uncommitted; `None` for HEAD.
    pub from: Option<String>,
    /// Whether what is uncommitted stays behind.
    pub clean: bool,
    /// Where the output of the setup is shown.
    pub show: Show,
}

/// What a command needs of the work tree that its run has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing: where it was removed, the command works elsewhere.
    None,
    /// Its files.
    Files,
    /// The branch that it was on, too: what `accept` began goes with it.
    Branch,
}

/// A work tree that was made for a run.
pub(crate) struct Begun {
    /// The command, in that work tree.
    pub context: Context,
    /// What is recorded of it.
    pub isolated: Isolated,
    lock: FileLock,
}

impl Begun {
    /// Once the run has ended, or was refused: then its work tree goes.
    pub(crate) fn settle(self, home: &Context) -> Result<()> {
        drop(self.lock);
        sweep(home)
    }
}

/// Where the work trees of a repository are: the user's state folder, and the folder in it.
struct Place {
    root: Root,
    folder: PathBuf,
}

impl Place {
    /// `None` where there is no home folder.
    fn of(context: &Context) -> Option<Self> {
        let (repo, root) = (context.git()?, context.user_state()?);
        let main = repo.main_worktree();
        let name = main.file_name().unwrap_or_default().to_string_lossy();
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || "-_".contains(c) {
                c
            } else {
                '_'
            }
        };
        let name: String = name.chars().map(plain).collect();
        // Another state directory has other runs.
        let whose = [repo.common_dir(), context.store().dir()]
            .map(|path| path.as_os_str().as_encoded_bytes());
        let folder =
            Path::new(WORKTREES).join(format!("{name}-{:08x}", crc32fast::hash(&whose.join(&0))));
        Some(Self { root, folder })
    }

    fn part(&self, before: &str, name: &str) -> PathBuf {
        self.folder.join(format!("{before}{name}"))
    }

    /// The folder of a work tree.
    fn worktree(&self, name: &str) -> PathBuf {
        self.root.path().join(self.part("", name))
    }

    fn lock(&self, name: &str) -> Result<FileLock> {
        let made = self.root.create_dir_all(&self.folder);
        made.map_err(|error| Error::cannot("create", &self.root.path().join(&self.folder), error))?;
        Ok(FileLock::acquire(
            &self.root,
            &self.part(LOCK, name),
            Duration::ZERO,
        )?)
    }

    /// Whether there is, or may be, anything in a work tree but the file that makes it one.
    fn has_files(&self, name: &str) -> bool {
        let found = present(self.root.list(&self.part("", name)));
        found.map_or(true, |found| {
            found.into_iter().flatten().any(|(name, _)| name != ".git")
        })
    }

    /// Removes a work tree with all that is noted of it: it is out of git's sight at once.
    fn remove(&self, repo: &Repo, name: &str) -> Result<()> {
        let (own, gone) = (self.part("", name), self.part(REMOVED, name));
        let cannot = |error| Error::cannot("remove", &self.worktree(name), error);
        present(self.root.rename(&own, &gone)).map_err(cannot)?;
        repo.forget_linked(&self.worktree(name))?;
        present(self.root.remove_dir_all(&gone)).map_err(cannot)?;
        for note in [BACK, LOCK] {
            present(self.root.remove_file(&self.part(note, name))).map_err(cannot)?;
        }
        // Folders that hold others stay.
        for folder in self.folder.ancestors().take(2) {
            let _ = self.root.remove_dir(folder);
        }
        Ok(())
    }
}

/// Makes a work tree for the run that the command begins, with what is uncommitted here, and what is configured for it.
///
/// # Errors
/// There is no commit yet (2); the run is there (2), or its branch; the configuration is not trusted, or shares or copies a
/// link (13); the setup fails (1). Nothing of it stays.
pub(crate) fn begin(context: &mut Context, how: &How) -> Result<Begun> {
    let (key, commit) = requirements(context, how)?;
    context.name_run(key.run_id.clone());
    let (repo, state) = (context.repo()?, context.load()?.state);
    let place = place(context)?;
    let name = name_of(context, &key);
    let branch = Repo::branch_of_run(&name);
    if state.run(&key).is_some() || repo.resolve_ref(&branch).is_some() {
        let message = format!(
            "there is a run {key} already, or a branch recover/{name}: choose another name with --run"
        );
        let list = Hint::recover(["runs", "--all"]);
        return Err(Error::new(ErrorKind::AlreadyExists, message).hint(list));
    }
    let lock = place.lock(&name)?;
    let folder = place.worktree(&name);
    repo.add_linked(&checkpoint::lock(context)?, (&folder, &branch), &commit)?;
    let made = fill(context, how, &folder)
        .and_then(|there| furnish(context, there.worktree(), how.show).map(|()| there));
    let there = made.inspect_err(|_| {
        let lock = checkpoint::lock(context);
        let removed = place.remove(repo, &name);
        let removed =
            removed.and_then(|()| Ok(repo.delete_refs(&lock?, std::slice::from_ref(&branch))?));
        if let Err(error) = removed {
            tracing::warn!(%error, "the work tree that was begun is still there");
        }
    })?;
    Ok(Begun {
        isolated: Isolated {
            home: context.worktree_id(),
            onto: repo.head()?.branch,
            branch,
        },
        context: there,
        lock,
    })
}

/// What can be refused before anything is made: the run that is begun, and the commit that its work tree begins at.
pub(crate) fn requirements(context: &Context, how: &How) -> Result<(RunKey, ObjectId)> {
    let Some(repo) = context.git() else {
        let message = "--isolated makes a work tree of a git repository, and there is none here";
        return Err(Error::new(ErrorKind::NoRepository, message).hint(Hint::git(["init"])));
    };
    trust::require(context, |key| key.starts_with("isolated."))?;
    let naming = context.naming();
    let id = match &naming.run_id {
        Some(id) => id.clone(),
        None => runs::new_run_id("run", context.clock.now(), &context.load()?.state),
    };
    let key = RunKey::new(id, naming.phase.as_deref(), naming.lane.as_deref());
    let commit = match &how.from {
        Some(revision) => repo.commit_of(revision).map_err(|error| {
            let message = format!("--from {revision}: {error}");
            Error::new(ErrorKind::Usage, message).hint(Hint::git(["branch", "--all"]))
        })?,
        None => repo.head()?.commit.ok_or_else(|| {
            let message = "--isolated begins at a commit, and there is none yet";
            Error::new(ErrorKind::Usage, message).hint(Hint::git(["commit"]))
        })?,
    };
    Ok((key, commit))
}

fn place(context: &Context) -> Result<Place> {
    Place::of(context).ok_or_else(|| {
        let message = "there is no home folder to make a work tree in: set XDG_STATE_HOME";
        Error::new(ErrorKind::Failed, message)
    })
}

/// The name of a run's work tree.
fn name_of(context: &Context, key: &RunKey) -> String {
    let folder = context.store().run_dir(key);
    folder
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Writes the files of a new work tree, and opens it.
fn fill(context: &Context, how: &How, folder: &Path) -> Result<Context> {
    let there = context.at(folder)?;
    let repo = there.repo()?;
    if how.clean || how.from.is_some() {
        repo.check_out_all()?;
    } else {
        let prepared = checkpoint::prepare_first(context)?;
        context
            .repo()?
            .copy_captured(&prepared.capture.snapshot()?, folder)?;
        drop(prepared);
        repo.read_into_index(None)?;
    }
    open(context, folder)
}

/// Opens a work tree where the command was called: in the same folder below its root, where it has that.
fn open(context: &Context, folder: &Path) -> Result<Context> {
    let below = context.cwd().strip_prefix(context.worktree());
    let cwd = folder.join(below.unwrap_or(Path::new("")));
    context.at(if cwd.is_dir() { &cwd } else { folder })
}

/// Copies from this work tree into another, links and runs there what `[isolated]` says.
///
/// # Errors
/// What is to be copied or shared is a link (13), or the setup fails (1).
pub(crate) fn furnish(context: &Context, to: &Path, show: Show) -> Result<()> {
    let (settings, repo) = (&context.settings().isolated, context.repo()?);
    let path = |text: &String| RepoPath::new(text.as_bytes());
    for text in &settings.copy {
        if !repo.copy_into(&path(text), to)? {
            context.note(format!("[isolated] copy: {text} is not there"));
        }
    }
    for text in &settings.share {
        context.note(if repo.link_into(&path(text), to)? {
            format!(
                "{text} is shared: what the run writes there, it writes into {}, and no checkpoint has it",
                context.worktree().join(text).display()
            )
        } else {
            format!("[isolated] share: {text} is not there")
        });
    }
    settings.setup.as_ref().map_or(Ok(()), |line| {
        let shell = &context.settings().runner.shell;
        let argv = [shell, "-c", line].map(str::to_owned).to_vec();
        set_up(context, "[isolated] setup", argv, to, show)
    })
}

/// Runs what is configured to prepare a work tree.
///
/// # Errors
/// It cannot be started, or fails (1); a request to stop came.
pub(crate) fn set_up(
    context: &Context,
    setting: &str,
    argv: Vec<String>,
    to: &Path,
    show: Show,
) -> Result<()> {
    let argv = argv.into_iter().map(Into::into).collect();
    let supervised = Supervised {
        env_remove: Repo::misleading_variables(),
        show,
        grace: context.settings().runner.grace,
        ..Supervised::new(Program::Argv(argv), to)
    };
    let exit = supervised
        .run(&context.interrupts, |_| Ok(()))
        .with_context(|| format!("cannot run {setting}"))?;
    match (exit.cancelled, exit.shell_code()) {
        (Some(signal), _) => Err(Error::interrupted(signal, format!("stopped in {setting}"))),
        (None, 0) => Ok(()),
        (None, code) => {
            let ended = || format!("ended with {code}");
            let why = exit.spawn_error.map_or_else(ended, |error| error.message);
            Err(Error::new(ErrorKind::Failed, format!("{setting} {why}"))
                .hint(Hint::recover(["config", "--origins"])))
        }
    }
}

/// A call of this very program.
fn called(context: &Context, call: &Hint, show: Show) -> Result<Supervised> {
    let program = own_program().context("cannot find the program of recover")?;
    let mut argv = vec![program.into_os_string()];
    argv.extend(call.arguments());
    Ok(Supervised {
        show,
        // It ends its own child first.
        grace: context.settings().runner.grace.saturating_mul(4),
        ..Supervised::new(Program::Argv(argv), context.cwd())
    })
}

/// The command in the work tree that the named run has for itself; `None` where it is about no such run, or that is this one.
/// One that was removed is made again, where the command `needs` it.
pub(crate) fn there(context: &Context, needs: Needs) -> Result<Option<Context>> {
    let naming = context.naming();
    let named = naming
        .run_id
        .as_ref()
        .filter(|_| !naming.by_environment && context.has_git());
    let Some(id) = named else { return Ok(None) };
    // Whatever is wrong with the ledger or the name, the command itself says it.
    let Ok(loaded) = context.load() else {
        return Ok(None);
    };
    let state = loaded.state;
    let Ok(run) = runs::named(&state, id, naming.phase.as_deref(), naming.lane.as_deref()) else {
        return Ok(None);
    };
    if run.spec.isolated.is_none() || run.worktree == context.worktree_id() {
        return Ok(None);
    }
    if (needs != Needs::None && bring_back(context, &state, run, needs)?) || is_there(context, run)
    {
        return open(context, &run.worktree.path()).map(Some);
    }
    Ok(None)
}

/// Whether a branch is, or may be, checked out.
fn is_checked_out(context: &Context, repo: &Repo, branch: &str) -> bool {
    let has_it = |place: &PathBuf| {
        let head = Repo::discover(place, context.home()).and_then(|repo| repo.head());
        head.is_ok_and(|head| head.branch.as_deref() == Some(branch))
    };
    repo.work_trees()
        .map_or(true, |places| places.iter().any(has_it))
}

fn is_there(context: &Context, run: &Run) -> bool {
    context.is_worktree_of_repo(&run.worktree)
}

/// Makes the work tree of a run again as it was removed, from its latest checkpoint; whether it did. It is on the branch that
/// it was on only where the command [`Needs::Branch`], and nobody else has gone on with that.
fn bring_back(context: &Context, state: &State, run: &Run, needs: Needs) -> Result<bool> {
    let last = state
        .checkpoints
        .values()
        .rev()
        .find(|one| one.worktree == run.worktree);
    let (Some(isolated), Some(last)) = (&run.spec.isolated, last) else {
        return Ok(false);
    };
    let Some(commit) = last.base_commit.as_ref().filter(|_| !context.dry_run()) else {
        return Ok(false);
    };
    let (repo, place, name) = (context.repo()?, place(context)?, name_of(context, &run.key));
    let note = place.part(BACK, &name);
    let is_half = place.root.has(&note).unwrap_or(false);
    if is_there(context, run) && !is_half {
        return Ok(false);
    }
    trust::require(context, |key| key.starts_with("isolated."))?;
    let lock = place.lock(&name)?;
    let folder = place.worktree(&name);
    if is_half {
        place.remove(repo, &name)?;
    }
    let noted = place.root.write(&note, b"", Sync::All);
    noted.map_err(|error| Error::cannot("write", &folder, error))?;
    let was_on = last.head_ref.as_ref().filter(|branch| {
        needs == Needs::Branch
            && repo.resolve_ref(branch).as_ref() == Some(commit)
            && !is_checked_out(context, repo, branch)
    });
    let branch = was_on.unwrap_or(&isolated.branch);
    repo.add_linked(&checkpoint::lock(context)?, (&folder, branch), commit)?;
    let there = context.at(&folder)?;
    there.repo()?.fill(&repo.load_checkpoint(&last.commit)?)?;
    furnish(context, &folder, Show::Stderr)?;
    drop(lock);
    for note in [BACK, LOCK] {
        let gone = present(place.root.remove_file(&place.part(note, &name)));
        gone.map_err(|error| Error::cannot("remove", &folder, error))?;
    }
    context.note(format!(
        "the work tree of run {} is back in {}",
        run.key,
        folder.display()
    ));
    Ok(true)
}

/// Removes the work tree of a run that is decided, where all that is in it is in a checkpoint, and its branch; else says why
/// it stays.
pub(crate) fn tidy(context: &Context, key: &RunKey) {
    let run = context.load().and_then(|loaded| run_of(&loaded.state, key));
    let Some((run, isolated)) = run.ok().and_then(|run| {
        let isolated = run
            .spec
            .isolated
            .clone()
            .filter(|_| is_there(context, &run))?;
        Some((run, isolated)).filter(|_| !context.dry_run())
    }) else {
        return;
    };
    let folder = run.worktree.path();
    match remove(context, &run, &isolated) {
        Ok(None) => context.note(format!(
            "removed the work tree {}: everything in it but ignored files is in a checkpoint of run {}",
            folder.display(),
            run.key
        )),
        Ok(Some(why)) => context.note(format!("the work tree {} stays: {why}", folder.display())),
        Err(error) => context.warn(format!("the work tree {} stays: {}", folder.display(), error.message)),
    }
}

/// Why it was not removed.
fn remove(context: &Context, run: &Run, isolated: &Isolated) -> Result<Option<String>> {
    let (there, home) = (
        context.at(&run.worktree.path())?,
        context.at(&context.repo()?.main_worktree())?,
    );
    recovery::recover(&there)?;
    let state = there.load()?.state;
    let mut here = state.runs_of(&run.worktree);
    if let Some(other) =
        here.find(|other| driver(there.store(), other).is_some_and(|id| !id.is_own()))
    {
        return Ok(Some(format!("run {} is at work in it", other.key)));
    }
    let prepared = checkpoint::prepare(&there)?;
    let manifest = &prepared.capture.manifest;
    let why = match (manifest.skipped.first(), &manifest.operation) {
        (Some(one), _) => format!("no checkpoint has {} ({})", one.path.to_lossy(), one.reason),
        (None, _) if !prepared.nested.is_empty() => "there is another repository in it".to_owned(),
        (None, Some(operation)) => format!("a {operation} is in progress in it"),
        (None, None) => String::new(),
    };
    if !why.is_empty() {
        return Ok(Some(why));
    }
    let commit = prepared.capture.head.commit.clone();
    let about = Request::new(trigger::OPERATION, "Before its work tree was removed");
    checkpoint::take(
        &there,
        &mut there.store().lock()?,
        &run.key,
        &prepared,
        about,
    )?;
    drop(prepared);
    let (repo, name) = (home.repo()?, name_of(&home, &run.key));
    place(&home)?.remove(repo, &name)?;
    // What it was accepted as may be there alone, and commits that HEAD was not on are nobody's to remove.
    let is_result = run.was_accepted() && isolated.onto.is_none();
    if !is_result
        && let Some((tip, commit)) = repo.resolve_ref(&isolated.branch).zip(commit)
        && repo.is_ancestor(&tip, &commit)?
    {
        let lock = checkpoint::lock(&home)?;
        repo.delete_refs(&lock, std::slice::from_ref(&isolated.branch))?;
    }
    Ok(None)
}

/// Removes what a kill left of work trees that were being made or removed. One that may hold work is never removed here: its
/// run is known, or the ledger lacks what the repository has, or the repository is another one than that it was made of.
pub(crate) fn sweep(context: &Context) -> Result<()> {
    let Some(place) = Place::of(context).filter(|_| !context.dry_run()) else {
        return Ok(());
    };
    let Ok(Some(found)) = present(place.root.list(&place.folder)) else {
        return Ok(());
    };
    let Ok(loaded) = context.load() else {
        return Ok(());
    };
    let (repo, state) = (context.repo()?, loaded.state);
    let left = |name: &str| {
        let own = [REMOVED, LOCK]
            .iter()
            .find_map(|before| name.strip_prefix(before));
        own.map(str::to_owned)
    };
    let names: Vec<String> = found
        .iter()
        .filter_map(|(name, _)| left(name.to_str()?))
        .collect();
    // A ledger that was lost, set back or cut off does not know every run.
    let knows = |id: &str| state.checkpoint(&CheckpointId::from(id)).is_some();
    if names.is_empty() || state.last_seq == 0 || !repo.ref_names(knows)?.is_empty() {
        return Ok(());
    }
    for name in names {
        let folder = place.worktree(&name);
        let worktree = FolderId::of(&folder);
        let is_known = state.runs.iter().any(|run| run.worktree == worktree);
        // Whoever makes it holds this.
        let Ok(lock) = place.lock(&name) else {
            continue;
        };
        if is_known && worktree.path().exists() {
            drop(lock);
            let (gone, lock) = (place.part(REMOVED, &name), place.part(LOCK, &name));
            present(place.root.remove_dir_all(&gone))
                .context("cannot remove what is left of a work tree")?;
            present(place.root.remove_file(&lock))
                .context("cannot remove the lock of a work tree")?;
            continue;
        }
        if repo.notes_of_linked(&folder)?.is_empty() && place.has_files(&name) {
            continue;
        }
        place.remove(repo, &name)?;
        let branch = Repo::branch_of_run(&name);
        if !is_known {
            repo.delete_refs(&checkpoint::lock(context)?, &[branch])?;
        }
    }
    Ok(())
}
