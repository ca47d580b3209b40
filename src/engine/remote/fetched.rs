//! Shows a run that was only fetched: as its chain says, in a state directory for the moment.

use tempfile::TempDir;

use super::incoming::events_at_home;
use super::record::RunThere;
use super::server::Server;
use crate::engine::base::runs::named;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::model::{Hint, ObjectId, RunId, RunKey};
use crate::policy::remote::key_of;
use crate::store::{NewEvent, Store};

/// A run that was fetched, with a place to read it from.
#[derive(Debug)]
pub(crate) struct Fetched {
    /// The same command there.
    pub context: Context,
    /// Removed with this.
    _folder: TempDir,
}

/// The run that is named, where it was fetched and is not recorded here: who holds it is said. `None`: it is recorded here, or was
/// never fetched.
///
/// # Errors
/// What was fetched is damaged (12).
pub(crate) fn fetched(context: &Context) -> Result<Option<Fetched>> {
    let Some(id) = context.naming().run_id.as_ref() else {
        return Ok(None);
    };
    let found = found(context, id)?;
    if found.is_empty() {
        return Ok(None);
    }
    let folder = tempfile::tempdir();
    let folder = folder.map_err(|error| Error::io("cannot make a temporary folder", error))?;
    let dir = std::fs::canonicalize(folder.path());
    let dir = dir.map_err(|error| Error::cannot("read", folder.path(), error))?;
    let mut is_held = false;
    let mut ledger = Store::new(dir.clone(), context.lock_timeout()).lock()?;
    for (remote, key, tip) in &found {
        let server = Server::of(context, remote)?;
        let chain = RunThere::on(&server, key).read(tip, None)?;
        let events = events_at_home(context, key, &chain)?.into_iter();
        let new = events.map(|event| {
            let new = NewEvent {
                run: Some(key.clone()),
                source: event.source,
                payload: event.payload,
            };
            (event.at, new)
        });
        ledger.append_dated(new.collect())?;
        let holder = chain.end().map(|end| end.claim);
        let held = match holder.filter(|claim| !claim.released) {
            Some(claim) => {
                is_held = true;
                format!("{} holds it (claim {})", claim.host, claim.fencing)
            }
            None => "nobody holds it".to_owned(),
        };
        let resume = Hint::recover(["resume", "--remote", remote]).run(key);
        context.note(format!(
            "run {key} is on {remote}, {held}, and this is what was fetched last; to continue it here: {}",
            context.line(resume)
        ));
    }
    drop(ledger);
    Ok(Some(Fetched {
        context: context.showing(dir, is_held)?,
        _folder: folder,
    }))
}

/// The remote that a run was fetched from which is not recorded here.
pub(super) fn fetched_from(context: &Context, id: &RunId) -> Result<Option<String>> {
    let found = found(context, id)?.into_iter().next();
    Ok(found.map(|(remote, ..)| remote))
}

/// The runs of that id which were fetched and are not recorded here, each from one remote, with what was seen last of it.
fn found(context: &Context, id: &RunId) -> Result<Vec<(String, RunKey, ObjectId)>> {
    let mut found: Vec<(String, RunKey, ObjectId)> = Vec::new();
    if !context.has_git() {
        return Ok(found);
    }
    let (state, naming) = (context.load()?.state, context.naming());
    match named(&state, id, naming.phase.as_deref(), naming.lane.as_deref()) {
        Err(error) if error.kind == ErrorKind::RunNotFound => {}
        // What is recorded here, or that it is ambiguous, is the command's own to say.
        _ => return Ok(found),
    }
    let repo = context.repo()?;
    for (remote, tip) in repo.tracked(id)? {
        let key = key_of(&repo.read_run_state(&tip)?).filter(|key| key.run_id == *id);
        // A remote that git does not know any more has nothing to be resumed from.
        if let Some(key) = key
            && naming.fits(&key)
            && found.iter().all(|(_, other, _)| *other != key)
            && Server::of(context, &remote).is_ok()
        {
            found.push((remote, key, tip));
        }
    }
    Ok(found)
}
