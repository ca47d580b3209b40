//! Takes what lies of a run on a remote into the ledger: objects are here and verified, then references, then events.

use std::collections::HashSet;
use std::sync::Arc;

use anyhow::Context as _;

use super::push::{leave_aside, places};
use super::record::{Chain, Locked, Record, RunThere};
use super::server::Miss;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint::lock;
use crate::engine::recovery::lost::{apply_attempts as apply_lost, end_lost};
use crate::engine::trust::agreed::note_taken_in;
use crate::git::WorktreeLock;
use crate::git::repo::CheckpointRef;
use crate::model::checkpoint::trigger;
use crate::model::remote::{ChainedEvent, RemoteState};
use crate::model::{
    Checkpoint, CheckpointId, Event, FolderId, Hint, ObjectId, Payload, Run, RunKey, State,
    Timestamp,
};
use crate::policy::checkpoint_events::{fold, note_masks};
use crate::policy::remote::{Names, Places};
use crate::store::NewEvent;
use crate::store::views::write_views;

/// Imports what `tip`, which is there, has and the ledger has not. What the ledger has and that has not makes way: whoever
/// holds the run has not seen it.
///
/// # Errors
/// The ledger has another run of that name (13).
pub(super) fn take_in(locked: &mut Locked<'_>, tip: &ObjectId) -> Result<()> {
    let there = locked.there;
    let (context, key, repo) = (there.context, there.key, there.repo()?);
    let loaded = context.load()?.state;
    let is_here = loaded.run(key).is_some();
    let known = locked.record.tip.clone().filter(|_| is_here);
    let makes_way = gives_way(&loaded, key, &locked.record);
    if is_here && known.is_none() && !makes_way {
        return Err(refuse_other(there));
    }
    let goes_on = match &known {
        Some(known) if repo.is_earlier_state(known, tip)? => context
            .store()
            .lines_of_run(key, locked.record.sent_seq)?
            .is_empty(),
        _ => false,
    };
    let known = known.filter(|_| goes_on);
    let mut chain = there.read(tip, known.as_ref())?;
    let replaces = is_here && !goes_on;
    bring_home(context, key, &loaded, makes_way, &mut chain.states)?;
    let pruned = pruned(&chain.states);
    examine(there, &loaded, &chain.states)?;
    if brings_spec(&chain.states) {
        note_taken_in(context, key, there.name(), loaded.run(key))?;
    }
    let mut events: Vec<(Timestamp, NewEvent)> = Vec::new();
    if replaces {
        let payload = Payload::RunReplaced {
            remote: there.name().to_owned(),
        };
        events.push((context.clock.now(), NewEvent::about(key, payload)));
        match leave_aside(locked).map_err(Miss::error) {
            Ok(Some(name)) => {
                context.note(format!(
                    "events of run {key} that this machine had not sent are saved as {name}"
                ));
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "what this machine did last is not on the remote"),
        }
    }
    context.store().forget_settled();
    let mut last_seq = loaded.last_checkpoint_seq;
    let worktree_lock = lock(context)?;
    if replaces {
        keep_own(context, key, &worktree_lock, &loaded, &chain.states)?;
    }
    for state in &chain.states {
        let elsewhere = FolderId::from(format!("remote:{}", state.claim.host));
        for one in &state.events {
            let event = &one.event;
            let mut payload = event.payload.clone();
            match &mut payload {
                Payload::CheckpointCreated { checkpoint, .. }
                | Payload::CheckpointReturned { checkpoint } => {
                    checkpoint.worktree = elsewhere.clone();
                    checkpoint.state_dir = context.state_dir_id();
                    let came_along = state.checkpoints.contains(&checkpoint.commit);
                    if came_along && !pruned.contains(checkpoint.id.as_str()) {
                        let name = CheckpointRef::name_of(&checkpoint.run.run_id, &checkpoint.id);
                        match (loaded.checkpoint(&checkpoint.id), repo.resolve_ref(&name)) {
                            // It was taken here: what was not sent of it is here.
                            (Some(own), Some(_)) => **checkpoint = own.clone(),
                            (_, Some(kept)) if kept == checkpoint.commit => {}
                            (_, Some(_)) => return Err(taken(context, key, &name)),
                            (_, None) => repo.set_ref(&worktree_lock, &name, &checkpoint.commit)?,
                        }
                    }
                    if checkpoint.seq <= last_seq {
                        checkpoint.seq = last_seq + 1;
                    }
                    last_seq = checkpoint.seq;
                }
                Payload::RunCreated { worktree, .. } => *worktree = context.worktree_id(),
                Payload::StepStarted(start) => start.worktree = context.worktree_id(),
                Payload::Restored { operation } => {
                    operation.worktree = elsewhere.clone();
                    operation.steps.retain(|step| step.run == *key);
                }
                _ => {}
            }
            let new = NewEvent {
                run: Some(key.clone()),
                source: event.source,
                payload,
            };
            events.push((event.at, new));
        }
    }
    let mut ledger = context.store().lock()?;
    ledger.append_dated(events)?;
    let sent_seq = ledger.state().last_seq;
    write_views(ledger, &[key])?;
    drop(worktree_lock);
    let record = &mut locked.record;
    record.tip = Some(tip.clone());
    if let Some(end) = chain.end() {
        record.chain = end.meta.chain;
    }
    record.sent_seq = sent_seq;
    record.pending.clear();
    record.away = None;
    record.url = Some(there.remote.url.clone());
    record.is_unsettled = true;
    record.sent_checkpoint = latest_sent(&chain.states).or(record.sent_checkpoint.take());
    locked.save()?;
    // Whoever was at it there is at it no more.
    if let Some(what) = end_lost(context, key)? {
        context.note(what);
    }
    Ok(())
}

