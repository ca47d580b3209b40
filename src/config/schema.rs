//! Every key that the configuration has, by section: read from the fields of [`Settings`], their types and what is said of them.
//! Validation, hints, origins, the template and the reference are made from it.
//!
//! A field is a key: its doc comment, without backticks, is what the documentation says; its type says what it takes, and
//! `kind` in its schema says it where the type does not. Defaults are those of [`Settings::default`].

use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value as Json;
use strum::VariantNames;

use super::value::{Kind, cause_named};
use crate::model::{Cause, CheckKind};
use crate::policy::settings::{AgentProfile, Settings, StoreSettings};

/// The whole configuration, in the order of the template.
pub(super) static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(sections);

/// The table that a specification has all of its sections in; they are read as if they stood at the top.
pub(super) const WRAPPER: &str = "state_recovery";

/// The sections of [`WRAPPER`].
pub(super) const WRAPPED: [&str; 4] = ["checkpoints", "rollback", "retry", "cleanup"];

/// Limits of a specification for everything that has none of its own. They take the place of no cause's limit, as
/// `retry.max_attempts` does; the first one holds.
pub(super) const FOR_ALL: [&str; 2] = ["retry_limits.global", "state_recovery.retry.max_attempts"];

/// The table of a specification's strategies, each with the causes that it is for.
pub(super) const STRATEGY_TYPES: &str = "retry_strategy.types";

/// The table of a specification's triggers, and those that are always on.
pub(super) const TRIGGERS: &str = "checkpoint_triggers";
const AUTOMATIC: [&str; 4] = [
    "Before file modifications",
    "Before external calls",
    "Before risky operations",
    "On phase transitions",
];
const MANUAL: [&str; 2] = ["User request", "Session save"];

/// Environment variables and the keys that they set.
pub(super) const ENVIRONMENT: &[(&str, &str)] = &[
    ("RECOVER_MAX_ATTEMPTS", "retry.max_attempts"),
    ("RECOVER_COOLDOWN", "cooldown.duration"),
    ("RECOVER_TIMEOUT", "runner.timeout"),
    ("RECOVER_SAFE_MODE", "rollback.safe_mode"),
];

/// Other ways to say a key, in the words of the specifications: section, name, the key by its name in the section or by
/// its full path, and what it takes where that differs.
const ALIASES: [(&str, &str, &str, Option<Kind>); 17] = [
    ("retry", "max_retries", "max_attempts", Some(Kind::Retries)),
    ("retry", "default_strategy", "delay", Some(Kind::Strategy)),
    (
        "retry",
        "initial_delay_ms",
        "base_delay",
        Some(Kind::MILLIS),
    ),
    ("retry", "max_delay_ms", "max_delay", Some(Kind::MILLIS)),
    (
        "retry.causes",
        "max_retries",
        "max_attempts",
        Some(Kind::Retries),
    ),
    ("cooldown", "cooldown_ms", "duration", Some(Kind::MILLIS)),
    ("retention", "max_checkpoints", "keep_last", None),
    ("rule", "loop", "stage", None),
    (
        "retry_limits",
        "session_max_total_retries",
        "retry.session_max_attempts",
        Some(Kind::Retries),
    ),
    (
        "retry_limits",
        "task_max_total_retries",
        "retry.task_max_attempts",
        Some(Kind::Retries),
    ),
    ("checkpoints", "enabled", "checkpoint.enabled", None),
    (
        "checkpoints",
        "max_per_session",
        "retention.max_per_session",
        None,
    ),
    (
        "checkpoints",
        "max_age_hours",
        "retention.max_age",
        Some(Kind::HOURS),
    ),
    (
        "cleanup",
        "on_success",
        "retention.on_success_keep_last",
        Some(Kind::KeepLast),
    ),
    ("cleanup", "on_failure", "retention.on_failure", None),
    (
        "cleanup",
        "scheduled_cleanup",
        "retention.scheduled_cleanup",
        None,
    ),
    (
        "cleanup",
        "max_age_days",
        "retention.scheduled_max_age",
        Some(Kind::DAYS),
    ),
];

/// One key of a section.
#[derive(Clone)]
pub(super) struct Key {
    /// Its name in the file.
    pub name: String,
    /// What it takes.
    pub kind: Kind,
    /// Whether `"none"` is a value.
    pub optional: bool,
    /// What it means, in one line.
    pub doc: String,
    /// The key that it is another way to say, in the same section or, with a dot, by its full path. An empty one: what it
    /// says is always so.
    pub alias_of: Option<String>,
    /// The only cause that has it.
    pub only: Option<Cause>,
    /// For a list: a value to show, as TOML.
    pub example: Option<String>,
    /// Whether its list goes on where a weaker source's ends.
    pub adds: bool,
    /// For a list: whether an item is nothing without it.
    pub required: bool,
}

