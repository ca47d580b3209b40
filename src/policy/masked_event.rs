//! Events without secrets, as checkpoints carry them: their commits may be pushed, and leave the machine in bundles.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::model::event::Payload;
use crate::model::run::RunSpec;

use super::redact::{REDACTED, redact_json};

/// What happened, without secrets; as it is where it holds none.
pub fn masked_payload(payload: &Payload) -> Cow<'_, Payload> {
    let Ok(document) = serde_json::to_value(payload) else { return Cow::Borrowed(payload) };
    let masked = redact_json(document.clone());
    if masked == document {
        return Cow::Borrowed(payload);
    }
    let mut parsed = None;
    masked_where(document, &masked, |document| {
        let payload = serde_json::from_value(document.clone()).ok();
        let fits = payload.is_some();
        parsed = payload.or(parsed.take());
        fits
    });
    parsed.map_or(Cow::Borrowed(payload), |masked| Cow::Owned(noted(masked, payload)))
}

/// The masked payload, with what it lacks noted where it is run again.
fn noted(mut masked: Payload, whole: &Payload) -> Payload {
    match (&mut masked, whole) {
        (
            Payload::RunCreated { spec, .. } | Payload::RunSpecChanged { spec },
            Payload::RunCreated { spec: whole, .. } | Payload::RunSpecChanged { spec: whole },
        ) => spec.masked = unlike(&**whole, &**spec),
        (Payload::StepStarted(start), Payload::StepStarted(whole)) => start.masked = unlike(&**whole, &**start),
        _ => {}
    }
    masked
}

/// The fields in which two values of a type differ, by name.
fn unlike<T: Serialize>(one: &T, other: &T) -> Vec<String> {
    let (Ok(one), Ok(other)) = (serde_json::to_value(one), serde_json::to_value(other)) else { return Vec::new() };
    let fields = other.as_object().into_iter().flatten();
    fields.filter(|(name, value)| one.get(name) != Some(value)).map(|(name, _)| name.clone()).collect()
}

/// Of the fields that were masked those that still are: whatever was given anew is whole.
pub fn still_masked(spec: &RunSpec) -> Vec<String> {
    let document = serde_json::to_value(spec).unwrap_or_default();
    let lacks = |name: &&String| document[name.as_str()].to_string().contains(REDACTED);
    spec.masked.iter().filter(lacks).cloned().collect()
}

/// The document with every text masked with which it still `fits`: a word of ours that only looks like a secret is none.
fn masked_where(document: Value, masked: &Value, mut fits: impl FnMut(&Value) -> bool) -> Value {
    if fits(masked) {
        return masked.clone();
    }
    let mut places = Vec::new();
    differing(&document, masked, String::new(), &mut places);
    places.into_iter().fold(document, |document, place| {
        let mut tried = document.clone();
        if let (Some(text), Some(mask)) = (tried.pointer_mut(&place), masked.pointer(&place)) {
            text.clone_from(mask);
        }
        if fits(&tried) { tried } else { document }
    })
}

/// Where two documents of the same form differ.
fn differing(one: &Value, other: &Value, place: String, places: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => {
            for ((name, one), other) in one.iter().zip(other.values()) {
                let name = name.replace('~', "~0").replace('/', "~1");
                differing(one, other, format!("{place}/{name}"), places);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (at, (one, other)) in one.iter().zip(other).enumerate() {
                differing(one, other, format!("{place}/{at}"), places);
            }
        }
        _ if one != other => places.push(place),
        _ => {}
    }
}

/// Why what is recorded cannot be run.
pub const MASKED: &str = "held a secret, which is not in the checkpoints that it was rebuilt from";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_word_that_cannot_be_masked_keeps_no_other_one() {
        let document = json!({"kind": "sk", "a/b": {"prompt": "secret"}, "argv": ["x", "secret"]});
        let masked = json!({"kind": "-", "a/b": {"prompt": "-"}, "argv": ["x", "-"]});
        let shown = masked_where(document.clone(), &masked, |document| document["kind"] == "sk");
        assert_eq!(shown, json!({"kind": "sk", "a/b": {"prompt": "-"}, "argv": ["x", "-"]}));
        assert_eq!(masked_where(document, &masked, |_| true), masked);
    }
}
