//! Removing what lies of runs on a remote and is not kept any longer: by the same rules as their checkpoints here.

use std::time::Duration;

use super::list::{RemoteReport, folded, refresh, report};
use super::record::{RunThere, forget, load, remotes_of};
use super::server::{Miss, Server};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::git::remote::Remote;
use crate::model::{Claim, Hint, ObjectId, Run, RunKey, RunStatus, Timestamp};
use crate::policy::settings::RetentionSettings;

/// Why a run stays on the remote.
fn stays(
    run: &Run,
    is_held: bool,
    is_named: bool,
    settings: &RetentionSettings,
    now: Timestamp,
) -> Option<&'static str> {
    if is_held {
        return Some("a machine holds it");
    }
    if !run.status.is_over() {
        return Some("it has not ended");
    }
    let age = run
        .ended_at
        .map_or(Duration::ZERO, |ended| now.since(ended));
    let is_due = match run.status {
        RunStatus::Closed | RunStatus::Accepted => true,
        RunStatus::Complete => age >= settings.after_end,
        // What failed is a user's to look at.
        _ => age >= settings.after_end.max(FAILED),
    };
    (!is_due && !is_named).then_some("it ended not long ago")
}

/// How long a run that failed stays at least, as its checkpoints do here.
const FAILED: Duration = Duration::from_secs(30 * 24 * 3600);

/// Removes runs from the remote that ended and are not kept any longer, with what was left aside of them; the one that is named
/// as soon as it has ended. What this clone has of them stays. In a dry run only says which.
///
/// # Errors
/// Not confirmed (13); the named run is held or has not ended (13).
pub(crate) fn prune(context: &Context) -> Result<RemoteReport> {
    let server = Server::named(context)?;
    let (found, fetched) = refresh(&server)?;
    let is_named = context.naming().run_id.is_some();
    let (mut doomed, mut kept) = (Vec::new(), Vec::new());
    for (key, tip) in &found {
        let Some((run, claim)) = folded(&server, key, tip)? else {
            continue;
        };
        let (settings, now) = (&context.settings().retention, context.clock.now());
        match stays(&run, !claim.released, is_named, settings, now) {
            None => doomed.push((key.clone(), tip.clone())),
            Some(why) => kept.push(format!("run {key} stays on {}: {why}", server.name())),
        }
    }
    if is_named && found.is_empty() {
        let message = format!("the run does not lie on {}", server.name());
        let list = Hint::recover(["runs", "--remote", server.name()]);
        return Err(Error::new(ErrorKind::RunNotFound, message).hint(list));
    }
    if is_named && !kept.is_empty() {
        return Err(Error::new(ErrorKind::Conflicts, kept.join("; "))
            .hint(Hint::recover(["remote", "status"])));
    }
    let keys: Vec<RunKey> = doomed.iter().map(|(key, _)| key.clone()).collect();
    if !doomed.is_empty() && !context.dry_run() {
        if !context.says_yes() {
            let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
            let message = format!(
                "this removes for good what lies on {} of: {}; the server may keep deleted objects for weeks. --yes removes it",
                server.name(),
                names.join(", ")
            );
            return Err(
                Error::new(ErrorKind::ConfirmationNeeded, message).hint(context.rerun(&["--yes"]))
            );
        }
        for (key, tip) in &doomed {
            remove(RunThere::on(&server, key), tip)?;
        }
    }
    if context.says_yes() && !context.dry_run() {
        server.sweep().map_err(Miss::error)?;
    }
    let left = if context.dry_run() {
        found
    } else {
        refresh(&server)?.0
    };
    Ok(RemoteReport {
        pruned: keys,
        ..report(&server, &left, Vec::new(), fetched)?
    })
}

