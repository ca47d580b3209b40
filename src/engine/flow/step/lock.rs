//! The lock of a step: one process runs it at a time, the others wait.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use crate::durable::{FileLock, LockError, Root};
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::model::run::RunKey;

use super::Notice;

/// How often a step that another process has is asked for again: at first, and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(100));

/// The file of a turn that was not taken for so long is what a kill left.
const LEFT: Duration = Duration::from_secs(3600);

/// Names the turns that the processes above this one have.
const TURNS: &str = "RECOVER_STEP_TURNS";

/// The right to run a step. It is released when the process ends.
#[derive(Debug)]
pub(super) struct StepLock {
    mark: String,
    _lock: FileLock,
}

impl StepLock {
    /// Takes it, after as long a wait as it takes: a signal ends that.
    pub(super) fn take(
        context: &Context,
        key: &RunKey,
        step: &str,
        notice: &dyn Fn(&Notice),
    ) -> Result<Self> {
        let folder = context.store().run_dir(key);
        context.create_state_dir(&folder)?;
        if is_ancestor_step(context, key, step) {
            let message =
                format!("step '{step}' is run by its own command: give the inner one another name");
            return Err(Error::new(ErrorKind::Usage, message));
        }
        remove_left(context.store().root(), &folder);
        let path = folder.join(file_name(key, step));
        let mut pause = PAUSES.0;
        loop {
            match FileLock::acquire_passing(context.store().root(), &path, Duration::ZERO) {
                Ok(lock) => {
                    return Ok(Self {
                        mark: mark_of(context, key, step),
                        _lock: lock,
                    });
                }
                Err(LockError::Held { holder, .. }) => {
                    if pause == PAUSES.0 {
                        notice(&Notice::Waiting(holder));
                    }
                    context.interrupts.sleep(pause).map_err(|signal| {
                        let message = format!(
                            "interrupted by {} while another process ran the step",
                            signal.name()
                        );
                        Error::new(ErrorKind::Interrupted(signal.exit_code()), message)
                    })?;
                    pause = (pause * 2).min(PAUSES.1);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The variable by which the step's command, and all that it starts, know that this turn is taken.
    pub(super) fn variable(&self, context: &Context) -> (OsString, OsString) {
        let above = context
            .env(TURNS)
            .map(|above| above + ":")
            .unwrap_or_default();
        (TURNS.into(), (above + &self.mark).into())
    }
}

/// Removes the files of turns whose process was killed long ago.
fn remove_left(root: &Root, folder: &Path) {
    for (name, _) in root.list(folder).unwrap_or_default() {
        let (path, name) = (folder.join(&name), name.to_string_lossy().into_owned());
        let modified = || {
            root.open(&path)
                .and_then(|file| file.metadata()?.modified())
        };
        if name.starts_with("step-")
            && name.strip_suffix(".lock").is_some()
            && modified()
                .ok()
                .and_then(|at| at.elapsed().ok())
                .is_some_and(|age| age > LEFT)
            && let Err(error) = FileLock::remove_if_free(root, &path)
        {
            tracing::debug!(%error, name, "the turn's file stays");
        }
    }
}

/// Whether this process was started, on whatever way, by the step's command.
pub(crate) fn is_ancestor_step(context: &Context, key: &RunKey, step: &str) -> bool {
    let mark = mark_of(context, key, step);
    context
        .env(TURNS)
        .is_some_and(|above| above.split(':').any(|held| held == mark))
}

/// The lock's name: lanes share the folder, and a step's name may hold anything.
fn file_name(key: &RunKey, step: &str) -> String {
    let key = crc32fast::hash(key.to_string().as_bytes());
    format!(
        "step-{key:08x}-{:08x}-{}.lock",
        crc32fast::hash(step.as_bytes()),
        step.len()
    )
}

/// Names a turn among those of all state directories.
fn mark_of(context: &Context, key: &RunKey, step: &str) -> String {
    let folder = crc32fast::hash(context.store().run_dir(key).as_os_str().as_encoded_bytes());
    format!("{folder:08x}-{}", file_name(key, step))
}
