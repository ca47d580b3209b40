//! Reads a configuration file against the table of keys.
//!
//! What is wrong with a configuration, and where.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::rights::{Owner, may_set};
use super::schema::{
    FOR_ALL, Key, SECTIONS, STRATEGY_TYPES, Section, Shape, TRIGGERS, WRAPPED, WRAPPER, section,
};
use super::value::{Kind, cause_named, from_toml};
use crate::durable::Refused;
use crate::model::failure::Cause;
use crate::model::time::parse_duration;
use crate::policy::classify::guess_loop;
use crate::policy::text::nearest;

/// A value in its canonical form, and the line it stands in.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stored {
    pub value: Json,
    pub line: usize,
}

/// Values by full key path.
pub(super) type Layer = BTreeMap<String, Stored>;

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Document {
    /// Outside of `[task."NAME"]`.
    pub file: Layer,
    /// Inside, by name.
    pub tasks: BTreeMap<String, Layer>,
}

/// Reads the whole file of `owner`; every task's settings are checked, wanted or not.
pub(super) fn parse(path: &Path, text: &str, owner: Owner) -> Result<Document, ConfigError> {
    let reader = Reader { path, text, owner };
    let parsed = DeTable::parse(text);
    let table = parsed.map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        reader.error(&span, error.message(), None)
    })?;
    let mut document = Document::default();
    reader.root(
        table.get_ref(),
        Some(&mut document.tasks),
        &mut document.file,
    )?;
    Ok(document)
}

/// Words that mean something else where a name is taken.
const RESERVED: [&str; 2] = ["auto", "none"];

type Name<'i> = Spanned<DeString<'i>>;
type Value<'i> = Spanned<DeValue<'i>>;

/// Where keys of one table belong.
struct Context {
    section: &'static Section,
    cause: Option<Cause>,
    /// Full path of the table with a dot at its end; empty at the top.
    prefix: String,
}

impl Context {
    /// A section whose keys stand directly in it.
    fn of(section: &'static Section) -> Self {
        let dot = if section.path.is_empty() { "" } else { "." };
        Self {
            section,
            cause: None,
            prefix: format!("{}{dot}", section.path),
        }
    }

    fn keys(&self) -> impl Iterator<Item = &'static Key> {
        self.section
            .keys
            .iter()
            .filter(|key| key.applies_to(self.cause))
    }

    fn title(&self) -> String {
        match self.cause {
            Some(_) => format!("[{}]", self.prefix.trim_end_matches('.')),
            None => self.section.title(),
        }
    }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    owner: Owner,
}

