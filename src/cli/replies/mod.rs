//! The documents that commands answer with (`--json`), a struct each: what is written and its schema come from one place.
//!
//! A field that is `Option` and may be skipped is never `null`: it is there with a value, or not at all.

pub(super) mod attempt;
pub(super) mod checkpoint;
pub(super) mod error;
pub(super) mod hook;
pub(super) mod log;
mod parts;
pub(super) mod restore;
pub(super) mod run;
pub(super) mod status;
pub(super) mod upkeep;

use schemars::JsonSchema;
use serde::Serialize;

use crate::git::base::RepositoryState;

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
