//! Pushes the next state of a run that this clone holds, and finds out what became of a push without an answer.
//!
//! The next state of a run: what the ledger has of it that is not on the remote yet.

use std::collections::BTreeSet;

use anyhow::Context as _;

use super::record::{Locked, Pending, Record};
use super::server;
use super::server::{Away, Chain, Reached, Server, away, chain_standing};
use crate::engine::base::clock::Moment;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::base::runs::run_of;
use crate::engine::record::checkpoint::lock;
use crate::engine::record::remote_consent::plain_blobs_of;
use crate::engine::record::run_settings::settings_of;
use crate::engine::record::stored::message;
use crate::git::remote::{Answer, Filter, NewState, Remote, Update};
use crate::model::checkpoint::Checkpoint;
use crate::model::event::{Event, Payload};
use crate::model::hint::Hint;
use crate::model::manifest::ObjectId;
use crate::model::remote::{Claim, Meta, REMOTE_SCHEMA};
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::policy::remote::{Names, Places, Segment, Standing, base};

/// What came of a push.
#[derive(Clone, Debug)]
pub(super) enum Synced {
    /// It is there: so many events came along.
    Done(usize),
    /// Somebody else holds the run.
    Lost(Box<Claim>),
    /// The server is away.
    Away(Away),
}

/// Pushes what is not there yet of a run that this clone holds, which is a sign of life also where that is nothing. With
/// `releases` it is the last one.
pub(super) fn sync(
    server: &Server<'_>,
    key: &RunKey,
    locked: &mut Locked,
    releases: bool,
) -> Result<Synced> {
    let synced = attempt(server, key, locked, releases)?;
    if let Synced::Away(away) = &synced {
        // For whoever asks how the run stands.
        locked.record.away = Some(away.said.clone());
        locked.save(server.context)?;
    }
    Ok(synced)
}

fn attempt(
    server: &Server<'_>,
    key: &RunKey,
    locked: &mut Locked,
    releases: bool,
) -> Result<Synced> {
    // After a push without an answer: what it brought is there or not.
    for _ in 0..8 {
        let Some(tip) = locked.record.tip.clone() else {
            return Err(not_held(server, key));
        };
        if !locked.record.pending.is_empty() {
            match settle(server, key, locked)? {
                Settled::Ours => {}
                Settled::Lost(claim) => return Ok(Synced::Lost(claim)),
                Settled::Away(away) => return Ok(Synced::Away(away)),
            }
        }
        let tip = locked.record.tip.clone().unwrap_or(tip);
        let before = chain_standing(server.repo()?, key, server.name(), &tip)?;
        let is_own = locked.record.nonce.as_deref() == Some(before.claim.nonce.as_str());
        if is_own && releases && before.claim.released {
            // Its answer was lost.
            locked.record.nonce = None;
            locked.save(server.context)?;
            return Ok(Synced::Done(0));
        }
        if !is_own || before.claim.released {
            // Another process of this clone may have noticed it.
            let holder = locked.record.lost_to.clone().unwrap_or(before.claim);
            return Ok(Synced::Lost(Box::new(holder)));
        }
        let claim = if releases {
            before.claim.released()
        } else {
            before.claim.clone()
        };
        let what = What {
            claim: &claim,
            stolen_from: None,
            with_events: true,
        };
        let prepared = prepare(server, key, &locked.record, Some(&before), what)?;
        match push(server, key, locked, &prepared, Some(&tip))? {
            Reached::Yes(true) => {
                if releases {
                    locked.record.nonce = None;
                    locked.save(server.context)?;
                }
                return Ok(Synced::Done(prepared.events));
            }
            // What was refused or cut off is looked at next.
            Reached::Yes(false) => {}
            Reached::Away(away) => return Ok(Synced::Away(away)),
        }
    }
    Ok(Synced::Away(Away {
        said: "it takes no push to its end".to_owned(),
        after: None,
    }))
}

/// Pushes one state, noted before so that it is known again. `false`: the server has something else, or cut the answer off.
pub(super) fn push(
    server: &Server<'_>,
    key: &RunKey,
    locked: &mut Locked,
    prepared: &Prepared,
    old: Option<&ObjectId>,
) -> Result<Reached<bool>> {
    let context = server.context;
    let pending = Pending {
        at: Moment::now(),
        ..prepared.pending.clone()
    };
    // Nothing else names it yet, and the user's own git may collect what nothing names.
    server
        .repo()?
        .set_tracking(&server.pending(key), &pending.commit)?;
    locked.record.pending.push(pending.clone());
    locked.save(context)?;
    let update = Update {
        name: Remote::run_ref(key),
        old: old.cloned(),
        new: Some(pending.commit.clone()),
    };
    match server.push(update)? {
        Answer::Done(()) => {
            confirm(server, key, locked, &pending)?;
            Ok(Reached::Yes(true))
        }
        Answer::Moved | Answer::Cut(_) => Ok(Reached::Yes(false)),
        other => Ok(Reached::Away(away(other))),
    }
}

