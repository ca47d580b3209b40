//! What attempts leave in git's own folder: locks, and changed settings and hooks.
//!
//! Locks of git's that a killed git process left: git does not work until they are gone.
//!
//! One is removed only where that is certain to be right: it was made in an attempt that is over, or before the machine was
//! started; no git process is at work in the repository; and it has not changed for a while.
//!
//! What attempts do to git's settings and hooks: reported, and put back by an automatic rollback.

use std::time::{Duration, Instant, SystemTime};

use crate::engine::base::{Context, Result, runs};
use crate::git::Repo;
use crate::git::repo::ForeignLock;
use crate::model::operation::GitChanges;
use crate::model::time::spoken_duration;
use crate::model::{Attempt, Run, RunKey, State, Timestamp};
use crate::os::boot_time;
use crate::process::git_at_work;

/// A lock that has not changed for so long was left.
const UNCHANGED: Duration = Duration::from_secs(10);
/// How long the end of an attempt waits for its locks to go.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often it examines them meanwhile.
const POLL: Duration = Duration::from_millis(200);

/// The command that gives up an operation of git's that is in progress.
pub(crate) fn abort_of(operation: &str) -> String {
    match operation {
        "bisect" => "git bisect reset".to_owned(),
        _ => format!("git {operation} --abort"),
    }
}

/// The locks of git's that are there.
pub(crate) fn all(context: &Context) -> Result<Vec<ForeignLock>> {
    Ok(context
        .git()
        .map_or_else(|| Ok(Vec::new()), Repo::foreign_locks)?)
}

/// What a lock is called in messages: its place in the git folder, and its age.
pub(crate) fn describe(context: &Context, lock: &ForeignLock) -> String {
    let folder = context.repo().ok().map(|repo| {
        repo.common_dir()
            .parent()
            .unwrap_or(repo.common_dir())
            .to_owned()
    });
    let path = folder
        .and_then(|folder| lock.path.strip_prefix(folder).ok())
        .unwrap_or(&lock.path);
    format!("{} ({} old)", path.display(), spoken_duration(lock.age()))
}

/// What keeps git from working, for the first line of a failure.
pub(crate) fn in_the_way(context: &Context) -> Option<String> {
    let locks = all(context)
        .inspect_err(|error| tracing::debug!(%error, "git's locks are not known"))
        .ok()?;
    let names: Vec<String> = locks.iter().map(|lock| describe(context, lock)).collect();
    (!names.is_empty()).then(|| format!("git is locked by {}", names.join(", ")))
}

/// Why a lock is not removed yet; `None` where it may be.
fn obstacle(context: &Context, lock: &ForeignLock) -> Result<Option<String>> {
    let repo = context.repo()?;
    let (own, common) = (repo.git_dir(), repo.common_dir());
    Ok(match git_at_work(&[context.worktree(), own, common]) {
        Err(_) => Some("it is not known whether a git process is at work".to_owned()),
        Ok(Some((pid, command))) => Some(format!("{command} (pid {pid}) is at work")),
        Ok(None) if lock.age() < UNCHANGED => Some("it changed a moment ago".to_owned()),
        Ok(None) => None,
    })
}

/// Removes what an attempt that just ended left, which was not there before: waits until that is certain, but not for ever.
pub(crate) fn settle(context: &Context, before: &[ForeignLock]) -> Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let made: Vec<ForeignLock> = all(context)?
            .into_iter()
            .filter(|lock| !before.contains(lock))
            .collect();
        for lock in &made {
            if obstacle(context, lock)?.is_none() && lock.remove()? {
                context.warn(format!(
                    "the attempt left git's lock {}: it was removed",
                    describe(context, lock)
                ));
            }
        }
        if made.is_empty() || Instant::now() >= deadline || context.interrupts.sleep(POLL).is_err()
        {
            return Ok(());
        }
    }
}

/// Whether a lock was left by an attempt of this work tree that is over, or before the machine was started.
fn is_left(context: &Context, state: &State, lock: &ForeignLock) -> bool {
    if boot_time().is_some_and(|booted| lock.modified < booted) {
        return true;
    }
    let Ok(since_epoch) = lock.modified.duration_since(SystemTime::UNIX_EPOCH) else {
        return true;
    };
    let at = Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX));
    let made_in = |attempt: &Attempt| {
        let ended = attempt
            .duration_ms
            .map(|duration| attempt.started_at.plus(Duration::from_millis(duration)));
        attempt.outcome.is_some()
            && attempt.started_at <= at
            && ended.is_some_and(|ended| at <= ended)
    };
    let made_by = |run: &Run| run.attempts().any(|(_, attempt)| made_in(attempt));
    state.runs_of(&context.worktree_id()).any(made_by)
}

