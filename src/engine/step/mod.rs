//! `recover step`: a named command that is executed once in a run, lane by lane (C4).
//! It is all or nothing where that is asked for (S6), with a way to take its effect back (S12).
//!
//! A step is supervised as an attempt is: what it is and who runs it is in the ledger before its command is started, so
//! that a kill is noticed by whoever comes next. An atomic step is a checkpoint before the command and, unless that
//! succeeds, an ordinary restore of the covered files.

mod compensate;

use std::ffi::OsString;
use std::path::PathBuf;

use compensate::StepLock;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::engine::base::clock::millis;
use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::checkpoint::{create_automatic, is_due_by_operations};
use crate::engine::record::attempt_record::{commits_since, head_of};
use crate::engine::record::lane::{self, Hints, LaneStanding};
use crate::engine::record::run_settings::{fencing, identity};
use crate::engine::record::storage::{Prepared, Request};
use crate::engine::record::{checkpoint, events, select};
use crate::engine::recovery;
use crate::engine::remote::renew;
use crate::engine::restore::automatic::restore_covered_files;
use crate::engine::trust::agreed::require_agreed_step;
use crate::model::checkpoint::trigger;
use crate::model::failure::FailureEvidence;
use crate::model::hint::join;
use crate::model::lane::{AFTER_TESTS, LaneRecord, RETRY, is_lane};
use crate::model::step::{Atomic, StepStart, name_problem};
use crate::model::{
    Checkpoint, CheckpointId, CheckpointType, FolderId, Hint, LaneFields, PathReason, Payload, Run,
    RunKey, State, Step, StepEnd, StepStatus, ToldStep,
};
use crate::policy::checkpoint_events::MASKED;
use crate::policy::classify::{classify, guess_loop};
use crate::policy::restore::Selection;
use crate::policy::secrets::redact;
use crate::process::{Exit, Program, Show, Supervised};
use crate::store::views::write_views;

pub(crate) use compensate::{Crossing, compensate, is_ancestor_step};

/// What to run once.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct StepRequest {
    #[serde(skip)]
    pub name: String,
    /// The command.
    pub command: Vec<String>,
    /// The folder that it runs in.
    #[serde(skip)]
    pub dir: PathBuf,
    /// The lane's stage whose checkpoint follows.
    pub stage: Option<String>,
    /// Where the lane is to be merged.
    #[serde(skip)]
    pub target_branch: Option<String>,
    /// Put the covered files back unless it succeeds.
    pub atomic: bool,
    /// What it is about to do.
    pub intent: Option<String>,
    /// What it covers (globs); empty for the whole work tree.
    pub paths: Vec<String>,
    /// The shell command that takes its effect outside the work tree back.
    pub compensate: Option<String>,
    /// Where the command's output goes.
    #[serde(skip)]
    pub show: Show,
}

#[expect(clippy::ref_option, reason = "serde asks so")]
fn is_some<S: Serializer>(count: &Option<usize>, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_bool(count.is_some())
}

/// What would become of a step's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Would {
    Skip,
    Wait,
    Run,
}

/// What a dry run of a step would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct StepPlan {
    pub would: Would,
    #[serde(flatten)]
    pub request: StepRequest,
}

/// A step that was run, skipped, or is planned.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct StepReport {
    /// As `executed`.
    changed: bool,
    /// `null` in a dry run of one that was never begun.
    pub step: Option<ToldStep>,
    /// Whether the command was run.
    pub executed: bool,
    /// What the command ended with, as a shell says it.
    pub exit_code: Option<i32>,
    /// The checkpoint of its stage, else the one before it.
    pub checkpoint_id: Option<CheckpointId>,
    /// How many paths were restored; `None` where nothing had to be.
    #[serde(serialize_with = "is_some")]
    #[schemars(with = "bool")]
    pub rolled_back: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<StepPlan>,
    /// The lane that it is a step of, where it has a stage or failed.
    #[serde(flatten)]
    pub lane: Option<LaneStanding>,
    #[serde(flatten)]
    pub hints: Option<Hints>,
    /// Why the checkpoint of its stage could not be taken.
    #[serde(skip)]
    pub stage_error: Option<String>,
    /// Why the command could not be started.
    #[serde(skip)]
    pub spawn_error: Option<String>,
}