impl Key {
    fn new(name: &str, kind: Kind, doc: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            optional: false,
            doc: doc.into(),
            alias_of: None,
            only: None,
            example: None,
            adds: false,
            required: false,
        }
    }

    /// The key that a field is; `None` for one that holds keys itself.
    fn of_field(name: &str, schema: &Json) -> Option<Self> {
        let kind = Kind::of_schema(schema)?;
        let only = schema["only"].as_str().and_then(cause_named);
        let is_null = |schema: &Json| schema["type"] == "null" || schema["type"][1] == "null";
        let either = schema["anyOf"].as_array().into_iter().flatten();
        let takes_none = either.chain([schema]).any(is_null);
        Some(Self {
            optional: takes_none && only.is_none() && kind != Kind::Command,
            only,
            example: schema["examples"].get(0).map(|value| kind.to_toml(value)),
            adds: schema["adds"] == true,
            ..Self::new(name, kind, described(schema))
        })
    }

    /// The full path under which its value is kept, in the section of this prefix; `None` where nothing depends on it.
    pub(super) fn target(&self, prefix: &str) -> Option<String> {
        match self.alias_of.as_deref().unwrap_or(&self.name) {
            "" => None,
            path if path.contains('.') => Some(path.to_owned()),
            name => Some(format!("{prefix}{name}")),
        }
    }

    /// Whether a section of `cause` (`None`: of no cause) has it.
    pub(super) fn applies_to(&self, cause: Option<Cause>) -> bool {
        self.only.is_none() || self.only == cause
    }
}

/// How the keys of a section are found in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// `[path]`.
    Table,
    /// `[path.CAUSE]`, one for each cause.
    Causes,
    /// `[path.NAME]`, any number; the names are the user's.
    Named,
    /// `[[path]]`, any number; the first key is unique.
    List,
    /// `[path]` in the words of a specification, also as `[state_recovery.path]`: each key is another one's alias.
    Alias,
}

/// Some keys that belong together.
pub(super) struct Section {
    /// Dotted path; empty for the top of the file.
    pub path: String,
    pub shape: Shape,
    /// What the section is about.
    pub doc: String,
    pub keys: Vec<Key>,
}

impl Section {
    fn new(path: &str, shape: Shape, doc: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            shape,
            doc: doc.into(),
            keys: Vec::new(),
        }
    }

    /// Its name as the file writes it, for messages.
    pub(super) fn title(&self) -> String {
        match self.shape {
            Shape::Table if self.path.is_empty() => "the top of the file".to_owned(),
            Shape::Table | Shape::Alias => format!("[{}]", self.path),
            Shape::Causes | Shape::Named => format!("[{}.NAME]", self.path),
            Shape::List => format!("[[{}]]", self.path),
        }
    }

    fn at(&self, name: &str) -> Option<usize> {
        self.keys.iter().position(|key| key.name == name)
    }
}

/// What is said of a field or a type.
fn described(schema: &Json) -> String {
    let doc = schema["description"].as_str().unwrap_or_default();
    doc.replace('`', "").replace('\n', " ")
}

