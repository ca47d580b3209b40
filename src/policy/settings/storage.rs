//! Settings of what is captured, accepted and retained: checkpoints, the vault, the loop's own files (L3, S5, S13, S14).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::StorageType;

/// Where the lane records are by default; it follows the state directory.
pub(crate) const DEFAULT_LANE_FILE: &str = ".ultraplan/state/checkpoints.json";

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY: u64 = 86_400;

/// What a checkpoint captures, when, and how it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckpointSettings {
    /// false: none at an interval, after operations or by hooks. A run's start, its attempts' ends and a restore have
    /// theirs.
    pub enabled: bool,
    /// Commit each successful iteration on the branch.
    pub auto_commit: bool,
    /// snapshot: a hidden commit; commit: also one on the branch; patch: also a patch file.
    pub storage: StorageType,
    /// Where the lane records are, relative to the project root.
    pub lane_file: String,
    /// Untracked files over this are left out and listed.
    #[schemars(extend("kind" = "size"))]
    pub max_file_size: u64,
    /// More untracked files than this are refused (ten times as many without a repository); of what an attempt made,
    /// the largest folders are left out.
    pub max_untracked_files: u64,
    /// More bytes in untracked files than this are refused (ten times as many without a repository); of what an attempt
    /// made, the largest folders are left out.
    #[schemars(extend("kind" = "size"))]
    pub max_untracked_bytes: u64,
    /// Ignored paths to capture all the same.
    #[schemars(extend("kind" = "glob"))]
    pub include: Vec<String>,
    /// Paths to leave out; they are never overwritten or deleted either.
    #[schemars(extend("kind" = "glob"))]
    pub exclude: Vec<String>,
    /// A checkpoint is due when the latest is this old: during attempts, in hooks, --if-due.
    #[serde(with = "super::OptionalDuration")]
    pub interval: Option<Duration>,
    /// One is due after this many operations too: steps, an agent's commands, --if-due --trigger operation.
    #[schemars(range(min = 1))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaptureSettings {
    /// These files, at any depth: up to 1 MiB each, 100 of them; none where CI is set.
    #[schemars(extend("kind" = "glob"))]
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

/// The copy of the repository outside of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VaultSettings {
    /// Keep one; there is none where CI is set, or where its folder would be in memory or in an overlay.
    pub enabled: bool,
    /// The folder of all vaults, by default `$XDG_STATE_HOME/recover/vault`.
    #[schemars(extend("kind" = "place"))]
    pub dir: Option<String>,
    /// How long a vault stays whose repository is gone.
    #[serde(with = "super::DurationText")]
    pub keep_gone: Duration,
}

impl Default for VaultSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            dir: None,
            keep_gone: Duration::from_secs(30 * 24 * 3600),
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AcceptSettings {
    /// New files over this are committed only with --include PATH.
    #[schemars(extend("kind" = "size"))]
    pub max_new_file: u64,
    /// New files that are not committed, unless --include names one.
    #[schemars(extend("kind" = "glob"))]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnRunFailure {
    /// All of them stay.
    #[default]
    KeepAll,
    /// The other limits apply.
    Limits,
}

/// Which checkpoints are removed by `prune` and when a run ends. Protected ones (S14) come before any limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RetentionSettings {
    /// The newest checkpoints, which stay whatever their age.
    pub keep_last: u32,
    /// The others go at this age.
    #[serde(with = "super::OptionalDuration")]
    pub max_age: Option<Duration>,
    /// Checkpoints of one session.
    #[schemars(range(min = 1))]
    pub max_per_session: Option<u32>,
    /// Younger ones with a failed verdict stay.
    pub keep_failed: bool,
    /// Younger ones with a passed verdict stay.
    pub keep_successful: bool,
    /// How long after its end, or after it was accepted or closed, a run keeps all of them.
    #[serde(with = "super::DurationText")]
    pub after_end: Duration,
    /// How many stay then of a run that ended well, milestones aside.
    pub on_success_keep_last: Option<u32>,
    /// Those of a run that failed: `keep_all`, or what the other limits say.
    pub on_failure: OnRunFailure,
    /// How long after its end a run that failed keeps all, unless it is closed.
    #[serde(with = "super::OptionalDuration")]
    pub scheduled_max_age: Option<Duration>,
    /// Tidy up runs that failed at that age; false also sets `scheduled_max_age = "none"`.
    pub scheduled_cleanup: bool,
    /// Bytes that all checkpoints may hold beyond what branches hold (before compression).
    #[schemars(extend("kind" = "size"))]
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemorySettings {
    /// Never rolled back.
    #[schemars(extend("kind" = "glob"))]
    pub long_term: Vec<String>,
    /// Cleared after an error, so that the loop starts afresh.
    #[schemars(extend("kind" = "glob"))]
    pub loop_state: Vec<String>,
    /// More state than this in a checkpoint is an error that names the largest file.
    #[schemars(extend("kind" = "size"))]
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
