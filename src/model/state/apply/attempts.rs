//! The fold's steps at the beginning and at the end of an attempt.

use super::{forgive, leave_failure_of};
use crate::model::agent_record::Usage;
use crate::model::decision::{Action, Decision};
use crate::model::event::{AttemptEnd, Event, Payload};
use crate::model::failure::{CauseDetail, Condition, Weather};
use crate::model::operation::{Operation, OperationKind};
use crate::model::run::{
    Attempt, AttemptOutcome, IterationStatus, LiveAttempt, Parked, Run, RunStatus, Waits,
    run_of_subtask, subtask_checksum,
};
use crate::model::state::State;
use crate::model::step::{Step, StepEnd, StepRef, StepStart, StepStatus};
use crate::model::time::Timestamp;

pub(super) fn attempt_started(run: &mut Run, event: &Event) {
    let Payload::AttemptStarted {
        iteration,
        attempt,
        approach,
        subtask,
        session,
        head,
        supervisor,
        log_path,
        fallback,
    } = &event.payload
    else {
        return;
    };
    let mut started = Attempt {
        number: *attempt,
        started_at: event.at,
        approach: approach.clone(),
        subtask: subtask.clone(),
        session: session.clone(),
        head_at_start: head.clone(),
        log_path: log_path.clone(),
        fallback: *fallback,
        ..Attempt::default()
    };
    let tries_another_session = run
        .decision
        .as_ref()
        .is_some_and(|decision| decision.has(Action::Park) && decision.has(Action::Continue));
    match run.session_to_resume().map(str::to_owned) {
        // What an older version recorded does not say it; there is no other session to go on in.
        Some(session) if run.answered_session.is_none() => {
            run.answered_session = Some((session, run.agent_session_usage));
        }
        None if !tries_another_session => run.answered_session = None,
        _ => {}
    }
    let ended = run.attempts().map(|(_, attempt)| attempt.ended_at()).max();
    if let (Some(resumed), Some(ended)) = (run.resumed_at.take(), ended) {
        let idle = u64::try_from(resumed.since(ended).as_millis()).unwrap_or(u64::MAX);
        run.idle_ms = run.idle_ms.saturating_add(idle);
    }
    begin_elsewhere(run, *iteration, subtask);
    if run_of_subtask(subtask) != Some(run.key.run_id.as_str()) {
        run.subtasks.insert(subtask_checksum(subtask));
    }
    run.accepted.remove(iteration);
    run.to_roll_back = None;
    let entry = run.iterations.get_or_pending(*iteration);
    if !matches!(
        entry.status,
        IterationStatus::InProgress | IterationStatus::Failed | IterationStatus::Cancelled
    ) {
        // What it left before is over: it begins where the work tree is now.
        entry.began = None;
    }
    entry.status = IterationStatus::InProgress;
    entry.reason = None;
    let is_probed = |last: &mut Attempt| last.number == *attempt && last.is_waiting();
    if let Some(before) = entry.attempts.pop_if(is_probed) {
        replace(&mut started, before, entry.waits.as_deref_mut());
    }
    entry.attempts.push(started);
    run.current_iteration = *iteration;
    run.stopped_for = None;
    run.status = RunStatus::InProgress;
    run.granted = 0;
    run.parked = None;
    run.driver = supervisor.clone().map(Box::new);
    run.live = Some(Box::new(LiveAttempt {
        iteration: *iteration,
        attempt: *attempt,
        supervisor: supervisor.clone(),
        // The state knows the rest.
        ..LiveAttempt::default()
    }));
}

/// What was cut off before is no attempt; what it used up and left counts.
fn replace(started: &mut Attempt, before: Attempt, waits: Option<&mut Waits>) {
    if let Some((waits, decision)) = waits.zip(before.decision) {
        let until = decision.not_before.unwrap_or(decision.decided_at);
        let waited = until.min(started.started_at).since(decision.decided_at);
        let millis = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
        waits.waited_ms = waits.waited_ms.saturating_add(millis);
    }
    started.cost_micros = before.cost_micros;
    started.tokens = before.tokens;
    started.leftovers = before.leftovers;
    started.git_changes = before.git_changes;
}

