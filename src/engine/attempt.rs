//! Recording attempts: the claim of one, and its end with everything that follows (A3, L2–L6).

mod preview;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::model::checkpoint::{Checkpoint, Verdict, trigger};
use crate::model::decision::{Action, Decision};
use crate::model::event::{AttemptEnd, EventSource, Payload};
use crate::model::failure::{Condition, Failure};
use crate::model::feedback::FeedbackResults;
use crate::model::run::{Attempt, AttemptOutcome, ProcessId, Run, RunKey};
use crate::model::snapshot::ObjectId;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::policy::budget::Account;
use crate::policy::decide::{Circumstances, decide, is_charged};
use crate::store::views::write_views;
use crate::store::{Exclusive, NewEvent};

use super::checkpoint::{self, Prepared, Request};
use super::context::Context;
use super::error::{Error, ErrorKind, Result};
use super::{report, retry, select, settle, state_rollback};

/// An attempt that was begun.
#[derive(Clone, Debug)]
pub struct Started {
    /// The run, as of the beginning.
    pub run: Run,
    /// The attempt's iteration.
    pub iteration: u32,
    /// Its number.
    pub attempt: u32,
    /// What it is booked on.
    pub subtask: String,
    /// When.
    pub at: Timestamp,
}

/// What is told of an attempt when it begins.
#[derive(Clone, Debug, Default)]
pub struct Begin {
    /// What it tries.
    pub approach: Option<String>,
    /// Its iteration, where it is not the current one.
    pub iteration: Option<u32>,
    /// What it is booked on.
    pub subtask: Option<String>,
    /// The supervising process; `None` for a loop that runs its own commands.
    pub supervisor: Option<ProcessId>,
}

/// How an attempt ended, before anything is decided.
#[derive(Clone, Debug, Default)]
pub struct Ending {
    /// Why it failed; `None` when it passed.
    pub failure: Option<Failure>,
    /// Whether a feedback loop failed rather than the command.
    pub in_feedback_loop: bool,
    /// What the feedback loops said.
    pub feedback_results: FeedbackResults,
    /// Milliseconds it took.
    pub duration_ms: u64,
    /// Exit status of the command.
    pub exit_code: Option<i32>,
    /// Name of the signal that ended it.
    pub signal: Option<String>,
    /// Whether the deadline ended it.
    pub timed_out: bool,
    /// Its log.
    pub log_path: Option<String>,
    /// What it tried.
    pub approach: Option<String>,
    /// The agent's own session.
    pub agent_session: Option<String>,
    /// The headline of its checkpoint.
    pub headline: Option<String>,
    /// The loop's plan number, for its events (L5).
    pub plan: Option<u64>,
    /// Leave the working memory as it is.
    pub keep_state: bool,
    /// Why its checkpoint is taken.
    pub trigger: Option<&'static str>,
}

/// What the loop contract calls the result (L2).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RecoveryResult {
    /// Whether recovery can go on.
    pub success: bool,
    /// Whether another attempt is allowed, now or at `retry_after`.
    pub can_retry: bool,
    /// When, where it is not now.
    pub retry_after: Option<Timestamp>,
    /// `rolled_back`, `cooldown_set`, `max_retries_exceeded` or `no_checkpoint`.
    pub action: &'static str,
    /// What went wrong with the reaction itself.
    pub error: Option<String>,
}

/// An attempt's end as it was recorded.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The run afterwards.
    pub run: Run,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// What was decided.
    pub decision: Option<Decision>,
    /// What the reaction was.
    pub result: Option<RecoveryResult>,
    /// The checkpoint at its end; `None` where none could be taken.
    pub checkpoint: Option<Checkpoint>,
    /// Why none could be taken.
    pub checkpoint_error: Option<String>,
    /// The report that was written because a person is needed.
    pub report: Option<std::path::PathBuf>,
}

/// Claims the next attempt of a run under the ledger's lock.
pub fn begin(context: &Context, ledger: &mut Exclusive, key: &RunKey, begin: &Begin) -> Result<Started> {
    let (started, event) = beginning(context, run_of(ledger.state(), key)?, begin);
    ledger.append(started.at, vec![event])?;
    Ok(Started { run: run_of(ledger.state(), key)?, ..started })
}

