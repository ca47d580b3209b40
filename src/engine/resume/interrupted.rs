//! Taking up the runs that ended with the machine: `resume --interrupted`.

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::runs::{driver, run_of};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::at_work::{self, AtWork};
use crate::model::{Hint, RunKey};
use crate::os::own_program;
use crate::process::{Program, Show, Supervised};

/// How often a run is resumed without progress.
const MOST_TRIES: u32 = 2;

/// The runs that ended with the machine, and what came of them.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Interrupted {
    pub runs: Vec<InterruptedRun>,
}

/// A run that ended with the machine.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InterruptedRun {
    #[serde(flatten)]
    pub key: RunKey,
    /// Absolute path of its work tree.
    pub worktree: String,
    /// Why it is not resumed; `null` where it was, or would be.
    pub left: Option<String>,
    /// What its `recover resume` ended with; `null` where it did not run.
    pub exit_code: Option<i32>,
}

/// Resumes them one after the other: those of this work tree, or of `all` repositories. In a dry run it only says which.
///
/// # Errors
/// A signal ends it, and the run that is at work with it. Another process does the same (11).
pub(crate) fn resume(context: &Context, all: bool, show: Show) -> Result<Interrupted> {
    let (mut interrupted, of_boot) =
        at_work::interrupted(context).context("cannot read which runs were at work")?;
    let is_meant = |one: &AtWork| all || one.worktree == context.worktree();
    for one in of_boot
        .iter()
        .filter(|one| is_meant(one) && !context.dry_run())
    {
        match one.place(context) {
            Ok(there) => at_work::forget_killed(&there),
            Err(error) => tracing::debug!(%error, run = %one.run, "it may have been killed"),
        }
    }
    interrupted.retain(is_meant);
    if interrupted.is_empty() || context.dry_run() {
        return resume_all(context, interrupted, show);
    }
    at_work::alone(context, || resume_all(context, interrupted, show))
}

fn resume_all(context: &Context, interrupted: Vec<AtWork>, show: Show) -> Result<Interrupted> {
    let mut runs = Vec::new();
    for one in interrupted {
        let left = why_left(context, one.clone()).unwrap_or_else(|error| Some(error.message));
        let exit_code = if left.is_none() && !context.dry_run() {
            context.note(format!(
                "resuming run {} in {}",
                one.run,
                one.worktree.display()
            ));
            resume_one(context, &one, show)?
        } else {
            None
        };
        runs.push(InterruptedRun {
            key: one.run,
            worktree: one.worktree.display().to_string(),
            left,
            exit_code,
        });
    }
    Ok(Interrupted { runs })
}

/// Why a run is not resumed. That it is tried is written down before.
fn why_left(context: &Context, mut one: AtWork) -> Result<Option<String>> {
    if !one.worktree.is_dir() {
        return Ok(Some("its work tree is not there".to_owned()));
    }
    let there = one.place(context)?;
    let state = there.load()?.state;
    let run = run_of(&state, &one.run)?;
    if driver(there.store(), &run).is_some() {
        return Ok(Some("it is at work".to_owned()));
    }
    if run.status.has_ended() {
        if !context.dry_run() {
            one.remove(context);
        }
        return Ok(Some("it has ended".to_owned()));
    }
    let progress = at_work::progress(&run);
    if progress > one.progress {
        (one.tries, one.progress) = (0, progress);
    }
    if one.tries >= MOST_TRIES {
        let message = format!(
            "it was resumed {MOST_TRIES} times without progress: recover resume tries it again"
        );
        return Ok(Some(message));
    }
    one.tries += 1;
    if !context.dry_run() {
        one.write(context)
            .context("cannot write that it is resumed")?;
    }
    Ok(None)
}

/// What its `recover resume` ended with.
fn resume_one(context: &Context, one: &AtWork, show: Show) -> Result<Option<i32>> {
    let program = own_program().context("cannot find the program of recover")?;
    let state_dir = one
        .state_dir
        .iter()
        .flat_map(|dir| ["--state-dir".into(), dir.into()]);
    let resume =
        Hint::recover(["resume", "--wait"]).args(state_dir.collect::<Vec<std::ffi::OsString>>());
    let mut argv = vec![program.into_os_string()];
    argv.extend(resume.run(&one.run).arguments());
    let mut supervised = Supervised::new(Program::Argv(argv), one.worktree.clone());
    supervised.show = show;
    let path = one.path.iter().map(|path| ("PATH".into(), path.into()));
    supervised.env_set.extend(path);
    let exit = supervised.run(&context.interrupts, |_| Ok(()));
    let exit = exit.context("cannot run recover resume")?;
    match exit.cancelled {
        Some(signal) => {
            let message = format!("interrupted by {}", signal.name());
            Err(Error::new(
                ErrorKind::Interrupted(signal.exit_code()),
                message,
            ))
        }
        None => Ok(exit.exit_code),
    }
}
