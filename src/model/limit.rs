//! A limit or an outage of an agent's provider that holds every run of this machine which uses the same account.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Timestamp;
use super::failure::Weather;

/// The version of the files' form.
pub(crate) const LIMIT_SCHEMA: u32 = 1;

/// A limit that was met, as its file has it. Nothing in it is a secret: the account is a keyed checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Limit {
    pub schema: u32,
    pub scope: LimitScope,
    pub reason: Weather,
    /// What it was in a word or two: `usage limit`, `529`.
    pub what: String,
    pub met_at: Timestamp,
    pub met_by: RunPlace,
    /// No attempt begins before this.
    pub until: Timestamp,
    /// When an attempt after that first had an answer of the model.
    pub through_at: Option<Timestamp>,
    /// The run that began last of those that waited, and when.
    pub last: Option<(Timestamp, RunPlace)>,
}

/// What a limit is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LimitScope {
    pub agent: String,
    /// A keyed checksum of what the agent logs in with.
    pub account: String,
    /// The family of models that it is about; `None`: all.
    pub model: Option<String>,
    /// The run that met it named no model, so that it holds those that name none either.
    pub is_default_model: bool,
}

/// A run, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "run_place")]
pub(crate) struct RunPlace {
    pub run: String,
    /// Absolute path of its work tree.
    pub worktree: String,
}
