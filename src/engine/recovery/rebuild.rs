//! `doctor --rebuild`: runs, attempts, decisions and checkpoints from `refs/recover/`, after the ledger was lost or damaged.
//!
//! Never done unasked. What is left of a ledger is kept aside; what it still says is taken over.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::stored::record_of;
use crate::engine::record::{seed_json, storage};
use crate::git::Error as GitError;
use crate::model::{Checkpoint, CheckpointId, Event, FolderId, Hint, Payload, State, StorageType};
use crate::policy::checkpoint_events::{Recorded, fold, rebuild as put_together};
use crate::store::views::rewrite_views;
use crate::store::{StoreError, salvage};

/// What a rebuilt ledger holds, or would hold.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "rebuilt")]
pub(crate) struct RebuildReport {
    /// Whether another ledger was (or would be) put in the place of the one that is there.
    pub changed: bool,
    /// Runs in it.
    pub runs: usize,
    /// Their attempts.
    pub attempts: usize,
    /// Attempts among them that failed.
    pub failures: usize,
    /// Checkpoints in it.
    pub checkpoints: usize,
    /// Events in it.
    pub events: usize,
    /// Events that were in checkpoints only.
    pub recovered_events: u64,
    /// Lines of the old ledger that cannot be read.
    pub unreadable_lines: u64,
    /// Where the old ledger is kept.
    pub kept_aside: Option<String>,
}

/// Rebuilds the ledger; in a dry run only says what it would hold. A ledger that is whole and knows all is left as it is.
pub(crate) fn rebuild(context: &Context) -> Result<RebuildReport> {
    let store = context.store();
    if !store.exists() && unrecorded(context)? == 0 {
        let message =
            "nothing to rebuild from: no checkpoint of this project is under refs/recover";
        return Err(Error::new(ErrorKind::NoCheckpoint, message)
            .hint(Hint::recover(["checkpoint", "create"])));
    }
    if !context.dry_run()
        && store.exists()
        && let Err(error) = store.repair()
        && !matches!(error, StoreError::Corrupt { .. })
    {
        return Err(error.into());
    }
    let is_done = !context.dry_run();
    let guard = is_done.then(|| store.lock_for_rebuilding()).transpose()?;
    let damaged = store.load().is_err();
    let mut left = store.salvage()?;
    let newer = || {
        let message = "the ledger, or a checkpoint, was written by a newer version: nothing was changed, use that one";
        Error::new(ErrorKind::Newer, message)
    };
    if left.newer.is_some() {
        return Err(newer());
    }
    let known: HashMap<CheckpointId, Checkpoint> =
        left.events.iter().filter_map(checkpoint_of).collect();
    let mut recorded = recorded(context, &known)?.ok_or_else(newer)?;
    let places = moved(
        context,
        known
            .values()
            .chain(recorded.iter().map(|one| &one.checkpoint)),
    )?;
    let before = left.events.clone();
    left.events
        .iter_mut()
        .for_each(|event| adapt(context, &places, event));
    for one in &mut recorded {
        one.events
            .iter_mut()
            .for_each(|event| adapt(context, &places, event));
        adapt_checkpoint(context, &places, &mut one.checkpoint);
    }
    let now = context.clock.now();
    let mut rebuilt = put_together(left.events, recorded, now);
    let state = fold(&rebuilt.events);
    let attempts = || state.runs.iter().flat_map(crate::model::run::Run::attempts);
    let mut report = RebuildReport {
        changed: damaged || rebuilt.recovered > 0 || rebuilt.events != before,
        runs: state.runs.len(),
        attempts: attempts().count(),
        failures: attempts()
            .filter(|(_, attempt)| attempt.failure.is_some())
            .count(),
        checkpoints: state.checkpoints.len(),
        events: rebuilt.events.len(),
        recovered_events: rebuilt.recovered,
        unreadable_lines: left.unreadable,
        kept_aside: None,
    };
    if !report.changed {
        return Ok(report);
    }
    if rebuilt.events.is_empty() {
        let message = "nothing of the ledger can be read, and no checkpoint of this project is under refs/recover";
        return Err(Error::new(ErrorKind::Corrupt, message));
    }
    if let Some(guard) = guard {
        let aside = guard.replace(&mut rebuilt.events, now)?;
        report.kept_aside = aside.map(|path| path.to_string_lossy().into_owned());
        for checkpoint in state
            .checkpoints
            .values()
            .filter(|one| one.storage_type == StorageType::Patch)
        {
            write_patch_if_gone(context, checkpoint);
        }
        let ledger = context.store().lock()?;
        seed_json::refresh_active(context, ledger.state())?;
        rewrite_views(ledger)?;
    }
    Ok(report)
}