/// Refuses what cannot be a step.
pub(crate) fn check(request: &StepRequest) -> Result<()> {
    if let Some(problem) = name_problem(&request.name) {
        let shown = crate::policy::text::escape(&request.name);
        let message =
            format!("the step's name '{shown}' {problem}: a short printable name is wanted");
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["step", "--help"])));
    }
    selection(request).map(drop)
}

/// What an atomic step covers.
fn selection(request: &StepRequest) -> Result<Selection> {
    Selection::globs(&request.paths).map_err(|error| {
        Error::new(ErrorKind::Usage, format!("--path: {error}"))
            .hint(Hint::recover(["step", "--help"]))
    })
}

/// A request without a command is one for the step as it was begun last.
///
/// # Errors
/// It was never begun, or what is recorded of it has no secrets any more (2).
pub(crate) fn as_recorded(context: &Context, request: StepRequest) -> Result<StepRequest> {
    if !request.command.is_empty() {
        return Ok(request);
    }
    check(&request)?;
    let state = context.load()?.state;
    let found = match select::find(context, &state) {
        Err(error) if error.kind == ErrorKind::RunNotFound => None,
        found => found?,
    };
    let step = found.and_then(|run| run.step(&request.name));
    let refused = |why: &str| {
        let message = format!("step '{}' {why}: its command comes after --", request.name);
        Error::new(ErrorKind::Usage, message).hint(Hint::recover(["step", "--help"]))
    };
    let start = &step.ok_or_else(|| refused("was never begun"))?.start;
    if !start.masked.is_empty() {
        return Err(refused(MASKED));
    }
    if let Some(run) = found {
        require_agreed_step(context, &run.key, start.supervisor.boot_id.as_deref())?;
    }
    let atomic = start.atomic.as_ref();
    let recorded = || {
        atomic
            .map(|atomic| atomic.paths.clone())
            .unwrap_or_default()
    };
    Ok(StepRequest {
        command: start.command.clone(),
        dir: recorded_dir(context, start),
        stage: request.stage.or_else(|| start.stage.clone()),
        target_branch: request
            .target_branch
            .or_else(|| start.target_branch.clone()),
        atomic: request.atomic || atomic.is_some(),
        intent: request
            .intent
            .or_else(|| atomic.and_then(|atomic| atomic.intent.clone())),
        paths: if request.paths.is_empty() {
            recorded()
        } else {
            request.paths
        },
        compensate: request.compensate.or_else(|| start.compensate.clone()),
        ..request
    })
}

/// Where a recorded step runs: at the same place of this work tree, should its lane be in another one meanwhile.
fn recorded_dir(context: &Context, start: &StepStart) -> PathBuf {
    let dir = start.cwd.path();
    match dir.strip_prefix(start.worktree.path()) {
        Ok(inside) => context.worktree().join(inside),
        Err(_) => dir,
    }
}

/// Runs it, unless it is done.
pub(crate) fn step(context: &Context, request: &StepRequest) -> Result<StepReport> {
    check(request)?;
    if context.dry_run() {
        return preview(context, request);
    }
    if request.atomic {
        context.check_safe_mode("putting files back after a step that fails")?;
    }
    recovery::recover(context)?;
    let key = run_for(context)?;
    let lock = StepLock::take(context, &key, &request.name)?;
    // Whoever had the turn before may have been killed.
    recovery::recover(context)?;
    let run = run_of(&context.load()?.state, &key)?;
    let earlier = run.step(&request.name);
    if let Some(step) = earlier {
        tell_of_earlier(context, &key, step, request);
    }
    let is_done = |step: &Step| step.status == StepStatus::Done && !step.runs_again(&key);
    let report = if earlier.is_some_and(is_done) {
        skipped(context, &key, request)?
    } else {
        // What it does elsewhere cannot be taken back: whoever lost the run does not begin it.
        let fencing = renew(context, &key)?;
        execute(context, &key, request, (&lock, fencing))?
    };
    drop(lock);
    Ok(report)
}

