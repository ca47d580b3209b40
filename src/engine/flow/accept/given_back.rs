//! What hooks took away of files that are none of the commit: other uncommitted work.

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::record::checkpoint;
use crate::git::restore::Expect;
use crate::git::tree::TreeLookup;
use crate::model::checkpoint::Checkpoint;
use crate::model::path::RepoPath;
use crate::policy::path_filter::Selection;
use crate::policy::restore_plan::{Baseline, Edits, PlanInput, plan};

/// Restores what a checkpoint has and is gone by now, or is as HEAD has it. Anything else was written meanwhile: it stays, and
/// so do new files.
pub(super) fn give_back(context: &Context, before: &Checkpoint) -> Result<()> {
    let repo = context.repo()?;
    let stored = repo.load_checkpoint(&before.commit)?;
    let prepared = checkpoint::prepare(context)?;
    let plan = {
        let opened = prepared.capture.objects().open();
        let lookup = TreeLookup::new(&opened)?;
        let (now, target) = lookup.diff(prepared.capture.view(), stored.view())?;
        let head = stored.base(repo, &prepared.capture.manifest)?;
        let there: BTreeSet<RepoPath> = now.entries.keys().cloned().collect();
        let changed = repo.uncommitted(&there)?;
        let is_as_head = |path: &RepoPath| -> Result<bool> {
            let Some(entry) = now.entries.get(path).filter(|_| changed.contains(path)) else {
                return Ok(true);
            };
            // As HEAD has it, while the index has something else.
            let committed = head
                .as_ref()
                .map(|head| head.view().entry(&lookup, path))
                .transpose()?
                .flatten();
            Ok(committed.is_some_and(|committed| committed.oid == entry.oid))
        };
        let unreadable = RefCell::new(None);
        let baseline = |path: &RepoPath| match is_as_head(path) {
            Ok(true) => Baseline::Unknown,
            Ok(false) => Baseline::Another,
            Err(error) => {
                unreadable.replace(Some(error));
                Baseline::Another
            }
        };
        let plan = plan(&PlanInput {
            now: &now,
            target: &target,
            baseline: &baseline,
            selection: &Selection::all(),
            // Nothing is deleted.
            ignored: &|_, _| true,
            left_out: &repo
                .left_out(&context.capture_rules())
                .into_iter()
                .collect(),
            is_output: &|_| false,
            edits: Edits::Keep,
        });
        if let Some(error) = unreadable.take() {
            return Err(error);
        }
        plan
    };
    repo.check_restore(&plan)?;
    let (lock, _nested) = prepared.into_locks();
    let restored = repo.execute_restore(&lock, &plan, Expect::Captured, &|| false)?;
    repo.set_last_modes(&lock, &restored)?;
    Ok(())
}
