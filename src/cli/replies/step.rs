//! JSON documents of `step`.

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::flow::step::{StepReport, StepRequest};
use crate::engine::record::lane::LaneStanding;
use crate::model::id::CheckpointId;
use crate::model::step::ToldStep;

use super::parts::{Hints, LaneFields};

/// A step that was run, skipped, or is planned.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StepReply<'a> {
    changed: bool,
    step: Option<&'a ToldStep>,
    executed: bool,
    exit_code: Option<i32>,
    checkpoint_id: Option<&'a CheckpointId>,
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
pub(crate) enum Would {
    Skip,
    Wait,
    Run,
}

impl<'a> StepReply<'a> {
    /// `lane` where the step is one's.
    pub(crate) fn new(report: &'a StepReport, lane: Option<&'a LaneStanding>) -> Self {
        Self {
            changed: report.executed,
            step: report.step.as_ref(),
            executed: report.executed,
            exit_code: report.exit_code,
            checkpoint_id: report.checkpoint_id.as_ref(),
            rolled_back: report.rolled_back.is_some(),
            plan: None,
            lane: lane.map(LaneFields::from),
            hints: lane.map(Hints::of_lane),
        }
    }

    pub(crate) fn planned(report: &'a StepReport, request: &'a StepRequest, would: Would) -> Self {
        let plan = StepPlan {
            would,
            command: &request.command,
            stage: request.stage.as_deref(),
            atomic: request.atomic,
            intent: request.intent.as_deref(),
            paths: &request.paths,
            compensate: request.compensate.as_deref(),
        };
        Self {
            plan: Some(plan),
            ..Self::new(report, None)
        }
    }
}
