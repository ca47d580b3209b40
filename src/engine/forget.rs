//! Removing runs for good, and removing every trace of `recover` from a repository.
//!
//! A run goes with one event: from then on nothing knows it, and what a kill leaves of its files and references the next
//! command removes. All of it goes behind a mark that lies where no clone brings one along: whatever command comes after a
//! kill finishes what was begun.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::durable::{Root, Sync};
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::hook::install::{FileChange, carry_out};
use crate::engine::hook::plan::{Called, Part, Place, Setup, Task};
use crate::engine::record::{nested, seed_json, storage, vault};
use crate::engine::runs::{Chosen, Planned, refuse_driven};
use crate::engine::{recovery, remote, trust};
use crate::git::repo::CheckpointRef;
use crate::git::{Repo, WorktreeLock};
use crate::model::id::FixId;
use crate::model::{Checkpoint, EventSource, HookAgent, ObjectId, Payload, RunId, RunKey, State};
use crate::policy::text::count;
use crate::store::NewEvent;
use crate::store::views::write_views;

/// The name of our folder in git's.
const OWN: &str = "recover";
/// The mark in it that everything is being removed.
const MARK: &str = "forgetting";

/// Runs that were removed for good, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Forgotten {
    pub changed: bool,
    /// Whether it is every trace of this repository.
    all: bool,
    #[serde(rename = "forgotten")]
    pub runs: Vec<RunKey>,
    /// How many checkpoints go with them.
    pub checkpoints: usize,
    /// Files and folders that go, absolute.
    pub removed: Vec<String>,
    /// Runs that go from the remote, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pruned: Vec<RunKey>,
    /// The same with what the remote has of each.
    #[serde(skip)]
    sent: Vec<(RunKey, ObjectId)>,
    /// In a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Planned>,
}

impl Forgotten {
    /// A vault, which was removed, or would be.
    pub(crate) fn of_vault(context: &Context, folder: &Path) -> Self {
        Self {
            changed: !context.dry_run(),
            all: false,
            runs: Vec::new(),
            checkpoints: 0,
            removed: vec![folder.to_string_lossy().into_owned()],
            pruned: Vec::new(),
            sent: Vec::new(),
            plan: context.dry_run().then_some(Planned { changed: true }),
        }
    }
}

/// What would be removed: these runs, or everything.
///
/// # Errors
/// There is no such run (4); a `recover` is at work on one of them (11); another machine holds one on the remote that is named
/// (13), or its server is away (9).
pub(crate) fn plan(context: &Context, chosen: Option<&Chosen>) -> Result<Forgotten> {
    let state = recovery::load_recovered(context)?;
    let runs = match chosen {
        Some(chosen) => chosen.of(context, &state)?,
        None => state.runs.iter().map(|run| run.key.clone()).collect(),
    };
    for key in &runs {
        refuse_driven(context, &run_of(&state, key)?)?;
    }
    let sent = if context.names_remote() {
        remote::sent(context, &runs)?
    } else {
        Vec::new()
    };
    note_left(context, &runs)?;
    let checkpoints = runs.iter().map(|key| state.checkpoints.count_of(key)).sum();
    let removed: Vec<PathBuf> = match chosen {
        Some(_) => runs
            .iter()
            .flat_map(|key| recovery::files_of(context, key))
            .collect(),
        None => traces(context),
    };
    let changed = !runs.is_empty() || !removed.is_empty();
    let plan = context.dry_run().then_some(Planned { changed });
    Ok(Forgotten {
        changed: changed && plan.is_none(),
        all: chosen.is_none(),
        runs,
        checkpoints,
        removed: removed
            .iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect(),
        pruned: sent.iter().map(|(key, _)| key.clone()).collect(),
        sent,
        plan,
    })
}

/// Removes runs, or everything; in a dry run only says what.
///
/// # Errors
/// As [`plan`]; nobody said yes (13).
pub(crate) fn forget(context: &Context, chosen: Option<&Chosen>) -> Result<Forgotten> {
    if !context.dry_run() {
        context.check_safe_mode("removing runs")?;
        recovery::recover(context)?;
    }
    let planned = plan(context, chosen)?;
    if context.dry_run() || !planned.changed {
        return Ok(planned);
    }
    if !context.says_yes() {
        let what = match chosen {
            Some(_) => format!(
                "{} with {}",
                count(planned.runs.len(), "run"),
                count(planned.checkpoints, "checkpoint")
            ),
            None => "every trace of recover in this repository".to_owned(),
        };
        let there = match (&context.remote_name(), planned.pruned.len()) {
            (Some(name), sent @ 1..) => {
                format!(", and what lies of {} on {name}", count(sent, "run"))
            }
            _ => String::new(),
        };
        let message = format!(
            "this would remove {what}{there} for good, which cannot be undone: pass --yes to continue"
        );
        return Err(
            Error::new(ErrorKind::ConfirmationNeeded, message).hint(context.rerun(&["--dry-run"]))
        );
    }
    // First: what is here can be removed again.
    if context.names_remote() {
        remote::remove_sent(context, &planned.sent)?;
    }
    if chosen.is_some() {
        forget_runs(context, &planned)?;
        vault::drop_gone(context, &context.load()?.state)?;
    } else {
        let commits = begin(context)?;
        remove_everything(context, &commits)?;
    }
    Ok(planned)
}

