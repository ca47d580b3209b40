//! Attempts of loops that run their own commands.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::record::attempt_record::RecoveryResult;
use crate::model::checkpoint::Checkpoint;
use crate::model::decision::Decision;
use crate::model::failure::{Condition, Failure};
use crate::model::id::CheckpointId;
use crate::model::run_line::RunLine;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AttemptPassReply<'a> {
    pub run: RunLine,
    pub conditions: &'a [Condition],
    pub notes: &'a [String],
    pub checkpoint_id: Option<&'a CheckpointId>,
    pub checkpoint: Option<&'a Checkpoint>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AttemptFailReply<'a> {
    pub run: RunLine,
    pub failure: Option<&'a Failure>,
    pub decision: Option<&'a Decision>,
    pub conditions: &'a [Condition],
    pub notes: &'a [String],
    pub result: Option<&'a RecoveryResult>,
    pub report_path: Option<Cow<'a, str>>,
    pub checkpoint_id: Option<&'a CheckpointId>,
}
