//! Runs: supervised ones, resumed ones, those that a person fixes, and where they stand.

use std::borrow::Cow;
use std::path::Path;

use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::Context;
use crate::engine::attempt::standing::Retry;
use crate::engine::flow::fix_session::Fix;
use crate::engine::flow::resume::{Check, Resumed, next_actions};
use crate::engine::flow::run::{Driven, Outcome};
use crate::engine::flow::status::Status;
use crate::engine::flow::step::{StepReport, StepRequest};
use crate::engine::record::attempt_record::RecoveryResult;
use crate::engine::record::lane::LaneStanding;
use crate::engine::restore::request::{Restore, RestoreResult};
use crate::model::attempt::{Attempt, AttemptOutcome, Iteration, IterationStatus, Leftover};
use crate::model::checkpoint::{CapturedTotals, Checkpoint};
use crate::model::decision::{Budget, Decision, Standing, Strategy};
use crate::model::failure::{Condition, Failure};
use crate::model::feedback::FeedbackResults;
use crate::model::manual_fix::ManualFixSession;
use crate::model::run::{Parked, Run, RunSpec, RunStatus};
use crate::model::run_key::RunKey;
use crate::model::step::ToldStep;
use crate::model::time::Timestamp;
use crate::policy::options::ResumeOption;

/// A run's identity and position.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "run")]
pub struct RunLine<'a> {
    #[serde(flatten)]
    key: &'a RunKey,
    /// What it works on.
    task_id: Option<&'a str>,
    status: RunStatus,
    /// The iteration that is under way or comes next.
    current_iteration: u32,
    /// `null` without a bound.
    iterations_total: Option<u32>,
}

impl<'a> From<&'a Run> for RunLine<'a> {
    fn from(run: &'a Run) -> Self {
        Self {
            key: &run.key,
            task_id: run.task_id.as_deref(),
            status: run.status,
            current_iteration: run.shown_iteration(),
            iterations_total: run.spec.iterations_total,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "iteration")]
pub struct IterationLine<'a> {
    number: u32,
    status: IterationStatus,
    /// Why it was skipped.
    reason: Option<&'a str>,
    attempts: Vec<AttemptLine<'a>>,
}

impl<'a> From<&'a Iteration> for IterationLine<'a> {
    fn from(iteration: &'a Iteration) -> Self {
        Self {
            number: iteration.number,
            status: iteration.status,
            reason: iteration.reason.as_deref(),
            attempts: iteration.attempts.iter().map(AttemptLine::from).collect(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "attempt")]
struct AttemptLine<'a> {
    number: u32,
    /// `null` while it is under way.
    outcome: Option<AttemptOutcome>,
    approach: Option<&'a str>,
    exit_code: Option<i32>,
    signal: Option<&'a str>,
    timed_out: bool,
    started_at: Timestamp,
    duration_ms: Option<u64>,
    log_path: Option<&'a str>,
    checkpoint_id: Option<&'a str>,
    failure: Option<&'a Failure>,
    conditions: &'a [Condition],
    notes: &'a [String],
    fallback: bool,
    cost_usd: Option<f64>,
    leftovers: &'a [Leftover],
    feedback_results: &'a FeedbackResults,
}

impl<'a> From<&'a Attempt> for AttemptLine<'a> {
    fn from(attempt: &'a Attempt) -> Self {
        Self {
            number: attempt.number,
            outcome: attempt.outcome,
            approach: attempt.approach.as_deref(),
            exit_code: attempt.exit_code,
            signal: attempt.signal.as_deref(),
            timed_out: attempt.timed_out,
            started_at: attempt.started_at,
            duration_ms: attempt.duration_ms,
            log_path: attempt.log_path.as_deref(),
            checkpoint_id: attempt.checkpoint_id.as_deref(),
            failure: attempt.failure.as_ref(),
            conditions: &attempt.conditions,
            notes: &attempt.notes,
            fallback: attempt.fallback,
            cost_usd: attempt.cost_micros.map(|micros| micros as f64 / 1e6),
            leftovers: &attempt.leftovers,
            feedback_results: &attempt.feedback_results,
        }
    }
}

/// All iterations of a run.
fn iterations(run: &Run) -> Vec<IterationLine<'_>> {
    run.iterations.values().map(IterationLine::from).collect()
}

/// When an attempt is allowed that is not allowed now.
#[derive(Debug, Serialize, JsonSchema)]
struct Wait {
    retry_after: Option<Timestamp>,
    wait_ms: u64,
}

