//! Every key that the configuration has, as tables, in a file for a few sections each.
//! Validation, hints, origins, the template and the reference are made from them.
//!
//! Defaults are not in it: they are those of [`Settings::default`](crate::policy::settings::Settings).

mod retry;
mod rights;
mod run;
mod storage;

use crate::config::value::Kind;
use crate::model::failure::Cause;

pub(super) use rights::Owner;
pub(super) use rights::is_guarded;
pub(super) use rights::is_user_first;
pub(super) use rights::may_set;

/// The whole configuration, in the order of the template.
pub(super) static SECTIONS: &[Section] = &[
    retry::TOP,
    retry::RETRY,
    retry::RETRY_CAUSES,
    retry::COOLDOWN,
    retry::ROLLBACK,
    storage::CHECKPOINT,
    storage::CAPTURE,
    storage::RETENTION,
    storage::ACCEPT,
    storage::MEMORY,
    run::MANUAL_FIX,
    run::RUNNER,
    run::AGENT,
    run::RUN,
    run::CHECKS,
    storage::REDACT,
    run::FEEDBACK,
    run::RULE,
    rights::NOTIFY,
    rights::REMOTE,
    rights::UI,
    storage::CHECKPOINTS,
    storage::CLEANUP,
];

/// The table that a specification has all of its sections in; they are read as if they stood at the top.
pub(super) const WRAPPER: &str = "state_recovery";

/// Environment variables and the keys that they set.
pub(super) const ENVIRONMENT: &[(&str, &str)] = &[
    ("RECOVER_MAX_ATTEMPTS", "retry.max_attempts"),
    ("RECOVER_COOLDOWN", "cooldown.duration"),
    ("RECOVER_TIMEOUT", "runner.timeout"),
    ("RECOVER_SAFE_MODE", "rollback.safe_mode"),
];

/// The section at a path.
pub(super) fn section(path: &str) -> Option<&'static Section> {
    SECTIONS.iter().find(|section| section.path == path)
}

/// Every full key path that holds one value (lists aside), in the order of the table.
pub(super) fn leaves() -> impl Iterator<Item = (String, &'static Key)> {
    SECTIONS
        .iter()
        .filter(|section| !matches!(section.shape, Shape::List | Shape::Named | Shape::Alias))
        .flat_map(|section| {
            let causes: Vec<Option<Cause>> = match section.shape {
                Shape::Causes => Cause::ALL.into_iter().map(Some).collect(),
                _ => vec![None],
            };
            causes.into_iter().flat_map(move |cause| {
                let prefix = match cause {
                    Some(cause) => format!("{}.{}.", section.path, cause.as_str()),
                    None if section.path.is_empty() => String::new(),
                    None => format!("{}.", section.path),
                };
                let keys = section
                    .keys
                    .iter()
                    .filter(move |key| key.alias_of.is_none() && key.applies_to(cause));
                keys.map(move |key| (format!("{prefix}{}", key.name), key))
            })
        })
}

/// The key at a path in a section whose names are the user's.
pub(super) fn named(path: &str) -> Option<&'static Key> {
    let (section, rest) = SECTIONS
        .iter()
        .filter(|section| section.shape == Shape::Named)
        .find_map(|section| Some((section, path.strip_prefix(section.path)?.strip_prefix('.')?)))?;
    let (_, name) = rest.split_once('.')?;
    section.keys.iter().find(|key| key.name == name)
}

/// The key at a full path, aliases excluded.
pub(super) fn leaf(path: &str) -> Option<&'static Key> {
    leaves()
        .find(|(known, _)| known == path)
        .map(|(_, key)| key)
}

/// One key of a section.
pub(in crate::config) struct Key {
    /// Its name in the file.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Whether `"none"` is a value.
    pub optional: bool,
    /// One line that says what it means.
    pub doc: &'static str,
    /// The key that it is another way to say, in the same section or, with a dot, by its full path. An empty one: what it says
    /// is always so.
    pub alias_of: Option<&'static str>,
    /// The only cause that has it.
    pub only: Option<Cause>,
    /// For a list: a value to show, as TOML.
    pub example: Option<&'static str>,
    /// Whether its list goes on where a weaker source's ends.
    pub adds: bool,
    /// For a list: whether an item is nothing without it.
    pub required: bool,
}

impl Key {
    /// A key that is nobody's alias, of every cause, and takes no `"none"`.
    pub(crate) const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self {
            name,
            kind,
            optional: false,
            doc,
            alias_of: None,
            only: None,
            example: None,
            adds: false,
            required: false,
        }
    }
    /// With `"none"` as a value.
    pub(crate) const fn optional(self) -> Self {
        Self {
            optional: true,
            ..self
        }
    }
    /// As another way to say the key `of`, a name or a full path; empty where what it says is always so.
    pub(crate) const fn alias(self, of: &'static str) -> Self {
        Self {
            alias_of: Some(of),
            ..self
        }
    }
    /// For a section of this cause only.
    pub(crate) const fn only(self, cause: Cause) -> Self {
        Self {
            only: Some(cause),
            ..self
        }
    }
    /// With a value to show, as TOML.
    pub(crate) const fn example(self, toml: &'static str) -> Self {
        Self {
            example: Some(toml),
            ..self
        }
    }
    /// Its list adds to those of weaker sources.
    pub(crate) const fn adds(self) -> Self {
        Self { adds: true, ..self }
    }
    /// Without it an item of the list is nothing.
    pub(crate) const fn required(self) -> Self {
        Self {
            required: true,
            ..self
        }
    }

    /// What it means.
    pub(crate) fn doc(&self) -> &'static str {
        self.doc
    }

    /// The full path under which its value is kept, in the section of this prefix; `None` where nothing depends on it.
    pub(crate) fn target(&self, prefix: &str) -> Option<String> {
        match self.alias_of.unwrap_or(self.name) {
            "" => None,
            path if path.contains('.') => Some(path.to_owned()),
            name => Some(format!("{prefix}{name}")),
        }
    }

    /// Whether a section of `cause` (`None`: of no cause) has it.
    pub(crate) fn applies_to(&self, cause: Option<Cause>) -> bool {
        self.only.is_none() || self.only == cause
    }
}

/// How the keys of a section are found in the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::config) enum Shape {
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
pub(in crate::config) struct Section {
    /// Dotted path; empty for the top of the file.
    pub path: &'static str,
    pub shape: Shape,
    /// What the section is about.
    pub doc: &'static str,
    pub keys: &'static [Key],
}

impl Section {
    /// Its name as the file writes it, for messages.
    pub(crate) fn title(&self) -> String {
        match self.shape {
            Shape::Table if self.path.is_empty() => "the top of the file".to_owned(),
            Shape::Table | Shape::Alias => format!("[{}]", self.path),
            Shape::Causes | Shape::Named => format!("[{}.NAME]", self.path),
            Shape::List => format!("[[{}]]", self.path),
        }
    }
}