/// Says what of the runs stays on remotes, but for the one that is named.
fn note_left(context: &Context, runs: &[RunKey]) -> Result<()> {
    let named = context.remote_name().filter(|_| context.names_remote());
    let mut left: BTreeMap<String, Vec<&RunKey>> = BTreeMap::new();
    for key in runs {
        for remote in remote::sent_to(context, key)? {
            if named.as_ref() != Some(&remote) {
                left.entry(remote).or_default().push(key);
            }
        }
    }
    for (remote, keys) in left {
        let what = match keys[..] {
            [key] => format!("run {key}"),
            _ => count(keys.len(), "run"),
        };
        context.note(format!(
            "what was sent of {what} stays on {remote}; --remote {remote} removes it there, too"
        ));
    }
    Ok(())
}

fn forget_runs(context: &Context, planned: &Forgotten) -> Result<()> {
    let mut ledger = context.store().lock()?;
    let mut gone: Vec<Checkpoint> = Vec::new();
    for key in &planned.runs {
        refuse_driven(context, &run_of(ledger.state(), key)?)?;
        gone.extend(ledger.state().checkpoints_of(key).cloned());
    }
    let fixes: Vec<FixId> = planned
        .runs
        .iter()
        .filter_map(|key| ledger.state().run(key)?.manual_fix.as_ref())
        .map(|session| session.id.clone())
        .collect();
    let payload = Payload::RunsForgotten {
        runs: planned.runs.clone(),
    };
    ledger.append(
        context.clock.now(),
        vec![NewEvent {
            run: None,
            source: EventSource::Recover,
            payload,
        }],
    )?;
    seed_json::refresh_active(context, ledger.state())?;
    let state = write_views(ledger, &[])?;
    recovery::sweep_forgotten(context, &state)?;
    for id in fixes {
        let store = context.store();
        let folder = store.private_dir().join("manual-fix").join(id.as_str());
        remove(store.root(), &folder)?;
    }
    storage::remove_patches(context, &gone);
    let has_kept =
        |key: &RunKey| kept(context, Some(&key.run_id)).is_ok_and(|names| !names.is_empty());
    if gone.is_empty() && !planned.runs.iter().any(has_kept) {
        return Ok(());
    }
    let repo = context.repo()?;
    nested::forget(context, repo, &gone);
    let mut names: Vec<String> = gone
        .iter()
        .map(|gone| CheckpointRef::name_of(&gone.run.run_id, &gone.id))
        .collect();
    for key in &planned.runs {
        names.extend(kept(context, Some(&key.run_id))?);
    }
    let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
    repo.delete_refs(&lock, &names)?;
    repo.forget_ignored(gone.iter().map(|gone| &gone.id))?;
    let commits: Vec<_> = gone.into_iter().map(|gone| gone.commit).collect();
    discard_all(context, repo, &lock, &commits);
    Ok(())
}

/// Removes the objects of checkpoints that are gone for good; what stays of them is said.
fn discard_all(context: &Context, repo: &Repo, lock: &WorktreeLock, commits: &[ObjectId]) {
    if let Some(why) = repo.discard_objects(lock, commits).left {
        context.note(format!(
            "objects of the checkpoints are left to git gc: {why}"
        ));
    }
}

/// The references that keep what `accept` took off branches: of a run, or all.
fn kept(context: &Context, run_id: Option<&RunId>) -> Result<Vec<String>> {
    if context.has_git() {
        Ok(context.repo()?.kept_ref_names(run_id)?)
    } else {
        Ok(Vec::new())
    }
}

/// Where the mark is: in git's folder, without git beside the logs.
fn mark(context: &Context) -> Result<(Root, PathBuf)> {
    if context.has_git() {
        let common = context.repo()?.common_dir();
        return Ok((Root::with_own(common, OWN), common.join(OWN).join(MARK)));
    }
    Ok((
        context.store().root().clone(),
        context.store().private_dir().join(MARK),
    ))
}

