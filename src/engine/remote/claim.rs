//! Taking the right to speak for a run, and giving it back.

use std::time::Duration;

use super::check::{Unreached, require_guarantees};
use super::incoming::{gives_way, take_in};
use super::push::{Synced, What, all_there, confirm, obtain, prepare, push, sync, verified};
use super::record::{Locked, Pending, Record, lock};
use super::server;
use super::server::{Away, Chain, Reached, Server, away};
use crate::engine::base::clock::{Moment, WaitLimit};
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::git::remote::{Answer, Remote, Update};
use crate::model::event::Payload;
use crate::model::hint::Hint;
use crate::model::manifest::ObjectId;
use crate::model::remote::Claim;
use crate::model::run::RunKey;
use crate::policy::remote::{Hold, Standing, hold};
use crate::store::new_id;

/// How a run is taken up from a remote.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TakeOver {
    /// From a holder that may be alive, at once; a person agreed to it.
    pub steals: bool,
    /// Wait for the holder, or for the server.
    pub wait: Option<WaitLimit>,
}

/// What is wanted of a claim.
#[derive(Clone, Copy)]
pub(super) struct Wish<'a> {
    /// How the run is taken.
    pub how: TakeOver,
    /// Whether a wait that is asked for is one for another machine's claim too, or only for a server that is away.
    pub waits_for_holder: bool,
    /// Whether what lies there is agreed to, by what this clone does not know of it yet.
    pub agrees: &'a dyn Fn(&Chain) -> Result<()>,
}

impl<'a> Wish<'a> {
    /// A user's wish, who waits for the holder as long as they said.
    pub(super) fn of_user(how: TakeOver, agrees: &'a dyn Fn(&Chain) -> Result<()>) -> Self {
        Self {
            how,
            waits_for_holder: true,
            agrees,
        }
    }

    /// A claim that is taken on the way, without a wait.
    pub(super) fn in_passing(agrees: &'a dyn Fn(&Chain) -> Result<()>) -> Self {
        Self {
            waits_for_holder: false,
            ..Self::of_user(TakeOver::default(), agrees)
        }
    }
}

/// A wait for a server that is away or for another machine, no longer than was asked for.
#[derive(Debug)]
pub(super) struct Waiting {
    begun: Moment,
    longest: Duration,
    said: bool,
    tried: u32,
}

impl Waiting {
    /// It begins.
    pub(super) fn begin(how: TakeOver) -> Self {
        let longest = how.wait.map_or(Duration::ZERO, |limit| {
            limit.longest().unwrap_or(Duration::MAX)
        });
        Self {
            begun: Moment::now(),
            longest,
            said: false,
            tried: 0,
        }
    }

    /// How long it may still take.
    fn left(&self) -> Duration {
        if self.longest == Duration::MAX {
            return Duration::MAX;
        }
        self.begun
            .age()
            .map_or(Duration::ZERO, |waited| self.longest.saturating_sub(waited))
    }

    /// Says once what is waited for.
    fn say(&mut self, context: &Context, what: impl FnOnce() -> String) {
        if !self.said {
            context.note(what());
            self.said = true;
        }
    }