impl Reader<'_> {
    fn root(
        &self,
        table: &DeTable<'_>,
        mut tasks: Option<&mut BTreeMap<String, Layer>>,
        layer: &mut Layer,
    ) -> Result<(), ConfigError> {
        for (name, value) in in_order(table) {
            let word: &str = name.get_ref();
            let top = section(word).filter(|known| !known.path.is_empty());
            if top.is_some() || word == "task" {
                self.check_owner(word, name)?;
            }
            match (top, &mut tasks) {
                (Some(known), _) if known.shape == Shape::List => self.list(known, value, layer)?,
                (Some(known), _) if known.shape == Shape::Named => {
                    self.tables(known, self.table_of(word, value)?, layer)?;
                }
                (Some(known), _) => self.section(known, self.table_of(word, value)?, layer)?,
                (None, _) if word == WRAPPER => {
                    self.check_owner(word, name)?;
                    for (name, value) in in_order(self.table_of(word, value)?) {
                        let known = section(name.get_ref())
                            .filter(|known| WRAPPED.contains(&known.path.as_str()));
                        let known = known.ok_or_else(|| self.not_wrapped(name))?;
                        // Its limit for all is another than that of [retry].
                        let general = "retry.max_attempts";
                        let of_retry = layer.remove(general);
                        self.section(known, self.table_of(&known.path, value)?, layer)?;
                        let own = layer.remove(general);
                        layer.extend(own.map(|limit| (FOR_ALL[1].to_owned(), limit)));
                        layer.extend(of_retry.map(|limit| (general.to_owned(), limit)));
                    }
                }
                (None, Some(tasks)) if word == "task" => {
                    for (task, overrides) in in_order(self.table_of(word, value)?) {
                        let title = format!("task.\"{}\"", task.get_ref());
                        let mut own = Layer::new();
                        self.root(self.table_of(&title, overrides)?, None, &mut own)?;
                        tasks.insert(task.get_ref().to_string(), own);
                    }
                }
                (None, Some(_)) => {
                    self.entry(&Context::of(&SECTIONS[0]), name, value, layer)?;
                }
                (None, None) => return Err(self.unknown_section(name)),
            }
        }
        Ok(())
    }

    fn section(
        &self,
        known: &'static Section,
        table: &DeTable<'_>,
        layer: &mut Layer,
    ) -> Result<(), ConfigError> {
        let context = Context::of(known);
        for (name, value) in in_order(table) {
            let path = format!("{}.{}", known.path, name.get_ref());
            match section(&path) {
                Some(inner)
                    if inner.shape == Shape::Table
                        || inner.shape == Shape::Alias && inner.path != STRATEGY_TYPES =>
                {
                    self.section(inner, self.table_of(&path, value)?, layer)?;
                }
                Some(causes) => self.tables(causes, self.table_of(&path, value)?, layer)?,
                None => self.entry(&context, name, value, layer)?,
            }
            if known.path == TRIGGERS && name.get_ref() == "interval" {
                self.intervals(value, layer)?;
            }
        }
        Ok(())
    }

    /// The intervals of a specification: `Every 5 minutes during execution`, `Every 10 operations minimum`.
    fn intervals(&self, value: &Value<'_>, layer: &mut Layer) -> Result<(), ConfigError> {
        let line = self.line(&value.span());
        let texts = from_toml(value);
        for text in texts.as_array().into_iter().flatten() {
            let text = text.as_str().unwrap_or_default().to_ascii_lowercase();
            let mut words = text.strip_prefix("every ").unwrap_or_default().split(' ');
            let number = words.next().and_then(|word| word.parse::<u32>().ok());
            let unit = words.next().map(|word| word.trim_end_matches('s'));
            let (path, value) = match (number.filter(|number| *number > 0), unit) {
                (Some(number), Some("operation")) => ("every_operations", json!(number)),
                (Some(number), Some("second")) => ("interval", json!(format!("{number}s"))),
                (Some(number), Some("minute")) => ("interval", json!(format!("{number}m"))),
                (Some(number), Some("hour")) => ("interval", json!(format!("{number}h"))),
                _ => {
                    let message = format!("'{TRIGGERS}.interval' has '{text}'");
                    let hint = "write \"Every 5 minutes\" or \"Every 10 operations\"".to_owned();
                    return Err(self.error(&value.span(), message, Some(hint)));
                }
            };
            let path = format!("checkpoint.{path}");
            layer.entry(path).or_insert(Stored { value, line });
        }
        Ok(())
    }

    /// A strategy of a specification, which is the delay of the causes that it is for. Of two the exponential one holds: its
    /// first delay is the other's.
    fn strategy(
        &self,
        name: &Name<'_>,
        table: &DeTable<'_>,
        layer: &mut Layer,
    ) -> Result<(), ConfigError> {
        let line = self.line(&name.span());
        let word: &str = name.get_ref();
        let kind = Kind::Strategy.read(&json!(word), false).map_err(|wrong| {
            let message = format!("'{STRATEGY_TYPES}.{word}' {}", wrong.message);
            self.error(&name.span(), message, wrong.hint)
        })?;
        let of = |key: &str, kind: &Kind| {
            let found = table.iter().find(|(name, _)| name.get_ref() == key);
            found.and_then(|(_, value)| kind.read(&from_toml(value), false).ok())
        };
        let delays = [
            ("base_delay", of("initial_delay_ms", &Kind::MILLIS)),
            ("max_delay", of("max_delay_ms", &Kind::MILLIS)),
        ];
        let used = table.iter().find(|(name, _)| name.get_ref() == "use_for");
        let causes = used.map(|(_, value)| from_toml(value)).unwrap_or_default();
        let causes = causes.as_array().into_iter().flatten();
        for cause in causes.filter_map(|cause| cause_named(cause.as_str()?)) {
            let path = |key: &str| format!("retry.causes.{}.{key}", cause.as_str());
            let stored = |value: &Json| Stored {
                value: value.clone(),
                line,
            };
            let delay = layer.entry(path("delay")).or_insert_with(|| stored(&kind));
            if kind == json!("exponential") {
                *delay = stored(&kind);
            }
            for (key, value) in &delays {
                if let Some(value) = value {
                    layer.entry(path(key)).or_insert_with(|| stored(value));
                }
            }
        }
        Ok(())
    }

    /// The tables of a section by the names that they have: causes, or the user's own.
    fn tables(
        &self,
        known: &'static Section,
        table: &DeTable<'_>,
        layer: &mut Layer,
    ) -> Result<(), ConfigError> {
        for (name, value) in in_order(table) {
            let cause = match known.shape {
                Shape::Causes => Some(self.cause(name)?),
                _ => None,
            };
            let word: &str = cause.map_or(name.get_ref(), |cause| cause.as_str());
            if cause.is_none() {
                self.check_name(known, name)?;
            }
            let path = format!("{}.{word}", known.path);
            let own = self.table_of(&path, value)?;
            let context = Context {
                section: known,
                cause,
                prefix: format!("{path}."),
            };
            for (key, value) in in_order(own) {
                self.entry(&context, key, value, layer)?;
            }
            if known.path == STRATEGY_TYPES {
                self.strategy(name, own, layer)?;
            }
        }
        Ok(())
    }

    fn cause(&self, name: &Name<'_>) -> Result<Cause, ConfigError> {
        let word: &str = name.get_ref();
        cause_named(word).ok_or_else(|| {
            let names: Vec<_> = Cause::ALL.iter().map(|cause| cause.as_str()).collect();
            let near =
                nearest(&word.to_ascii_uppercase(), names.iter().copied()).unwrap_or_default();
            let hint = format!("did you mean '{near}'? The causes are {}", names.join(", "));
            self.error(&name.span(), format!("unknown cause '{word}'"), Some(hint))
        })
    }

    fn check_name(&self, known: &Section, name: &Name<'_>) -> Result<(), ConfigError> {
        let word: &str = name.get_ref();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if word.is_empty() || !word.chars().all(is_plain) || RESERVED.contains(&word) {
            let message = format!("'{word}' is no name for {}", known.title());
            let hint = "letters, digits, - and _; neither auto nor none".to_owned();
            return Err(self.error(&name.span(), message, Some(hint)));
        }
        Ok(())
    }

    fn list(
        &self,
        known: &'static Section,
        value: &Value<'_>,
        layer: &mut Layer,
    ) -> Result<(), ConfigError> {
        let wrong = |span| {
            let (path, title) = (&known.path, known.title());
            let message = format!("'{path}' is a list of tables: write {title}");
            self.error(span, message, None)
        };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(wrong(&value.span()));
        };
        let mut seen = BTreeSet::new();
        let mut read = Vec::new();
        for item in items {
            let DeValue::Table(table) = item.get_ref() else {
                return Err(wrong(&item.span()));
            };
            let (id, object) = self.item(known, table, &item.span())?;
            if !seen.insert(id.clone()) {
                let key = &known.keys[0].name;
                let message = format!("'{}.{key}' is '{id}' twice: it must be unique", known.path);
                let own = table.iter().find(|(name, _)| name.get_ref() == key);
                let span = own.map_or(item.span(), |(_, value)| value.span());
                return Err(self.error(&span, message, None));
            }
            read.push(object);
        }
        let first = items.iter().next().map_or(value.span(), Spanned::span);
        let stored = Stored {
            value: Json::Array(read),
            line: self.line(&first),
        };
        layer.insert(known.path.clone(), stored);
        Ok(())
    }

    /// One item of a list: its unique name and its canonical form.
    fn item(
        &self,
        known: &'static Section,
        table: &DeTable<'_>,
        span: &Range<usize>,
    ) -> Result<(String, Json), ConfigError> {
        let context = Context::of(known);
        let mut values = Layer::new();
        for (name, value) in in_order(table) {
            self.entry(&context, name, value, &mut values)?;
        }
        let own = |(path, stored): (String, Stored)| {
            let name = path.trim_start_matches(context.prefix.as_str());
            (!stored.value.is_null()).then(|| (name.to_owned(), stored.value))
        };
        let mut object: serde_json::Map<_, _> = values.into_iter().filter_map(own).collect();
        if let Some(missing) = known
            .keys
            .iter()
            .find(|key| key.required && !object.contains_key(&key.name))
        {
            let message = format!("{} has no '{}'", known.title(), missing.name);
            let hint = missing
                .example
                .as_ref()
                .map(|example| format!("for example {} = {example}", missing.name));
            return Err(self.error(span, message, hint));
        }
        if known.path == "feedback" {
            complete_feedback(&mut object);
        }
        let id = object.get(&known.keys[0].name).and_then(Json::as_str);
        Ok((id.unwrap_or_default().to_owned(), Json::Object(object)))
    }

    fn entry(
        &self,
        context: &Context,
        name: &Name<'_>,
        value: &Value<'_>,
        layer: &mut Layer,
    ) -> Result<(), ConfigError> {
        let word: &str = name.get_ref();
        let full = format!("{}{word}", context.prefix);
        let Some(key) = context.keys().find(|key| key.name == word) else {
            return Err(self.unknown_key(context, name));
        };
        self.check_owner(&full, name)?;
        let read = key.kind.read(&from_toml(value), key.optional);
        let read = read.map_err(|wrong| {
            let message = format!("'{full}' {}", wrong.message);
            self.error(&value.span(), message, wrong.hint)
        })?;
        let Some(target) = key.target(&context.prefix) else {
            return Ok(());
        };
        let stored = Stored {
            value: read,
            line: self.line(&name.span()),
        };
        if let Some(earlier) = layer.insert(target.clone(), stored) {
            let says_it = |other: &&Key| {
                other.name != word && other.target(&context.prefix).as_ref() == Some(&target)
            };
            let other = context.keys().find(says_it);
            let own = |other: &Key| format!("{}{}", context.prefix, other.name);
            let other = if target.starts_with(&context.prefix) {
                other.map_or(target.clone(), own)
            } else {
                target
            };
            let message = format!(
                "'{full}' and '{other}' (line {}) say the same thing",
                earlier.line
            );
            return Err(self.error(&name.span(), message, Some("keep one of them".to_owned())));
        }
        Ok(())
    }

    fn unknown_key(&self, context: &Context, name: &Name<'_>) -> ConfigError {
        let message = format!("unknown key '{}{}'", context.prefix, name.get_ref());
        let takes = format!("{} takes", context.title());
        let near = (context.prefix.as_str(), takes.as_str());
        self.unknown(name, message, near, &self.allowed(context))
    }

    /// A name that is none of `known`, with the nearest of them below `prefix`, or where it belongs.
    fn unknown(
        &self,
        name: &Name<'_>,
        message: String,
        (prefix, takes): (&str, &str),
        known: &[&str],
    ) -> ConfigError {
        let word: &str = name.get_ref();
        let elsewhere = key_elsewhere(word).filter(|path| may_set(self.owner, path));
        let nearest = nearest(word, known.iter().copied());
        let near = elsewhere.or_else(|| Some(format!("{prefix}{}", nearest?)));
        let near = near.map(|near| format!("did you mean '{near}'? "));
        let hint = format!("{}{takes} {}", near.unwrap_or_default(), known.join(", "));
        self.error(&name.span(), message, Some(hint))
    }

    /// What a table of this file takes.
    fn allowed(&self, context: &Context) -> Vec<&'static str> {
        let is_top = context.section.path.is_empty();
        let keys = context
            .keys()
            .map(|key| key.name.as_str())
            .filter(|name| may_set(self.owner, &format!("{}{name}", context.prefix)));
        let sections = top_names()
            .into_iter()
            .filter(|name| is_top && may_set(self.owner, name));
        keys.chain(sections).collect()
    }

    /// Refuses what belongs into the other file.
    fn check_owner(&self, path: &str, name: &Name<'_>) -> Result<(), ConfigError> {
        if may_set(self.owner, path) {
            return Ok(());
        }
        let (whose, other) = match self.owner {
            Owner::Project => (
                "a project's configuration",
                "your own, ~/.config/recover/config.toml",
            ),
            Owner::User => (
                "the user's own configuration",
                "a project's .ultraplan/recover.toml",
            ),
        };
        let takes = self.allowed(&Context::of(&SECTIONS[0])).join(", ");
        let hint = match self.owner {
            Owner::Project => None,
            Owner::User => Some(format!("it takes {takes}")),
        };
        Err(self.error(
            &name.span(),
            format!("'{path}' does not belong in {whose}, but in {other}"),
            hint,
        ))
    }

    fn not_wrapped(&self, name: &Name<'_>) -> ConfigError {
        let message = format!("unknown section '{WRAPPER}.{}'", name.get_ref());
        let takes = format!("[{WRAPPER}] takes");
        self.unknown(name, message, ("", &takes), &WRAPPED)
    }

    fn unknown_section(&self, name: &Name<'_>) -> ConfigError {
        let mut names = top_names();
        names.retain(|name| *name != "task" && may_set(self.owner, name));
        let message = format!("a task has no '{}'", name.get_ref());
        self.unknown(name, message, ("", "A task overrides"), &names)
    }

    fn table_of<'v, 'i>(
        &self,
        path: &str,
        value: &'v Value<'i>,
    ) -> Result<&'v DeTable<'i>, ConfigError> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.error(
                &value.span(),
                format!("'{path}' is not a value but a table: write [{path}]"),
                None,
            )),
        }
    }

    fn line(&self, span: &Range<usize>) -> usize {
        position(self.text, span.start).0
    }

    fn error(
        &self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: Option<String>,
    ) -> ConfigError {
        let at = Some(position(self.text, span.start));
        ConfigError::new(
            Place::File {
                path: self.path.to_owned(),
                at,
            },
            message,
            hint,
        )
    }
}

