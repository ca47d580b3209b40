//! Every key there is: one table, from which validation, hints, origins, the template and the reference are made.
//!
//! Defaults are not in it: they are those of [`Settings::default`](crate::policy::settings::Settings).

mod retry;
mod run;
mod storage;

use super::value::Kind;
use crate::model::failure::Cause;

/// One key of a section.
pub(super) struct Key {
    /// Its name in the file.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// Whether `"none"` is a value.
    pub optional: bool,
    /// One line that says what it means.
    pub doc: &'static str,
    /// The key that it is another way to say, in the same section.
    pub alias_of: Option<&'static str>,
    /// The only cause that has it.
    pub only: Option<Cause>,
    /// For a list: a value to show, as TOML.
    pub example: Option<&'static str>,
    /// For a list: whether an item is nothing without it.
    pub required: bool,
}

impl Key {
    const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Self {
        Self { name, kind, optional: false, doc, alias_of: None, only: None, example: None, required: false }
    }
    const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
    const fn alias(self, of: &'static str) -> Self {
        Self { alias_of: Some(of), ..self }
    }
    const fn only(self, cause: Cause) -> Self {
        Self { only: Some(cause), ..self }
    }
    const fn example(self, toml: &'static str) -> Self {
        Self { example: Some(toml), ..self }
    }
    const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// What it means.
    pub fn doc(&self) -> &'static str {
        self.doc
    }

    /// The name under which its value is kept.
    pub fn target(&self) -> &'static str {
        self.alias_of.unwrap_or(self.name)
    }

    /// Whether a section of `cause` (`None`: of no cause) has it.
    pub fn applies_to(&self, cause: Option<Cause>) -> bool {
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
    /// `[[path]]`, any number; the first key is unique.
    List,
}

/// Some keys that belong together.
pub(super) struct Section {
    /// Dotted path; empty for the top of the file.
    pub path: &'static str,
    pub shape: Shape,
    /// What the section is about.
    pub doc: &'static str,
    pub keys: &'static [Key],
}

impl Section {
    /// Its name as the file writes it, for messages.
    pub fn title(&self) -> String {
        match self.shape {
            Shape::Table if self.path.is_empty() => "the top of the file".to_owned(),
            Shape::Table => format!("[{}]", self.path),
            Shape::Causes => format!("[{}.NAME]", self.path),
            Shape::List => format!("[[{}]]", self.path),
        }
    }
}

/// The presets, each with the defaults of the specification that it is named after.
pub(super) const PRESETS: &[&str] = &["battle", "loop", "actions", "state", "lane"];

/// The whole configuration, in the order of the template.
pub(super) static SECTIONS: &[Section] = &[
    retry::TOP,
    retry::RETRY,
    retry::RETRY_CAUSES,
    retry::COOLDOWN,
    retry::ROLLBACK,
    storage::CHECKPOINT,
    storage::RETENTION,
    storage::MEMORY,
    run::MANUAL_FIX,
    run::RUNNER,
    run::RUN,
    run::CHECKS,
    run::FEEDBACK,
    run::RULE,
];

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
    SECTIONS.iter().filter(|section| section.shape != Shape::List).flat_map(|section| {
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
            let keys = section.keys.iter().filter(move |key| key.alias_of.is_none() && key.applies_to(cause));
            keys.map(move |key| (format!("{prefix}{}", key.name), key))
        })
    })
}

/// The key at a full path, aliases excluded.
pub(super) fn leaf(path: &str) -> Option<&'static Key> {
    leaves().find(|(known, _)| known == path).map(|(_, key)| key)
}
