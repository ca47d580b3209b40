//! Taking a checkpoint: capture under the work tree's lock, then commit, reference and event under the ledger's.

mod changes;
mod due;

use std::collections::BTreeSet;
use std::time::Instant;

use crate::engine::record::message::message;
use crate::engine::record::request::{Prepared, Request};
use crate::engine::record::step_liveness;
use crate::git::WorktreeLock;
use crate::git::capture::{Capture, capture};
use crate::git::checkpoint::{CheckpointParts, name_checkpoint, write_linked};
use crate::git::journal::read_journal;
use crate::git::refs::{ref_exists, ref_name, resolve_ref};
use crate::git::stored::load_checkpoint;
use crate::model::checkpoint::{CapturedTotals, Checkpoint, trigger};
use crate::model::event::Payload;
use crate::model::path::RepoPath;
use crate::model::run::{Run, RunKey};
use crate::model::selector::Selector;
use crate::model::snapshot::ObjectId;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::store::views::write_views;
use crate::store::{Exclusive, NewEvent};

use super::context::Context;
use super::error::{Error, ErrorKind, Result};
use super::nested::{self, NestedCapture};
use super::{lane, memory, seed_json, select, settle, storage};

use changes::changes_since;
pub use due::{due, is_due_by_operations, not_due, record_operation};

/// Takes the work tree's lock. A restore or an atomic step that was cut off leaves a tree in between, which must neither be captured nor
/// planned from: who writes has settled it before, who only reads is told (exit 16).
pub fn lock(context: &Context) -> Result<WorktreeLock> {
    let repo = context.repo()?;
    let lock = context.lock_worktree(repo)?;
    match read_journal(repo)? {
        None => step_liveness::refuse_cut_off(context).map(|()| lock),
        Some(journal) => {
            let message = format!("{} {} was cut off and is not settled yet", journal.kind, journal.operation_id);
            Err(Error::new(ErrorKind::CutOff, message).hint(context.hint_command(None, &["doctor", "--repair"])))
        }
    }
}

/// Captures work tree, index, HEAD and working memory.
pub fn prepare(context: &Context, also: &BTreeSet<RepoPath>) -> Result<Prepared> {
    prepare_under(context, lock(context)?, also)
}

/// Captures under a lock that is held already. `also` are paths to take even when they are ignored.
pub fn prepare_under(context: &Context, lock: WorktreeLock, also: &BTreeSet<RepoPath>) -> Result<Prepared> {
    let begun = Instant::now();
    let repo = context.repo()?;
    let mut capture = capture(repo, &lock, &context.capture_rules(), also)?;
    let nested = nested::capture_all(context, repo, &mut capture)?;
    let memory = memory::read(context)?;
    Ok(Prepared { capture, nested, memory, lock, begun })
}

/// Writes the commit and its reference; the caller appends the event ([`event`]) in the same hold of the ledger's
/// lock, so that ids and order are exact.
pub fn record(
    context: &Context,
    ledger: &Exclusive,
    key: &RunKey,
    prepared: &Prepared,
    request: Request,
) -> Result<Checkpoint> {
    record_with(context, ledger, key, prepared, request, |_| Vec::new())
}

