//! What lies on a remote, for people and scripts: `recover remote` and `runs --remote`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::claim::{
    TakeOver, Wish, claim, forked, held, is_forked, latest, refuse_behind, to_be_claimed,
};
use super::push::{Synced, last_seen, places, sync, verified};
use super::record::{Record, lock, remotes_of};
use super::server::{Chain, Reached, Server};
use super::take_over::{keys_of, meant, steal_unconfirmed};
use super::{record, server, session};
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::base::runs::named;
use crate::engine::record::liveness::Driving;
use crate::git::remote::Remote;
use crate::model::event::Event;
use crate::model::hint::Hint;
use crate::model::id::RunId;
use crate::model::manifest::ObjectId;
use crate::model::remote::Claim;
use crate::model::run::{Run, RunKey, RunStatus};
use crate::model::state::State;
use crate::policy::checkpoint_events::fold;

/// A run that lies on a remote.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "remote_run")]
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
#[schemars(rename = "run_remote")]
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
    let naming = context.naming();
    if let Some(id) = &naming.run_id {
        return match named(state, id, naming.phase.as_deref(), naming.lane.as_deref()) {
            Ok(run) => Ok(vec![run.key.clone()]),
            Err(error) if error.kind == ErrorKind::RunNotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        };
    }
    let lies_there = |run: &&Run| {
        remotes_of(context, &run.key)
            .iter()
            .any(|known| known == remote)
    };
    Ok(state
        .runs
        .iter()
        .filter(lies_there)
        .map(|run| run.key.clone())
        .collect())
}

/// Shows who holds what, and what is not sent. A server that is away is said; what was seen last is shown then.
pub(crate) fn status(context: &Context) -> Result<RemoteReport> {
    let server = Server::named(context)?;
    let (found, fetched) = match refresh(&server) {
        Ok(found) => found,
        Err(error) if error.kind == ErrorKind::GaveUpWaiting => {
            context.warn(format!("{error}; this is what was seen last"));
            (seen_before(&server)?, Vec::new())
        }
        Err(error) => return Err(error),
    };
    report(&server, &found, Vec::new(), fetched)
}

/// Fetches and verifies what is new of the runs there; the ledger stays as it is.
pub(crate) fn fetch(context: &Context) -> Result<RemoteReport> {
    let server = Server::named(context)?;
    let (found, fetched) = refresh(&server)?;
    report(&server, &found, Vec::new(), fetched)
}