/// The entries as they stand in the file, so that the first mistake is the one reported.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Name<'i>, &'t Value<'i>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

/// What can stand at the top beside the keys.
fn top_names() -> Vec<&'static str> {
    let sections = SECTIONS
        .iter()
        .map(|section| section.path.as_str())
        .filter(|path| !path.is_empty() && !path.contains('.'));
    sections.chain(["task"]).collect()
}

/// The full path of a key of exactly that name in another section.
fn key_elsewhere(word: &str) -> Option<String> {
    let holds = |section: &&Section| {
        section.shape != Shape::List && section.keys.iter().any(|key| key.name == word)
    };
    let found = SECTIONS.iter().find(holds)?;
    let key = found.keys.iter().find(|key| key.name == word)?;
    Some(match (found.shape, key.only) {
        (Shape::Causes, Some(cause)) => format!("{}.{}.{word}", found.path, cause.as_str()),
        (Shape::Causes | Shape::Named, None) => format!("{}.NAME.{word}", found.path),
        _ if found.path.is_empty() => word.to_owned(),
        _ => format!("{}.{word}", found.path),
    })
}

/// A feedback loop as the model has it: a kind in any case, the timeout in milliseconds.
fn complete_feedback(object: &mut serde_json::Map<String, Json>) {
    let text = |key: &str| object.get(key).and_then(Json::as_str).unwrap_or_default();
    let kind = guess_loop(text("name"), text("command"));
    let timeout = object
        .get("timeout")
        .and_then(Json::as_str)
        .and_then(|text| parse_duration(text).ok());
    object.remove("timeout");
    object.entry("kind").or_insert_with(|| json!(kind));
    if let Some(timeout) = timeout {
        object.insert(
            "timeout_ms".to_owned(),
            json!(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)),
        );
    }
}