/// What was sent of runs to the remote that is named, with what its references name there. In what nobody here sent, runs of the same
/// name, nobody here has a say.
///
/// # Errors
/// Another machine holds one of them, or it is another run by now (13); the server is away (9).
pub(crate) fn sent(context: &Context, keys: &[RunKey]) -> Result<Vec<(RunKey, ObjectId)>> {
    let server = Server::named(context)?;
    let found = server.list(None).map_err(Miss::error)?;
    let mut sent = Vec::new();
    for key in keys {
        let there = RunThere::on(&server, key);
        let (name, record) = (Remote::run_ref(key), there.record()?);
        let Some((_, commit)) = found.iter().find(|(found, _)| *found == name) else {
            continue;
        };
        let (Some(own), Some(tip)) = (&record.tip, there.obtain(commit).map_err(Miss::error)?)
        else {
            continue;
        };
        there.require_same(Some(own), Some(own), &tip, true)?;
        let claim = there.read(&tip, None)?.end().map(|end| end.claim);
        let is_other = |claim: &Claim| !claim.released && record.nonce != Some(claim.nonce.clone());
        if let Some(claim) = claim.filter(is_other) {
            let message = format!(
                "run {key} is held by {} on {} (claim {}): nothing was removed, here or there",
                claim.host,
                server.name(),
                claim.fencing
            );
            let hint = Hint::recover(["remote", "claim", "--steal", "--remote", server.name()]);
            return Err(Error::new(ErrorKind::Conflicts, message).hint(hint.run(key)));
        }
        sent.push((key.clone(), tip));
    }
    Ok(sent)
}

/// Removes that.
///
/// # Errors
/// It changed meanwhile (11); the server is away (9).
pub(crate) fn remove_sent(context: &Context, sent: &[(RunKey, ObjectId)]) -> Result<()> {
    let server = Server::named(context)?;
    for (key, tip) in sent {
        remove(RunThere::on(&server, key), tip)?;
    }
    server.sweep().map_err(Miss::error)
}

/// The remotes that something of a run was sent to.
pub(crate) fn sent_to(context: &Context, key: &RunKey) -> Result<Vec<String>> {
    let mut remotes = remotes_of(context, key);
    for remote in std::mem::take(&mut remotes) {
        if load(context, key, &remote)?.is_some_and(|record| record.tip.is_some()) {
            remotes.push(remote);
        }
    }
    Ok(remotes)
}

fn remove(there: RunThere<'_>, tip: &ObjectId) -> Result<()> {
    let aside = there
        .below(&(Remote::side_folder(there.key) + "*"))
        .map_err(Miss::error)?;
    let own = (Remote::run_ref(there.key), tip.clone());
    for (name, id) in [own].into_iter().chain(aside) {
        there
            .push(&name, Some(&id), None)
            .map_err(|missed| match missed {
                Miss::Moved => {
                    let message = format!(
                        "run {} on {} has changed meanwhile: nothing more of it was removed",
                        there.key,
                        there.name()
                    );
                    Error::new(ErrorKind::Claimed, message).hint(there.hint("status"))
                }
                missed => missed.error(),
            })?;
    }
    there.repo()?.remove_tracking(&there.tracking())?;
    forget(there.context, there.key, there.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::{Event, EventSource, Payload};
    use crate::model::run::RunSpec;
    use crate::model::state::State;

    fn run(status: RunStatus) -> Run {
        let key = RunKey::new("r", None, None);
        let spec = Box::new(RunSpec::default());
        let created = Payload::RunCreated {
            task_id: None,
            session: "r".into(),
            worktree: "/w".into(),
            spec,
        };
        let changed = Payload::RunStatusChanged {
            status,
            reason: String::new(),
        };
        let mut state = State::default();
        for (seq, payload) in (1..).zip([created, changed]) {
            let at = Timestamp::from_millis(0);
            let (run, source) = (Some(key.clone()), EventSource::Recover);
            state.apply(&Event {
                seq,
                at,
                schema: payload.schema(),
                run,
                source,
                payload,
            });
        }
        state.run(&key).cloned().unwrap()
    }

    #[test]
    fn runs_stay_as_long_as_their_checkpoints() {
        let settings = RetentionSettings::default();
        let day = 24 * 3600 * 1000;
        let after = |status, days: i64| {
            stays(
                &run(status),
                false,
                false,
                &settings,
                Timestamp::from_millis(days * day),
            )
            .is_some()
        };
        assert_eq!(
            (after(RunStatus::Complete, 6), after(RunStatus::Complete, 8)),
            (true, false)
        );
        assert_eq!(
            (after(RunStatus::Failed, 8), after(RunStatus::Failed, 31)),
            (true, false)
        );
        assert!(
            !after(RunStatus::Accepted, 0)
                && after(RunStatus::Paused, 99)
                && after(RunStatus::InProgress, 99)
        );
        let now = Timestamp::from_millis(day);
        let named = |status, is_held| stays(&run(status), is_held, true, &settings, now).is_some();
        assert!(
            !named(RunStatus::Complete, false)
                && named(RunStatus::Complete, true)
                && named(RunStatus::Paused, false)
        );
    }
}
