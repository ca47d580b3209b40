//! References of checkpoints that something else removed: `git fetch --prune` in a mirror clone does.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::git::WorktreeLock;
use crate::git::repo::ref_name;
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
    if repo.ref_exists(&name(latest)) {
        return Ok(Vec::new());
    }
    let lacks = |one: &&Checkpoint| {
        !repo.ref_exists(&name(one)) && repo.load_checkpoint(&one.commit).is_ok()
    };
    if !state.checkpoints.values().any(|one| lacks(&one)) {
        return Ok(Vec::new());
    }
    let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
    // What was removed on purpose meanwhile is no longer in the ledger.
    let state = context.load()?.state;
    let mut done = Vec::new();
    for one in state.checkpoints.values().filter(lacks) {
        repo.set_ref(&lock, &name(one), &one.commit)?;
        done.push(format!("set the reference of {} again", one.id));
    }
    Ok(done)
}
