//! The session of a manual fix: opened, found again, and compared with the work tree.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::run_settings::log_name;
use crate::engine::record::storage::{Prepared, Request};
use crate::engine::record::{checkpoint, events, select};
use crate::engine::recovery;
use crate::git::tree::Seen;
use crate::model::checkpoint::trigger;
use crate::model::id::FixId;
use crate::model::run_line::run_line;
use crate::model::{
    CaptureRules, Change, CheckpointId, Hint, ManualFixSession, ManualFixStatus, Payload, Run,
    RunKey, RunLine, State, Timestamp,
};
use crate::policy::restore::Selection;
use crate::store::NewEvent;

/// A session and its run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Fix {
    pub session: ManualFixSession,
    #[serde(serialize_with = "run_line")]
    #[schemars(with = "RunLine")]
    pub run: Run,
}

pub(in crate::engine) fn new_session(
    run: &Run,
    id: FixId,
    checkpoint_id: CheckpointId,
    context: &Context,
) -> ManualFixSession {
    ManualFixSession {
        id,
        run_id: run.key.run_id.clone(),
        task_id: run.task_id.clone(),
        started_at: context.clock.now(),
        issue: run.failure.clone(),
        checkpoint_id,
        detected_changes: Vec::new(),
        verification_results: std::collections::BTreeMap::new(),
        verified: false,
        verified_tree: None,
        last_detected_at: None,
        status: ManualFixStatus::Active,
    }
}

/// Opens a session for `key`; the open one where there is one.
pub(crate) fn open(context: &Context, key: &RunKey) -> Result<Fix> {
    let state = context.load()?.state;
    if let Ok(fix) = active(&state, key) {
        return Ok(fix);
    }
    let prepared = prepare(context)?;
    let ledger = context.store().lock()?;
    if let Ok(fix) = active(ledger.state(), key) {
        return Ok(fix);
    }
    let run = run_of(ledger.state(), key)?;
    let request = Request {
        description: "Before the manual fix".to_owned(),
        trigger: trigger::MANUAL_FIX.to_owned(),
        after_iteration: Some(run.current_iteration.saturating_sub(1)),
        ..Request::default()
    };
    let base = checkpoint::record(context, &ledger, key, &prepared, request)?;
    let now = context.clock.now();
    let id = format!("fix_{:04}", base.seq).into();
    let session = Box::new(new_session(&run, id, base.id.clone(), context));
    let started = NewEvent::about(key, Payload::ManualFixStarted { session });
    let events = vec![checkpoint::event(&base), started];
    active(&*events::append(ledger, key, now, events)?, key)
}

pub(in crate::engine) fn active(state: &State, key: &RunKey) -> Result<Fix> {
    let run = run_of(state, key)?;
    match &run.manual_fix {
        Some(session) if session.status == ManualFixStatus::Active => Ok(Fix {
            session: session.clone(),
            run,
        }),
        _ => Err(no_session(key, " is open")),
    }
}

fn no_session(key: &RunKey, what: &str) -> Error {
    let message = format!("no manual fix of run {key}{what}");
    Error::new(ErrorKind::NoSession, message).hint(Hint::recover(["manual-fix", "start"]).run(key))
}

/// The session of the run that a command works on, with what has changed by now.
pub(crate) fn status(context: &Context) -> Result<Fix> {
    let state = recovery::load_recovered(context)?;
    let key = select::require(context, &state)?.key.clone();
    status_of(context, &key)
}

pub(in crate::engine) fn status_of(context: &Context, key: &RunKey) -> Result<Fix> {
    let state = recovery::load_recovered(context)?;
    let run = run_of(&state, key)?;
    let Some(session) = run.manual_fix.clone() else {
        return Err(no_session(&run.key, ""));
    };
    let mut fix = Fix { session, run };
    if fix.session.status == ManualFixStatus::Active {
        let prepared = prepare(context)?;
        fix.session.detected_changes = changes_since(context, &state, &fix.session, &prepared)?;
        let tree = Some(&prepared.capture.tree);
        fix.session.verified = fix.session.verified && fix.session.verified_tree.as_ref() == tree;
        show_changes(context, &state, &mut fix.session, &prepared)?;
    }
    Ok(fix)
}

