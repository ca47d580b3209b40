//! Which commits are a run's own: what goes off a branch unasked, what nobody has to look at, what `accept` folds.

use std::collections::BTreeSet;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::model::lane::is_lane;
use crate::model::manifest::Head;
use crate::model::manifest::ObjectId;
use crate::model::run::Run;
use crate::model::state::State;
use crate::model::step::Step;

use super::lane;

/// The commits that the attempts and steps of a run made, and of a lane in its work tree: all that its branch has beyond the
/// base branch, and what came between two of its steps, whatever of the lane's made them.
#[derive(Debug, Default)]
pub(crate) struct OwnCommits<'a> {
    run: Option<&'a Run>,
    of_lane: BTreeSet<ObjectId>,
}

impl<'a> OwnCommits<'a> {
    /// Those of `run`, where HEAD is `now`.
    pub(crate) fn of(
        context: &Context,
        state: &State,
        run: Option<&'a Run>,
        now: &Head,
    ) -> Result<Self> {
        let mut own = Self {
            run,
            of_lane: BTreeSet::new(),
        };
        let here = run.filter(|run| context.has_git() && run.worktree == context.worktree_id());
        let Some(run) = here.filter(|run| is_lane(state, &run.key)) else {
            return Ok(own);
        };
        own.of_lane = between_steps(context, state, run)?;
        let branch = now
            .branch
            .as_deref()
            .and_then(|branch| branch.strip_prefix("refs/heads/"));
        let base = state
            .lane_base(&run.key)
            .filter(|base| branch.is_some_and(|branch| branch != base));
        let base = base.and_then(|base| lane::branch_commit(context, &base));
        if let (Some(base), Some(current)) = (base, &now.commit) {
            own.of_lane
                .extend(context.repo()?.commits_between(Some(&base), current)?);
        }
        Ok(own)
    }

    /// Whether this is one of them.
    pub(crate) fn has(&self, commit: &ObjectId) -> bool {
        self.of_lane.contains(commit)
            || self.run.is_some_and(|run| run.own_commits.contains(commit))
    }
}

/// The commits on top of which the next step of a lane began, without those of other runs.
fn between_steps(context: &Context, state: &State, run: &Run) -> Result<BTreeSet<ObjectId>> {
    let mut begun: Vec<&Step> = run
        .steps
        .iter()
        .filter(|step| step.start.worktree == run.worktree)
        .collect();
    begun.sort_by_key(|step| step.started_at);
    let mut heads: Vec<&ObjectId> = begun
        .iter()
        .filter_map(|step| step.start.head.as_ref())
        .collect();
    heads.dedup();
    let is_others = |commit: &ObjectId| {
        state
            .runs
            .iter()
            .any(|other| other.key != run.key && other.own_commits.contains(commit))
    };
    let repo = context.repo()?;
    let mut found = BTreeSet::new();
    for pair in heads.windows(2) {
        // One that was taken off since, or was left for another branch, is no way from one step to the next.
        let is_way = repo.is_ancestor(pair[0], pair[1]);
        if is_way
            .inspect_err(|error| tracing::debug!(%error, "a step's commit is gone"))
            .unwrap_or(false)
        {
            found.extend(
                repo.commits_between(Some(pair[0]), pair[1])?
                    .into_iter()
                    .filter(|one| !is_others(one)),
            );
        }
    }
    Ok(found)
}
