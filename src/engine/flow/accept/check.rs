//! The checks of a run, on what is committed of it.

use std::path::Path;

use anyhow::Context as _;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::flow::run::{LoopSetting, run_loops};
use crate::engine::flow::{project_trust, whole};
use crate::engine::record::checkpoint;
use crate::engine::record::run_settings::{identity, loops_of, shell_of};
use crate::git::program::{Scratch, misleading_variables};
use crate::model::manifest::ObjectId;
use crate::process::{Program, Show, Supervised};

use super::Request;
use super::plan::Plan;

/// Runs them: in the work tree where that is what the commit has, else in a temporary one.
///
/// # Errors
/// One fails (100), or a signal came meanwhile.
pub(super) fn check(
    context: &Context,
    planned: &Plan<'_>,
    request: &Request,
    commit: &ObjectId,
) -> Result<()> {
    let run = planned.run;
    let loops = loops_of(context, run);
    if loops.is_empty() {
        return Ok(());
    }
    project_trust::require_to_drive(context, run)?;
    whole::require_checks(&run.key, &run.spec)
        .map_err(|error| error.hint(context.rerun(&["--no-checks"])))?;
    let folder = context.store().run_dir(&run.key).join("accept");
    context.create_state_dir(&folder)?;
    let env = identity(context, run, run.current_iteration, None);
    let shell = &shell_of(context, &run.spec);
    let judge = |root: &Path| {
        let setting = LoopSetting {
            env: &env,
            show: request.show,
            log_dir: &folder,
            shell,
            root,
        };
        run_loops(context, &loops, &setting)
    };
    let is_here = is_work_tree(context, planned, commit)?;
    let report = if is_here {
        judge(context.worktree())?
    } else {
        let scratch = Scratch::new(context.repo()?)?;
        scratch.check_out(commit)?;
        request
            .prepare
            .as_deref()
            .map_or(Ok(()), |line| prepare(context, line, &scratch.path()))?;
        judge(&scratch.path())?
    };
    if let Some(code) = report.interrupted {
        return Err(Error::new(
            ErrorKind::Interrupted(code),
            "interrupted while the checks ran; nothing was changed",
        ));
    }
    let failed = report.results.iter().filter(|(_, result)| !result.passed);
    let failed: Vec<String> = failed
        .map(|(name, result)| format!("{name} ({})", result.summary))
        .collect();
    if failed.is_empty() {
        return Ok(());
    }
    let failed = failed.join(", ");
    if is_here || request.prepare.is_some() {
        let message =
            format!("a check fails on what would be committed: {failed}; --no-checks skips them");
        return Err(
            Error::new(ErrorKind::ChecksFail, message).hint(context.rerun(&["--no-checks"]))
        );
    }
    let message = format!(
        "a check fails on what would be committed, in a temporary work tree with only that: {failed}; what it needs and git \
         does not have, dependencies for one, --prepare CMD can make; --no-checks skips them"
    );
    Err(Error::new(ErrorKind::ChecksFail, message).hint(context.rerun(&["--prepare", "make deps"])))
}

/// Whether a commit has what the work tree has, what is ignored and what recover itself printed aside.
fn is_work_tree(context: &Context, planned: &Plan<'_>, commit: &ObjectId) -> Result<bool> {
    let capture = checkpoint::prepare(context)?.capture;
    let mut unlike = context.repo()?.differs_from_captured(commit, &capture)?;
    let outputs = [&planned.initial, &planned.good].map(|stored| &stored.manifest.outputs);
    unlike.retain(|path| {
        !outputs
            .iter()
            .chain([&&capture.manifest.outputs])
            .any(|all| all.contains(path))
    });
    Ok(unlike.is_empty())
}

/// Runs the line that makes what the checks need.
fn prepare(context: &Context, line: &str, root: &Path) -> Result<()> {
    let supervised = Supervised {
        env_remove: misleading_variables(),
        show: Show::PassthroughStderr,
        grace: context.settings().runner.grace,
        ..Supervised::new(Program::Shell(line.into()), root)
    };
    let exit = supervised
        .run(&context.interrupts, |_| Ok(()))
        .context("cannot run --prepare")?;
    if let Some(signal) = exit.cancelled {
        return Err(Error::new(
            ErrorKind::Interrupted(signal.exit_code()),
            "interrupted; nothing was changed",
        ));
    }
    match exit.shell_code() {
        0 => Ok(()),
        code => Err(Error::new(
            ErrorKind::ChecksFail,
            format!("--prepare ended with {code}; nothing was changed"),
        )),
    }
}
