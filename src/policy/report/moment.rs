//! A moment of the run's story.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::checkpoint::Verdict;
use crate::model::id::CheckpointId;
use crate::model::run::AttemptOutcome;
use crate::model::time::Timestamp;

/// What kind of moment it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "report_moment_kind")]
pub(crate) enum MomentKind {
    /// The run began, was taken up, stands elsewhere.
    Run,
    /// An iteration stands elsewhere.
    Iteration,
    /// An attempt began.
    Attempt,
    /// Something was decided.
    Decision,
    /// A wait without an attempt began.
    Park,
    /// A checkpoint was taken, pinned or removed.
    Checkpoint,
    /// Files were restored.
    Rollback,
    /// A restore was taken back, or done again.
    Undo,
    /// A person fixed something.
    ManualFix,
    /// A named step ended, or its effect was taken back.
    Step,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "report_moment")]
pub(crate) struct Moment {
    /// When.
    pub at: Timestamp,
    /// What kind it is.
    pub kind: MomentKind,
    /// What happened, in a few words.
    pub title: String,
    /// More about it.
    pub detail: Option<String>,
    /// The iteration it is about.
    pub iteration: Option<u32>,
    /// The attempt it is about.
    pub attempt: Option<u32>,
    /// How the attempt ended.
    pub outcome: Option<AttemptOutcome>,
    /// How long the attempt took.
    pub duration_ms: Option<u64>,
    /// The checkpoint it is about.
    pub checkpoint_id: Option<CheckpointId>,
    /// The checkpoint's verdict.
    pub verdict: Option<Verdict>,
}
