//! A project's own rules of classification.

use serde::{Deserialize, Serialize};

use crate::model::failure::{Cause, EvidenceSource, FailureType};
use crate::model::feedback::CheckKind;

/// A classification rule of the project: the first match wins, before the built-in rules of the same source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserRule {
    /// Its name in `--explain`.
    pub id: String,
    /// A regular expression, checked when it was read; matched against one line.
    pub pattern: String,
    /// Where to look; everywhere when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<EvidenceSource>,
    /// Only for this stage; for every stage when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<CheckKind>,
    /// The failure's type; by the cause and the stage when absent.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<FailureType>,
    /// The failure's cause.
    pub cause: Cause,
    /// Whether the very same again plausibly succeeds; by the cause when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
}
