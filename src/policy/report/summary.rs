//! The run in short: where it stands, why it stopped, what it used up.

use std::collections::BTreeSet;

use crate::model::decision::Decision;
use crate::model::failure::Failure;
use crate::model::hint::join;
use crate::model::manual_fix::ManualFixStatus;
use crate::model::run::{AttemptOutcome, IterationStatus, Run, RunStatus};

use super::data::{
    AttemptCounts, DecisionLine, FailureLine, IterationCounts, ReportKind, RunLine, Stuck, Summary,
};
use super::source::Source;
use super::words;

/// How much of an error's message goes into the headline, in characters.
const MAX_HEADLINE: usize = 160;

/// What the report is for.
pub(super) fn kind(run: &Run, stuck: &[Stuck]) -> ReportKind {
    match run.status {
        RunStatus::Escalated => ReportKind::Escalation,
        _ if !stuck.is_empty() => ReportKind::Escalation,
        _ if run.weakened_attempts().next().is_some() => ReportKind::Incident,
        RunStatus::Failed | RunStatus::Cancelled | RunStatus::Blocked | RunStatus::RolledBack => {
            ReportKind::Incident
        }
        _ if run.failure.is_some() => ReportKind::Incident,
        _ => ReportKind::Run,
    }
}

/// Subtasks of the run that were given up.
pub(super) fn stuck_in_scope(source: &Source<'_>) -> Vec<Stuck> {
    let known: BTreeSet<&str> = source
        .attempts()
        .map(|(_, attempt)| attempt.subtask.as_str())
        .collect();
    let of_run = source
        .stuck
        .iter()
        .filter(|stuck| known.contains(stuck.subtask_id.as_str()));
    let cleaned = |stuck: &Stuck| Stuck {
        subtask_id: words::line(&stuck.subtask_id),
        reason: words::line(&stuck.reason),
        ..stuck.clone()
    };
    of_run.map(cleaned).collect()
}

/// The summary.
pub(super) fn summary(source: &Source<'_>, stuck: &[Stuck]) -> Summary {
    let run = source.run;
    let last_event_at = source
        .events
        .last()
        .map_or(run.created_at, |event| event.at)
        .max(run.created_at);
    let ended = if run.live.is_some() {
        source.now
    } else {
        last_event_at
    };
    let attempts = attempt_counts(source);
    let stopped_because = stopped_because(run);
    Summary {
        headline: headline(run, attempts, stuck),
        run: run_line(run),
        outcome: outcome(run.status),
        stopped_because,
        started_at: run.created_at,
        last_event_at,
        duration_ms: words::millis(run.created_at, ended),
        iterations: iteration_counts(run),
        attempts,
        cost_usd: run.usage().cost_usd(),
        tokens: run.usage().tokens,
        session_usage: source.state.session_usage(run).into(),
        budgets: source.retry.budgets.clone(),
        stopped_by: run
            .decision
            .as_ref()
            .and_then(|decision| decision.stopped_by),
        failure: run.failure.as_ref().map(failure_line),
        decision: run.decision.as_ref().map(decision_line),
    }
}

/// A failure without its output.
pub(super) fn failure_line(failure: &Failure) -> FailureLine {
    FailureLine {
        kind: failure.kind,
        cause: failure.cause,
        conditions: failure.conditions.clone(),
        severity: failure.severity,
        iteration: failure.iteration,
        attempt: failure.attempt,
        at: failure.at,
        message: words::line(&failure.message),
        recoverable: failure.recoverable,
        suggested_action: failure.suggested_action,
    }
}

/// A decision with its reason.
pub(super) fn decision_line(decision: &Decision) -> DecisionLine {
    DecisionLine {
        actions: decision.actions.clone(),
        strategy: decision.strategy,
        reason: words::line(&decision.reason),
        not_before: decision.not_before,
    }
}

/// A run's identity and position.
pub(crate) fn run_line(run: &Run) -> RunLine {
    let command = join(&run.spec.command);
    RunLine {
        run_id: run.key.run_id.clone(),
        phase: run.key.phase.clone(),
        lane: run.key.lane.clone(),
        task_id: run
            .task_id
            .as_ref()
            .map(|task| words::line(task.as_str()).into()),
        status: run.status.as_str(),
        current_iteration: run.shown_iteration(),
        iterations_total: run.spec.iterations_total,
        session: words::line(&run.session),
        worktree: run.worktree.clone(),
        command: Some(words::line(&command)).filter(|command| !command.is_empty()),
    }
}

