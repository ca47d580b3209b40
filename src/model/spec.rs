//! The settings that a run was started with: command, prompt, checks, limits; `resume` uses them again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::check_kind::CheckKind;
use super::feedback::FeedbackLoop;
use super::folder::FolderId;
use super::id::RunId;
use super::launch::Launch;

/// What a run executes, recorded so that `resume` needs no arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "spec")]
pub struct RunSpec {
    /// The command and its arguments; empty for a run whose loop runs its own commands.
    pub command: Vec<String>,
    /// Where the command starts, relative to the work tree; empty for its root.
    #[serde(default, skip_serializing_if = "FolderId::is_empty")]
    pub dir: FolderId,
    /// How many iterations; `None` without a bound (with `until`).
    pub iterations_total: Option<u32>,
    /// The base prompt.
    #[serde(default)]
    pub prompt: Option<String>,
    /// A shell command that ends the run when it passes.
    #[serde(default)]
    pub until: Option<String>,
    /// Where that starts, relative to the work tree.
    #[serde(default, skip_serializing_if = "FolderId::is_empty")]
    pub until_dir: FolderId,
    /// Commands that must pass after the run's command, as the command line gave them.
    #[serde(default)]
    pub feedback: Vec<FeedbackLoop>,
    /// What the configuration added when the run began, and the run keeps; `None` for a run that nothing has supervised yet, or
    /// that began before this was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configured: Option<ConfiguredChecks>,
    /// Deadline of one attempt.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// `--attempts` / `--retries`: overrides every configured limit of this run.
    #[serde(default)]
    pub attempts: Option<u32>,
    /// `--kind`: what the command is, where its programs do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<CheckKind>,
    /// `--agent`.
    #[serde(default)]
    pub agent: Option<String>,
    /// The profile that starts the command; `None` where the command was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<Launch>,
    /// `--on-failure`.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// `--same-session`, `--fresh`.
    #[serde(default, skip_serializing_if = "SessionMode::is_auto")]
    pub session: SessionMode,
    /// What the loop says it tries.
    #[serde(default)]
    pub approach: Option<String>,
    /// What is run once in place of the command when no retry is allowed any more (S9); empty for none.
    #[serde(default)]
    pub fallback: Vec<String>,
    /// Where that starts, relative to the work tree.
    #[serde(default, skip_serializing_if = "FolderId::is_empty")]
    pub fallback_dir: FolderId,
    /// `--notify`: a shell line in place of the configured command that notifies; an empty one notifies nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notify: Option<String>,
    /// The budgets that the run goes on with wherever it is taken up; `None` for one that lies on no remote, whose budgets are
    /// those of the configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<serde_json::Value>,
    /// The run in whose attempt this one was begun: a command that names none is not about this one while there is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<RunId>,
    /// Whether the command gets a terminal of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pty: bool,
    /// The fields above of which a secret was masked, by name: what is run again must not lack it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<String>,
}

/// The checks of the configuration as a run began with them: whoever changes the file while it is at work changes another
/// run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ConfiguredChecks {
    /// What runs a command that is one string.
    pub shell: String,
    /// The checks.
    pub feedback: Vec<FeedbackLoop>,
}

/// Whether an attempt goes on in the agent's session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum SessionMode {
    /// Where nothing was restored since its last turn, and it is about the same iteration.
    #[default]
    Auto,
    /// Always, but after a full context, in which no session goes on.
    Same,
    /// Never.
    Fresh,
}

impl SessionMode {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde's skip_serializing_if passes a reference"
    )]
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// What a failed attempt leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OnFailure {
    /// What the policy decides.
    #[default]
    Policy,
    /// Retry within the budgets, never roll files back.
    Retry,
    /// Roll back to the last good checkpoint, then retry within the budgets.
    Rollback,
    /// Stop and wait for a person's fix.
    ManualFix,
    /// Stop at once; what the policy would do is printed as advice.
    Stop,
}