/// What the next attempt is, and the event that begins it.
fn beginning(context: &Context, run: Run, begin: &Begin) -> (Started, NewEvent) {
    let iteration = begin.iteration.unwrap_or(run.current_iteration);
    let attempt = run.iterations.get(&iteration).and_then(|i| i.attempts.last()).map_or(1, |last| last.number + 1);
    let subtask = begin.subtask.clone().unwrap_or_else(|| run.default_subtask(iteration));
    let payload = Payload::AttemptStarted {
        iteration,
        attempt,
        approach: begin.approach.clone(),
        subtask: subtask.clone(),
        session: session_of(context, &run),
        head: head_of(context),
        supervisor: begin.supervisor.clone(),
        log_path: None,
    };
    let event = NewEvent::about(&run.key, payload);
    (Started { run, iteration, attempt, subtask, at: context.clock.now() }, event)
}

/// The session that an attempt of `run` is charged to: the one the caller names, else the run's own.
pub fn session_of(context: &Context, run: &Run) -> String {
    context.naming().session.clone().unwrap_or_else(|| run.session.clone())
}

/// The run with this key, which must be there.
pub fn run_of(state: &State, key: &RunKey) -> Result<Run> {
    state.run(key).cloned().ok_or_else(|| Error::new(ErrorKind::RunNotFound, format!("no run {key}")))
}

/// HEAD, where there is one: commits are the attempt's own if they came after it.
fn head_of(context: &Context) -> Option<ObjectId> {
    let repo = context.repo().ok().filter(|_| context.has_git())?;
    repo.head().ok().and_then(|head| head.commit)
}

/// Commits that the attempt made: those that HEAD has now and had not when it began.
/// On a branch that had none yet, that is all of them.
fn own_commits(context: &Context, recorded: Option<&Attempt>) -> Vec<ObjectId> {
    let (Some(recorded), Some(now)) = (recorded, head_of(context)) else { return Vec::new() };
    let before = recorded.head_at_start.as_ref();
    let between =
        context.repo().and_then(|repo| crate::git::head::commits_between(repo, before, &now).map_err(Error::from));
    between.unwrap_or_else(|error| {
        tracing::warn!(%error, "the attempt's commits are not known; a rollback will ask about them");
        Vec::new()
    })
}

/// Records the end of an attempt: its checkpoint, the decision, the loop's events, and after a failure the state
/// rollback. The counts are in the ledger before anything is rolled back.
pub fn end(context: &Context, key: &RunKey, started: &Started, ending: Ending) -> Result<Ended> {
    // The attempt is recorded whatever becomes of its checkpoint: a full disk must not hide a failure.
    let prepared = checkpoint::prepare(context, &BTreeSet::new());
    let mut ledger = context.store().lock()?;
    let ended = end_locked(context, &mut ledger, key, started, ending, &prepared)?;
    drop(ledger);
    Ok(report::after(context, key, ended))
}

