//! Adding checkpoints to the ledger that it does not know: a kill came before their event, or they were imported.

use crate::engine::base::context::Context;
use crate::engine::base::error::Result;
use crate::engine::record::events;
use crate::model::checkpoint::Checkpoint;
use crate::model::event::Payload;
use crate::model::run::RunSpec;
use crate::model::time::Timestamp;
use crate::store::{Exclusive, NewEvent};

/// Adds a checkpoint of this project whose event was never written. Returns what was done; `None` if it is known meanwhile.
pub(in crate::engine) fn adopt_one(context: &Context, found: Checkpoint) -> Result<Option<String>> {
    let ledger = context.store().lock()?;
    let id = found.id.clone();
    let adopted = |checkpoint| Payload::CheckpointCreated {
        checkpoint,
        adopted: true,
        own_commits: Vec::new(),
    };
    let added = add(ledger, context.clock.now(), found, adopted)?;
    Ok(added.then(|| format!("took in checkpoint {id}, whose event was never written")))
}

/// Adds a checkpoint that the ledger does not know, and its run where that is not known either. Returns whether it was new.
pub(in crate::engine) fn add(
    ledger: Exclusive,
    now: Timestamp,
    mut found: Checkpoint,
    payload: impl FnOnce(Box<Checkpoint>) -> Payload,
) -> Result<bool> {
    if ledger.state().checkpoint(&found.id).is_some() {
        return Ok(false);
    }
    if ledger.state().checkpoints.contains(found.seq) {
        // Another one has its number.
        found.seq = ledger.state().last_checkpoint_seq + 1;
    }
    let mut events = Vec::new();
    if ledger.state().run(&found.run).is_none() {
        events.push(NewEvent::about(
            &found.run,
            Payload::RunCreated {
                task_id: found.task_id.clone(),
                session: found.run.run_id.to_string(),
                worktree: found.worktree.clone(),
                spec: Box::new(RunSpec::default()),
            },
        ));
    }
    let key = found.run.clone();
    events.push(NewEvent::about(&key, payload(Box::new(found))));
    events::append(ledger, &key, now, events)?;
    Ok(true)
}
