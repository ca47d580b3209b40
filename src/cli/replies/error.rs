//! What a command answers that did not do what was asked.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::exit::{ExitCode, code};
use crate::engine::{Context, Error};
use crate::model::path::PathReason;

/// An error; `schema_version` and `command` are there as in every document.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorDocument<'a> {
    pub error: ErrorBody<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ErrorBody<'a> {
    /// A fixed word.
    pub code: &'a str,
    /// What the process ends with.
    pub exit_code: u8,
    pub message: &'a str,
    /// What to do about it: a command to copy where there is one.
    pub hint: Option<Cow<'a, str>>,
    /// The paths that it is about.
    #[serde(skip_serializing_if = "<[PathReason]>::is_empty")]
    pub paths: &'a [PathReason],
}

impl<'a> ErrorBody<'a> {
    /// An error that is a part of another document; its hint works from any folder.
    pub(crate) fn of(context: &Context, error: &'a Error) -> Self {
        let hint = error
            .hint
            .as_ref()
            .map(|hint| context.line(hint.clone()).into());
        Self {
            hint,
            ..error.into()
        }
    }
}

impl<'a> From<&'a Error> for ErrorBody<'a> {
    fn from(error: &'a Error) -> Self {
        Self {
            code: code(error.kind),
            exit_code: ExitCode::from(error.kind).number(),
            message: &error.message,
            hint: error.hint.as_ref().map(|hint| hint.to_string().into()),
            paths: &error.paths,
        }
    }
}