impl Wait {
    fn of(standing: Standing, now: Timestamp) -> Self {
        match standing {
            Standing::Wait(until) => {
                let wait_ms = u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX);
                Self { retry_after: Some(until), wait_ms }
            }
            _ => Self { retry_after: None, wait_ms: 0 },
        }
    }
}

/// The command that goes on with a run as its policy has it; where a person is at it, that they are done.
pub fn way_on(run: &Run) -> &'static [&'static str] {
    if run.is_being_fixed() { &["manual-fix", "verify"] } else { &["resume"] }
}

/// Commands to copy, which work from any folder.
#[derive(Debug, Serialize, JsonSchema)]
struct Hints {
    resume_hint: String,
    rollback_hint: String,
}

impl Hints {
    fn of(context: &Context, run: &Run) -> Self {
        let command = |words: &[&str]| context.hint_command(Some(&run.key), words);
        Self { resume_hint: command(way_on(run)), rollback_hint: command(&["rollback", "--full"]) }
    }

    /// The lane's own, where it is one.
    fn or_of(self, lane: Option<&LaneStanding>) -> Self {
        lane.map_or(self, Self::of_lane)
    }

    fn of_lane(lane: &LaneStanding) -> Self {
        Self { resume_hint: lane.resume_hint.clone(), rollback_hint: lane.rollback_hint.clone() }
    }
}

/// Where a lane stands; both are `null` for a run that is none.
#[derive(Debug, Serialize, JsonSchema)]
struct Stage<'a> {
    #[schemars(transform = nullable)]
    current_stage: Option<&'a str>,
    #[schemars(transform = nullable)]
    checkpoint_path: Option<&'a str>,
}

impl<'a> From<Option<&'a LaneStanding>> for Stage<'a> {
    fn from(lane: Option<&'a LaneStanding>) -> Self {
        Self {
            current_stage: lane.map(|lane| lane.stage.as_str()),
            checkpoint_path: lane.map(|lane| lane.path.as_str()),
        }
    }
}

/// What else there is to say of a lane.
#[derive(Debug, Serialize, JsonSchema)]
struct LaneDetails<'a> {
    #[schemars(transform = nullable)]
    stage_status: Option<&'a str>,
    /// Commands that go on with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    next_actions: Option<&'a [String]>,
    skipped_steps: &'a [String],
}

impl<'a> From<&'a LaneStanding> for LaneDetails<'a> {
    fn from(lane: &'a LaneStanding) -> Self {
        Self { stage_status: lane.status.as_deref(), next_actions: Some(&lane.next_actions), skipped_steps: &lane.done }
    }
}

/// A text or `null`, also where its group may be left out.
fn nullable(schema: &mut Schema) {
    schema.remove("type");
    schema.insert("anyOf".to_owned(), json!([{"type": "string"}, {"type": "null"}]));
}

/// A lane, in the documents of what need not be one.
#[derive(Debug, Serialize, JsonSchema)]
struct LaneFields<'a> {
    #[serde(flatten)]
    stage: Stage<'a>,
    #[serde(flatten)]
    details: LaneDetails<'a>,
}

impl<'a> From<&'a LaneStanding> for LaneFields<'a> {
    fn from(lane: &'a LaneStanding) -> Self {
        Self { stage: Some(lane).into(), details: lane.into() }
    }
}

/// A path as text.
fn shown(path: Option<&Path>) -> Option<Cow<'_, str>> {
    path.map(Path::to_string_lossy)
}

/// How a supervised run ended.
#[derive(Debug, Serialize, JsonSchema)]
struct DrivenFields<'a> {
    run: RunLine<'a>,
    outcome: Outcome,
    baseline: Option<&'a FeedbackResults>,
    iterations: Vec<IterationLine<'a>>,
    decision: Option<&'a Decision>,
    #[serde(flatten)]
    wait: Wait,
    report_path: Option<Cow<'a, str>>,
    #[serde(flatten)]
    hints: Hints,
}

impl<'a> DrivenFields<'a> {
    /// `lane` where it is one.
    fn new(context: &Context, driven: &'a Driven, lane: Option<&LaneStanding>) -> Self {
        Self {
            run: (&driven.run).into(),
            outcome: driven.outcome,
            baseline: driven.run.baseline.as_ref(),
            iterations: iterations(&driven.run),
            decision: driven.decision.as_ref(),
            wait: Wait::of(driven.standing, context.clock.now()),
            report_path: shown(driven.report.as_deref()),
            hints: Hints::of(context, &driven.run).or_of(lane),
        }
    }
}

