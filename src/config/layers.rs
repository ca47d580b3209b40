//! Lays the sources of values over each other and makes settings of what is on top.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use serde_json::json;

use super::parse::{self, ConfigError, Document, Layer};
use super::rights::{Owner, is_guarded, is_user_first};
use super::schema::{FOR_ALL, leaves};
use super::utf8;
use crate::model::failure::Cause;
use crate::policy::settings::Settings;

/// Where a value comes from, weakest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The preset of that name.
    Preset(String),
    /// The user's own configuration.
    User {
        /// The file's path.
        path: PathBuf,
        /// 1-based line of the key.
        line: usize,
    },
    /// The project's file.
    File {
        /// Its path.
        path: PathBuf,
        /// 1-based line of the key.
        line: usize,
    },
    /// The file's override for the task.
    Task {
        /// The task.
        name: String,
        /// The file's path.
        path: PathBuf,
        /// 1-based line of the key.
        line: usize,
    },
    /// The environment variable of that name.
    Environment(String),
    /// A list to which each of these adds, the weakest first.
    Several(Vec<Self>),
}

impl Origin {
    /// Whether a user has decided it, rather than left it to a default.
    pub fn is_explicit(&self) -> bool {
        match self {
            Self::Default | Self::Preset(_) => false,
            Self::Several(all) => all.iter().any(Self::is_explicit),
            _ => true,
        }
    }

    /// Of a list that this one adds to.
    pub(super) fn onto(self, before: &Self) -> Self {
        let mut all = match before {
            Self::Several(all) => all.clone(),
            one => vec![one.clone()],
        };
        all.push(self);
        Self::Several(all)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Preset(name) => write!(f, "preset {name}"),
            Self::User { path, line } => write!(f, "user {}:{line}", path.display()),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Task { name, path, line } => write!(f, "task {name} {}:{line}", path.display()),
            Self::Environment(name) => write!(f, "env {name}"),
            Self::Several(all) => {
                let all: Vec<String> = all.iter().map(Self::to_string).collect();
                f.write_str(&all.join(", "))
            }
        }
    }
}

/// A value and who said it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub value: Json,
    pub origin: Origin,
}

/// Values by full key path.
pub(super) type Values = BTreeMap<String, Entry>;

/// The lowest layer: what the settings are by default, as one document.
pub(super) fn defaults() -> Result<Json, serde_json::Error> {
    serde_json::to_value(Settings::default())
}

/// The value at a full key path of the lowest layer; `null` where it has none.
pub(super) fn default_at<'a>(defaults: &'a Json, path: &str) -> &'a Json {
    path.split('.')
        .try_fold(defaults, |at, part| at.get(part))
        .unwrap_or(&Json::Null)
}

/// Every key that there is, by full path: with what was said of it, else with its default.
pub(super) fn completed(defaults: &Json, said: Values) -> Values {
    let keys = leaves()
        .map(|(path, _)| path)
        .chain(["feedback", "rule"].map(str::to_owned));
    let by_default = |path: String| {
        let value = default_at(defaults, &path).clone();
        let origin = Origin::Default;
        (path, Entry { value, origin })
    };
    let mut values: Values = keys.map(by_default).collect();
    values.extend(said);
    values
}

