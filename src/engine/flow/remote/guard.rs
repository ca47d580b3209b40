//! Keeps local writers away from a run that another machine holds.
//!
//! What they would do, its holder would never hear of. What has an effect elsewhere, which cannot be taken back, begins with a
//! sign of life.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::recovery::crash;
use crate::model::hint::Hint;
use crate::model::run::RunKey;
use crate::policy::remote::{Hold, stop_after};

use super::chain::standing;
use super::claim::held;
use super::record::{self, lock, remotes_of};
use super::server::{Reached, Server};
use super::sync::{Synced, all_there, last_seen, sync, whose};
use crate::engine::flow::runs::Chosen;

/// Refuses to change runs that another machine holds (11). The server is asked where this clone has ever been in touch with it
/// about the run; where it is away, what was seen last counts.
pub fn require_claim(context: &Context, chosen: &Chosen) -> Result<()> {
    if !context.has_git() || !context.store().exists() {
        return Ok(());
    }
    let state = crash::load_recovered(context)?;
    // Which run is meant, or that none is, is the command's own to say.
    let Ok(keys) = chosen.of(context, &state) else { return Ok(()) };
    keys.iter().try_for_each(|key| require(context, key))
}

/// Refuses to change a run that another machine holds (11).
pub fn require(context: &Context, key: &RunKey) -> Result<()> {
    remotes_of(context, key).iter().try_for_each(|remote| require_on(context, key, remote))
}

/// A sign of life before something with an effect elsewhere begins, where this clone holds the run; its processes get to know
/// the claim from then on.
///
/// # Errors
/// Somebody else holds it (11).
pub fn renew(context: &Context, key: &RunKey) -> Result<()> {
    for remote in remotes_of(context, key) {
        let mut locked = lock(context, key, &remote)?;
        if locked.record.nonce.is_none() {
            drop(locked);
            require_on(context, key, &remote)?;
            continue;
        }
        let server = Server::of(context, &remote)?;
        match sync(&server, key, &mut locked, false)? {
            Synced::Done(_) => {}
            Synced::Lost(claim) => return Err(held(&server, key, &claim)),
            Synced::Away(away) => {
                let age = locked.record.alive.as_ref().and_then(record::Moment::age);
                if age.is_none_or(|age| age >= stop_after(context.settings().remote.lease)) {
                    return Err(away.error(&remote));
                }
            }
        }
        if let Some(tip) = &locked.record.tip {
            let claim = standing(server.repo()?, key, &remote, tip)?.claim;
            context.fencing.set(Some(claim.fencing));
        }
    }
    Ok(())
}

/// Refuses a name for a new run that a run on the remote has: before anything is recorded.
///
/// # Errors
/// Another machine holds that (11), or nobody does (13).
pub fn require_new(server: &Server<'_>, key: &RunKey) -> Result<()> {
    let context = server.context;
    let record = record::load(context, key, server.name())?.unwrap_or_default();
    match server.look(key)? {
        Reached::Yes(Some(found)) if record.tip.as_ref() != Some(&found) => {}
        // One that is away is waited for when the run has begun.
        _ => return Ok(()),
    }
    let Some(end) = all_there(server, key)?.and_then(|chain| chain.end()) else { return Ok(()) };
    if !end.claim.released && record.nonce.as_ref() != Some(&end.claim.nonce) {
        return Err(held(server, key, &end.claim));
    }
    let message = format!("run {key} lies on {} already: resume it, or choose another name with --run", server.name());
    let hint = Hint::recover(["resume", "--remote", server.name()]).run(key);
    Err(Error::new(ErrorKind::AlreadyExists, message).hint(hint))
}

fn require_on(context: &Context, key: &RunKey, remote: &str) -> Result<()> {
    let Some(record) = record::load(context, key, remote)? else { return Ok(()) };
    let Some(tip) = record.tip.clone() else { return Ok(()) };
    let server = match Server::of(context, remote) {
        Ok(server) => server,
        Err(error) => {
            context.warn(format!("whether another machine holds run {key} is not known: {error}"));
            return Ok(());
        }
    };
    let seen = match server.look(key) {
        Ok(Reached::Yes(Some(found))) if found != tip => match whose(&server, key, &found, &tip)? {
            Reached::Yes(Some(standing)) => Some(standing.claim),
            Reached::Yes(None) | Reached::Away(_) => last_seen(&server, key)?,
        },
        Ok(Reached::Yes(_)) => last_seen(&server, key)?,
        Ok(Reached::Away(away)) => {
            context.warn(format!("the remote {remote} cannot be reached: {}; by what was seen last", away.said));
            last_seen(&server, key)?
        }
        Err(error) => {
            context.warn(format!("whether another machine holds run {key} is not known: {error}"));
            last_seen(&server, key)?
        }
    };
    let never = std::time::Duration::ZERO;
    let state = crate::policy::remote::hold(seen.as_ref(), record.nonce.as_deref(), never, std::time::Duration::MAX);
    if let (Hold::Held, Some(claim)) = (state, &seen) {
        return Err(held(&server, key, claim));
    }
    Ok(())
}
