//! What every JSON document (`--json`) begins and ends with, and the documents that are no answer of the engine.
//! The others are the engine's own answers, or next to the command that composes them.
//!
//! A field that is `Option` and may be skipped is never `null`: it is there with a value, or not at all.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::engine::{Context, Error};
use crate::git::base::RepositoryState;
use crate::model::path::PathReason;

use super::exit::{ExitCode, code};

pub(super) use crate::model::SCHEMA_VERSION;

/// A document as it is printed.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a, T> {
    /// [`SCHEMA_VERSION`].
    schema_version: u32,
    /// The command that answers.
    command: &'a str,
    /// What it answers.
    #[serde(flatten)]
    reply: T,
    /// What it warned of.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
}

impl<'a, T> Document<'a, T> {
    /// The document of `command`.
    pub(super) fn new(command: &'a str, reply: T, warnings: &'a [String]) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            command,
            reply,
            warnings,
        }
    }
}

/// What a command would do that has nothing else to report in a dry run.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PlanReply<T> {
    /// `false`.
    changed: bool,
    plan: T,
}

impl<T> PlanReply<T> {
    pub(super) fn of(plan: T) -> Self {
        Self {
            changed: false,
            plan,
        }
    }
}

/// The repository that holds the checkpoints, in the documents of commands that read what is recorded without it.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "repository")]
pub(super) struct Repository {
    /// Whether it can be used.
    pub state: RepositoryState,
}

/// The text of a document whose reply is written already, as an object for people.
pub(super) fn document_text(
    command: &str,
    reply: &str,
    repository: Option<Repository>,
    warnings: &[String],
) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct End<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        repository: Option<Repository>,
        #[serde(skip_serializing_if = "<[String]>::is_empty")]
        warnings: &'a [String],
    }
    let begin = serde_json::to_string_pretty(&Document::new(command, (), &[]))?;
    let end = serde_json::to_string_pretty(&End {
        repository,
        warnings,
    })?;
    let fields = [begin.as_str(), reply, &end]
        .into_iter()
        .filter_map(|text| text.strip_prefix('{')?.strip_suffix("\n}"));
    Ok(format!("{{{}\n}}", fields.collect::<Vec<_>>().join(",")))
}

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

/// Nothing is recorded yet.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NothingReply {
    pub run: (),
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_of_a_written_reply_is_the_document() {
        let warned = ["careful".to_owned()];
        for reply in [
            json!({}),
            json!({"a": {"b": []}, "c": "}\n"}),
            json!({"list": [1, {}]}),
        ] {
            for warnings in [&[][..], &warned] {
                let text = document_text(
                    "x y",
                    &serde_json::to_string_pretty(&reply).unwrap(),
                    None,
                    warnings,
                )
                .unwrap();
                let whole = Document::new("x y", &reply, warnings);
                assert_eq!(text, serde_json::to_string_pretty(&whole).unwrap());
            }
        }
    }
}
