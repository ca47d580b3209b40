//! What may be started and by whom: trust in a project's configuration and state, and what a supervised agent may do.
//!
//! Trust in what a project's configuration starts and permits: shown, given, revoked, required.
//!
//! Values that start programs or widen rights came with the project, and count only where the user trusts them. What is not trusted is left out of the settings when they are read
//! ([`Config`](crate::config::Config)); here it is shown, trusted and revoked, and a command that would use it is refused.
//!
//! `recover trust --state`: what a state directory holds, and taking over what came from elsewhere.
//!
//! What a supervised agent may do with `recover`: everything but what decides about its own run.
//!
//! A process below a supervised attempt is found by the attempt's mark, its own or an ancestor's, and by an ancestor that
//! the ledger knows as the supervisor of an attempt; a variable that it unsets changes neither. An attempt in another
//! project is not concerned.

pub(crate) mod agreed;

use std::cell::LazyCell;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::config::Guarded;
use crate::engine::base::context::place::attempt_numbers;
use crate::engine::base::heartbeat::is_alive;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::vault;
use crate::engine::recovery::{self, rebuild};
use crate::engine::runs::Planned;
use crate::model::hint::join;
use crate::model::time::format_duration;
use crate::model::{Hint, ProcessId, Run, RunId, RunKey};
use crate::policy::secrets::redact;
use crate::policy::text::escape;
use crate::process::Mark;
use crate::store::{Origin, StoreError};

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
        (
            key,
            value,
            change,
            old.filter(|_| change == Change::Changed),
        )
    });
    let gone = before.iter().filter(|(key, _)| !values.contains_key(*key));
    let gone = gone.map(|(key, value)| (key, value, Change::Removed, None));
    let guarded =
        |(key, value, change, old): (&String, &Json, Change, Option<&Json>)| GuardedValue {
            key: key.clone(),
            value: value.clone(),
            change,
            trusted_value: old.cloned(),
        };
    let mut all: Vec<_> = now.chain(gone).map(guarded).collect();
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
    if refuse_to_agent(context, "trust", Reach::Record).is_ok() {
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

fn unwritten(context: &Context, error: std::io::Error) -> Error {
    let place = context.trust_record().path().unwrap_or_default();
    let what = format!("cannot remember what is trusted in {}", place.display());
    Error::io(what, error)
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
    let is_new = |value: &&GuardedValue| value.change != Change::Unchanged;
    let new = found.values.iter().filter(is_new).filter(is_used);
    let new: Vec<String> = new.map(told).collect();
    let new = if new.is_empty() {
        first.key.clone()
    } else {
        new.join("; ")
    };
    let since = if found.was_trusted {
        "has changed since it was trusted"
    } else {
        "is not trusted yet"
    };
    let message = format!(
        "what {} asks for {since}: {new}; nothing was started. Review it, then trust it; --trust, or RECOVER_TRUST=1 in \
         the environment, allows one call",
        found.path
    );
    // What is remembered is gone with a job's machine.
    let hint = match context.env("CI") {
        Some(_) => context.rerun(&["--trust"]),
        None => Hint::recover(["trust"]),
    };
    Err(Error::new(ErrorKind::NotTrusted, message).hint(hint))
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
    agreed::require_agreed(context, run)?;
    match run.spec.configured {
        Some(_) => Ok(()),
        None => require(context, |key| is_check(run, key)),
    }
}

/// The same before a person's fix is judged.
pub(crate) fn require_for_fix(context: &Context, run: &Run) -> Result<()> {
    agreed::require_agreed(context, run)?;
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

/// A state directory, as `recover trust --state` shows it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct StateReport {
    /// The id that it has here; `None` while it has none that is known.
    pub id: Option<String>,
    /// The state directory, absolute.
    pub path: String,
    /// Whether it still counts as another user's.
    pub foreign: bool,
    /// Why it does, or did.
    pub reason: Option<&'static str>,
    /// Runs in it.
    pub runs: usize,
    /// Their attempts.
    pub attempts: usize,
    /// Checkpoints in it.
    pub checkpoints: usize,
    /// What is run where one of its runs is resumed or rolled back.
    pub commands: Vec<RecordedCommand>,
}

/// A command that a run would start.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct RecordedCommand {
    /// The run.
    #[serde(flatten)]
    pub run: RunKey,
    /// `command`, `fallback`, `until`, `feedback`, `compensate`, or `prompt`, which is no command but given to one.
    #[schemars(extend("enum" = ["command", "fallback", "until", "feedback", "compensate", "prompt"]))]
    pub kind: &'static str,
    /// The command as a line for a shell, or the prompt.
    pub text: String,
}

