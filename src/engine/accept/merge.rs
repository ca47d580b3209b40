//! Accepting a run that had a work tree of its own: its commits are merged onto the branch that it began on.
//!
//! What comes of it, on top of the branch as that is by now, is a commit before anything moves, and is checked in a temporary
//! work tree. Where the branch is checked out, its files change by a restore, with its journal, before the branch does: a kill
//! in between leaves them as uncommitted changes, with which accepting it again goes on, and which `undo` takes back.

use std::collections::BTreeSet;
use std::path::Path;

use super::plan::{Plan, refuse_staged};
use super::{reasons, take};
use crate::engine::base::{Context, Error, ErrorKind, Result, runs};
use crate::engine::record::checkpoint;
use crate::engine::record::git_state::abort_of;
use crate::engine::record::storage::Request as Captured;
use crate::engine::recovery;
use crate::engine::restore::request::{Commits, Options, RestoreRequest};
use crate::engine::rollback::on_request::restore;
use crate::engine::runs::refuse_driven;
use crate::git::Repo;
use crate::git::program::{CommitJournal, Scratch, Staging};
use crate::model::checkpoint::trigger;
use crate::model::{
    Checkpoint, Head, HeadMove, Hint, ObjectId, Operation, OperationKind, RepoPath, Run, RunKey,
    Scope, State,
};
use crate::policy::restore::{Edits, glob_of};

/// The branch that a run is merged onto.
pub(super) struct Onto<'a> {
    context: &'a Context,
    key: RunKey,
    /// Its full name.
    pub branch: String,
    /// Where it is.
    pub tip: ObjectId,
    /// The command in the work tree that has it checked out.
    at: Option<Context>,
    rebases: bool,
}

/// How the branch gets to what the run made.
pub(super) struct Way {
    /// `fast_forward`, `merge` or `rebase`.
    pub how: &'static str,
    /// What comes on top of the branch, oldest first.
    pub commits: Vec<ObjectId>,
}

impl<'a> Onto<'a> {
    /// `None` for a run that is accepted where it worked.
    ///
    /// # Errors
    /// The branch is gone (13); a run is at work where it is checked out (11), or git is at something else (13).
    pub(super) fn of(
        context: &'a Context,
        state: &State,
        run: &Run,
        rebases: bool,
    ) -> Result<Option<Self>> {
        let Some(branch) = run.spec.isolated.as_ref().and_then(|one| one.onto.clone()) else {
            return Ok(None);
        };
        let repo = context.repo()?;
        let Some(tip) = repo.resolve_ref(&branch) else {
            let message = format!("{branch}, which run {} began on, is gone", run.key);
            let again = context.rerun(&["--branch", run.key.run_id.as_str()]);
            return Err(Error::new(ErrorKind::HeadMoved, message).hint(again));
        };
        let at = checked_out(context, &branch)?;
        if let Some(at) = &at {
            let mut here = state.runs_of(&at.worktree_id());
            if let Some(other) = here.find(|other| runs::driver(at.store(), other).is_some()) {
                refuse_driven(at, other)?;
            }
            if let Some(operation) = at.repo()?.operation() {
                let abort = abort_of(operation);
                let message = format!(
                    "a {operation} is in progress in {}: finish it, or give it up with {abort}",
                    at.worktree().display()
                );
                return Err(
                    Error::new(ErrorKind::OperationInProgress, message).hint(Hint::git(["status"]))
                );
            }
        }
        Ok(Some(Self {
            context,
            key: run.key.clone(),
            branch,
            tip,
            at,
            rebases,
        }))
    }

    /// Whether the branch lacks a commit.
    pub(super) fn lacks(&self, commit: Option<&ObjectId>) -> Result<bool> {
        let repo = self.context.repo()?;
        let has = commit.map(|commit| repo.is_ancestor(commit, &self.tip));
        Ok(!has.transpose()?.unwrap_or(true))
    }