/// The runs there with what their references name, all of them here and verified; and those that are new.
pub(super) fn refresh(server: &Server<'_>) -> Result<(BTreeMap<RunKey, ObjectId>, Vec<RunKey>)> {
    let context = server.context;
    let naming = context.naming();
    let found = match server.list(naming.run_id.as_ref())? {
        Reached::Yes(found) => found,
        Reached::Away(away) => return Err(away.error(server.name())),
    };
    let mut keys = keys_of(server, &found, naming.run_id.as_ref())?;
    keys.retain(|(key, _)| {
        naming
            .phase
            .as_ref()
            .is_none_or(|phase| key.phase == *phase)
            && naming.lane.as_ref().is_none_or(|lane| key.lane == *lane)
    });
    let (mut all, mut fetched) = (BTreeMap::new(), Vec::new());
    for (key, tip) in keys {
        match see(server, &key, &tip) {
            Ok(Seen::Known) => {}
            Ok(Seen::New) => fetched.push(key.clone()),
            Ok(Seen::Back) => context.warn(gone_back(server, &key).to_string()),
            Err(error) => {
                let is_its_own = matches!(
                    error.kind,
                    ErrorKind::Newer | ErrorKind::Corrupt | ErrorKind::NotTrusted
                );
                if naming.run_id.is_some() || !is_its_own {
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
/// It is damaged (12), newer (15) or signed by nobody who may (13); or it does not go on from what was seen before (12): that
/// is not forgotten, or attempts that were made would be made again.
fn see(server: &Server<'_>, key: &RunKey, tip: &ObjectId) -> Result<Seen> {
    let (context, repo) = (server.context, server.repo()?);
    // Nobody else in this clone pushes meanwhile.
    let mut locked = if context.store().exists() {
        Some(lock(context, key, server.name())?)
    } else {
        None
    };
    let record = locked
        .as_ref()
        .map(|locked| locked.record.clone())
        .unwrap_or_default();
    let known = latest(server, key, &record)?;
    if let Some(known) = known.as_ref().filter(|known| *known != tip)
        && !repo.is_earlier_state(known, tip)?
    {
        // Another process of this clone may have pushed since the list was made.
        if matches!(server.look(key)?, Reached::Yes(Some(now)) if now != *tip) {
            return Ok(Seen::Known);
        }
        if repo.is_earlier_state(tip, known)? {
            return if record.tip.as_ref() == Some(known) {
                Ok(Seen::Back)
            } else {
                Err(gone_back(server, key))
            };
        }
        if is_forked(server, key, known, tip)? {
            return Err(forked(server, key));
        }
        // The run was removed there, and is another one of that name now.
    }
    let tracked = repo.resolve_ref(&server.tracking(key));
    let is_new = tracked.as_ref() != Some(tip);
    if is_new {
        verified(server, key, tip, tracked.as_ref())?;
    }
    if let Some(locked) = &mut locked {
        locked.record.see(tip);
        locked.save(context)?;
    }
    Ok(if is_new { Seen::New } else { Seen::Known })
}

/// The server has an older state of a run than was seen there, or another one in its place.
fn gone_back(server: &Server<'_>, key: &RunKey) -> Error {
    let message = format!(
        "what {} has of run {key} does not go on from what was seen there before: it was set back. The \
         machine that holds the run brings it up to date with its next push, and a claim puts there again what was taken \
         from the end of it",
        server.name()
    );
    Error::new(ErrorKind::Corrupt, message)
        .hint(Hint::recover(["remote", "claim", "--remote", server.name()]).run(key))
}

/// What was seen last of the runs that are known here.
fn seen_before(server: &Server<'_>) -> Result<BTreeMap<RunKey, ObjectId>> {
    let context = server.context;
    let state = context.load()?.state;
    let keys = local_runs(context, &state, server.name())?;
    let repo = server.repo()?;
    Ok(keys
        .into_iter()
        .filter_map(|key| Some((key.clone(), repo.resolve_ref(&server.tracking(&key))?)))
        .collect())
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
    for (key, tip) in found {
        let standing = server::chain_standing(server.repo()?, key, server.name(), tip)?;
        let record = record::load(context, key, server.name())?.unwrap_or_default();
        let claim = &standing.claim;
        let seen = record
            .seen
            .as_ref()
            .filter(|seen| seen.commit == *tip)
            .and_then(|seen| seen.since.age());
        runs.push(RemoteRun {
            key: key.clone(),
            holder: (!claim.released).then(|| claim.holder.clone()),
            host: Some(claim.host.clone()),
            fencing: claim.fencing,
            seen_unchanged_ms: seen.map(|seen| u64::try_from(seen.as_millis()).unwrap_or(u64::MAX)),
            ahead: ahead(server, &state, key, &record, Some(tip))?,
            behind: behind(&state, key, &record, standing.meta.chain.run_seq),
            partial: standing.meta.partial,
        });
    }
    for key in local_runs(context, &state, server.name())? {
        if !found.contains_key(&key) {
            let record = record::load(context, &key, server.name())?.unwrap_or_default();
            runs.push(RemoteRun {
                holder: None,
                host: None,
                fencing: 0,
                seen_unchanged_ms: None,
                ahead: ahead(server, &state, &key, &record, None)?,
                behind: 0,
                partial: record.withheld > 0,
                key,
            });
        }
    }
    runs.sort_by(|one, other| one.key.cmp(&other.key));
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
        if record.tip.is_some() || !record.pending.is_empty() {
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

/// Whether this clone holds a run, by what was seen last of it: somebody else may have taken it since it was claimed.
fn is_held(context: &Context, key: &RunKey, remote: &str, record: &Record) -> Result<bool> {
    if record.nonce.is_none() || !context.has_git() {
        return Ok(false);
    }
    let repo = context.repo()?;
    let Some(tip) = repo.resolve_ref(&Remote::tracking_ref(remote, key)) else {
        return Ok(false);
    };
    let claim = server::chain_standing(repo, key, remote, &tip)?.claim;
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
    server: &Server<'_>,
    state: &State,
    key: &RunKey,
    record: &Record,
    there: Option<&ObjectId>,
) -> Result<u64> {
    let Some(run) = state.run(key) else {
        return Ok(0);
    };
    let unsent = unsent(server.context, run, record)?;
    let repo = server.repo()?;
    let lacking = match (&record.tip, there) {
        (Some(tip), Some(there)) if tip != there && repo.is_earlier_state(there, tip)? => {
            let there = server::chain_standing(repo, key, server.name(), there)?;
            record
                .chain
                .run_seq
                .saturating_sub(there.meta.chain.run_seq)
        }
        (Some(_), None) => record.chain.run_seq,
        _ => 0,
    };
    Ok(unsent + lacking)
}

/// Events of a run that are there only.
fn behind(state: &State, key: &RunKey, record: &Record, there: u64) -> u64 {
    let here = if state.run(key).is_some() {
        record.chain.run_seq
    } else {
        0
    };
    there.saturating_sub(here)
}

/// Sends what is new of the runs that are meant: each is claimed for it, and given back if it was not this clone's before.
///
/// # Errors
/// Somebody else holds one of them (11): those before it are sent.
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
        keys.push(
            crate::engine::record::select::require(context, &state)?
                .key
                .clone(),
        );
    }
    let (mut pushed, mut unheld) = (Vec::new(), Vec::new());
    for key in keys {
        let before = record::load(context, &key, server.name())?.unwrap_or_default();
        match push_held(&server, &key, how)? {
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
        found => found?,
    };
    for (key, before) in &unheld {
        let ahead = ahead(&server, &state, key, before, found.get(key))?;
        if context.dry_run() {
            if before.tip.is_none() || ahead > 0 {
                pushed.push(key.clone());
            }
            continue;
        }
        if before.tip.is_some() && before.nonce.is_none() && ahead == 0 {
            continue;
        }
        let agrees = |chain: &Chain| refuse_behind(&server, key, ahead, chain);
        let how = TakeOver {
            steals: false,
            ..how
        };
        let sent = claim(&server, key, &Wish::of_user(how, &agrees))?.sent;
        if before.nonce.is_none() {
            session::release(context, key, false);
        }
        if sent > 0 {
            pushed.push(key.clone());
        }
    }
    found.extend(seen_before(&server)?);
    report(&server, &found, pushed, fetched)
}

/// Sends what is new of a run that this clone holds, by what it knows of it, and returns how many events that were. `None`: what
/// is there has to be seen first.
fn push_held(server: &Server<'_>, key: &RunKey, how: TakeOver) -> Result<Option<usize>> {
    if server.context.dry_run() {
        return Ok(None);
    }
    let mut locked = lock(server.context, key, server.name())?;
    // Where nothing is known to have arrived, the first claim may have.
    if locked.record.nonce.is_none() || locked.record.tip.is_none() {
        return Ok(None);
    }
    match sync(server, key, &mut locked, false)? {
        Synced::Done(sent) => Ok(Some(sent)),
        Synced::Away(away) if how.wait.is_none() => Err(away.error(server.name())),
        Synced::Lost(_) | Synced::Away(_) => Ok(None),
    }
}

/// Claims the run that is meant: what lies of it there is in the ledger here then.
pub(crate) fn claim_run(context: &Context, how: TakeOver) -> Result<RemoteReport> {
    let server = Server::named(context)?.with_consent()?;
    let name = server.name().to_owned();
    let key = meant(&server, how)?;
    if context.dry_run() {
        let record = record::load(context, &key, &name)?.unwrap_or_default();
        let chain = to_be_claimed(&server, &key, &record, how.steals)?;
        let Some(end) = chain.and_then(|chain| chain.end()) else {
            return now(&server);
        };
        let mut found = seen_before(&server)?;
        found.insert(key, end.commit);
        return report(&server, &found, Vec::new(), Vec::new());
    }
    if how.steals && !context.says_yes() {
        return Err(steal_unconfirmed(context, &key, &name));
    }
    claim(&server, &key, &Wish::of_user(how, &|_| Ok(())))?;
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
    let name = server.name().to_owned();
    let key = meant(&server, how)?;
    // Whoever is at work here gives the claim back at its own end.
    let is_here = context.load()?.state.run(&key).is_some();
    let _driving = if is_here && !context.dry_run() {
        Some(Driving::take(context, &key)?)
    } else {
        None
    };
    let is_own = record::load(context, &key, &name)?
        .is_some_and(|record| record.nonce.is_some() && record.tip.is_some());
    if !is_own {
        let found = match server.look(&key)? {
            Reached::Yes(found) => found,
            Reached::Away(away) => return Err(away.error(&name)),
        };
        if found.is_none() {
            let message = format!("run {key} does not lie on {name}");
            return Err(Error::new(ErrorKind::RunNotFound, message)
                .hint(Hint::recover(["runs", "--remote", &name])));
        }
        refresh(&server)?;
        let last = last_seen(&server, &key)?.filter(|claim| !claim.released);
        let Some(holder) = last else {
            return now(&server);
        };
        if !force {
            let mut error = held(&server, &key, &holder);
            error.message = format!(
                "run {key} is held by {} on {name}: --force gives its claim back",
                holder.host
            );
            return Err(error.hint(
                Hint::recover(["remote", "release", "--force", "--remote", &name]).run(&key),
            ));
        }
        if !context.says_yes() && !context.dry_run() {
            return Err(steal_unconfirmed(context, &key, &name));
        }
        if !context.dry_run() {
            let how = TakeOver {
                steals: true,
                ..how
            };
            claim(&server, &key, &Wish::of_user(how, &|_| Ok(())))?;
        }
    }
    if context.dry_run() {
        return now(&server);
    }
    let mut locked = lock(context, &key, &name)?;
    match sync(&server, &key, &mut locked, true)? {
        Synced::Done(_) => {}
        Synced::Lost(claim) => return Err(held(&server, &key, &claim)),
        Synced::Away(away) => return Err(away.error(&name)),
    }
    drop(locked);
    now(&server)
}

/// A run as its chain tells it, and who holds it; `None` where the chain says nothing of it.
pub(super) fn folded(
    server: &Server<'_>,
    key: &RunKey,
    tip: &ObjectId,
) -> Result<Option<(Run, Claim)>> {
    let context = server.context;
    let places = places(context);
    let chain = server::read_chain(context, key, server.name(), tip, None)?;
    let shown = |event: &Event| -> Option<Event> {
        serde_json::from_value(places.show(serde_json::to_value(event).ok()?)).ok()
    };
    let events: Vec<Event> = chain
        .states
        .iter()
        .flat_map(|state| &state.events)
        .filter_map(|one| shown(&one.event))
        .collect();
    let run = fold(&events).run(key).cloned();
    Ok(run.zip(chain.end().map(|end| end.claim)))
}

/// The runs of a remote as their chains tell them, newest first.
pub(crate) fn runs(context: &Context, all: bool, limit: Option<usize>) -> Result<Vec<Run>> {
    let server = Server::named(context)?;
    let (found, _) = refresh(&server)?;
    let mut runs = Vec::new();
    for (key, tip) in &found {
        runs.extend(folded(&server, key, tip)?.map(|(run, _)| run));
    }
    runs.retain(|run| all || !matches!(run.status, RunStatus::Closed | RunStatus::Accepted));
    runs.sort_by_key(|run| std::cmp::Reverse(run.created_at));
    runs.truncate(limit.unwrap_or(usize::MAX));
    Ok(runs)
}
