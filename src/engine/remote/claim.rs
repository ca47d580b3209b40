//! Claims a run on a remote, and releases it.

use std::time::Duration;

use anyhow::Context as _;

use super::incoming::{gives_way, refuse_other, take_in};
use super::push::{confirm, prepare, push, settle, sync};
use super::record::{Chain, Locked, Pending, Record, RunThere};
use super::server::{Away, Miss, Reach, Server, require_guarantees};
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Moment, Result, WaitLimit};
use crate::engine::record::run_settings::settings_of;
use crate::git::remote::Remote;
use crate::model::{Claim, Hint, ObjectId, Payload, RunKey, RunSpec};
use crate::policy::remote::{Hold, Standing};
use crate::store::new_id;

/// How a run is taken over from a remote.
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
    /// Whether a wait is one for another machine's claim too, or only for a server that is away.
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

/// A wait for a server that is away or for another machine, limited to what the user said.
#[derive(Debug)]
pub(super) struct Waiting {
    begun: Moment,
    longest: Duration,
    /// Whether the command has a flag for it.
    is_asked: bool,
    said: bool,
    tried: u32,
}

impl Waiting {
    /// It begins; `is_asked`: the command has a flag for it.
    pub(super) fn begin(how: TakeOver, is_asked: bool) -> Self {
        let longest = how.wait.map_or(Duration::ZERO, |limit| {
            limit.longest().unwrap_or(Duration::MAX)
        });
        Self {
            begun: Moment::now(),
            longest,
            is_asked,
            said: false,
            tried: 0,
        }
    }

    /// How long it may still take.
    fn left(&self) -> Duration {
        if self.longest == Duration::MAX {
            return Duration::MAX;
        }
        let age = self.begun.age();
        age.map_or(Duration::ZERO, |waited| self.longest.saturating_sub(waited))
    }

    /// Says once what is waited for.
    fn say(&mut self, context: &Context, what: impl FnOnce() -> String) {
        if !self.said {
            context.note(what());
            self.said = true;
        }
    }

