//! The settings of a project, as plain data with the documented defaults: one file a section or two.
//!
//! The pure functions of the policy and the operations of the engine take these; where they come from (a file, the
//! environment, a flag) is the business of `config`. Every `Default` here is the default of the documentation: the
//! template and the reference are made from it.

mod agent;
mod redact;
mod retry;
mod rule;
mod run;
mod storage;
mod text;
mod user;

use serde::{Deserialize, Serialize};

use crate::model::feedback::FeedbackLoop;

pub(crate) use agent::AgentProfile;
pub(crate) use redact::RedactSettings;
pub use retry::RetrySettings;
pub(crate) use retry::{CauseSettings, DelayKind, DelaySettings, Jitter, OnGiveUp};
pub(crate) use rule::UserRule;
pub(crate) use run::{
    AUTO, ChecksSettings, CommandLine, CooldownSettings, Leftovers, ManualFixSettings,
    RollbackSettings, RunSettings, RunnerSettings, SafeMode,
};
pub(crate) use storage::{
    AcceptSettings, CaptureSettings, CheckpointSettings, DEFAULT_LANE_FILE, MemorySettings,
    OnRunFailure, RetentionSettings,
};
pub(crate) use user::{
    ColorWhen, FilteredFiles, NotifyEvent, NotifySettings, RemoteMode, RemoteSettings, UiSettings,
};

/// The settings that hold for one project (or one task of it) and its user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// Whether an agent that is started by its profile skips all its permissions, as with `--yolo`.
    pub skip_permissions: bool,
    /// Budgets and delays.
    pub retry: RetrySettings,
    /// The pause after an error.
    pub cooldown: CooldownSettings,
    /// What may be restored without being asked.
    pub rollback: RollbackSettings,
    /// What a checkpoint captures, when, and how it is kept.
    pub checkpoint: CheckpointSettings,
    /// Which ignored files have copies beside the checkpoints.
    #[serde(default)]
    pub capture: CaptureSettings,
    /// Which checkpoints are removed.
    pub retention: RetentionSettings,
    /// What `accept` leaves out.
    #[serde(default)]
    pub accept: AcceptSettings,
    /// The loop's own state files.
    pub memory: MemorySettings,
    /// Watching a person's fix.
    pub manual_fix: ManualFixSettings,
    /// The supervised command.
    pub runner: RunnerSettings,
    /// One supervised run.
    pub run: RunSettings,
    /// What is examined beside the feedback loops' exit codes.
    pub checks: ChecksSettings,
    /// What is masked beside the usual secrets.
    #[serde(default)]
    pub redact: RedactSettings,
    /// Commands that must pass.
    #[serde(default)]
    pub feedback: Vec<FeedbackLoop>,
    /// The project's own classification rules, before the built-in ones.
    #[serde(default, rename = "rule")]
    pub rules: Vec<UserRule>,
    /// What is started when something happens in a run.
    pub notify: NotifySettings,
    /// The git remote that keeps a run beyond this machine.
    pub remote: RemoteSettings,
    /// How text looks.
    pub ui: UiSettings,
}
