//! An attempt: its beginning, its end with everything that follows (A3, L2–L6), and the report.
//! Also the conditions that are detected in what it left, and where its run then stands.

use crate::engine::base::runs::run_of;
use crate::engine::base::{Context, Error, Result};
use crate::engine::record::attempt_record::{
    Begin, Ended, Ending, RecoveryResult, Started, commits_since, head_of, session_of,
};
use crate::engine::record::storage::{Prepared, Request};
use crate::engine::record::{checkpoint, git_state, lane, run_settings};
use crate::engine::restore::automatic::{self, is_mixed};
use crate::model::agent_record::{AgentRecord, Usage};
use crate::model::checkpoint::trigger;
use crate::model::failure::CauseDetail;
use crate::model::{
    Action, Attempt, AttemptEnd, AttemptOutcome, CheckpointId, Condition, Decision, EventSource,
    Failure, FailureType, Payload, Run, RunKey, State, Verdict,
};
use crate::policy::retry::Account;
use crate::policy::retry::{DecisionInput, Provider, decide, fallback_of, is_charged};
use crate::store::views::write_views;
use crate::store::{Exclusive, NewEvent};
use conditions::Detected;

pub(crate) mod conditions;
mod given_up;
pub(in crate::engine) mod look_at;
pub(in crate::engine) mod of_runs;
pub(crate) mod preconditions;
pub(crate) mod run_summary;

/// Claims the next attempt of a run under the ledger's lock.
pub(crate) fn begin(
    context: &Context,
    ledger: &mut Exclusive,
    key: &RunKey,
    begin: &Begin,
) -> Result<Started> {
    let (started, event) = beginning(context, run_of(ledger.state(), key)?, begin);
    ledger.append(started.at, vec![event])?;
    Ok(Started {
        run: run_of(ledger.state(), key)?,
        ..started
    })
}

/// What the next attempt is, and the event that begins it.
pub(in crate::engine) fn beginning(
    context: &Context,
    run: Run,
    begin: &Begin,
) -> (Started, NewEvent) {
    let iteration = begin.iteration.unwrap_or(run.current_iteration);
    let attempt = run
        .iterations
        .get(iteration)
        .and_then(|i| i.attempts.last())
        // What was cut off by what is waited for is no attempt yet.
        .map_or(1, |last| last.number + u32::from(!last.is_waiting()));
    let subtask = begin
        .subtask
        .clone()
        .unwrap_or_else(|| run.next_subtask(iteration, context.naming().task.as_ref()));
    let payload = Payload::AttemptStarted {
        iteration,
        attempt,
        approach: begin.approach.clone(),
        subtask: subtask.clone(),
        session: session_of(context, &run),
        head: head_of(context),
        supervisor: begin.supervisor.clone(),
        log_path: None,
        fallback: begin.supervisor.is_some() && falls_back(&run, iteration),
    };
    let event = NewEvent::about(&run.key, payload);
    (
        Started {
            run,
            iteration,
            attempt,
            subtask,
            at: context.clock.now(),
        },
        event,
    )
}

/// Whether what was decided of the iteration's last failure is to run the fallback (S9). A granted attempt is one of the
/// run's own command.
fn falls_back(run: &Run, iteration: u32) -> bool {
    let decided = run
        .decision
        .as_ref()
        .is_some_and(|decision| decision.has(Action::Fallback));
    let about = run.failure.as_ref().and_then(|failure| failure.iteration);
    decided && run.granted == 0 && about == Some(iteration) && !run.spec.fallback.is_empty()
}

/// Records the end of an attempt: its checkpoint, the decision, the loop's events, and after a failure the state
/// rollback. The counts are in the ledger before anything is rolled back.
pub(crate) fn end(
    context: &Context,
    key: &RunKey,
    started: &Started,
    mut ending: Ending,
) -> Result<Ended> {
    ending.end.git_changes = git_state::changed_settings(context, key, started.iteration);
    // The attempt is recorded whatever becomes of its checkpoint: a full disk must not hide a failure.
    let prepared = checkpoint::prepare(context);
    let state = context.load()?.state;
    let about = (started.iteration, started.subtask.as_str());
    let found = conditions::detect(context, &state, key, about, &ending, prepared.as_ref().ok());
    prepared.iter().for_each(checkpoint::publish_large);
    let ledger = context.store().lock()?;
    let ended = end_locked(context, ledger, key, started, ending, found, &prepared)?;
    Ok(run_summary::report_after(context, key, ended))
}

