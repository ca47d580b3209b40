//! Taking a checkpoint: capture under the work tree's lock, then commit, reference and event under the ledger's.
//!
//! What changed from one checkpoint to the next.
//!
//! Which unreadable paths a capture may read all the same: those whose permissions an attempt took away.

use std::collections::BTreeSet;
use std::time::Instant;

use super::nested::NestedCapture;
use super::storage::{Changes, Prepared, Request};
use super::stored::{baseline, message};
use super::{liveness, memory, nested, seed_json, storage, vault};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::git;
use crate::git::capture::Capture;
use crate::git::checkpoint::{CheckpointParts, StoredCheckpoint};
use crate::git::repo::{CheckpointRef, Loan};
use crate::git::tree::TreeLookup;
use crate::git::{Error as GitError, WorktreeLock};
use crate::model::checkpoint::{MAX_CHANGED_PATHS, trigger};
use crate::model::run::NONE;
use crate::model::{
    CaptureRules, ChangeTotals, Checkpoint, CheckpointId, CheckpointType, FeedbackResults, Hint,
    LaneFields, Named, ObjectId, PathReason, Payload, RepoPath, Run, RunKey, State, StorageType,
    Timestamp,
};
use crate::policy::secrets::redact;
use crate::store::{Exclusive, NewEvent, masked};

/// Takes the work tree's lock. A restore or an atomic step that was cut off leaves a tree in between, which must neither be captured nor
/// planned from: who writes has settled it before, who only reads is refused (exit 16).
pub(crate) fn lock(context: &Context) -> Result<WorktreeLock> {
    let repo = context.repo()?;
    let lock = context.lock_worktree(repo)?;
    if Loan::is_left(repo) && !lock.is_rehearsal() {
        Loan::give_back_left(repo, &lock)?;
    }
    match repo.restore_journal()? {
        None => liveness::refuse_interrupted(context).map(|()| lock),
        Some(journal) => {
            let message = format!(
                "{} {} was interrupted and is not resolved yet",
                journal.kind, journal.operation_id
            );
            Err(Error::new(ErrorKind::CutOff, message).hint(Hint::recover(["doctor", "--repair"])))
        }
    }
}

/// Captures work tree, index, HEAD and working memory.
pub(crate) fn prepare(context: &Context) -> Result<Prepared> {
    prepare_as(context, &context.capture_rules())
}

/// Captures what a run begins with: more untracked files than are allowed are refused.
pub(crate) fn prepare_first(context: &Context) -> Result<Prepared> {
    let (rules, also) = (context.capture_rules(), BTreeSet::new());
    prepare_under(context, lock(context)?, &rules, &also, true)
}

/// Captures by other rules than the configured ones.
pub(crate) fn prepare_as(context: &Context, rules: &CaptureRules) -> Result<Prepared> {
    prepare_under(context, lock(context)?, rules, &BTreeSet::new(), false)
}

/// The tree that the latest run of this work tree with an attempt began with.
fn before_the_run(context: &Context) -> Result<Option<ObjectId>> {
    let state = context.load()?.state;
    let begun = state
        .runs_of(&context.worktree_id())
        .filter(|run| run.iterations.count_attempts() > 0);
    let initial = begun
        .max_by_key(|run| run.last_at)
        .and_then(|run| state.initial(&run.key))
        .and_then(Named::kept);
    Ok(initial.map(|checkpoint| checkpoint.tree.clone()))
}