fn outcome(status: RunStatus) -> Option<&'static str> {
    match status {
        RunStatus::Complete
        | RunStatus::Accepted
        | RunStatus::Closed
        | RunStatus::Failed
        | RunStatus::Paused
        | RunStatus::Parked
        | RunStatus::Escalated
        | RunStatus::Cancelled => Some(status.as_str()),
        RunStatus::Pending | RunStatus::InProgress | RunStatus::Blocked | RunStatus::RolledBack => {
            None
        }
    }
}

/// Why the run does not go on; `None` while it does.
fn stopped_because(run: &Run) -> Option<String> {
    if let Some(session) = run
        .manual_fix
        .as_ref()
        .filter(|session| session.status == ManualFixStatus::Active)
    {
        return Some(format!("a person's fix is open ({})", session.id));
    }
    match run.status {
        RunStatus::Closed => Some("it was closed".to_owned()),
        status if status.is_done() && run.spec.until.is_some() => {
            Some("the goal was reached".to_owned())
        }
        status if status.is_done() => Some("every iteration is done".to_owned()),
        RunStatus::Pending => None,
        RunStatus::InProgress if run.live.is_some() || run.decision.is_none() => None,
        _ if run.stopped_for.is_some() => run.stopped_for.as_deref().map(words::line),
        _ => {
            let decided = run
                .decision
                .as_ref()
                .map(|decision| decision.reason.as_str());
            let parked = run.parked.as_ref().map(|parked| parked.reason.as_str());
            let failed = run.failure.as_ref().map(|failure| failure.message.as_str());
            decided.or(parked).or(failed).map(words::line)
        }
    }
}

fn headline(run: &Run, attempts: AttemptCounts, stuck: &[Stuck]) -> String {
    let tried = words::count(attempts.total, "attempt");
    let what = run.failure.as_ref().map(|failure| {
        let iteration = failure
            .iteration
            .map(|number| format!(" in iteration {number}"))
            .unwrap_or_default();
        let message = words::short(&words::line(&failure.message), MAX_HEADLINE);
        format!("{}{iteration}: {message}", failure.cause.as_str())
    });
    let what = what.map(|what| format!(" {what}")).unwrap_or_default();
    match run.status {
        RunStatus::Complete if run.weakened_attempts().next().is_some() => {
            format!("Complete after {tried}, but tests were weakened: a person must look at that.")
        }
        RunStatus::Complete if stuck.is_empty() => format!("Complete after {tried}."),
        RunStatus::Complete => format!(
            "Complete after {tried}; {} given up.",
            words::count(stuck.len(), "subtask")
        ),
        RunStatus::Accepted => format!("Complete after {tried}, and accepted."),
        RunStatus::Closed => format!("Closed after {tried}.{what}"),
        RunStatus::Escalated => format!("A person is needed after {tried}.{what}"),
        RunStatus::Failed => format!("Failed after {tried}.{what}"),
        RunStatus::Cancelled => format!("Interrupted after {tried}."),
        RunStatus::Parked => format!("Parked after {tried}: it waits for a known time.{what}"),
        RunStatus::Paused => format!("Paused after {tried}; it can be resumed.{what}"),
        RunStatus::Blocked => format!("Blocked after {tried}.{what}"),
        RunStatus::RolledBack => format!("Rolled back after {tried}."),
        RunStatus::Pending if attempts.total == 0 => "Nothing has been tried yet.".to_owned(),
        RunStatus::Pending => format!("Ready to begin again after {tried}."),
        RunStatus::InProgress => {
            format!(
                "In progress: iteration {}, {tried} so far.{what}",
                run.shown_iteration()
            )
        }
    }
}

fn iteration_counts(run: &Run) -> IterationCounts {
    let of = |status| {
        run.iterations
            .statuses()
            .filter(|(_, stands)| *stands == status)
            .count()
    };
    IterationCounts {
        begun: run.iterations.len(),
        completed: of(IterationStatus::Completed),
        failed: of(IterationStatus::Failed),
        skipped: of(IterationStatus::Skipped),
        superseded: of(IterationStatus::Superseded),
    }
}

fn attempt_counts(source: &Source<'_>) -> AttemptCounts {
    let mut counts = AttemptCounts::default();
    for (_, attempt) in source.attempts() {
        counts.total += 1;
        match attempt.outcome {
            Some(AttemptOutcome::Passed) => counts.passed += 1,
            Some(AttemptOutcome::Failed) => counts.failed += 1,
            Some(AttemptOutcome::Cancelled) => counts.cancelled += 1,
            None => counts.under_way += 1,
        }
    }
    counts
}