/// Says before the command's own output what became of an earlier execution.
fn tell_of_earlier(context: &Context, key: &RunKey, step: &Step, request: &StepRequest) {
    let (name, ran) = (&request.name, join(&step.start.command));
    let at = step.ended_at.unwrap_or(step.started_at);
    if step.status == StepStatus::CutOff {
        let put_back = if step.rolled_back {
            " The files it covers were restored."
        } else {
            ""
        };
        context.warn(format!(
            "step '{name}' was begun at {} and interrupted: {ran}\n  How far it got is not known.{put_back} It runs again \
             now, and side effects that it had already may be repeated.",
            step.started_at
        ));
    } else if step.runs_again(key) {
        context.note(format!(
            "step '{name}' was done since {at}, and its lane was rolled back past it: it runs again"
        ));
    } else if step.status == StepStatus::Done {
        context.note(format!("step '{name}' is done since {at}: skipped"));
        if step.start.command != request.command {
            context.note(format!("what was run: {ran}"));
        }
        if step.crossed {
            context.note(
                "a restore went back to before it, and its effect outside the work tree stayed"
                    .to_owned(),
            );
        }
    }
}

/// The run that the step belongs to; made where there is none.
fn run_for(context: &Context) -> Result<RunKey> {
    let ledger = context.store().lock()?;
    let (key, events) = select::find_or_create(context, ledger.state())?;
    if !events.is_empty() {
        events::append(ledger, &key, context.clock.now(), events)?;
    }
    Ok(key)
}

/// A step that is done. The kill may have come before its stage's checkpoint: that is taken now.
fn skipped(context: &Context, key: &RunKey, request: &StepRequest) -> Result<StepReport> {
    let state = context.load()?.state;
    let mut report = report_of(&state, key, &request.name, false)?;
    let step = run_of(&state, key)?.step(&request.name).cloned();
    if let Some(step) = step
        .filter(|step| step.start.stage.is_some() && stage_checkpoint(&state, key, step).is_none())
    {
        report.checkpoint_id =
            Some(take_stage(context, key, &step.start, of_stage(&step.start, 0, None))?.id);
    }
    Ok(report)
}

fn execute(
    context: &Context,
    key: &RunKey,
    request: &StepRequest,
    (lock, number): (&StepLock, Option<u64>),
) -> Result<StepReport> {
    let start = begin(context, key, request)?;
    let mut supervised = supervised(context, key, request, lock)?;
    supervised.env_set.extend(number.map(fencing));
    supervised.show = request.show;
    let exit = supervised.run(&context.interrupts, |child| {
        let (name, child) = (start.name.clone(), child.clone());
        let recorded = context.record(key, vec![Payload::StepChildStarted { name, child }]);
        recorded.map_err(std::io::Error::other)
    });
    let (exit, failure) = match exit {
        Ok(exit) => (exit, None),
        Err(error) => {
            let exit = Exit {
                exit_code: Some(1),
                ..Exit::default()
            };
            (exit, Some(error))
        }
    };
    if exit.leaked {
        tracing::warn!("processes of the step outlived it and were ended");
    }
    let ended = end(context, key, &start, exit)?;
    if let Err(error) = checkpoint_if_due(context, key) {
        tracing::warn!(%error, "no checkpoint was taken after the step");
    }
    failure.map_or(Ok(ended), |error| {
        let what = format!("cannot run {}", request.command.join(" "));
        Err(Error::io(what, error))
    })
}

/// A step is an operation: after this many of them the run gets a checkpoint (S10).
fn checkpoint_if_due(context: &Context, key: &RunKey) -> Result<()> {
    if !context.settings().checkpoint.enabled {
        return Ok(());
    }
    let state = context.load()?.state;
    // However old the latest one is meanwhile.
    if is_due_by_operations(context, &state, key, 0) {
        create_automatic(&context.for_run(key)?, trigger::OPERATION)?;
    }
    Ok(())
}

