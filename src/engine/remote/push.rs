//! Pushes the next state of a run that this clone holds, and finds out what became of a push without an answer.
//!
//! The next state of a run: what the ledger has of it that is not on the remote yet.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;

use super::record::{Locked, Pending, RunThere};
use super::server::{CHANGES, Miss, Reach};
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Moment, Result};
use crate::engine::record::checkpoint::lock;
use crate::engine::record::remote_consent::plain_blobs_of;
use crate::engine::record::run_settings::settings_of;
use crate::engine::record::stored::message;
use crate::git::remote::{Filter, NewState, Remote};
use crate::model::remote::{Meta, REMOTE_SCHEMA};
use crate::model::{Checkpoint, Claim, ObjectId, Payload, State};
use crate::policy::remote::{Names, Places, Segment, Standing, base};

/// Pushes what is not there yet of a run that this clone holds, which is a sign of life also where that is nothing. With
/// `releases` it is the last one. Returns how many events came along.
pub(super) fn sync(locked: &mut Locked<'_>, releases: bool) -> Reach<usize> {
    let synced = attempt(locked, releases);
    if let Err(Miss::Away(away)) = &synced {
        // For the status of the run.
        locked.record.away = Some(away.said.clone());
        locked.record.gives_back |= releases;
        locked.save()?;
    }
    synced
}

fn attempt(locked: &mut Locked<'_>, releases: bool) -> Reach<usize> {
    let there = locked.there;
    // After a push without an answer: what it brought is there or not.
    for _ in 0..8 {
        let not_held = || {
            let message = format!(
                "this clone does not hold run {} on {}",
                there.key,
                there.name()
            );
            Error::new(ErrorKind::Claimed, message).hint(there.hint("claim"))
        };
        if !locked.record.pending.is_empty() && locked.record.tip.is_some() {
            settle(locked)?;
        }
        let tip = locked.record.tip.clone().ok_or_else(not_held)?;
        let before = there.standing(&tip)?;
        let is_own = locked.record.nonce.as_deref() == Some(before.claim.nonce.as_str());
        if is_own && releases && before.claim.released {
            // Its answer was lost.
            locked.record.nonce = None;
            locked.save()?;
            return Ok(0);
        }
        if !is_own || before.claim.released {
            // Another process of this clone may have noticed it.
            let holder = locked.record.lost_to.clone().unwrap_or(before.claim);
            return Err(there.held(holder, Duration::ZERO));
        }
        let claim = if releases {
            before.claim.released()
        } else {
            before.claim.clone()
        };
        // Whoever renews it needs it.
        locked.record.gives_back &= releases;
        let prepared = prepare(locked, Some(&before), &claim, false, None)?;
        match push(locked, &prepared, Some(&tip)) {
            // What was refused or cut off is read next.
            Err(Miss::Moved | Miss::Cut(_)) => {}
            pushed => {
                pushed?;
                if releases {
                    locked.record.nonce = None;
                    locked.save()?;
                }
                return Ok(prepared.events);
            }
        }
    }
    Err(there.away_for("it takes no push to its end", None))
}

/// Pushes one state, noted before so that it is known again.
pub(super) fn push(
    locked: &mut Locked<'_>,
    prepared: &Prepared,
    old: Option<&ObjectId>,
) -> Reach<()> {
    let there = locked.there;
    let pending = Pending {
        at: Moment::now(),
        ..prepared.pending.clone()
    };
    // Nothing else names it yet, and the user's own git may collect what nothing names.
    let place = Remote::pending_ref(there.name(), there.key);
    there.repo()?.set_tracking(&place, &pending.commit)?;
    locked.record.pending.push(pending.clone());
    locked.save()?;
    there.push(&Remote::run_ref(there.key), old, Some(&pending.commit))?;
    Ok(confirm(locked, &pending)?)
}

/// A state that was pushed is there.
pub(super) fn confirm(locked: &mut Locked<'_>, pending: &Pending) -> Result<()> {
    let there = locked.there;
    let repo = there.repo()?;
    repo.set_tracking(&there.tracking(), &pending.commit)?;
    repo.remove_tracking(&Remote::pending_ref(there.name(), there.key))?;
    if pending.takes {
        // The events before it come first.
        locked.record.alive = Some(pending.at.clone());
        return locked.save();
    }
    locked.record.confirm(pending);
    locked.record.url = Some(there.remote.url.clone());
    locked.record.see(&pending.commit);
    locked.save()
}

