//! Notifying a person of what happened in a run, by a command of theirs.

use std::ffi::OsString;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::attempt::run_summary::night;
use crate::engine::base::clock::local_times;
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::attempt_record::Ended;
use crate::engine::trust::agreed::is_agreed;
use crate::model::{Action, Decision, Failure, Run, RunKey, SCHEMA_VERSION, Timestamp};
use crate::policy::checkpoint_events::{MASKED, still_masked};
use crate::policy::report::{Night, RunLine, run_line, run_state};
use crate::policy::secrets::{redact, redact_json};
use crate::policy::settings::{CommandLine, NotifyEvent};
use crate::policy::text::escape;
use crate::process::Detached;

/// The log of notifications that failed, beside a run's logs.
pub(super) const LOG: &str = "notify.log";
/// What runs a command that is one string: the user's, whatever shell a project has for its own.
const SHELL: &str = "/bin/sh";

/// Something that a person may want to hear of.
#[derive(Clone, Debug)]
pub(crate) struct Happened {
    pub event: NotifyEvent,
    /// Why.
    pub reason: Option<String>,
    /// The iteration that it is about.
    pub iteration: Option<u32>,
    /// Until when the run waits.
    pub until: Option<Timestamp>,
}

impl Happened {
    /// That, and why.
    pub(crate) fn new(event: NotifyEvent, reason: Option<String>) -> Self {
        Self {
            event,
            reason,
            iteration: None,
            until: None,
        }
    }

    /// What the end of an attempt is for whoever drives a loop of their own: given up, parked, a person is needed, or nothing;
    /// nothing either where the same was decided `before` at the same iteration and for the same cause, for a loop may go on
    /// regardless.
    pub(crate) fn at_end(ended: &Ended, before: &Run) -> Option<Self> {
        let failure = ended.end.failure.as_ref();
        let happened = Self::decided(ended.end.decision.as_ref()?, failure)?;
        let earlier = before.failure.as_ref();
        let last = before.decision.as_ref();
        let last = last.and_then(|decision| Self::decided(decision, earlier));
        let cause = |failure: Option<&Failure>| failure.map(|failure| failure.cause);
        let what = |one: &Self| (one.event, one.iteration, one.until);
        let is_known = last.is_some_and(|last| what(&last) == what(&happened))
            && cause(earlier) == cause(failure);
        (!is_known).then_some(happened)
    }

    fn decided(decision: &Decision, failure: Option<&Failure>) -> Option<Self> {
        let event = match () {
            () if decision.has(Action::Escalate) || decision.has(Action::ManualFix) => {
                NotifyEvent::NeedsPerson
            }
            () if decision.has(Action::Skip) => NotifyEvent::GaveUp,
            () if decision.has(Action::Park) => NotifyEvent::Parked,
            () => return None,
        };
        Some(Self {
            iteration: failure.and_then(|failure| failure.iteration),
            until: decision.not_before.filter(|_| event == NotifyEvent::Parked),
            ..Self::new(event, Some(decision.reason.clone()))
        })
    }
}

/// What whoever is notified reads.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "notify")]
pub(crate) struct Notification {
    /// What happened.
    #[schemars(extend("enum" = ["needs_person", "parked", "gave_up", "ended"]))]
    event: &'static str,
    /// When.
    at: Timestamp,
    /// What happened, in a line.
    summary: String,
    /// Why.
    reason: Option<String>,
    /// The iteration that it is about.
    iteration: Option<u32>,
    /// Until when the run waits.
    until: Option<Timestamp>,
    /// The run.
    run: RunLine,
    /// What came of it so far; `null` where it has no attempts.
    night: Option<Night>,
    /// Where the report is that was written for it.
    report_path: Option<String>,
}

/// The document as it is written.
#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    command: &'static str,
    #[serde(flatten)]
    notification: &'a Notification,
}

/// Notifies whoever wants to hear of it, with the report that was written for it. Nothing waits for that, and what goes wrong
/// with it changes nothing else.
pub(in crate::engine) fn notify(
    context: &Context,
    key: &RunKey,
    happened: Happened,
    report: Option<&Path>,
) {
    let wanted = context.settings().notify.on.contains(&happened.event) && !context.dry_run();
    if !wanted {
        return;
    }
    if let Err(error) = start(context, key, happened, report) {
        tracing::warn!(%error, run = %key, "nobody was notified");
    }
}

