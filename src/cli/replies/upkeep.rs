//! Replies of the commands beside runs and checkpoints: `config`, `report`, `import`, `trust`, `help` for programs.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::engine::flow::agents::Agent;
use crate::engine::flow::import::ImportedFile;
use crate::engine::flow::project_trust::GuardedValue;
use crate::engine::flow::trust::StateReport;
use crate::model::check_kind::CheckKind;
use crate::policy::project::Suggested;
use crate::policy::report::Report;

use super::super::args::ReportFormat;

/// A file that was written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InitReply<'a> {
    pub changed: bool,
    pub path: Cow<'a, str>,
    /// What was found: checks that fit the project, in the order in which they run.
    pub checks: Vec<InitCheck<'a>>,
    /// The agents whose settings lie here.
    pub agents: &'a [&'static str],
}

/// A check that fits the project.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct InitCheck<'a> {
    pub kind: CheckKind,
    pub command: &'a str,
    /// The file that says so.
    pub found: &'static str,
}

impl<'a> From<&'a Suggested> for InitCheck<'a> {
    fn from(check: &'a Suggested) -> Self {
        Self {
            kind: check.kind,
            command: &check.command,
            found: check.because,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ConfigReply<'a> {
    pub path: Cow<'a, str>,
    /// The user's own file, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_path: Option<Cow<'a, str>>,
    pub config: Map<String, Value>,
    /// What the project's file sets and does not count, because it is not trusted.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub untrusted: Map<String, Value>,
    /// Where each value comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, String>>")]
    pub origins: Option<Map<String, Value>>,
}

/// The agents that can be started.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AgentsReply<'a> {
    pub agents: &'a [Agent],
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReportReply<'a> {
    pub report: &'a Report,
    /// The form that was asked for, which `content` has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<ReportFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// A report that was written to a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReportFileReply<'a> {
    pub changed: bool,
    pub path: Cow<'a, str>,
    pub format: ReportFormat,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportReply<'a> {
    pub changed: bool,
    pub files: &'a [ImportedFile],
}

/// What would be imported.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ImportPlanReply<'a> {
    pub changed: bool,
    pub plan: ImportPlan<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ImportPlan<'a> {
    /// Whether anything would be.
    pub changed: bool,
    pub files: &'a [ImportedFile],
}

/// What the project's configuration starts and permits.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProjectTrustReply<'a> {
    pub changed: bool,
    /// Whether all of it is trusted now.
    pub trusted: bool,
    pub path: Cow<'a, str>,
    pub values: &'a [GuardedValue],
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<TrustPlan>,
}

/// A state directory that came from elsewhere.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct TrustReply<'a> {
    pub changed: bool,
    pub state: &'a StateReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<TrustPlan>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct TrustPlan {
    pub changed: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CompletionsReply<'a> {
    pub script: &'a str,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct SchemaReply {
    #[schemars(with = "Map<String, Value>")]
    pub schema: Value,
}

/// A folder that was written to.
#[derive(Debug, Serialize)]
pub(crate) struct ManReply<'a> {
    pub path: Cow<'a, str>,
}