    /// How it would get there: of a commit on top of `base` that nobody has but `staging`.
    ///
    /// # Errors
    /// Both changed a file (13).
    pub(super) fn rehearse(
        &self,
        staging: &Staging<'_>,
        (last, base): (&ObjectId, Option<&ObjectId>),
    ) -> Result<&'static str> {
        let repo = self.context.repo()?;
        let is_ahead = base.map(|base| repo.is_ancestor(&self.tip, base));
        if is_ahead.transpose()?.unwrap_or(false) {
            return Ok("fast_forward");
        }
        self.tree(staging.merge((&self.tip, last), None)?)?;
        Ok(if self.rebases { "rebase" } else { "merge" })
    }

    /// What is made of the run's last commit.
    ///
    /// # Errors
    /// Both changed a file (13): nothing has moved.
    pub(super) fn merge(&self, run: &Run, staging: &Staging<'_>, last: &ObjectId) -> Result<Way> {
        let repo = self.context.repo()?;
        if repo.is_ancestor(&self.tip, last)? {
            let commits = repo.commits_between(Some(&self.tip), last)?;
            let commits = commits.into_iter().rev().collect();
            return Ok(Way {
                how: "fast_forward",
                commits,
            });
        }
        if self.rebases {
            return self.rebase(staging, last);
        }
        let tree = self.tree(staging.merge((&self.tip, last), None)?)?;
        let message = format!("Merge run {} into {}\n", run.key, short(&self.branch));
        let commit = staging.commit(&tree, [&self.tip, last], &message)?;
        Ok(Way {
            how: "merge",
            commits: vec![commit],
        })
    }

    fn rebase(&self, staging: &Staging<'_>, last: &ObjectId) -> Result<Way> {
        let repo = self.context.repo()?;
        let mut commits: Vec<ObjectId> = Vec::new();
        for commit in repo.commits_between(Some(&self.tip), last)?.iter().rev() {
            let parents = repo.about_commit(commit)?.0;
            let parent = commits.last().unwrap_or(&self.tip);
            let tree = self.tree(staging.merge((parent, commit), parents.first())?)?;
            let made = staging.commit_again(&tree, parent, commit)?;
            commits.push(made);
        }
        Ok(Way {
            how: "rebase",
            commits,
        })
    }

    fn tree(&self, merged: std::result::Result<ObjectId, BTreeSet<RepoPath>>) -> Result<ObjectId> {
        merged.map_err(|paths| {
            let message = format!(
                "the run and {} changed the same places since it began: nothing was moved. --branch B commits it to a branch of \
                 its own, for git merge B",
                short(&self.branch)
            );
            Error::new(ErrorKind::Conflicts, message)
                .paths(reasons(paths, "changed by both"))
                .hint(Hint::recover(["accept", "--branch", "B"]).run(&self.key))
        })
    }

    /// Moves the branch, with the files of the work tree that has it checked out, and records that the run is accepted.
    pub(super) fn put(&self, planned: &Plan<'_>, way: &Way) -> Result<Run> {
        let (context, run) = (self.context, planned.run);
        let Some(last) = way.commits.last() else {
            return recovery::record_empty(context, &run.key);
        };
        let message = format!("recover accept: run {}", run.key.run_id);
        let left_out = planned.journal().left_out;
        let Some(at) = &self.at else {
            let lock = checkpoint::lock(context)?;
            let moved = (self.branch.as_str(), &self.tip);
            context.repo()?.set_branch(&lock, moved, last, &message)?;
            return recovery::record_commits(context, &run.key, &way.commits, left_out);
        };
        let head = Head {
            branch: Some(self.branch.clone()),
            commit: Some(self.tip.clone()),
        };
        if at.repo()?.head()? != head {
            let message = format!("{} moved meanwhile: nothing was changed", self.branch);
            return Err(Error::new(ErrorKind::HeadMoved, message).hint(context.rerun(&[])));
        }
        let safety = take(at, &run.key, "Before accept", trigger::SAFETY)?;
        let mut journal = CommitJournal {
            base: Some(self.tip.clone()),
            left_out,
            seen: Some(Vec::new()),
            ..CommitJournal::new(run.key.clone(), head, way.commits.clone(), message)
        };
        self.put_files(at, planned, &safety, &journal)?;
        journal.seen = None;
        journal.operation = Some(Box::new(Operation {
            head: HeadMove {
                before: Some(self.tip.clone()),
                after: Some(last.clone()),
            },
            ..Operation::new("op", OperationKind::Accept, &safety, &planned.good_id)
        }));
        let lock = checkpoint::lock(at)?;
        recovery::put_commits(at, &lock, &journal)
    }

    /// Writes what the commits change into the work tree `at`, whose files are those of `safety`.
    fn put_files(
        &self,
        at: &Context,
        planned: &Plan<'_>,
        safety: &Checkpoint,
        journal: &CommitJournal,
    ) -> Result<()> {
        let (repo, last) = (at.repo()?, journal.commits.last());
        let changed = repo.differs_between(Some(&self.tip), last)?;
        let stored = repo.load_checkpoint(&safety.commit)?;
        let unlike = repo.unlike_stored(&stored, Some(&self.tip), &changed, false)?;
        // Cut off, it may have been written before.
        let unlike = repo.unlike_stored(&stored, last, &unlike, false)?;
        // What the run began with is in its first checkpoint, and in what it made of it.
        let (now, begun) = (stored.snapshot(repo)?, planned.initial.snapshot(repo)?);
        let came_along = |path: &RepoPath| now.entries.get(path) == begun.entries.get(path);
        let edited: BTreeSet<RepoPath> = unlike
            .into_iter()
            .filter(|path| !came_along(path))
            .collect();
        if !edited.is_empty() {
            let place = at.worktree().display();
            let message = format!(
                "what the run changed has uncommitted changes in {place}: commit or stash them first"
            );
            return Err(Error::new(ErrorKind::Conflicts, message)
                .paths(reasons(edited, "has uncommitted changes"))
                .hint(Hint::git(["status"]).at(at.place())));
        }
        let mut staged = repo.staged_since(journal, None)?;
        staged.retain(|path| !came_along(path));
        refuse_staged(staged)?;
        let scratch = Scratch::new(repo)?;
        last.map_or(Ok(()), |last| scratch.check_out(last))?;
        let merged = {
            let there = at.at(&scratch.path())?;
            let prepared = checkpoint::prepare(&there)?;
            let about = Captured::new(
                trigger::SAFETY,
                format!("Merged onto {}", short(&self.branch)),
            );
            checkpoint::take(
                &there,
                &mut there.store().lock()?,
                &planned.run.key,
                &prepared,
                about,
            )?
        };
        let options = Options {
            scope: Scope::Files,
            paths: changed.iter().map(glob_of).collect(),
            commits: Commits::Keep,
            edits: Edits::Discard,
            here: true,
            ..Options::default()
        };
        let request = RestoreRequest {
            run: Some(planned.run.key.clone()),
            ..RestoreRequest::new(OperationKind::Restore, &merged, options)
        };
        restore(at, &request).map(drop)
    }
}

/// Finishes what a kill left where the branch of a run with a work tree of its own is checked out.
pub(super) fn settle(context: &Context, run: &Run) -> Result<()> {
    let onto = run.spec.isolated.as_ref().and_then(|one| one.onto.as_ref());
    let at = onto
        .map(|branch| checked_out(context, branch))
        .transpose()?;
    at.flatten().map_or(Ok(()), |at| recovery::recover(&at))
}

/// The short name of a branch.
pub(super) fn short(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}

/// The command in the work tree that has a branch checked out.
fn checked_out(context: &Context, branch: &str) -> Result<Option<Context>> {
    let has_it = |place: &Path| {
        let head = Repo::discover(place, context.home()).and_then(|repo| repo.head());
        head.is_ok_and(|head| head.branch.as_deref() == Some(branch))
    };
    let places = context.repo()?.work_trees()?;
    let found = places.into_iter().find(|place| has_it(place));
    found.map(|place| context.at(&place)).transpose()
}
