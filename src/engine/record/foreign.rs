//! Checkpoints that were imported from other systems.

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::context::Context;
use crate::model::import::ForeignCheckpoint;
use crate::model::manifest::ObjectId;
use crate::model::run::RunKey;
use crate::model::state::State;

/// Another system's checkpoint, and what of it is there.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct KnownCheckpoint {
    /// Its record.
    #[serde(flatten)]
    pub checkpoint: ForeignCheckpoint,
    /// Whether its commit is in this repository; `None` where it names none.
    pub in_repository: Option<bool>,
}

/// What of another system's checkpoint is there.
pub(crate) fn known(context: &Context, checkpoint: ForeignCheckpoint) -> KnownCheckpoint {
    let there = |commit: &String| {
        let repo = context.repo().ok().filter(|_| context.has_git());
        repo.is_some_and(|repo| repo.commit_exists(&ObjectId(commit.clone())))
    };
    let in_repository = checkpoint.commit.as_ref().map(there);
    KnownCheckpoint {
        checkpoint,
        in_repository,
    }
}

/// Other systems' checkpoints that the ledger knows of.
pub(crate) fn foreign(
    context: &Context,
    state: &State,
    run: Option<&RunKey>,
) -> Vec<KnownCheckpoint> {
    let runs = state
        .runs
        .iter()
        .filter(|one| run.is_none_or(|key| one.key == *key));
    let all = runs.flat_map(|run| {
        run.imported
            .iter()
            .flat_map(|one| one.checkpoints(&run.key))
    });
    all.map(|one| known(context, one)).collect()
}
