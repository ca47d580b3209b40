//! The documents of runs: supervised ones, resumed ones, those that a person fixed.

use std::borrow::Cow;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::Context;
use crate::engine::flow::fix_session::Fix;
use crate::engine::flow::resume::{Change, Check, Plan, Resumed, next_actions};
use crate::engine::flow::run::{Driven, Outcome};
use crate::engine::record::lane::{Hints, LaneDetails, LaneStanding, Stage};
use crate::model::checkpoint::CapturedTotals;
use crate::model::decision::{Decision, Standing, Strategy, Wait};
use crate::model::feedback::FeedbackResults;
use crate::model::hint::Hint;
use crate::model::manual_fix::ManualFixSession;
use crate::model::run::RunSpec;
use crate::model::run_line::{IterationLine, RunLine, iterations};

use super::ErrorBody;

/// How a supervised run ended.
#[derive(Debug, Serialize, JsonSchema)]
struct DrivenFields<'a> {
    run: RunLine,
    outcome: Outcome,
    baseline: Option<&'a FeedbackResults>,
    iterations: Vec<IterationLine<'a>>,
    decision: Option<&'a Decision>,
    #[serde(flatten)]
    wait: Wait,
    report_path: Option<Cow<'a, str>>,
    /// Why it stopped where a checkpoint or a rollback between attempts failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody<'a>>,
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
            wait: driven.standing.wait(context.clock.now()),
            report_path: driven.report.as_deref().map(Path::to_string_lossy),
            error: driven
                .stopped
                .as_ref()
                .map(|error| ErrorBody::of(context, error)),
            hints: Hints::of(context, &driven.run, lane),
        }
    }
}

/// A supervised run.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunReply<'a> {
    #[serde(flatten)]
    driven: DrivenFields<'a>,
    #[serde(flatten)]
    lane: Option<&'a LaneStanding>,
}

impl<'a> RunReply<'a> {
    /// `lane` where it is one.
    pub(crate) fn new(
        context: &Context,
        driven: &'a Driven,
        lane: Option<&'a LaneStanding>,
    ) -> Self {
        Self {
            driven: DrivenFields::new(context, driven, lane),
            lane,
        }
    }
}

/// What a run would begin with.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct RunPlan<'a> {
    pub captured: CapturedTotals,
    pub spec: &'a RunSpec,
}

/// How a run was taken up, and what came of it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResumeReply<'a> {
    changed: bool,
    run: RunLine,
    strategy: Option<Strategy>,
    prompt: Option<&'a str>,
    /// What a dry run says that would be done.
    plan: Option<&'a Plan>,
    executed: bool,
    validation: &'a [Check],
    outcome: Option<Outcome>,
    baseline: Option<&'a FeedbackResults>,
    iterations: Vec<IterationLine<'a>>,
    decision: Option<&'a Decision>,
    #[serde(flatten)]
    wait: Wait,
    report_path: Option<Cow<'a, str>>,
    /// Why it stopped where a checkpoint or a rollback between attempts failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorBody<'a>>,
    next_actions: Vec<Hint>,
    #[serde(flatten)]
    hints: Hints,
    #[serde(flatten)]
    stage: Stage,
    #[serde(flatten)]
    details: Option<LaneDetails>,
}

impl<'a> ResumeReply<'a> {
    /// `lane` where it is one.
    pub(crate) fn new(
        context: &Context,
        resumed: &'a Resumed,
        lane: Option<&'a LaneStanding>,
    ) -> Self {
        let mut details = lane.map(|lane| lane.details.clone());
        let of_lane = details
            .as_mut()
            .and_then(|details| details.next_actions.take());
        let driven = resumed.driven.as_ref();
        let stopped = driven.and_then(|driven| driven.stopped.as_ref());
        let report = driven.and_then(|driven| driven.report.as_deref());
        Self {
            changed: resumed.change != Change::Nothing && !context.dry_run(),
            run: (&resumed.run).into(),
            strategy: resumed.strategy,
            prompt: resumed.prompt.as_deref(),
            plan: resumed.plan.as_ref(),
            executed: resumed.executed,
            validation: &resumed.validation,
            outcome: outcome_of(resumed),
            baseline: resumed.run.baseline.as_ref(),
            iterations: iterations(&resumed.run),
            decision: resumed.run.decision.as_ref(),
            wait: resumed.standing.wait(context.clock.now()),
            report_path: report.map(Path::to_string_lossy),
            error: stopped.map(|error| ErrorBody::of(context, error)),
            next_actions: of_lane.unwrap_or_else(|| next_actions(context, resumed)),
            hints: Hints::of(context, &resumed.run, lane),
            stage: lane.map(|lane| lane.stage.clone()).unwrap_or_default(),
            details,
        }
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
        Standing::NeedsPerson if resumed.change == Change::Prepared => Some(Outcome::Paused),
        Standing::NeedsPerson => Some(Outcome::Escalated),
    }
}

/// A manual fix that the run went on with.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ContinuedReply<'a> {
    session: &'a ManualFixSession,
    #[serde(flatten)]
    driven: DrivenFields<'a>,
}

impl<'a> ContinuedReply<'a> {
    pub(crate) fn new(context: &Context, fix: &'a Fix, driven: &'a Driven) -> Self {
        Self {
            session: &fix.session,
            driven: DrivenFields::new(context, driven, None),
        }
    }
}

/// A manual fix that was recorded, without going on.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PreparedReply<'a> {
    #[serde(flatten)]
    pub fix: &'a Fix,
    pub outcome: (),
}
