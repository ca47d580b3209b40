//! What a checkpoint is made from: what is asked of it, and the capture that it records.

use std::cell::OnceCell;
use std::time::Instant;

use crate::git::WorktreeLock;
use crate::git::capture::Capture;
use crate::git::checkpoint::MemoryFile;
use crate::git::repo::Loan;
use crate::model::checkpoint::{ChangeTotals, CheckpointType, LaneFields, StorageType, Verdict};
use crate::model::feedback::FeedbackResults;
use crate::model::id::CheckpointId;
use crate::model::path::RepoPath;

use super::nested::NestedCapture;

/// What a checkpoint says beside what it captures.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The headline; made from the rest where it is empty.
    pub description: String,
    /// Why it is taken.
    pub trigger: String,
    /// What kind of moment it marks.
    pub kind: CheckpointType,
    /// The iteration it is taken after; the run's last finished one where it is not named.
    pub after_iteration: Option<u32>,
    /// The attempt it is taken after.
    pub attempt: Option<u32>,
    /// What the feedback loops said.
    pub verdict: Verdict,
    /// One by one.
    pub feedback_results: FeedbackResults,
    /// The lane contract's fields.
    pub lane_fields: LaneFields,
    /// Whether retention must leave it alone.
    pub pinned: bool,
    /// How it is kept, where that was asked for; else as configured.
    pub storage: Option<StorageType>,
    /// Whether it may become a commit on the branch although it is not good: progress that goes on later (A8).
    pub saves_progress: bool,
}

/// A capture that is not recorded yet, and the lock it was made under.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The work tree.
    pub capture: Capture,
    /// The repositories inside it.
    pub nested: Vec<NestedCapture>,
    /// The working memory.
    pub memory: Vec<MemoryFile>,
    /// Rights that are lent as long as this lives.
    pub loan: Option<Loan>,
    /// Nobody else writes in the work tree while this lives.
    pub lock: WorktreeLock,
    pub(in crate::engine) begun: Instant,
    /// What changed since that checkpoint, where it was looked at before.
    pub(super) changes: OnceCell<(CheckpointId, Changes)>,
}

impl Prepared {
    /// The work tree's lock, and the repositories inside it with theirs; the work tree's capture goes, and what was lent is
    /// given back.
    pub(in crate::engine) fn into_locks(self) -> (WorktreeLock, Vec<NestedCapture>) {
        let Self {
            lock,
            nested,
            capture,
            loan,
            ..
        } = self;
        drop((capture, loan));
        (lock, nested)
    }
}

/// How much changed since the checkpoint before, and what.
pub(super) type Changes = (ChangeTotals, Vec<RepoPath>);