/// Finds out what became of pushes without an answer: what came through counts from now on.
///
/// # Errors
/// Another machine holds the run by now.
pub(super) fn settle(locked: &mut Locked<'_>) -> Reach<()> {
    let there = locked.there;
    let found = there.look()?;
    let is_there = |pending: &&Pending| Some(&pending.commit) == found.as_ref();
    if let Some(pending) = locked.record.pending.iter().find(is_there).cloned() {
        return Ok(confirm(locked, &pending)?);
    }
    let Some(tip) = locked
        .record
        .tip
        .clone()
        .filter(|tip| Some(tip) != found.as_ref())
    else {
        return Ok(());
    };
    let repo = there.repo()?;
    let newer = match found.clone() {
        Some(found) if !repo.has_object(&found) || !repo.is_earlier_state(&found, &tip)? => found,
        _ => {
            there.require_same_place(&locked.record)?;
            // The server was set back. Who holds the run has all of it.
            let pushed = there.push(&Remote::run_ref(there.key), found.as_ref(), Some(&tip));
            pushed.map_err(|missed| missed.waits(&there))?;
            there.context.note(format!(
                "the remote {} had an older state of run {}: it has the whole one again",
                there.name(),
                there.key
            ));
            return Ok(());
        }
    };
    let found = whose(there, &newer, &tip);
    if let Err(Miss::Failed(error)) = &found
        && error.kind == ErrorKind::AlreadyExists
    {
        // There is nothing left to be released.
        locked.record.pending.clear();
        locked.record.nonce = None;
        locked.save()?;
    }
    let Some(standing) = found? else {
        return Err(there.away_for(CHANGES, None));
    };
    locked.record.see(&standing.commit);
    locked.record.pending.clear();
    locked.record.nonce = None;
    locked.record.lost_to = Some(standing.claim.clone());
    locked.save()?;
    Err(there.held(standing.claim, Duration::ZERO))
}

/// Who holds a run by what the server has of it, which is fetched and verified; `known` was verified before. `None`: it is gone or
/// moved meanwhile.
///
/// # Errors
/// It is another run of that name (13).
pub(super) fn whose(
    there: RunThere<'_>,
    found: &ObjectId,
    known: &ObjectId,
) -> Reach<Option<Standing>> {
    let Some(tip) = there.obtain(found)? else {
        return Ok(None);
    };
    there.require_same(Some(known), Some(known), &tip, true)?;
    Ok(there.verify(&tip, Some(known))?.end())
}

/// Keeps what this clone did since the state that it saw last, and nobody else has, beside the run: create-only, named by the
/// claim that it was done under. Returns its name there; `None` where there is nothing.
pub(super) fn leave_aside(locked: &Locked<'_>) -> Reach<Option<String>> {
    let (there, record) = (locked.there, &locked.record);
    let store = there.context.store();
    let Some(tip) = &record.tip else {
        return Ok(None);
    };
    if store.lines_of_run(there.key, record.sent_seq)?.is_empty() {
        return Ok(None);
    }
    let before = there.standing(tip)?;
    let prepared = prepare(locked, Some(&before), &before.claim, false, None)?;
    let name = Remote::side_ref(there.key, before.claim.fencing);
    let commit = prepared.pending.commit;
    // What was left there before under the same claim stays.
    let beside = format!("{name}-{}", commit.0.get(..12).unwrap_or(&commit.0));
    for name in [name, beside] {
        match there.push(&name, None, Some(&commit)) {
            Ok(()) => return Ok(Some(name)),
            Err(Miss::Moved) => {}
            Err(missed) => return Err(missed),
        }
    }
    Err(Miss::Moved)
}

/// Who holds a run by what was seen last of it.
pub(super) fn last_seen(there: RunThere<'_>) -> Result<Option<Claim>> {
    let tip = there.seen()?;
    tip.map(|tip| there.standing(&tip).map(|standing| standing.claim))
        .transpose()
}

/// A state that was made and is not sent yet.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    /// As it is noted before it is sent.
    pub pending: Pending,
    /// How many events come with it.
    pub events: usize,
}

/// The places of this machine.
pub(super) fn places(context: &Context) -> Places {
    let home = context
        .home()
        .map(|home| home.to_string_lossy().into_owned())
        .unwrap_or_default();
    Places::new(
        context.worktree_id().text(),
        context.state_dir_id().text(),
        &home,
    )
}