/// A state that was pushed is there.
pub(super) fn confirm(
    server: &Server<'_>,
    key: &RunKey,
    locked: &mut Locked,
    pending: &Pending,
) -> Result<()> {
    server
        .repo()?
        .set_tracking(&server.tracking(key), &pending.commit)?;
    server.repo()?.remove_tracking(&server.pending(key))?;
    if pending.takes {
        // The events before it come first.
        locked.record.alive = Some(pending.at.clone());
        return locked.save(server.context);
    }
    locked.record.confirm(pending);
    locked.record.url = Some(server.remote.url.clone());
    locked.record.see(&pending.commit);
    locked.save(server.context)
}

/// What became of pushes without an answer.
enum Settled {
    /// The run is this clone's still: what came through counts from now on.
    Ours,
    Lost(Box<Claim>),
    Away(Away),
}

fn settle(server: &Server<'_>, key: &RunKey, locked: &mut Locked) -> Result<Settled> {
    let found = match server.look(key)? {
        Reached::Yes(found) => found,
        Reached::Away(away) => return Ok(Settled::Away(away)),
    };
    let tip = locked.record.tip.clone();
    if let Some(pending) = locked
        .record
        .pending
        .iter()
        .find(|pending| Some(&pending.commit) == found.as_ref())
        .cloned()
    {
        confirm(server, key, locked, &pending)?;
        return Ok(Settled::Ours);
    }
    if found == tip {
        return Ok(Settled::Ours);
    }
    let repo = server.repo()?;
    let (Some(tip), is_back) = (
        tip,
        match (&found, &locked.record.tip) {
            (None, Some(_)) => true,
            (Some(found), Some(tip)) => {
                repo.has_object(found) && repo.is_earlier_state(found, tip)?
            }
            _ => false,
        },
    ) else {
        return Ok(Settled::Away(Away {
            said: "the run is not there".to_owned(),
            after: None,
        }));
    };
    if is_back {
        server.require_same_place(key, &locked.record)?;
        // The server was set back. Who holds the run has all of it.
        let update = Update {
            name: Remote::run_ref(key),
            old: found,
            new: Some(tip),
        };
        return match server.push(update)? {
            Answer::Done(()) => {
                server.context.note(format!(
                    "the remote {} had an older state of run {key}: it has the whole one again",
                    server.name()
                ));
                Ok(Settled::Ours)
            }
            other => Ok(Settled::Away(away(other))),
        };
    }
    let Some(found) = found else {
        return Ok(Settled::Away(Away {
            said: "the run is not there".to_owned(),
            after: None,
        }));
    };
    Ok(match whose(server, key, &found, &tip)? {
        Reached::Yes(Some(standing)) => {
            locked.record.see(&standing.commit);
            locked.record.pending.clear();
            locked.record.nonce = None;
            locked.record.lost_to = Some(standing.claim.clone());
            locked.save(server.context)?;
            Settled::Lost(Box::new(standing.claim))
        }
        Reached::Yes(None) => Settled::Away(Away {
            said: "it changes while it is read".to_owned(),
            after: None,
        }),
        Reached::Away(away) => Settled::Away(away),
    })
}

/// Who holds a run by what the server has of it, which is fetched and verified; `known` was verified before. `None`: it is gone or
/// moved meanwhile.
pub(super) fn whose(
    server: &Server<'_>,
    key: &RunKey,
    found: &ObjectId,
    known: &ObjectId,
) -> Result<Reached<Option<Standing>>> {
    Ok(match obtain(server, key, found)? {
        Reached::Yes(Some(tip)) => Reached::Yes(verified(server, key, &tip, Some(known))?.end()),
        Reached::Yes(None) => Reached::Yes(None),
        Reached::Away(away) => Reached::Away(away),
    })
}

/// Has here what the server has of a run, where that was `found`; nothing of it is verified yet. `None`: it is gone meanwhile.
pub(super) fn obtain(
    server: &Server<'_>,
    key: &RunKey,
    found: &ObjectId,
) -> Result<Reached<Option<ObjectId>>> {
    let name = Remote::run_ref(key);
    Ok(match server.obtain(&[(name.clone(), found.clone())])? {
        Reached::Yes(true) => Reached::Yes(server.obtained(&name, found)),
        Reached::Yes(false) => Reached::Yes(None),
        Reached::Away(away) => Reached::Away(away),
    })
}

