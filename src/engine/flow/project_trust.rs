//! Trust in what a project's configuration starts and permits: shown, given, revoked, required.
//!
//! Values that start programs or widen rights came with the project, and count only where the user trusts them. What is not trusted is left out of the settings when they are read
//! ([`Config`](crate::config::Config)); here it is shown, trusted and revoked, and a command that would use it is refused.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::config::Guarded;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::flow::inside::{self, Reach};
use crate::engine::flow::remote::require_agreed;
use crate::model::hint::{Hint, join};
use crate::model::run::Run;
use crate::model::time::format_duration;
use crate::policy::secrets::redact;
use crate::policy::text::escape;

use super::runs::Planned;

/// What became of a value since the project's configuration was last trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Change {
    /// It was not there.
    Added,
    /// It was another one.
    Changed,
    /// It is not there any more.
    Removed,
    /// It is as it was.
    Unchanged,
}

/// A value that starts a program or widens rights.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "guarded_value")]
pub(crate) struct GuardedValue {
    /// Its key; a check is `feedback.NAME`, what is set for one task begins with `task.NAME.`.
    pub key: String,
    /// What the file says; of one that was removed, what it said.
    pub value: Json,
    /// Since the configuration was last trusted.
    pub change: Change,
    /// What was trusted, where that was another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trusted_value: Option<Json>,
}

/// What a project's configuration starts and permits.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct ProjectTrust {
    pub changed: bool,
    /// Whether all of it is trusted and remembered; nothing is, where nothing is asked for.
    pub trusted: bool,
    /// The configuration file.
    pub path: String,
    /// The values, by key.
    pub values: Vec<GuardedValue>,
    /// In a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Planned>,
    /// Whether anything of the project was trusted before.
    #[serde(skip)]
    pub was_trusted: bool,
}

/// Shows what is asked for, compared with what was trusted last.
pub(crate) fn look(context: &Context) -> ProjectTrust {
    let (values, record) = (context.config().guarded(), context.trust_record());
    let trusted = values.is_empty() || record.holds(values);
    let before = record.latest();
    let was_trusted = before.is_some();
    let before = if trusted {
        values.clone()
    } else {
        before.unwrap_or_default()
    };
    ProjectTrust {
        changed: false,
        trusted,
        path: context.config().file.to_string_lossy().into_owned(),
        values: compared(values, &before),
        plan: None,
        was_trusted,
    }
}

fn compared(values: &Guarded, before: &Guarded) -> Vec<GuardedValue> {
    let now = values.iter().map(|(key, value)| {
        let old = before.get(key);
        let change = match old {
            None => Change::Added,
            Some(old) if old == value => Change::Unchanged,
            Some(_) => Change::Changed,
        };
        let trusted_value = old.filter(|_| change == Change::Changed).cloned();
        GuardedValue {
            key: key.clone(),
            value: value.clone(),
            change,
            trusted_value,
        }
    });
    let gone = before
        .iter()
        .filter(|(key, _)| !values.contains_key(*key))
        .map(|(key, value)| GuardedValue {
            key: key.clone(),
            value: value.clone(),
            change: Change::Removed,
            trusted_value: None,
        });
    let mut all: Vec<_> = now.chain(gone).collect();
    all.sort_by(|one, other| one.key.cmp(&other.key));
    all
}

/// Trusts what is asked for now, and remembers it; whether that is new. In a dry run only says so.
pub(crate) fn trust(context: &Context) -> Result<bool> {
    let found = look(context);
    if !found.trusted && !context.dry_run() {
        let kept = context
            .trust_record()
            .add(context.config().guarded(), context.clock.now());
        kept.map_err(|error| unwritten(context, error))?;
    }
    Ok(!found.trusted)
}

/// Trusts what `recover` wrote for the user. For a supervised agent it does not: the run after it would not ask.
pub(crate) fn trust_own(context: &Context) -> Result<()> {
    if inside::refuse(context, "trust", Reach::Record).is_ok() {
        trust(context)?;
    }
    Ok(())
}

/// Forgets all that was trusted in this repository; whether there was anything. In a dry run only says so.
pub(crate) fn revoke(context: &Context) -> Result<bool> {
    let record = context.trust_record();
    if context.dry_run() {
        return Ok(record.latest().is_some());
    }
    record.revoke().map_err(|error| unwritten(context, error))
}

/// Forgets what was trusted, with everything else of the repository.
pub(crate) fn forget(context: &Context) -> Result<()> {
    context
        .trust_record()
        .revoke()
        .map(drop)
        .map_err(|error| unwritten(context, error))
}

fn place(context: &Context) -> String {
    context
        .trust_record()
        .path()
        .map_or_else(|| "no folder".to_owned(), |path| path.display().to_string())
}

fn unwritten(context: &Context, error: std::io::Error) -> Error {
    Error::io(
        format!("cannot remember what is trusted in {}", place(context)),
        error,
    )
}

