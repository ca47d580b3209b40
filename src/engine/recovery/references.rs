//! References of checkpoints that something else removed: `git fetch --prune` in a mirror clone does.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git::WorktreeLock;
use crate::git::checkpoint::load_checkpoint;
use crate::git::repo::{ref_exists, ref_name, set_ref};
use crate::model::checkpoint::Checkpoint;
use crate::model::state::State;

/// Sets them again, as far as the commits are still there. Says what was done. Only where the latest checkpoint lacks its
/// reference are the others examined: what removes one removes all.
pub(in crate::engine) fn set_again(context: &Context, state: &State) -> Result<Vec<String>> {
    let Some(latest) = state.checkpoints.values().next_back() else {
        return Ok(Vec::new());
    };
    let repo = context.repo()?;
    let name = |one: &Checkpoint| ref_name(&one.run.run_id, &one.id);
    if ref_exists(repo, &name(latest)) {
        return Ok(Vec::new());
    }
    let lacks = |one: &&Checkpoint| {
        !ref_exists(repo, &name(one)) && load_checkpoint(repo, &one.commit).is_ok()
    };
    if !state.checkpoints.values().any(|one| lacks(&one)) {
        return Ok(Vec::new());
    }
    let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
    // What was removed on purpose meanwhile is no longer in the ledger.
    let state = context.load()?.state;
    let mut done = Vec::new();
    for one in state.checkpoints.values().filter(lacks) {
        set_ref(repo, &lock, &name(one), &one.commit)?;
        done.push(format!("set the reference of {} again", one.id));
    }
    Ok(done)
}