/// The same where more events than [`event`] follow in the same hold of the lock. They are known already and go into the
/// checkpoint too, so that a ledger which is rebuilt from it has them; `following` makes them of the checkpoint's id.
pub fn record_with(
    context: &Context,
    ledger: &Exclusive,
    key: &RunKey,
    prepared: &Prepared,
    request: Request,
    following: impl FnOnce(&str) -> Vec<NewEvent>,
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
        tracing::warn!("run {} works in {}, and this is taken in {}", run.key, run.worktree, context.worktree_id());
    }
    let capture = &prepared.capture;
    let after_iteration =
        request.after_iteration.unwrap_or_else(|| run.map_or(0, |run| run.current_iteration.saturating_sub(1)));
    let task_id = run.and_then(|run| run.task_id.clone()).or_else(|| context.naming().task.clone());
    let task = task_id.as_deref();
    let subject = storage::Subject { key, task, id: &id, after_iteration, request: &request };
    let kept = storage::keep(context, prepared, &subject)?;
    let (changes, changed_paths) = changes_since(context, previous, capture)?;
    let mut checkpoint = Checkpoint {
        id,
        seq,
        run: key.clone(),
        task_id,
        lane_fields: request.lane_fields,
        kind: request.kind,
        trigger: if request.trigger.is_empty() { trigger::MANUAL.to_owned() } else { request.trigger },
        worktree: context.worktree_id(),
        state_dir: context.state_dir_id(),
        after_iteration,
        attempt: request.attempt,
        verdict: request.verdict,
        storage_type: kept.storage_type,
        commit: ObjectId(String::new()),
        tree: capture.tree.clone(),
        base_commit: kept.committed.as_ref().map_or(&capture.head, |committed| &committed.head).commit.clone(),
        head_ref: capture.head.branch.clone(),
        branch_commit: kept.committed.as_ref().map(|committed| committed.commit.clone()),
        patch_path: kept.patch_path,
        previous: previous.map(|checkpoint| checkpoint.id.clone()),
        created_at: now,
        description: request.description,
        pinned: request.pinned,
        pin_note: None,
        captured: totals(capture),
        changes,
        changed_paths,
        skipped: capture.manifest.skipped.clone(),
        partial: capture.partial,
        feedback_results: request.feedback_results,
        duration_ms: u64::try_from(prepared.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    if checkpoint.description.is_empty() {
        checkpoint.description = headline(&checkpoint);
    }
    let since = run.map_or(0, |run| run.checkpoint_event_seq);
    let mut events = events_of(ledger, key, since)?;
    // The checkpoint's own event comes first.
    events.extend(ledger.lines_to_come(now, 1, following(&checkpoint.id))?.into_bytes());
    let message = message(&checkpoint)?;
    let before = previous.filter(|_| !prepared.nested.is_empty()).and_then(|previous| {
        let held = resolve_ref(repo, &ref_name(&previous.run.run_id, &previous.id))?;
        load_checkpoint(repo, &held).ok()
    });
    let around = (repo, capture);
    let nested::Recorded { links, copies } =
        nested::record(context, around, &prepared.nested, before.as_ref(), &checkpoint)?;
    let parts = CheckpointParts {
        memory: &prepared.memory,
        events_jsonl: &events,
        copies: copies.as_ref(),
        message: &message,
        at: now,
    };
    checkpoint.commit = write_linked(repo, capture, &links, kept.committed.as_ref(), &parts)?;
    seed_json::keep_active(context, &checkpoint, &prepared.memory, capture);
    let reference = ref_name(&key.run_id, &checkpoint.id);
    name_checkpoint(repo, &prepared.lock, capture, &reference, &checkpoint.commit)?;
    capture.remember(&reference, &checkpoint.commit);
    Ok(checkpoint)
}

/// Whether a run works in another work tree, which is there. A lane's stages tell where it works.
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
) -> Result<(u64, String)> {
    let repo = context.repo()?;
    let mut seq = state.last_checkpoint_seq + 1;
    loop {
        let id = format!("ckpt_{}_{seq:04}", now.datetime().format("%Y%m%d_%H%M%S"));
        if !ref_exists(repo, &ref_name(&key.run_id, &id)) && !nested::taken(nested, &key.run_id, &id) {
            return Ok((seq, id));
        }
        seq += 1;
    }
}

/// The event of a checkpoint that was recorded.
pub fn event(checkpoint: &Checkpoint) -> NewEvent {
    event_with(checkpoint, Vec::new())
}

/// The same where the caller named commits as the run's own.
fn event_with(checkpoint: &Checkpoint, own_commits: Vec<ObjectId>) -> NewEvent {
    let checkpoint = Box::new(checkpoint.clone());
    let key = checkpoint.run.clone();
    NewEvent::about(&key, Payload::CheckpointCreated { checkpoint, adopted: false, own_commits })
}

fn headline(checkpoint: &Checkpoint) -> String {
    match (checkpoint.trigger.as_str(), checkpoint.after_iteration) {
        (trigger::INITIAL, _) => "Before the first attempt".to_owned(),
        (trigger::SAFETY, _) => "Before a restore".to_owned(),
        (trigger::INTERVAL, _) => "On the way: the last one was old enough".to_owned(),
        (trigger::OPERATION, _) => "On the way: enough was done since the last one".to_owned(),
        (_, 0) => "Checkpoint".to_owned(),
        (_, number) => format!("After iteration {number}"),
    }
}

/// The run's raw events after `since`, one a line.
fn events_of(ledger: &Exclusive, key: &RunKey, since: u64) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    for (event, line) in ledger.store().read_lines(since)? {
        if event.run.as_ref() == Some(key) {
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
        }
    }
    Ok(text)
}