/// Whether losing its session costs an agent no attempt: the first time since the last one that was charged, where its records
/// say of no token that the attempt took.
fn may_lose_its_session(run: &Run, started: &Started, ending: &Ending) -> bool {
    let is_lost = |attempt: &Attempt| {
        let failure = attempt.failure.as_ref().filter(|_| !attempt.charged);
        failure.is_some_and(|failure| failure.detail == Some(CauseDetail::SessionNotFound))
    };
    let earlier = run
        .iterations
        .get(started.iteration)
        .map(|iteration| iteration.attempts.as_slice());
    let is_idle = ending
        .end
        .usage()
        .tokens
        .is_none_or(|tokens| tokens.total == 0);
    let mut since = earlier.unwrap_or_default().iter().rev();
    is_idle
        && !since
            .by_ref()
            .take_while(|attempt| !attempt.charged)
            .any(is_lost)
}

/// Completes the event of an attempt's end: which attempt, and what is decided about a failure.
pub(in crate::engine) fn judge(
    context: &Context,
    state: &State,
    run: &Run,
    started: &Started,
    ending: &mut Ending,
    found: Detected,
) {
    if !may_lose_its_session(run, started, ending) {
        ending.resumed = None;
    }
    let mut failure = ending.end.failure.take();
    if let Some(failure) = &mut failure {
        failure.iteration = Some(started.iteration);
        failure.attempt = Some(started.attempt);
        failure.at = Some(context.clock.now());
        failure.conditions.extend(&found.of_failure);
    }
    let about = (started, &*ending);
    let decided = failure
        .as_mut()
        .map(|failure| decide_for(context, state, run, failure, about, &found));
    let (decision, charged) = decided.unzip();
    let waits = |limit: &mut Box<Failure>| {
        let (decision, _) = decide_for(context, state, run, limit, about, &found);
        decision.has(Action::Park).then_some(decision)
    };
    let total = run.spec.iterations_total;
    let is_last = total.is_some_and(|total| started.iteration >= total);
    let mut limit = ending.end.limit.clone().filter(|_| !is_last);
    let decision = decision.or_else(|| limit.as_mut().and_then(waits));
    let end = &mut ending.end;
    end.iteration = started.iteration;
    end.attempt = started.attempt;
    end.outcome = match &failure {
        None => AttemptOutcome::Passed,
        Some(failure) if failure.kind == FailureType::Cancellation => AttemptOutcome::Cancelled,
        Some(_) => AttemptOutcome::Failed,
    };
    end.charged = charged.unwrap_or(false);
    end.conditions = failure
        .as_ref()
        .map_or(found.of_failure, |failure| failure.conditions.clone());
    end.conditions.extend(found.of_attempt);
    end.notes.extend(found.notes);
    end.failure = failure;
    end.decision = decision;
}

/// Notes what an attempt used up, and where that is only estimated.
pub(crate) fn note_usage(end: &mut AttemptEnd, record: &AgentRecord, used: Usage) {
    (end.cost_micros, end.tokens) = (used.cost_micros, used.tokens);
    if record.is_estimated
        && let Some(used) = used.text()
    {
        let note = format!("about {used} used: estimated, as the agent was cut off before it said");
        end.notes.push(note);
    }
}

fn verdict_of(outcome: AttemptOutcome) -> Verdict {
    match outcome {
        AttemptOutcome::Passed => Verdict::Passed,
        AttemptOutcome::Failed => Verdict::Failed,
        AttemptOutcome::Cancelled => Verdict::Unverified,
    }
}

