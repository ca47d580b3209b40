//! Checkpoints on request and on the way: taken, planned, pinned.
//!
//! When a checkpoint is due, and the operations that count towards it (S10).

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::{Context, ErrorKind, Result};
use crate::engine::record::checkpoint::{self, event_with, prepare, prepare_as, publish_large};
use crate::engine::record::storage::Prepared;
use crate::engine::record::{events, lane, nested, select};
use crate::engine::recovery;
use crate::git::repo::CheckpointRef;
use crate::model::checkpoint::{CapturedTotals, trigger};
use crate::model::hook::ToolCall;
use crate::model::{CaptureRules, Checkpoint, ObjectId, Payload, RunKey, Selector, State};
use crate::policy::secrets::redact;

pub(crate) use crate::engine::record::storage::Request;

/// How long a description of a command may be.
const LONGEST: usize = 80;

/// How a checkpoint on request is taken, and when it is not: the run's latest one is the answer then.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// Not if nothing has changed since the latest one, and that says as much ([`trigger::covers`]).
    pub skip_if_unchanged: bool,
    /// Not if none is due: see [`due()`] (S10). A request of the trigger `operation` counts as an operation then.
    pub skip_if_not_due: bool,
    /// The process may be killed at any time (an agent's hook has a deadline): what has been stored by then is found again
    /// by the next capture.
    pub publish_incrementally: bool,
}

/// A checkpoint on request.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Created {
    /// Whether it is a new one.
    pub changed: bool,
    /// The new one, or the one that makes it superfluous.
    pub checkpoint: Checkpoint,
}

/// Takes a checkpoint unless the options say that none is needed.
pub(crate) fn create(context: &Context, request: Request, options: Options) -> Result<Created> {
    let unneeded = |checkpoint| Created {
        changed: false,
        checkpoint,
    };
    recovery::recover(context)?;
    if options.skip_if_not_due
        && let Some(latest) = not_due(context, &request.trigger)?
    {
        if request.trigger == trigger::OPERATION {
            record_operation(context, &latest.run, trigger::OPERATION)?;
        }
        return Ok(unneeded(latest));
    }
    let publish_incrementally = options.publish_incrementally;
    let prepared = prepare_as(
        context,
        &CaptureRules {
            publish_incrementally,
            ..context.capture_rules()
        },
    )?;
    publish_large(&prepared);
    let mut ledger = context.store().lock()?;
    let (key, mut events) = select::find_or_create_for_capture(context, ledger.state())?;
    let label = label_of(&request);
    // A stage that was reached is recorded, whatever changed.
    if options.skip_if_unchanged
        && request.lane_fields.stage.is_none()
        && let Some(same) = unchanged_since(context, ledger.state(), &key, &prepared)?
        && trigger::covers(&same.trigger, &request.trigger)
        && same.has_room_for(&label)
    {
        prepared.capture.repair()?;
        prepared.capture.write_cache_of_same(
            &CheckpointRef::name_of(&same.run.run_id, &same.id),
            &same.commit,
        );
        if same.has_label(&label) {
            return Ok(unneeded(same));
        }
        let payload = Payload::CheckpointLabelled {
            checkpoint_id: same.id.clone(),
            label,
        };
        let state = context.record_in(ledger, &key, vec![payload])?;
        let same = state.checkpoint(&same.id).cloned().unwrap_or(same);
        return Ok(unneeded(same));
    }
    let now = context.clock.now();
    // The run first: the checkpoint's own events then begin with it.
    ledger.append(now, std::mem::take(&mut events))?;
    let own_commits = request
        .lane_fields
        .commit_shas
        .iter()
        .cloned()
        .map(ObjectId)
        .collect();
    let lane_fields = lane::fill(context, ledger.state(), &key, request.lane_fields);
    let request = Request {
        verdict: lane_fields.verdict(),
        lane_fields,
        ..request
    };
    let checkpoint = checkpoint::record(context, &ledger, &key, &prepared, request)?;
    events::append(
        ledger,
        &key,
        now,
        vec![event_with(&checkpoint, own_commits)],
    )?;
    Ok(Created {
        changed: true,
        checkpoint,
    })
}

/// What a checkpoint says that others of the same content do not: what it comes before. Nothing for other occasions.
fn label_of(request: &Request) -> String {
    let is_named = matches!(
        request.trigger.as_str(),
        trigger::RISKY | trigger::BEFORE_EDIT
    );
    if is_named {
        redact(&request.description).into_owned()
    } else {
        String::new()
    }
}

/// One that nobody waits for, of a run that the context names; `None` where nothing has changed since the latest.
pub(crate) fn create_automatic(context: &Context, why: &str) -> Result<Option<Checkpoint>> {
    let options = Options {
        skip_if_unchanged: true,
        ..Options::default()
    };
    let created = create(context, Request::new(why, ""), options)?;
    Ok(created.changed.then_some(created.checkpoint))
}

/// What `checkpoint create` would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CreatePlan {
    changed: bool,
    /// The one that is young enough.
    pub checkpoint: Option<Checkpoint>,
    plan: Option<CapturePlan>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "create_plan")]
struct CapturePlan {
    captured: CapturedTotals,
}

impl CreatePlan {
    /// What it would capture.
    pub(crate) fn captured(&self) -> Option<CapturedTotals> {
        self.plan.as_ref().map(|plan| plan.captured)
    }
}