/// Another run of that name is recorded here (13).
pub(super) fn refuse_other(there: RunThere<'_>) -> Error {
    let message = format!(
        "a different run named {} exists here and is not on {}",
        there.key,
        there.name()
    );
    Error::new(ErrorKind::AlreadyExists, message).hint(Hint::recover(["status"]).run(there.key))
}

/// Whether the run of that name here is another one than any on the remote, and has nothing in it that anybody would miss: it was
/// begun at the same time as that on another machine, say, and no attempt of it was made.
pub(super) fn gives_way(state: &State, key: &RunKey, record: &Record) -> bool {
    let is_untouched = |run: &Run| {
        run.attempts().next().is_none()
            && run.live.is_none()
            && run.manual_fix.is_none()
            && run.steps.is_empty()
            && run.imported.is_empty()
    };
    let is_first = |checkpoint: &Checkpoint| checkpoint.trigger == trigger::INITIAL;
    record.tip.is_none()
        && state.run(key).is_some_and(is_untouched)
        && state.checkpoints_of(key).all(is_first)
}

/// A run as it would be recorded here; nothing is.
pub(super) fn planned(context: &Context, key: &RunKey, chain: &Chain) -> Result<Arc<State>> {
    let mut state = Arc::new(fold(&events_at_home(context, key, chain)?));
    // Whoever was at it there is at it no more.
    apply_lost(context, &mut state);
    Ok(state)
}

/// What a chain says, with the places of this machine.
///
/// # Errors
/// It speaks of other runs (12).
pub(super) fn events_at_home(context: &Context, key: &RunKey, chain: &Chain) -> Result<Vec<Event>> {
    let places = places(context);
    let mut events = Vec::new();
    for one in chain.states.iter().flat_map(|state| &state.events) {
        let mut event = at_home(&places, &one.event)?;
        belongs(&State::default(), key, &event.payload)
            .map_err(|what| refused(key, "the remote", &what))?;
        if let Payload::RunCreated { worktree, .. } = &mut event.payload {
            *worktree = context.worktree_id();
        }
        events.push(event);
    }
    Ok(events)
}

/// Nothing of a chain counts before all of it was found to be what it says.
fn examine(there: RunThere<'_>, state: &State, states: &[RemoteState]) -> Result<()> {
    for one in states.iter().flat_map(|part| &part.events) {
        belongs(state, there.key, &one.event.payload)
            .map_err(|what| refused(there.key, there.name(), &what))?;
    }
    let pruned = pruned(states);
    for part in states {
        for checkpoint in part.events.iter().filter_map(created) {
            if part.checkpoints.contains(&checkpoint.commit)
                && !pruned.contains(checkpoint.id.as_str())
            {
                check(there, checkpoint)?;
            }
        }
    }
    Ok(())
}

/// The checkpoint that an event brings.
fn created(one: &ChainedEvent) -> Option<&Checkpoint> {
    match &one.event.payload {
        Payload::CheckpointCreated { checkpoint, .. }
        | Payload::CheckpointReturned { checkpoint } => Some(checkpoint),
        _ => None,
    }
}

/// Whether states say what the run starts.
fn brings_spec(states: &[RemoteState]) -> bool {
    let mut events = states.iter().flat_map(|state| &state.events);
    events.any(|one| {
        matches!(
            one.event.payload,
            Payload::RunCreated { .. } | Payload::RunSpecChanged { .. }
        )
    })
}

/// Whether an event of the run speaks of that run alone: not of checkpoints that another one has here.
fn belongs(state: &State, key: &RunKey, payload: &Payload) -> std::result::Result<(), String> {
    let ids: Vec<&CheckpointId> = match payload {
        Payload::RunsForgotten { .. } | Payload::RunReplaced { .. } => {
            return Err("it removes runs".to_owned());
        }
        Payload::CheckpointCreated { checkpoint, .. }
        | Payload::CheckpointReturned { checkpoint } => {
            vec![&checkpoint.id]
        }
        Payload::CheckpointPinned { checkpoint_id, .. }
        | Payload::CheckpointLabelled { checkpoint_id, .. }
        | Payload::BaselineVerified { checkpoint_id, .. } => {
            vec![checkpoint_id]
        }
        Payload::CheckpointsPruned { ids } => ids.iter().collect(),
        _ => Vec::new(),
    };
    let other = ids.into_iter().find_map(|id| {
        state
            .checkpoint(id)
            .filter(|checkpoint| checkpoint.run != *key)
    });
    other.map_or(Ok(()), |other| {
        Err(format!(
            "it refers to checkpoint {}, which belongs to run {} here",
            other.id, other.run
        ))
    })
}

