//! `recover trust --state`: what a state directory holds, and taking over what came from elsewhere.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::recovery::{crash, rebuild};
use crate::model::hint::{Hint, join};
use crate::model::run::{Run, RunKey};
use crate::store::{Origin, StoreError};

use super::runs::Planned;

/// A state directory, as `recover trust --state` shows it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct StateReport {
    /// The id that it has here; `None` while it has none that is known.
    pub id: Option<String>,
    /// The state directory, absolute.
    pub path: String,
    /// Whether it still counts as somebody else's.
    pub foreign: bool,
    /// Why it does, or did.
    pub reason: Option<&'static str>,
    /// Runs in it.
    pub runs: usize,
    /// Their attempts.
    pub attempts: usize,
    /// Checkpoints in it.
    pub checkpoints: usize,
    /// What is run where one of its runs is taken up or rolled back.
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
pub(crate) fn look(context: &Context) -> Result<StateReport> {
    let store = context.store();
    let state = match crash::load_recovered(context) {
        Err(error) if error.kind == ErrorKind::Corrupt => {
            context.warn(format!(
                "{error}: once it is taken over, `recover doctor --rebuild` brings back what can be read"
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
pub(crate) fn take_over(context: &Context) -> Result<Trusted> {
    let store = context.store();
    if !store.has_content() {
        let message = format!("there is no state in {}", store.dir().display());
        return Err(Error::new(ErrorKind::NoRepository, message).hint(Hint::recover(["status"])));
    }
    let state = look(context)?;
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