/// Captures under a lock that is held already. `also` are paths to take even when they are ignored; for `is_first` see
/// [`prepare_first`].
pub(crate) fn prepare_under(
    context: &Context,
    lock: WorktreeLock,
    rules: &CaptureRules,
    also: &BTreeSet<RepoPath>,
    is_first: bool,
) -> Result<Prepared> {
    let begun = Instant::now();
    let repo = context.repo()?;
    let mut outer = rules.clone();
    let mut capture = match repo.capture(&lock, &outer, also) {
        Err(flood @ GitError::UntrackedFlood { .. }) if !is_first => {
            outer.before = before_the_run(context)?;
            if outer.before.is_none() {
                return Err(flood.into());
            }
            repo.capture(&lock, &outer, also)?
        }
        captured => captured?,
    };
    let lent = capture
        .partial
        .then(|| lend(context, &lock, &capture.manifest.skipped));
    let loan = lent.transpose()?.flatten();
    if loan.is_some() {
        drop(capture);
        capture = repo.capture_lent(&lock, &outer, also, loan.as_ref())?;
    }
    let nested = nested::capture_all(context, rules, repo, &mut capture)?;
    let memory = memory::read(context)?;
    Ok(Prepared {
        capture,
        nested,
        memory,
        loan,
        lock,
        begun,
    })
}

/// Makes what was captured durable before the ledger's lock is taken, which others wait for; unless it is little: with the
/// rest of its checkpoint that takes fewer syncs and one pack. Where that fails, so does the checkpoint, with the reason.
pub(crate) fn publish_large(prepared: &Prepared) {
    if prepared.capture.is_little() {
        return;
    }
    if let Err(error) = prepared.capture.write_early(&prepared.memory) {
        tracing::debug!(%error, "the capture is not durable yet");
    }
}

/// Writes the commit and its reference; the caller appends the event ([`event`]) in the same hold of the ledger's
/// lock, so that ids and order are exact.
pub(crate) fn record(
    context: &Context,
    ledger: &Exclusive,
    key: &RunKey,
    prepared: &Prepared,
    request: Request,
) -> Result<Checkpoint> {
    record_with(context, ledger, key, prepared, request, |_| Vec::new())
}

/// [`record`] with its event, in the same hold of the ledger's lock.
pub(crate) fn take(
    context: &Context,
    ledger: &mut Exclusive,
    key: &RunKey,
    prepared: &Prepared,
    request: Request,
) -> Result<Checkpoint> {
    let taken = record(context, ledger, key, prepared, request)?;
    ledger.append(taken.created_at, vec![event(&taken)])?;
    Ok(taken)
}

