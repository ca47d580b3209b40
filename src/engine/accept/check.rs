//! The checks of a run, on what is committed of it; and what a person had uncommitted before it, which is put back beside.

use std::path::Path;

use anyhow::Context as _;

use super::plan::Plan;
use super::{Uncommitted, take};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::isolated;
use crate::engine::record::checkpoint;
use crate::engine::record::run_settings::loops_of;
use crate::engine::restore::request::{Commits, Options, RestoreRequest};
use crate::engine::rollback::on_request::restore;
use crate::engine::rollback::undo;
use crate::engine::run::{LoopSetting, run_loops};
use crate::engine::trust::{self, agreed};
use crate::git::Repo;
use crate::git::program::Scratch;
use crate::model::checkpoint::trigger;
use crate::model::{Checkpoint, ObjectId, OperationKind, RepoPath, Scope};
use crate::policy::restore::{Edits, glob_of};
use crate::process::{Program, Show, Supervised};

/// Runs them: in the work tree where that is what the commit has, else in a temporary one.
///
/// # Errors
/// One fails (100), or a signal came meanwhile.
pub(super) fn check(planned: &Plan<'_>, commit: &ObjectId) -> Result<()> {
    let (context, request, run) = (planned.context, planned.request, planned.run);
    let loops = loops_of(context, run);
    if loops.is_empty() {
        return Ok(());
    }
    trust::require_to_drive(context, run)?;
    agreed::require_whole_checks(&run.key, &run.spec)
        .map_err(|error| error.hint(context.rerun(&["--no-checks"])))?;
    let folder = context.store().run_dir(&run.key).join("accept");
    context.create_state_dir(&folder)?;
    let judge = |root: &Path| {
        let setting = LoopSetting {
            show: request.show,
            root,
            ..LoopSetting::new(context, run, run.current_iteration, None, &folder)
        };
        run_loops(context, &loops, &setting)
    };
    let is_here = is_work_tree(planned, commit)?;
    let report = if is_here {
        judge(context.worktree())?
    } else {
        let scratch = Scratch::new(context.repo()?)?;
        scratch.check_out(commit)?;
        request
            .prepare
            .as_deref()
            .map_or(Ok(()), |line| prepare(context, line, &scratch.path()))?;
        if run.spec.isolated.is_some() && request.prepare.is_none() {
            let home = context.at(&context.repo()?.main_worktree())?;
            isolated::furnish(&home, &scratch.path(), Show::PassthroughStderr)?;
        }
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
fn is_work_tree(planned: &Plan<'_>, commit: &ObjectId) -> Result<bool> {
    let context = planned.context;
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
        env_remove: Repo::misleading_variables(),
        show: Show::PassthroughStderr,
        grace: context.settings().runner.grace,
        ..Supervised::new(Program::Shell(line.into()), root)
    };
    let exit = supervised
        .run(&context.interrupts, |_| Ok(()))
        .context("cannot run --prepare")?;
    if let Some(signal) = exit.cancelled {
        return Err(Error::interrupted(
            signal,
            "interrupted; nothing was changed",
        ));
    }
    match exit.shell_code() {
        0 => Ok(()),
        code => {
            let message = format!("--prepare ended with {code}; nothing was changed");
            Err(Error::new(ErrorKind::ChecksFail, message))
        }
    }
}

/// What was put back.
#[derive(Debug, Default)]
pub(super) struct PutBack {
    /// Whether it was a restore, which can be undone.
    is_restored: bool,
    /// Where the run's versions are.
    pub beside: Vec<RepoPath>,
    /// The work tree with that: none of it is an edit by hand, so that undo takes back all of it.
    pub done: Option<Checkpoint>,
}

impl PutBack {
    /// Puts back what is to be kept: a restore of those paths, with the run's version of each file beside it.
    pub(super) fn of(planned: &Plan<'_>) -> Result<Self> {
        let (context, uncommitted) = (planned.context, planned.request.uncommitted);
        if planned.result.changed_work.is_empty() || uncommitted != Uncommitted::Keep {
            return Ok(Self::default());
        }
        let options = Options {
            scope: Scope::Files,
            paths: planned.result.changed_work.iter().map(glob_of).collect(),
            commits: Commits::Keep,
            ..Options::default()
        };
        let request = RestoreRequest {
            run: Some(planned.run.key.clone()),
            ..RestoreRequest::new(OperationKind::Restore, &planned.first, options)
        };
        let done = restore(context, &request)?;
        let mut put_back = Self {
            is_restored: done.changed,
            ..Self::default()
        };
        if let Err(error) = put_back.write_beside(planned) {
            put_back.take_back(context)?;
            return Err(error);
        }
        Ok(put_back)
    }

    /// Writes the run's versions.
    fn write_beside(&mut self, planned: &Plan<'_>) -> Result<()> {
        for path in &planned.result.changed_work {
            self.beside.extend(beside(planned, path)?);
        }
        let (context, key) = (planned.context, &planned.run.key);
        let description = "Before accept, with your own changes put back";
        self.done = Some(take(context, key, description, trigger::OPERATION)?);
        Ok(())
    }

    /// Takes that back, where nothing is accepted in the end.
    pub(super) fn take_back(&self, context: &Context) -> Result<()> {
        for path in &self.beside {
            let place = path.below(context.worktree());
            let gone = crate::durable::Root::shared(context.worktree()).remove_file(&place);
            gone.map_err(|error| Error::cannot("remove", &place, error))?;
        }
        if self.is_restored {
            let how = Options {
                commits: Commits::Keep,
                edits: Edits::Keep,
                ..Options::default()
            };
            undo(context, &how, false)?;
        }
        Ok(())
    }
}

/// Writes the run's version of a file to the first name that is free.
fn beside(planned: &Plan<'_>, path: &RepoPath) -> Result<Option<RepoPath>> {
    let context = planned.context;
    let with = |end: &str| RepoPath::new([path.as_bytes(), end.as_bytes()].concat());
    let is_taken = |name: &RepoPath| name.below(context.worktree()).symlink_metadata().is_ok();
    let (mut name, mut number) = (with(".run"), 1);
    while is_taken(&name) {
        number += 1;
        name = with(&format!(".run.{number}"));
    }
    let is_written = context.repo()?.write_beside(&planned.good, path, &name)?;
    Ok(is_written.then_some(name))
}
