//! Documents that only the command line has: `config`, the forms of `report`, `completions`, `schema`, `man`.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::policy::report::Report;

use super::super::args::ReportFormat;

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