/// The attempt's own event, and the loop's after a failure.
fn events_of(key: &RunKey, end: AttemptEnd, (phase, plan): (&str, u64)) -> Vec<NewEvent> {
    let of_loop = match (&end.failure, &end.decision, end.outcome) {
        (Some(failure), Some(decision), AttemptOutcome::Failed) => {
            Some(loop_event(key, failure, decision, phase, plan))
        }
        _ => None,
    };
    std::iter::once(NewEvent::about(key, Payload::AttemptEnded(Box::new(end))))
        .chain(of_loop)
        .collect()
}

fn request_of(
    context: &Context,
    state: &State,
    run: &Run,
    started: &Started,
    ending: &Ending,
) -> Request {
    let end = &ending.end;
    Request {
        lane_fields: lane::of_attempt(context, state, (run, started, ending)),
        description: ending.headline.clone().unwrap_or_default(),
        trigger: ending.trigger.unwrap_or(trigger::ATTEMPT).to_owned(),
        after_iteration: Some(started.iteration),
        attempt: Some(started.attempt),
        verdict: verdict_of(end.outcome),
        feedback_results: end.feedback_results.clone(),
        saves_progress: end
            .decision
            .as_ref()
            .is_some_and(|decision| decision.has(Action::Continue)),
        ..Request::default()
    }
}

/// [`end`] under the ledger's lock, which is given back; `found` is what is true of the attempt beside its outcome.
pub(in crate::engine) fn end_locked(
    context: &Context,
    mut ledger: Exclusive,
    key: &RunKey,
    started: &Started,
    mut ending: Ending,
    mut found: Detected,
    prepared: &Result<Prepared>,
) -> Result<Ended> {
    let run = run_of(ledger.state(), key)?;
    let recorded = run.iterations.get(started.iteration).and_then(|iteration| {
        iteration
            .attempts
            .iter()
            .rfind(|attempt| attempt.number == started.attempt)
    });
    // On a branch that had none yet, all of them.
    ending.end.commits = recorded.map_or_else(Vec::new, |recorded| {
        commits_since(context, recorded.head_at_start.as_ref(), "attempt")
    });
    let failure = ending.end.failure.as_ref();
    ending.end.preconditions =
        failure.and_then(|failure| preconditions::observe(context, &run, failure));
    let state_target = automatic::memory_target(ledger.state(), key).cloned();
    found.spread = random(context);
    judge(context, ledger.state(), &run, started, &mut ending, found);
    let phase = context
        .naming()
        .phase
        .as_ref()
        .unwrap_or(&key.phase)
        .clone();
    let plan = ending.plan.unwrap_or(u64::from(started.iteration));
    let following = |checkpoint_id: Option<&CheckpointId>| {
        let end = AttemptEnd {
            checkpoint_id: checkpoint_id.cloned(),
            ..ending.end.clone()
        };
        events_of(key, end, (&phase, plan))
    };
    let mut request = request_of(context, ledger.state(), &run, started, &ending);
    if let Ok(prepared) = prepared
        && request.verdict == Verdict::Passed
        && is_mixed(context, ledger.state(), &run, prepared)?
    {
        let warning = "the checkpoint is not recorded as good: files of an attempt that was rolled back are still there";
        context.warn(warning.to_owned());
        request.verdict = Verdict::Unverified;
    }
    let recorded = prepared.as_ref().map_err(Error::explained);
    let recorded = recorded.and_then(|prepared| {
        let following = |id: &CheckpointId| following(Some(id));
        checkpoint::record_with(context, &ledger, key, prepared, request, following)
            .map_err(|error| error.explained())
    });
    let (checkpoint, checkpoint_error) = match recorded {
        Ok(checkpoint) => (Some(checkpoint), None),
        Err(error) => {
            tracing::warn!(%error, "the attempt is recorded without a checkpoint");
            (None, Some(error))
        }
    };
    let taken = checkpoint.as_ref();
    let mut events: Vec<NewEvent> = taken.map(checkpoint::event).into_iter().collect();
    events.extend(following(taken.map(|taken| &taken.id)));
    // At the time that the checkpoint says too, so that what it carries are these very events.
    let at = taken.map_or_else(|| context.clock.now(), |taken| taken.created_at);
    ledger.append(at, events)?;

    let result = match (&ending.end.decision, ending.end.outcome) {
        (Some(decision), AttemptOutcome::Failed) => {
            let mode = context.check_safe_mode("putting the working memory back");
            // An agent that was cut off goes on where it was.
            let goes_on = ending.provider == Provider::Agent && decision.has(Action::Park);
            let is_kept = ending.keep_state || goes_on;
            let allowed = context.settings().rollback.on_error && !is_kept && mode.is_ok();
            // Not even the loop's own state is cleared where the mode forbids it.
            let safety = checkpoint
                .as_ref()
                .zip(prepared.as_ref().ok())
                .filter(|_| mode.is_ok());
            let target = state_target.as_ref();
            let to = target.filter(|_| allowed);
            let rolled = automatic::restore_memory(context, &mut ledger, key, to, safety);
            Some(recovery_result(decision, allowed, target.is_some(), rolled))
        }
        // Nothing is counted, and nothing had to be done.
        (Some(decision), AttemptOutcome::Cancelled) => {
            Some(recovery_result(decision, false, false, Ok(false)))
        }
        _ => None,
    };
    let run = run_of(&*write_views(ledger, &[key])?, key)?;
    Ok(Ended {
        run,
        end: ending.end,
        result,
        checkpoint,
        checkpoint_error,
        report: None,
    })
}

