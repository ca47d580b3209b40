//! What lies on a remote, for people and scripts: `recover remote` and `runs --remote`; and for workers, which share it out.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::claim::{
    TakeOver, Wish, claim, latest, not_waited_for, refuse_behind, send_in_passing, to_be_claimed,
};
use super::incoming::events_at_home;
use super::push::{last_seen, sync};
use super::record::{self, Chain, Record, RunThere, chain_standing, remotes_of};
use super::server::{Miss, Server};
use super::session;
use super::take_over::{keys_of, local, meant, steal_unconfirmed};
use crate::engine::attempt::run_summary::{changed_files, waits_until};
use crate::engine::base::clock::millis;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::liveness::{Driving, is_driven};
use crate::engine::record::select;
use crate::engine::runs::Wanted;
use crate::git::remote::Remote;
use crate::model::{Claim, Hint, ObjectId, Run, RunId, RunKey, State, Timestamp};
use crate::policy::checkpoint_events::fold;
use crate::policy::remote::Hold;
use crate::policy::report::{Around, Night, TeamReport, TeamRun};

/// A run that lies on a remote.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RemoteRun {
    #[serde(flatten)]
    pub key: RunKey,
    /// The clone that holds it; `null` where none does.
    pub holder: Option<String>,
    /// The machine that holds it, or had it last; `null` where it is not there.
    pub host: Option<String>,
    /// How often it was claimed.
    pub fencing: u64,
    /// For how long this machine has seen it unchanged; `null` where it has not seen it.
    pub seen_unchanged_ms: Option<u64>,
    /// Events here that are not there.
    pub ahead: u64,
    /// Events there that are not here.
    pub behind: u64,
    /// Whether files of its checkpoints stayed where they were taken.
    pub partial: bool,
}

/// How a run stands with a remote, by what is known here.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RunRemote {
    /// The remote.
    pub remote: String,
    /// Whether this clone holds the run.
    pub held: bool,
    /// Events that were not sent.
    pub ahead: u64,
    /// Why the server could not be had last, where nothing arrived since.
    pub away: Option<String>,
}

/// What a command about a remote found and did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RemoteReport {
    pub remote: String,
    /// The runs there that were asked for, and those here that are not all there.
    pub runs: Vec<RemoteRun>,
    /// Runs of which something was sent.
    #[serde(serialize_with = "run_ids")]
    #[schemars(with = "Vec<RunId>")]
    pub pushed: Vec<RunKey>,
    /// Runs of which something was fetched.
    #[serde(serialize_with = "run_ids")]
    #[schemars(with = "Vec<RunId>")]
    pub fetched: Vec<RunKey>,
    /// Runs that were removed there, or would be.
    #[serde(serialize_with = "run_ids")]
    #[schemars(with = "Vec<RunId>")]
    pub pruned: Vec<RunKey>,
}

fn run_ids<S: Serializer>(keys: &[RunKey], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_seq(keys.iter().map(|key| &key.run_id))
}

/// The runs here that are meant: the one that is named, else those that lie on the remote.
fn local_runs(context: &Context, state: &State, remote: &str) -> Result<Vec<RunKey>> {
    let id = context.naming().run_id.as_ref();
    if id.is_some() {
        return Ok(local(context, state, id)?.into_iter().collect());
    }
    let keys = state.runs.iter().map(|run| &run.key);
    let there = keys.filter(|key| remotes_of(context, key).iter().any(|known| known == remote));
    Ok(there.cloned().collect())
}