/// Refuses to go on (13) where what is not trusted would be used: `uses` says of a key whether it would be.
pub(crate) fn require(context: &Context, uses: impl Fn(&str) -> bool) -> Result<()> {
    let withheld = context.config().withheld();
    let asked: Vec<_> = withheld.iter().filter(|entry| uses(&entry.key)).collect();
    let Some(first) = asked.first() else {
        return Ok(());
    };
    let found = look(context);
    let is_used = |value: &&GuardedValue| asked.iter().any(|entry| is_of(&value.key, &entry.key));
    let new = found
        .values
        .iter()
        .filter(|value| value.change != Change::Unchanged)
        .filter(is_used);
    let new: Vec<String> = new.map(told).collect();
    let file = context.config().file.display();
    let new = if new.is_empty() {
        first.key.clone()
    } else {
        new.join("; ")
    };
    // It starts nothing: it may keep from you what happens.
    let only_notifies = asked.iter().all(|entry| entry.key == "notify.on");
    let (starts, would) = if only_notifies {
        ("notifies you of", "choose what you are notified of, which")
    } else {
        ("starts", "start what")
    };
    let message = if found.was_trusted {
        format!(
            "what {file} {starts} has changed since it was trusted: {new}; nothing was started. Review it, then trust it again"
        )
    } else {
        format!(
            "{file} would {would} is not trusted yet: {new}; nothing was started. A project's file decides only what you trust: \
             review it and trust it, once for this repository, and again when it changes; --trust or RECOVER_TRUST=1 allow one call"
        )
    };
    // What is remembered is gone with the job's machine.
    if context.env("CI").is_some() {
        let message =
            format!("{message}; in CI RECOVER_TRUST=1 in the job's environment allows it");
        return Err(Error::new(ErrorKind::NotTrusted, message).hint(context.rerun(&["--trust"])));
    }
    Err(Error::new(ErrorKind::NotTrusted, message).hint(Hint::recover(["trust"])))
}

/// A value in a message, in which secrets are masked. What cannot be shown whole there is shown where it can.
fn told(value: &GuardedValue) -> String {
    let text = escape(&shown(value));
    if redact(&text) == text {
        return format!("{} = {text}", value.key);
    }
    format!(
        "{}, which may be confidential and is shown whole by recover trust --dry-run",
        value.key
    )
}

/// Whether a guarded value's key is that of a setting, or of one of its items, perhaps for a task.
fn is_of(value: &str, setting: &str) -> bool {
    let is_it = |key: &str| {
        key.strip_prefix(setting)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let of_task = || {
        value
            .strip_prefix("task.")
            .and_then(|rest| rest.find(&format!(".{setting}")).map(|at| &rest[at + 1..]))
    };
    is_it(value) || of_task().is_some_and(is_it)
}

/// A value as a person reads it.
pub(crate) fn shown(value: &GuardedValue) -> String {
    shown_json(&value.value)
}

/// The same of any value of a configuration.
pub(crate) fn shown_json(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(words) if words.iter().all(Json::is_string) && !words.is_empty() => join(
            words
                .iter()
                .filter_map(Json::as_str)
                .map(str::to_owned)
                .collect::<Vec<_>>(),
        ),
        Json::Object(fields) if fields.contains_key("command") => {
            let command = fields
                .get("command")
                .and_then(Json::as_str)
                .unwrap_or_default()
                .to_owned();
            let more = fields.iter().filter(|(name, _)| *name != "command");
            let more = more.map(|(name, value)| match (name.as_str(), value.as_u64()) {
                ("timeout_ms", Some(millis)) => {
                    format!("timeout {}", format_duration(Duration::from_millis(millis)))
                }
                _ => format!("{name} {}", shown_json(value)),
            });
            let more: Vec<String> = more.collect();
            if more.is_empty() {
                command
            } else {
                format!("{command} ({})", more.join(", "))
            }
        }
        other => other.to_string(),
    }
}

/// Refuses to supervise a run with checks that it did not begin with and that are not trusted.
pub(crate) fn require_to_drive(context: &Context, run: &Run) -> Result<()> {
    require_agreed(context, run)?;
    match run.spec.configured {
        Some(_) => Ok(()),
        None => require(context, |key| is_check(run, key)),
    }
}

/// The same before a person's fix is judged.
pub(crate) fn require_for_fix(context: &Context, run: &Run) -> Result<()> {
    require_agreed(context, run)?;
    let recorded = run
        .spec
        .configured
        .as_ref()
        .is_some_and(|configured| !configured.feedback.is_empty());
    let has_own = run.spec.configured.is_some() && !run.spec.feedback.is_empty();
    if recorded || has_own {
        Ok(())
    } else {
        require(context, |key| is_check(run, key))
    }
}

/// Whether a key is about the checks of a run: the shell is where something is run by it.
fn is_check(run: &Run, key: &str) -> bool {
    let spec = &run.spec;
    key == "feedback"
        || key == "runner.shell" && (!spec.feedback.is_empty() || spec.until.is_some())
}