/// Decides about a failure, and says in its conditions what that came up against; and whether it is charged.
fn decide_for(
    context: &Context,
    state: &State,
    run: &Run,
    failure: &mut Failure,
    (started, ending): (&Started, &Ending),
    found: &Detected,
) -> (Decision, bool) {
    let settings = run_settings::settings_of(context, run);
    let session = session_of(context, run);
    let has_good_checkpoint = state.last_good(&run.key).is_some();
    let input = DecisionInput {
        account: Account {
            state,
            run,
            subtask: &started.subtask,
            session: &session,
            witnessed: &ending.witnessed,
        },
        settings: &settings,
        on_failure: run.spec.on_failure,
        has_good_checkpoint,
        in_feedback_loop: ending.in_feedback_loop,
        provider: ending.provider,
        answered: ending.end.answered,
        resumed: ending.resumed.as_deref(),
        is_stalled: found.is_stalled,
        usage: ending.end.usage(),
        fallback: fallback_of(run, started.iteration, started.attempt),
        now: context.clock.now(),
        random: found.spread,
    };
    let decision = decide(failure, &input);
    let charged = is_charged(failure, &input);
    if decision.is_exhausted() {
        failure.conditions.push(Condition::RetriesExhausted);
    }
    if !has_good_checkpoint {
        failure.conditions.push(Condition::NoCheckpoint);
    }
    (decision, charged)
}

/// Spreads delays; `RECOVER_TEST_SEED` makes it repeatable.
pub(in crate::engine) fn random(context: &Context) -> f64 {
    match context
        .env("RECOVER_TEST_SEED")
        .and_then(|seed| seed.parse().ok())
    {
        Some(seed) => fastrand::Rng::with_seed(seed).f64(),
        None => fastrand::f64(),
    }
}

fn loop_event(
    key: &RunKey,
    failure: &Failure,
    decision: &Decision,
    phase: &str,
    plan: u64,
) -> NewEvent {
    let (error, phase) = (failure.message.clone(), phase.to_owned());
    let payload = if decision.leads_to_attempt() {
        let retry_after = decision.not_before;
        Payload::RollbackInitiated {
            error,
            phase,
            plan,
            retry_after,
        }
    } else {
        let is_out = decision.is_exhausted();
        let reason = if is_out {
            "max_retries"
        } else {
            &decision.reason
        }
        .to_owned();
        Payload::RalphLoopFailed {
            error,
            phase,
            plan,
            reason,
        }
    };
    NewEvent {
        source: EventSource::Recovery,
        ..NewEvent::about(key, payload)
    }
}

pub(in crate::engine) fn recovery_result(
    decision: &Decision,
    allowed: bool,
    has_target: bool,
    rolled: Result<bool>,
) -> RecoveryResult {
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
