//! The kinds of checks (test, lint, typecheck, build), and the agent: what was running when something failed.
//!
//! It is guessed in `policy::classify::stage`, and weighed in `policy::classify::feedback`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was running when something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
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

impl CheckKind {
    /// The contract's names.
    pub const NAMES: [&str; 5] = [
        Self::Agent.as_str(),
        Self::Build.as_str(),
        Self::Test.as_str(),
        Self::Lint.as_str(),
        Self::Typecheck.as_str(),
    ];

    /// The contract's name of it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Build => "build",
            Self::Test => "test",
            Self::Lint => "lint",
            Self::Typecheck => "typecheck",
        }
    }
}
