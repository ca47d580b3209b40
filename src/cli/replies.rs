//! What a script reads: JSON documents (`--json`), and exit codes with the words of errors.
//! Here are how every document begins and ends, and those that are no answer of the engine and stand beside no command.
//!
//! A field that is `Option` and may be skipped is never `null`: it is there with a value, or not at all.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::engine::{ErrorKind, run};
use crate::model::RepositoryState;
use crate::model::decision::Standing;

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
    /// What the project's file sets and is ignored, because it is not trusted.
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

/// What the process ends with; a number without a name is a child's own, or 128 and that of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExitCode(u8);

/// The codes that have a name, with what each means.
macro_rules! exit_codes {
    ($($name:ident = $number:literal: $meaning:literal;)*) => {
        impl ExitCode {
            $(pub(super) const $name: Self = Self($number);)*

            /// Every code with its meaning, as the man page and the README list them.
            pub(super) const DOCUMENTED: &[(Self, &str)] = &[$((Self::$name, $meaning)),*];
        }
    };
}

exit_codes! {
    DONE = 0: "Done, or nothing to do.";
    FAILED = 1: "Failed for another reason; treat unknown codes as this.";
    USAGE = 2: "Usage or configuration error.";
    PARTIAL = 3: "Done in part; the document lists what was not, each with a reason.";
    NOT_FOUND = 4: "Run, checkpoint, session or task not found, or ambiguous.";
    RETRY_ALLOWED = 5: "The attempt failed; a retry is allowed now.";
    WAIT = 6: "Wait: cooldown, backoff or parked; the document has retry_after and wait_ms.";
    EXHAUSTED = 7: "Budget exhausted.";
    NEEDS_PERSON = 8: "A person is needed: escalated, not recoverable, manual fix open.";
    GAVE_UP_WAITING = 9: "Gave up waiting.";
    NO_REPOSITORY = 10: "No state or repository here and the command needs one.";
    LOCKED = 11: "Another process holds the lock.";
    CORRUPT = 12: "State or objects are corrupt; recover doctor reports what.";
    REFUSED = 13: "Refused: unsafe, not confirmed, or not applicable.";
    NO_SPACE = 14: "No space, or a size limit.";
    NEWER = 15: "State was written by a newer version; nothing was changed.";
    CUT_OFF = 16: "An earlier operation was interrupted; recover doctor --repair or recover undo finishes it.";
    BUG = 70: "A bug in recover.";
    VERIFICATION_FAILED = 100: "Checks failed.";
    HUNG_UP = 129: "Interrupted by SIGHUP: its terminal was closed.";
    INTERRUPTED = 130: "Interrupted by SIGINT.";
    TERMINATED = 143: "Interrupted by SIGTERM.";
}

impl ExitCode {
    /// This code, unless everything is fine.
    pub(super) fn unless(self, fine: bool) -> Self {
        if fine { Self::DONE } else { self }
    }

    /// The number.
    pub(super) fn number(self) -> u8 {
        self.0
    }

    /// From a number that is one already.
    pub(super) fn other(number: i32) -> Self {
        Self(u8::try_from(number).unwrap_or(1))
    }

    /// What a standing means for a script.
    pub(super) fn of_standing(standing: Standing) -> Self {
        match standing {
            Standing::Allowed => Self::DONE,
            Standing::Wait(_) => Self::WAIT,
            Standing::Exhausted => Self::EXHAUSTED,
            Standing::NeedsPerson => Self::NEEDS_PERSON,
        }
    }

    /// What a failed attempt means for a script.
    pub(super) fn of_failed(standing: Standing) -> Self {
        match standing {
            Standing::Allowed => Self::RETRY_ALLOWED,
            other => Self::of_standing(other),
        }
    }

    /// What the end of a run means for a script.
    pub(super) fn of_driven(driven: &run::Driven) -> Self {
        match driven.outcome {
            _ if driven.unstartable.is_some() => Self::USAGE,
            _ if driven.stopped.is_some() => Self::NEEDS_PERSON,
            run::Outcome::Complete => Self::DONE,
            run::Outcome::Cancelled => Self::other(driven.interrupted.unwrap_or(130)),
            run::Outcome::Escalated => Self::NEEDS_PERSON,
            run::Outcome::Failed if driven.run.failure.is_none() => Self::EXHAUSTED,
            run::Outcome::Failed => Self::of_failed(driven.standing),
            run::Outcome::Paused | run::Outcome::Parked => {
                match (driven.interrupted, driven.standing) {
                    (Some(code), _) => Self::other(code),
                    (None, Standing::NeedsPerson) => Self::NEEDS_PERSON,
                    (None, _) => Self::WAIT,
                }
            }
        }
    }
}

impl From<ErrorKind> for ExitCode {
    fn from(kind: ErrorKind) -> Self {
        Self(kind.code().1)
    }
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
