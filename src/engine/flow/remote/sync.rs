//! Pushes the next state of a run that this clone holds, and finds out what became of a push without an answer.

use crate::engine::base::clock::Moment;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::git::remote::{Answer, Remote, Update};
use crate::model::hint::Hint;
use crate::model::manifest::ObjectId;
use crate::model::remote::Claim;
use crate::model::run::RunKey;
use crate::policy::remote::Standing;

use super::chain::{self, Chain, standing};
use super::outgoing::{Prepared, What, prepare};
use super::record::{Locked, Pending};
use super::server::{Away, Reached, Server, away};

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
        let before = standing(server.repo()?, key, server.name(), &tip)?;
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
/// Those of [`chain::read`]: then what was seen last stays what it was.
pub(super) fn verified(
    server: &Server<'_>,
    key: &RunKey,
    tip: &ObjectId,
    known: Option<&ObjectId>,
) -> Result<Chain> {
    let chain = chain::read(server.context, key, server.name(), tip, known)?;
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
            chain::read(server.context, key, server.name(), &tip, None).map(Some)
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
    let before = standing(server.repo()?, key, server.name(), &tip)?;
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
    tip.map(|tip| standing(repo, key, server.name(), &tip).map(|standing| standing.claim))
        .transpose()
}

fn not_held(server: &Server<'_>, key: &RunKey) -> Error {
    let message = format!("this clone does not hold run {key} on {}", server.name());
    Error::new(ErrorKind::Claimed, message)
        .hint(Hint::recover(["remote", "claim", "--remote", server.name()]).run(key))
}