/// A supervised run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunReply<'a> {
    #[serde(flatten)]
    driven: DrivenFields<'a>,
    #[serde(flatten)]
    lane: Option<LaneFields<'a>>,
}

impl<'a> RunReply<'a> {
    /// `lane` where it is one.
    pub fn new(context: &Context, driven: &'a Driven, lane: Option<&'a LaneStanding>) -> Self {
        Self { driven: DrivenFields::new(context, driven, lane), lane: lane.map(LaneFields::from) }
    }
}

/// What a run would begin with.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunPlanReply<'a> {
    changed: bool,
    plan: RunPlan<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct RunPlan<'a> {
    captured: CapturedTotals,
    spec: &'a RunSpec,
}

impl<'a> RunPlanReply<'a> {
    pub fn new(captured: CapturedTotals, spec: &'a RunSpec) -> Self {
        Self { changed: false, plan: RunPlan { captured, spec } }
    }
}

/// How a run was taken up, and what came of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ResumeReply<'a> {
    changed: bool,
    run: RunLine<'a>,
    strategy: Option<Strategy>,
    prompt: Option<&'a str>,
    executed: bool,
    validation: &'a [Check],
    outcome: Option<Outcome>,
    baseline: Option<&'a FeedbackResults>,
    iterations: Vec<IterationLine<'a>>,
    decision: Option<&'a Decision>,
    #[serde(flatten)]
    wait: Wait,
    report_path: Option<Cow<'a, str>>,
    next_actions: Vec<String>,
    #[serde(flatten)]
    hints: Hints,
    #[serde(flatten)]
    stage: Stage<'a>,
    #[serde(flatten)]
    details: Option<LaneDetails<'a>>,
}

impl<'a> ResumeReply<'a> {
    /// `lane` where it is one.
    pub fn new(context: &Context, resumed: &'a Resumed, lane: Option<&'a LaneStanding>) -> Self {
        let next_actions = lane.map_or_else(|| next_actions(context, resumed), |lane| lane.next_actions.clone());
        Self {
            changed: resumed.changed && !context.dry_run(),
            run: (&resumed.run).into(),
            strategy: resumed.strategy,
            prompt: resumed.prompt.as_deref(),
            executed: resumed.executed,
            validation: &resumed.validation,
            outcome: outcome_of(resumed),
            baseline: resumed.run.baseline.as_ref(),
            iterations: iterations(&resumed.run),
            decision: resumed.run.decision.as_ref(),
            wait: Wait::of(resumed.standing, context.clock.now()),
            report_path: shown(resumed.driven.as_ref().and_then(|driven| driven.report.as_deref())),
            next_actions,
            hints: Hints::of(context, &resumed.run).or_of(lane),
            stage: lane.into(),
            // The next actions are there already.
            details: lane.map(|lane| LaneDetails { next_actions: None, ..lane.into() }),
        }
    }
}

fn outcome_of(resumed: &Resumed) -> Option<Outcome> {
    if let Some(driven) = &resumed.driven {
        return Some(driven.outcome);
    }
    if resumed.run.status == RunStatus::Complete {
        return Some(Outcome::Complete);
    }
    match resumed.standing {
        Standing::Allowed => None,
        Standing::Wait(_) if resumed.run.parked.is_some() => Some(Outcome::Parked),
        Standing::Wait(_) => Some(Outcome::Paused),
        Standing::Exhausted => Some(Outcome::Failed),
        Standing::NeedsPerson if resumed.changed => Some(Outcome::Paused),
        Standing::NeedsPerson => Some(Outcome::Escalated),
    }
}

/// A rollback, restore, undo or redo; the plan of one has its result as `plan`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RestoreReply<'a> {
    changed: bool,
    result: &'a RestoreResult,
    #[serde(flatten)]
    after: AfterRestore<'a>,
}

/// What it would do.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RestorePlanReply<'a> {
    changed: bool,
    plan: &'a RestoreResult,
    #[serde(flatten)]
    after: AfterRestore<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AfterRestore<'a> {
    run: Option<RunLine<'a>>,
    #[serde(flatten)]
    hints: Hints,
    #[serde(flatten)]
    stage: Stage<'a>,
    #[serde(flatten)]
    details: Option<LaneDetails<'a>>,
}

