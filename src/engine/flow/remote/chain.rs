//! The states of a run as they were fetched, verified.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::git::Repo;
use crate::git::remote::{FetchedNames, Remote};
use crate::model::hint::Hint;
use crate::model::manifest::ObjectId;
use crate::model::remote::RemoteState;
use crate::model::run::RunKey;
use crate::policy::remote::{Flaw, RawState, Standing, decode, follow};

use super::server::is_signed_by;

/// States of a run that follow each other.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The state before the first of them; `None` where they are all there are.
    pub before: Option<Standing>,
    /// Oldest first.
    pub states: Vec<RemoteState>,
}

impl Chain {
    /// Where it ends.
    pub(super) fn end(&self) -> Option<Standing> {
        self.states
            .last()
            .map(Standing::from)
            .or_else(|| self.before.clone())
    }
}

/// Where a run stands with a state that was verified before.
pub(super) fn standing(
    repo: &Repo,
    key: &RunKey,
    remote: &str,
    commit: &ObjectId,
) -> Result<Standing> {
    let raw = repo.read_run_state(commit)?;
    let (meta, claim, _) = decode(&raw, key).map_err(|flaw| refused(key, remote, &flaw))?;
    Ok(Standing {
        commit: commit.clone(),
        claim,
        meta,
    })
}

/// Reads and verifies the states up to `tip` that come after `known`, which was verified before; all of them where that is
/// none of them. Checkpoints that came with what was seen last there were looked through before.
///
/// # Errors
/// What does not fit is damage (12); what a newer version wrote is refused (15), and where `[remote] allowed_signers` is set
/// what nobody of them signed (13).
pub(super) fn read(
    context: &Context,
    key: &RunKey,
    remote: &str,
    tip: &ObjectId,
    known: Option<&ObjectId>,
) -> Result<Chain> {
    let repo = context.repo()?;
    let wrong = |flaw: Flaw| refused(key, remote, &flaw);
    // First what each is about: a newer one is refused before anything else of it is looked at.
    let (mut ids, mut at) = (Vec::new(), Some(tip.clone()));
    let mut before = None;
    while let Some(commit) = at {
        if known == Some(&commit) {
            before = Some(standing(repo, key, remote, &commit)?);
            break;
        }
        let (_, _, previous) = decode(&repo.read_run_state(&commit)?, key).map_err(wrong)?;
        ids.push(commit);
        at = previous;
    }
    let mut chain = Chain {
        before,
        states: Vec::with_capacity(ids.len()),
    };
    let seen = repo.resolve_ref(&Remote::tracking_ref(remote, key));
    let unseen = seen
        .and_then(|seen| ids.iter().position(|commit| *commit == seen))
        .unwrap_or(ids.len());
    let mut names = FetchedNames::new(repo)?;
    for (number, commit) in ids.into_iter().enumerate().rev() {
        let state =
            follow(&repo.read_run_state(&commit)?, key, chain.end().as_ref()).map_err(wrong)?;
        if let Some(signers) = &context.settings().remote.allowed_signers
            && !is_signed_by(context, &commit, signers)?
        {
            let message = format!(
                "state {} of run {key} on {remote} is signed by none of {signers}",
                state.meta.state
            );
            return Err(Error::new(ErrorKind::NotTrusted, message).hint(Hint::git([
                "verify-commit",
                "-v",
                &commit.0,
            ])));
        }
        for checkpoint in state.checkpoints.iter().filter(|_| number < unseen) {
            if let Some((path, why)) = names.unsafe_in(checkpoint)? {
                let state = state.meta.state;
                let what =
                    format!("state {state}: its checkpoint {checkpoint} has {why}, '{path}'");
                return Err(wrong(Flaw::Damaged(what)));
            }
        }
        chain.states.push(state);
    }
    Ok(chain)
}

/// What lies under the name of a run and does not say that it is that run.
pub(super) fn misnamed(key: &RunKey, remote: &str, name: &str, raw: &RawState) -> Error {
    let flaw = decode(raw, key).err();
    refused(
        key,
        remote,
        &flaw.unwrap_or_else(|| Flaw::Damaged(format!("{name} is another run's name"))),
    )
}

fn refused(key: &RunKey, remote: &str, flaw: &Flaw) -> Error {
    match flaw {
        Flaw::Newer(what) => {
            let message = format!(
                "run {key} on {remote} was written by a newer version ({what}): nothing was changed, use that one"
            );
            Error::new(ErrorKind::Newer, message)
        }
        Flaw::Damaged(what) => {
            let message = format!(
                "run {key} on {remote} is not as recover writes it: {what}; nothing of it is believed"
            );
            Error::new(ErrorKind::Corrupt, message)
                .hint(Hint::recover(["remote", "status", "--remote", remote]).run(key))
        }
    }
}
