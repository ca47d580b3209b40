//! Events without secrets, as checkpoints carry them: their commits may be pushed, and leave the machine in bundles.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::model::event::Payload;
use crate::model::run::RunSpec;

use super::redact::{REDACTED, may_hold_secret, redact_json};

/// What happened, without secrets; as it is where it holds none.
pub fn masked_payload(payload: &Payload) -> Cow<'_, Payload> {
    let holds = serde_json::to_string(payload).is_ok_and(|text| may_hold_secret(&text));
    let document = if holds {
        serde_json::to_value(payload).ok()
    } else {
        None
    };
    let Some(document) = document else {
        return Cow::Borrowed(payload);
    };
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
    parsed.map_or(Cow::Borrowed(payload), |masked| {
        Cow::Owned(noted(masked, payload))
    })
}

/// The masked payload, with what it lacks noted where it is run again, beside what was noted before.
fn noted(mut masked: Payload, whole: &Payload) -> Payload {
    let more = match (&masked, whole) {
        (
            Payload::RunCreated { spec, .. } | Payload::RunSpecChanged { spec },
            Payload::RunCreated { spec: whole, .. } | Payload::RunSpecChanged { spec: whole },
        ) => unlike(&**whole, &**spec),
        (Payload::StepStarted(start), Payload::StepStarted(whole)) => unlike(&**whole, &**start),
        _ => Vec::new(),
    };
    if let Some(note) = note_of(&mut masked) {
        let new: Vec<String> = more
            .into_iter()
            .filter(|name| !note.contains(name))
            .collect();
        note.extend(new);
    }
    masked
}

/// Where a payload notes which of its fields lack a secret; `None` where nothing of it is run again.
fn note_of(payload: &mut Payload) -> Option<&mut Vec<String>> {
    match payload {
        Payload::RunCreated { spec, .. } | Payload::RunSpecChanged { spec } => {
            Some(&mut spec.masked)
        }
        Payload::StepStarted(start) => Some(&mut start.masked),
        _ => None,
    }
}

/// Notes what an event from a checkpoint or a remote lacks: an earlier version masked it and noted nothing. By the mask's
/// text, for nothing else is left to know it by: a command that was typed so has to be given again once too often.
pub(crate) fn note_masks(payload: &mut Payload) {
    let lacking = match &*payload {
        Payload::RunCreated { spec, .. } | Payload::RunSpecChanged { spec } => with_masks(&**spec),
        Payload::StepStarted(start) => with_masks(&**start),
        _ => return,
    };
    if let Some(note) = note_of(payload).filter(|note| note.is_empty()) {
        *note = lacking;
    }
}

/// A payload by which two records of the same event are the same: without secrets, and without the note of what was masked,
/// which one of them may lack.
pub(crate) fn without_secrets(payload: &Payload) -> Payload {
    let mut payload = masked_payload(payload).into_owned();
    if let Some(note) = note_of(&mut payload) {
        note.clear();
    }
    payload
}

/// The fields of a value in which something is masked, by name.
fn with_masks<T: Serialize>(value: &T) -> Vec<String> {
    let Ok(document) = serde_json::to_value(value) else {
        return Vec::new();
    };
    let fields = document.as_object().into_iter().flatten();
    fields
        .filter(|(_, value)| value.to_string().contains(REDACTED))
        .map(|(name, _)| name.clone())
        .collect()
}

/// The fields in which two values of a type differ, by name.
fn unlike<T: Serialize>(one: &T, other: &T) -> Vec<String> {
    let (Ok(one), Ok(other)) = (serde_json::to_value(one), serde_json::to_value(other)) else {
        return Vec::new();
    };
    let fields = other.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| one.get(name) != Some(value))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Of the fields that were masked those that still are: whatever was given anew is whole.
pub(crate) fn still_masked(spec: &RunSpec) -> Vec<String> {
    let masks = with_masks(spec);
    spec.masked
        .iter()
        .filter(|name| masks.contains(name))
        .cloned()
        .collect()
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
pub(crate) const MASKED: &str =
    "held a secret, which is not in the checkpoints that it was rebuilt from";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    // A version that noted nothing is recognised by the mask's text; what was noted stays as it is.
    #[test]
    fn what_lacks_a_secret_is_noted_by_the_mask() {
        let words = |words: &[&str]| {
            words
                .iter()
                .map(|word| (*word).to_owned())
                .collect::<Vec<String>>()
        };
        let masked_of = |spec: RunSpec| {
            let mut payload = Payload::RunSpecChanged {
                spec: Box::new(spec),
            };
            note_masks(&mut payload);
            note_of(&mut payload).cloned().unwrap_or_default()
        };
        let masked = RunSpec {
            command: words(&["agent", "--token=[redacted]"]),
            until: Some("test [redacted]".to_owned()),
            ..RunSpec::default()
        };
        assert_eq!(masked_of(masked.clone()), ["command", "until"]);
        assert_eq!(
            masked_of(RunSpec {
                masked: words(&["until"]),
                ..masked.clone()
            }),
            ["until"]
        );
        assert_eq!(
            masked_of(RunSpec {
                command: words(&["agent"]),
                ..RunSpec::default()
            }),
            Vec::<String>::new()
        );
        // What is masked once more keeps the note of before.
        let more = RunSpec {
            prompt: Some("password=hunter22".to_owned()),
            masked: words(&["command"]),
            ..masked
        };
        let mut payload = masked_payload(&Payload::RunSpecChanged {
            spec: Box::new(more),
        })
        .into_owned();
        assert_eq!(
            note_of(&mut payload).cloned().unwrap_or_default(),
            ["command", "prompt"]
        );
    }

    #[test]
    fn one_word_that_cannot_be_masked_keeps_no_other_one() {
        let document = json!({"kind": "sk", "a/b": {"prompt": "secret"}, "argv": ["x", "secret"]});
        let masked = json!({"kind": "-", "a/b": {"prompt": "-"}, "argv": ["x", "-"]});
        let shown = masked_where(document.clone(), &masked, |document| {
            document["kind"] == "sk"
        });
        assert_eq!(
            shown,
            json!({"kind": "sk", "a/b": {"prompt": "-"}, "argv": ["x", "-"]})
        );
        assert_eq!(masked_where(document, &masked, |_| true), masked);
    }
}
