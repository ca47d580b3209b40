//! What an agent's hook (or git's) reports: one moment of a session, in the same words for every agent.

use schemars::JsonSchema;
use serde::Serialize;
use strum::{IntoStaticStr, VariantArray};

/// Who calls the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum HookAgent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// git itself.
    Git,
}

impl HookAgent {
    /// All of them.
    pub const ALL: &[Self] = Self::VARIANTS;
}

/// A tool that the agent is about to use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ToolCall {
    /// Its name, in the agent's words.
    #[serde(rename = "tool")]
    pub name: String,
    /// The shell command, where it runs one.
    #[serde(skip)]
    pub command: Option<String>,
    /// The file, where it is about one.
    #[serde(skip)]
    pub path: Option<String>,
}

// An agent's turn ended by an error of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct TurnFailure {
    /// The program's word for it (`rate_limit`, `server_error`, …).
    #[serde(skip)]
    pub error: Option<String>,
    /// What it says of it.
    #[serde(skip)]
    pub details: Option<String>,
    /// The last thing the agent said.
    #[serde(skip)]
    pub last_message: Option<String>,
}

/// What happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "hook_moment")]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Moment {
    /// A tool is about to be used.
    BeforeTool(ToolCall),
    /// A prompt was given to the agent.
    Prompt,
    /// The agent has finished its turn.
    TurnEnded {
        /// Whether a hook made it go on before.
        stop_hook_active: bool,
    },
    /// The turn ended by an error.
    TurnFailed(TurnFailure),
    /// The conversation is about to be shortened.
    Compacting,
    /// The session is over.
    SessionEnded,
    /// git is about to do this (`pre-rebase`, `pre-push`).
    Git {
        /// The name of git's hook.
        hook: String,
    },
    /// Something else, of this name: nothing is done about it.
    Other {
        /// In the agent's words.
        event: String,
    },
}

/// One call of the hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookEvent {
    /// The agent's session.
    pub session_id: Option<String>,
    /// The folder that the agent works in.
    pub cwd: Option<String>,
    /// What happens.
    pub moment: Moment,
}
