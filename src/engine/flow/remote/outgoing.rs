//! The next state of a run: what the ledger has of it that is not on the remote yet.

use std::collections::BTreeSet;

use anyhow::Context as _;

use crate::engine::base::clock::Moment;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::base::runs::run_of;
use crate::engine::record::checkpoint::lock;
use crate::engine::record::message::message;
use crate::engine::record::remote_consent::plain_blobs_of;
use crate::engine::record::run_settings::settings_of;
use crate::git::remote::{Filter, NewState};
use crate::model::checkpoint::Checkpoint;
use crate::model::event::{Event, Payload};
use crate::model::manifest::ObjectId;
use crate::model::remote::{Claim, Meta, REMOTE_SCHEMA};
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::policy::remote::{Names, Places, Segment, Standing, base};

use super::record::{Pending, Record};
use super::server::Server;

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