/// Records what the step is, before anything of it is done; for an atomic one takes the checkpoint to go back to.
fn begin(context: &Context, key: &RunKey, request: &StepRequest) -> Result<StepStart> {
    let mut start = StepStart {
        name: request.name.clone(),
        command: request.command.clone(),
        cwd: FolderId::of(&request.dir),
        worktree: context.worktree_id(),
        stage: request.stage.clone(),
        target_branch: request.target_branch.clone(),
        head: head_of(context),
        atomic: None,
        compensate: request.compensate.clone(),
        supervisor: context.supervisor_id(),
        masked: Vec::new(),
    };
    let atomic = request.atomic;
    let prepared = atomic.then(|| checkpoint::prepare(context)).transpose()?;
    let mut ledger = context.store().lock()?;
    if let Some(prepared) = &prepared {
        refuse_uncovered(prepared, request)?;
        let about = request
            .intent
            .as_deref()
            .map(|intent| format!(": {intent}"))
            .unwrap_or_default();
        let before = Request {
            kind: CheckpointType::Operation,
            ..Request::new(
                trigger::STEP,
                format!("Before step {}{about}", request.name),
            )
        };
        let before = checkpoint::take(context, &mut ledger, key, prepared, before)?;
        start.atomic = Some(Atomic {
            intent: request.intent.clone(),
            paths: request.paths.clone(),
            checkpoint_id: before.id,
        });
    }
    let payload = Payload::StepStarted(Box::new(start.clone()));
    context.record_in(ledger, key, vec![payload])?;
    Ok(start)
}

/// What is covered and could not be captured could not be restored. What is left out by the rules is listed.
fn refuse_uncovered(prepared: &Prepared, request: &StepRequest) -> Result<()> {
    let covered = selection(request)?;
    let skipped = prepared
        .capture
        .manifest
        .skipped
        .iter()
        .filter(|skipped| covered.matches(&skipped.path));
    let skipped: Vec<PathReason> = skipped.cloned().collect();
    if prepared.capture.partial && !skipped.is_empty() {
        let message = "not everything could be captured: a step that fails could not be reverted in full; make these \
                       paths readable, or leave them out with [checkpoint] exclude";
        return Err(Error::new(ErrorKind::Partial, message).paths(skipped));
    }
    for PathReason { path, reason, .. } in skipped.iter().take(5) {
        tracing::warn!(
            "{path} is not captured ({reason}): it stays as it is then, should the step fail"
        );
    }
    if skipped.len() > 5 {
        tracing::warn!("and so do {} more", skipped.len() - 5);
    }
    Ok(())
}

fn supervised(
    context: &Context,
    key: &RunKey,
    request: &StepRequest,
    lock: &StepLock,
) -> Result<Supervised> {
    let argv = request.command.iter().map(OsString::from).collect();
    let mut supervised = Supervised::new(Program::Argv(argv), &request.dir);
    let state = context.load()?.state;
    supervised.env_set = variables(&run_of(&state, key)?, &request.name);
    supervised.hears = is_lane(&state, key);
    supervised.env_set.push(lock.variable(context));
    supervised.grace = context.settings().runner.grace;
    Ok(supervised)
}

/// What a step's commands get to know.
fn variables(run: &Run, name: &str) -> Vec<(OsString, OsString)> {
    let mut all = identity(run, run.current_iteration, None);
    let RunKey { phase, lane, .. } = &run.key;
    for (variable, value) in [
        ("RECOVER_PHASE", phase.as_str()),
        ("RECOVER_LANE", lane),
        ("RECOVER_STEP", name),
    ] {
        all.push((variable.into(), value.into()));
    }
    all
}