/// Shows who holds what, and what is not sent. A server that is away is said; what was seen last is shown then.
pub(crate) fn status(context: &Context) -> Result<RemoteReport> {
    let server = Server::named(context)?;
    match now(&server) {
        Ok(report) => require_found(context, report),
        Err(error) if error.kind == ErrorKind::GaveUpWaiting => {
            context.warn(format!("{error}; this is what was seen last"));
            report(&server, &seen_before(&server)?, Vec::new(), Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// A run that is named has to be there, or here.
fn require_found(context: &Context, report: RemoteReport) -> Result<RemoteReport> {
    match &context.naming().run_id {
        Some(id) if report.runs.is_empty() => {
            let message = format!("no run '{id}', neither here nor on {}", report.remote);
            let list = Hint::recover(["runs", "--remote", &report.remote]);
            Err(Error::new(ErrorKind::RunNotFound, message).hint(list))
        }
        _ => Ok(report),
    }
}

/// Fetches and verifies what is new of the runs there; the ledger stays as it is.
pub(crate) fn fetch(context: &Context) -> Result<RemoteReport> {
    require_found(context, now(&Server::named(context)?)?)
}

/// The runs there with what their references name, all of them here and verified; and those that are new.
pub(super) fn refresh(server: &Server<'_>) -> Result<(BTreeMap<RunKey, ObjectId>, Vec<RunKey>)> {
    let meant = server.context.naming().run_id.as_ref();
    let found = server.list(meant).map_err(Miss::error)?;
    refresh_found(server, &found, meant)
}

/// The same of the references that were found there; `meant` is the run that they are of, where it is one.
fn refresh_found(
    server: &Server<'_>,
    found: &[(String, ObjectId)],
    meant: Option<&RunId>,
) -> Result<(BTreeMap<RunKey, ObjectId>, Vec<RunKey>)> {
    let context = server.context;
    let keys = keys_of(server, found, meant)?;
    let (mut all, mut fetched) = (BTreeMap::new(), Vec::new());
    for (key, tip) in keys {
        match see(RunThere::on(server, &key), &tip) {
            Ok(Seen::Known) => {}
            Ok(Seen::New) => fetched.push(key.clone()),
            Ok(Seen::Back) => {
                context.warn(gone_back(RunThere::on(server, &key)).to_string());
            }
            Err(error) => {
                let is_its_own = matches!(
                    error.kind,
                    ErrorKind::Newer
                        | ErrorKind::Corrupt
                        | ErrorKind::NotTrusted
                        | ErrorKind::AlreadyExists
                );
                if meant.is_some() || !is_its_own {
                    return Err(error);
                }
                context.warn(error.to_string());
                continue;
            }
        }
        all.insert(key, tip);
    }
    Ok((all, fetched))
}

/// What a look at a run on the server came to.
enum Seen {
    /// It was seen before.
    Known,
    /// It was not.
    New,
    /// It is less than what the ledger here has: the next push brings it up to date.
    Back,
}

/// Notes what the server has of a run, which is verified first.
///
/// # Errors
/// It is damaged (12), newer (15) or signed by nobody who may (13); or it does not go on from what was seen before (12, or 13
/// where it is another run): that is not forgotten, or attempts that were made would be made again.
fn see(there: RunThere<'_>, tip: &ObjectId) -> Result<Seen> {
    let repo = there.repo()?;
    // Nobody else in this clone pushes meanwhile.
    let exists = there.context.store().exists();
    let mut locked = exists.then(|| there.lock()).transpose()?;
    let record = locked.as_ref().map(|locked| locked.record.clone());
    let record = record.unwrap_or_default();
    let known = latest(there, &record)?;
    if let Some(known) = known.as_ref().filter(|known| *known != tip)
        && !repo.is_earlier_state(known, tip)?
    {
        // Another process of this clone may have pushed since the list was made.
        match there.look() {
            Ok(Some(now)) if now != *tip => return Ok(Seen::Known),
            Err(Miss::Failed(error)) => return Err(error),
            _ => {}
        }
        if repo.is_earlier_state(tip, known)? {
            return if record.tip.as_ref() == Some(known) {
                Ok(Seen::Back)
            } else {
                Err(gone_back(there))
            };
        }
        there.require_same(record.tip.as_ref(), Some(known), tip, false)?;
        // The run was removed there, and is another one of that name now.
    }
    let tracked = there.seen()?;
    let is_new = tracked.as_ref() != Some(tip);
    if is_new {
        there.verify(tip, tracked.as_ref())?;
    }
    if let Some(locked) = &mut locked {
        locked.record.see(tip);
        locked.save()?;
    }
    Ok(if is_new { Seen::New } else { Seen::Known })
}

/// The server has an older state of a run than was seen there, or another one in its place.
fn gone_back(there: RunThere<'_>) -> Error {
    let message = format!(
        "{} was set back: its state of run {} is older or rewritten. The next push of the machine that holds it fixes that; recover remote \
         claim restores the missing states",
        there.name(),
        there.key
    );
    Error::new(ErrorKind::Corrupt, message).hint(there.hint("claim"))
}

/// What was seen last of the runs that are known here.
fn seen_before(server: &Server<'_>) -> Result<BTreeMap<RunKey, ObjectId>> {
    let context = server.context;
    let state = context.load()?.state;
    let mut seen = BTreeMap::new();
    for key in local_runs(context, &state, server.name())? {
        if let Some(tip) = RunThere::on(server, &key).seen()? {
            seen.insert(key, tip);
        }
    }
    Ok(seen)
}

/// What there is to be said of the runs that were found, and of those here.
pub(super) fn report(
    server: &Server<'_>,
    found: &BTreeMap<RunKey, ObjectId>,
    pushed: Vec<RunKey>,
    fetched: Vec<RunKey>,
) -> Result<RemoteReport> {
    let context = server.context;
    let state = context.load()?.state;
    let mut runs = Vec::new();
    let mut keys: BTreeSet<RunKey> = found.keys().cloned().collect();
    keys.extend(local_runs(context, &state, server.name())?);
    for key in keys {
        let (there, tip) = (RunThere::on(server, &key), found.get(&key));
        let record = there.record()?;
        let standing = tip.map(|tip| there.standing(tip)).transpose()?;
        let (claim, meta) = standing
            .map(|standing| (standing.claim, standing.meta))
            .unzip();
        let seen = record
            .seen
            .as_ref()
            .filter(|seen| Some(&seen.commit) == tip);
        let fetched = meta.as_ref().map_or(0, |meta| meta.chain.run_seq);
        // One that is not recorded here is read as it was fetched.
        let here = state.run(&key).map_or(fetched, |_| record.chain.run_seq);
        runs.push(RemoteRun {
            holder: claim
                .as_ref()
                .filter(|claim| !claim.released)
                .map(|claim| claim.holder.clone()),
            host: claim.as_ref().map(|claim| claim.host.clone()),
            fencing: claim.as_ref().map_or(0, |claim| claim.fencing),
            seen_unchanged_ms: seen.and_then(|seen| seen.since.age()).map(millis),
            ahead: ahead(there, &state, &record, tip)?,
            behind: fetched.saturating_sub(here),
            partial: meta.map_or(record.withheld > 0, |meta| meta.partial),
            key,
        });
    }
    Ok(RemoteReport {
        remote: server.name().to_owned(),
        runs,
        pushed,
        fetched,
        pruned: Vec::new(),
    })
}

/// How a run stands with the remotes that it lies on; nobody is asked.
pub(crate) fn run_remotes(context: &Context, run: &Run) -> Result<Vec<RunRemote>> {
    let mut all = Vec::new();
    for remote in remotes_of(context, &run.key) {
        let Some(record) = record::load(context, &run.key, &remote)? else {
            continue;
        };
        if record.tip.is_some() || !record.pending.is_empty() || record.away.is_some() {
            let ahead = unsent(context, run, &record)?;
            let held = is_held(context, &run.key, &remote, &record)?;
            all.push(RunRemote {
                remote,
                held,
                ahead,
                away: record.away,
            });
        }
    }
    Ok(all)
}

/// Whether this clone holds a run, by what was seen last of it: another machine may have taken it since it was claimed.
fn is_held(context: &Context, key: &RunKey, remote: &str, record: &Record) -> Result<bool> {
    if record.nonce.is_none() || !context.has_git() {
        return Ok(false);
    }
    let repo = context.repo()?;
    let Some(tip) = repo.resolve_ref(&Remote::tracking_ref(remote, key)) else {
        return Ok(false);
    };
    let claim = chain_standing(repo, key, remote, &tip)?.claim;
    Ok(!claim.released && record.nonce.as_ref() == Some(&claim.nonce))
}

/// Events of a run that were not sent.
fn unsent(context: &Context, run: &Run, record: &Record) -> Result<u64> {
    let is_sent = record.tip.is_some() && run.last_seq <= record.sent_seq;
    Ok(if is_sent {
        0
    } else {
        context
            .store()
            .lines_of_run(&run.key, record.sent_seq)?
            .len() as u64
    })
}

/// Events of a run that are here only: those that were not sent, and those that the server had and lacks now.
fn ahead(
    there: RunThere<'_>,
    state: &State,
    record: &Record,
    tip: Option<&ObjectId>,
) -> Result<u64> {
    let Some(run) = state.run(there.key) else {
        return Ok(0);
    };
    let unsent = unsent(there.context, run, record)?;
    let lacking = match (&record.tip, tip) {
        (Some(known), Some(tip))
            if known != tip && there.repo()?.is_earlier_state(tip, known)? =>
        {
            let known = there.standing(tip)?.meta.chain.run_seq;
            record.chain.run_seq.saturating_sub(known)
        }
        (Some(_), None) => record.chain.run_seq,
        _ => 0,
    };
    Ok(unsent + lacking)
}

/// Sends what is new of the runs that are meant: each is claimed for it, and given back if it was not this clone's before.
///
/// # Errors
/// Another machine holds one of them (11): those before it are sent.
pub(crate) fn push(context: &Context, how: TakeOver) -> Result<RemoteReport> {
    let server = Server::named(context)?.with_consent()?;
    let state = context.load()?.state;
    let mut keys = local_runs(context, &state, server.name())?;
    if keys.is_empty() {
        if let Some(id) = &context.naming().run_id {
            return Err(Error::new(ErrorKind::RunNotFound, format!("no run '{id}'"))
                .hint(Hint::recover(["runs"])));
        }
        // Nothing was ever sent: what a command here is about.
        keys.push(select::require(context, &state)?.key.clone());
    }
    let (mut pushed, mut unheld) = (Vec::new(), Vec::new());
    for key in keys {
        let there = RunThere::on(&server, &key);
        let before = there.record()?;
        match push_known(there, how)? {
            Some(0) => {}
            Some(_) => pushed.push(key),
            None => unheld.push((key, before)),
        }
    }
    if unheld.is_empty() {
        return report(&server, &seen_before(&server)?, pushed, Vec::new());
    }
    let (mut found, fetched) = match refresh(&server) {
        // It is waited for with the claim.
        Err(error) if error.kind == ErrorKind::GaveUpWaiting && how.wait.is_some() => {
            (seen_before(&server)?, Vec::new())
        }
        Err(error) if error.kind == ErrorKind::GaveUpWaiting => {
            return Err(not_waited_for(context, error));
        }
        found => found?,
    };
    let how = TakeOver {
        steals: false,
        ..how
    };
    for (key, before) in &unheld {
        let there = RunThere::on(&server, key);
        let ahead = ahead(there, &state, before, found.get(key))?;
        if context.dry_run() {
            if before.tip.is_none() || ahead > 0 {
                pushed.push(key.clone());
            }
            continue;
        }
        if before.tip.is_some() && before.nonce.is_none() && ahead == 0 {
            continue;
        }
        let is_held = before.nonce.is_some() && !before.gives_back;
        let agrees = |chain: &Chain| refuse_behind(there, ahead, chain);
        let sent = claim(there, &Wish::of_user(how, &agrees))?.sent;
        if !is_held {
            session::release(context, key, false);
        }
        if sent > 0 {
            pushed.push(key.clone());
        }
    }
    found.extend(seen_before(&server)?);
    report(&server, &found, pushed, fetched)
}

/// Sends what is new of a run that this clone holds, or that nobody does, by what it knows of it, and returns how many events that
/// were; a claim is given back that was to be given back before. `None`: what is there has to be seen first.
fn push_known(there: RunThere<'_>, how: TakeOver) -> Result<Option<usize>> {
    if there.context.dry_run() {
        return Ok(None);
    }
    let mut locked = there.lock()?;
    // Where nothing is known to have arrived, the first claim may have.
    if locked.record.tip.is_none() {
        return Ok(None);
    }
    let sent = match locked.record.nonce {
        Some(_) => {
            let releases = locked.record.gives_back;
            sync(&mut locked, releases).map(Some)
        }
        None => send_in_passing(&mut locked),
    };
    match sent {
        Ok(sent) => Ok(sent),
        Err(Miss::Held(_)) => Ok(None),
        Err(Miss::Away(_)) if how.wait.is_some() => Ok(None),
        Err(Miss::Away(away)) => Err(not_waited_for(there.context, away.error())),
        Err(missed) => Err(missed.error()),
    }
}

/// Claims the run that is meant: what lies of it there is in the ledger here then.
pub(crate) fn claim_run(context: &Context, how: TakeOver) -> Result<RemoteReport> {
    let server = Server::named(context)?.with_consent()?;
    let key = meant(&server, how)?;
    let there = RunThere::on(&server, &key);
    if context.dry_run() {
        let chain = to_be_claimed(there, &there.record()?, how.steals)?;
        let Some(end) = chain.and_then(|chain| chain.end()) else {
            return now(&server);
        };
        let mut found = seen_before(&server)?;
        found.insert(key, end.commit);
        return report(&server, &found, Vec::new(), Vec::new());
    }
    if how.steals && !context.says_yes() {
        return Err(steal_unconfirmed(there));
    }
    claim(there, &Wish::of_user(how, &|_| Ok(())))?;
    now(&server)
}

/// How it is on the remote now.
fn now(server: &Server<'_>) -> Result<RemoteReport> {
    let (found, fetched) = refresh(server)?;
    report(server, &found, Vec::new(), fetched)
}

/// Gives the claim of the run that is meant back; with `force` that of another machine, which a person agreed to.
pub(crate) fn release_run(context: &Context, force: bool, how: TakeOver) -> Result<RemoteReport> {
    let server = Server::named(context)?.with_consent()?;
    let (name, key) = (server.name(), meant(&server, how)?);
    let there = RunThere::on(&server, &key);
    // Whoever is at work here gives the claim back at its own end.
    let is_driven = context.load()?.state.run(&key).is_some() && !context.dry_run();
    let _driving = is_driven
        .then(|| Driving::take(context, &key))
        .transpose()?;
    let record = there.record()?;
    if record.nonce.is_none() || record.tip.is_none() {
        if there.look().map_err(Miss::error)?.is_none() {
            let message = format!("run {key} does not lie on {name}");
            return Err(Error::new(ErrorKind::RunNotFound, message)
                .hint(Hint::recover(["runs", "--remote", name])));
        }
        refresh(&server)?;
        let Some(holder) = last_seen(there)?.filter(|claim| !claim.released) else {
            return now(&server);
        };
        if !force {
            let message = format!(
                "run {key} is held by {} on {name}: --force gives its claim back",
                holder.host
            );
            let hint = Hint::recover(["remote", "release", "--force", "--remote", name]);
            return Err(Error::new(ErrorKind::Claimed, message).hint(hint.run(&key)));
        }
        if !context.says_yes() && !context.dry_run() {
            return Err(steal_unconfirmed(there));
        }
        if !context.dry_run() {
            let how = TakeOver {
                steals: true,
                ..how
            };
            claim(there, &Wish::of_user(how, &|_| Ok(())))?;
        }
    }
    if !context.dry_run() {
        sync(&mut there.lock()?, true).map_err(Miss::error)?;
    }
    now(&server)
}

/// A run as its chain tells it, and who holds it; `None` where the chain says nothing of it.
pub(super) fn folded(
    server: &Server<'_>,
    key: &RunKey,
    tip: &ObjectId,
) -> Result<Option<(Run, Claim)>> {
    let (state, claim) = state_there(server, key, tip)?;
    Ok(state.run(key).cloned().zip(claim))
}

/// What the chain of a run amounts to, and who holds it.
fn state_there(
    server: &Server<'_>,
    key: &RunKey,
    tip: &ObjectId,
) -> Result<(State, Option<Claim>)> {
    let context = server.context;
    let chain = RunThere::on(server, key).read(tip, None)?;
    let events = events_at_home(context, key, &chain).unwrap_or_else(|error| {
        context.warn(error.to_string());
        Vec::new()
    });
    Ok((fold(&events), chain.end().map(|end| end.claim)))
}

/// What the runs of a remote came to that had an event since then, by what lies there alone.
pub(crate) fn team_report(context: &Context, since: Timestamp) -> Result<TeamReport> {
    let server = Server::named(context)?;
    let (found, _) = refresh(&server)?;
    let named = context.naming().run_id.as_ref();
    if let Some(id) = named.filter(|_| found.is_empty()) {
        let message = format!("no run '{id}' on {}", server.name());
        let list = Hint::recover(["runs", "--all", "--remote", server.name()]);
        return Err(Error::new(ErrorKind::RunNotFound, message).hint(list));
    }
    let now = context.clock.now();
    let mut runs = Vec::new();
    for (key, tip) in &found {
        let (state, claim) = state_there(&server, key, tip)?;
        let (Some(run), Some(claim)) = (state.run(key), claim) else {
            continue;
        };
        if run.last_at < since {
            continue;
        }
        let is_held = !claim.released;
        let goes_on = is_held && !run.status.is_over();
        let around = Around {
            files: changed_files(context, &state, run),
            now: goes_on.then_some(now),
            waits: goes_on
                && run.live.is_none()
                && waits_until(run).is_some_and(|until| until > now),
            ..Around::default()
        };
        let take_up = Hint::recover(["resume", "--remote", server.name()]).run(key);
        let night = Night::new(run, around);
        runs.push(TeamRun::new(run, night, claim.host, is_held, take_up));
    }
    Ok(TeamReport::new(server.name().to_owned(), since, now, runs))
}

/// The runs of a remote as their chains tell them, newest first.
pub(crate) fn runs(context: &Context, wanted: Wanted) -> Result<Vec<Run>> {
    let server = Server::named(context)?;
    let (found, _) = refresh(&server)?;
    let mut runs = Vec::new();
    for (key, tip) in &found {
        runs.extend(folded(&server, key, tip)?.map(|(run, _)| run));
    }
    runs.retain(|run| wanted.has(run));
    runs.sort_by_key(|run| std::cmp::Reverse(run.created_at));
    runs.truncate(wanted.limit.unwrap_or(usize::MAX));
    Ok(runs)
}

/// A run on a remote, as whoever may go on with it sees it.
#[derive(Clone, Debug)]
pub(crate) struct Queued {
    pub run: Run,
    /// The machine that has it, or had it last.
    pub host: String,
    /// After what time it is free at the latest, if its holder shows no sign of life; `None`: this work tree may have it now.
    pub free_in: Option<Duration>,
    /// How long it may show no sign of life.
    pub lease: Duration,
    tip: ObjectId,
}

/// The runs there whose ids begin so. What was read before, and is the same there, is not read again.
///
/// # Errors
/// The server is away (9).
pub(crate) fn queued(
    context: &Context,
    begin: &str,
    mut known: BTreeMap<RunKey, Queued>,
) -> Result<BTreeMap<RunKey, Queued>> {
    let server = Server::named(context)?;
    let place = Remote::runs_of(Some(&RunId::from(begin)));
    let found = server.below(&place).map_err(Miss::error)?;
    let (found, _) = refresh_found(&server, &found, None)?;
    let mut all = BTreeMap::new();
    for (key, tip) in found {
        let there = RunThere::on(&server, &key);
        let (record, standing) = (there.record()?, there.standing(&tip)?);
        let (hold, free_in) = there.hold(&record, &standing);
        let is_held = match hold {
            Hold::Held => true,
            // In another work tree of this clone.
            Hold::Ours => is_driven(context, &key),
            Hold::Free => false,
        };
        let read = known.remove(&key).filter(|known| known.tip == tip);
        let run = match read {
            Some(known) => Some(known.run),
            None => state_there(&server, &key, &tip)?.0.run(&key).cloned(),
        };
        if let Some(run) = run {
            let queued = Queued {
                run,
                lease: there.lease(&standing),
                host: standing.claim.host,
                free_in: is_held.then_some(free_in),
                tip,
            };
            all.insert(key, queued);
        }
    }
    Ok(all)
}
