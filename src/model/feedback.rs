//! Checks: the configured commands that must pass (`feedback` in the configuration and JSON), and what they said.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantNames};

use super::path::FolderId;
use super::time::millis;

/// A configured command that must pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackLoop {
    /// Its name, unique in a run (`test`, `lint`, …).
    pub name: String,
    /// The shell command.
    pub command: String,
    /// Which stage it is; guessed from the name and the command where it is not configured.
    pub kind: CheckKind,
    /// Where it starts, relative to the work tree; empty for its root.
    #[serde(default, skip_serializing_if = "FolderId::is_empty")]
    pub dir: FolderId,
    /// How long it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// What one feedback loop said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FeedbackResult {
    /// Whether it exited with 0 in time.
    pub passed: bool,
    /// Exit status; `None` after a signal or a deadline.
    pub exit_code: Option<i32>,
    /// How long it took.
    #[serde(rename = "duration_ms", with = "millis")]
    #[schemars(with = "u64")]
    pub duration: Duration,
    /// One line for people ("8 passed, 0 failed").
    pub summary: String,
    /// How many checks passed, where the output shows.
    pub passed_count: Option<u64>,
    /// How many checks failed, where the output shows.
    pub failed_count: Option<u64>,
    /// Whether it failed first and passed when it was run again unchanged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flaky: bool,
    /// Whether the command could not be started (not found, no run bit): nothing is known of the work.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub missing: bool,
}

/// Results by the loop's name.
pub(crate) type FeedbackResults = BTreeMap<String, FeedbackResult>;

/// What was running when something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
#[derive(IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum CheckKind {
    /// The agent itself.
    Agent,
    /// Building, or preparing the work tree.
    Build,
    /// Tests.
    Test,
    /// Lints and formatting.
    Lint,
    /// A dedicated type checker.
    Typecheck,
}
