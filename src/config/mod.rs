//! The configuration: the project's, `.ultraplan/recover.toml`, and the user's own for all projects.
//!
//! One table of keys (`schema`) says what there is, and in which file. A file is read against it (`parse`), so that a mistake
//! is reported with its line and the nearest valid key; the values of the preset, the user, the project, the task, the
//! environment and the flags are laid over the defaults (`layers`), each with its origin; and the commented template and the reference are
//! printed from it (`template`). The result is [`Settings`], plain data that the policy and the engine take.

mod layers;
mod parse;
mod preset;
mod rights;
mod schema;
mod template;
#[cfg(test)]
mod tests;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use crate::durable::{Refused, Root};
use crate::model::id::TaskId;
use crate::policy::settings::{AgentProfile, Settings};
use layers::{Entry, Values};
use parse::{Document, Layer};
use rights::Owner;
use schema::ENVIRONMENT;
use value::Kind;

pub(crate) use layers::{Guarded, is_mask};
pub use layers::{Origin, UserConfig};
pub use parse::ConfigError;
pub(crate) use parse::Place;
pub use template::NOTIFY_RECIPES;
pub(crate) use template::{reference, template};
pub(crate) use value::parse_size;

/// The path of `--attempts` among the origins; it is not a key of the file.
const OVERRIDE: &str = "retry.override_attempts";

/// More than any configuration has, in bytes.
pub(crate) const MAX_FILE: u64 = 1 << 20;

/// Reads an environment variable.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What is laid around the values of a project's file.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    /// The environment.
    pub env: Environment<'a>,
    /// What the user set for all projects.
    pub user: &'a UserConfig,
    /// The task whose overrides hold.
    pub task: Option<&'a TaskId>,
    /// Whether the user trusts what a project's file asks for; of what it masks alone, whether that was ever trusted.
    pub trusts: &'a dyn Fn(&Guarded) -> bool,
}

/// The settings, and where each of them comes from.
#[derive(Clone, Debug)]
pub struct Config {
    /// The result of all layers.
    pub settings: Settings,
    /// The file that was asked for; it need not exist.
    pub file: PathBuf,
    /// The user's own file, where there is one.
    pub user_file: Option<PathBuf>,
    /// The tasks that the file has overrides for.
    pub tasks: BTreeSet<TaskId>,
    /// What the project's file holds that starts programs or widens rights.
    guarded: Guarded,
    /// What of it would hold here if the user trusted it.
    withheld: Values,
    /// What the layers say beyond the defaults, the strongest on top.
    said: Values,
}

/// One line of `recover config --origins`.
#[derive(Clone, Debug, PartialEq)]
pub struct OriginEntry {
    /// Full key path (`retry.causes.UNKNOWN.max_attempts`).
    pub key: String,
    /// The value: durations as text, sizes in bytes, `null` for none.
    pub value: Json,
    /// The value as the file would have it.
    pub toml: String,
    /// Where it comes from.
    pub origin: Origin,
}

impl OriginEntry {
    fn new(path: &str, entry: &Entry) -> Self {
        let key = schema::leaf(path).or_else(|| schema::named(path));
        Self {
            key: path.to_owned(),
            toml: key
                .map_or(Kind::TEXT, |key| &key.kind)
                .to_toml(&entry.value),
            value: entry.value.clone(),
            origin: entry.origin.clone(),
        }
    }
}

impl Config {
    /// Reads a project's file and lays preset, user, file, task and environment over the defaults.
    ///
    /// Nothing is followed on the way to it in `root`. A file that is not there says nothing. One that cannot be read, has
    /// more than 1 MiB, is not UTF-8, or says something without meaning
    /// is an error, in its overrides for other tasks as well.
    pub fn load(root: &Root, file: &Path, around: Around<'_>) -> Result<Self, ConfigError> {
        let place = || Place::File {
            path: file.to_owned(),
            at: None,
        };
        let document = match root.read_at_most(file, MAX_FILE) {
            Ok(bytes) => parse::parse(file, &utf8(file, bytes)?, Owner::Project)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Document::default(),
            Err(error) => {
                let refused = Refused::of(&error).cloned().map(Box::new);
                let unread = ConfigError::new(place(), format!("cannot be read: {error}"), None);
                return Err(ConfigError { refused, ..unread });
            }
        };
        Self::from_document(file, document, around)
    }