/// The end: the covered files first unless it succeeded, then the event, then the stage's checkpoint.
fn end(context: &Context, key: &RunKey, start: &StepStart, mut exit: Exit) -> Result<StepReport> {
    let succeeded = exit.exit_code == Some(0) && exit.cancelled.is_none();
    let is_failure = !succeeded && exit.cancelled.is_none();
    let error = is_failure
        .then(|| error_of(context, start, &mut exit))
        .flatten();
    let rolled_back = if succeeded {
        None
    } else {
        restore_covered_files(context, key, start)?
    };
    let code = exit.shell_code();
    let end = StepEnd {
        name: start.name.clone(),
        status: if succeeded {
            StepStatus::Done
        } else {
            StepStatus::Failed
        },
        exit_code: Some(code),
        duration_ms: millis(exit.duration),
        error: error.clone(),
        rolled_back: rolled_back.is_some(),
        commits: commits_since(context, start.head.as_ref(), "step"),
    };
    context.record(key, vec![Payload::StepEnded(end)])?;
    // A stage that failed is recorded as well (C9); one that was interrupted has not come to its end.
    let fields = if start.stage.is_some() {
        Some(of_stage(start, code, error.as_deref()))
    } else {
        of_retry(context, key, start, code, error.as_deref())?
    };
    let taken = fields
        .filter(|_| exit.cancelled.is_none())
        .map(|fields| take_stage(context, key, start, fields));
    let mut report = report_of(&context.load()?.state, key, &start.name, true)?;
    report.rolled_back = rolled_back;
    report.stage_error = taken.and_then(Result::err).map(|error| error.to_string());
    report.spawn_error = exit.spawn_error.as_ref().map(|error| error.message.clone());
    Ok(report)
}

/// What the command says went wrong, in a line; `None` where nothing was heard of it.
fn error_of(context: &Context, start: &StepStart, exit: &mut Exit) -> Option<String> {
    let [stdout, stderr] =
        [&mut exit.stdout, &mut exit.stderr].map(|said| std::mem::take(said).into_bytes());
    let is_silent = [&stdout, &stderr].map(|said| said.trim_ascii().is_empty()) == [true; 2];
    if exit.spawn_error.is_none() && is_silent {
        return None;
    }
    let command = join(&start.command);
    let evidence = FailureEvidence {
        stage: Some(guess_loop(&start.name, &command)),
        command: Some(command),
        exit_code: exit.exit_code,
        signal: exit.signal.clone(),
        spawn_error: exit.spawn_error.as_ref().map(|error| error.message.clone()),
        stdout,
        stderr,
        ..FailureEvidence::default()
    };
    let (rules, now) = (&context.settings().rules, context.clock.now());
    let message = classify(&evidence, None, rules, now).message;
    Some(redact(&message).into_owned())
}

/// What the record of the stage says that the step completes.
fn of_stage(start: &StepStart, code: i32, error: Option<&str>) -> LaneFields {
    let tests = start.stage.as_deref() == Some(AFTER_TESTS);
    let status = if code == 0 {
        lane::COMPLETE
    } else {
        lane::FAILED
    };
    LaneFields {
        stage: start.stage.clone(),
        status: Some(status.to_owned()),
        notes: (code != 0).then(|| last_command(start, code, error)),
        test_command: tests.then(|| join(&start.command)),
        exit_code: tests.then_some(code),
        target_branch: start.target_branch.clone(),
        ..LaneFields::default()
    }
}

fn last_command(start: &StepStart, code: i32, error: Option<&str>) -> String {
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    let command = join(&start.command);
    format!("last command: {command} (exit code {code}){error}")
}

/// What the record of a lane's retries says of a step without a stage: that it failed, with the command that was attempted last
/// (C9), and that it passed after that. What the lane's own attempts left there is no step's to replace.
fn of_retry(
    context: &Context,
    key: &RunKey,
    start: &StepStart,
    code: i32,
    error: Option<&str>,
) -> Result<Option<LaneFields>> {
    let state = context.load()?.state;
    let with_status = |status: &str| LaneFields {
        stage: Some(RETRY.to_owned()),
        status: Some(status.to_owned()),
        retry_status: Some(status.to_owned()),
        ..LaneFields::default()
    };
    let is_of_attempts = |record: &LaneRecord<'_>| {
        let is_open = matches!(record.status, Some(lane::FAILED | lane::RETRYING));
        let own = record.checkpoint();
        record.stage == RETRY && is_open && own.is_none_or(|own| own.trigger != trigger::STEP)
    };
    if !is_lane(&state, key) || state.lane_records(key).iter().any(is_of_attempts) {
        return Ok(None);
    }
    if code != 0 {
        let what = error.map_or_else(|| format!("exit code {code}"), str::to_owned);
        return Ok(Some(LaneFields {
            notes: Some(last_command(start, code, error)),
            failure_context: vec![format!("Step {}: {what}", start.name)],
            ..with_status(lane::FAILED)
        }));
    }
    let stands = state
        .lane_stands(key)
        .filter(|record| record.status == Some(lane::FAILED));
    let failed = stands
        .and_then(|record| record.checkpoint())
        .filter(|failed| failed.trigger == trigger::STEP);
    let own = failed.filter(|failed| failed.description == headline(start, false));
    let context_of = |failed: &Checkpoint| failed.lane_fields.failure_context.clone();
    Ok(own.map(|failed| LaneFields {
        failure_context: context_of(failed),
        ..with_status(lane::COMPLETE)
    }))
}