fn end_locked(
    context: &Context,
    ledger: &mut Exclusive,
    key: &RunKey,
    started: &Started,
    ending: Ending,
    prepared: &Result<Prepared>,
) -> Result<Ended> {
    let run = run_of(ledger.state(), key)?;
    let recorded = run
        .iterations
        .get(&started.iteration)
        .and_then(|iteration| iteration.attempts.iter().rfind(|attempt| attempt.number == started.attempt));
    let commits = own_commits(context, recorded);
    let mut failure = ending.failure;
    if let Some(failure) = &mut failure {
        failure.iteration = Some(started.iteration);
        failure.attempt = Some(started.attempt);
        failure.at = Some(context.clock.now());
    }
    let state_target = state_rollback::target(ledger.state(), key).cloned();
    let decision = failure
        .as_mut()
        .map(|failure| decide_for(context, ledger.state(), &run, failure, &started.subtask, ending.in_feedback_loop));
    let charged = match (&failure, &decision) {
        (Some(failure), Some(decision)) => is_charged(failure, decision),
        _ => false,
    };
    let verdict = if failure.is_some() { Verdict::Failed } else { Verdict::Passed };
    let cancelled = failure.as_ref().is_some_and(|f| f.kind == crate::model::failure::FailureType::Cancellation);
    let request = Request {
        description: ending.headline.clone().unwrap_or_default(),
        trigger: ending.trigger.unwrap_or(trigger::ATTEMPT).to_owned(),
        after_iteration: Some(started.iteration),
        attempt: Some(started.attempt),
        verdict: if cancelled { Verdict::Unverified } else { verdict },
        feedback_results: ending.feedback_results.clone(),
        saves_progress: decision.as_ref().is_some_and(|decision| decision.has(Action::Continue)),
        ..Request::default()
    };
    let outcome = match (&failure, cancelled) {
        (None, _) => AttemptOutcome::Passed,
        (Some(_), true) => AttemptOutcome::Cancelled,
        (Some(_), false) => AttemptOutcome::Failed,
    };
    let reacts = outcome == AttemptOutcome::Failed;
    let following = |checkpoint_id: Option<&str>| {
        let end = AttemptEnd {
            iteration: started.iteration,
            attempt: started.attempt,
            outcome,
            charged,
            duration_ms: ending.duration_ms,
            exit_code: ending.exit_code,
            signal: ending.signal.clone(),
            timed_out: ending.timed_out,
            log_path: ending.log_path.clone(),
            approach: ending.approach.clone(),
            checkpoint_id: checkpoint_id.map(str::to_owned),
            conditions: failure.as_ref().map(|failure| failure.conditions.clone()).unwrap_or_default(),
            failure: failure.clone(),
            feedback_results: ending.feedback_results.clone(),
            decision: decision.clone(),
            commits: commits.clone(),
            agent_session: ending.agent_session.clone(),
        };
        let mut events = vec![NewEvent::about(key, Payload::AttemptEnded(Box::new(end)))];
        if let (Some(failure), Some(decision), true) = (&failure, &decision, reacts) {
            events.push(loop_event(key, failure, decision, ending.plan.unwrap_or(u64::from(started.iteration))));
        }
        events
    };
    let recorded = prepared.as_ref().map_err(ToString::to_string).and_then(|prepared| {
        let recorded = checkpoint::record_with(context, ledger, key, prepared, request, |id| following(Some(id)));
        recorded.map_err(|error| error.to_string())
    });
    let (checkpoint, checkpoint_error) = match recorded {
        Ok(checkpoint) => (Some(checkpoint), None),
        Err(error) => {
            tracing::warn!(%error, "the attempt is recorded without a checkpoint");
            (None, Some(error))
        }
    };
    let mut events: Vec<NewEvent> = checkpoint.as_ref().map(checkpoint::event).into_iter().collect();
    events.extend(following(checkpoint.as_ref().map(|checkpoint| checkpoint.id.as_str())));
    // At the time that the checkpoint says too, so that what it carries are these very events.
    let at = checkpoint.as_ref().map_or_else(|| context.clock.now(), |checkpoint| checkpoint.created_at);
    ledger.append(at, events)?;

    let result = match (&decision, reacts) {
        (Some(decision), true) => {
            let allowed = context.settings().rollback.on_error && !ending.keep_state;
            let safety = checkpoint.as_ref().zip(prepared.as_ref().ok());
            let rolled = state_rollback::react(context, ledger, key, state_target.as_ref().filter(|_| allowed), safety);
            Some(recovery_result(decision, allowed, state_target.is_some(), rolled))
        }
        _ => None,
    };
    write_views(ledger, Some(key))?;
    Ok(Ended {
        run: run_of(ledger.state(), key)?,
        failure,
        decision,
        result,
        checkpoint,
        checkpoint_error,
        report: None,
    })
}

fn decide_for(
    context: &Context,
    state: &State,
    run: &Run,
    failure: &mut Failure,
    subtask: &str,
    in_feedback_loop: bool,
) -> Decision {
    let settings = retry::settings_of(context, run);
    let session = session_of(context, run);
    let has_good_checkpoint = state.last_good(&run.key).is_some();
    let decision = decide(
        failure,
        &Circumstances {
            account: Account { state, run, subtask, session: &session },
            settings: &settings,
            on_failure: run.spec.on_failure,
            has_good_checkpoint,
            in_feedback_loop,
            now: context.clock.now(),
            random: random(context),
        },
    );
    if decision.stopped_by.is_some() {
        failure.conditions.push(Condition::RetriesExhausted);
    }
    if !has_good_checkpoint {
        failure.conditions.push(Condition::NoCheckpoint);
    }
    decision
}

/// Spreads delays; `RECOVER_TEST_SEED` makes it repeatable.
fn random(context: &Context) -> f64 {
    match context.env("RECOVER_TEST_SEED").and_then(|seed| seed.parse().ok()) {
        Some(seed) => fastrand::Rng::with_seed(seed).f64(),
        None => fastrand::f64(),
    }
}