    /// The same where the project's file says nothing; `file` is where it would be.
    pub fn without_file(file: &Path, around: Around<'_>) -> Result<Self, ConfigError> {
        Self::from_document(file, Document::default(), around)
    }

    fn from_document(
        file: &Path,
        mut document: Document,
        around: Around<'_>,
    ) -> Result<Self, ConfigError> {
        let tasks = document.tasks.keys().cloned().map(TaskId::from).collect();
        let user_file =
            Some(around.user.file().to_owned()).filter(|path| !path.as_os_str().is_empty());
        let guarded = layers::guarded(&document);
        let is_trusted = guarded.is_empty() || (around.trusts)(&guarded);
        // What was once trusted to be masked stays so, whatever else has changed since.
        let masks: Guarded = guarded
            .clone()
            .into_iter()
            .filter(|(key, _)| layers::is_mask(key))
            .collect();
        let keeps_masks = !is_trusted && !masks.is_empty() && (around.trusts)(&masks);
        let withhold = |layer: &mut Layer, origin: &dyn Fn(usize) -> Origin| {
            if is_trusted {
                Values::new()
            } else {
                layers::withhold(layer, keeps_masks, origin)
            }
        };
        let mut config = Self {
            settings: Settings::default(),
            file: file.to_owned(),
            user_file,
            tasks,
            guarded,
            withheld: Values::new(),
            said: Values::new(),
        };
        if let Some(name) = document
            .file
            .get("preset")
            .and_then(|stored| stored.value.as_str())
        {
            let name = name.to_owned();
            let preset = parse::parse(
                Path::new(&format!("preset {name}")),
                preset::text(&name),
                Owner::Project,
            )?;
            config.lay(preset.file, |_| Origin::Preset(name.clone()));
        }
        let (first, last) = around.user.layers();
        let user = |line| Origin::User {
            path: around.user.file().to_owned(),
            line,
        };
        config.lay(first, user);
        let project = |line| Origin::File {
            path: file.to_owned(),
            line,
        };
        config
            .withheld
            .append(&mut withhold(&mut document.file, &project));
        config.lay(document.file, project);
        if let Some((name, mut layer)) = around
            .task
            .and_then(|name| document.tasks.remove_entry(name.as_str()))
        {
            let task = |line| Origin::Task {
                name: name.clone(),
                path: file.to_owned(),
                line,
            };
            config.withheld.append(&mut withhold(&mut layer, &task));
            config.lay(layer, task);
        }
        config.lay(last, user);
        for (variable, path) in ENVIRONMENT {
            if let Some(text) = (around.env)(variable).filter(|text| !text.trim().is_empty()) {
                config.say(path, &text, Origin::Environment((*variable).to_owned()))?;
            }
        }
        config.settle()?;
        Ok(config)
    }

    /// The agents that can be started, by name: the built-in ones with what the file changes of them, and the file's own.
    ///
    /// # Errors
    /// The table of keys and the profiles do not fit together, which is a bug.
    pub fn agents(&self) -> Result<BTreeMap<String, AgentProfile>, ConfigError> {
        let own = self
            .said
            .iter()
            .filter(|(path, _)| path.starts_with("agent.") && schema::named(path).is_some());
        preset::profiles(own.map(|(path, entry)| (path.as_str(), &entry.value)))
            .map_err(|error| self.internal(&error))
    }

    /// The URL of the object store of that name.
    pub fn store_url(&self, name: &str) -> Option<&str> {
        self.said.get(&format!("store.{name}.url"))?.value.as_str()
    }

    /// Where the value of a key comes from; `None` for a default.
    pub fn origin(&self, key: &str) -> Option<&Origin> {
        self.said.get(key).map(|entry| &entry.origin)
    }

