//! Keeps local writers away from a run that another machine holds.
//!
//! What they would do, its holder would never hear of. What has an effect elsewhere, which cannot be taken back, begins with a
//! sign of life. What they did in a run that nobody else holds goes there at once: this machine may be gone soon.
//!
//! Attempts of a loop that runs its own commands, in a run that lies on a remote.

use std::time::Duration;

use super::claim::{Wish, claim, refuse_behind, send_in_passing};
use super::push::{last_seen, sync, whose};
use super::record;
use super::record::{Chain, RunThere, remotes_of};
use super::server::{Miss, Server};
use super::session::{LAST_WORD, release, release_on};
use crate::engine::base::{Context, Error, ErrorKind, Moment, Result};
use crate::engine::record::select;
use crate::engine::recovery;
use crate::engine::runs::Chosen;
use crate::model::{Hint, Run, RunKey};
use crate::policy::remote::stop_after;
use crate::policy::settings::RemoteMode;

/// Refuses to change runs that another machine holds (11), and returns those that may be. The server is asked where this clone
/// has ever been in touch with it about the run; where it is away, what was seen last counts.
pub(crate) fn require_claim(context: &Context, chosen: &Chosen) -> Result<Vec<RunKey>> {
    if context.dry_run() || !context.has_git() || !context.store().exists() {
        return Ok(Vec::new());
    }
    let state = recovery::load_recovered(context)?;
    // Which run is meant, or that none is, is the command's own to say.
    let keys = match chosen {
        Chosen::Ids(ids) if ids.is_empty() => select::find_quietly(context, &state)
            .map(|run| run.map(|run| run.key.clone()).into_iter().collect()),
        _ => chosen.of(context, &state),
    };
    let Ok(keys) = keys else {
        return Ok(Vec::new());
    };
    keys.iter().try_for_each(|key| require(context, key))?;
    Ok(keys)
}

/// Sends what was recorded in runs that lie on a remote. A claim that this clone does not have is taken for it and given back.
/// What cannot be sent now is for later, and no reason for what was done to fail.
pub(crate) fn send_recorded(context: &Context, keys: &[RunKey]) {
    for key in keys {
        for remote in remotes_of(context, key) {
            if let Err(error) = send_recorded_on(context, key, &remote) {
                let later =
                    context.line(Hint::recover(["remote", "push", "--remote", &remote]).run(key));
                context.warn(format!(
                    "what is new in run {key} is not on {remote} yet: {error}; to send it: {later}"
                ));
            }
        }
    }
}

fn send_recorded_on(context: &Context, key: &RunKey, remote: &str) -> Result<()> {
    let record = record::load(context, key, remote)?.unwrap_or_default();
    let ahead = context.store().lines_of_run(key, record.sent_seq)?.len() as u64;
    if record.tip.is_none() || ahead == 0 {
        return Ok(());
    }
    let server = Server::of(context, remote)?.for_last_word(LAST_WORD);
    let there = RunThere::on(&server, key);
    if record.nonce.is_none() {
        let sent = send_in_passing(&mut there.lock()?);
        if sent.map_err(Miss::error)?.is_some() {
            return Ok(());
        }
    }
    let agrees = |chain: &Chain| refuse_behind(there, ahead, chain);
    claim(there, &Wish::in_passing(&agrees))?;
    if record.nonce.is_none() {
        release_on(context, key, remote, LAST_WORD)
    } else {
        Ok(())
    }
}

/// Refuses to change a run that another machine holds (11).
pub(super) fn require(context: &Context, key: &RunKey) -> Result<()> {
    remotes_of(context, key)
        .iter()
        .try_for_each(|remote| require_on(context, key, remote))
}

/// A sign of life before something with an effect elsewhere begins, where this clone holds the run; its processes get to know
/// the claim from then on.
///
/// # Errors
/// Another machine holds it (11).
pub(crate) fn renew(context: &Context, key: &RunKey) -> Result<Option<u64>> {
    let mut fencing = None;
    for remote in remotes_of(context, key) {
        let record = record::load(context, key, &remote)?;
        if record.is_none_or(|record| record.nonce.is_none()) {
            require_on(context, key, &remote)?;
            continue;
        }
        let server = Server::of(context, &remote)?;
        let there = RunThere::on(&server, key);
        let mut locked = there.lock()?;
        match sync(&mut locked, false) {
            Ok(_) => {}
            Err(missed) => {
                let age = locked.record.alive.as_ref().and_then(Moment::age);
                let is_fresh =
                    age.is_some_and(|age| age < stop_after(context.settings().remote.lease));
                if !(is_fresh && matches!(missed, Miss::Away(_))) {
                    return Err(missed.error());
                }
            }
        }
        if let Some(tip) = &locked.record.tip {
            fencing = Some(there.standing(tip)?.claim.fencing);
        }
    }
    Ok(fencing)
}