pub(super) fn attempt_ended(run: &mut Run, end: &AttemptEnd, seq: u64, at: Timestamp) {
    let status = match end.outcome {
        AttemptOutcome::Passed => IterationStatus::Completed,
        AttemptOutcome::Cancelled => IterationStatus::Cancelled,
        // Progress was made and goes on in another session: not failed (A8).
        AttemptOutcome::Failed
            if end
                .decision
                .as_ref()
                .is_some_and(|d| d.has(Action::Continue)) =>
        {
            IterationStatus::InProgress
        }
        AttemptOutcome::Failed => IterationStatus::Failed,
    };
    let entry = run.iterations.get_or_pending(end.iteration);
    entry.status = status;
    let escalated = end
        .decision
        .as_ref()
        .filter(|decision| end.outcome == AttemptOutcome::Failed && decision.has(Action::Escalate));
    match escalated {
        Some(decision) => entry.stuck = Some(decision.reason.clone()),
        None if end.outcome == AttemptOutcome::Passed => entry.stuck = None,
        None => {}
    }
    let mut attempts = entry.attempts.iter_mut();
    let mut waits = false;
    if let Some(attempt) = attempts.rfind(|attempt| attempt.number == end.attempt) {
        note_end(attempt, end, seq);
        waits = attempt.is_waiting();
    }
    run.live = None;
    run.own_commits.extend(end.commits.iter().cloned());
    if let Some(session) = &end.agent_session {
        session_seen(run, session);
        run.agent_session_usage = run.agent_session_usage + end.usage();
    }
    let in_session = note_answer(run, end.answered, waits);
    note_wait(run, end, (waits, in_session), at);
    if end.outcome != AttemptOutcome::Cancelled {
        run.restore_was_announced();
    }
    // Said once: what was meant for this attempt's prompt is not repeated in the next.
    run.next_instructions = None;
    run.resumed_with = None;
    run.next_error_context = true;
    run.failure.clone_from(&end.failure);
    run.decision.clone_from(&end.decision);
    match end.outcome {
        AttemptOutcome::Passed => {
            // It was thought to be left alone.
            if run.status == RunStatus::Paused {
                run.status = RunStatus::InProgress;
            }
            forgive(run, seq);
            run.current_iteration = run.iteration_after(end.iteration);
            // Another iteration is another task.
            run.fresh_session = true;
            passed_at_a_limit(run, end);
        }
        AttemptOutcome::Cancelled => run.status = RunStatus::Cancelled,
        AttemptOutcome::Failed => failed(run, end, at),
    }
}

/// Attempts go on in the latest session in which the model gave an answer; one that never did has nothing to go on with, and
/// may be unknown to the agent. Whether the attempt was in such a session.
fn note_answer(run: &mut Run, answered: Option<bool>, waits: bool) -> bool {
    let Some(session) = run.agent_session.clone() else {
        return false;
    };
    let is_known = run
        .answered_session
        .as_ref()
        .is_some_and(|(known, _)| *known == session);
    if answered == Some(true) || is_known {
        run.answered_session = Some((session, run.agent_session_usage));
        return true;
    }
    if waits && answered == Some(false) {
        if let Some((session, usage)) = run.answered_session.clone() {
            session_seen(run, &session);
            run.agent_session_usage = usage;
        } else {
            run.agent_session = None;
            run.agent_session_usage = Usage::default();
        }
    }
    false
}

/// Counts the iteration's waits.
fn note_wait(run: &mut Run, end: &AttemptEnd, (waits, in_session): (bool, bool), at: Timestamp) {
    let entry = run.iterations.get_or_pending(end.iteration);
    match &end.failure {
        None => entry.waits = None,
        Some(failure) if waits => {
            let waits = entry.waits.get_or_insert_default();
            waits.count(failure, end.answered == Some(true), at);
            waits.in_session = in_session;
        }
        // An interruption, or a session that is gone, says nothing of what was waited for.
        Some(_) if !end.charged => {}
        Some(_) => entry.waits.iter_mut().for_each(|waits| waits.end()),
    }
}

