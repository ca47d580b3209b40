//! Attempts, steps, runs and sessions whose process is gone are settled.
//!
//! Orphaned attempts (their supervisor was killed), and feedback loops before a run's first attempt that were orphaned.
//!
//! Settles orphaned steps, whose `recover` was killed.
//! What is left of their processes is ended, the files of an atomic one are restored, and how far the command got counts as
//! not known.
//!
//! Settles runs that are recorded as in progress while nobody works on them any more.
//! The `recover` that drove one was killed between two attempts, or nothing was heard of a loop, a lane or an agent's
//! session for long. What it had decided and not done yet, to give an iteration up, is done.
//!
//! Ends sessions whose agent is gone without a word: killed, or its terminal closed.
//! No hook is called then, and the run would stand in progress for ever.
//!
//! Each call of a hook notes who called it beside the run. It is no more than a look at who is alive, so it is no event. A
//! wrapper that lives for one call only differs from the agent by not coming twice.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::agent;
use crate::durable::FileLock;
use crate::engine::attempt;
use crate::engine::attempt::conditions::Detected;
use crate::engine::base::clock::millis;
use crate::engine::base::heartbeat::{is_alive, last_beat, mark_replaced};
use crate::engine::base::runs::{self, run_of};
use crate::engine::base::{Context, ErrorKind, Result};
use crate::engine::record::attempt_record::{self, Ending, Started};
use crate::engine::record::events::{self, apply_speculatively};
use crate::engine::record::liveness::{
    is_driven, is_orphaned, is_step_orphaned, left_running, orphaned_baseline, orphaned_steps,
};
use crate::engine::record::run_settings::attempt_folder;
use crate::engine::restore::automatic::restore_covered_files;
use crate::model::checkpoint::trigger;
use crate::model::run::OnFailure;
use crate::model::{
    Action, AttemptEnd, Hint, IterationStatus, Payload, ProcessId, Run, RunKey, RunStatus, State,
    Step, StepEnd, StepStatus,
};
use crate::policy::classify;
use crate::store::NewEvent;

/// How long the processes that a lost `recover` left may take to end.
const GRACE: Duration = Duration::from_secs(5);
/// Of a longer log it is not known what its agent used up.
const MAX_LOG: u64 = 64 << 20;

/// Ends what is left of a `recover` that is gone: the group of the child that is known, and whatever else it started.
fn end_processes(
    context: &Context,
    supervisor: Option<&ProcessId>,
    child: Option<&ProcessId>,
    what: &str,
) -> Result<()> {
    let failed = || format!("cannot look for {what}");
    if let Some(supervisor) = supervisor {
        mark_replaced(context.store(), supervisor);
    }
    if let Some(child) = child {
        let ended = child.end_group(GRACE).with_context(failed)?;
        tracing::debug!(?ended, pid = child.pid, "{what}");
    }
    // Feedback loops, and a command that was started a moment before the kill, are recorded nowhere.
    if let Some(supervisor) = supervisor {
        let ended = supervisor.end_children(GRACE).with_context(failed)?;
        tracing::debug!(?ended, "others of {what}");
    }
    Ok(())
}

/// How an orphaned attempt ended, not judged yet.
fn crashed(context: &Context, run: &Run) -> Option<(Started, Ending)> {
    let started = Started::open(run)?;
    let recorded = run.iterations.get(started.iteration)?.attempts.last()?;
    let end = AttemptEnd {
        failure: Some(classify::supervisor_lost()),
        duration_ms: millis(lasted(context, &started)),
        log_path: recorded.log_path.clone(),
        ..AttemptEnd::default()
    };
    let (attempt, iteration) = (started.attempt, started.iteration);
    let ending = Ending {
        end,
        trigger: Some(trigger::CRASH),
        headline: Some(format!(
            "What attempt {attempt} of iteration {iteration} left"
        )),
        ..Ending::default()
    };
    Some((started, ending))
}

