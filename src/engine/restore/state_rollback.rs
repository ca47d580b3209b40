//! The automatic reaction to an error: the working memory goes back, source code never (L3, L6).

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::record::memory;
use crate::engine::record::request::Prepared;
use crate::model::checkpoint::Checkpoint;
use crate::model::event::Payload;
use crate::model::operation::{HeadMove, NestedPart, Operation, OperationKind, Scope};
use crate::model::run::RunKey;
use crate::model::state::State;
use crate::store::{Exclusive, NewEvent};

use super::execute::restore_state_only;

/// The checkpoint to go back to: the run's latest one that did not fail, and that was not taken on the way of the attempt
/// under way, whose memory is what goes.
pub(crate) fn target<'a>(state: &'a State, key: &RunKey) -> Option<&'a Checkpoint> {
    let began = state
        .run(key)
        .and_then(|run| run.live.as_ref())
        .map(|live| live.after_checkpoint);
    let of_attempt = |c: &Checkpoint| c.is_in_between() && began.is_some_and(|began| c.seq > began);
    state
        .standing(key)
        .rfind(|c| !c.is_failed_attempt() && !of_attempt(c))
}

/// Puts the working memory back and clears the loop's own state files. `safety` is the checkpoint that holds what there
/// was, without which nothing is overwritten. Returns whether a rollback took place.
pub(crate) fn react(
    context: &Context,
    ledger: &mut Exclusive,
    key: &RunKey,
    target: Option<&Checkpoint>,
    safety: Option<(&Checkpoint, &Prepared)>,
) -> Result<bool> {
    let Some((safety, prepared)) = safety else {
        return Ok(false);
    };
    let settings = &context.settings().memory;
    let source = target.unwrap_or(safety);
    let repo = context.repo()?;
    let then = repo.load_checkpoint(&source.commit)?.memory(repo)?;
    let plan = memory::plan_after_error(&prepared.memory, &then, settings)?;
    if !plan.is_empty() {
        let operation = Operation {
            id: format!("op_state_{:04}", safety.seq).into(),
            kind: OperationKind::Restore,
            worktree: context.worktree_id(),
            safety_checkpoint_id: safety.id.clone(),
            checkpoint_id: source.id.clone(),
            scope: Scope::State,
            paths: Vec::new(),
            head: HeadMove {
                before: safety.base_commit.clone(),
                after: safety.base_commit.clone(),
            },
            written: plan.write.len() as u64,
            deleted: plan.delete.len() as u64,
            kept: Vec::new(),
            left: Vec::new(),
            reposition: None,
            index_restored: false,
            steps: Vec::new(),
            nested: NestedPart::default(),
            of_run: false,
        };
        let commits = (&safety.commit, &source.commit);
        restore_state_only(context, &prepared.lock, key, operation.clone(), commits)?;
        let event = NewEvent::about(
            key,
            Payload::Restored {
                operation: Box::new(operation),
            },
        );
        ledger.append(context.clock.now(), vec![event])?;
        repo.remove_restore_journal(&prepared.lock)?;
    }
    Ok(target.is_some())
}