/// Where a configured value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In a file; the position is absent where the file as a whole is the matter.
    File {
        /// The file.
        path: PathBuf,
        /// Line and column, both 1-based; the column counts characters.
        at: Option<(usize, usize)>,
    },
    /// In an environment variable.
    Environment(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, at: None } => write!(f, "{}", path.display()),
            Self::File {
                path,
                at: Some((line, column)),
            } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Environment(name) => write!(f, "environment variable {name}"),
        }
    }
}

/// A usage error (exit 2): the configuration cannot be read or says something that has no meaning.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct ConfigError {
    /// Where.
    pub place: Place,
    /// What is wrong, naming the key.
    pub message: String,
    /// What would be right.
    pub hint: Option<String>,
    /// What stands in the place of the file and is none (exit 13).
    pub refused: Option<Box<Refused>>,
}

impl ConfigError {
    pub(super) fn new(place: Place, message: impl Into<String>, hint: Option<String>) -> Self {
        Self {
            place,
            message: message.into(),
            hint,
            refused: None,
        }
    }

    /// The file it is about, if it is about one.
    pub fn file(&self) -> Option<&Path> {
        match &self.place {
            Place::File { path, .. } => Some(path),
            Place::Environment(_) => None,
        }
    }

    /// The 1-based line in the file.
    pub fn line(&self) -> Option<usize> {
        self.position().map(|(line, _)| line)
    }

    /// The 1-based column in the file.
    pub fn column(&self) -> Option<usize> {
        self.position().map(|(_, column)| column)
    }

    fn position(&self) -> Option<(usize, usize)> {
        match self.place {
            Place::File { at, .. } => at,
            Place::Environment(_) => None,
        }
    }
}

/// Line and column of a byte offset, both 1-based.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}
