//! Manual fix sessions (requirements B8, B9).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::FixId;
use super::{Change, CheckpointId, Failure, FeedbackResults, ObjectId, RunId, TaskId, Timestamp};

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "fix_status")]
pub enum ManualFixStatus {
    /// A person is at it.
    Active,
    /// The run went on with the fix.
    Completed,
    /// Given up.
    Aborted,
}

/// A person's fix between two attempts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "session")]
pub struct ManualFixSession {
    /// What it is named by.
    pub id: FixId,
    /// The run.
    pub run_id: RunId,
    /// What the run works on.
    pub task_id: Option<TaskId>,
    /// When it began.
    pub started_at: Timestamp,
    /// What is to be fixed.
    pub issue: Option<Failure>,
    /// The checkpoint it began at: changes are listed against it.
    pub checkpoint_id: CheckpointId,
    /// What has changed since it began, as of the last look.
    #[serde(default)]
    pub detected_changes: Vec<Change>,
    /// What the feedback loops said of the fix.
    #[serde(default)]
    pub verification_results: FeedbackResults,
    /// Whether every loop passed on exactly `verified_tree`.
    pub verified: bool,
    /// The tree that was verified.
    pub verified_tree: Option<ObjectId>,
    /// Where it stands.
    pub status: ManualFixStatus,
}
