//! The documents of commands that resume a run or restore files, and of errors.
//!
//! What was done, the state of the run and its lane afterwards, and the commands that go on (C4, C6).

use std::borrow::Cow;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::{Context, Error, Result};
use crate::engine::manual_fix::Continued;
use crate::engine::record::attempt_record::{Ended, RecoveryResult};
use crate::engine::record::lane::{self, Hints, LaneDetails, Stage};
use crate::engine::record::run_settings::is_unchecked;
use crate::engine::restore::request::{Restore, RestoreResult};
use crate::engine::resume::{Check, Plan, Resumed, next_actions};
use crate::engine::run::fix_session::Fix;
use crate::engine::run::{Driven, Outcome};
use crate::model::decision::Wait;
use crate::model::run_line::{IterationLine, iterations};
use crate::model::tasks::TaskLine;
use crate::model::{
    Checkpoint, CheckpointId, Condition, Decision, Failure, FeedbackResults, Hint,
    ManualFixSession, PathReason, Run, RunKey, RunLine, Standing, Strategy,
};
use crate::policy::retry::resume_command;

pub(crate) use crate::engine::record::lane::LaneStanding;

/// An error; `schema_version` and `command` are there as in every document.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorDocument<'a> {
    pub error: ErrorBody<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ErrorBody<'a> {
    /// A fixed word.
    pub code: &'a str,
    /// What the process ends with.
    pub exit_code: u8,
    /// What happened, and what caused it.
    pub message: String,
    /// What to do about it: a command to copy where there is one.
    pub hint: Option<Cow<'a, str>>,
    /// The paths that it is about.
    #[serde(skip_serializing_if = "<[PathReason]>::is_empty")]
    pub paths: &'a [PathReason],
}

impl<'a> ErrorBody<'a> {
    /// An error that is a part of another document; its hint works from any folder.
    fn of(context: &Context, error: &'a Error) -> Self {
        let hint = error.hint.clone().map(|hint| context.line(hint).into());
        Self {
            hint,
            ..error.into()
        }
    }
}

impl<'a> From<&'a Error> for ErrorBody<'a> {
    fn from(error: &'a Error) -> Self {
        let (code, exit_code) = error.kind.code();
        Self {
            code,
            exit_code,
            message: error.explained(),
            hint: error.hint.as_ref().map(|hint| hint.to_string().into()),
            paths: &error.paths,
        }
    }
}

/// Where the lane of a run is; `None` for one that is no lane.
pub(crate) fn lane(context: &Context, key: Option<&RunKey>) -> Result<Option<LaneStanding>> {
    match key {
        Some(key) => Ok(lane::standing(context, &context.load()?.state, key)),
        None => Ok(None),
    }
}

/// What came of a run that is supervised, or its state where it is not.
#[derive(Debug, Serialize, JsonSchema)]
struct Course<'a> {
    baseline: Option<&'a FeedbackResults>,
    iterations: Vec<IterationLine<'a>>,
    /// The tasks of a run that works through a list.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tasks: Vec<TaskLine>,
    decision: Option<&'a Decision>,
    #[serde(flatten)]
    wait: Wait,
    report_path: Option<Cow<'a, str>>,
    /// Why it stopped where a checkpoint or a rollback between attempts failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody<'a>>,
}

impl<'a> Course<'a> {
    fn new(
        context: &Context,
        run: &'a Run,
        decision: Option<&'a Decision>,
        standing: Standing,
        driven: Option<&'a Driven>,
    ) -> Self {
        let stopped = driven.and_then(|driven| driven.stopped.as_ref());
        let report = driven.and_then(|driven| driven.report.as_deref());
        Self {
            baseline: run.baseline.as_ref(),
            iterations: iterations(run),
            tasks: run.task_lines(),
            decision,
            wait: standing.wait(context.clock.now()),
            report_path: report.map(Path::to_string_lossy),
            error: stopped.map(|error| ErrorBody::of(context, error)),
        }
    }
}