/// Of more changes, and of longer ones in bytes, no patch is shown.
const MAX_DIFFS: usize = 50;
const MAX_DIFF: usize = 64 << 10;

/// Adds what a person wants to see of the changes: each as a patch, and when the last of them was made.
fn show_changes(
    context: &Context,
    state: &State,
    session: &mut ManualFixSession,
    prepared: &Prepared,
) -> Result<()> {
    let objects = prepared.capture.objects();
    let base = state.checkpoint(&session.checkpoint_id);
    for change in session.detected_changes.iter_mut().take(MAX_DIFFS) {
        let path = change.path.below(context.worktree());
        let changed = path
            .symlink_metadata()
            .and_then(|file| file.modified())
            .ok();
        let changed = changed.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let changed = changed.map(|since| {
            let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
            Timestamp::from_millis(millis)
        });
        session.last_detected_at = session.last_detected_at.max(changed);
        let only = Selection::globs(&[globset::escape(&change.path.to_lossy())]);
        if let (Some(base), Ok(only)) = (base, only) {
            let difference = objects.patch(&base.tree, &prepared.capture.tree, &only)?;
            let text = String::from_utf8(difference).ok();
            change.diff = text.filter(|text| (1..=MAX_DIFF).contains(&text.len()));
        }
    }
    Ok(())
}

/// Files of editors beside an open one: swap files, backups, locks, what they try out a folder with.
const EDITOR_TEMP_GLOBS: [&str; 7] = [
    "**/.*.sw[a-z]",
    "**/4913",
    "**/*~",
    "**/.#*",
    "**/#*#",
    "**/.*.kate-swp",
    "**/*___jb_???___",
];

/// The work tree as a person left it who may still have it open: what comes and goes with an editor is nobody's change.
pub(in crate::engine) fn prepare(context: &Context) -> Result<Prepared> {
    let editor_temp_globs = EDITOR_TEMP_GLOBS.map(str::to_owned).into();
    checkpoint::prepare_as(
        context,
        &CaptureRules {
            editor_temp_globs,
            ..context.capture_rules()
        },
    )
}

/// Where the output of a feedback loop of a session is kept.
pub(crate) fn log_of(context: &Context, session: &ManualFixSession, name: &str) -> PathBuf {
    log_dir(context, session).join(log_name(name, ""))
}

/// Where the logs of a session's feedback loops are.
pub(crate) fn log_dir(context: &Context, session: &ManualFixSession) -> PathBuf {
    context
        .store()
        .private_dir()
        .join("manual-fix")
        .join(session.id.as_str())
}

pub(in crate::engine) fn changes_since(
    context: &Context,
    state: &State,
    session: &ManualFixSession,
    prepared: &Prepared,
) -> Result<Vec<Change>> {
    changes_with_seen(context, state, session, prepared, &Seen::new())
}

/// [`changes_since`], reusing the line counts of an earlier call.
pub(in crate::engine) fn changes_with_seen(
    context: &Context,
    state: &State,
    session: &ManualFixSession,
    prepared: &Prepared,
    seen: &Seen,
) -> Result<Vec<Change>> {
    let repo = context.repo()?;
    let base = state.checkpoint(&session.checkpoint_id).ok_or_else(|| {
        Error::new(
            ErrorKind::NoCheckpoint,
            format!("No checkpoint available: {} is gone", session.checkpoint_id),
        )
    })?;
    let before = repo.load_checkpoint(&base.commit)?;
    let objects = prepared.capture.objects();
    Ok(objects.changes_with(
        before.view(),
        prepared.capture.view(),
        &Selection::all(),
        seen,
    )?)
}