/// A state directory that came from elsewhere and was taken over, or would be.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Trusted {
    pub changed: bool,
    pub state: StateReport,
    /// In a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Planned>,
}

/// What the state directory holds.
pub(crate) fn look_at_state(context: &Context) -> Result<StateReport> {
    let store = context.store();
    let state = match recovery::load_recovered(context) {
        Err(error) if error.kind == ErrorKind::Corrupt => {
            context.warn(format!(
                "{error}: once it is trusted, `recover doctor --rebuild` brings back what can be read"
            ));
            Arc::default()
        }
        loaded => loaded?,
    };
    let origin = store.origin();
    let failed = |error| {
        Error::io(
            format!("cannot read the id of {}", store.dir().display()),
            error,
        )
    };
    let id = if store.has_known_id().map_err(failed)? {
        store.id().map_err(failed)?
    } else {
        None
    };
    Ok(StateReport {
        id,
        path: store.dir().to_string_lossy().into_owned(),
        foreign: matches!(origin, Origin::Foreign(_)),
        reason: match origin {
            Origin::Ours => None,
            Origin::Foreign(why) => Some(why.as_str()),
        },
        runs: state.runs.len(),
        attempts: state.runs.iter().map(|run| run.attempts().count()).sum(),
        checkpoints: state.checkpoints.len(),
        commands: state.runs.iter().flat_map(commands_of).collect(),
    })
}

/// What a run has recorded that would be run, or be said to what is run.
fn commands_of(run: &Run) -> Vec<RecordedCommand> {
    let spec = &run.spec;
    let words = [("command", &spec.command), ("fallback", &spec.fallback)];
    let mut all: Vec<(&'static str, String)> = words
        .into_iter()
        .filter(|(_, words)| !words.is_empty())
        .map(|(kind, words)| (kind, join(words)))
        .collect();
    all.extend(spec.until.iter().map(|until| ("until", until.clone())));
    let configured = spec
        .configured
        .iter()
        .flat_map(|configured| &configured.feedback);
    all.extend(
        spec.feedback
            .iter()
            .chain(configured)
            .map(|check| ("feedback", check.command.clone())),
    );
    all.extend(
        run.steps
            .iter()
            .filter_map(|step| step.start.compensate.clone())
            .map(|undo| ("compensate", undo)),
    );
    all.extend(spec.prompt.iter().map(|prompt| ("prompt", prompt.clone())));
    all.into_iter()
        .map(|(kind, text)| RecordedCommand {
            run: run.key.clone(),
            kind,
            text,
        })
        .collect()
}

/// Takes the state over whole: it gets an id that is known here, its ledger its second name, and its runs are those of the
/// work tree here wherever they were recorded. In a dry run only says what it holds.
///
/// # Errors
/// There is no state (10).
pub(crate) fn take_over_state(context: &Context) -> Result<Trusted> {
    let store = context.store();
    let lost = context.lost_vault().filter(|_| !context.dry_run());
    if lost.is_some() {
        vault::detach(context)?;
    }
    if !store.has_content() && lost.is_none() {
        let message = format!("there is no state in {}", store.dir().display());
        return Err(Error::new(ErrorKind::NoRepository, message).hint(Hint::recover(["status"])));
    }
    let state = look_at_state(context)?;
    if !store.has_content() {
        return Ok(Trusted {
            changed: true,
            state,
            plan: None,
        });
    }
    let changed = state.foreign || state.id.is_none();
    if !changed || context.dry_run() {
        return Ok(Trusted {
            changed: false,
            state,
            plan: context.dry_run().then_some(Planned { changed }),
        });
    }
    let from = store
        .load()
        .ok()
        .and_then(|loaded| context.brought_from(&loaded.state))
        .unwrap_or_default();
    let ours = store.clone().of_origin(Origin::Ours);
    if let Some(kept) = ours.set_other_copy_aside()? {
        context.warn(format!(
            "another ledger was recorded here before: it is kept in {}",
            kept.display()
        ));
    }
    ours.create_dirs()?;
    match ours.lock() {
        // It was said, and is ours to rebuild from now on.
        Err(StoreError::Corrupt { .. }) => {}
        locked => {
            drop(locked?);
            rebuild::take_over(&context.at(context.worktree())?, &from)?;
        }
    }
    let id = ours.id().map_err(|error| {
        Error::io(
            format!("cannot read the id of {}", ours.dir().display()),
            error,
        )
    })?;
    let state = StateReport {
        id,
        foreign: false,
        ..state
    };
    Ok(Trusted {
        changed,
        state,
        plan: None,
    })
}

/// What a command would decide about that is not for an attempt to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nothing: it looks, adds, or only plans.
    Nothing,
    /// Runs of its own, and that of the attempt only if that is the one named.
    Run,
    /// The files of the work tree, or the run's course.
    Tree,
    /// What is recorded, and what guards it.
    Record,
}

