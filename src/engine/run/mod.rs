//! `recover run`: supervises a command through iterations and attempts until the run ends.
//! It is complete, stopped, parked or escalated then. `resume` goes through the same [`drive()`].

mod acp;
mod awake;
mod between_attempts;
mod commands;
mod confine;
mod drive;
mod execute;
mod feedback;
pub(crate) mod fix_session;
mod gate;
mod guard;
pub(crate) mod notify;
mod otel;
pub(crate) mod own_loop;
mod request;
pub(crate) mod retry;
pub(crate) mod series;
pub(crate) mod tasks;
mod watched;

use std::time::Duration;

use anyhow::Context as _;
use schemars::JsonSchema;
use serde::Serialize;

use crate::durable::{FileLock, LockError};
use crate::engine::base::{Context, Error, ErrorKind, Result, runs};
use crate::engine::record::liveness::Driving;
use crate::engine::record::run_settings::configured_checks;
use crate::engine::record::storage::Prepared;
use crate::engine::record::{checkpoint, lane, select, storage};
use crate::engine::recovery;
use crate::engine::remote::{Server, require_new};
use crate::engine::runs::refuse_driven;
use crate::engine::trust::{self, Reach};
use crate::model::checkpoint::trigger;
use crate::model::run::NONE;
use crate::model::{Decision, Hint, ProcessId, Run, RunKey, RunSpec, RunStatus, Standing, State};
use crate::policy::report::{Night, run_state};
use crate::policy::retry::Outlook;
use crate::process::Show;
use crate::store::views::write_views;
use crate::store::{Exclusive, NewEvent};

pub(crate) use crate::engine::record::run_settings::{
    called_in, folder_of, is_unchecked, loops_of_fix,
};
pub(crate) use commands::{Problem, missing_checks, problem_of, require_checks, require_command};
pub(crate) use drive::drive;
pub(crate) use execute::prompt_of;
pub(crate) use feedback::{LoopSetting, no_loops, run_loops};
pub(crate) use notify::Notification;
pub(crate) use request::{AgentChoice, Request, RunPlan, profile_of, typed_checks};

/// How a supervised run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// All iterations are done.
    Complete,
    /// It failed and stopped.
    Failed,
    /// It stopped and can go on: a cooldown that is not waited for, a manual fix.
    Paused,
    /// It waits for a known time.
    Parked,
    /// A person is needed.
    Escalated,
    /// It was interrupted.
    Cancelled,
}

impl Outcome {
    /// What the run is recorded as.
    fn status(self) -> RunStatus {
        match self {
            Self::Complete => RunStatus::Complete,
            Self::Failed => RunStatus::Failed,
            Self::Paused => RunStatus::Paused,
            Self::Parked => RunStatus::Parked,
            Self::Escalated => RunStatus::Escalated,
            Self::Cancelled => RunStatus::Cancelled,
        }
    }
}

/// Whose records are shown as text that people read. The log has them as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    /// Nobody's.
    None,
    /// Those of an agent that was started by its profile: nobody asked for records.
    Profile,
    /// Every agent's.
    All,
}

/// How to go about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveOptions {
    /// Return rather than sleep when the next attempt has to wait.
    pub no_wait: bool,
    /// Where the child's output is shown.
    pub show: Show,
    /// Whose records are shown as text.
    pub digest: Digest,
    /// Nobody is there who began it: what fails again and again with nothing changed is one task.
    pub unattended: bool,
    /// Give up waiting after this long (exit 9).
    pub longest_wait: Option<Duration>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Driven {
    /// How it ended.
    pub outcome: Outcome,
    /// The run afterwards.
    pub run: Run,
    /// What came of it, where it has attempts.
    pub night: Option<Night>,
    /// What was decided last.
    pub decision: Option<Decision>,
    /// What is allowed now.
    pub standing: Standing,
    /// The signal's exit code after an interruption.
    pub interrupted: Option<i32>,
    /// Why it stopped where one of its commands cannot be started: nothing that another attempt would change.
    pub unstartable: Option<String>,
    /// Why it stopped where what is done between attempts failed: a checkpoint, a rollback.
    pub stopped: Option<Error>,
    /// What the record of the run does not say of it.
    pub outlook: Outlook,
    /// The exit code of the last child, for `--passthrough`.
    pub child_exit_code: Option<i32>,
    /// The report that was written beside the run's logs.
    pub report: Option<std::path::PathBuf>,
}

