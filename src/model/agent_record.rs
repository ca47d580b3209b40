//! What an agent's program said of its own run, as plain data.
//!
//! Only the program's terminal and API-error records count; what it quotes from tools or what the model wrote does not.

use std::ops::Add;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

use super::Timestamp;
use super::failure::EvidenceSource;

/// An agent program whose records are understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case", const_into_str)]
pub enum AgentKind {
    /// Claude Code.
    #[default]
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
    /// Any agent that speaks the Agent Client Protocol.
    Acp,
}

impl AgentKind {
    /// All of them.
    pub const ALL: &[Self] = Self::VARIANTS;

    /// Whether its records ever say what a run cost.
    pub fn tells_cost(self) -> bool {
        matches!(
            self,
            Self::Claude | Self::Opencode | Self::Aider | Self::Acp
        )
    }

    /// Whether its records ever say how many tokens a run used.
    pub fn tells_tokens(self) -> bool {
        self != Self::Copilot
    }

    /// The kind of a program's name, with or without folders.
    pub fn from_name(name: &str) -> Option<Self> {
        let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
        match base.to_ascii_lowercase().as_str() {
            "claude" | "claude-code" | "claude-agent-acp" | "claude-code-acp" => Some(Self::Claude),
            "codex" | "codex-acp" => Some(Self::Codex),
            "gemini" | "gemini-cli" => Some(Self::Gemini),
            "qwen" | "qwen-code" => Some(Self::Qwen),
            "copilot" => Some(Self::Copilot),
            "opencode" | "opencode-ai" => Some(Self::Opencode),
            "aider" | "aider-chat" => Some(Self::Aider),
            "acp" => Some(Self::Acp),
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

/// What a usage limit of an account has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitLeft {
    /// Percent of the limit.
    pub percent: u8,
    /// When it is whole again.
    pub resets_at: Timestamp,
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
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct AgentRecord {
    /// Whose record it is.
    pub kind: AgentKind,
    /// Whether any record was found at all; without one, the text decides.
    pub structured: bool,
    /// Whether a terminal record says that the run ended well.
    pub is_success: bool,
    /// Whether the model gave an answer: said something or called a tool.
    pub answered: bool,
    /// Whether the program says that a user interrupted it.
    pub interrupted: bool,
    /// The error that ended the run.
    pub final_error: Option<AgentError>,
    /// The session to resume.
    pub session_id: Option<String>,
    /// What the run cost in US dollars.
    pub cost_usd: Option<f64>,
    /// Tokens that it used.
    pub tokens: Option<Tokens>,
    /// Whether they are estimated: the run was cut off before its records said them.
    pub is_estimated: bool,
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
    /// What the account's tightest limit has left by the last word on it.
    pub limit_left: Option<LimitLeft>,
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
            ..Self::default()
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

/// Tokens of a model's API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// Read, without those that came from the provider's cache or went into it.
    pub input: u64,
    /// Written, with those of the model's reasoning.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_write: u64,
    /// All together.
    pub total: u64,
}

impl Tokens {
    /// Counts with their total; one that does not fit is as large as can be.
    pub fn new(input: u64, output: u64, cache_read: u64, cache_write: u64) -> Self {
        let total = [output, cache_read, cache_write]
            .into_iter()
            .fold(input, u64::saturating_add);
        Self {
            input,
            output,
            cache_read,
            cache_write,
            total,
        }
    }

    /// What came on top of `earlier`, for records that count from a session's beginning.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self::new(
            self.input.saturating_sub(earlier.input),
            self.output.saturating_sub(earlier.output),
            self.cache_read.saturating_sub(earlier.cache_read),
            self.cache_write.saturating_sub(earlier.cache_write),
        )
    }
}

impl Add for Tokens {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self::new(
            self.input.saturating_add(other.input),
            self.output.saturating_add(other.output),
            self.cache_read.saturating_add(other.cache_read),
            self.cache_write.saturating_add(other.cache_write),
        )
    }
}