/// Makes the state that follows `before`: with the events that are not there yet, or, where it `takes` a run whose events are
/// not here yet, with none. `stolen_from` is whose living claim it takes.
pub(super) fn prepare(
    locked: &Locked<'_>,
    before: Option<&Standing>,
    claim: &Claim,
    takes: bool,
    stolen_from: Option<&str>,
) -> Reach<Prepared> {
    let (there, record) = (locked.there, &locked.record);
    let (context, key) = (there.context, there.key);
    let state = context.load()?.state;
    // The budgets that hold for a run wherever it is.
    let (new, policy) = if takes {
        let policy = before.map(|before| before.meta.policy.clone());
        (Vec::new(), policy.unwrap_or_default())
    } else {
        let retry = settings_of(context, &run_of(&state, key)?).retry;
        let policy = serde_json::to_value(retry);
        (
            context.store().lines_of_run(key, record.sent_seq)?,
            policy.context("cannot encode the budgets")?,
        )
    };
    let link = before
        .map(|before| before.meta.chain.clone())
        .unwrap_or_default();
    let mut segment = Segment::after(&link);
    let mut sending = Sending {
        there,
        state: &state,
        places: places(context).with(Names::of(key)),
        previous: record.sent_checkpoint.clone(),
        sent: Vec::new(),
        withheld: 0,
        plain: None,
    };
    if new.iter().any(|(event, _)| {
        matches!(
            event.payload,
            Payload::CheckpointCreated { .. } | Payload::CheckpointReturned { .. }
        )
    }) {
        sending.plain = plain_blobs_of(context, &state, key)?;
    }
    let mut events = Vec::with_capacity(new.len());
    for (mut event, _) in new {
        if let Payload::CheckpointCreated { checkpoint, .. }
        | Payload::CheckpointReturned { checkpoint } = &mut event.payload
        {
            sending.checkpoint(checkpoint)?;
        }
        if !segment.push(&event, &sending.places) {
            let message = format!("event {} cannot be encoded", event.seq);
            return Err(Error::new(ErrorKind::Failed, message).into());
        }
        events.push(event);
    }
    let meta = Meta {
        schema: REMOTE_SCHEMA,
        run: key.clone(),
        state: before.map_or(0, |before| before.meta.state) + 1,
        chain: segment.end.clone(),
        lease_ms: u64::try_from(context.settings().remote.lease.as_millis()).unwrap_or(u64::MAX),
        policy,
        base_commit: before
            .and_then(|before| before.meta.base_commit.clone())
            .or_else(|| base(&events)),
        creator: format!("recover {}", env!("CARGO_PKG_VERSION")),
        stolen_from: stolen_from.map(str::to_owned),
        partial: before.is_some_and(|before| before.meta.partial) || sending.withheld > 0,
    };
    let parents: Vec<ObjectId> = before
        .map(|before| &before.commit)
        .into_iter()
        .chain(&sending.sent)
        .cloned()
        .collect();
    let encode = |document: serde_json::Result<Vec<u8>>| {
        document
            .context("cannot encode a state")
            .map_err(Error::from)
    };
    let files = [
        ("claim.json", encode(serde_json::to_vec_pretty(claim))?),
        ("events.jsonl", segment.text.into_bytes()),
        ("meta.json", encode(serde_json::to_vec_pretty(&meta))?),
    ];
    let what = if claim.released {
        "released by"
    } else {
        "held by"
    };
    // For readers of the server's log.
    let headline = format!(
        "recover: run {key}, {} events, {what} {}\n",
        events.len(),
        claim.host
    );
    let commit = there.write_state(&NewState {
        parents: &parents,
        files: &files,
        message: &headline,
        at: context.clock.now(),
    })?;
    Ok(Prepared {
        pending: Pending {
            commit,
            sent_seq: events.last().map_or(record.sent_seq, |event| event.seq),
            chain: segment.end,
            at: Moment::now(),
            takes,
            sent_checkpoint: sending.previous,
            withheld: record.withheld + sending.withheld,
        },
        events: events.len(),
    })
}

/// Events on their way out.
struct Sending<'a> {
    there: RunThere<'a>,
    state: &'a State,
    places: Places,
    /// The checkpoint that was sent last: what the next one holds of it is not sent again.
    previous: Option<ObjectId>,
    /// The commits that are sent.
    sent: Vec<ObjectId>,
    /// Files of them that stay here.
    withheld: u64,
    /// What stays here because git stores it through a filter.
    plain: Option<BTreeSet<ObjectId>>,
}

impl Sending<'_> {
    /// A checkpoint as it is sent. One that was removed meanwhile is named and not sent.
    fn checkpoint(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let (context, repo) = (self.there.context, self.there.repo()?);
        if self.state.checkpoint(&checkpoint.id).is_none()
            || !repo.commit_exists(&checkpoint.commit)
        {
            return Ok(());
        }
        let remote = &context.settings().remote;
        let filter = Filter {
            max_object: remote.max_object,
            untracked: remote.untracked,
            plain: self.plain.clone(),
            whole: false,
            keep_base: checkpoint
                .base_commit
                .as_ref()
                .is_some_and(|base| self.there.remote.keeps_base(repo, base)),
            previous: self.previous.clone(),
        };
        let hidden = serde_json::to_value(&*checkpoint)
            .and_then(|record| serde_json::from_value(self.places.hide(record)));
        let hidden: Checkpoint = hidden.context("cannot encode a checkpoint's record")?;
        let sent = repo.write_outgoing(
            &lock(context)?,
            &checkpoint.commit,
            &message(&hidden)?,
            &filter,
        )?;
        self.withheld += sent.withheld.len() as u64;
        checkpoint.partial |= !sent.withheld.is_empty();
        checkpoint.skipped.extend(sent.withheld);
        checkpoint.tree = repo.tree_of(&sent.commit)?;
        checkpoint.commit = sent.commit.clone();
        self.previous = Some(sent.commit.clone());
        if !self.sent.contains(&sent.commit) {
            self.sent.push(sent.commit);
        }
        Ok(())
    }
}