/// Removes the locks that were left. Returns what was done.
pub(crate) fn recover(context: &Context, state: &State) -> Result<Vec<String>> {
    let mut done = Vec::new();
    for lock in all(context)? {
        if is_left(context, state, &lock) && obstacle(context, &lock)?.is_none() && lock.remove()? {
            done.push(format!(
                "removed git's lock {}, which was left",
                describe(context, &lock)
            ));
        }
    }
    Ok(done)
}

/// What a person has to know of a lock: whether it will be removed, or what to do.
pub(crate) fn advice(
    context: &Context,
    state: &State,
    lock: &ForeignLock,
) -> Result<(String, bool)> {
    let path = lock.path.display();
    let obstacle = obstacle(context, lock)?;
    let repairable = obstacle.is_none() && is_left(context, state, lock);
    let way = match obstacle {
        Some(obstacle) => obstacle,
        None if repairable => "recover doctor --repair removes it".to_owned(),
        None => format!("no git process is at work here: if none is elsewhere, rm {path}"),
    };
    Ok((
        format!("git is locked by {}: {way}", describe(context, lock)),
        repairable,
    ))
}

/// Records them at the beginning of an attempt.
pub(crate) fn note_settings(context: &Context, key: &RunKey, iteration: u32) {
    if let Some(repo) = context.git()
        && let Err(error) = repo.record_settings(&key.to_string(), iteration)
    {
        tracing::warn!(%error, "git's settings are not recorded: what the attempt changes of them is not put back");
    }
}

/// What the attempt that ended changed of them.
pub(crate) fn changed_settings(context: &Context, key: &RunKey, iteration: u32) -> Vec<String> {
    let Some(repo) = context.git() else {
        return Vec::new();
    };
    let changed = repo.changed_settings(&key.to_string(), iteration);
    let mut changed = changed.unwrap_or_else(|error| {
        tracing::warn!(%error, "what the attempt changed of git's settings is not known");
        Vec::new()
    });
    if is_isolated(context, key) {
        // As the user does who switches branches, or whose git collects garbage.
        changed.retain(|name| name != ".git/info/refs" && !name.starts_with("branch."));
    }
    changed
}

/// Whether a user goes on beside the run, with the same settings and hooks: they may be theirs.
fn is_isolated(context: &Context, key: &RunKey) -> bool {
    let state = context.load().map(|loaded| loaded.state);
    state.is_ok_and(|state| {
        state
            .run(key)
            .is_some_and(|run| run.spec.isolated.is_some())
    })
}

/// Puts back what the run's latest iteration changed of those that keep git from working or start programs. Returns the rules
/// of `info/exclude` as the attempt had them, where they were put back: what they hid was not captured.
pub(crate) fn put_settings_back(context: &Context, key: &RunKey) -> Option<Vec<u8>> {
    let repo = context.git().filter(|_| !context.dry_run())?;
    let before = repo.own_ignore_rules();
    put_back(context, key, GitChanges::OfIteration);
    let now = repo.own_ignore_rules();
    before.filter(|before| now.as_ref() != Some(before))
}

/// Puts back what a run changed of them and returns it. All work trees share them: nothing is done while another run is at work,
/// nor of a run beside which a user went on.
pub(crate) fn put_back(context: &Context, key: &RunKey, which: GitChanges) -> Vec<String> {
    let is_other = |run: &&Run| {
        run.key != *key && !run.status.has_ended() && runs::driver(context.store(), run).is_some()
    };
    let put_all = || -> Result<Vec<String>> {
        if !context.has_git()
            || is_isolated(context, key)
            || context.load()?.state.runs.iter().any(|run| is_other(&run))
        {
            return Ok(Vec::new());
        }
        Ok(context.repo()?.put_settings_back(&key.to_string(), which)?)
    };
    let done = put_all().unwrap_or_else(|error| {
        context.warn(format!("git's settings are not all put back: {error}"));
        Vec::new()
    });
    if !done.is_empty() {
        context.note(format!("git's settings were put back: {}", done.join(", ")));
    }
    done
}