/// [`record`] where more events than [`event`] follow in the same hold of the lock. They are known already and go into the
/// checkpoint too, so that a ledger which is rebuilt from it has them; `following` makes them of the checkpoint's id.
pub(crate) fn record_with(
    context: &Context,
    ledger: &Exclusive,
    key: &RunKey,
    prepared: &Prepared,
    request: Request,
    following: impl FnOnce(&CheckpointId) -> Vec<NewEvent>,
) -> Result<Checkpoint> {
    let repo = context.repo()?;
    let state = ledger.state();
    let now = context.clock.now();
    nested::remove_strays(context, state, &prepared.nested)?;
    let (seq, id) = free_id(context, state, key, now, &prepared.nested)?;
    let previous = state.checkpoints_of(key).next_back();
    let run = state.run(key);
    let is_for_the_run = request.lane_fields.stage.is_none() && request.trigger != trigger::SAFETY;
    if let Some(run) = run.filter(|run| is_for_the_run && is_elsewhere(context, run)) {
        tracing::warn!(
            "run {} works in {}, and this is taken in {}",
            run.key,
            run.worktree,
            context.worktree_id()
        );
    }
    let capture = &prepared.capture;
    let after_iteration = request
        .after_iteration
        .unwrap_or_else(|| run.map_or(0, |run| run.current_iteration.saturating_sub(1)));
    let task_id = run
        .and_then(|run| run.task_id.clone())
        .or_else(|| context.naming().task.clone());
    let from = changes_from(context, state, key);
    let (changes, changed_paths) = changes_since(context, from, capture)?;
    let changed_from = from
        .map(|from| from.id.clone())
        .filter(|from| previous.is_some_and(|one| one.id != *from));
    let kind = if begins_phase(state, key, &request) {
        CheckpointType::Phase
    } else {
        request.kind
    };
    let mut checkpoint = Checkpoint {
        id,
        seq,
        run: key.clone(),
        task_id,
        lane_fields: without_secrets(request.lane_fields.clone()),
        kind,
        trigger: if request.trigger.is_empty() {
            trigger::MANUAL.to_owned()
        } else {
            redact(&request.trigger).into_owned()
        },
        worktree: context.worktree_id(),
        state_dir: context.state_dir_id(),
        after_iteration,
        attempt: request.attempt,
        verdict: request.verdict,
        storage_type: StorageType::Snapshot,
        commit: ObjectId(String::new()),
        tree: capture.tree.clone(),
        base_commit: capture.head.commit.clone(),
        head_ref: capture.head.branch.clone(),
        branch_commit: None,
        patch_path: None,
        previous: previous.map(|checkpoint| checkpoint.id.clone()),
        created_at: now,
        description: redact(&request.description).into_owned(),
        pinned: request.pinned,
        pin_note: None,
        damaged: false,
        captured: capture.stats,
        changed_from,
        changes,
        changed_paths,
        skipped: capture.manifest.skipped.clone(),
        unsettled: capture.manifest.unsettled.clone(),
        partial: capture.partial,
        feedback_results: FeedbackResults::default(),
        duration_ms: u64::try_from(prepared.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    if checkpoint.description.is_empty() {
        checkpoint.description = headline(&checkpoint);
    }
    let committed = storage::store(context, prepared, &request, &mut checkpoint)?;
    checkpoint.feedback_results = request.feedback_results;
    let since = run.map_or(0, |run| run.checkpoint_event_seq);
    let mut events = events_of(ledger, key, since)?;
    // The checkpoint's own event comes first.
    events.extend(
        ledger
            .lines_to_come(now, 1, following(&checkpoint.id))?
            .into_bytes(),
    );
    let events = masked(&events);
    let message = message(&checkpoint)?;
    let before = previous
        .filter(|_| !prepared.nested.is_empty())
        .and_then(|previous| {
            let held =
                repo.resolve_ref(&CheckpointRef::name_of(&previous.run.run_id, &previous.id))?;
            repo.load_checkpoint(&held).ok()
        });
    let around = (repo, capture);
    let nested::Recorded { links, copies } = nested::record(
        context,
        around,
        &prepared.nested,
        before.as_ref(),
        &checkpoint,
    )?;
    let parts = CheckpointParts {
        memory: &prepared.memory,
        events_jsonl: &events,
        copies: copies.as_ref(),
        message: &message,
        at: now,
    };
    checkpoint.commit = repo.write_linked(capture, &links, committed.as_ref(), &parts)?;
    seed_json::write_active(context, &checkpoint, &prepared.memory, capture);
    let reference = CheckpointRef::name_of(&key.run_id, &checkpoint.id);
    ledger.note_reference(&checkpoint.id);
    repo.name_checkpoint(&prepared.lock, capture, &reference, &checkpoint.commit)?;
    if let Err(error) = repo.note_ignored(capture, &checkpoint.id, &context.precious()) {
        // The checkpoint is as good without it.
        context.warn(format!(
            "ignored files have no copy: {}",
            Error::from(error)
        ));
    }
    capture.write_cache(&reference, &checkpoint.commit);
    storage::note_size(context, &checkpoint.id, capture.added_bytes());
    vault::follow(context, !state.checkpoints.is_empty());
    Ok(checkpoint)
}

/// The checkpoint that a run's next one is compared with: its previous one, or the one that files went back to since.
fn changes_from<'a>(context: &Context, state: &'a State, key: &RunKey) -> Option<&'a Checkpoint> {
    let previous = state.checkpoints_of(key).next_back()?;
    let restored = match baseline(context, state) {
        [whole] if whole.paths.is_empty() && previous.is_safety() => {
            state.checkpoint(&whole.checkpoint_id)
        }
        _ => None,
    };
    Some(
        restored
            .filter(|restored| restored.run == *key)
            .unwrap_or(previous),
    )
}

/// Whether a run works in another work tree, which is there. A lane's stages record where it works.
fn is_elsewhere(context: &Context, run: &Run) -> bool {
    run.worktree != context.worktree_id() && context.is_worktree_of_repo(&run.worktree)
}

