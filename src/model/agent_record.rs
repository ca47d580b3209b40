//! What an agent's program said of its own run, as plain data.
//!
//! Only the program's terminal and API-error records count; what it quotes from tools or what the model wrote does not.

use super::failure::EvidenceSource;
use super::usage::{Tokens, Usage};

/// An agent program whose records are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentKind {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// Qwen Code.
    Qwen,
    /// GitHub Copilot CLI.
    Copilot,
    /// aider, which writes no records at all.
    Aider,
}

impl AgentKind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Opencode,
        Self::Qwen,
        Self::Copilot,
        Self::Aider,
    ];

    /// The program's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Qwen => "qwen",
            Self::Copilot => "copilot",
            Self::Aider => "aider",
        }
    }

    /// Whether its records ever say what a run cost.
    pub fn tells_cost(self) -> bool {
        matches!(self, Self::Claude | Self::Opencode | Self::Aider)
    }

    /// Whether its records ever say how many tokens a run used.
    pub fn tells_tokens(self) -> bool {
        self != Self::Copilot
    }

    /// The kind of a program's name, with or without folders.
    pub fn from_name(name: &str) -> Option<Self> {
        let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
        match base.to_ascii_lowercase().as_str() {
            "claude" | "claude-code" => Some(Self::Claude),
            "codex" => Some(Self::Codex),
            "gemini" | "gemini-cli" => Some(Self::Gemini),
            "qwen" | "qwen-code" => Some(Self::Qwen),
            "copilot" => Some(Self::Copilot),
            "opencode" | "opencode-ai" => Some(Self::Opencode),
            "aider" | "aider-chat" => Some(Self::Aider),
            _ => None,
        }
    }
}

/// Longest id of a session, in bytes.
const MAX_SESSION_ID: usize = 128;

/// Whether a text can be the id of a session. It becomes a word of a command line, and whatever can write to the agent's
/// output can name one: what could be a flag, a path or several words is none.
pub fn is_session_id(text: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    text.len() <= MAX_SESSION_ID
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.bytes().all(is_plain)
}

/// The error that ended an agent's run, in its own words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentError {
    /// The text.
    pub message: String,
    /// A machine-readable name (`rate_limit`, `error_max_turns`, `ProviderAuthError`, …).
    pub code: Option<String>,
    /// The HTTP status of the API, where it is named.
    pub status: Option<u16>,
    /// The stream that held it.
    pub source: EvidenceSource,
    /// 1-based line in that stream.
    pub line: u64,
}

/// What an agent's program recorded of one run.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct AgentRecord {
    /// Whose record it is.
    pub kind: AgentKind,
    /// Whether any record was found at all; without one, the text decides.
    pub structured: bool,
    /// Whether a terminal record says that the run ended well.
    pub is_success: bool,
    /// Whether the program says that somebody interrupted it.
    pub interrupted: bool,
    /// The error that ended the run.
    pub final_error: Option<AgentError>,
    /// The session to resume.
    pub session_id: Option<String>,
    /// What the run cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens that it used.
    pub tokens: Option<Tokens>,
    /// Whether cost and tokens count from the session's beginning, also where the run went on in an earlier one.
    pub is_of_session: bool,
    /// Tokens that the run itself used at least, where those of the session say more.
    pub own_tokens: Option<Tokens>,
    /// How many turns it took.
    pub turns: Option<u64>,
    /// Seconds to wait, as the API asked.
    pub retry_after_seconds: Option<u64>,
    /// When a usage limit resets, in seconds since the Unix epoch.
    pub resets_at: Option<i64>,
    /// Tools that the run was not allowed to use.
    pub permission_denials: Vec<String>,
    /// The last text of the run.
    pub final_text: Option<String>,
    /// What the last tool that failed said.
    pub tool_error: Option<String>,
}

impl AgentRecord {
    /// A record that says nothing yet.
    pub fn new(kind: AgentKind) -> Self {
        Self {
            kind,
            structured: false,
            is_success: false,
            interrupted: false,
            final_error: None,
            session_id: None,
            cost_usd: None,
            tokens: None,
            is_of_session: false,
            own_tokens: None,
            turns: None,
            retry_after_seconds: None,
            resets_at: None,
            permission_denials: Vec::new(),
            final_text: None,
            tool_error: None,
        }
    }

    /// Cost and tokens; what is no sensible amount is no cost.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of a float saturates"
    )]
    pub fn usage(&self) -> Usage {
        let sensible = self
            .cost_usd
            .filter(|dollars| dollars.is_finite() && *dollars >= 0.0);
        Usage {
            cost_micros: sensible.map(|dollars| (dollars * 1e6).round() as u64),
            tokens: self.tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_one_plain_word() {
        for id in [
            "23026e54-3f3e-46db-ae7d-378332e55ada",
            "ses_abc123",
            "01a20944-4b29-7e60",
            "7",
        ] {
            assert!(is_session_id(id), "{id}");
        }
        let long = "a".repeat(129);
        for id in [
            "",
            "-",
            "--dangerously-skip-permissions",
            "a b",
            "a\0",
            "../x",
            "$(x)",
            "a\n",
            "ä",
            long.as_str(),
        ] {
            assert!(!is_session_id(id), "{id:?}");
        }
    }
}