/// The run of this work tree in whose attempt this process is.
fn run_around<'a>(context: &Context, state: &'a State) -> Option<&'a Run> {
    let above = ProcessId::ancestors();
    let is_same =
        |one: &ProcessId, id: &ProcessId| (one.pid, one.start_time) == (id.pid, id.start_time);
    let is_above = |id: &ProcessId| above.iter().any(|one| is_same(one, id));
    state
        .runs_of(&context.worktree_id())
        .find(|run| runs::driver(context.store(), run).is_some_and(is_above))
}

/// The right to begin a run in a work tree: one process has it until it ends. Lanes are there to be at work side by side,
/// and a run within an attempt is waited for by that attempt's supervisor: they need none.
///
/// # Errors
/// Another run is at work there (11).
fn claim_worktree(context: &Context, state: &State, key: &RunKey) -> Result<Option<FileLock>> {
    if run_around(context, state).is_some() {
        return Ok(None);
    }
    let is_lane = |key: &RunKey| key.lane != NONE;
    for run in state.runs_of(&context.worktree_id()) {
        if let Some(id) = runs::driver(context.store(), run)
            && !(is_lane(key) && is_lane(&run.key))
        {
            return Err(runs::driven_by(&run.key, id));
        }
    }
    if is_lane(key) {
        return Ok(None);
    }
    let name = format!(
        "worktree-{:08x}.lock",
        crc32fast::hash(context.worktree_id().to_string().as_bytes())
    );
    let place = context.store().private_dir().join(name);
    match FileLock::acquire(context.store().root(), &place, Duration::ZERO) {
        Ok(lock) => Ok(Some(lock)),
        Err(LockError::Held { holder, .. }) => {
            let pid = holder.split_whitespace().nth(1).unwrap_or_default();
            let message = format!(
                "another run is at work in this work tree ({holder}): wait for it, or stop it first with kill -INT {pid}"
            );
            Err(Error::new(ErrorKind::Locked, message).hint(Hint::recover(["status"])))
        }
        Err(error) => Err(error.into()),
    }
}

/// What is examined before anything of a run is made: its command must be there (2); of the others it is said.
pub(crate) fn look_at(context: &Context, spec: &RunSpec) -> Result<()> {
    commands::require_reachable_bounds(context, spec)?;
    require_command(context, &spec.command, &spec.dir)?;
    commands::warn_of_others(context, spec);
    confine::require(context, spec.confine)?;
    guard::require_space(context)
}

/// Makes the run, takes the initial checkpoint and drives it.
pub(crate) fn run(context: &Context, mut spec: RunSpec, options: &DriveOptions) -> Result<Driven> {
    let configured = spec.configured.insert(configured_checks(context));
    let has_checks = !spec.feedback.is_empty() || !configured.feedback.is_empty();
    look_at(context, &spec)?;
    if options.show.is_passthrough() && spec.launch.as_ref().is_some_and(|launch| launch.acp) {
        let message = "--passthrough leaves no way to speak with the agent by its protocol";
        return Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(["run", "--help"])));
    }
    if let Some(remote) = context.remote_name() {
        // Before anything is recorded that is to lie there.
        let server = Server::of(context, &remote)?.with_consent()?;
        let naming = context.naming();
        if let Some(id) = &naming.run_id {
            let key = RunKey::new(id.clone(), naming.phase.as_deref(), naming.lane.as_deref());
            require_new(&server, &key)?;
        }
        let retry =
            serde_json::to_value(&context.settings().retry).context("cannot encode the budgets")?;
        spec.policy.get_or_insert(retry);
    }
    recovery::recover(context)?;
    let prepared = checkpoint::prepare_first(context)?;
    checkpoint::publish_large(&prepared);
    let mut ledger = context.store().lock()?;
    spec.within = run_around(context, ledger.state()).map(|run| run.key.run_id.clone());
    if options.unattended && spec.within.is_none() && context.naming().task.is_none() {
        spec.repeats = series::repeated(context, ledger.state(), &spec, &prepared.capture)?;
    }
    let series = spec.series.clone();
    let (key, events) = new_run(context, ledger.state(), spec)?;
    // Before anything is recorded of a run that is refused.
    let _worktree = claim_worktree(context, ledger.state(), &key)?;
    let driving = Driving::take(context, &key)?;
    ledger.append(context.clock.now(), events)?;
    if let Some(series) = series {
        context.note(series::begins(&series, &key.run_id));
    }
    record_beginning(context, ledger, &key, &prepared)?;
    drop(prepared);
    if !has_checks && !options.show.is_passthrough() {
        context.note(
            "no check is given: \"passed\" means that the command exits with 0; --feedback NAME=CMD adds one"
                .to_owned(),
        );
    }
    drive(context, &driving, options)
}