fn headline(start: &StepStart, succeeded: bool) -> String {
    let what = if succeeded { "After" } else { "Failed:" };
    format!("{what} step {}", start.name)
}

/// The checkpoint of what a step records of its lane.
fn take_stage(
    context: &Context,
    key: &RunKey,
    start: &StepStart,
    fields: LaneFields,
) -> Result<Checkpoint> {
    let request = Request {
        description: headline(start, fields.status.as_deref() == Some(lane::COMPLETE)),
        trigger: trigger::STEP.to_owned(),
        verdict: fields.verdict(),
        lane_fields: lane::fill(context, &context.load()?.state, key, fields),
        ..Request::default()
    };
    // Much may have happened while the command ran.
    recovery::recover(context)?;
    let prepared = checkpoint::prepare(context)?;
    let mut ledger = context.store().lock()?;
    let taken = checkpoint::take(context, &mut ledger, key, &prepared, request)?;
    write_views(ledger, &[key])?;
    Ok(taken)
}

/// The stage's checkpoint that came after the step.
fn stage_checkpoint(state: &State, key: &RunKey, step: &Step) -> Option<CheckpointId> {
    let of_stage = |checkpoint: &&Checkpoint| {
        checkpoint.lane_fields.stage == step.start.stage && !step.is_after(checkpoint.seq)
    };
    let ended = step.start.stage.is_some() && step.status == StepStatus::Done;
    // One that was gone back past says nothing of where the lane stands now.
    let found = state
        .checkpoints_of(key)
        .rfind(of_stage)
        .filter(|found| ended && !state.is_superseded(found));
    found.map(|checkpoint| checkpoint.id.clone())
}

/// What is reported of it, whether its command was run now or before.
fn report_of(state: &State, key: &RunKey, name: &str, executed: bool) -> Result<StepReport> {
    let run = run_of(state, key)?;
    let step = run.step(name);
    let before = step
        .and_then(|step| step.start.atomic.as_ref())
        .map(|atomic| atomic.checkpoint_id.clone());
    Ok(StepReport {
        changed: executed,
        step: step.map(|step| step.told(key)),
        executed,
        exit_code: step.and_then(|step| step.exit_code),
        checkpoint_id: step
            .and_then(|step| stage_checkpoint(state, key, step))
            .or(before),
        ..StepReport::default()
    })
}

/// What would happen.
fn preview(context: &Context, request: &StepRequest) -> Result<StepReport> {
    let state = recovery::load_recovered(context)?;
    let run = match select::find(context, &state) {
        Err(error) if error.kind != ErrorKind::RunNotFound => return Err(error),
        // An ended run that nobody names gets no more steps: a new one would be made.
        found => found
            .ok()
            .flatten()
            .filter(|run| context.naming().run_id.is_some() || !run.status.has_ended()),
    };
    let step = run.and_then(|run| run.step(&request.name).map(|step| step.told(&run.key)));
    let would = match step.as_ref().map(|step| step.status) {
        Some(StepStatus::Done) => Would::Skip,
        Some(StepStatus::Running) => Would::Wait,
        _ => Would::Run,
    };
    let request = request.clone();
    Ok(StepReport {
        step,
        plan: Some(StepPlan { would, request }),
        ..StepReport::default()
    })
}