/// How a supervised run ended.
#[derive(Debug, Serialize, JsonSchema)]
struct DrivenFields<'a> {
    run: RunLine,
    outcome: Outcome,
    #[serde(flatten)]
    course: Course<'a>,
    #[serde(flatten)]
    hints: Hints,
}

impl<'a> DrivenFields<'a> {
    /// `lane` where it is one.
    fn new(context: &Context, driven: &'a Driven, lane: Option<&LaneStanding>) -> Self {
        let (run, decision) = (&driven.run, driven.decision.as_ref());
        Self {
            run: run.into(),
            outcome: driven.outcome,
            course: Course::new(context, run, decision, driven.standing, Some(driven)),
            hints: Hints::of(context, run, lane),
        }
    }
}

/// A supervised run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ran<'a> {
    #[serde(flatten)]
    driven: DrivenFields<'a>,
    #[serde(flatten)]
    pub lane: Option<LaneStanding>,
}

impl<'a> Ran<'a> {
    pub(crate) fn new(context: &Context, driven: &'a Driven) -> Result<Self> {
        let lane = lane(context, Some(&driven.run.key))?;
        Ok(Self {
            driven: DrivenFields::new(context, driven, lane.as_ref()),
            lane,
        })
    }
}

/// How a run was resumed, and what came of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResumedRun<'a> {
    changed: bool,
    run: RunLine,
    strategy: Option<Strategy>,
    prompt: Option<&'a str>,
    /// What a dry run says that would be done.
    plan: Option<&'a Plan>,
    executed: bool,
    validation: &'a [Check],
    outcome: Option<Outcome>,
    #[serde(flatten)]
    course: Course<'a>,
    pub next_actions: Vec<Hint>,
    #[serde(flatten)]
    hints: Hints,
    #[serde(flatten)]
    stage: Stage,
    #[serde(flatten)]
    details: Option<LaneDetails>,
    #[serde(skip)]
    pub lane: Option<LaneStanding>,
}

impl<'a> ResumedRun<'a> {
    pub(crate) fn new(context: &Context, resumed: &'a Resumed) -> Result<Self> {
        let lane = lane(context, Some(&resumed.run.key))?;
        let mut details = lane.as_ref().map(|lane| lane.details.clone());
        let of_lane = details
            .as_mut()
            .and_then(|details| details.next_actions.take());
        let (run, driven) = (&resumed.run, resumed.driven.as_ref());
        Ok(Self {
            changed: resumed.changed && !context.dry_run(),
            run: run.into(),
            strategy: resumed.strategy,
            prompt: resumed.prompt.as_deref(),
            plan: resumed.plan.as_ref(),
            executed: driven.is_some(),
            validation: &resumed.validation,
            outcome: outcome_of(resumed),
            course: Course::new(
                context,
                run,
                run.decision.as_ref(),
                resumed.standing,
                driven,
            ),
            next_actions: of_lane.unwrap_or_else(|| next_actions(context, resumed)),
            hints: Hints::of(context, &resumed.run, lane.as_ref()),
            stage: lane
                .as_ref()
                .map(|lane| lane.stage.clone())
                .unwrap_or_default(),
            details,
            lane,
        })
    }
}

fn outcome_of(resumed: &Resumed) -> Option<Outcome> {
    if let Some(driven) = &resumed.driven {
        return Some(driven.outcome);
    }
    if resumed.run.status.is_done() {
        return Some(Outcome::Complete);
    }
    match resumed.standing {
        Standing::Allowed => None,
        Standing::Wait(_) if resumed.run.parked.is_some() => Some(Outcome::Parked),
        Standing::Wait(_) => Some(Outcome::Paused),
        Standing::Exhausted => Some(Outcome::Failed),
        Standing::NeedsPerson if resumed.strategy.is_some() => Some(Outcome::Paused),
        Standing::NeedsPerson => Some(Outcome::Escalated),
    }
}

/// A manual fix that the run went on with.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ContinuedFix<'a> {
    session: &'a ManualFixSession,
    #[serde(flatten)]
    driven: DrivenFields<'a>,
}

