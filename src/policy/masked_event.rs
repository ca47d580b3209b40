//! Events without secrets, as checkpoints carry them: their commits may be pushed, and leave the machine in bundles.

use std::borrow::Cow;

use crate::model::event::Payload;

use super::redact::{REDACTED, redact_json};

/// What happened, without secrets; as it is where it holds none.
pub fn masked_payload(payload: &Payload) -> Cow<'_, Payload> {
    let Ok(document) = serde_json::to_value(payload) else { return Cow::Borrowed(payload) };
    let masked = redact_json(document.clone());
    if masked == document {
        return Cow::Borrowed(payload);
    }
    // A word of ours that looks like a secret is none.
    serde_json::from_value(masked).map_or(Cow::Borrowed(payload), Cow::Owned)
}

/// Why a recorded command cannot be run.
pub const MASKED: &str = "held a secret, which is not in the checkpoints that it was rebuilt from";

/// Whether a recorded command lacks a secret: it was rebuilt from checkpoints.
pub fn is_masked(command: &[String]) -> bool {
    command.iter().any(|word| word.contains(REDACTED))
}