/// The next sequence number and its id. Another state directory of the same repository, or a kill before the event, may
/// have left a reference of that name.
fn free_id(
    context: &Context,
    state: &State,
    key: &RunKey,
    now: Timestamp,
    nested: &[NestedCapture],
) -> Result<(u64, CheckpointId)> {
    let repo = context.repo()?;
    let mut seq = state.last_checkpoint_seq + 1;
    loop {
        let id = CheckpointId::from(format!(
            "ckpt_{}_{seq:04}",
            now.datetime().format("%Y%m%d_%H%M%S")
        ));
        if !repo.ref_exists(&CheckpointRef::name_of(&key.run_id, &id))
            && !nested::taken(nested, &key.run_id, &id)
        {
            return Ok((seq, id));
        }
        seq += 1;
    }
}

/// Whether it is what the first attempt of a phase begins with (S10); lanes of one phase share it.
fn begins_phase(state: &State, key: &RunKey, request: &Request) -> bool {
    let is_of_phase = |run: &&Run| (&run.key.run_id, &run.key.phase) == (&key.run_id, &key.phase);
    let begins = request.trigger == trigger::INITIAL && key.phase.as_str() != NONE;
    begins
        && !state
            .runs
            .iter()
            .filter(is_of_phase)
            .any(|run| run.was_captured)
}

/// The event of a checkpoint that was recorded.
pub(crate) fn event(checkpoint: &Checkpoint) -> NewEvent {
    event_with(checkpoint, Vec::new())
}

/// [`event`] with commits that the caller named as the run's own.
pub(in crate::engine) fn event_with(
    checkpoint: &Checkpoint,
    own_commits: Vec<ObjectId>,
) -> NewEvent {
    let checkpoint = Box::new(checkpoint.clone());
    let key = checkpoint.run.clone();
    NewEvent::about(
        &key,
        Payload::CheckpointCreated {
            checkpoint,
            adopted: false,
            own_commits,
        },
    )
}

fn headline(checkpoint: &Checkpoint) -> String {
    match (checkpoint.trigger.as_str(), checkpoint.after_iteration) {
        (trigger::INITIAL, _) => "Before the first attempt".to_owned(),
        (trigger::SAFETY, _) => "Before a restore".to_owned(),
        (trigger::INTERVAL, _) => "Automatic: the last one was old enough".to_owned(),
        (trigger::OPERATION, _) => "Automatic: enough was done since the last one".to_owned(),
        (_, 0) => "Checkpoint".to_owned(),
        (_, number) => format!("After iteration {number}"),
    }
}

/// What a lane's record says in words: nothing of it is needed to run again, and it becomes part of a commit.
fn without_secrets(mut fields: LaneFields) -> LaneFields {
    let texts = [
        &mut fields.notes,
        &mut fields.test_command,
        &mut fields.base_branch,
        &mut fields.target_branch,
    ];
    for text in texts
        .into_iter()
        .flatten()
        .chain(&mut fields.failure_context)
    {
        *text = redact(text).into_owned();
    }
    fields
}

/// The run's raw events after `since`, one a line.
fn events_of(ledger: &Exclusive, key: &RunKey, since: u64) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for (_, line) in ledger.store().lines_of_run(key, since)? {
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
    }
    Ok(text)
}

/// What changed since the run's previous checkpoint. For the first, and after one that cannot be read, everything is created.
pub(in crate::engine) fn changes_since(
    context: &Context,
    previous: Option<&Checkpoint>,
    capture: &Capture,
) -> Result<Changes> {
    let created = (
        ChangeTotals {
            created: capture.entry_count(),
            ..ChangeTotals::default()
        },
        Vec::new(),
    );
    let Some(previous) = previous else {
        return Ok(created);
    };
    let repo = context.repo()?;
    match repo
        .load_checkpoint(&previous.commit)
        .and_then(|before| changes_between(&before, capture))
    {
        Ok(changes) => Ok(changes),
        Err(error) if cannot_be_read(&error) => {
            tracing::warn!(%error, "{} cannot be read: what changed since is not known", previous.id);
            Ok(created)
        }
        Err(error) => Err(error.into()),
    }
}