/// Puts the mark in place, with the commits of the checkpoints: once their references are gone, nothing else names them.
fn begin(context: &Context) -> Result<Vec<ObjectId>> {
    let (root, mark) = mark(context)?;
    // Who holds the ledger's lock finishes first.
    let _ledger = context.store().lock()?;
    let commits = commits(context)?;
    let lines = commits.iter().map(|commit| format!("{}\n", commit.0));
    let text: String = std::iter::once("recover forget --all\n".to_owned())
        .chain(lines)
        .collect();
    let failed = |error| Error::cannot("write", &mark, error);
    root.create_dir_all(mark.parent().unwrap_or(&mark))
        .map_err(failed)?;
    root.write(&mark, text.as_bytes(), Sync::All)
        .map_err(failed)?;
    Ok(commits)
}

/// The commits of the checkpoints that have references.
fn commits(context: &Context) -> Result<Vec<ObjectId>> {
    if !context.has_git() {
        return Ok(Vec::new());
    }
    let repo = context.repo()?;
    Ok(repo
        .ref_names(|_| false)?
        .iter()
        .filter_map(|name| repo.resolve_ref(name))
        .collect())
}

/// Finishes removing everything where that was cut off. Returns whether it was.
pub(crate) fn finish(context: &Context) -> Result<bool> {
    if !context.has_git() && !context.store().exists() {
        return Ok(false);
    }
    let (root, mark) = mark(context)?;
    if context.dry_run() || !root.has(&mark).unwrap_or(false) {
        return Ok(false);
    }
    let text = root
        .read(&mark)
        .map_err(|error| Error::cannot("read", &mark, error))?;
    let mut all = commits(context)?;
    all.extend(
        String::from_utf8_lossy(&text)
            .lines()
            .skip(1)
            .map(|line| ObjectId(line.to_owned())),
    );
    remove_everything(context, &all)?;
    Ok(true)
}

/// Files and folders of ours.
fn traces(context: &Context) -> Vec<PathBuf> {
    let store = context.store();
    let mut all = store.own_views();
    all.extend([store.ledger_path(), store.private_dir()]);
    all.extend(own_configuration(context));
    let others = others(context);
    all.extend(others.iter().filter_map(own_configuration));
    all.extend(git_folders(context));
    all.extend(context.trust_record().path());
    all.extend(vault::folder(context));
    all.retain(|path| path.symlink_metadata().is_ok());
    let with_hooks: BTreeSet<PathBuf> = others
        .iter()
        .chain([context])
        .flat_map(hook_files)
        .collect();
    all.extend(with_hooks);
    all
}

/// The other work trees of the repository. One that is gone, or not ours to work in, is left alone.
fn others(context: &Context) -> Vec<Context> {
    let repo = context.repo().ok().filter(|_| context.has_git());
    let all = repo
        .and_then(|repo| repo.work_trees().ok())
        .unwrap_or_default();
    let others = all
        .iter()
        .filter_map(|folder| context.at(&std::fs::canonicalize(folder).ok()?).ok());
    others
        .filter(|other| other.worktree() != context.worktree())
        .collect()
}

/// Our folders in git's: of the repository, and of each of its work trees.
fn git_folders(context: &Context) -> Vec<PathBuf> {
    let Some(repo) = context.repo().ok().filter(|_| context.has_git()) else {
        return Vec::new();
    };
    let common = repo.common_dir();
    let folder = common.join("worktrees");
    let linked = Root::shared(common).list(&folder).unwrap_or_default();
    linked
        .into_iter()
        .map(|(name, _)| folder.join(name).join(OWN))
        .chain([common.join(OWN)])
        .collect()
}

/// The configuration, where git does not track it.
fn own_configuration(context: &Context) -> Option<PathBuf> {
    let folder = context.worktree().join(".ultraplan");
    let tracked = |repo: &Repo| context.has_git() && repo.tracks_any(&folder, &["recover.toml"]);
    (!context.repo().is_ok_and(tracked)).then(|| folder.join("recover.toml"))
}

const PLACES: [Place; 2] = [Place::Project, Place::Local];

/// The hook, and the plugin where that can be installed too.
fn all_of(agent: HookAgent, place: Place) -> Setup {
    let part = if place == Place::Project {
        Part::Plugin
    } else {
        Part::Hook
    };
    Setup {
        part,
        agent,
        place,
        program: Called::by_name(),
    }
}