/// Makes state that came from elsewhere, and is ours from now on, state of the work tree here: the runs of the work trees
/// `from` are its own. The ledger must have been read whole before.
pub(in crate::engine) fn take_over(context: &Context, from: &BTreeSet<FolderId>) -> Result<()> {
    let guard = context.store().lock_for_rebuilding()?;
    let before = context.store().salvage()?.events;
    let worktrees = from
        .iter()
        .map(|old| (old.clone(), context.worktree_id()))
        .collect();
    let state_dirs = before
        .iter()
        .filter_map(checkpoint_of)
        .map(|(_, checkpoint)| checkpoint.state_dir);
    let state_dirs = state_dirs
        .filter(|place| !context.is_state_dir(place))
        .map(|place| place.path())
        .collect();
    let places = Places {
        worktrees,
        state_dirs,
    };
    let mut events = before.clone();
    for event in &mut events {
        adapt(context, &places, event);
    }
    if events == before {
        return Ok(());
    }
    guard.replace(&mut events, context.clock.now())?;
    let ledger = context.store().lock()?;
    seed_json::refresh_active(context, ledger.state())?;
    rewrite_views(ledger)?;
    Ok(())
}

/// How many checkpoints of this project are under `refs/recover/` while there is no ledger.
pub(crate) fn unrecorded(context: &Context) -> Result<usize> {
    if context.store().exists() || !context.has_git() {
        return Ok(0);
    }
    let repo = context.repo()?;
    let (refs, _) = repo.list_refs()?;
    let ours = refs.iter().filter(|reference| {
        let stored = repo.load_checkpoint(&reference.commit).ok();
        stored
            .and_then(|stored| record_of(&stored))
            .is_some_and(|found| belongs(context, &HashMap::new(), &found))
    });
    Ok(ours.count())
}

/// A checkpoint that an event names, by its id.
fn checkpoint_of(event: &Event) -> Option<(CheckpointId, Checkpoint)> {
    match &event.payload {
        Payload::CheckpointCreated { checkpoint, .. } => {
            Some((checkpoint.id.clone(), Checkpoint::clone(checkpoint)))
        }
        _ => None,
    }
}

/// The checkpoints of this project with what they carry; `None` where a newer version wrote one of them.
fn recorded(
    context: &Context,
    known: &HashMap<CheckpointId, Checkpoint>,
) -> Result<Option<Vec<Recorded>>> {
    let repo = context.repo()?;
    let (refs, _unreadable) = repo.list_refs()?;
    let mut all = Vec::new();
    for reference in refs {
        let stored = match repo.load_checkpoint(&reference.commit) {
            Ok(stored) => stored,
            Err(GitError::Newer(_)) => return Ok(None),
            Err(error) => {
                tracing::warn!(%error, "{} is left out", reference.name);
                continue;
            }
        };
        let Some(checkpoint) = record_of(&stored).filter(|found| belongs(context, known, found))
        else {
            continue;
        };
        let carried = salvage(&stored.events_jsonl(repo)?);
        if carried.newer.is_some() {
            return Ok(None);
        }
        all.push(Recorded {
            checkpoint,
            events: carried.events,
        });
    }
    Ok(Some(all))
}

/// Several state directories may share one repository. Ours are those that its ledger knows, those recorded here, and
/// those of a state directory that is not there any more: the project was moved, or its state directory is another one
/// now.
fn belongs(
    context: &Context,
    known: &HashMap<CheckpointId, Checkpoint>,
    checkpoint: &Checkpoint,
) -> bool {
    known.contains_key(&checkpoint.id)
        || context.is_state_dir(&checkpoint.state_dir)
        || !checkpoint.state_dir.path().join("events.jsonl").exists()
}

/// Where the state directory was when some of its checkpoints were taken, if that is another place: the project was moved
/// or copied since. Those runs are runs of a work tree elsewhere until [`rebuild`] takes them over. What came from elsewhere
/// counts here as it is.
pub(crate) fn recorded_at(context: &Context, state: &State) -> Option<PathBuf> {
    if context.brought_from(state).is_some() {
        return None;
    }
    let branch = |old: &FolderId| {
        state
            .checkpoints
            .values()
            .rfind(|one| one.worktree == *old)?
            .head_ref
            .as_deref()
    };
    let was_here = |old: &&FolderId| was_this_one(context, &old.path(), || branch(old));
    let elsewhere = state
        .places
        .iter()
        .find(|place| !context.is_state_dir(place));
    elsewhere
        .or_else(|| state.worktrees.keys().find(was_here))
        .map(FolderId::path)
}

/// What had another place before.
#[derive(Default)]
struct Places {
    /// Work trees by their old and their new place.
    worktrees: BTreeMap<FolderId, FolderId>,
    /// Where this state directory was.
    state_dirs: BTreeSet<PathBuf>,
}