/// Refuses a name for a new run that a run on the remote has: before anything is recorded.
///
/// # Errors
/// Another machine holds that (11), or nobody does (13).
pub(crate) fn require_new(server: &Server<'_>, key: &RunKey) -> Result<()> {
    let there = RunThere::on(server, key);
    let record = there.record()?;
    match there.look() {
        Ok(Some(found)) if record.tip.as_ref() != Some(&found) => {}
        Err(Miss::Failed(error)) => return Err(error),
        // One that is away is waited for when the run has begun.
        _ => return Ok(()),
    }
    let Some(end) = there
        .all()
        .map_err(Miss::error)?
        .and_then(|chain| chain.end())
    else {
        return Ok(());
    };
    if !end.claim.released && record.nonce.as_ref() != Some(&end.claim.nonce) {
        return Err(there.held(end.claim, Duration::ZERO).error());
    }
    let message = format!(
        "run {key} lies on {} already: resume it, or choose another name with --run",
        server.name()
    );
    let hint = Hint::recover(["resume", "--remote", server.name()]).run(key);
    Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint))
}

fn require_on(context: &Context, key: &RunKey, remote: &str) -> Result<()> {
    let Some(record) = record::load(context, key, remote)? else {
        return Ok(());
    };
    let Some(tip) = record.tip.clone() else {
        return Ok(());
    };
    let unknown = |error: Error| {
        let what = format!("whether another machine holds run {key} is not known");
        context.warn(format!("{what}: {error}"));
    };
    let server = match Server::of(context, remote) {
        Ok(server) => server,
        Err(error) => {
            unknown(error);
            return Ok(());
        }
    };
    let there = RunThere::on(&server, key);
    let mut now = None;
    match there.look() {
        Ok(Some(found)) if found != tip => match whose(there, &found, &tip) {
            Err(Miss::Away(_)) => {}
            // What is done to the run here takes nothing from that one.
            Err(Miss::Failed(error)) if error.kind == ErrorKind::AlreadyExists => {
                context.warn(error.to_string());
                return Ok(());
            }
            found => now = found.map_err(Miss::error)?,
        },
        Ok(_) => {}
        Err(Miss::Away(away)) => {
            context.warn(format!("{}; using the last known state", away.error()));
        }
        Err(missed) => unknown(missed.error()),
    }
    let seen = match now {
        Some(standing) => Some(standing.claim),
        None => last_seen(there)?,
    };
    match seen {
        Some(claim) if !claim.released && record.nonce.as_ref() != Some(&claim.nonce) => {
            Err(there.held(claim, Duration::ZERO).error())
        }
        _ => Ok(()),
    }
}

/// Before an attempt begins: in strict mode this clone holds the run.
///
/// # Errors
/// Another machine holds it (11), or went on with it (13); the server is away (9).
pub(crate) fn before_own_attempt(context: &Context, key: &RunKey) -> Result<()> {
    if context.settings().remote.mode == RemoteMode::Lazy {
        return require(context, key);
    }
    for remote in remotes_of(context, key) {
        let record = record::load(context, key, &remote)?.unwrap_or_default();
        if record.tip.is_none() || record.nonce.is_some() {
            continue;
        }
        let server = Server::of(context, &remote)?.with_consent()?;
        let agrees = |chain: &Chain| {
            if chain.states.is_empty() {
                return Ok(());
            }
            let message = format!("run {key} went on elsewhere: resume it here first");
            let hint = Hint::recover(["resume", "--prepare-only", "--remote", &remote]).run(key);
            Err(Error::new(ErrorKind::Conflicts, message).hint(hint))
        };
        claim(RunThere::on(&server, key), &Wish::in_passing(&agrees))?;
    }
    Ok(())
}

/// Sends the beginning of an attempt: in strict mode it is there when this returns.
///
/// # Errors
/// Another machine holds the run (11); the server is away (9).
pub(crate) fn send_own_beginning(context: &Context, key: &RunKey) -> Result<()> {
    if context.settings().remote.mode == RemoteMode::Lazy {
        Ok(())
    } else {
        send(context, key, true)
    }
}

/// Refuses the end of an attempt where another machine holds the run (11).
pub(crate) fn before_own_end(context: &Context, key: &RunKey) -> Result<()> {
    require(context, key)
}

/// Sends the end of an attempt, if the server can be had; the claim is given back where the run has ended.
///
/// # Errors
/// Another machine holds the run (11).
pub(crate) fn send_own_end(context: &Context, run: &Run) -> Result<()> {
    if run.status.is_over() {
        release(context, &run.key, false);
        return Ok(());
    }
    send(context, &run.key, false)
}

fn send(context: &Context, key: &RunKey, must: bool) -> Result<()> {
    for remote in remotes_of(context, key) {
        let record = record::load(context, key, &remote)?;
        if record.is_none_or(|record| record.nonce.is_none()) {
            continue;
        }
        let server = Server::of(context, &remote)?;
        match sync(&mut RunThere::on(&server, key).lock()?, false) {
            Err(Miss::Away(away)) if !must => {
                context.note(format!("{}; new events will be sent later", away.error()));
            }
            sent => drop(sent.map_err(Miss::error)?),
        }
    }
    Ok(())
}