/// Notes what an attempt came to.
fn note_end(attempt: &mut Attempt, end: &AttemptEnd, seq: u64) {
    attempt.outcome = Some(end.outcome);
    attempt.duration_ms = Some(end.duration_ms);
    attempt.exit_code = end.exit_code;
    attempt.signal.clone_from(&end.signal);
    attempt.timed_out = end.timed_out;
    if end.log_path.is_some() {
        attempt.log_path.clone_from(&end.log_path);
    }
    if end.approach.is_some() {
        attempt.approach.clone_from(&end.approach);
    }
    attempt.checkpoint_id.clone_from(&end.checkpoint_id);
    attempt.failure.clone_from(&end.failure);
    attempt.conditions.clone_from(&end.conditions);
    attempt.feedback_results.clone_from(&end.feedback_results);
    attempt.charged = end.charged;
    attempt.decision.clone_from(&end.decision);
    attempt.ended_seq = Some(seq);
    attempt.notes.clone_from(&end.notes);
    let used = attempt.usage() + end.usage();
    (attempt.cost_micros, attempt.tokens) = (used.cost_micros, used.tokens);
    attempt.leftovers.extend(end.leftovers.iter().cloned());
    let known = attempt.git_changes.clone();
    let new = end.git_changes.iter().filter(|one| !known.contains(one));
    attempt.git_changes.extend(new.cloned());
    attempt.preconditions.clone_from(&end.preconditions);
    attempt.limit.clone_from(&end.limit);
    attempt.limit_left = end.limit_left;
}

/// The agent works in this session from now on.
pub(super) fn session_seen(run: &mut Run, session: &str) {
    if run.agent_session.as_deref() != Some(session) {
        run.agent_session = Some(session.to_owned());
        run.agent_session_usage = Usage::default();
    }
    run.fresh_session = false;
}

/// The next iteration waits for the limit that the agent of this one ended with.
fn passed_at_a_limit(run: &mut Run, end: &AttemptEnd) {
    if !run.has_iterations_left() {
        run.decision = None;
    }
    let Some(decision) = run.decision.clone() else {
        return;
    };
    run.cooldown_until = decision.not_before;
    run.parked = parked(run, end, &decision);
    if run.parked.is_some() {
        run.status = RunStatus::Parked;
    }
}

fn failed(run: &mut Run, end: &AttemptEnd, at: Timestamp) {
    if let Some(failure) = &end.failure {
        if end.charged {
            run.error_count = run.error_count.saturating_add(1);
        }
        run.last_error = Some(failure.message.clone());
        run.last_error_at = Some(at);
    }
    let Some(decision) = &end.decision else {
        return;
    };
    run.cooldown_until = decision.not_before;
    // In a full context nothing goes on, and what goes in a circle needs another beginning.
    let circular = end.conditions.contains(&Condition::CircularFix);
    let unknown = end
        .failure
        .as_ref()
        .is_some_and(|failure| failure.detail == Some(CauseDetail::SessionNotFound));
    run.fresh_session |=
        circular || unknown || decision.has(Action::Continue) || decision.has(Action::Restart);
    run.parked = parked(run, end, decision);
    let lost = end
        .failure
        .as_ref()
        .is_some_and(|failure| failure.detail == Some(CauseDetail::SupervisorLost));
    run.status = if lost {
        // Nothing goes on by itself any more, whatever may be done next.
        RunStatus::Paused
    } else if decision.has(Action::Park) {
        RunStatus::Parked
    } else if decision.has(Action::Continue) || decision.leads_to_attempt() {
        RunStatus::InProgress
    } else if decision.has(Action::Escalate) {
        RunStatus::Escalated
    } else {
        RunStatus::Failed
    };
}

/// The wait that was decided on.
fn parked(run: &Run, end: &AttemptEnd, decision: &Decision) -> Option<Parked> {
    let until = decision.not_before.filter(|_| decision.has(Action::Park))?;
    let failure = end.failure.as_ref().or(end.limit.as_deref())?;
    let waits = run.waits(end.iteration);
    Some(Parked {
        until,
        reason: failure.weather().unwrap_or(Weather::Outage),
        text: decision.reason.clone(),
        since: waits
            .and_then(|waits| waits.since)
            .unwrap_or(decision.decided_at),
        probes: waits.map_or(0, Waits::probes),
        what: failure.in_short(),
    })
}