/// What a dry run of [`create`] answers.
pub(crate) fn plan(context: &Context, why: &str, options: Options) -> Result<CreatePlan> {
    let due = options.skip_if_not_due.then(|| not_due(context, why));
    let checkpoint = due.transpose()?.flatten();
    let captured = checkpoint.is_none().then(|| preview(context)).transpose()?;
    let plan = captured.map(|captured| CapturePlan { captured });
    Ok(CreatePlan {
        changed: false,
        checkpoint,
        plan,
    })
}

/// What `create` would take.
pub(crate) fn preview(context: &Context) -> Result<CapturedTotals> {
    let prepared = prepare(context)?;
    Ok(prepared.capture.stats)
}

fn unchanged_since(
    context: &Context,
    state: &State,
    key: &RunKey,
    prepared: &Prepared,
) -> Result<Option<Checkpoint>> {
    let Some(latest) = state.latest(key) else {
        return Ok(None);
    };
    let stored = match context.repo()?.load_checkpoint(&latest.commit) {
        Ok(stored) => stored,
        // A damaged checkpoint is no reason not to take the next one.
        Err(error) => {
            tracing::warn!(%error, "{} cannot be read: a new checkpoint is taken", latest.id);
            return Ok(None);
        }
    };
    let same = prepared.capture.same_as(&stored, &prepared.memory)?
        && nested::unchanged(&prepared.nested, &stored.manifest.nested);
    Ok(same.then(|| latest.clone()))
}

/// A checkpoint that was pinned or unpinned, or would be.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Pinned {
    pub checkpoint: Checkpoint,
}

/// Pins or unpins.
pub(crate) fn pin(
    context: &Context,
    selector: &Selector,
    pinned: bool,
    note: Option<String>,
) -> Result<Pinned> {
    let named = |state: &State, selector: &Selector| {
        let checkpoint = select::checkpoint(context, state, selector)?.clone();
        Ok(Pinned { checkpoint })
    };
    if context.dry_run() {
        return named(&*recovery::load_recovered(context)?, selector);
    }
    recovery::recover(context)?;
    let ledger = context.store().lock()?;
    let Checkpoint { id, run, .. } = select::checkpoint(context, ledger.state(), selector)?.clone();
    let payload = Payload::CheckpointPinned {
        checkpoint_id: id.clone(),
        pinned,
        note,
    };
    let state = context.record_in(ledger, &run, vec![payload])?;
    named(&state, &Selector::Id(id.into()))
}

/// The run's latest checkpoint, if no other is due yet. With `operation` as trigger this is an operation itself.
fn not_due(context: &Context, why: &str) -> Result<Option<Checkpoint>> {
    let counts = why == trigger::OPERATION;
    if context.settings().checkpoint.interval.is_none() && !counts {
        return Ok(None);
    }
    let state = recovery::load_recovered(context)?;
    let run = match select::find_for_capture(context, &state) {
        Ok(run) => run,
        Err(error) if error.kind == ErrorKind::RunNotFound => None,
        Err(error) => return Err(error),
    };
    let Some(run) = run.filter(|run| due(context, &state, &run.key, u32::from(counts)).is_none())
    else {
        return Ok(None);
    };
    Ok(state.latest(&run.key).cloned())
}

/// Why a checkpoint of a run is due (S10): its latest one is as old as the interval, or with `more` of them so many
/// operations were recorded since. One dated in the future says nothing.
pub(crate) fn due(
    context: &Context,
    state: &State,
    key: &RunKey,
    more: u32,
) -> Option<&'static str> {
    let (settings, now) = (&context.settings().checkpoint, context.clock.now());
    let Some(latest) = state.latest(key) else {
        return Some(trigger::INTERVAL);
    };
    let is_old = |interval| latest.created_at > now || now.since(latest.created_at) >= interval;
    if settings.interval.is_some_and(is_old) {
        return Some(trigger::INTERVAL);
    }
    is_due_by_operations(context, state, key, more).then_some(trigger::OPERATION)
}

/// Whether, with `more` of them, as many operations as are configured were recorded since the latest one.
pub(crate) fn is_due_by_operations(
    context: &Context,
    state: &State,
    key: &RunKey,
    more: u32,
) -> bool {
    let operations = state
        .run(key)
        .map_or(0, |run| run.operations)
        .saturating_add(more);
    context
        .settings()
        .checkpoint
        .every_operations
        .is_some_and(|every| operations >= every)
}

/// Records that something was done in a run.
pub(crate) fn record_operation(context: &Context, key: &RunKey, name: &str) -> Result<()> {
    let payload = Payload::OperationRecorded {
        name: name.to_owned(),
        announces_restore: false,
    };
    context.record(key, vec![payload])
}

/// What the checkpoint comes before. No secret, and no more than a line of it.
pub(crate) fn text_before(context: &Context, call: &ToolCall) -> String {
    let about = match (&call.path, &call.command) {
        (Some(path), _) => Path::new(path)
            .strip_prefix(context.worktree())
            .map_or(path.clone(), |path| path.to_string_lossy().into_owned()),
        (None, Some(command)) => command.split_whitespace().collect::<Vec<_>>().join(" "),
        (None, None) => String::new(),
    };
    let about = redact(&about).into_owned();
    let short: String = about.chars().take(LONGEST).collect();
    let more = if short.len() < about.len() { "…" } else { "" };
    format!("Before {} {short}{more}", call.name)
        .trim_end()
        .to_owned()
}
