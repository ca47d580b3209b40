//! The kinds of checks (test, lint, typecheck, build) and the agent itself: what was running when something failed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The stage that was running when something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum LoopKind {
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

impl LoopKind {
    /// The contract's name of it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Build => "build",
            Self::Test => "test",
            Self::Lint => "lint",
            Self::Typecheck => "typecheck",
        }
    }
}