    /// Waits before a server that is away is asked again.
    ///
    /// # Errors
    /// It took too long, or nobody is to wait (9); a request to stop came.
    pub(super) fn for_server(&mut self, server: &Server<'_>, away: &Away) -> Result<()> {
        let left = self.left();
        if left.is_zero() {
            return Err(away.error(server.name()));
        }
        self.say(server.context, || {
            format!("waiting for the remote {}: {}", server.name(), away.said)
        });
        self.tried += 1;
        server.pause(away, self.tried - 1, left)
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub(super) struct Claimed {
    /// The claim.
    pub claim: Claim,
    /// Whether events of another machine were taken in, and its files are not in place here yet.
    pub is_unsettled: bool,
    /// Events that went there with it.
    pub sent: usize,
}

/// What one try came to.
enum Tried {
    Yes(Claimed),
    /// Somebody else holds it: who, and for how long it has shown no sign of life.
    Held(Box<Claim>, Duration, Duration),
    Away(Away),
    /// Somebody else was at it, or an answer was lost: the next look shows what is there.
    Moved,
}

/// So often somebody else may be faster in a row.
const MOST_MOVES: u32 = 32;

/// Claims a run: a new one, one that nobody holds, one whose holder has shown no sign of life for a whole lease, or on
/// request any. What lies of it there is in the ledger then.
///
/// # Errors
/// Somebody else holds it (11); waiting took too long, or the server is away (9); there is no such run (4); what lies there
/// is damaged (12), or newer (15: before the claim).
pub(super) fn claim(server: &Server<'_>, key: &RunKey, wish: &Wish<'_>) -> Result<Claimed> {
    let context = server.context;
    let mut waiting = Waiting::begin(wish.how);
    let mut moves = 0;
    loop {
        let found = match try_claim(server, key, wish)? {
            Tried::Moved if moves < MOST_MOVES => {
                moves += 1;
                continue;
            }
            Tried::Moved => Tried::Away(Away {
                said: "it changes while it is read".to_owned(),
                after: None,
            }),
            Tried::Held(claim, ..) if !wish.waits_for_holder => {
                return Err(held(server, key, &claim));
            }
            found => found,
        };
        let (pause, mut error) = match found {
            Tried::Yes(claimed) => return Ok(claimed),
            Tried::Moved => continue,
            Tried::Held(claim, unchanged, lease) => {
                let left = lease.saturating_sub(unchanged);
                (left.min(Duration::from_secs(5)), held(server, key, &claim))
            }
            Tried::Away(away) => {
                waiting.for_server(server, &away)?;
                continue;
            }
        };
        let left = waiting.left();
        if left.is_zero() {
            if wish.how.wait.is_some() {
                error.kind = ErrorKind::GaveUpWaiting;
            }
            return Err(error);
        }
        waiting.say(context, || format!("waiting: {}", error.message));
        let pause = pause.min(left);
        let stopped = |signal: crate::process::Signal| {
            Error::new(
                ErrorKind::Interrupted(signal.exit_code()),
                "stopped while another machine held the run",
            )
        };
        context
            .interrupts
            .sleep(pause.max(Duration::from_millis(200)))
            .map_err(stopped)?;
    }
}

/// Somebody else holds the run (11).
pub(super) fn held(server: &Server<'_>, key: &RunKey, claim: &Claim) -> Error {
    let message = format!(
        "run {key} is held by {} on {} (claim {}): it is free when that is done, or has shown no sign of life for a whole lease; \
         --steal takes it at once",
        claim.host,
        server.name(),
        claim.fencing
    );
    let hint = Hint::recover(["remote", "claim", "--steal", "--remote", server.name()]).run(key);
    Error::new(ErrorKind::Claimed, message).hint(hint)
}

/// What a claim of a run would take, as far as a look shows; nothing is claimed. `None`: nothing lies there.
///
/// # Errors
/// Somebody else holds it (11), or it does not go on from what was seen there before (12); the server is away (9).
pub(super) fn to_be_claimed(
    server: &Server<'_>,
    key: &RunKey,
    record: &Record,
    steals: bool,
) -> Result<Option<Chain>> {
    let Some(chain) = all_there(server, key)? else {
        return Ok(None);
    };
    let Some(tip) = chain.end().map(|end| end.commit) else {
        return Ok(None);
    };
    let latest = latest(server, key, record)?;
    let chain = match &latest {
        // A claim puts there again what was taken from the end of it.
        Some(latest) if *latest != tip && server.repo()?.is_earlier_state(&tip, latest)? => {
            server::read_chain(server.context, key, server.name(), latest, None)?
        }
        _ => chain,
    };
    let Some(end) = chain.end().filter(|_| !steals) else {
        return Ok(Some(chain));
    };
    require_unforked(server, key, record, latest.as_ref(), &end.commit)?;
    let is_own = record.nonce.as_ref() == Some(&end.claim.nonce);
    if end.claim.released || is_own {
        Ok(Some(chain))
    } else {
        Err(held(server, key, &end.claim))
    }
}

fn try_claim(server: &Server<'_>, key: &RunKey, wish: &Wish<'_>) -> Result<Tried> {
    let context = server.context;
    let mut locked = lock(context, key, server.name())?;
    let found = match server.look(key)? {
        Reached::Yes(found) => found,
        Reached::Away(away) => return Ok(Tried::Away(away)),
    };
    let Some(tip) = found else {
        return claim_missing(server, key, &mut locked);
    };
    let tip = match obtain(server, key, &tip)? {
        Reached::Yes(Some(tip)) => tip,
        Reached::Yes(None) => {
            return Ok(Tried::Away(Away {
                said: "the run has just gone".to_owned(),
                after: None,
            }));
        }
        Reached::Away(away) => return Ok(Tried::Away(away)),
    };
    let latest = latest(server, key, &locked.record)?;
    if let Some(back) = set_back(server, key, &mut locked, &tip, latest.as_ref())? {
        return Ok(back);
    }
    if !wish.how.steals {
        require_unforked(server, key, &locked.record, latest.as_ref(), &tip)?;
    }
    let known = locked.record.tip.clone();
    let chain = verified(server, key, &tip, known.as_ref())?;
    let Some(end) = chain.end() else {
        return Ok(Tried::Away(Away {
            said: "nothing lies there".to_owned(),
            after: None,
        }));
    };
    let unchanged = locked.record.see(&tip);
    let own = context.settings().remote.lease;
    let lease = own.max(Duration::from_millis(end.meta.lease_ms));
    locked.save(context)?;
    // Two copies of one clone have the same nonce: only what this one pushed is its own.
    let pushed = locked
        .record
        .pending
        .iter()
        .find(|pending| pending.commit == tip)
        .cloned();
    let is_own = known.as_ref() == Some(&tip) || pushed.is_some();
    if known.is_none() && !is_own {
        // Of two first claims at once the other one came through: there is nothing to be given back.
        locked.record.nonce = None;
        locked.record.pending.clear();
        locked.save(context)?;
    }
    let ours = locked.record.nonce.as_deref().filter(|_| is_own);
    match hold(Some(&end.claim), ours, unchanged, lease) {
        Hold::Ours => go_on(server, key, &mut locked, pushed, &end),
        Hold::Held if !wish.how.steals => Ok(Tried::Held(Box::new(end.claim), unchanged, lease)),
        state => {
            let state_here = context.load()?.state;
            if known.is_none()
                && state_here.run(key).is_some()
                && !gives_way(&state_here, key, &locked.record)
            {
                let message = format!(
                    "another run {key} is recorded here, which does not lie on {}",
                    server.name()
                );
                return Err(Error::new(ErrorKind::AlreadyExists, message)
                    .hint(Hint::recover(["status"]).run(key)));
            }
            (wish.agrees)(&chain)?;
            let stolen = (state == Hold::Held).then_some(end.claim.host.as_str());
            take(server, key, &mut locked, &end, stolen)
        }
    }
}

/// The claim of a run of which nothing is there: it was never sent, or the server has lost it.
fn claim_missing(server: &Server<'_>, key: &RunKey, locked: &mut Locked) -> Result<Tried> {
    let context = server.context;
    if context.load()?.state.run(key).is_none() {
        let message = format!(
            "there is no run {key}, neither here nor on {}",
            server.name()
        );
        return Err(
            Error::new(ErrorKind::RunNotFound, message).hint(Hint::recover([
                "runs",
                "--remote",
                server.name(),
            ])),
        );
    }
    if locked.record.tip.is_none() {
        // What was seen there was another run of that name.
        locked.record.seen = None;
        return first_claim(server, key, locked, None);
    }
    let Some(known) = latest(server, key, &locked.record)? else {
        return first_claim(server, key, locked, None);
    };
    server.require_same_place(key, &locked.record)?;
    let before = server::chain_standing(server.repo()?, key, server.name(), &known)?;
    let is_own = locked.record.nonce.as_deref() == Some(before.claim.nonce.as_str());
    if !is_own && !before.claim.released {
        return Err(gone(server, key));
    }
    if locked.record.tip.as_ref() == Some(&known) {
        return first_claim(server, key, locked, Some(&before));
    }
    put_back(server, key, None, &known)
}

/// The latest state of a run that was verified here, whoever made it.
pub(super) fn latest(
    server: &Server<'_>,
    key: &RunKey,
    record: &Record,
) -> Result<Option<ObjectId>> {
    let repo = server.repo()?;
    // A machine without a ledger has no record, only the reference.
    let tracked = repo.resolve_ref(&server.tracking(key));
    let seen = record
        .seen
        .as_ref()
        .map(|seen| &seen.commit)
        .filter(|seen| repo.has_object(seen));
    let mut latest = record.tip.clone();
    for other in seen.into_iter().chain(&tracked) {
        let is_later = match &latest {
            Some(latest) => latest != other && repo.is_earlier_state(latest, other)?,
            None => true,
        };
        if is_later {
            latest = Some(other.clone());
        }
    }
    Ok(latest)
}

/// The claim of a run that is not there, with all that the ledger has of it.
fn first_claim(
    server: &Server<'_>,
    key: &RunKey,
    locked: &mut Locked,
    before: Option<&Standing>,
) -> Result<Tried> {
    let context = server.context;
    if let Err(Unreached { said, after }) = require_guarantees(context, &server.remote)? {
        return Ok(Tried::Away(Away { said, after }));
    }
    keep_policy(context, key)?;
    locked.record.pending.clear();
    let claim = new_claim(context, before)?;
    (locked.record.nonce, locked.record.lost_to) = (Some(claim.nonce.clone()), None);
    let what = What {
        claim: &claim,
        stolen_from: None,
        with_events: true,
    };
    let prepared = prepare(server, key, &locked.record, before, what)?;
    Ok(match push(server, key, locked, &prepared, None)? {
        Reached::Yes(true) => Tried::Yes(Claimed {
            claim,
            is_unsettled: locked.record.is_unsettled,
            sent: prepared.events,
        }),
        Reached::Yes(false) => Tried::Moved,
        Reached::Away(away) => Tried::Away(away),
    })
}

/// Goes on with a claim that this clone has: with a sign of life.
fn go_on(
    server: &Server<'_>,
    key: &RunKey,
    locked: &mut Locked,
    pushed: Option<Pending>,
    end: &Standing,
) -> Result<Tried> {
    match pushed {
        Some(pending) if pending.takes => take_in(server, key, locked, &pending.commit)?,
        Some(pending) => confirm(server, key, locked, &pending)?,
        None => locked.record.pending.clear(),
    }
    Ok(match sync(server, key, locked, false)? {
        Synced::Done(sent) => Tried::Yes(Claimed {
            claim: end.claim.clone(),
            is_unsettled: locked.record.is_unsettled,
            sent,
        }),
        Synced::Lost(claim) => Tried::Held(claim, Duration::ZERO, Duration::ZERO),
        Synced::Away(away) => Tried::Away(away),
    })
}

/// Takes a run from whoever had it last.
fn take(
    server: &Server<'_>,
    key: &RunKey,
    locked: &mut Locked,
    end: &Standing,
    stolen: Option<&str>,
) -> Result<Tried> {
    let context = server.context;
    // Nothing happened since this clone gave it back: what it has done meanwhile goes on from there.
    let goes_on =
        locked.record.tip.as_ref() == Some(&end.commit) && context.load()?.state.run(key).is_some();
    let claim = new_claim(context, Some(end))?;
    (locked.record.nonce, locked.record.lost_to) = (Some(claim.nonce.clone()), None);
    locked.record.pending.clear();
    let what = What {
        claim: &claim,
        stolen_from: stolen,
        with_events: goes_on,
    };
    let prepared = prepare(server, key, &locked.record, Some(end), what)?;
    match push(server, key, locked, &prepared, Some(&end.commit))? {
        Reached::Yes(true) => {}
        Reached::Yes(false) => return Ok(Tried::Moved),
        Reached::Away(away) => return Ok(Tried::Away(away)),
    }
    if !goes_on && let Err(error) = take_in(server, key, locked, &prepared.pending.commit) {
        give_back_unread(server, key, locked, &prepared.pending.commit);
        return Err(error);
    }
    Ok(Tried::Yes(Claimed {
        claim,
        is_unsettled: locked.record.is_unsettled,
        sent: prepared.events,
    }))
}

/// Releases a run whose events could not be taken in.
fn give_back_unread(server: &Server<'_>, key: &RunKey, locked: &mut Locked, tip: &ObjectId) {
    let release = |locked: &mut Locked| -> Result<()> {
        let before = server::chain_standing(server.repo()?, key, server.name(), tip)?;
        let claim = before.claim.released();
        let what = What {
            claim: &claim,
            stolen_from: None,
            with_events: false,
        };
        let prepared = prepare(server, key, &locked.record, Some(&before), what)?;
        push(server, key, locked, &prepared, Some(tip)).map(drop)
    };
    if let Err(error) = release(locked) {
        tracing::warn!(%error, "the claim of run {key} could not be given back; it expires by itself");
    }
    locked.record.nonce = None;
    locked.record.pending.clear();
    if let Err(error) = locked.save(server.context) {
        tracing::warn!(%error, "what is known of run {key} on {} was not noted", server.name());
    }
}

/// A server that has an older state than was verified here was set back. Who holds the run goes on with what it has; anybody
/// else puts there again what was there, which claims nothing.
fn set_back(
    server: &Server<'_>,
    key: &RunKey,
    locked: &mut Locked,
    tip: &ObjectId,
    latest: Option<&ObjectId>,
) -> Result<Option<Tried>> {
    let repo = server.repo()?;
    let Some(known) = latest.filter(|known| *known != tip) else {
        return Ok(None);
    };
    if !repo.is_earlier_state(tip, known)? {
        return Ok(None);
    }
    server.require_same_place(key, &locked.record)?;
    if locked.record.nonce.is_some() && locked.record.tip.as_ref() == Some(known) {
        // It pushes what it has, which begins with what is there.
        return Ok(Some(match sync(server, key, locked, false)? {
            Synced::Done(sent) => {
                let tip = locked.record.tip.clone().unwrap_or_else(|| known.clone());
                let claim = server::chain_standing(repo, key, server.name(), &tip)?.claim;
                Tried::Yes(Claimed {
                    claim,
                    is_unsettled: locked.record.is_unsettled,
                    sent,
                })
            }
            Synced::Lost(claim) => Tried::Held(claim, Duration::ZERO, Duration::ZERO),
            Synced::Away(away) => Tried::Away(away),
        }));
    }
    put_back(server, key, Some(tip), known).map(Some)
}

/// Whether the server has, of the run that was seen there before, something that does not go on from there. What has another
/// beginning is another run of that name: the first was removed.
pub(super) fn is_forked(
    server: &Server<'_>,
    key: &RunKey,
    before: &ObjectId,
    tip: &ObjectId,
) -> Result<bool> {
    let repo = server.repo()?;
    if before == tip || repo.is_earlier_state(before, tip)? || repo.is_earlier_state(tip, before)? {
        return Ok(false);
    }
    let chain = server::read_chain(server.context, key, server.name(), tip, None)?;
    chain.states.first().map_or(Ok(false), |root| {
        Ok(repo.is_earlier_state(&root.commit, before)?)
    })
}

/// Refuses a run that was set back on the server and went on from there on another machine, unless this clone holds it: who
/// does loses it to whoever holds it there.
///
/// # Errors
/// Damage (12).
fn require_unforked(
    server: &Server<'_>,
    key: &RunKey,
    record: &Record,
    latest: Option<&ObjectId>,
    tip: &ObjectId,
) -> Result<()> {
    let Some(latest) = latest.filter(|_| record.nonce.is_none()) else {
        return Ok(());
    };
    if !is_forked(server, key, latest, tip)? {
        return Ok(());
    }
    Err(forked(server, key))
}

/// Refuses to send what would be put aside on the way (13): there is more of the run than this clone has.
pub(super) fn refuse_behind(
    server: &Server<'_>,
    key: &RunKey,
    ahead: u64,
    chain: &Chain,
) -> Result<()> {
    let behind: usize = chain.states.iter().map(|state| state.events.len()).sum();
    if chain.states.is_empty() {
        return Ok(());
    }
    let message = format!(
        "run {key} went on elsewhere: {behind} events on {} are not here, and {ahead} here are not there; nothing was sent. A claim \
         takes what is there, and keeps what only this machine has aside",
        server.name()
    );
    let hint = Hint::recover(["remote", "claim", "--remote", server.name()]).run(key);
    Err(Error::new(ErrorKind::Conflicts, message).hint(hint))
}

/// The run went on from an older state than was seen there.
pub(super) fn forked(server: &Server<'_>, key: &RunKey) -> Error {
    let message = format!(
        "what {} has of run {key} does not go on from what was seen there before: it was set back, and the run went on \
         elsewhere or was changed by force; --steal takes it as it is there, without what was done in between",
        server.name()
    );
    let hint = Hint::recover(["remote", "claim", "--steal", "--remote", server.name()]).run(key);
    Error::new(ErrorKind::Corrupt, message).hint(hint)
}

/// Puts there again what was seen there last, in the place of what is there.
fn put_back(
    server: &Server<'_>,
    key: &RunKey,
    old: Option<&ObjectId>,
    known: &ObjectId,
) -> Result<Tried> {
    let update = Update {
        name: Remote::run_ref(key),
        old: old.cloned(),
        new: Some(known.clone()),
    };
    Ok(match server.push(update)? {
        Answer::Done(()) => {
            server.repo()?.set_tracking(&server.tracking(key), known)?;
            server.context.note(format!(
                "the remote {} had an older state of run {key}: it has again what was seen there last",
                server.name()
            ));
            Tried::Moved
        }
        Answer::Moved | Answer::Cut(_) => Tried::Moved,
        other => Tried::Away(away(other)),
    })
}

fn gone(server: &Server<'_>, key: &RunKey) -> Error {
    let message = format!(
        "the remote {} has less of run {key} than it had: it was set back. The machine that holds the run brings it up to date \
         with its next push",
        server.name()
    );
    Error::new(ErrorKind::Corrupt, message)
        .hint(Hint::recover(["remote", "push", "--remote", server.name()]).run(key))
}

fn new_claim(context: &Context, before: Option<&Standing>) -> Result<Claim> {
    let nonce = new_id().map_err(|error| Error::io("cannot make a random number", error))?;
    let holder = format!(
        "{:08x}",
        crc32fast::hash(context.state_dir_id().to_string().as_bytes())
    );
    Ok(Claim::after(
        before.map(|before| &before.claim),
        format!("{}-{holder}", host(context)),
        host(context),
        nonce,
    ))
}

/// The name of this machine.
pub(super) fn host(context: &Context) -> String {
    let named = context.env("RECOVER_TEST_HOST").unwrap_or_else(|| {
        rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned()
    });
    let plain: String = named
        .chars()
        .filter(|c| !c.is_control())
        .take(128)
        .collect();
    if plain.is_empty() {
        "unknown".to_owned()
    } else {
        plain
    }
}

/// The budgets that hold when the run first goes elsewhere are its own from then on.
fn keep_policy(context: &Context, key: &RunKey) -> Result<()> {
    let ledger = context.store().lock()?;
    let run = crate::engine::base::runs::run_of(ledger.state(), key)?;
    if run.spec.policy.is_some() {
        return Ok(());
    }
    let settings = crate::engine::record::run_settings::settings_of(context, &run);
    let policy = serde_json::to_value(settings.retry).map_err(|error| {
        Error::new(
            ErrorKind::Failed,
            format!("cannot encode the budgets: {error}"),
        )
    })?;
    let spec = crate::model::run::RunSpec {
        policy: Some(policy),
        ..run.spec.clone()
    };
    context
        .record_in(
            ledger,
            key,
            vec![Payload::RunSpecChanged {
                spec: Box::new(spec),
            }],
        )
        .map(drop)
}
