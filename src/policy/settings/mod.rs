//! The settings of a project, as plain data with the documented defaults: one file for retries, one for everything else of a run.
//!
//! The pure functions of the policy and the operations of the engine take these; where they come from (a file, the
//! environment, a flag) is the business of `config`. Every `Default` here is the default of the documentation: the
//! template and the reference are made from it.

mod retry;
mod run;
mod storage;

pub use retry::RetrySettings;
pub(crate) use retry::{
    CauseSettings, DelayKind, DelaySettings, Jitter, OnGiveUp, WeatherSettings,
};
pub(crate) use run::{
    AUTO, AgentProfile, ChecksSettings, ColorWhen, CommandLine, CooldownSettings, FilteredFiles,
    IsolatedSettings, Leftovers, ManualFixSettings, NotifyEvent, NotifySettings, OtelSettings,
    RemoteMode, RemoteSettings, RollbackSettings, RunSettings, RunnerSettings, SafeMode,
    StoreSettings, UiSettings,
};
pub(crate) use storage::{
    AcceptSettings, CaptureSettings, CheckpointSettings, DEFAULT_LANE_FILE, MemorySettings,
    OnRunFailure, RetentionSettings, VaultSettings,
};

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::failure::EvidenceSource;
use crate::model::time::{format_duration, parse_duration};
use crate::model::{Cause, CheckKind, FailureType, FeedbackLoop};

/// The settings that hold for one project (or one task of it) and its user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Settings {
    /// Defaults of a kind of run: battle, loop, actions, state or lane; keys below go before them.
    #[schemars(extend("enum" = ["battle", "loop", "actions", "state", "lane"]))]
    pub preset: Option<String>,
    /// An agent that is started by its profile skips all its permissions, as with --yolo; the user's own value goes
    /// before a project's.
    pub skip_permissions: bool,
    /// How often and how fast to try again. Limits count failed attempts, the first included.
    pub retry: RetrySettings,
    /// Waiting for limits, outages of the agent's provider and the network.
    pub weather: WeatherSettings,
    /// The pause after an error.
    pub cooldown: CooldownSettings,
    /// What may be restored without asking. Every restore can be undone.
    pub rollback: RollbackSettings,
    /// What a checkpoint captures, when, and how it is kept.
    pub checkpoint: CheckpointSettings,
    /// Ignored files that have copies in .git/recover, never in a commit.
    pub capture: CaptureSettings,
    /// Which checkpoints prune and the end of runs remove. Pinned ones, milestones and what undo needs stay.
    pub retention: RetentionSettings,
    /// What recover accept leaves out of its commits, besides what looks like a secret.
    pub accept: AcceptSettings,
    /// The loop's own state files: globs below the state directory.
    pub memory: MemorySettings,
    /// Watching a person's fix.
    pub manual_fix: ManualFixSettings,
    /// The supervised command.
    pub runner: RunnerSettings,
    /// One supervised run.
    pub run: RunSettings,
    /// The work tree of a run with --isolated, beside what git has of it.
    pub isolated: IsolatedSettings,
    /// What is checked besides the exit codes of the feedback commands.
    pub checks: ChecksSettings,
    /// What is masked wherever it is shown, beside the usual secrets; every file adds to it.
    pub redact: RedactSettings,
    /// Checks: commands that must pass, in this order.
    pub feedback: Vec<FeedbackLoop>,
    /// Classification rules, tried before the built-in ones; the first match wins.
    #[serde(rename = "rule")]
    pub rules: Vec<UserRule>,
    /// What is started when something happens in a run: it reads the document notify of recover-json(7),
    /// `RECOVER_SUMMARY` is a line for people, `RECOVER_EVENT` and `RECOVER_RUN_ID` are what happened and where.
    pub notify: NotifySettings,
    /// The remote that keeps a run beyond this machine.
    pub remote: RemoteSettings,
    /// Where the trace of a run is sent when it has ended.
    pub otel: OtelSettings,
    /// How text looks.
    pub ui: UiSettings,
    /// The copy of the repository outside of it, for when an agent removes the folder. Only in your own configuration.
    pub vault: VaultSettings,
}

/// The types of failures by name; one has a second name.
const FAILURE_TYPES: [&str; 7] = [
    "feedback_failure",
    "timeout",
    "agent_error",
    "claude_error",
    "system_error",
    "cancellation",
    "crash",
];

/// A classification rule of the project: the first match wins, before the built-in rules of the same source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UserRule {
    /// Its name in classify --explain; unique.
    #[schemars(example = "registry-down")]
    pub id: String,
    /// A regular expression for one line.
    #[schemars(extend("kind" = "regex"), example = r"registry\.example\.com.*unreachable")]
    pub pattern: String,
    /// Where to look; everywhere when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"stderr")]
    pub source: Option<EvidenceSource>,
    /// Only in this stage (or loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"build")]
    pub stage: Option<CheckKind>,
    /// The failure's type; by the cause when absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = FAILURE_TYPES), example = &"system_error")]
    pub kind: Option<FailureType>,
    /// The failure's cause.
    #[schemars(example = &"NETWORK_ERROR")]
    pub cause: Cause,
    /// Whether the very same again plausibly succeeds; by the cause when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(example = true)]
    pub retryable: Option<bool>,
}

/// Additions to what is masked wherever it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RedactSettings {
    /// Regular expressions; all that one matches is masked.
    #[schemars(extend("kind" = "mask"), extend("adds" = true))]
    pub patterns: Vec<String>,
    /// Environment variables whose values are masked, whatever they are called.
    #[schemars(extend("kind" = "variable"), extend("adds" = true))]
    pub variables: Vec<String>,
}

/// A duration as the configuration and its JSON have it: `30s`.
pub(crate) struct DurationText;

impl DurationText {
    fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_duration(*value))
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        parse_duration(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "kind": "duration" })
    }
}

/// Durations, at least one, none of them zero.
pub(crate) struct DurationList;

impl DurationList {
    fn serialize<S: Serializer>(value: &[Duration], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(value.iter().copied().map(format_duration))
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Duration>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let parsed = texts.iter().map(|text| parse_duration(text));
        parsed.collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

impl JsonSchema for DurationList {
    fn schema_name() -> Cow<'static, str> {
        "durations".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": { "type": "string", "kind": "duration" } })
    }
}

/// A duration that may be absent (`null`).
pub(crate) struct OptionalDuration;

impl OptionalDuration {
    // The signature is serde's: a field is handed over by reference.
    #[allow(clippy::ref_option)]
    fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(format_duration).serialize(serializer)
    }

    fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| parse_duration(&text).map_err(D::Error::custom))
            .transpose()
    }
}

impl JsonSchema for OptionalDuration {
    fn schema_name() -> Cow<'static, str> {
        "optional_duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "null"], "kind": "duration" })
    }
}