impl<'a> AfterRestore<'a> {
    fn new(context: &Context, restore: &'a Restore, lane: Option<&'a LaneStanding>) -> Self {
        let run = restore.run.as_ref();
        let hints = Hints {
            resume_hint: context.hint_command(run.map(|run| &run.key), run.map_or(&["resume"][..], way_on)),
            rollback_hint: context.hint_command(None, &["undo"]),
        };
        Self {
            run: run.map(RunLine::from),
            hints: hints.or_of(lane),
            stage: lane.into(),
            details: lane.map(LaneDetails::from),
        }
    }
}

impl<'a> RestoreReply<'a> {
    /// `lane` where the run is one.
    pub fn new(context: &Context, restore: &'a Restore, lane: Option<&'a LaneStanding>) -> Self {
        let after = AfterRestore::new(context, restore, lane);
        Self { changed: restore.changed, result: &restore.result, after }
    }
}

impl<'a> RestorePlanReply<'a> {
    /// `lane` where the run is one.
    pub fn new(context: &Context, restore: &'a Restore, lane: Option<&'a LaneStanding>) -> Self {
        Self { changed: false, plan: &restore.result, after: AfterRestore::new(context, restore, lane) }
    }
}

/// A manual fix and its run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FixReply<'a> {
    session: &'a ManualFixSession,
    run: RunLine<'a>,
}

impl<'a> From<&'a Fix> for FixReply<'a> {
    fn from(fix: &'a Fix) -> Self {
        Self { session: &fix.session, run: (&fix.run).into() }
    }
}

/// A manual fix that the run went on with.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ContinuedReply<'a> {
    session: &'a ManualFixSession,
    #[serde(flatten)]
    driven: DrivenFields<'a>,
}

impl<'a> ContinuedReply<'a> {
    pub fn new(context: &Context, fix: &'a Fix, driven: &'a Driven) -> Self {
        Self { session: &fix.session, driven: DrivenFields::new(context, driven, None) }
    }
}

/// A manual fix that was recorded, without going on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PreparedReply<'a> {
    #[serde(flatten)]
    fix: FixReply<'a>,
    outcome: (),
}

impl<'a> From<&'a Fix> for PreparedReply<'a> {
    fn from(fix: &'a Fix) -> Self {
        Self { fix: fix.into(), outcome: () }
    }
}

/// Whether another attempt is allowed, and what is left of the budgets.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "retry")]
pub struct RetryReply<'a> {
    /// Whether one is allowed now.
    can_retry: bool,
    #[serde(flatten)]
    wait: Wait,
    error_count: u32,
    max_attempts: Option<u32>,
    attempts_left: Option<u32>,
    is_recovering: bool,
    last_error: Option<&'a str>,
    last_error_at: Option<Timestamp>,
    cooldown_until: Option<Timestamp>,
    parked: Option<&'a Parked>,
    budgets: &'a [Budget],
    decision: Option<&'a Decision>,
    run: Option<RunLine<'a>>,
}

impl<'a> RetryReply<'a> {
    pub fn new(retry: &'a Retry, now: Timestamp) -> Self {
        let status = retry.status.as_ref();
        let run = retry.run.as_ref();
        Self {
            can_retry: retry.standing == Standing::Allowed,
            wait: Wait::of(retry.standing, now),
            error_count: run.map_or(0, |run| run.error_count),
            max_attempts: status.map_or(Some(retry.max_attempts), |status| status.max_attempts),
            attempts_left: status.map_or(Some(retry.max_attempts), |status| status.attempts_left),
            is_recovering: run.is_some_and(|run| run.error_count > 0 || run.parked.is_some()),
            last_error: run.and_then(|run| run.last_error.as_deref()),
            last_error_at: run.and_then(|run| run.last_error_at),
            cooldown_until: status.and_then(|status| status.cooldown_until),
            parked: run.and_then(|run| run.parked.as_ref()),
            budgets: status.map_or(&[], |status| &status.budgets),
            decision: status.and_then(|status| status.decision.as_ref()),
            run: run.map(RunLine::from),
        }
    }
}

/// How many iterations `status` lists; `report` has all.
const LATEST: usize = 20;

/// Where a run stands.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "status")]
pub struct StatusReply<'a> {
    run: RunLine<'a>,
    failure: Option<&'a Failure>,
    /// Ways on; empty where the failure is not recoverable.
    options: &'a [ResumeOption],
    manual_steps: &'a [String],
    manual_fix: Option<&'a ManualFixSession>,
    unfinished_operation: Option<&'a str>,
    checkpoints: CheckpointCounts<'a>,
    retry: RetryReply<'a>,
    baseline: Option<&'a FeedbackResults>,
    /// The latest 20.
    iterations: Vec<IterationLine<'a>>,
    steps: Vec<ToldStep>,
    #[serde(flatten)]
    hints: Hints,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct CheckpointCounts<'a> {
    count: usize,
    latest: Option<&'a str>,
    last_good: Option<&'a str>,
}