impl<'a> ContinuedFix<'a> {
    /// `None` where nothing was run: then it is a [`PreparedFix`].
    pub(crate) fn new(context: &Context, continued: &'a Continued) -> Option<Self> {
        let driven = continued.driven.as_ref()?;
        Some(Self {
            session: &continued.fix.session,
            driven: DrivenFields::new(context, driven, None),
        })
    }
}

/// A manual fix that was recorded, without going on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PreparedFix<'a> {
    #[serde(flatten)]
    pub fix: &'a Fix,
    pub outcome: (),
}

/// A rollback, restore, undo or redo; the plan of one has its result as `plan`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Restored<'a> {
    pub changed: bool,
    pub result: &'a RestoreResult,
    #[serde(flatten)]
    pub after: AfterRestore,
}

/// What it would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RestorePlan<'a> {
    pub changed: bool,
    pub plan: &'a RestoreResult,
    #[serde(flatten)]
    pub after: AfterRestore,
}

/// Where the run stands after a restore.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AfterRestore {
    run: Option<RunLine>,
    #[serde(flatten)]
    hints: Hints,
    #[serde(flatten)]
    stage: Stage,
    #[serde(flatten)]
    details: Option<LaneDetails>,
    #[serde(skip)]
    pub lane: Option<LaneStanding>,
}

impl AfterRestore {
    pub(crate) fn new(context: &Context, restore: &Restore) -> Result<Self> {
        let run = restore.run.as_ref();
        let key = run.map(|run| &run.key);
        let lane = lane(context, key)?;
        let resume = run.map_or_else(
            || vec!["resume"],
            |run| resume_command(run, is_unchecked(context, run)),
        );
        // The work tree of a run that has one for itself may be removed by then.
        let here = run.filter(|run| run.worktree == context.worktree_id());
        let home = here.and_then(|run| context.elsewhere(run));
        let place = || home.clone().unwrap_or_else(|| context.place());
        let hints = || Hints {
            resume_hint: context.placed(Hint::recover(resume).run(key)),
            rollback_hint: restore.taken_back_by(context).at(place()),
        };
        let of_lane = lane.clone();
        let (hints, stage, details) = of_lane.map_or_else(
            || (hints(), Stage::default(), None),
            |lane| (lane.hints, lane.stage, Some(lane.details)),
        );
        Ok(Self {
            run: run.map(RunLine::from),
            hints,
            stage,
            details,
            lane,
        })
    }
}

/// An attempt of a loop of the user's own that passed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Passed<'a> {
    run: RunLine,
    conditions: &'a [Condition],
    notes: &'a [String],
    checkpoint_id: Option<&'a CheckpointId>,
    checkpoint: Option<&'a Checkpoint>,
}

impl<'a> From<&'a Ended> for Passed<'a> {
    fn from(ended: &'a Ended) -> Self {
        let checkpoint = ended.checkpoint.as_ref();
        Self {
            run: (&ended.run).into(),
            conditions: &ended.end.conditions,
            notes: &ended.end.notes,
            checkpoint_id: checkpoint.map(|checkpoint| &checkpoint.id),
            checkpoint,
        }
    }
}

/// One that failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Failed<'a> {
    run: RunLine,
    failure: Option<&'a Failure>,
    decision: Option<&'a Decision>,
    conditions: &'a [Condition],
    notes: &'a [String],
    result: Option<&'a RecoveryResult>,
    report_path: Option<Cow<'a, str>>,
    checkpoint_id: Option<&'a CheckpointId>,
}

impl<'a> From<&'a Ended> for Failed<'a> {
    fn from(ended: &'a Ended) -> Self {
        Self {
            run: (&ended.run).into(),
            failure: ended.end.failure.as_ref(),
            decision: ended.end.decision.as_ref(),
            conditions: &ended.end.conditions,
            notes: &ended.end.notes,
            result: ended.result.as_ref(),
            report_path: ended.report.as_deref().map(Path::to_string_lossy),
            checkpoint_id: ended.checkpoint.as_ref().map(|checkpoint| &checkpoint.id),
        }
    }
}
