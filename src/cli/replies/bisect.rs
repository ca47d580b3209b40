//! The document of `bisect`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::flow::bisect::Found;
use crate::model::id::CheckpointId;

use super::parts::RunLine;

/// Which checkpoint made a command fail.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BisectReply<'a> {
    run: RunLine<'a>,
    /// `null` where skips or removed checkpoints leave several, and in a dry run.
    first_bad: Option<&'a CheckpointId>,
    last_good: Option<&'a CheckpointId>,
    tested: Vec<TestedCheckpoint<'a>>,
    /// The attempt after which the first bad one was taken.
    attempt: Option<BadAttempt>,
    /// Those that it may be, where skips leave several.
    candidates: &'a [CheckpointId],
    /// How many checkpoints are looked at.
    checkpoints: usize,
    /// How many were removed between the last good one and the only one of `candidates`: it may be any of them.
    removed_between: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct TestedCheckpoint<'a> {
    checkpoint_id: &'a CheckpointId,
    exit_code: i32,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct BadAttempt {
    iteration: u32,
    /// `null` where it was taken after none.
    attempt: Option<u32>,
}

impl<'a> BisectReply<'a> {
    pub(crate) fn new(found: &'a Found) -> Self {
        let tested = |one: &'a crate::engine::flow::bisect::Tested| TestedCheckpoint {
            checkpoint_id: &one.checkpoint_id,
            exit_code: one.exit_code,
        };
        let first_bad = found.first_bad.as_ref();
        Self {
            run: (&found.run).into(),
            first_bad: first_bad.map(|bad| &bad.id),
            last_good: found.last_good.as_ref().map(|good| &good.id),
            tested: found.tested.iter().map(tested).collect(),
            attempt: first_bad.map(|bad| BadAttempt {
                iteration: bad.after_iteration,
                attempt: bad.attempt,
            }),
            candidates: &found.candidates,
            checkpoints: found.checkpoints,
            removed_between: found.removed,
        }
    }
}