/// How long an orphaned attempt lasted: until its `recover` or its output was last heard of.
fn lasted(context: &Context, started: &Started) -> Duration {
    let Started { run, at, .. } = started;
    let log = attempt_folder(context, &run.key, started.iteration, started.attempt);
    let root = context.store().root();
    let written = |path: &Path| root.open(path).ok()?.metadata().ok()?.modified().ok();
    let supervisor = run.live.as_ref().and_then(|live| live.supervisor.as_ref());
    let beat = supervisor.and_then(|id| last_beat(context.store(), id));
    let heard = beat.max(written(&log.join("output.log")));
    let silent = heard.and_then(|heard| heard.elapsed().ok());
    let since = context.clock.now().since(*at);
    since.saturating_sub(silent.unwrap_or_default())
}

/// Takes over what the attempt used up by what there is of its agent's records.
fn take_usage(context: &Context, started: &Started, end: &mut AttemptEnd) {
    let (run, key) = (&started.run, &started.run.key);
    let line = run.spec.command.join(" ");
    let Some(kind) = agent::detect(Some(&line), run.spec.agent.as_deref(), b"") else {
        return;
    };
    let log = attempt_folder(context, key, started.iteration, started.attempt).join("output.log");
    match context.store().root().read_at_most(&log, MAX_LOG) {
        Ok(output) => {
            let record = agent::read(kind, &output, b"");
            attempt::note_usage(end, &record, record.usage());
        }
        Err(error) => {
            tracing::debug!(%error, log = %log.display(), "what the attempt used is not known");
        }
    }
}

/// Says of a run whose `recover` was killed that its command goes on, and what ends it.
pub(crate) fn still_running(context: &Context, run: &Run) -> Option<String> {
    let pid = left_running(context, run)?.pid;
    let way = Hint::recover(["doctor", "--repair"])
        .at(context.elsewhere(run).unwrap_or_else(|| context.place()));
    let key = &run.key;
    Some(format!(
        "the command of run {key} (pid {pid}) is still running; its recover was killed: `{way}` ends it"
    ))
}

/// Applies to the state in memory, for commands that write nothing, that orphaned attempts crashed.
pub(crate) fn apply_attempts(context: &Context, state: &mut Arc<State>) {
    let orphaned: Vec<Run> = state
        .runs
        .iter()
        .filter(|run| is_orphaned(context, run))
        .cloned()
        .collect();
    for run in orphaned {
        if let Some(told) = still_running(context, &run) {
            context.warn(told);
        }
        let Some((started, mut ending)) = crashed(context, &run) else {
            continue;
        };
        // Who asks twice gets the same moment twice: the delay is not spread.
        let found = Detected::default();
        attempt::judge(context, state, &run, &started, &mut ending, found);
        let event = NewEvent::about(&run.key, Payload::AttemptEnded(Box::new(ending.end)));
        apply_speculatively(state, context.clock.now(), event);
    }
}

/// Records that the attempt of a run was lost with the machine that made it; nothing of that is here to be captured. Returns what
/// was done.
pub(in crate::engine) fn end_lost(context: &Context, key: &RunKey) -> Result<Option<String>> {
    let ledger = context.store().lock()?;
    let run = run_of(ledger.state(), key)?;
    if run.live.is_none() && run.baseline_supervisor.is_some() {
        let paused = paused("its machine was lost before the first attempt");
        return context.record_in(ledger, key, vec![paused]).map(|_| None);
    }
    // A loop of its own says itself how its attempts end.
    let is_supervised = run
        .live
        .as_ref()
        .is_some_and(|live| live.supervisor.is_some());
    let Some((started, mut ending)) = crashed(context, &run).filter(|_| is_supervised) else {
        return Ok(None);
    };
    let found = Detected {
        spread: fastrand::f64(),
        ..Detected::default()
    };
    attempt::judge(context, ledger.state(), &run, &started, &mut ending, found);
    let what = format!(
        "attempt {} of iteration {} of run {key} was lost with its machine: recorded as a crash",
        started.attempt, started.iteration
    );
    let payload = Payload::AttemptEnded(Box::new(ending.end));
    context.record_in(ledger, key, vec![payload])?;
    Ok(Some(what))
}

