//! Which runs are at work on this machine, in files of the user's state folder: what a start of the machine leaves there.
//!
//! A run's file is written when it begins and removed when it ends, however it ends, or once it is seen that it was killed in
//! this start of the machine. One of an earlier start belongs to a run that ended with the machine; also to one that was
//! killed before, which no command came to see.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::engine::base::runs::{driver, run_of};
use crate::engine::base::{Context, Result, UserFiles};
use crate::engine::record::liveness::is_driven;
use crate::model::{Attempt, Run, RunKey};
use crate::os::processes::boot_id;

const FOLDER: &str = "at-work";
const LOCK: &str = "resuming.lock";
/// What a run ends with that SIGHUP or SIGTERM interrupted, as a shutdown of the machine does.
const BY_SHUTDOWN: [i32; 2] = [129, 143];

/// A run that is at work, or was when the machine went down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct AtWork {
    pub run: RunKey,
    /// Absolute path of its work tree.
    pub worktree: PathBuf,
    /// Its state directory, where that is not the work tree's own.
    pub state_dir: Option<PathBuf>,
    /// Names the start of the machine in which it is at work.
    boot: String,
    /// How often it was resumed after a start of the machine and made no progress.
    pub tries: u32,
    /// See [`progress`].
    pub progress: u64,
    /// The `PATH` that it began with: what resumes it may have another one.
    pub path: Option<String>,
}

fn files(context: &Context) -> Option<UserFiles> {
    Some(UserFiles::new(context.user_state()?, FOLDER))
}

impl AtWork {
    fn path(&self, files: &UserFiles) -> PathBuf {
        let text = format!("{}\0{}", self.worktree.display(), self.run);
        files.path(format!("{:x}.json", Sha256::digest(text.as_bytes())))
    }

    /// A context of its work tree and its state directory.
    pub(crate) fn place(&self, context: &Context) -> Result<Context> {
        context.at_state(&self.worktree, self.state_dir.as_deref())
    }

    /// Writes it down as it is, on disk when this returns.
    pub(crate) fn write(&self, context: &Context) -> io::Result<()> {
        files(context).map_or(Ok(()), |files| files.write(&self.path(&files), self))
    }

    /// Forgets it.
    pub(crate) fn remove(&self, context: &Context) {
        let Some(files) = files(context) else {
            return;
        };
        if let Err(error) = files.remove(&self.path(&files)) {
            tracing::warn!(%error, "the run still counts as one at work");
        }
        files.tidy();
    }
}

/// Calls `act` as the only process that resumes the runs that ended with the machine.
///
/// # Errors
/// Another one does (11).
pub(crate) fn alone<T>(context: &Context, act: impl FnOnce() -> Result<T>) -> Result<T> {
    let Some(files) = files(context) else {
        return act();
    };
    let lock = files.lock(&files.path(LOCK), Duration::ZERO)?;
    let done = act();
    drop(lock);
    files.tidy();
    done
}

/// What a run has done: grows with every attempt that passed and every answer of a model.
pub(crate) fn progress(run: &Run) -> u64 {
    let is_passed = |attempt: &Attempt| attempt.outcome.is_some() && attempt.failure.is_none();
    let passed = run.attempts().filter(|(_, attempt)| is_passed(attempt));
    let tokens = run.usage().tokens.map_or(0, |tokens| tokens.total);
    tokens.saturating_add(passed.count() as u64)
}

/// The run is at work from now on.
pub(crate) fn begin(context: &Context, key: &RunKey) -> Option<AtWork> {
    let state = context.load().ok()?.state;
    let run = run_of(&state, key).ok()?;
    let store = context.store().dir();
    let is_own = store.starts_with(context.worktree());
    let mut own = AtWork {
        run: key.clone(),
        worktree: context.worktree().to_owned(),
        state_dir: (!is_own).then(|| store.to_owned()),
        boot: boot(context)?,
        tries: 0,
        progress: progress(&run),
        path: context.env("PATH"),
    };
    let known = files(context).and_then(|files| files.read::<AtWork>(&own.path(&files)).ok()?);
    if let Some(known) = known {
        (own.tries, own.progress) = (known.tries, known.progress);
    }
    let written = own.write(context);
    if let Err(error) = written {
        tracing::debug!(%error, "after a start of the machine nobody would know of the run");
    }
    Some(own)
}

/// The run is not at work any more. One that ended with `code` because the machine goes down is to be resumed after that.
pub(crate) fn end(context: &Context, own: Option<AtWork>, code: Option<i32>) {
    let is_shutdown = code.is_some_and(|code| BY_SHUTDOWN.contains(&code)) && goes_down();
    if let Some(own) = own.filter(|_| !is_shutdown) {
        own.remove(context);
    }
}

/// The runs that were at work when the machine went down, and those that were in this start of it.
pub(crate) fn interrupted(context: &Context) -> io::Result<(Vec<AtWork>, Vec<AtWork>)> {
    let (Some(files), Some(boot)) = (files(context), boot(context)) else {
        return Ok((Vec::new(), Vec::new()));
    };
    let mut all = Vec::new();
    for path in files.list()? {
        match files.read::<AtWork>(&path) {
            Ok(Some(one)) if one.path(&files) == path => all.push(one),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, file = %path.display(), "it names no run"),
        }
    }
    all.sort_by(|one, other| (&one.worktree, &one.run).cmp(&(&other.worktree, &other.run)));
    Ok(all.into_iter().partition(|one| one.boot != boot))
}

/// Forgets the runs of this work tree that were killed in this start of the machine: nobody resumes them unasked.
pub(crate) fn forget_killed(context: &Context) {
    let of_boot = interrupted(context).map(|(_, of_boot)| of_boot);
    let here = |one: &AtWork| one.worktree == context.worktree();
    for one in of_boot.unwrap_or_default().into_iter().filter(here) {
        let state = context.load().map(|loaded| loaded.state);
        let run = state.and_then(|state| run_of(&state, &one.run));
        let is_killed =
            |run: Run| driver(context.store(), &run).is_none() && !is_driven(context, &one.run);
        // What a shutdown killed first ends with the machine as well.
        if run.is_ok_and(is_killed) && !goes_down() {
            one.remove(context);
        }
    }
}

/// Names this start of the machine; `RECOVER_TEST_BOOT` in tests.
fn boot(context: &Context) -> Option<String> {
    context.env("RECOVER_TEST_BOOT").or_else(boot_id)
}

/// Whether the system is on its way down, as systemd says.
fn goes_down() -> bool {
    let mut command = Command::new("systemctl");
    command.arg("is-system-running").stdin(Stdio::null());
    let said = command.stderr(Stdio::null()).output();
    said.is_ok_and(|said| said.stdout.trim_ascii() == b"stopping")
}
