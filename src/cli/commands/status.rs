//! `recover status`: where the run stands, once or each time that it changes.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use super::super::args::StatusArgs;
use super::super::render;
use super::super::replies::ExitCode;
use super::super::ui::{Form, Reply, Ui};
use crate::engine::attempt::run_summary::Retry;
use crate::engine::record::lane::Hints;
use crate::engine::remote::RunRemote;
use crate::engine::status::{Activity, Follow, Noticed, Status, status as look};
use crate::engine::{Context, Error, ErrorKind, Result};
use crate::model::agent_record::UsageFields;
use crate::model::decision::{Budget, Decision, Wait};
use crate::model::failure::Failure;
use crate::model::feedback::FeedbackResults;
use crate::model::hint::Hint;
use crate::model::id::CheckpointId;
use crate::model::manual_fix::ManualFixSession;
use crate::model::run::Parked;
use crate::model::run_line::{IterationLine, RunLine};
use crate::model::step::ToldStep;
use crate::model::time::Timestamp;
use crate::policy::report::Night;
use crate::policy::retry::ResumeOption;
use crate::policy::secrets::redact;

/// Clears a terminal and begins at its top.
const CLEAR: &str = "\x1b[2J\x1b[H";

/// `recover status`.
pub(super) fn status(context: &Context, args: &StatusArgs, ui: &Ui) -> Result<Reply> {
    if args.watch {
        watch(context, ui)
    } else {
        once(context, ui)
    }
}

/// Where the run stands now.
pub(crate) fn once(context: &Context, ui: &Ui) -> Result<Reply> {
    context.require_something()?;
    let status = look(context)?;
    let now = context.clock.now();
    let text = ui.text(|| render::status_text(&ui.knowing(context), &status, now));
    Ok(Reply::new(StatusReply::new(context, &status, now), text))
}

/// Shows it again whenever it has changed, until a signal comes. A terminal is redrawn, also where only a time that is
/// printed has passed; elsewhere what is recorded decides.
fn watch(context: &Context, ui: &Ui) -> Result<Reply> {
    if ui.json {
        return Err(Error::new(
            ErrorKind::Usage,
            "--watch has no end, and --json is one document",
        )
        .hint(Hint::recover(["status", "--json"])));
    }
    let redraws = ui.width.is_some() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let mut follow = Follow::new(context)?;
    let mut shown = None;
    loop {
        let text = once(context, ui)?.text;
        let text = ui.fitted(redact(&text), Form::Text).into_owned();
        if shown.as_ref() != Some(&text) {
            let between = match (redraws, &shown) {
                (true, _) => CLEAR,
                (false, Some(_)) => "\n",
                (false, None) => "",
            };
            let mut out = io::stdout().lock();
            match write!(out, "{between}{text}").and_then(|()| out.flush()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ended(0)),
                written => written.context("cannot write to standard output")?,
            }
            shown = Some(text);
        }
        if let Noticed::Stopped(code) = follow.wait(redraws.then_some(Duration::from_secs(1))) {
            return Ok(ended(code));
        }
    }
}

/// The answer of what has printed everything as it came.
pub(super) fn ended(code: i32) -> Reply {
    Reply::text("").exit(if code == 0 {
        ExitCode::DONE
    } else {
        ExitCode::other(code)
    })
}

/// Whether another attempt is allowed, and what is left of the budgets.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "retry")]
pub(crate) struct RetryReply<'a> {
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
    run: Option<RunLine>,
}

impl<'a> RetryReply<'a> {
    pub(crate) fn new(retry: &'a Retry, now: Timestamp) -> Self {
        let status = retry.status.as_ref();
        let run = retry.run.as_ref();
        Self {
            can_retry: retry.is_allowed(),
            wait: retry.standing.wait(now),
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
pub(crate) struct StatusReply<'a> {
    run: RunLine,
    /// Why it stands still, where it is paused or parked for another reason than what was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_for: Option<&'a str>,
    /// What came of it; `null` where it has no attempts.
    night: Option<&'a Night>,
    session: SessionUsage<'a>,
    failure: Option<&'a Failure>,
    /// What a person can do next; empty where the failure is not recoverable.
    options: &'a [ResumeOption],
    manual_steps: &'a [String],
    manual_fix: Option<&'a ManualFixSession>,
    unfinished_operation: Option<&'a str>,
    /// The lock files that keep git from working here, with their ages.
    #[serde(skip_serializing_if = "Option::is_none")]
    git_locked: Option<&'a str>,
    checkpoints: CheckpointCounts<'a>,
    /// Bytes of its logs and prompts, and of what its checkpoints hold beyond branches and the runs before it.
    size_bytes: Option<u64>,
    retry: RetryReply<'a>,
    /// What is going on; `null` while nobody is at work on it.
    activity: Option<&'a Activity>,
    /// How it stands with the remotes that it lies on, by what is known here.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    remotes: &'a [RunRemote],
    baseline: Option<&'a FeedbackResults>,
    /// The latest 20.
    iterations: Vec<IterationLine<'a>>,
    steps: Vec<ToldStep>,
    #[serde(flatten)]
    hints: Hints,
}

/// The session whose budget the run shares.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct SessionUsage<'a> {
    id: &'a str,
    #[serde(flatten)]
    usage: UsageFields,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
struct CheckpointCounts<'a> {
    count: usize,
    latest: Option<&'a CheckpointId>,
    last_good: Option<&'a CheckpointId>,
}

impl<'a> StatusReply<'a> {
    pub(crate) fn new(context: &Context, status: &'a Status, now: Timestamp) -> Self {
        let run = &status.run;
        Self {
            run: run.into(),
            stopped_for: run.stopped_for.as_deref(),
            night: status.night.as_ref(),
            session: SessionUsage {
                id: &run.session,
                usage: status.session.into(),
            },
            failure: run.failure.as_ref(),
            options: &status.options,
            manual_steps: &status.manual_steps,
            manual_fix: status.manual_fix.as_ref(),
            unfinished_operation: status.unfinished_operation.as_deref(),
            git_locked: status.git_locked.as_deref(),
            checkpoints: CheckpointCounts {
                count: status.checkpoint_count,
                latest: status.latest.as_ref(),
                last_good: status.last_good.as_ref(),
            },
            size_bytes: status.size_bytes,
            retry: RetryReply::new(&status.retry, now),
            activity: status.activity.as_ref(),
            remotes: &status.remotes,
            baseline: run.baseline.as_ref(),
            iterations: run
                .latest_iterations(LATEST)
                .into_iter()
                .map(IterationLine::from)
                .collect(),
            steps: run.steps.iter().map(|step| step.told(&run.key)).collect(),
            hints: Hints::of(context, run, None),
        }
    }
}
