//! What holds for a run: its settings, its feedback loops, and what its commands get to know.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::durable::Root;
use crate::engine::base::{Context, Error, Result};
use crate::model::run::ConfiguredChecks;
use crate::model::{FeedbackLoop, FolderId, Run, RunKey, RunSpec};
use crate::policy::settings::{RetrySettings, Settings};

/// The settings with the run's own overrides.
pub(crate) fn settings_of(context: &Context, run: &Run) -> Settings {
    let mut settings = context.settings().clone();
    if let Some(policy) = &run.spec.policy {
        match serde_json::from_value(policy.clone()) {
            Ok(recorded) => settings.retry = recorded,
            Err(error) => {
                tracing::warn!(%error, "the recorded budgets cannot be read: those configured here hold");
            }
        }
    }
    if let Some(attempts) = run.terms().attempts {
        settings.retry.override_attempts = Some(attempts);
    }
    settings
}

/// The limit of attempts where no failure names its own.
pub(crate) fn max_attempts(retry: &RetrySettings) -> u32 {
    retry.override_attempts.unwrap_or(retry.max_attempts)
}

/// The checks of the configuration as they are now, for a run to retain.
pub(crate) fn configured_checks(context: &Context) -> ConfiguredChecks {
    let settings = context.settings();
    ConfiguredChecks {
        shell: settings.runner.shell.clone(),
        feedback: settings.feedback.clone(),
    }
}

/// What runs a command line of a run.
pub(crate) fn shell_of(context: &Context, spec: &RunSpec) -> String {
    let configured = spec.configured.as_ref().map(|configured| &configured.shell);
    configured
        .unwrap_or(&context.settings().runner.shell)
        .clone()
}

/// The loops that judge a person's fix: those of the run, and where it has none, the configured ones as they are now.
pub(crate) fn loops_of_fix(context: &Context, run: &Run) -> Vec<FeedbackLoop> {
    let loops = loops_of(context, run);
    if loops.is_empty() {
        context.settings().feedback.clone()
    } else {
        loops
    }
}

/// Whether there are no loops that could judge a person's fix.
pub(crate) fn is_unchecked(context: &Context, run: &Run) -> bool {
    loops_of_fix(context, run).is_empty()
}

/// The loops of a run: the configured ones that it began with and those it was given, the latter winning where names meet.
pub(crate) fn loops_of(context: &Context, run: &Run) -> Vec<FeedbackLoop> {
    let configured = run
        .spec
        .configured
        .as_ref()
        .map(|configured| &configured.feedback);
    let mut loops: Vec<FeedbackLoop> = configured.unwrap_or(&context.settings().feedback).clone();
    for own in &run.terms().feedback {
        match loops.iter_mut().find(|known| known.name == own.name) {
            Some(known) => *known = own.clone(),
            None => loops.push(own.clone()),
        }
    }
    loops
}

/// The folder that a recorded one names: `dir` is relative to the work tree, empty for its root.
pub(crate) fn folder_of(context: &Context, dir: &FolderId) -> PathBuf {
    folder_in(context.worktree(), dir)
}

fn folder_in(root: &Path, dir: &FolderId) -> PathBuf {
    if dir.is_empty() {
        root.to_owned()
    } else {
        root.join(dir.path())
    }
}

/// The same, to start a command in: where a rollback, or the command before, removed it, it is made again.
pub(crate) fn start_folder(root: &Path, dir: &FolderId) -> Result<PathBuf> {
    let folder = folder_in(root, dir);
    if !folder.is_dir() {
        let made = Root::shared(root).create_dir_all(&folder);
        made.map_err(|error| {
            Error::io(
                format!(
                    "cannot make {} again to start a command in",
                    folder.display()
                ),
                error,
            )
        })?;
    }
    Ok(folder)
}

/// The folder that `recover` was called in, as a run records it.
pub(crate) fn called_in(context: &Context) -> FolderId {
    let below = context
        .cwd()
        .strip_prefix(context.worktree())
        .unwrap_or(Path::new(""));
    FolderId::of(below)
}

/// What every command of a run gets to know: whose it is, and where the run stands.
pub(crate) fn identity(
    run: &Run,
    iteration: u32,
    attempt: Option<u32>,
) -> Vec<(OsString, OsString)> {
    let mut variables: Vec<(OsString, OsString)> = vec![
        ("RECOVER_RUN_ID".into(), run.key.run_id.as_str().into()),
        ("RECOVER_ITERATION".into(), iteration.to_string().into()),
        ("RECOVER_SESSION".into(), run.session.clone().into()),
    ];
    let task = run.spec.task(iteration);
    variables.extend(task.map(|task| ("RECOVER_TASK".into(), task.id.clone().into())));
    variables.extend(attempt.map(|number| ("RECOVER_ATTEMPT".into(), number.to_string().into())));
    variables
}

/// What a command of a run on a remote gets to know, for systems that can refuse whoever had the run before: the number of
/// the claim under which it is started, which rises with each claim.
pub(crate) fn fencing(number: u64) -> (OsString, OsString) {
    ("RECOVER_FENCING".into(), number.to_string().into())
}

/// The file of a loop's log; `which` distinguishes its executions.
pub(crate) fn log_name(name: &str, which: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    format!("{name}{which}.log")
}

/// The folder of an attempt's prompt, context and logs.
pub(crate) fn attempt_folder(
    context: &Context,
    key: &RunKey,
    iteration: u32,
    attempt: u32,
) -> PathBuf {
    let lane = if key.phase == "-" && key.lane == "-" {
        String::new()
    } else {
        format!("{}_{}_", key.phase, key.lane)
    };
    let lane: String = lane
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    context
        .store()
        .run_dir(key)
        .join(format!("{lane}iteration-{iteration}-attempt-{attempt}"))
}