/// Records the orphaned attempts of this work tree as crashed: what is left of their processes is ended, and what they left
/// in the work tree is captured in a checkpoint. Returns what was done.
pub(super) fn recover_attempts(context: &Context) -> Result<Vec<String>> {
    let state = context.load()?.state;
    let mut done = Vec::new();
    for run in state
        .runs_of(&context.worktree_id())
        .filter(|run| is_orphaned(context, run))
    {
        let Some(live) = &run.live else { continue };
        let (supervisor, child) = (live.supervisor.as_ref(), live.child.as_ref());
        let crashed = crashed(context, run);
        end_processes(context, supervisor, child, "the lost attempt's processes")?;
        let Some((started, mut ending)) = crashed else {
            continue;
        };
        take_usage(context, &started, &mut ending.end);
        attempt::end(context, &run.key, &started, ending)?;
        done.push(format!(
            "attempt {} of iteration {} of run {} had lost its supervisor: recorded as a crash",
            live.attempt, live.iteration, run.key
        ));
    }
    Ok(done)
}

/// Cancels the runs of this work tree whose feedback loops before the first attempt are orphaned, and ends those. No attempt was
/// made; whoever takes the run up begins with them again.
pub(super) fn cancel_baselines(context: &Context) -> Result<Vec<String>> {
    let state = context.load()?.state;
    let mut done = Vec::new();
    for run in state.runs_of(&context.worktree_id()) {
        let Some(supervisor) = orphaned_baseline(context, run) else {
            continue;
        };
        end_processes(context, Some(supervisor), None, "the run's checks")?;
        let reason = "recover was killed before the first attempt";
        context.record_status(&run.key, RunStatus::Paused, reason)?;
        done.push(format!(
            "run {} had lost its supervisor before the first attempt: paused",
            run.key
        ));
    }
    Ok(done)
}

fn paused(reason: impl Into<String>) -> Payload {
    status(RunStatus::Paused, reason)
}

fn status(status: RunStatus, reason: impl Into<String>) -> Payload {
    let reason = reason.into();
    Payload::RunStatusChanged { status, reason }
}

/// Applies to the state in memory, for commands that write nothing, that orphaned steps were cut off.
pub(super) fn apply_steps(context: &Context, state: &mut Arc<State>) {
    let now = context.clock.now();
    let all = state
        .runs
        .iter()
        .flat_map(|run| run.steps.iter().map(|step| (&run.key, step)));
    let lost = all.filter(|(_, step)| is_step_orphaned(context, step));
    let events: Vec<_> = lost
        .map(|(key, step)| NewEvent::about(key, step_ended(context, step, false)))
        .collect();
    for event in events {
        apply_speculatively(state, now, event);
    }
}

fn step_ended(context: &Context, step: &Step, rolled_back: bool) -> Payload {
    Payload::StepEnded(StepEnd {
        name: step.start.name.clone(),
        status: StepStatus::CutOff,
        exit_code: None,
        duration_ms: millis(context.clock.now().since(step.started_at)),
        error: None,
        rolled_back,
        commits: attempt_record::commits_since(context, step.start.head.as_ref(), "step"),
    })
}

/// Records the orphaned steps of this work tree as cut off, and restores the files of atomic ones. Returns what was done.
pub(crate) fn recover_steps(context: &Context) -> Result<Vec<String>> {
    if orphaned_steps(context, &context.load()?.state).is_empty() {
        return Ok(Vec::new());
    }
    // One process does so at a time, to the last event of it: what another one does next is not part of the step.
    let _settling = FileLock::acquire(
        context.store().root(),
        &context.store().private_dir().join("steps.lock"),
        context.lock_timeout(),
    )?;
    let mut done = Vec::new();
    for (key, step) in orphaned_steps(context, &context.load()?.state) {
        done.push(if is_step_orphaned(context, &step) {
            cut_off(context, &key, &step)?
        } else {
            stopped(context, &key, &step)?
        });
    }
    Ok(done)
}