/// An attempt that this process is part of.
struct Attempt {
    run_id: Option<RunId>,
    supervisor: ProcessId,
    /// Whether it works in this work tree.
    is_here: bool,
}

/// Refuses `command` where this process is part of an attempt that it would decide about.
pub(crate) fn refuse_to_agent(context: &Context, command: &str, reach: Reach) -> Result<()> {
    if reach == Reach::Nothing || context.dry_run() {
        return Ok(());
    }
    let named = context.naming().run_id.as_ref();
    let Some(attempt) = attempts(context, command).into_iter().find(|attempt| {
        let is_own = named.is_none()
            || attempt
                .run_id
                .as_ref()
                .is_none_or(|run_id| named == Some(run_id));
        match reach {
            Reach::Nothing => false,
            Reach::Run => is_own,
            Reach::Tree => is_own || attempt.is_here,
            Reach::Record => true,
        }
    }) else {
        return Ok(());
    };
    let run = attempt
        .run_id
        .as_ref()
        .map_or_else(|| "a run".to_owned(), |run_id| format!("run {run_id}"));
    let message = format!(
        "recover {command} is refused inside an attempt of {run}, which recover supervises (pid {})",
        attempt.supervisor.pid
    );
    let mut words = vec!["status"];
    words.extend(
        attempt
            .run_id
            .iter()
            .flat_map(|run_id| ["--run", run_id.as_str()]),
    );
    Err(Error::new(ErrorKind::InsideAttempt, message).hint(Hint::recover(words)))
}

/// The attempts of this project that this process is part of. Trust is the repository's: whatever the state directory and
/// the work tree are, no attempt gives it.
fn attempts(context: &Context, command: &str) -> Vec<Attempt> {
    let anywhere = command == "trust" || command == "init";
    let [state, tree] = attempt_places(context);
    let marks = Mark::all().into_iter().filter(|(mark, _)| {
        let [of_state, of_tree] = mark.places;
        anywhere || of_state == state || of_tree == tree
    });
    let mut found: Vec<Attempt> = marks
        .map(|(mark, run_id)| Attempt {
            run_id,
            is_here: mark.places[1] == tree,
            supervisor: mark.supervisor,
        })
        .collect();
    let above = LazyCell::new(ProcessId::ancestors);
    // A ledger that cannot be read names nobody; what a command does with it is its own to say.
    for run in context
        .load()
        .iter()
        .flat_map(|loaded| loaded.state.runs.iter())
    {
        let supervisor = run.live.as_ref().and_then(|live| live.supervisor.as_ref());
        let is_above = |id: &&ProcessId| {
            above
                .iter()
                .any(|one| (one.pid, one.start_time) == (id.pid, id.start_time))
        };
        if let Some(supervisor) = supervisor
            .filter(is_above)
            .filter(|id| is_alive(context.store(), id))
        {
            let is_here = run.worktree == context.worktree_id();
            found.push(Attempt {
                run_id: Some(run.key.run_id.clone()),
                supervisor: supervisor.clone(),
                is_here,
            });
        }
    }
    found
}

/// State directory and work tree, as numbers for the mark of an attempt.
pub(in crate::engine) fn attempt_places(context: &Context) -> [u32; 2] {
    attempt_numbers(context.store().dir(), context.worktree())
}