/// An attempt of another iteration or subtask begins. One that was started before and never ended was given up by its
/// loop, and a decision to skip what was worked on until now is carried out by that.
fn begin_elsewhere(run: &mut Run, iteration: u32, subtask: &str) {
    for attempt in run.iterations.unended_mut() {
        attempt.outcome = Some(AttemptOutcome::Cancelled);
    }
    let skips = run
        .decision
        .as_ref()
        .is_some_and(|decision| decision.has(Action::Skip));
    let failed = run.failure.as_ref().and_then(|failure| failure.iteration);
    let (Some(failed), true) = (failed, skips) else {
        return;
    };
    if failed < iteration {
        let reason = run
            .decision
            .as_ref()
            .map(|decision| decision.reason.clone());
        let entry = run.iterations.get_or_pending(failed);
        entry.status = IterationStatus::Skipped;
        entry.reason = reason;
        leave_failure_of(run, failed);
    } else if run
        .standing_attempt()
        .is_some_and(|attempt| attempt.subtask != subtask)
    {
        leave_failure_of(run, failed);
    }
}

/// Applies an event about a step; `last_checkpoint` is the highest checkpoint sequence so far.
pub(super) fn apply(run: &mut Run, event: &Event, last_checkpoint: u64) {
    match &event.payload {
        Payload::StepStarted(start) => started(run, start, event),
        Payload::StepChildStarted { name, child } => {
            if let Some(step) = step_mut(run, name) {
                step.child = Some(child.clone());
            }
        }
        Payload::StepEnded(end) => ended(run, end, event, last_checkpoint),
        Payload::StepCompensating { name, supervisor } => {
            if let Some(step) = step_mut(run, name) {
                step.compensating = Some(supervisor.clone());
            }
        }
        Payload::StepCompensated {
            name, succeeded, ..
        } => {
            if let Some(step) = step_mut(run, name) {
                step.compensating = None;
                if *succeeded {
                    step.status = StepStatus::Compensated;
                    step.crossed = false;
                }
            }
        }
        _ => {}
    }
}

fn step_mut<'a>(run: &'a mut Run, name: &str) -> Option<&'a mut Step> {
    run.steps.iter_mut().find(|step| step.start.name == name)
}

fn started(run: &mut Run, start: &StepStart, event: &Event) {
    let (executions, first_seq) =
        step_mut(run, &start.name).map_or((0, event.seq), |step| (step.executions, step.first_seq));
    run.steps.retain(|step| step.start.name != start.name);
    run.steps.push(Step {
        start: start.clone(),
        started_at: event.at,
        executions: executions.saturating_add(1),
        first_seq,
        ..Step::default()
    });
}

fn ended(run: &mut Run, end: &StepEnd, event: &Event, last_checkpoint: u64) {
    run.own_commits.extend(end.commits.iter().cloned());
    let Some(step) = step_mut(run, &end.name) else {
        return;
    };
    step.status = end.status;
    step.ended_at = Some(event.at);
    step.ended_seq = event.seq;
    step.after_checkpoint = last_checkpoint;
    step.exit_code = end.exit_code;
    step.duration_ms = Some(end.duration_ms);
    step.error.clone_from(&end.error);
    step.rolled_back = end.rolled_back;
    step.child = None;
}

/// A restore went back to before the steps that it names; `given_back` are those of the operation that an undo takes back
/// or a redo does again.
pub(super) fn crossed(state: &mut State, operation: &Operation, given_back: &[StepRef]) {
    let mut mark = |steps: &[StepRef], crossed: bool| {
        for StepRef { run, name } in steps {
            let run = super::run_mut(&mut state.runs, Some(run));
            if let Some(step) = run.and_then(|run| step_mut(run, name)) {
                step.crossed = crossed && step.status == StepStatus::Done;
            }
        }
    };
    mark(given_back, operation.kind == OperationKind::Redo);
    mark(&operation.steps, true);
}
