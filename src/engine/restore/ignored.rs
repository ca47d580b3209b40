//! Ignored files that vanished: no checkpoint holds them, and some have a copy.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git::checkpoint::PreciousFile;
use crate::model::id::CheckpointId;
use crate::model::path::RepoPath;
use crate::model::run::Run;
use crate::model::state::State;
use crate::policy::amounts::count;
use crate::policy::path_filter::Selection;

use super::request::{Initiator, RestoreRequest};

/// Paths that a line names at most.
const NAMED: usize = 3;

/// What a restore does about them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vanished {
    /// Put back.
    pub back: Vec<PreciousFile>,
    /// Not put back, though there is a copy.
    pub copied: Vec<RepoPath>,
    /// Without a copy.
    pub lost: Vec<RepoPath>,
}

impl Vanished {
    /// What is gone of what was there. Unasked, that is what was there when the attempt began, and its copies come back; a
    /// person gets what was there at the checkpoint, and the copies where that was asked for.
    pub(crate) fn of(context: &Context, state: &State, request: &RestoreRequest) -> Result<Self> {
        let is_here = request.target.worktree == context.worktree_id();
        let selection = Selection::globs(&request.paths).unwrap_or_default();
        let then = if request.initiator == Initiator::Policy {
            begun_at(context, state, request)
        } else {
            Some(&request.target.id)
        };
        let Some(then) = then.filter(|_| is_here && request.scope.covers_files()) else {
            return Ok(Self::default());
        };
        let repo = context.repo()?;
        let (mut copies, mut lost) = repo.ignored_at(then).missing(repo);
        copies.retain(|file| selection.matches(&file.path));
        lost.retain(|path| selection.matches(path));
        if request.initiator == Initiator::Policy || request.precious {
            return Ok(Self {
                back: copies,
                copied: Vec::new(),
                lost,
            });
        }
        Ok(Self {
            back: Vec::new(),
            copied: copies.into_iter().map(|file| file.path).collect(),
            lost,
        })
    }

    /// Puts the copies back. What cannot be, or has its name by now, is no longer among them.
    pub(crate) fn put_back(&mut self, context: &Context) -> Result<()> {
        let repo = context.repo()?;
        self.back.retain(|file| {
            let done = file.put_back(repo);
            done.inspect_err(|error| {
                context.warn(format!("{} is not put back: {error}", file.path));
            })
            .unwrap_or(false)
        });
        Ok(())
    }

    /// Says what became of them, where nobody reads the answer of the restore.
    pub(crate) fn tell(&self, context: &Context) {
        let back: Vec<&RepoPath> = self.back.iter().map(|file| &file.path).collect();
        if !back.is_empty() {
            context.note(format!(
                "put back from its copy, as the attempt removed it: {}",
                names(&back)
            ));
        }
        let lost: Vec<&RepoPath> = self.copied.iter().chain(&self.lost).collect();
        if !lost.is_empty() {
            context.warn(format!(
                "ignored by git, in no checkpoint, and gone since the attempt began: {}",
                names(&lost)
            ));
        }
    }
}

/// The latest checkpoint before the run's last attempt began.
fn begun_at<'s>(
    context: &Context,
    state: &'s State,
    request: &RestoreRequest,
) -> Option<&'s CheckpointId> {
    let run = state.run(request.run.as_ref()?)?;
    let begun = Run::attempts(run).last()?.1.started_at;
    let here = context.worktree_id();
    let before = state
        .checkpoints
        .values()
        .filter(|one| one.worktree == here && one.created_at <= begun);
    before.max_by_key(|one| one.seq).map(|one| &one.id)
}

/// The first few paths.
fn names(paths: &[&RepoPath]) -> String {
    let mut named: Vec<String> = paths.iter().take(NAMED).map(ToString::to_string).collect();
    if paths.len() > NAMED {
        named.push(count(paths.len() - NAMED, "other path"));
    }
    named.join(", ")
}
