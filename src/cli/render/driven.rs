//! How a supervised run ended, as text and as a document, with where its lane stands (C6).

use super::super::ui::{Ui, escape};
use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::super::replies::ErrorBody;
use super::attempts::iterations_text;
use super::moment;
use super::status::look_at_text;
use crate::engine::base::clock::local_times;
use crate::engine::record::lane::{Hints, LaneDetails, LaneStanding, Stage, standing};
use crate::engine::resume::{Change, Check, Plan, Resumed, next_actions};
use crate::engine::run::fix_session::Fix;
use crate::engine::run::{Driven, Outcome};
use crate::engine::{Context, Result};
use crate::model::checkpoint::CapturedTotals;
use crate::model::decision::{Decision, Standing, Strategy, Wait};
use crate::model::feedback::FeedbackResults;
use crate::model::hint::Hint;
use crate::model::manual_fix::ManualFixSession;
use crate::model::run::{RunKey, RunSpec};
use crate::model::run_line::{IterationLine, RunLine, iterations};
use crate::policy::retry::{next_command, way_back};

/// Says where the report is that a bad end left (A6, S13).
pub(crate) fn note_report(driven: &Driven, ui: &Ui) {
    if let Some(path) = &driven.report {
        ui.note(&format!("report: {}", path.display()));
    }
}

/// A run for people: how it ended, its attempts, what can be done next.
pub(crate) fn driven_text(context: &Context, driven: &Driven, ui: &Ui) -> String {
    let ui = &ui.knowing(context);
    let line = |words: &[&str]| {
        let hint = Hint::recover(words).run(&driven.run.key);
        ui.command(&context.placed(hint))
    };
    let outcome = match driven.outcome {
        Outcome::Complete => "complete",
        Outcome::Failed => "failed",
        Outcome::Paused => "paused",
        Outcome::Parked => "parked",
        Outcome::Escalated => "escalated: a person is needed",
        Outcome::Cancelled => "cancelled",
    };
    let stopped_for = driven.run.stopped_for.as_ref().map(|reason| escape(reason));
    let mut text = String::new();
    if let Some(reason) = stopped_for.as_ref().filter(|_| driven.stopped.is_some()) {
        text.push_str(&format!("{reason}\n"));
    }
    text += &format!(
        "\nRun {} {outcome}.\n{}",
        driven.run.key,
        iterations_text(ui, &driven.run)
    );
    if let Some(reason) = stopped_for.filter(|_| driven.stopped.is_none()) {
        text.push_str(&format!("Stopped: {reason}\n"));
    }
    // Where a check cannot be started, nothing comes of what was decided.
    if let Some(decision) = driven
        .decision
        .as_ref()
        .filter(|_| driven.unstartable.is_none())
    {
        text.push_str(&format!("Decision: {}\n", local_times(&decision.reason)));
    }
    if let Standing::Wait(until) = driven.standing
        && driven.stopped.is_none()
    {
        text.push_str(&format!(
            "Next attempt: {}.\n",
            moment(until, context.clock.now())
        ));
    }
    text.push_str(
        &driven
            .night
            .as_ref()
            .map(|night| look_at_text(ui, &night.to_look_at))
            .unwrap_or_default(),
    );
    if driven.outcome == Outcome::Complete {
        if let Some(night) = &driven.night {
            text.push_str(&format!("{}\n", night.line(None)));
        }
        if let Some(on) = next_command(&driven.run, driven.outlook) {
            text.push_str(&format!("Continue:  {}\n", line(&on)));
        }
    } else {
        let on = next_command(&driven.run, driven.outlook).unwrap_or_else(|| vec!["resume"]);
        text.push_str(&format!("Continue:  {}\n", line(&on)));
        text.push_str(&format!("Status:    {}\n", line(&["status"])));
        // Why it stopped says what comes before one.
        if driven.stopped.is_none() {
            let back = way_back(driven.has_good_checkpoint);
            text.push_str(&format!("Roll back: {}\n", line(back)));
        }
    }
    text
}

/// Where a lane is; empty for a run that is no lane.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// The lines to show.
    pub standing: Option<LaneStanding>,
    /// For people: its stage, its records, and the commands that resume it and roll it back.
    pub prompt: String,
}

/// The lane of a run.
pub(crate) fn lane(context: &Context, key: Option<&RunKey>, ui: &Ui) -> Result<Lane> {
    let Some(key) = key else {
        return Ok(Lane::default());
    };
    let standing = standing(context, &context.load()?.state, key);
    let prompt = standing
        .as_ref()
        .map(|lane| prompt(lane, ui))
        .unwrap_or_default();
    Ok(Lane { standing, prompt })
}

fn prompt(lane: &LaneStanding, ui: &Ui) -> String {
    let mut text = String::new();
    let LaneStanding {
        stage,
        details,
        hints,
        back_to,
    } = lane;
    let text_of = |text: &Option<String>| escape(text.as_deref().unwrap_or("-"));
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "Stage:           {} ({})",
        text_of(&stage.current_stage),
        text_of(&details.stage_status)
    );
    let _ = writeln!(text, "Checkpoints:     {}", text_of(&stage.checkpoint_path));
    if !details.skipped_steps.is_empty() {
        let skipped = details.skipped_steps.join(", ");
        let _ = writeln!(text, "Done, skipped:   {}", escape(&skipped));
    }
    let next_actions = details.next_actions.as_deref().unwrap_or_default();
    for command in next_actions {
        let label = if *command == hints.resume_hint {
            "Resume:"
        } else {
            "Next:"
        };
        let _ = writeln!(text, "{label:<16} {}", escape(&ui.command(command)));
    }
    if !next_actions.contains(&hints.resume_hint) {
        let _ = writeln!(
            text,
            "Resume:          {}",
            escape(&ui.command(&hints.resume_hint))
        );
    }
    if let Some(stage) = back_to {
        let _ = writeln!(
            text,
            "Back to {}: {}",
            escape(stage),
            escape(&ui.command(&hints.rollback_hint))
        );
    }
    text
}

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