/// What no later try will read either: no reason not to take the next checkpoint.
fn cannot_be_read(error: &git::Error) -> bool {
    match error {
        GitError::Corrupt(_) => true,
        GitError::Io { source, .. } => source.kind() == std::io::ErrorKind::PermissionDenied,
        _ => false,
    }
}

fn changes_between(before: &StoredCheckpoint, capture: &Capture) -> Result<Changes, GitError> {
    let (mut totals, mut paths) = (ChangeTotals::default(), Vec::new());
    if capture.is_same_tree(before) {
        return Ok((totals, paths));
    }
    let objects = capture.objects();
    let (before, now) = TreeLookup::new(&objects)?.diff(before.view(), capture.view())?;
    for (path, before, now) in before.unlike(&now) {
        if paths.len() < MAX_CHANGED_PATHS {
            paths.push(path.clone());
        }
        match (before, now) {
            (None, _) => totals.created += 1,
            (_, None) => totals.deleted += 1,
            _ => totals.modified += 1,
        }
    }
    Ok((totals, paths))
}

/// Lends rights to read what cannot be read any more: while an attempt is under way, what the last checkpoint of this work
/// tree holds, and what was not closed when the run began; after it, what that checkpoint already has without those rights. What a
/// person closed was in neither.
pub(super) fn lend(
    context: &Context,
    lock: &WorktreeLock,
    skipped: &[PathReason],
) -> Result<Option<Loan>> {
    let paths: Vec<RepoPath> = skipped
        .iter()
        .filter(|skipped| skipped.is_unreadable())
        .map(|skipped| skipped.path.clone())
        .collect();
    if paths.is_empty() || lock.is_rehearsal() {
        return Ok(None);
    }
    let (repo, state) = (context.repo()?, context.load()?.state);
    let worktree = context.worktree_id();
    let in_attempt = state.runs_of(&worktree).any(|run: &Run| run.live.is_some());
    let mut before = Vec::new();
    for layer in baseline(context, &state) {
        if let Some(checkpoint) = state.checkpoint(&layer.checkpoint_id) {
            before.push(repo.load_checkpoint(&checkpoint.commit)?);
        }
    }
    let mut began = Vec::new();
    for run in state.runs_of(&worktree).filter(|run| run.live.is_some()) {
        if let Some(initial) = state.initial(&run.key).and_then(Named::kept) {
            began.push(repo.load_checkpoint(&initial.commit)?);
        }
    }
    let lookup = TreeLookup::stored(repo)?;
    let may = |path: &RepoPath, is_folder: bool| -> Result<bool, GitError> {
        for stored in &before {
            if mode_in(stored, &lookup, path, is_folder)?
                .is_some_and(|mode| in_attempt || mode & 0o400 == 0)
            {
                return Ok(true);
            }
        }
        let was_closed = |initial: &StoredCheckpoint| {
            let mut skipped = initial.manifest.skipped.iter();
            skipped.any(|skipped| path.starts_with(&skipped.path))
        };
        Ok(began.iter().any(|initial| !was_closed(initial)))
    };
    Ok(Loan::lend(repo, lock, &paths, &may)?)
}

/// The mode that a checkpoint has of a path; `None` where it does not hold it.
fn mode_in(
    stored: &StoredCheckpoint,
    lookup: &TreeLookup<'_>,
    path: &RepoPath,
    is_folder: bool,
) -> Result<Option<u32>, GitError> {
    if let Some(entry) = stored.view().entry(lookup, path)? {
        return Ok(Some(entry.mode));
    }
    if !is_folder || !stored.view().is_folder(lookup, path)? {
        return Ok(None);
    }
    let listed = stored
        .manifest
        .folder_modes
        .iter()
        .find(|listed| listed.path == *path);
    Ok(Some(
        listed.map_or(stored.manifest.modes.folder, |listed| listed.mode),
    ))
}