/// Records what a run begins with.
fn record_beginning(
    context: &Context,
    mut ledger: Exclusive,
    key: &RunKey,
    prepared: &Prepared,
) -> Result<()> {
    let beginning = lane::of_beginning(ledger.state(), key);
    let request = storage::Request {
        trigger: trigger::INITIAL.to_owned(),
        after_iteration: Some(0),
        lane_fields: lane::fill(context, ledger.state(), key, beginning),
        ..storage::Request::default()
    };
    checkpoint::take(context, &mut ledger, key, prepared, request)?;
    write_views(ledger, &[key])?;
    Ok(())
}

/// Captures what a run begins with, where it was killed before it had: nothing of it was started yet.
pub(crate) fn capture_missed_beginning(context: &Context, run: &Run) -> Result<()> {
    let mut iterations = run.iterations.values();
    if run.was_captured || iterations.any(|one| !one.attempts.is_empty()) {
        return Ok(());
    }
    let prepared = checkpoint::prepare_first(context)?;
    checkpoint::publish_large(&prepared);
    record_beginning(context, context.store().lock()?, &run.key, &prepared)
}

/// The key of a new run. A run of that name may be there already if it has no command yet (a checkpoint came first).
fn new_run(context: &Context, state: &State, spec: RunSpec) -> Result<(RunKey, Vec<NewEvent>)> {
    let naming = context.naming();
    let id = naming
        .run_id
        .clone()
        .unwrap_or_else(|| runs::new_run_id("run", context.clock.now(), state));
    let key = RunKey::new(id, naming.phase.as_deref(), naming.lane.as_deref());
    match state.run(&key) {
        None => {
            let created = select::created(context, &key, spec);
            Ok((key, vec![created]))
        }
        Some(run) if run.spec.command.is_empty() && run.live.is_none() => {
            let changed = crate::model::event::Payload::RunSpecChanged {
                spec: Box::new(spec),
                changes: Vec::new(),
            };
            let event = NewEvent::about(&key, changed);
            Ok((key, vec![event]))
        }
        Some(run) => {
            // An attempt has the name of its own run from the environment.
            trust::refuse_to_agent(context, "run", Reach::Run)?;
            let is_here = run.worktree == context.worktree_id();
            if is_here || naming.series.is_none() {
                refuse_driven(context, run)?;
            }
            // It was not there when its number was chosen.
            if let Some(series) = naming.series.as_ref().filter(|_| is_here) {
                return Err(series::begun_meanwhile(series, run));
            }
            let status = run_state(run);
            let error = |ways: &str| {
                let message = format!("run {} already exists ({status}): {ways}", run.key);
                Error::new(ErrorKind::AlreadyExists, message)
            };
            if run.status.is_done() {
                let ways = "choose another name with --run, or begin the next of that name with --series in place of --run";
                return Err(error(ways).hint(Hint::recover(["status"]).run(&run.key)));
            }
            Err(error("resume it, or choose another name with --run")
                .hint(Hint::recover(["resume"]).run(&run.key)))
        }
    }
}