fn cut_off(context: &Context, key: &RunKey, step: &Step) -> Result<String> {
    let (supervisor, child) = (Some(&step.start.supervisor), step.child.as_ref());
    end_processes(context, supervisor, child, "the lost step's processes")?;
    let name = &step.start.name;
    let put_back = match restore_covered_files(context, key, &step.start) {
        // Nothing will ever bring them back: that must not hold up everything else.
        Err(error) if matches!(error.kind, ErrorKind::NoCheckpoint | ErrorKind::Corrupt) => {
            tracing::warn!(%error, "step '{name}' was interrupted, and its files cannot be restored");
            None
        }
        other => other?,
    };
    context.record(key, vec![step_ended(context, step, put_back.is_some())])?;
    let restored = put_back.map(|paths| format!(": {paths} paths were restored"));
    Ok(format!(
        "step '{name}' of run {key} was interrupted{}",
        restored.unwrap_or_default()
    ))
}

fn stopped(context: &Context, key: &RunKey, step: &Step) -> Result<String> {
    let what = "the processes of the step's compensation";
    end_processes(context, step.compensating.as_ref(), None, what)?;
    let name = step.start.name.clone();
    let text = format!(
        "the compensation of step '{name}' of run {key} was interrupted: how far it got is not known"
    );
    let payload = Payload::StepCompensated {
        name,
        succeeded: false,
        exit_code: None,
    };
    context.record(key, vec![payload])?;
    Ok(text)
}

/// What has no supervisor counts as left alone after so long without an event.
const SILENCE: Duration = Duration::from_secs(12 * 60 * 60);

/// Why nobody is at work on a run any more that says so.
fn left_alone(context: &Context, run: &Run) -> Option<String> {
    let says_so = match run.status {
        RunStatus::InProgress => true,
        RunStatus::Pending => run.baseline_supervisor.is_some(),
        _ => false,
    };
    if !says_so || runs::driver(context.store(), run).is_some() {
        return None;
    }
    let is_at_work = |step: &Step| {
        step.status == StepStatus::Running && is_alive(context.store(), &step.start.supervisor)
    };
    // Whoever has the right to drive it is about to say more.
    if run.steps.iter().any(is_at_work) || is_driven(context, &run.key) {
        return None;
    }
    // What a live attempt lost is an attempt that ended; its recovery says so.
    if let Some(driver) = run.driver.as_ref().filter(|_| run.live.is_none()) {
        return Some(format!(
            "recover is gone (pid {}): it was killed, or the machine was restarted",
            driver.pid
        ));
    }
    let is_silent = context.clock.now().since(run.last_at) > SILENCE;
    is_silent.then(|| "nothing was heard of it for 12 hours".to_owned())
}

/// The iteration that a `recover` which is gone had decided to give up, and why. Between that and the iteration's event a run
/// stands as one that a person is needed for. One that is there again because a user undid what followed is theirs.
fn undone_skip(context: &Context, state: &State, run: &Run) -> Option<(u32, String)> {
    let undone = state
        .worktrees
        .get(&run.worktree)
        .and_then(|worktree| worktree.redo.last());
    if undone.is_some_and(|entry| entry.run.as_ref() == Some(&run.key)) {
        return None;
    }
    if run.status != RunStatus::Escalated
        || run.driver.is_none()
        || runs::driver(context.store(), run).is_some()
    {
        return None;
    }
    let decision = run
        .decision
        .as_ref()
        .filter(|decision| decision.has(Action::Skip))?;
    let failed = run.iterations.get(run.failure.as_ref()?.iteration?)?;
    let is_undone =
        failed.status == IterationStatus::Failed && run.spec.on_failure != OnFailure::Stop;
    (is_undone && !is_driven(context, &run.key)).then(|| (failed.number, decision.reason.clone()))
}