fn schema_of<T: JsonSchema>() -> Json {
    let inline = SchemaSettings::default().with(|settings| settings.inline_subschemas = true);
    inline
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

fn sections() -> Vec<Section> {
    let mut all = vec![Section::new("", Shape::Table, "")];
    add_fields(&mut all, &schema_of::<Settings>());
    for (path, before, schema) in [
        ("agent", "run", schema_of::<AgentProfile>()),
        ("store", "otel", schema_of::<StoreSettings>()),
    ] {
        let place = all.iter().position(|section| section.path == before);
        let mut after = all.split_off(place.unwrap_or(all.len()));
        all.push(Section::new(path, Shape::Named, described(&schema)));
        add_fields(&mut all, &schema);
        all.append(&mut after);
    }
    let words = "in the words of the state recovery specification, also as";
    for (path, of) in [
        ("checkpoints", "[checkpoint] and [retention]"),
        ("cleanup", "[retention]"),
    ] {
        let doc = format!("{of} {words} [{WRAPPER}.{path}].");
        all.push(Section::new(path, Shape::Alias, doc));
    }
    all.extend(blocks());
    for (section, name, of, kind) in ALIASES {
        add_alias(&mut all, section, name, of, kind);
    }
    if let Some(rollback) = all.iter_mut().find(|section| section.path == "rollback") {
        let doc = "checkpoint_restore: files go back to what a checkpoint has of them, which is always so.";
        let only = Kind::Choice(vec!["checkpoint_restore".to_owned()]);
        let alias_of = Some(String::new());
        let key = Key::new("default_strategy", only, doc);
        rollback.keys.insert(1, Key { alias_of, ..key });
    }
    all
}

/// The other blocks of the state recovery specification, which stand at the top.
fn blocks() -> [Section; 5] {
    let of = "in the words of the state recovery specification";
    let nothing = |name: &str, kind, doc: &str| Key {
        alias_of: Some(String::new()),
        ..Key::new(name, kind, doc)
    };
    let to = |name: &str, path: String| Key {
        alias_of: Some(path.clone()),
        ..Key::new(name, Kind::Retries, format!("{path} − 1."))
    };
    let section = |path: &str, shape, doc: String, keys| Section {
        keys,
        ..Section::new(path, shape, doc)
    };
    let words = |all: &[&str]| {
        let all = all.iter().map(|word| (*word).to_owned()).collect();
        Kind::List(Box::new(Kind::Choice(all)))
    };
    let doc = "retry.max_attempts − 1; no cause's own limit changes.";
    let global = Key {
        doc: doc.to_owned(),
        ..to("global_max_retries", FOR_ALL[0].to_owned())
    };
    let of_cause = |cause: Cause| {
        to(
            cause.as_str(),
            format!("retry.causes.{}.max_attempts", cause.as_str()),
        )
    };
    let causes: Vec<&str> = Cause::ALL.iter().map(|cause| cause.as_str()).collect();
    let types = vec![
        nothing(
            "description",
            Kind::TEXT.clone(),
            "What it does; for people.",
        ),
        nothing(
            "use_for",
            words(&causes),
            "The causes that it is the delay of; exponential_backoff goes before others.",
        ),
        nothing(
            "initial_delay_ms",
            Kind::MILLIS,
            "base_delay of these causes.",
        ),
        nothing("max_delay_ms", Kind::MILLIS, "max_delay of these causes."),
        nothing(
            "formula",
            Kind::TEXT.clone(),
            "How an exponential one grows, which is always so.",
        ),
        nothing(
            "condition",
            Kind::TEXT.clone(),
            "What a conditional one waits for, which is always so.",
        ),
    ];
    let triggers = vec![
        nothing("automatic", words(&AUTOMATIC), "Which are always on."),
        nothing("manual", words(&MANUAL), "Which are always on."),
        nothing(
            "interval",
            Kind::List(Box::new(Kind::TEXT.clone())),
            "checkpoint.interval as \"Every 5 minutes\", checkpoint.every_operations as \"Every 10 operations\".",
        ),
    ];
    [
        section(
            "retry_limits",
            Shape::Alias,
            format!("[retry] {of}."),
            vec![global],
        ),
        section(
            "retry_limits.per_exception_max",
            Shape::Alias,
            format!("[retry.causes] {of}."),
            Cause::ALL.iter().copied().map(of_cause).collect(),
        ),
        Section::new("retry_strategy", Shape::Alias, String::new()),
        section(
            STRATEGY_TYPES,
            Shape::Alias,
            format!(
                "The delays of [retry.causes] {of}, each in a table of its own: immediate, delayed, exponential_backoff, conditional."
            ),
            types,
        ),
        section(
            TRIGGERS,
            Shape::Alias,
            format!("[checkpoint] {of}."),
            triggers,
        ),
    ]
}

/// Adds the fields of a schema to the last section, and what holds keys itself as sections of their own behind it.
fn add_fields(all: &mut Vec<Section>, schema: &Json) {
    let (mut keys, mut inner) = (Vec::new(), Vec::new());
    // What an item of a list lacks is left out.
    let takes_none = all.last().is_some_and(|own| own.shape != Shape::List);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let required = schema["required"].as_array();
        let required = required.is_some_and(|names| names.iter().any(|one| one == name));
        match Key::of_field(name, field) {
            Some(key) => keys.push(Key {
                required,
                optional: key.optional && takes_none,
                ..key
            }),
            None => inner.push((name, field)),
        }
    }
    let Some(own) = all.last_mut() else { return };
    own.keys = keys;
    let above = own.path.clone();
    for (name, field) in inner {
        let path = if above.is_empty() {
            name.clone()
        } else {
            format!("{above}.{name}")
        };
        let (shape, fields) = match field.get("items") {
            Some(items) => (Shape::List, items),
            None if name == "causes" => (Shape::Causes, field),
            None => (Shape::Table, field),
        };
        let section = Section::new(&path, shape, described(field));
        if path == "feedback" {
            let keys = feedback();
            all.push(Section { keys, ..section });
        } else {
            all.push(section);
            add_fields(all, fields);
        }
    }
}