/// Where the work trees of a project are that was moved or copied: its own root is where it is now. A linked work tree
/// that is gone may just have been removed, so its runs stay its own.
fn moved<'a>(context: &Context, recorded: impl Iterator<Item = &'a Checkpoint>) -> Result<Places> {
    let mut all: Vec<&Checkpoint> = recorded.collect();
    all.sort_by_key(|one| one.seq);
    let branches: HashMap<&FolderId, Option<&str>> = all
        .iter()
        .map(|one| (&one.worktree, one.head_ref.as_deref()))
        .collect();
    let recorded: BTreeSet<(&FolderId, &FolderId)> = all
        .iter()
        .map(|one| (&one.worktree, &one.state_dir))
        .collect();
    let mut places = Places::default();
    for (worktree, state_dir) in recorded {
        let is_here = context.is_state_dir(state_dir);
        if !is_here {
            places.state_dirs.insert(state_dir.path());
        }
        let old = worktree.path();
        // What another repository has at the old place is not ours.
        let there = if context.has_git() {
            context.is_worktree_of_repo(worktree)
        } else {
            is_here && old.is_dir()
        };
        if there {
            continue;
        }
        let new = if was_this_one(context, &old, || branches.get(worktree).copied().flatten()) {
            context.worktree_id()
        } else if state_dir.path().starts_with(&old) {
            FolderId::of(&context.repo()?.main_worktree())
        } else if state_dir.path().ends_with(".ultraplan/state") {
            continue;
        } else {
            // A state directory elsewhere does not say which work tree is the project's own.
            context.worktree_id()
        };
        places.worktrees.insert(worktree.clone(), new);
    }
    Ok(places)
}

/// Whether a work tree that is gone is the linked one here, which `git worktree move` put elsewhere: git keeps its name,
/// and it is on the same branch.
fn was_this_one<'a>(
    context: &Context,
    old: &Path,
    branch: impl FnOnce() -> Option<&'a str>,
) -> bool {
    // Without git there are no linked ones, and asking would make a private repository.
    let Some(repo) = context.has_git().then(|| context.repo().ok()).flatten() else {
        return false;
    };
    let is_named =
        repo.is_linked() && repo.git_dir().file_name() == old.file_name() && !old.exists();
    is_named
        && repo
            .head()
            .is_ok_and(|head| head.branch.is_some() && head.branch.as_deref() == branch())
}

/// Names this project's places where the old ones are gone.
fn adapt(context: &Context, places: &Places, event: &mut Event) {
    match &mut event.payload {
        Payload::RunCreated { worktree, .. } => adapt_worktree(places, worktree),
        Payload::CheckpointCreated { checkpoint, .. }
        | Payload::CheckpointReturned { checkpoint } => {
            adapt_checkpoint(context, places, checkpoint);
        }
        Payload::Restored { operation } => adapt_worktree(places, &mut operation.worktree),
        Payload::StepStarted(start) => adapt_worktree(places, &mut start.worktree),
        Payload::AttemptStarted { log_path, .. } => adapt_log(context, places, log_path),
        Payload::AttemptEnded(ended) => adapt_log(context, places, &mut ended.log_path),
        _ => {}
    }
}

/// Makes a checkpoint that was taken elsewhere one of this project: of its work tree, where that is one of this repository,
/// else of the one here.
pub(in crate::engine) fn take_home(context: &Context, checkpoint: &mut Checkpoint) {
    let mut places = Places::default();
    if !context.is_worktree_of_repo(&checkpoint.worktree) {
        places
            .worktrees
            .insert(checkpoint.worktree.clone(), context.worktree_id());
    }
    adapt_checkpoint(context, &places, checkpoint);
}

fn adapt_checkpoint(context: &Context, places: &Places, checkpoint: &mut Checkpoint) {
    adapt_worktree(places, &mut checkpoint.worktree);
    checkpoint.state_dir = context.state_dir_id();
    if checkpoint.storage_type == StorageType::Patch {
        let path = storage::patch_file(context, &checkpoint.run, &checkpoint.id);
        checkpoint.patch_path = Some(path.to_string_lossy().into_owned());
    }
}

fn adapt_worktree(places: &Places, worktree: &mut FolderId) {
    if let Some(place) = places.worktrees.get(worktree) {
        worktree.clone_from(place);
    }
}

fn adapt_log(context: &Context, places: &Places, log: &mut Option<String>) {
    let Some(path) = log.as_deref().map(Path::new) else {
        return;
    };
    let mut old = places.state_dirs.iter();
    if let Some(below) = old.find_map(|old| path.strip_prefix(old).ok()) {
        let place = context.store().dir().join(below);
        *log = Some(place.to_string_lossy().into_owned());
    }
}

pub(in crate::engine) fn write_patch_if_gone(context: &Context, checkpoint: &Checkpoint) {
    if checkpoint
        .patch_path
        .as_ref()
        .is_some_and(|path| Path::new(path).exists())
    {
        return;
    }
    if let Err(error) = storage::write_patch_again(context, checkpoint) {
        tracing::warn!(%error, "the patch file of {} was not written again", checkpoint.id);
    }
}
