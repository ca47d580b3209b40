//! Attempts of a loop that runs its own commands, in a run that lies on a remote.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::model::hint::Hint;
use crate::model::run::{Run, RunKey};
use crate::policy::settings::RemoteMode;

use super::chain::Chain;
use super::claim::{TakeOver, Wish, claim, held};
use super::guard::require;
use super::record::{self, lock, remotes_of};
use super::server::Server;
use super::session::release;
use super::sync::{Synced, sync};

/// Before an attempt begins: in strict mode this clone holds the run.
///
/// # Errors
/// Somebody else holds it (11), or went on with it (13); the server is away (9).
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
            let message = format!("run {key} went on elsewhere: take it up here first");
            let hint = Hint::recover(["resume", "--prepare-only", "--remote", &remote]).run(key);
            Err(Error::new(ErrorKind::Conflicts, message).hint(hint))
        };
        claim(
            &server,
            key,
            &Wish {
                how: TakeOver::default(),
                waits_for_holder: false,
                agrees: &agrees,
            },
        )?;
    }
    Ok(())
}

/// Sends the beginning of an attempt: in strict mode it is there when this returns.
///
/// # Errors
/// Somebody else holds the run (11); the server is away (9).
pub(crate) fn send_own_beginning(context: &Context, key: &RunKey) -> Result<()> {
    if context.settings().remote.mode == RemoteMode::Lazy {
        Ok(())
    } else {
        send(context, key, true)
    }
}

/// Refuses the end of an attempt where somebody else holds the run (11).
pub(crate) fn before_own_end(context: &Context, key: &RunKey) -> Result<()> {
    require(context, key)
}

/// Sends the end of an attempt, if the server can be had; the claim is given back where the run has ended.
///
/// # Errors
/// Somebody else holds the run (11).
pub(crate) fn send_own_end(context: &Context, run: &Run) -> Result<()> {
    if run.status.is_over() {
        release(context, &run.key, false);
        return Ok(());
    }
    send(context, &run.key, false)
}

fn send(context: &Context, key: &RunKey, must: bool) -> Result<()> {
    for remote in remotes_of(context, key) {
        let mut locked = lock(context, key, &remote)?;
        if locked.record.nonce.is_none() {
            continue;
        }
        let server = Server::of(context, &remote)?;
        match sync(&server, key, &mut locked, false)? {
            Synced::Done(_) => {}
            Synced::Lost(claim) => return Err(held(&server, key, &claim)),
            Synced::Away(away) if must => return Err(away.error(&remote)),
            Synced::Away(away) => {
                context.note(format!(
                    "the remote {remote} cannot be reached: {}; what is new is sent later",
                    away.said
                ));
            }
        }
    }
    Ok(())
}
