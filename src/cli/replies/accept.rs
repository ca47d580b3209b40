//! The document of `accept`.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::flow::accept::Accepted;
use crate::model::path::{PathReason, RepoPath};
use crate::model::snapshot::ObjectId;

use super::parts::RunLine;

/// What was committed, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AcceptReply<'a> {
    changed: bool,
    run: RunLine<'a>,
    #[serde(flatten)]
    what: AcceptedFields<'a>,
    /// The same, in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<AcceptPlan<'a>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct AcceptPlan<'a> {
    changed: bool,
    #[serde(flatten)]
    what: AcceptedFields<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "accepted")]
struct AcceptedFields<'a> {
    /// `null` where HEAD is detached.
    branch: Option<&'a str>,
    commits: Vec<AcceptedCommit<'a>>,
    /// What of the run's files is not committed: `reason` is `secret`, `too_large`, `leave_out`, `output`, `ignored`,
    /// `ignored_before` (the run), `uncommitted` (before it), `left_behind` (by an attempt that was rolled back; also a
    /// whole folder), `new` or `changed` (since the run was accepted first).
    left_out: &'a [PathReason],
    /// Files that were edited since the run's last good checkpoint; the edits stay uncommitted.
    hand_edits: &'a BTreeSet<RepoPath>,
    /// Files with uncommitted changes of before the run that it changed.
    changed_work: &'a BTreeSet<RepoPath>,
    /// The run's versions of those, where the changes were put back.
    beside: &'a [RepoPath],
    head: AcceptedHead<'a>,
    /// What keeps the run's own commits that were folded.
    kept_ref: Option<&'a str>,
    /// What a person must look at.
    look_at: &'a [String],
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct AcceptedCommit<'a> {
    /// `null` in a dry run.
    commit: Option<&'a ObjectId>,
    subject: &'a str,
    /// `null` for a commit of everything.
    iteration: Option<u32>,
    /// The files that it changes.
    files: &'a BTreeSet<RepoPath>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct AcceptedHead<'a> {
    before: Option<&'a ObjectId>,
    after: Option<&'a ObjectId>,
}

impl<'a> AcceptReply<'a> {
    pub(crate) fn new(accepted: &'a Accepted, is_plan: bool) -> Self {
        let changed = accepted.changed;
        let plan = is_plan.then(|| AcceptPlan {
            changed,
            what: AcceptedFields::of(accepted),
        });
        Self {
            changed: changed && !is_plan,
            run: (&accepted.run).into(),
            what: AcceptedFields::of(accepted),
            plan,
        }
    }
}

impl<'a> AcceptedFields<'a> {
    fn of(accepted: &'a Accepted) -> Self {
        let commit = |made: &'a crate::engine::flow::accept::Made| AcceptedCommit {
            commit: made.commit.as_ref(),
            subject: &made.subject,
            iteration: made.iteration,
            files: &made.files,
        };
        Self {
            branch: short_branch(accepted),
            commits: accepted.commits.iter().map(commit).collect(),
            left_out: &accepted.left_out,
            hand_edits: &accepted.hand_edits,
            changed_work: &accepted.changed_work,
            beside: &accepted.beside,
            head: AcceptedHead {
                before: accepted.before.as_ref(),
                after: accepted.after.as_ref(),
            },
            kept_ref: accepted.kept_ref.as_deref(),
            look_at: &accepted.notes,
        }
    }
}

/// The branch as people name it.
pub(crate) fn short_branch(accepted: &Accepted) -> Option<&str> {
    accepted
        .branch
        .as_deref()
        .map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch))
}
