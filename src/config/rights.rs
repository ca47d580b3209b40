//! Which file may set what: the project's, which comes with a clone, or the user's own.
//!
//! And what counts in a project's file only where the user trusts it.
//!
//! The values of a project's file that start programs or widen rights.
//!
//! They came with the project, which may be a clone of anybody's: they count only where the user trusts them.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::layers::{Entry, Origin, Values};
use super::parse::{Document, Layer};

/// Whose configuration file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// `.ultraplan/recover.toml` of a project.
    Project,
    /// The user's own, for all projects.
    User,
}

/// What may stand in which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    /// Only in a project's.
    Project,
    /// In a project's where it counts as it stands, and in the user's.
    Both,
    /// Only in the user's.
    User,
}

/// A path, which includes all below it, and the files that it may stand in. The longest that fits decides; what none
/// fits belongs into a project's file.
const FILES: &[(&str, Files)] = &[
    ("agent", Files::Both),
    ("notify", Files::Both),
    ("redact", Files::Both),
    // Where something is sent to, what of it, and whose word is taken is never a project's to say.
    ("remote", Files::User),
    ("skip_permissions", Files::Both),
    ("ui", Files::User),
];

/// Where the user's word goes before the project's.
const USER_FIRST: [&str; 2] = ["notify", "skip_permissions"];

/// What starts programs or widens rights.
const GUARDED: [&str; 9] = [
    "agent",
    "feedback",
    "notify",
    // What a stranger has masked is not seen when it is asked about.
    "redact",
    "runner.agent",
    "runner.command",
    "runner.fallback",
    "runner.shell",
    "skip_permissions",
];

/// Whether `path` is `above`, or lies in it.
fn is_in(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether a section or key may stand in the file of `owner`.
pub(super) fn may_set(owner: Owner, path: &str) -> bool {
    let fitting = FILES.iter().filter(|(above, _)| is_in(path, above));
    let files = fitting
        .max_by_key(|(above, _)| above.len())
        .map_or(Files::Project, |(_, files)| *files);
    match owner {
        Owner::Project => files != Files::User,
        Owner::User => files != Files::Project,
    }
}

/// Whether a value counts in a project's file only where the user trusts it: it starts something, or permits something.
pub(super) fn is_guarded(path: &str, value: &Json) -> bool {
    let is_harmless = match value {
        Json::Null | Json::Bool(false) => true,
        // No agent of anybody's is named.
        Json::String(word) => path == "runner.agent" && ["auto", "none"].contains(&word.as_str()),
        _ => false,
    };
    !is_harmless && GUARDED.iter().any(|above| is_in(path, above))
}

/// Whether the user's value of a key goes before the project's.
pub(super) fn is_user_first(path: &str) -> bool {
    USER_FIRST.iter().any(|above| is_in(path, above))
}

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