/// The keys of a check, which the model has in another form.
fn feedback() -> Vec<Key> {
    let kinds = CheckKind::VARIANTS
        .iter()
        .map(ToString::to_string)
        .collect();
    let guessed = "What it checks; guessed from the name and the command when absent.";
    let root = "Where it starts, relative to the project; at its root when absent.";
    let folder = Kind::text("folder").unwrap_or(Kind::TEXT.clone());
    let command = "The shell command; it passes with exit code 0.";
    let keys = [
        (
            "\"test\"",
            Key::new("name", Kind::TEXT.clone(), "Its name; unique."),
        ),
        (
            "\"cargo test\"",
            Key::new("command", Kind::TEXT.clone(), command),
        ),
        ("\"test\"", Key::new("kind", Kind::Choice(kinds), guessed)),
        ("\"crates/core\"", Key::new("dir", folder, root)),
        (
            "\"10m\"",
            Key::new("timeout", Kind::Duration(0), "How long it may take."),
        ),
    ];
    let of_item = |(example, key): (&str, Key)| Key {
        example: Some(example.to_owned()),
        required: ["name", "command"].contains(&key.name.as_str()),
        optional: ["dir", "timeout"].contains(&key.name.as_str()),
        ..key
    };
    keys.map(of_item).to_vec()
}

/// Adds another name for a key: behind it, where it is in the same section.
fn add_alias(all: &mut [Section], path: &str, name: &str, of: &str, kind: Option<Kind>) {
    let (above, own) = of.rsplit_once('.').unwrap_or((path, of));
    let target = all.iter().find(|section| section.path == above);
    let target = target.and_then(|section| section.keys.get(section.at(own)?));
    let section = all.iter().position(|section| section.path == path);
    let (Some(target), Some(section)) = (target.cloned(), section) else {
        return;
    };
    let difference = match &kind {
        Some(Kind::Retries) => " − 1".to_owned(),
        Some(Kind::Units { unit, .. }) => format!(" in {unit}"),
        _ => String::new(),
    };
    let key = Key {
        optional: target.optional
            && !matches!(kind, Some(Kind::Retries | Kind::Strategy | Kind::KeepLast)),
        alias_of: Some(of.to_owned()),
        ..Key::new(
            name,
            kind.unwrap_or(target.kind),
            format!("{of}{difference}."),
        )
    };
    let section = &mut all[section];
    let behind = section.at(of).map_or(section.keys.len(), |at| at + 1);
    section.keys.insert(behind, key);
}

/// The section at a path.
pub(super) fn section(path: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.path == path)
}

/// Every full key path that holds one value (lists aside), in the order of the table.
pub(super) fn leaves() -> impl Iterator<Item = (String, &'static Key)> {
    let tables = SECTIONS
        .iter()
        .filter(|section| matches!(section.shape, Shape::Table | Shape::Causes));
    tables.flat_map(|section| {
        let prefixes: Vec<(Option<Cause>, String)> = match section.shape {
            Shape::Causes => {
                let prefix = |cause: Cause| format!("{}.{}.", section.path, cause.as_str());
                let causes = Cause::ALL.iter();
                causes.map(|cause| (Some(*cause), prefix(*cause))).collect()
            }
            _ if section.path.is_empty() => vec![(None, String::new())],
            _ => vec![(None, format!("{}.", section.path))],
        };
        prefixes.into_iter().flat_map(move |(cause, prefix)| {
            let own = |key: &&Key| key.alias_of.is_none() && key.applies_to(cause);
            let keys: Vec<&Key> = section.keys.iter().filter(own).collect();
            keys.into_iter()
                .map(move |key| (format!("{prefix}{}", key.name), key))
        })
    })
}

/// The key at a path in a section whose names are the user's.
pub(super) fn named(path: &str) -> Option<&'static Key> {
    let (above, rest) = path.split_once('.')?;
    let found = section(above).filter(|found| found.shape == Shape::Named)?;
    let (_, name) = rest.split_once('.')?;
    found.keys.get(found.at(name)?)
}

/// The key at a full path, aliases excluded.
pub(super) fn leaf(path: &str) -> Option<&'static Key> {
    leaves()
        .find(|(known, _)| known == path)
        .map(|(_, key)| key)
}
