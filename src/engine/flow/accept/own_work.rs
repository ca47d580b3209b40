//! What a person had uncommitted before the run, and it changed: put back beside what is accepted.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, Result};
use crate::engine::flow::restore::restore;
use crate::engine::flow::undo::{How, undo};
use crate::engine::restore::request::{Commits, RestoreRequest};
use crate::model::checkpoint::{Checkpoint, trigger};
use crate::model::operation::{OperationKind, Scope};
use crate::model::path::RepoPath;
use crate::policy::path_filter::glob_of;
use crate::policy::restore_plan::Edits;

use super::plan::Plan;
use super::{Request, Uncommitted, take};

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
    pub(super) fn of(context: &Context, planned: &Plan<'_>, request: &Request) -> Result<Self> {
        if planned.changed_work.is_empty() || request.uncommitted != Uncommitted::Keep {
            return Ok(Self::default());
        }
        let done = restore(
            context,
            &RestoreRequest {
                run: Some(planned.run.key.clone()),
                scope: Scope::Files,
                paths: planned.changed_work.iter().map(glob_of).collect(),
                commits: Commits::Keep,
                ..RestoreRequest::new(OperationKind::Restore, &planned.first)
            },
        )?;
        let mut put_back = Self {
            is_restored: done.changed,
            ..Self::default()
        };
        if let Err(error) = put_back.write_beside(context, planned) {
            put_back.take_back(context)?;
            return Err(error);
        }
        Ok(put_back)
    }

    /// Writes the run's versions.
    fn write_beside(&mut self, context: &Context, planned: &Plan<'_>) -> Result<()> {
        for path in &planned.changed_work {
            self.beside.extend(beside(context, planned, path)?);
        }
        let done = take(
            context,
            &planned.run.key,
            "Before accept, with your own changes put back",
            trigger::OPERATION,
        )?;
        self.done = Some(done);
        Ok(())
    }

    /// Takes that back, where nothing is accepted in the end.
    pub(super) fn take_back(&self, context: &Context) -> Result<()> {
        for path in &self.beside {
            let place = path.below(context.worktree());
            let gone = crate::durable::Root::shared(context.worktree()).remove_file(&place);
            gone.map_err(|error| Error::io(format!("cannot remove {}", place.display()), error))?;
        }
        if self.is_restored {
            let how = How {
                commits: Commits::Keep,
                edits: Edits::Keep,
                best_effort: false,
                of_run: false,
            };
            undo(context, how)?;
        }
        Ok(())
    }
}

/// Writes the run's version of a file to the first name that is free.
fn beside(context: &Context, planned: &Plan<'_>, path: &RepoPath) -> Result<Option<RepoPath>> {
    let name = |number: u32| {
        let end = if number == 1 {
            ".run".to_owned()
        } else {
            format!(".run.{number}")
        };
        RepoPath::new([path.as_bytes(), end.as_bytes()].concat())
    };
    let is_free = |name: &RepoPath| name.below(context.worktree()).symlink_metadata().is_err();
    let mut number = 1;
    while !is_free(&name(number)) {
        number += 1;
    }
    let name = name(number);
    let is_written = context.repo()?.write_beside(&planned.good, path, &name)?;
    Ok(is_written.then_some(name))
}