    /// What the project's file holds that starts programs or widens rights, of all tasks.
    pub fn guarded(&self) -> &Guarded {
        &self.guarded
    }

    /// Has masked, too, what these values say, outside of tasks.
    pub fn add_masks(&mut self, values: &Guarded) {
        let redact = &mut self.settings.redact;
        for (key, list) in [
            ("redact.patterns", &mut redact.patterns),
            ("redact.variables", &mut redact.variables),
        ] {
            let said = values
                .get(key)
                .and_then(Json::as_array)
                .into_iter()
                .flatten();
            list.extend(said.filter_map(Json::as_str).map(str::to_owned));
        }
    }

    /// What of it would hold here and does not, because the user does not trust it: by full key path.
    pub fn withheld(&self) -> Vec<OriginEntry> {
        let entries = self.withheld.iter();
        entries
            .map(|(path, entry)| OriginEntry::new(path, entry))
            .collect()
    }

    /// Every key in the order of the template, with its value in force and where that comes from.
    pub fn origins(&self) -> Vec<OriginEntry> {
        let Ok(defaults) = layers::defaults() else {
            return Vec::new();
        };
        let values = layers::completed(&defaults, layers::settle(&defaults, &self.said));
        let named = values.keys().filter(|path| schema::named(path).is_some());
        let keys = schema::leaves()
            .map(|(path, _)| path)
            .chain(["feedback", "rule"].map(str::to_owned))
            .chain(named.cloned())
            .chain([OVERRIDE.to_owned()]);
        keys.filter_map(|key| Some(OriginEntry::new(&key, values.get(&key)?)))
            .collect()
    }

    fn lay(&mut self, layer: Layer, origin: impl Fn(usize) -> Origin) {
        for (path, stored) in layer {
            let (mut value, mut origin) = (stored.value, origin(stored.line));
            if schema::leaf(&path).is_some_and(|key| key.adds)
                && let (Some(before), Json::Array(more)) = (self.said.get(&path), &mut value)
            {
                let known = before.value.as_array().cloned().unwrap_or_default();
                more.splice(0..0, known);
                origin = origin.onto(&before.origin);
            }
            self.said.insert(path, Entry { value, origin });
        }
    }

    fn say(&mut self, path: &str, text: &str, origin: Origin) -> Result<(), ConfigError> {
        let place = match &origin {
            Origin::Environment(name) => Place::Environment(name.clone()),
            _ => self.place(),
        };
        let error = |message: String, hint| ConfigError::new(place.clone(), message, hint);
        let key = schema::leaf(path).ok_or_else(|| error(format!("unknown key '{path}'"), None))?;
        let read = key.kind.read(&key.kind.parse(text), key.optional);
        let value = read.map_err(|wrong| error(wrong.message, wrong.hint))?;
        self.said.insert(path.to_owned(), Entry { value, origin });
        Ok(())
    }

    fn settle(&mut self) -> Result<(), ConfigError> {
        self.settings = if self.said.is_empty() {
            Settings::default()
        } else {
            let laid = layers::defaults().and_then(|defaults| {
                let values = layers::settle(&defaults, &self.said);
                layers::build(defaults, &values)
            });
            laid.map_err(|error| self.internal(&error))?
        };
        Ok(())
    }

    fn place(&self) -> Place {
        Place::File {
            path: self.file.clone(),
            at: None,
        }
    }

    /// The table of keys and the settings do not fit together; the tests see to it that they do.
    fn internal(&self, error: &serde_json::Error) -> ConfigError {
        ConfigError::new(
            self.place(),
            format!("a checked value has no place in the settings: {error}"),
            None,
        )
    }
}

fn utf8(file: &Path, bytes: Vec<u8>) -> Result<String, ConfigError> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..valid]).into_owned();
        let at = Some(parse::position(&before, before.len()));
        ConfigError::new(
            Place::File {
                path: file.to_owned(),
                at,
            },
            "is not UTF-8",
            None,
        )
    })
}