impl<'a> StatusReply<'a> {
    pub fn new(context: &Context, status: &'a Status, now: Timestamp) -> Self {
        let run = &status.run;
        Self {
            run: run.into(),
            failure: run.failure.as_ref(),
            options: &status.options,
            manual_steps: &status.manual_steps,
            manual_fix: status.manual_fix.as_ref(),
            unfinished_operation: status.unfinished_operation.as_deref(),
            checkpoints: CheckpointCounts {
                count: status.checkpoint_count,
                latest: status.latest.as_deref(),
                last_good: status.last_good.as_deref(),
            },
            retry: RetryReply::new(&status.retry, now),
            baseline: run.baseline.as_ref(),
            iterations: run.latest_iterations(LATEST).into_iter().map(IterationLine::from).collect(),
            steps: run.steps.iter().map(|step| step.told(&run.key)).collect(),
            hints: Hints::of(context, run),
        }
    }
}

/// Nothing is recorded yet.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NothingReply {
    pub run: (),
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct AttemptStartReply<'a> {
    pub run: RunLine<'a>,
    pub iteration: u32,
    pub attempt: u32,
    pub subtask: &'a str,
    pub started_at: Timestamp,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct AttemptPassReply<'a> {
    pub run: RunLine<'a>,
    pub conditions: &'a [Condition],
    pub notes: &'a [String],
    pub checkpoint_id: Option<&'a str>,
    pub checkpoint: Option<&'a Checkpoint>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct AttemptFailReply<'a> {
    pub run: RunLine<'a>,
    pub failure: Option<&'a Failure>,
    pub decision: Option<&'a Decision>,
    pub conditions: &'a [Condition],
    pub notes: &'a [String],
    pub result: Option<&'a RecoveryResult>,
    pub report_path: Option<Cow<'a, str>>,
    pub checkpoint_id: Option<&'a str>,
}

/// A step that was run, skipped, or is planned.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StepReply<'a> {
    changed: bool,
    step: Option<&'a ToldStep>,
    executed: bool,
    exit_code: Option<i32>,
    checkpoint_id: Option<&'a str>,
    rolled_back: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<StepPlan<'a>>,
    #[serde(flatten)]
    lane: Option<LaneFields<'a>>,
    #[serde(flatten)]
    hints: Option<Hints>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct StepPlan<'a> {
    would: Would,
    command: &'a [String],
    stage: Option<&'a str>,
    atomic: bool,
    intent: Option<&'a str>,
    paths: &'a [String],
    compensate: Option<&'a str>,
}

/// What would become of a step's command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(inline)]
#[serde(rename_all = "snake_case")]
pub enum Would {
    Skip,
    Wait,
    Run,
}

impl<'a> StepReply<'a> {
    /// `lane` where the step is one's.
    pub fn new(report: &'a StepReport, lane: Option<&'a LaneStanding>) -> Self {
        Self {
            changed: report.executed,
            step: report.step.as_ref(),
            executed: report.executed,
            exit_code: report.exit_code,
            checkpoint_id: report.checkpoint_id.as_deref(),
            rolled_back: report.rolled_back.is_some(),
            plan: None,
            lane: lane.map(LaneFields::from),
            hints: lane.map(Hints::of_lane),
        }
    }

    pub fn planned(report: &'a StepReport, request: &'a StepRequest, would: Would) -> Self {
        let plan = StepPlan {
            would,
            command: &request.command,
            stage: request.stage.as_deref(),
            atomic: request.atomic,
            intent: request.intent.as_deref(),
            paths: &request.paths,
            compensate: request.compensate.as_deref(),
        };
        Self { plan: Some(plan), ..Self::new(report, None) }
    }
}

/// What is recorded, an event each as it is in the ledger.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogReply {
    #[schemars(with = "Vec<EventLine>")]
    pub events: Vec<Value>,
}

/// An event of any version.
#[derive(JsonSchema)]
#[schemars(rename = "event")]
#[expect(dead_code, reason = "events are passed on as they are; only the schema is wanted")]
struct EventLine {
    seq: u64,
    at: Timestamp,
    schema: u32,
    #[serde(flatten)]
    run: Option<RunKey>,
    source: crate::model::event::EventSource,
    #[serde(rename = "type")]
    kind: String,
    payload: serde_json::Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}