/// Carries out what one key says of others: a general limit stands above the causes' defaults, and what is switched
/// off is off everywhere.
pub(super) fn settle(defaults: &Json, said: &Values) -> Values {
    let mut values = said.clone();
    for path in FOR_ALL {
        if let Some(limit) = values.remove(path) {
            let general = values.entry("retry.max_attempts".to_owned());
            general.or_insert(limit);
        }
    }
    let decided = |values: &Values, path: &str| {
        let found = values.get(path).filter(|entry| entry.origin.is_explicit());
        found.filter(|entry| !entry.value.is_null()).cloned()
    };
    let is_limit: fn(&Json) -> bool = |value| value.as_u64().is_some_and(|limit| limit > 0);
    // Other delays are what their causes need: a service's pause, another prompt, a permission.
    let is_pause: fn(&Json) -> bool = |value| *value == json!("cooldown");
    let replaceable = [("max_attempts", is_limit), ("delay", is_pause)];
    for (key, applies) in replaceable {
        let Some(general) = decided(said, &format!("retry.{key}")) else {
            continue;
        };
        for cause in Cause::ALL {
            let path = format!("retry.causes.{}.{key}", cause.as_str());
            replace_undecided(defaults, &mut values, &path, &general, applies);
        }
    }
    // A limit or delay for UNKNOWN means all of it, unless the service has one of its own.
    for (key, _) in replaceable {
        if let Some(own) = decided(&values, &format!("retry.causes.UNKNOWN.{key}")) {
            let path = format!("retry.causes.UNKNOWN.service_{key}");
            replace_undecided(defaults, &mut values, &path, &own, |_| true);
        }
    }
    for (switch, path, value) in [
        (
            "retention.scheduled_cleanup",
            "retention.scheduled_max_age",
            Json::Null,
        ),
        ("rollback.enabled", "rollback.on_error", json!(false)),
        (
            "rollback.enabled",
            "retry.causes.BROKEN_BUILD.max_rollbacks",
            json!(0),
        ),
        ("rollback.enabled", "retry.on_give_up", json!("keep")),
    ] {
        if let Some(off) = said.get(switch).filter(|entry| entry.value == json!(false)) {
            let origin = off.origin.clone();
            values.insert(path.to_owned(), Entry { value, origin });
        }
    }
    values
}

/// Puts `by` in the place of a value that nobody has decided.
fn replace_undecided(
    defaults: &Json,
    values: &mut Values,
    path: &str,
    by: &Entry,
    applies: fn(&Json) -> bool,
) {
    let now = values.get(path);
    let is_decided = now.is_some_and(|entry| entry.origin.is_explicit());
    if !is_decided && applies(now.map_or(default_at(defaults, path), |entry| &entry.value)) {
        values.insert(path.to_owned(), by.clone());
    }
}

/// The settings that the values over the defaults amount to.
pub(super) fn build(defaults: Json, values: &Values) -> Result<Settings, serde_json::Error> {
    let mut whole = defaults;
    for (path, entry) in values {
        let mut at = &mut whole;
        for part in path.split('.') {
            at = &mut at[part];
        }
        *at = entry.value.clone();
    }
    serde_json::from_value(whole)
}

/// What the user set for all projects.
#[derive(Clone, Debug, Default)]
pub struct UserConfig {
    file: PathBuf,
    values: Layer,
}

impl UserConfig {
    /// Reads the content of the user's file; `file` is its name in errors and origins.
    pub fn read(file: &Path, bytes: Vec<u8>) -> Result<Self, ConfigError> {
        let document = parse::parse(file, &utf8(file, bytes)?, Owner::User)?;
        Ok(Self {
            file: file.to_owned(),
            values: document.file,
        })
    }

    /// The file; empty where there is none.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// What a project's file goes before, and what goes before it.
    pub(super) fn layers(&self) -> (Layer, Layer) {
        self.values
            .clone()
            .into_iter()
            .partition(|(path, _)| !is_user_first(path))
    }
}

/// By key: a full key path, `feedback.NAME` for each check, both below `task.NAME` where they are a task's.
pub(crate) type Guarded = BTreeMap<String, Json>;

/// What a file asks for, whichever task it is for.
pub(super) fn guarded(document: &Document) -> Guarded {
    let mut all = Guarded::new();
    add_guarded(&mut all, "", &document.file);
    for (task, layer) in &document.tasks {
        add_guarded(&mut all, &format!("task.{task}."), layer);
    }
    all
}

fn add_guarded(all: &mut Guarded, prefix: &str, layer: &Layer) {
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