    /// Waits before a server that is away is called again.
    ///
    /// # Errors
    /// It took too long, or nobody is to wait (9); a request to stop came.
    pub(super) fn for_server(&mut self, server: &Server<'_>, away: &Away) -> Result<()> {
        let left = self.left();
        if left.is_zero() {
            let mut error = away.error();
            if self.longest.is_zero() && self.is_asked {
                error = not_waited_for(server.context, error);
            }
            return Err(error);
        }
        self.say(server.context, || {
            format!("waiting for the remote {}: {}", away.remote, away.said)
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

impl Claimed {
    fn of(locked: &Locked<'_>, claim: Claim, sent: usize) -> Self {
        let is_unsettled = locked.record.is_unsettled;
        Self {
            claim,
            is_unsettled,
            sent,
        }
    }
}

/// How often another process may be faster in a row.
const MOST_MOVES: u32 = 32;

/// Claims a run: a new one, one that nobody holds, one whose holder has shown no sign of life for a whole lease, or on
/// request any. What lies of it there is in the ledger then.
///
/// # Errors
/// Another machine holds it (11); waiting took too long, or the server is away (9); there is no such run (4); what lies there
/// is damaged (12), or newer (15: before the claim).
pub(super) fn claim(there: RunThere<'_>, wish: &Wish<'_>) -> Result<Claimed> {
    let context = there.context;
    let mut waiting = Waiting::begin(wish.how, wish.waits_for_holder);
    let mut moves = 0;
    loop {
        let missed = match try_claim(there, wish) {
            Err(Miss::Moved | Miss::Cut(_)) if moves < MOST_MOVES => {
                moves += 1;
                continue;
            }
            Err(missed) => missed.waits(&there),
            Ok(claimed) => return Ok(claimed),
        };
        let mut held = match missed {
            Miss::Held(held) if wish.waits_for_holder => held,
            Miss::Away(away) => {
                note_away(there, &away)?;
                waiting.for_server(&there, &away)?;
                continue;
            }
            missed => return Err(missed.error()),
        };
        let left = waiting.left();
        if left.is_zero() {
            if wish.how.wait.is_some() {
                held.error.kind = ErrorKind::GaveUpWaiting;
            }
            return Err(held.error);
        }
        waiting.say(context, || format!("waiting: {}", held.error.message));
        let pause = held.free_in.min(Duration::from_secs(5)).min(left);
        let slept = context
            .interrupts
            .sleep(pause.max(Duration::from_millis(200)));
        slept.map_err(|signal| {
            Error::interrupted(signal, "stopped while another machine held the run")
        })?;
    }
}

/// The server is away, and the command that was given can wait for it.
pub(super) fn not_waited_for(context: &Context, mut error: Error) -> Error {
    error
        .message
        .push_str("; it was not waited for, --wait does that");
    error.hint(context.rerun(&["--wait"]))
}

/// Notes for the status of a run why its server cannot be had.
fn note_away(there: RunThere<'_>, away: &Away) -> Result<()> {
    if there.context.load()?.state.run(there.key).is_none() {
        return Ok(());
    }
    let mut locked = there.lock()?;
    locked.record.away = Some(away.said.clone());
    locked.save()
}

/// Sends what is new of a run that nobody held when it was seen last, in one state that claims it and gives it back. `None`: there
/// is nothing new, or what is there now has to be seen first.
pub(super) fn send_in_passing(locked: &mut Locked<'_>) -> Reach<Option<usize>> {
    let there = locked.there;
    let Some(tip) = locked.record.tip.clone() else {
        return Ok(None);
    };
    let (before, store) = (there.standing(&tip)?, there.context.store());
    let new = store.lines_of_run(there.key, locked.record.sent_seq)?;
    if !before.claim.released || new.is_empty() || there.seen()? != Some(tip.clone()) {
        return Ok(None);
    }
    let claim = new_claim(there.context, Some(&before))?.released();
    let prepared = prepare(locked, Some(&before), &claim, false, None)?;
    match push(locked, &prepared, Some(&tip)) {
        Err(Miss::Moved | Miss::Cut(_)) => match settle(locked) {
            Ok(()) | Err(Miss::Held(_)) => {}
            Err(missed) => return Err(missed),
        },
        pushed => pushed?,
    }
    let is_there = locked.record.tip.as_ref() == Some(&prepared.pending.commit);
    Ok(is_there.then_some(prepared.events))
}

/// What a claim of a run would take, as far as it is known without one. `None`: nothing lies there.
///
/// # Errors
/// Another machine holds it (11), or it does not go on from what was seen there before (12); the server is away (9).
pub(super) fn to_be_claimed(
    there: RunThere<'_>,
    record: &Record,
    steals: bool,
) -> Result<Option<Chain>> {
    let Some(chain) = there.all().map_err(Miss::error)? else {
        return Ok(None);
    };
    let Some(tip) = chain.end().map(|end| end.commit) else {
        return Ok(None);
    };
    let latest = latest(there, record)?;
    let chain = match &latest {
        // A claim puts there again what was taken from the end of it.
        Some(latest) if *latest != tip && there.repo()?.is_earlier_state(&tip, latest)? => {
            there.read(latest, None)?
        }
        _ => chain,
    };
    let Some(end) = chain.end() else {
        return Ok(Some(chain));
    };
    let may_fork = steals || record.nonce.is_some();
    there.require_same(record.tip.as_ref(), latest.as_ref(), &end.commit, may_fork)?;
    if steals || end.claim.released || record.nonce.as_ref() == Some(&end.claim.nonce) {
        return Ok(Some(chain));
    }
    Err(there.held(end.claim, Duration::ZERO).error())
}

fn try_claim(there: RunThere<'_>, wish: &Wish<'_>) -> Reach<Claimed> {
    let context = there.context;
    let mut locked = there.lock()?;
    let Some(found) = there.look()? else {
        return claim_missing(&mut locked);
    };
    let Some(tip) = there.obtain(&found)? else {
        return Err(there.away_for("the run has just gone", None));
    };
    let latest = latest(there, &locked.record)?;
    if let Some(known) = latest.as_ref().filter(|known| **known != tip)
        && there.repo()?.is_earlier_state(&tip, known)?
    {
        return set_back(&mut locked, &tip, known);
    }
    let known = locked.record.tip.clone();
    // Who holds a run that forked loses it to whoever holds it there.
    let may_fork = wish.how.steals || locked.record.nonce.is_some();
    there.require_same(known.as_ref(), latest.as_ref(), &tip, may_fork)?;
    let chain = there.verify(&tip, known.as_ref())?;
    let Some(end) = chain.end() else {
        return Err(there.away_for("nothing lies there", None));
    };
    locked.record.see(&tip);
    let mut pending = locked.record.pending.iter();
    let pushed = pending.find(|pending| pending.commit == tip).cloned();
    if known.is_none() && pushed.is_none() {
        // Of two first claims at once the other one came through: there is nothing to be given back.
        locked.record.nonce = None;
        locked.record.pending.clear();
    }
    locked.save()?;
    let (state, free_in) = there.hold(&locked.record, &end);
    match state {
        Hold::Ours => go_on(&mut locked, pushed, end.claim),
        Hold::Held if !wish.how.steals => Err(there.held(end.claim, free_in)),
        state => {
            let state_here = context.load()?.state;
            if known.is_none()
                && state_here.run(there.key).is_some()
                && !gives_way(&state_here, there.key, &locked.record)
            {
                return Err(refuse_other(there).into());
            }
            (wish.agrees)(&chain)?;
            let stolen = (state == Hold::Held).then_some(end.claim.host.as_str());
            // Nothing happened since this clone gave it back: what it has done meanwhile goes on from there.
            let goes_on =
                known.as_ref() == Some(&end.commit) && state_here.run(there.key).is_some();
            send_claim(&mut locked, Some(&end), Some(&end.commit), !goes_on, stolen)
        }
    }
}

/// The claim of a run of which nothing is there: it was never sent, or the server has lost it.
fn claim_missing(locked: &mut Locked<'_>) -> Reach<Claimed> {
    let there = locked.there;
    let (key, remote) = (there.key, there.name());
    if there.context.load()?.state.run(key).is_none() {
        let message = format!("there is no run {key}, neither here nor on {remote}");
        let hint = Hint::recover(["runs", "--remote", remote]);
        return Err(Error::new(ErrorKind::RunNotFound, message)
            .hint(hint)
            .into());
    }
    if locked.record.tip.is_none() {
        // What was seen there was another run of that name.
        locked.record.seen = None;
        return first_claim(locked, None);
    }
    let Some(known) = latest(there, &locked.record)? else {
        return first_claim(locked, None);
    };
    there.require_same_place(&locked.record)?;
    let before = there.standing(&known)?;
    let is_own = locked.record.nonce.as_deref() == Some(before.claim.nonce.as_str());
    if !is_own && !before.claim.released {
        let message = format!(
            "{remote} was set back to an older state of run {key}. The next push of the machine that holds it fixes that"
        );
        return Err(Error::new(ErrorKind::Corrupt, message)
            .hint(there.hint("push"))
            .into());
    }
    if locked.record.tip.as_ref() == Some(&known) {
        return first_claim(locked, Some(&before));
    }
    put_back(there, None, &known)
}

/// The latest state of a run that was verified here, whoever made it.
pub(super) fn latest(there: RunThere<'_>, record: &Record) -> Result<Option<ObjectId>> {
    let repo = there.repo()?;
    // A machine without a ledger has no record, only the reference.
    let tracked = there.seen()?;
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
fn first_claim(locked: &mut Locked<'_>, before: Option<&Standing>) -> Reach<Claimed> {
    let there = locked.there;
    require_guarantees(&there)?;
    record_policy(there.context, there.key)?;
    send_claim(locked, before, None, false, None)
}

/// Sends a claim of this clone's, in the place of `old`.
fn send_claim(
    locked: &mut Locked<'_>,
    before: Option<&Standing>,
    old: Option<&ObjectId>,
    takes: bool,
    stolen_from: Option<&str>,
) -> Reach<Claimed> {
    let claim = new_claim(locked.there.context, before)?;
    (locked.record.nonce, locked.record.lost_to) = (Some(claim.nonce.clone()), None);
    locked.record.gives_back = false;
    locked.record.pending.clear();
    let prepared = prepare(locked, before, &claim, takes, stolen_from)?;
    let commit = &prepared.pending.commit;
    push(locked, &prepared, old)?;
    if takes && let Err(error) = take_in(locked, commit) {
        give_back_unread(locked, commit);
        return Err(error.into());
    }
    Ok(Claimed::of(locked, claim, prepared.events))
}

/// Goes on with a claim that this clone has: with a sign of life.
fn go_on(locked: &mut Locked<'_>, pushed: Option<Pending>, claim: Claim) -> Reach<Claimed> {
    locked.record.gives_back = false;
    match pushed {
        Some(pending) if pending.takes => take_in(locked, &pending.commit)?,
        Some(pending) => confirm(locked, &pending)?,
        None => locked.record.pending.clear(),
    }
    let sent = sync(locked, false)?;
    Ok(Claimed::of(locked, claim, sent))
}

/// Releases a run whose events could not be imported.
fn give_back_unread(locked: &mut Locked<'_>, tip: &ObjectId) {
    let there = locked.there;
    let release = |locked: &mut Locked<'_>| -> Reach<()> {
        let before = there.standing(tip)?;
        let prepared = prepare(locked, Some(&before), &before.claim.released(), true, None)?;
        push(locked, &prepared, Some(tip))
    };
    let key = there.key;
    if let Err(error) = release(locked).map_err(Miss::error) {
        tracing::warn!(%error, "the claim of run {key} could not be given back; it expires by itself");
    }
    locked.record.nonce = None;
    locked.record.pending.clear();
    if let Err(error) = locked.save() {
        tracing::warn!(%error, "what is known of run {key} on {} was not noted", there.name());
    }
}

/// A server that has an older state (`tip`) than was verified here (`known`) was set back. Who holds the run goes on with what it
/// has; anybody else puts there again what was there, which claims nothing.
fn set_back(locked: &mut Locked<'_>, tip: &ObjectId, known: &ObjectId) -> Reach<Claimed> {
    let there = locked.there;
    there.require_same_place(&locked.record)?;
    if locked.record.nonce.is_none() || locked.record.tip.as_ref() != Some(known) {
        return put_back(there, Some(tip), known);
    }
    // It pushes what it has, which begins with what is there.
    let sent = sync(locked, false)?;
    let tip = locked.record.tip.as_ref().unwrap_or(known);
    Ok(Claimed::of(locked, there.standing(tip)?.claim, sent))
}

/// Refuses to send what would be put aside on the way (13): there is more of the run than this clone has.
pub(super) fn refuse_behind(there: RunThere<'_>, ahead: u64, chain: &Chain) -> Result<()> {
    let behind: usize = chain.states.iter().map(|state| state.events.len()).sum();
    if chain.states.is_empty() {
        return Ok(());
    }
    let message = format!(
        "run {} went on elsewhere: {behind} events on {} are not here, and {ahead} here are not there; nothing was sent. A claim \
         takes what is there, and keeps what only this machine has aside",
        there.key,
        there.name()
    );
    Err(Error::new(ErrorKind::Conflicts, message).hint(there.hint("claim")))
}

/// Puts there again what was seen there last, in the place of what is there.
fn put_back(there: RunThere<'_>, old: Option<&ObjectId>, known: &ObjectId) -> Reach<Claimed> {
    there.push(&Remote::run_ref(there.key), old, Some(known))?;
    there.repo()?.set_tracking(&there.tracking(), known)?;
    there.context.note(format!(
        "the remote {} had an older state of run {}: it has again what was seen there last",
        there.name(),
        there.key
    ));
    Err(Miss::Moved)
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
fn host(context: &Context) -> String {
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
    Some(plain)
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}

/// The budgets that hold when the run first goes elsewhere are its own from then on.
fn record_policy(context: &Context, key: &RunKey) -> Result<()> {
    let ledger = context.store().lock()?;
    let run = run_of(ledger.state(), key)?;
    if run.spec.policy.is_some() {
        return Ok(());
    }
    let policy = serde_json::to_value(settings_of(context, &run).retry);
    let spec = RunSpec {
        policy: Some(policy.context("cannot encode the budgets")?),
        ..run.spec.clone()
    };
    let changed = Payload::RunSpecChanged {
        spec: Box::new(spec),
        changes: Vec::new(),
    };
    context.record_in(ledger, key, vec![changed]).map(drop)
}