fn refused(key: &RunKey, remote: &str, what: &str) -> Error {
    let message = format!(
        "run {key} on {remote} is damaged or was tampered with: {what}; nothing was imported"
    );
    Error::new(ErrorKind::Corrupt, message)
        .hint(Hint::recover(["remote", "status", "--remote", remote]).run(key))
}

/// What is in the place of a checkpoint's reference is none of the run's.
fn taken(context: &Context, key: &RunKey, name: &str) -> Error {
    let message =
        format!("{name} exists already and is a different checkpoint from the one of run {key}");
    Error::new(ErrorKind::AlreadyExists, message)
        .hint(Hint::git(["log", "-1", name]).at(context.worktree()))
}

/// Checkpoints that were taken here and that nobody else has seen stay, under a name of their own.
fn keep_own(
    context: &Context,
    key: &RunKey,
    lock: &WorktreeLock,
    state: &State,
    states: &[RemoteState],
) -> Result<()> {
    let repo = context.repo()?;
    let events = states.iter().flat_map(|state| &state.events);
    let there: HashSet<&str> = events
        .filter_map(|one| match &one.event.payload {
            Payload::CheckpointCreated { checkpoint, .. } => Some(checkpoint.id.as_str()),
            _ => None,
        })
        .collect();
    for own in state
        .checkpoints_of(key)
        .filter(|own| !there.contains(own.id.as_str()))
    {
        let kept = CheckpointRef::kept(&key.run_id, &own.commit);
        if repo.resolve_ref(&kept.name).is_none() {
            repo.set_ref(lock, &kept.name, &kept.commit)?;
        }
        context.note(format!(
            "checkpoint {}, which only this machine has, is kept as {}",
            own.id, kept.name
        ));
    }
    Ok(())
}

/// The checkpoint that came last.
fn latest_sent(states: &[RemoteState]) -> Option<ObjectId> {
    states
        .iter()
        .rev()
        .find_map(|state| state.checkpoints.last().cloned())
}

/// Checkpoints that were removed later: nothing of them is wanted.
fn pruned(states: &[RemoteState]) -> HashSet<&str> {
    let events = states.iter().flat_map(|state| &state.events);
    let gone = events.filter_map(|one| match &one.event.payload {
        Payload::CheckpointsPruned { ids } => Some(ids),
        _ => None,
    });
    gone.flatten().map(CheckpointId::as_str).collect()
}

/// Gives the events of another machine the places of this one, and their checkpoints names that no other run has here, nor one of
/// the same name that makes way for it.
fn bring_home(
    context: &Context,
    key: &RunKey,
    state: &State,
    makes_way: bool,
    states: &mut [RemoteState],
) -> Result<()> {
    let names = Names::of(key);
    let known: Vec<CheckpointId> = state
        .checkpoints_of(key)
        .filter_map(|own| names.there(own.id.as_str()))
        .map(CheckpointId::from)
        .collect();
    let events = states.iter().flat_map(|part| &part.events);
    let created = events.filter_map(created).map(|checkpoint| &checkpoint.id);
    let is_taken = |id: &&CheckpointId| {
        state
            .checkpoint(id)
            .is_some_and(|here| here.run != *key || makes_way)
    };
    let names = names.taken(created.filter(is_taken).chain(&known));
    let places = places(context).with(names);
    for one in states.iter_mut().flat_map(|part| &mut part.events) {
        one.event = at_home(&places, &one.event)?;
    }
    Ok(())
}

/// An event of another machine with the places of this one.
pub(super) fn at_home(places: &Places, event: &Event) -> Result<Event> {
    let document = serde_json::to_value(event).context("cannot read an event of the remote")?;
    let shown = serde_json::from_value(places.show(document));
    let mut shown: Event = shown.context("cannot read an event of the remote")?;
    note_masks(&mut shown.payload);
    Ok(shown)
}

/// A checkpoint is one, and holds the tree that its event names.
fn check(there: RunThere<'_>, checkpoint: &Checkpoint) -> Result<()> {
    let stored = there.repo()?.load_checkpoint(&checkpoint.commit)?;
    if stored.tree == checkpoint.tree {
        return Ok(());
    }
    let message = format!(
        "run {} on {}: checkpoint {} does not hold what its event names",
        there.key,
        there.name(),
        checkpoint.id
    );
    Err(Error::new(ErrorKind::Corrupt, message).hint(there.hint("status")))
}
