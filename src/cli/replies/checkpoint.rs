//! JSON replies of the `checkpoint` commands.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::flow::export::Format;
use crate::engine::flow::inspect::File;
use crate::engine::record::foreign::KnownCheckpoint;
use crate::model::checkpoint::{CapturedTotals, Checkpoint};
use crate::model::id::CheckpointId;
use crate::model::manifest::Nested;
use crate::model::path::PathReason;
use crate::model::snapshot::{Change, ObjectId};

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CreateReply<'a> {
    pub changed: bool,
    /// The new one, or the one that makes it superfluous.
    pub checkpoint: &'a Checkpoint,
}

/// What `checkpoint create` would do.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct CreatePlanReply<'a> {
    pub changed: bool,
    /// The one that is young enough.
    pub checkpoint: Option<&'a Checkpoint>,
    pub plan: Option<CreatePlan>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CreatePlan {
    pub captured: CapturedTotals,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListReply<'a> {
    /// Oldest first.
    pub checkpoints: &'a [&'a Checkpoint],
    /// The ids of those that a rollback took back.
    pub superseded: &'a BTreeSet<&'a str>,
    /// Other systems' checkpoints: records without content.
    pub imported: &'a [KnownCheckpoint],
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ShowReply<'a> {
    pub checkpoint: &'a Checkpoint,
    pub files: Vec<File>,
    pub nested: &'a [Nested],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<&'a str>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct DiffReply<'a> {
    pub from: &'a CheckpointId,
    /// `null` for the work tree.
    pub to: Option<&'a str>,
    pub changes: &'a [Change],
    pub memory_updates: &'a [Change],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<&'a str>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PinReply<'a> {
    pub checkpoint: &'a Checkpoint,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExportReply<'a> {
    pub checkpoint_id: &'a CheckpointId,
    pub format: Format,
    pub base_commit: Option<&'a ObjectId>,
    pub changed: bool,
    /// `null` where it went to standard output.
    pub path: Option<&'a str>,
    /// What stays on this machine, with the reason.
    #[serde(skip_serializing_if = "<[PathReason]>::is_empty")]
    pub withheld: &'a [PathReason],
}