/// The settings that have lines of ours.
fn hook_files(context: &Context) -> Vec<PathBuf> {
    let Ok(rehearsal) = context.rehearsal() else {
        return Vec::new();
    };
    let changes = |agent, place| {
        carry_out(&rehearsal, Task::Uninstall, &all_of(agent, place)).unwrap_or_default()
    };
    let all = HookAgent::ALL
        .iter()
        .flat_map(|&agent| PLACES.map(|place| (agent, place)));
    let files = all
        .flat_map(|(agent, place)| changes(agent, place))
        .filter(FileChange::is_changed);
    files
        .map(|file| file.path)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// Removes everything, whatever of it is there still; the mark last.
fn remove_everything(context: &Context, commits: &[ObjectId]) -> Result<()> {
    let others = others(context);
    others.iter().chain([context]).for_each(remove_hooks);
    remove_checkpoints(context, commits)?;
    let store = context.store();
    let root = store.root();
    store
        .remove_own_views()
        .map_err(|error| Error::io("cannot remove a view", error))?;
    for context in others.iter().chain([context]) {
        if let Some(file) = own_configuration(context) {
            remove(&Root::shared(context.worktree()), &file)?;
            // One that holds another user's files stays.
            let _ = file.parent().map(remove_empty);
        }
    }
    let ignore = store.dir().join(".gitignore");
    if root.read(&ignore).is_ok_and(|text| text == b"*\n") {
        remove(root, &ignore)?;
    }
    remove(root, &store.ledger_path())?;
    vault::remove(context)?;
    // One that cannot be read stays known, which is no harm.
    let id = store.id().unwrap_or_default();
    remove(root, &store.private_dir())?;
    store.forget_id(id.as_deref());
    trust::revoke(context)?;
    for folder in [
        Some(store.dir()),
        store
            .dir()
            .parent()
            .filter(|parent| parent.ends_with(".ultraplan")),
    ] {
        // One that holds another user's files stays.
        let _ = folder.map(remove_empty);
    }
    if context.has_git() {
        let common = context.repo()?.common_dir().to_owned();
        for folder in git_folders(context) {
            let own = Root::shared(folder.parent().unwrap_or(&folder));
            for (name, _) in own.list(&folder).unwrap_or_default() {
                if name != MARK {
                    remove(&own, &folder.join(name))?;
                }
            }
        }
        for folder in ["logs/refs", "refs"].map(|folder| common.join(folder).join(OWN)) {
            remove(&Root::shared(&common), &folder)?;
        }
        for folder in git_folders(context) {
            remove(&Root::shared(folder.parent().unwrap_or(&folder)), &folder)?;
        }
    }
    Ok(())
}

/// Takes our lines out of the settings of agents and git's hooks, with the folders that are empty then.
fn remove_hooks(context: &Context) {
    for &agent in HookAgent::ALL {
        for place in PLACES {
            // Not every agent has every place.
            let _ = carry_out(context, Task::Uninstall, &all_of(agent, place));
        }
    }
}

/// Removes all references of checkpoints, and the objects that only they held.
fn remove_checkpoints(context: &Context, commits: &[ObjectId]) -> Result<()> {
    let private = !context.has_git();
    if private {
        // The repository is ours, and goes as a whole.
        return Ok(());
    }
    let repo = context.repo()?;
    if let Ok(loaded) = context.load() {
        let state: &State = &loaded.state;
        let all: Vec<Checkpoint> = state.checkpoints.values().cloned().collect();
        nested::forget(context, repo, &all);
    }
    let mut names = repo.ref_names(|_| false)?;
    names.extend(kept(context, None)?);
    let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
    repo.delete_refs(&lock, &names)?;
    discard_all(context, repo, &lock, commits);
    let objects = repo.common_dir().join("objects");
    for (name, _) in Root::shared(repo.common_dir())
        .list(&objects)
        .unwrap_or_default()
    {
        if name.len() == 2 {
            // Only the empty ones go, as with `git gc`.
            let _ = remove_empty(&objects.join(name));
        }
    }
    Ok(())
}

/// Removes a folder in which nothing is left.
fn remove_empty(folder: &Path) -> io::Result<()> {
    Root::shared(folder.parent().unwrap_or(folder)).remove_dir(folder)
}

/// Removes a file or a folder with all that is in it; one that is not there is removed already.
fn remove(root: &Root, path: &Path) -> Result<()> {
    let failed = |error| Error::cannot("remove", path, error);
    let removed = match root.kind(path).map_err(failed)? {
        None => Ok(()),
        Some(kind) if kind.is_dir() => root.remove_dir_all(path),
        Some(_) => root.remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
        _ => Ok(()),
    }
}
