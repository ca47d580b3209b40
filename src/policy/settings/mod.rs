//! The settings of a project, as plain data with the documented defaults: one file for retries, one for everything else of a run.
//!
//! The pure functions of the policy and the operations of the engine take these; where they come from (a file, the
//! environment, a flag) is the business of `config`. Every `Default` here is the default of the documentation: the
//! template and the reference are made from it.

mod retry;
mod run;

pub use retry::RetrySettings;
pub(crate) use retry::{CauseSettings, DelayKind, DelaySettings, Jitter, OnGiveUp};
pub(crate) use run::{
    AUTO, AcceptSettings, AgentProfile, CaptureSettings, CheckpointSettings, ChecksSettings,
    ColorWhen, CommandLine, CooldownSettings, DEFAULT_LANE_FILE, FilteredFiles, Leftovers,
    ManualFixSettings, MemorySettings, NotifyEvent, NotifySettings, OnRunFailure, RemoteMode,
    RemoteSettings, RetentionSettings, RollbackSettings, RunSettings, RunnerSettings, SafeMode,
    UiSettings,
};

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::failure::{Cause, EvidenceSource, FailureType};
use crate::model::feedback::{CheckKind, FeedbackLoop};
use crate::model::time::{format_duration, parse_duration};

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

/// A classification rule of the project: the first match wins, before the built-in rules of the same source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRule {
    /// Its name in `--explain`.
    pub id: String,
    /// A regular expression, checked when it was read; matched against one line.
    pub pattern: String,
    /// Where to look; everywhere when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<EvidenceSource>,
    /// Only for this stage; for every stage when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<CheckKind>,
    /// The failure's type; by the cause and the stage when absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureType>,
    /// The failure's cause.
    pub cause: Cause,
    /// Whether the very same again plausibly succeeds; by the cause when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}

/// Additions to what is masked wherever it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedactSettings {
    /// Regular expressions; all that one matches is masked.
    pub patterns: Vec<String>,
    /// Variables of the environment whose values are masked, whatever they are called.
    pub variables: Vec<String>,
}

fn parse<E: serde::de::Error>(text: &str) -> Result<Duration, E> {
    parse_duration(text).map_err(E::custom)
}

/// A duration that is always there.
pub(crate) mod duration {
    use super::{Deserialize, Deserializer, Duration, Serializer, format_duration, parse};

    /// Writes `30s`.
    pub(crate) fn serialize<S: Serializer>(
        value: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_duration(*value))
    }

    /// Reads `30s`.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        parse(&String::deserialize(deserializer)?)
    }
}

/// A duration that may be absent (`null`).
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Duration, Serializer, format_duration, parse};

    /// Writes `30s` or null.
    // The signature is serde's: a field is handed over by reference.
    #[allow(clippy::ref_option)]
    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.serialize_str(&format_duration(*duration)),
            None => serializer.serialize_none(),
        }
    }

    /// Reads `30s` or null.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Option::<String>::deserialize(deserializer)?
            .map(|text| parse(&text))
            .transpose()
    }
}