/// Cost and tokens; each is `None` where no record says any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Millionths of a US dollar.
    pub cost_micros: Option<u64>,
    /// Tokens.
    pub tokens: Option<Tokens>,
}

impl Usage {
    /// Dollars.
    #[allow(clippy::cast_precision_loss, reason = "money that is printed")]
    pub fn cost_usd(self) -> Option<f64> {
        self.cost_micros.map(|micros| micros as f64 / 1e6)
    }

    /// What came on top of `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let cost = self
            .cost_micros
            .map(|cost| cost.saturating_sub(earlier.cost_micros.unwrap_or(0)));
        let tokens = self
            .tokens
            .map(|tokens| tokens.since(earlier.tokens.unwrap_or_default()));
        Self {
            cost_micros: cost,
            tokens,
        }
    }

    /// `$0.60, 12.3k tokens`; `None` where nothing is known.
    pub fn text(self) -> Option<String> {
        usage_text(self.cost_usd(), self.tokens)
    }
}

/// Cost and tokens in documents, each `null` where no record says any.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct UsageFields {
    pub cost_usd: Option<f64>,
    pub tokens: Option<Tokens>,
}

impl From<Usage> for UsageFields {
    fn from(usage: Usage) -> Self {
        Self {
            cost_usd: usage.cost_usd(),
            tokens: usage.tokens,
        }
    }
}

/// Dollars and tokens in words; `None` where nothing is known.
pub(crate) fn usage_text(cost_usd: Option<f64>, tokens: Option<Tokens>) -> Option<String> {
    let cost = cost_usd.map(|cost| format!("${cost:.2}"));
    let tokens = tokens.map(|tokens| format!("{} tokens", short_count(tokens.total)));
    match (cost, tokens) {
        (Some(cost), Some(tokens)) => Some(format!("{cost}, {tokens}")),
        (one, other) => one.or(other),
    }
}

impl Add for Usage {
    type Output = Self;

    /// What is known of one counts where the other is unknown.
    fn add(self, other: Self) -> Self {
        fn both<T>(one: Option<T>, other: Option<T>, add: impl Fn(T, T) -> T) -> Option<T> {
            match (one, other) {
                (Some(one), Some(other)) => Some(add(one, other)),
                (one, other) => one.or(other),
            }
        }
        Self {
            cost_micros: both(self.cost_micros, other.cost_micros, u64::saturating_add),
            tokens: both(self.tokens, other.tokens, Tokens::add),
        }
    }
}

impl std::iter::Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), Self::add)
    }
}

/// A count in three figures or so: `999`, `12.3k`, `4.56M`.
pub(crate) fn short_count(count: u64) -> String {
    let in_units = |unit: u64, name: &str| {
        let tenths = count / (unit / 10);
        format!("{}.{}{name}", tenths / 10, tenths % 10)
    };
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => in_units(1_000, "k"),
        1_000_000..1_000_000_000 => in_units(1_000_000, "M"),
        _ => in_units(1_000_000_000, "G"),
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

#[cfg(test)]
mod usage_tests {
    use super::*;

    #[test]
    fn unknown_usage_stays_unknown_and_known_usage_adds_up() {
        let known = Usage {
            cost_micros: Some(600_000),
            tokens: Some(Tokens::new(1, 20, 300, 4_000)),
        };
        assert_eq!(Usage::default() + Usage::default(), Usage::default());
        assert_eq!(Usage::default() + known, known);
        assert_eq!((known + known).tokens.unwrap().total, 8_642);
        assert_eq!(known.text().unwrap(), "$0.60, 4.3k tokens");
        assert_eq!(Usage::default().text(), None);
        assert_eq!(
            known.tokens.unwrap().since(Tokens::new(1, 10, 0, 5_000)),
            Tokens::new(0, 10, 300, 0)
        );
    }

    #[test]
    fn counts_are_cut_to_a_few_figures() {
        let texts = [0, 999, 1_000, 12_345, 999_999, 1_000_000, 4_567_000_000].map(short_count);
        assert_eq!(
            texts,
            ["0", "999", "1.0k", "12.3k", "999.9k", "1.0M", "4.5G"]
        );
    }
}