/// That a run stops for an error, which nothing else tells those who are away.
pub(super) fn notify_of_error(context: &Context, key: &RunKey, error: &Error) {
    let event = match error.kind {
        ErrorKind::Interrupted(_) => NotifyEvent::Ended,
        _ => NotifyEvent::NeedsPerson,
    };
    let happened = Happened::new(event, Some(error.message.clone()));
    notify(context, key, happened, None);
}

/// The words of the command that notifies; `None` where there is none.
fn command(context: &Context, run: &Run) -> Option<Vec<String>> {
    if let Some(line) = &run.spec.notify {
        if !is_agreed(context, run) {
            return None;
        }
        if still_masked(&run.spec)
            .iter()
            .any(|field| field == "notify")
        {
            tracing::warn!("nobody was notified: the command for that {MASKED}");
            return None;
        }
        return (!line.trim().is_empty()).then(|| words(&CommandLine::Shell(line.clone())));
    }
    context.settings().notify.command.as_ref().map(words)
}

/// The words of a command of the configuration.
pub(super) fn words(command: &CommandLine) -> Vec<String> {
    match command {
        CommandLine::Shell(line) => vec![SHELL.to_owned(), "-c".to_owned(), line.clone()],
        CommandLine::Argv(argv) => argv.clone(),
    }
}

fn start(context: &Context, key: &RunKey, happened: Happened, report: Option<&Path>) -> Result<()> {
    let state = context.load()?.state;
    let run = run_of(&state, key)?;
    let Some(argv) = command(context, &run) else {
        return Ok(());
    };
    let event: &'static str = happened.event.into();
    let night = night(context, &state, &run);
    let summary = summary(context, &run, &happened, night.as_ref());
    let notification = Notification {
        event,
        at: context.clock.now(),
        summary: summary.clone(),
        reason: happened.reason,
        iteration: happened.iteration,
        until: happened.until,
        run: run_line(&run),
        night,
        report_path: report.map(|path| path.to_string_lossy().into_owned()),
    };
    let document = Document {
        schema_version: SCHEMA_VERSION,
        command: "notify",
        notification: &notification,
    };
    let document = serde_json::to_value(document)
        .map(redact_json)
        .map_err(anyhow::Error::from)?;
    let folder = context.store().run_dir(key);
    context.create_state_dir(&folder)?;
    let failed = |what: &str, error| Error::io(format!("cannot {what}"), error);
    let log = context.store().root().open_or_create(&folder.join(LOG));
    let log = log.map_err(|error| failed("write the log", error))?;
    let env = [
        ("RECOVER_EVENT", event),
        ("RECOVER_RUN_ID", key.run_id.as_str()),
        ("RECOVER_SUMMARY", &summary),
    ];
    let detached = Detached {
        argv: argv.into_iter().map(OsString::from).collect(),
        cwd: context.worktree().to_owned(),
        env: env.map(|(name, value)| (name.into(), value.into())).into(),
        stdin: format!("{document}\n").into_bytes(),
        log,
        redact: context.settings().redact.clone(),
    };
    detached
        .start()
        .map_err(|error| failed("start what notifies", error))
}

/// What happened, for a person who sees nothing else: in which project, which run, what, why, and what came of it so far.
fn summary(context: &Context, run: &Run, happened: &Happened, night: Option<&Night>) -> String {
    let project = context
        .worktree()
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let what = match happened.event {
        NotifyEvent::NeedsPerson => "needs you".to_owned(),
        NotifyEvent::Parked => match happened.until {
            Some(until) => format!("is waiting until {until}"),
            None => "is waiting".to_owned(),
        },
        NotifyEvent::GaveUp => match happened.iteration {
            Some(iteration) => format!("gave up iteration {iteration}"),
            None => "gave up an iteration".to_owned(),
        },
        NotifyEvent::Ended => format!("ended: {}", run_state(run)),
    };
    let mut text = format!("{project}: run {} {what}", run.key.run_id);
    if let Some(reason) = &happened.reason {
        text += &format!(" ({reason})");
    }
    if let Some(night) = night {
        text += &format!("; {}", night.summary);
    }
    escape(&redact(&local_times(&text)))
}