/// The states of a run up to `tip` that come after `known`; from then on it counts as what was seen last there.
///
/// # Errors
/// Those of [`server::read_chain`]: then what was seen last stays what it was.
pub(super) fn verified(
    server: &Server<'_>,
    key: &RunKey,
    tip: &ObjectId,
    known: Option<&ObjectId>,
) -> Result<Chain> {
    let chain = server::read_chain(server.context, key, server.name(), tip, known)?;
    server.believe(key, tip)?;
    Ok(chain)
}

/// All that the server has of a run, fetched and verified. `None`: nothing.
///
/// # Errors
/// The server is away (9).
pub(super) fn all_there(server: &Server<'_>, key: &RunKey) -> Result<Option<Chain>> {
    let found = match server.look(key)? {
        Reached::Yes(found) => found,
        Reached::Away(away) => return Err(away.error(server.name())),
    };
    let Some(found) = found else { return Ok(None) };
    match obtain(server, key, &found)? {
        Reached::Yes(Some(tip)) => {
            server::read_chain(server.context, key, server.name(), &tip, None).map(Some)
        }
        Reached::Yes(None) => Ok(None),
        Reached::Away(away) => Err(away.error(server.name())),
    }
}

/// Keeps what this clone did since the state that it saw last, and nobody else has, beside the run: create-only, named by the
/// claim that it was done under. Returns its name there; `None` where there is nothing.
pub(super) fn leave_aside(
    server: &Server<'_>,
    key: &RunKey,
    locked: &mut Locked,
) -> Result<Option<String>> {
    let record = &locked.record;
    let Some(tip) = record.tip.clone() else {
        return Ok(None);
    };
    if server
        .context
        .store()
        .lines_of_run(key, record.sent_seq)?
        .is_empty()
    {
        return Ok(None);
    }
    let before = chain_standing(server.repo()?, key, server.name(), &tip)?;
    let what = What {
        claim: &before.claim,
        stolen_from: None,
        with_events: true,
    };
    let prepared = prepare(server, key, record, Some(&before), what)?;
    let name = Remote::side_ref(key, before.claim.fencing);
    let commit = prepared.pending.commit;
    // What was left there before under the same claim stays.
    let beside = format!("{name}-{}", commit.0.get(..12).unwrap_or(&commit.0));
    for name in [name, beside] {
        match server.push(Update {
            name: name.clone(),
            old: None,
            new: Some(commit.clone()),
        })? {
            Answer::Done(()) => return Ok(Some(name)),
            Answer::Moved => {}
            other => return Err(away(other).error(server.name())),
        }
    }
    Err(away(Answer::<()>::Moved).error(server.name()))
}

/// Who holds a run by what was seen last of it.
pub(super) fn last_seen(server: &Server<'_>, key: &RunKey) -> Result<Option<Claim>> {
    let repo = server.repo()?;
    let tip = repo.resolve_ref(&server.tracking(key));
    tip.map(|tip| chain_standing(repo, key, server.name(), &tip).map(|standing| standing.claim))
        .transpose()
}

fn not_held(server: &Server<'_>, key: &RunKey) -> Error {
    let message = format!("this clone does not hold run {key} on {}", server.name());
    Error::new(ErrorKind::Claimed, message)
        .hint(Hint::recover(["remote", "claim", "--remote", server.name()]).run(key))
}

/// A state that was made and is not sent yet.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    /// As it is noted before it is sent.
    pub pending: Pending,
    /// The state before.
    pub before: Option<ObjectId>,
    /// How many events come with it.
    pub events: usize,
    /// Files of them that stay here.
    pub withheld: u64,
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

/// What of a run comes with a state.
#[derive(Clone, Copy, Debug)]
pub(super) struct What<'a> {
    /// The claim of the state.
    pub claim: &'a Claim,
    /// Whose living claim it takes.
    pub stolen_from: Option<&'a str>,
    /// Whether the events come along that are not there yet; a claim of somebody else's run is taken with none.
    pub with_events: bool,
}