/// What is to be recorded of a run that nobody is left of, and what to say of it.
fn settled(context: &Context, state: &State, run: &Run) -> Option<(Vec<NewEvent>, String)> {
    let key = &run.key;
    let (payloads, said) = if is_session_orphaned(context, run) {
        // As at the end of a session that said so. Its last state is the work tree's: nothing is captured late.
        let complete = status(
            RunStatus::Complete,
            "the session is over: its agent is gone",
        );
        let said = format!("the agent of session {key} is gone: the session is over");
        (vec![complete], said)
    } else if let Some((iteration, reason)) = undone_skip(context, state, run) {
        let skip = Payload::IterationChanged {
            iteration,
            status: IterationStatus::Skipped,
            reason: Some(reason),
        };
        let said = format!(
            "iteration {iteration} of run {key} is given up, as was decided before recover was killed"
        );
        (vec![skip, paused("recover is gone: it was killed")], said)
    } else {
        let reason = left_alone(context, run)?;
        let said = format!("run {key} is paused: {reason}");
        (vec![paused(reason)], said)
    };
    let about = |payload| NewEvent::about(key, payload);
    Some((payloads.into_iter().map(about).collect(), said))
}

/// Applies that to the state in memory, for commands that write nothing.
pub(super) fn apply_silent(context: &Context, state: &mut Arc<State>) {
    let all: Vec<_> = state
        .runs
        .iter()
        .filter_map(|run| settled(context, state, run))
        .collect();
    for event in all.into_iter().flat_map(|(events, _)| events) {
        apply_speculatively(state, context.clock.now(), event);
    }
}

/// Records it of the runs of this work tree. Returns what was done.
pub(super) fn recover_silent(context: &Context) -> Result<Vec<String>> {
    let state = context.load()?.state;
    let here: Vec<RunKey> = state
        .runs_of(&context.worktree_id())
        .filter(|run| settled(context, &state, run).is_some())
        .map(|run| run.key.clone())
        .collect();
    let mut done = Vec::new();
    for key in here {
        let ledger = context.store().lock()?;
        // Another process may have come first.
        let found = ledger
            .state()
            .run(&key)
            .and_then(|run| settled(context, ledger.state(), run));
        let Some((settling, said)) = found else {
            continue;
        };
        events::append(ledger, &key, context.clock.now(), settling)?;
        done.push(said);
    }
    Ok(done)
}

/// Who called the hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Caller {
    /// The process.
    process: Option<ProcessId>,
    /// Whether it has called before.
    again: bool,
}

fn caller_file(context: &Context, key: &RunKey) -> PathBuf {
    context.store().run_dir(key).join("agent.json")
}

fn noted_caller(context: &Context, key: &RunKey) -> Option<Caller> {
    let noted = context.store().root().read(&caller_file(context, key));
    serde_json::from_slice(&noted.ok()?).ok()
}

/// Notes who calls the hook of a session. What cannot be noted is found by its age.
pub(crate) fn note_caller(context: &Context, key: &RunKey) {
    let before = noted_caller(context, key);
    let process = ProcessId::caller();
    let is_same = |before: &Caller| process.is_some() && before.process == process;
    let again = before.as_ref().is_some_and(is_same);
    let now = Caller { process, again };
    if before.as_ref() != Some(&now)
        && let Ok(bytes) = serde_json::to_vec(&now)
    {
        context.write_note(&caller_file(context, key), &bytes);
    }
}

/// Whether a session of this work tree is under way of which nobody is left.
fn is_session_orphaned(context: &Context, run: &Run) -> bool {
    if run.status != RunStatus::InProgress
        || run.live.is_some()
        || run.worktree != context.worktree_id()
    {
        return false;
    }
    let caller = noted_caller(context, &run.key).filter(|caller| caller.again);
    caller
        .and_then(|caller| caller.process)
        .is_some_and(|agent| !agent.is_out_of_sight() && !agent.is_alive())
}