/// When a checkpoint on request is not taken: the run's latest one is the answer then.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unless {
    /// Nothing has changed since the latest one.
    pub unchanged: bool,
    /// None is due: see [`due()`] (S10). A request of the trigger `operation` counts as an operation then.
    pub recent: bool,
}

/// A checkpoint on request, and whether it is a new one.
pub fn create(context: &Context, request: Request, unless: Unless) -> Result<(bool, Checkpoint)> {
    settle::settle(context)?;
    if unless.recent
        && let Some(latest) = not_due(context, &request.trigger)?
    {
        if request.trigger == trigger::OPERATION {
            record_operation(context, &latest.run, trigger::OPERATION)?;
        }
        return Ok((false, latest));
    }
    let prepared = prepare(context, &BTreeSet::new())?;
    let mut ledger = context.store().lock()?;
    let (key, mut events) = select::find_or_create(context, ledger.state(), "manual")?;
    // A stage that was reached is recorded, whatever changed.
    if unless.unchanged
        && request.lane_fields.stage.is_none()
        && let Some(same) = unchanged_since(context, ledger.state(), &key, &prepared)?
    {
        prepared.capture.mend()?;
        prepared.capture.remember_unchanged();
        return Ok((false, same));
    }
    let now = context.clock.now();
    // The run first: the checkpoint's own events then begin with it.
    ledger.append(now, std::mem::take(&mut events))?;
    let own_commits = request.lane_fields.commit_shas.iter().cloned().map(ObjectId).collect();
    let lane_fields = lane::fill(context, ledger.state(), &key, request.lane_fields);
    let request = Request { lane_fields, ..request };
    let checkpoint = record(context, &ledger, &key, &prepared, request)?;
    ledger.append(now, vec![event_with(&checkpoint, own_commits)])?;
    write_views(&ledger, Some(&key))?;
    Ok((true, checkpoint))
}

/// One that nobody waits for, of a run that the context names; `None` where nothing has changed since the latest.
pub fn on_the_way(context: &Context, why: &str) -> Result<Option<Checkpoint>> {
    let request = Request { trigger: why.to_owned(), kind: trigger::kind_of(why), ..Request::default() };
    let (changed, checkpoint) = create(context, request, Unless { unchanged: true, recent: false })?;
    Ok(changed.then_some(checkpoint))
}

/// What `create` would take: the plan of a dry run.
pub fn preview(context: &Context) -> Result<CapturedTotals> {
    let prepared = prepare(context, &BTreeSet::new())?;
    Ok(totals(&prepared.capture))
}

/// How much a capture holds.
pub(super) fn totals(capture: &Capture) -> CapturedTotals {
    CapturedTotals { files: capture.stats.files, bytes: capture.stats.bytes }
}

fn unchanged_since(context: &Context, state: &State, key: &RunKey, prepared: &Prepared) -> Result<Option<Checkpoint>> {
    let Some(latest) = state.latest(key) else { return Ok(None) };
    let stored = match load_checkpoint(context.repo()?, &latest.commit) {
        Ok(stored) => stored,
        // A damaged checkpoint is no reason not to take the next one.
        Err(error) => {
            tracing::warn!(%error, "{} cannot be read: a new checkpoint is taken", latest.id);
            return Ok(None);
        }
    };
    let same = prepared.capture.same_as(&stored, &prepared.memory)?
        && nested::unchanged(&prepared.nested, &stored.manifest.nested);
    Ok(same.then(|| latest.clone()))
}

/// Pins or unpins.
pub fn pin(context: &Context, selector: &Selector, pinned: bool, note: Option<String>) -> Result<Checkpoint> {
    if context.dry_run() {
        let state = settle::load_settled(context)?;
        return select::checkpoint(context, &state, selector).cloned();
    }
    settle::settle(context)?;
    let mut ledger = context.store().lock()?;
    let Checkpoint { id, run, .. } = select::checkpoint(context, ledger.state(), selector)?.clone();
    let payload = Payload::CheckpointPinned { checkpoint_id: id.clone(), pinned, note };
    ledger.append(context.clock.now(), vec![NewEvent::about(&run, payload)])?;
    write_views(&ledger, Some(&run))?;
    select::checkpoint(context, ledger.state(), &Selector::Id(id)).cloned()
}
