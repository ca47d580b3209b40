//! Every key that the configuration has, as tables, in a file for a few sections each.
//! Validation, hints, origins, the template and the reference are made from them.
//!
//! Defaults are not in it: they are those of [`Settings::default`](crate::policy::settings::Settings).

mod redact;
mod retry;
mod rights;
mod run;
mod section;
mod storage;
mod user;

use crate::model::failure::Cause;

pub(super) use rights::{Owner, is_guarded, is_user_first, may_set};
pub(super) use section::{Key, Section, Shape};

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
    redact::REDACT,
    run::FEEDBACK,
    run::RULE,
    user::NOTIFY,
    user::REMOTE,
    user::UI,
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
