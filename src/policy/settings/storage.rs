//! Settings of checkpoints: what they capture, how they are kept, and for how long (B12, B14, S10, S13, S14).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text;
use crate::model::checkpoint::StorageType;

/// Where the lane records are by default; it follows the state directory.
pub(crate) const DEFAULT_LANE_FILE: &str = ".ultraplan/state/checkpoints.json";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY: u64 = 86_400;

/// What a checkpoint captures, when, and how it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointSettings {
    /// Whether the automatic triggers of S10 take checkpoints: the interval, operations, the hooks of agents and git. Those at
    /// a run's start, at an attempt's end and before a restore or an atomic step are always taken: a rollback, a decision
    /// and an undo need them. So is what is asked for, `--if-due` too.
    pub enabled: bool,
    /// Whether a successful iteration becomes a commit on the branch.
    pub auto_commit: bool,
    /// How a checkpoint is kept; see [`Self::effective_storage`].
    pub storage: StorageType,
    /// Where the lane records are, relative to the project root (C1).
    pub lane_file: String,
    /// Bytes over which an untracked file is left out.
    pub max_file_size: u64,
    /// Untracked files over which a capture is refused.
    pub max_untracked_files: u64,
    /// Bytes of untracked files over which a capture is refused.
    pub max_untracked_bytes: u64,
    /// Globs of ignored paths that are captured all the same.
    pub include: Vec<String>,
    /// Globs of paths that are left out.
    pub exclude: Vec<String>,
    /// How old the latest checkpoint gets before another is due (S10).
    #[serde(with = "text::optional")]
    pub interval: Option<Duration>,
    /// After how many recorded operations a checkpoint is due (S10).
    pub every_operations: Option<u32>,
}

impl Default for CheckpointSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            auto_commit: false,
            storage: StorageType::Snapshot,
            lane_file: DEFAULT_LANE_FILE.to_owned(),
            max_file_size: 50 * MIB,
            max_untracked_files: 20_000,
            max_untracked_bytes: GIB,
            include: Vec::new(),
            exclude: Vec::new(),
            interval: Some(Duration::from_secs(300)),
            every_operations: Some(10),
        }
    }
}

/// Which ignored files have copies beside the checkpoints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureSettings {
    /// Globs of those files, at any depth. The copies are never part of a checkpoint.
    pub precious: Vec<String>,
}

impl Default for CaptureSettings {
    /// What holds a developer's own settings, and secrets, by convention.
    fn default() -> Self {
        Self {
            precious: [".env", ".env.*", "*.local", "*.local.*", ".envrc"]
                .map(str::to_owned)
                .into(),
        }
    }
}

impl CheckpointSettings {
    /// The storage that `storage` and `auto_commit` amount to: with `auto_commit`, a snapshot is a commit as well.
    pub fn effective_storage(&self) -> StorageType {
        match self.storage {
            StorageType::Snapshot if self.auto_commit => StorageType::Commit,
            storage => storage,
        }
    }
}

/// What `accept` leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptSettings {
    /// Bytes over which a new file is committed only by its own name.
    pub max_new_file: u64,
    /// Globs of new files that are never committed unasked.
    pub leave_out: Vec<String>,
}

impl Default for AcceptSettings {
    fn default() -> Self {
        Self {
            max_new_file: MIB,
            leave_out: Vec::new(),
        }
    }
}

/// What happens to the checkpoints of a run that failed (S13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnRunFailure {
    /// All of them stay.
    #[default]
    KeepAll,
    /// The other limits apply.
    Limits,
}

/// Which checkpoints are removed by `prune` and when a run ends. Protected ones (S14) come before any limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionSettings {
    /// The newest ones that always stay.
    pub keep_last: u32,
    /// Age from which the others go.
    #[serde(with = "text::optional")]
    pub max_age: Option<Duration>,
    /// Checkpoints of one session.
    pub max_per_session: Option<u32>,
    /// Whether younger ones with a failed verdict stay.
    pub keep_failed: bool,
    /// Whether younger ones with a passed verdict stay.
    pub keep_successful: bool,
    /// How long after its end a run that ended well keeps all of them.
    #[serde(with = "text::duration")]
    pub after_end: Duration,
    /// How many of a run that ended well stay then, milestones aside.
    pub on_success_keep_last: Option<u32>,
    /// What happens to those of a run that failed.
    pub on_failure: OnRunFailure,
    /// How long after its end even a run that failed keeps all of them.
    #[serde(with = "text::optional")]
    pub scheduled_max_age: Option<Duration>,
    /// Whether that happens at all; the age says so too.
    pub scheduled_cleanup: bool,
    /// Bytes that all of them together may hold beyond what branches hold, uncompressed.
    pub max_total_size: Option<u64>,
}

impl Default for RetentionSettings {
    fn default() -> Self {
        Self {
            keep_last: 10,
            max_age: Some(Duration::from_secs(7 * DAY)),
            max_per_session: Some(20),
            keep_failed: true,
            keep_successful: true,
            after_end: Duration::from_secs(7 * DAY),
            on_success_keep_last: Some(3),
            on_failure: OnRunFailure::KeepAll,
            scheduled_max_age: Some(Duration::from_secs(30 * DAY)),
            scheduled_cleanup: true,
            max_total_size: Some(5 * GIB),
        }
    }
}

/// The loop's own state files, as globs below the state directory (S5, L3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorySettings {
    /// Never rolled back.
    pub long_term: Vec<String>,
    /// Cleared after an error, so that the loop starts afresh.
    pub loop_state: Vec<String>,
    /// Bytes of state in a checkpoint over which it is an error (S2).
    pub max_state_size: u64,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            long_term: Vec::new(),
            loop_state: Vec::new(),
            max_state_size: 100 * KIB,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auto_commit_makes_a_snapshot_a_commit_b12() {
        let plain = CheckpointSettings::default();
        assert_eq!(plain.effective_storage(), StorageType::Snapshot);
        assert_eq!(
            CheckpointSettings {
                auto_commit: true,
                ..plain.clone()
            }
            .effective_storage(),
            StorageType::Commit
        );
        let patch = CheckpointSettings {
            auto_commit: true,
            storage: StorageType::Patch,
            ..plain
        };
        assert_eq!(patch.effective_storage(), StorageType::Patch);
    }
}
