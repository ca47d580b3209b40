//! The values of a project's file that start programs or widen rights.
//!
//! They came with the project, which may be a clone of anybody's: they count only where the user trusts them.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::layers::{Entry, Origin, Values};
use super::parse::{Document, Layer};
use super::rights::is_guarded;

/// By key: a full key path, `feedback.NAME` for each check, both below `task.NAME` where they are a task's.
pub(crate) type Guarded = BTreeMap<String, Json>;

/// What a file asks for, whichever task it is for.
pub(super) fn of(document: &Document) -> Guarded {
    let mut all = Guarded::new();
    add(&mut all, "", &document.file);
    for (task, layer) in &document.tasks {
        add(&mut all, &format!("task.{task}."), layer);
    }
    all
}

fn add(all: &mut Guarded, prefix: &str, layer: &Layer) {
    for (path, stored) in layer
        .iter()
        .filter(|(path, stored)| is_guarded(path, &stored.value))
    {
        let Json::Array(items) = &stored.value else {
            all.insert(format!("{prefix}{path}"), stored.value.clone());
            continue;
        };
        let mut items = items.iter().peekable();
        if items.peek().is_none_or(|first| !first.is_object()) {
            all.insert(format!("{prefix}{path}"), stored.value.clone());
            continue;
        }
        // An item is known by its name: each is a value of its own.
        for item in items {
            let mut value = item.clone();
            let fields = value.as_object_mut();
            let name = fields.and_then(|fields| {
                // What a check's failure is called starts nothing, and is guessed where it is not said.
                fields.shift_remove("kind");
                fields.shift_remove("name")
            });
            let name = name.as_ref().and_then(Json::as_str).unwrap_or_default();
            all.insert(format!("{prefix}{path}.{name}"), value);
        }
    }
}

/// Whether a guarded value says what is masked: it starts nothing.
pub(crate) fn is_mask(key: &str) -> bool {
    key.split_once("redact.")
        .is_some_and(|(before, _)| before.is_empty() || before.starts_with("task."))
}

/// Takes the guarded values out of a layer and returns them; what is masked stays where `keeps_masks`.
pub(super) fn withhold(
    layer: &mut Layer,
    keeps_masks: bool,
    origin: impl Fn(usize) -> Origin,
) -> Values {
    let mut withheld = Values::new();
    layer.retain(|path, stored| {
        let is_harmless = !is_guarded(path, &stored.value) || keeps_masks && is_mask(path);
        if !is_harmless {
            let entry = Entry {
                value: stored.value.take(),
                origin: origin(stored.line),
            };
            withheld.insert(path.clone(), entry);
        }
        is_harmless
    });
    withheld
}
