//! Rollbacks, restores, undo and redo.

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::Context;
use crate::engine::record::lane::{Hints, LaneDetails, LaneStanding, Stage};
use crate::engine::record::run_settings::is_unchecked;
use crate::engine::restore::request::{Restore, RestoreResult};
use crate::model::hint::Hint;
use crate::model::run_line::RunLine;
use crate::policy::recommended::resume_command;

/// A rollback, restore, undo or redo; the plan of one has its result as `plan`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RestoreReply<'a> {
    changed: bool,
    result: &'a RestoreResult,
    #[serde(flatten)]
    after: AfterRestore<'a>,
}

/// What it would do.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RestorePlanReply<'a> {
    changed: bool,
    plan: &'a RestoreResult,
    #[serde(flatten)]
    after: AfterRestore<'a>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct AfterRestore<'a> {
    run: Option<RunLine>,
    #[serde(flatten)]
    hints: Hints,
    #[serde(flatten)]
    stage: Stage,
    #[serde(flatten)]
    details: Option<&'a LaneDetails>,
}

impl<'a> AfterRestore<'a> {
    fn new(context: &Context, restore: &'a Restore, lane: Option<&'a LaneStanding>) -> Self {
        let run = restore.run.as_ref();
        let resume = run.map_or_else(
            || vec!["resume"],
            |run| resume_command(run, is_unchecked(context, run)),
        );
        let hints = Hints {
            resume_hint: context.line(Hint::recover(resume).run(run.map(|run| &run.key))),
            rollback_hint: context.line(Hint::recover([restore.kind.taken_back_by()])),
        };
        Self {
            run: run.map(RunLine::from),
            hints: lane.map_or(hints, |lane| lane.hints.clone()),
            stage: lane.map(|lane| lane.stage.clone()).unwrap_or_default(),
            details: lane.map(|lane| &lane.details),
        }
    }
}

impl<'a> RestoreReply<'a> {
    /// `lane` where the run is one.
    pub(crate) fn new(
        context: &Context,
        restore: &'a Restore,
        lane: Option<&'a LaneStanding>,
    ) -> Self {
        let after = AfterRestore::new(context, restore, lane);
        Self {
            changed: restore.changed,
            result: &restore.result,
            after,
        }
    }
}

impl<'a> RestorePlanReply<'a> {
    /// `lane` where the run is one.
    pub(crate) fn new(
        context: &Context,
        restore: &'a Restore,
        lane: Option<&'a LaneStanding>,
    ) -> Self {
        Self {
            changed: false,
            plan: &restore.result,
            after: AfterRestore::new(context, restore, lane),
        }
    }
}
