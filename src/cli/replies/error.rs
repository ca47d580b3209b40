//! What a command answers that did not do what was asked.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::path::PathReason;

/// An error; `schema_version` and `command` are there as in every document.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorDocument<'a> {
    pub error: ErrorBody<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub struct ErrorBody<'a> {
    /// A fixed word.
    pub code: &'a str,
    /// What the process ends with.
    pub exit_code: u8,
    pub message: &'a str,
    /// What to do about it: a command to copy where there is one.
    pub hint: Option<&'a str>,
    /// The paths that it is about.
    #[serde(skip_serializing_if = "<[PathReason]>::is_empty")]
    pub paths: &'a [PathReason],
}
