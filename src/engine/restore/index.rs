//! What a restore does to git's index: what the run staged goes back, what a person staged since stays.

use std::collections::BTreeSet;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::record::request::Prepared;
use crate::git::checkpoint::StoredCheckpoint;
use crate::git::restore::{IndexContent, IndexPlan, IndexSides, RestoreJournal};
use crate::git::tree::TreeLookup;
use crate::git::{Repo, WorktreeLock};
use crate::model::path::RepoPath;
use crate::policy::restore_plan::Edits;

use super::head::HeadPlan;
use super::journal::{JournalContext, decode};
use super::request::{IndexMode, RestoreRequest};

/// How the run left the index.
#[derive(Default)]
pub(super) struct Left {
    /// The checkpoint that has it; `None` where that is not known.
    pub index: Option<StoredCheckpoint>,
    /// Paths that another run changed since the target.
    pub others: BTreeSet<RepoPath>,
}

/// What becomes of the index. Where HEAD will not be the checkpoint's, or the checkpoint is another work tree's, only
/// `--restore-index` changes it.
pub(super) fn plan(
    context: &Context,
    request: &RestoreRequest,
    prepared: &Prepared,
    target: &StoredCheckpoint,
    (head, left): (&HeadPlan, &Left),
) -> Result<IndexPlan> {
    let repo = context.repo()?;
    let now = &prepared.capture;
    let follows = *head != HeadPlan::Stay || now.head.commit == target.manifest.head.commit;
    if request.index == IndexMode::ByPath
        && (!follows || !request.scope.covers_files() || request.here)
    {
        return Ok(IndexPlan::default());
    }
    let before = now.head.commit.as_ref().filter(|_| *head != HeadPlan::Stay);
    let before = before.map(|commit| repo.tree_of(commit)).transpose()?;
    let on_top;
    let target = if is_on_top(head, request) {
        on_top = target.committed();
        &on_top
    } else {
        target
    };
    let opened = now.objects().open();
    let sides = IndexSides {
        now: IndexContent::new(now.index_tree.as_ref(), &now.manifest),
        target: target.into(),
        baseline: left.index.as_ref().map(IndexContent::from),
        others: &left.others,
        head: before.as_ref(),
        discard: request.index == IndexMode::Whole || request.edits == Edits::Discard,
    };
    Ok(sides.plan(&TreeLookup::new(&opened)?)?)
}

/// Whether the index follows the commit that comes on top, and not what was captured of it.
pub(super) fn is_on_top(head: &HeadPlan, request: &RestoreRequest) -> bool {
    *head == HeadPlan::Revert && request.index == IndexMode::ByPath
}

/// Gives the index the target's entries of the planned paths.
pub(super) fn apply(
    context: &Context,
    lock: &WorktreeLock,
    journal: &RestoreJournal,
    journaled: &JournalContext,
) -> Result<()> {
    let (repo, timeout) = (context.repo()?, context.lock_timeout());
    if journal.restore_index {
        return Ok(repo.restore_index(lock, &target(repo, journal, journaled)?, timeout)?);
    }
    if journal.index_paths.is_empty() {
        return Ok(());
    }
    let (safety, target) = (
        repo.load_checkpoint(&journal.safety_commit)?,
        target(repo, journal, journaled)?,
    );
    let sides = (&IndexContent::from(&safety), &IndexContent::from(&target));
    Ok(repo.restore_index_paths(lock, &journal.index_paths, sides, timeout)?)
}

/// The checkpoint whose index is restored.
fn target(
    repo: &Repo,
    journal: &RestoreJournal,
    journaled: &JournalContext,
) -> Result<StoredCheckpoint> {
    let mut stored = repo.load_checkpoint(&journal.target_commit)?;
    if journaled.of_base {
        let here = repo.load_checkpoint(&journal.safety_commit)?.manifest;
        stored = stored.base(repo, &here)?.unwrap_or(stored);
    }
    Ok(if journaled.on_top {
        stored.committed()
    } else {
        stored
    })
}

/// Takes back what became of the index. It is left alone where it is as before: somebody may hold its lock, which may be
/// why it was not restored.
pub(super) fn revert(
    context: &Context,
    lock: &WorktreeLock,
    journal: &RestoreJournal,
) -> Result<()> {
    if !journal.restore_index && journal.index_paths.is_empty() {
        return Ok(());
    }
    let (repo, timeout) = (context.repo()?, context.lock_timeout());
    let safety = repo.load_checkpoint(&journal.safety_commit)?;
    if repo.index_is(&safety)? {
        return Ok(());
    }
    if journal.restore_index {
        return Ok(repo.restore_index(lock, &safety, timeout)?);
    }
    let target = target(repo, journal, &decode(journal)?)?;
    let sides = (&IndexContent::from(&target), &IndexContent::from(&safety));
    Ok(repo.restore_index_paths(lock, &journal.index_paths, sides, timeout)?)
}