fn loop_event(key: &RunKey, failure: &Failure, decision: &Decision, plan: u64) -> NewEvent {
    let (error, phase) = (failure.message.clone(), key.phase.clone());
    let payload = if decision.leads_to_attempt() {
        Payload::RollbackInitiated { error, phase, plan, retry_after: decision.not_before }
    } else {
        let reason = if decision.stopped_by.is_some() { "max_retries".to_owned() } else { decision.reason.clone() };
        Payload::RalphLoopFailed { error, phase, plan, reason }
    };
    NewEvent { run: Some(key.clone()), source: EventSource::Recovery, payload }
}

fn recovery_result(decision: &Decision, allowed: bool, has_target: bool, rolled: Result<bool>) -> RecoveryResult {
    let can_retry = decision.leads_to_attempt();
    let (done, error) = match rolled {
        Ok(done) => (done, None),
        Err(error) => {
            tracing::warn!(%error, "the working memory was not rolled back");
            (false, Some(error.to_string()))
        }
    };
    let action = match () {
        () if !can_retry => "max_retries_exceeded",
        () if done => "rolled_back",
        () if allowed && !has_target => "no_checkpoint",
        () => "cooldown_set",
    };
    RecoveryResult {
        success: can_retry,
        can_retry,
        retry_after: decision.not_before.filter(|_| can_retry),
        action,
        error,
    }
}

/// `attempt start`: records the beginning of an attempt of a loop that runs its own commands.
pub fn start(context: &Context, request: &Begin) -> Result<Started> {
    if context.dry_run() {
        let (_, run) = preview::assumed_run(context)?;
        return Ok(beginning(context, run, request).0);
    }
    settle::settle(context)?;
    let mut ledger = context.store().lock()?;
    let (key, events) = select::find_or_create(context, ledger.state(), "manual")?;
    ledger.append(context.clock.now(), events)?;
    refuse_supervised(context, ledger.state(), &key)?;
    let started = begin(context, &mut ledger, &key, request)?;
    write_views(&ledger, Some(&key))?;
    Ok(started)
}

/// `attempt pass` and `attempt fail`: the end of the attempt that was started, else of one that begins now.
pub fn finish(context: &Context, make: impl FnOnce(&Started) -> Ending) -> Result<Ended> {
    if context.dry_run() {
        return preview::preview(context, make);
    }
    settle::settle(context)?;
    let prepared = checkpoint::prepare(context, &BTreeSet::new());
    let mut ledger = context.store().lock()?;
    let (key, events) = select::find_or_create(context, ledger.state(), "manual")?;
    ledger.append(context.clock.now(), events)?;
    refuse_supervised(context, ledger.state(), &key)?;
    let run = run_of(ledger.state(), &key)?;
    let started = match open(&run) {
        Some(started) => started,
        None => begin(context, &mut ledger, &key, &Begin::default())?,
    };
    let mut ending = make(&started);
    if ending.duration_ms == 0 {
        ending.duration_ms = u64::try_from(context.clock.now().since(started.at).as_millis()).unwrap_or(u64::MAX);
    }
    let ended = end_locked(context, &mut ledger, &key, &started, ending, &prepared)?;
    drop(ledger);
    Ok(report::after(context, &key, ended))
}

/// The attempt that was started and has not ended.
fn open(run: &Run) -> Option<Started> {
    let live = run.live.as_ref()?;
    let attempt = run.iterations.get(&live.iteration)?.attempts.iter().rfind(|a| a.number == live.attempt)?;
    Some(Started {
        run: run.clone(),
        iteration: live.iteration,
        attempt: live.attempt,
        subtask: attempt.subtask.clone(),
        at: attempt.started_at,
    })
}

/// An attempt that a live `recover run` supervises is that one's to end.
fn refuse_supervised(context: &Context, state: &State, key: &RunKey) -> Result<()> {
    match state.run(key).and_then(|run| run.live.as_ref()).and_then(|live| live.supervisor.as_ref()) {
        Some(supervisor) if crate::process::is_alive(supervisor) => {
            let message = format!("an attempt of run {key} is under way (pid {})", supervisor.pid);
            let hint = context.hint_command(Some(key), &["status"]);
            Err(Error::new(ErrorKind::Locked, message).hint(hint))
        }
        _ => Ok(()),
    }
}