/// Makes the state that follows `before`.
pub(super) fn prepare(
    server: &Server<'_>,
    key: &RunKey,
    record: &Record,
    before: Option<&Standing>,
    what: What<'_>,
) -> Result<Prepared> {
    let context = server.context;
    let state = context.load()?.state;
    let run = if what.with_events {
        Some(run_of(&state, key)?)
    } else {
        None
    };
    let new = if what.with_events {
        context.store().lines_of_run(key, record.sent_seq)?
    } else {
        Vec::new()
    };
    let link = before
        .map(|before| before.meta.chain.clone())
        .unwrap_or_default();
    let mut segment = Segment::after(&link);
    let places = places(context).with(Names::of(key));
    let mut sending = Sending {
        server,
        state: &state,
        places,
        previous: None,
        sent: Vec::new(),
        plain: None,
    };
    sending.previous.clone_from(&record.sent_checkpoint);
    let mut out = Prepared {
        pending: Pending {
            commit: ObjectId(String::new()),
            sent_seq: record.sent_seq,
            chain: link,
            at: Moment::now(),
            takes: !what.with_events,
            sent_checkpoint: None,
            withheld: 0,
        },
        before: before.map(|before| before.commit.clone()),
        events: new.len(),
        withheld: 0,
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
    for (event, _) in new {
        let event = sending.event(event, &mut out)?;
        if !segment.push(&event, &sending.places) {
            return Err(Error::new(
                ErrorKind::Failed,
                format!("event {} cannot be encoded", event.seq),
            ));
        }
        out.pending.sent_seq = event.seq;
        events.push(event);
    }
    out.pending.chain = segment.end.clone();
    out.pending.sent_checkpoint.clone_from(&sending.previous);
    out.pending.withheld = record.withheld + out.withheld;
    let meta = Meta {
        schema: REMOTE_SCHEMA,
        run: key.clone(),
        state: before.map_or(0, |before| before.meta.state) + 1,
        chain: segment.end.clone(),
        lease_ms: u64::try_from(context.settings().remote.lease.as_millis()).unwrap_or(u64::MAX),
        policy: policy_of(context, run.as_ref(), before)?,
        base_commit: before
            .and_then(|before| before.meta.base_commit.clone())
            .or_else(|| base(&events)),
        creator: format!("recover {}", env!("CARGO_PKG_VERSION")),
        stolen_from: what.stolen_from.map(str::to_owned),
        partial: before.is_some_and(|before| before.meta.partial) || out.withheld > 0,
    };
    let parents: Vec<ObjectId> = out.before.iter().chain(&sending.sent).cloned().collect();
    let encode = |document: serde_json::Result<Vec<u8>>| document.context("cannot encode a state");
    let files = [
        ("claim.json", encode(serde_json::to_vec_pretty(what.claim))?),
        ("events.jsonl", segment.text.into_bytes()),
        ("meta.json", encode(serde_json::to_vec_pretty(&meta))?),
    ];
    let headline = headline(key, what.claim, out.events);
    let new = NewState {
        parents: &parents,
        files: &files,
        message: &headline,
        at: context.clock.now(),
    };
    out.pending.commit = server.write_state(&new)?;
    Ok(out)
}

/// For who reads the server's log.
fn headline(key: &RunKey, claim: &Claim, events: usize) -> String {
    let what = if claim.released {
        "released by"
    } else {
        "held by"
    };
    format!(
        "recover: run {key}, {events} events, {what} {}\n",
        claim.host
    )
}

/// The budgets that hold for a run wherever it is.
fn policy_of(
    context: &Context,
    run: Option<&Run>,
    before: Option<&Standing>,
) -> Result<serde_json::Value> {
    match (run, before) {
        (Some(run), _) => Ok(serde_json::to_value(settings_of(context, run).retry)
            .context("cannot encode the budgets")?),
        (None, Some(before)) => Ok(before.meta.policy.clone()),
        (None, None) => Ok(serde_json::Value::Null),
    }
}

/// Events on their way out.
struct Sending<'a> {
    server: &'a Server<'a>,
    state: &'a State,
    places: Places,
    /// The checkpoint that was sent last: what the next one holds of it is not sent again.
    previous: Option<ObjectId>,
    /// The commits that are sent.
    sent: Vec<ObjectId>,
    /// What stays here because git stores it through a filter.
    plain: Option<BTreeSet<ObjectId>>,
}

impl Sending<'_> {
    /// An event with its checkpoint as that is sent.
    fn event(&mut self, mut event: Event, out: &mut Prepared) -> Result<Event> {
        match &mut event.payload {
            Payload::CheckpointCreated { checkpoint, .. }
            | Payload::CheckpointReturned { checkpoint } => {
                self.checkpoint(checkpoint, out)?;
            }
            _ => {}
        }
        Ok(event)
    }

    /// One that was removed meanwhile is named and not sent.
    fn checkpoint(&mut self, checkpoint: &mut Checkpoint, out: &mut Prepared) -> Result<()> {
        let (context, repo) = (self.server.context, self.server.repo()?);
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
                .is_some_and(|base| self.server.remote.keeps_base(repo, base)),
            previous: self.previous.clone(),
        };
        let hidden = self.places.hide(
            serde_json::to_value(&*checkpoint).context("cannot encode a checkpoint's record")?,
        );
        let hidden: Checkpoint =
            serde_json::from_value(hidden).context("cannot encode a checkpoint's record")?;
        let sent = repo.write_outgoing(
            &lock(context)?,
            &checkpoint.commit,
            &message(&hidden)?,
            &filter,
        )?;
        out.withheld += sent.withheld.len() as u64;
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
