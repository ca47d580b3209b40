//! The run in short, its attempts with what their errors said, and the files that they changed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::data::{
    AttemptCounts, AttemptLine, AttemptRef, DecisionLine, ErrorDetails, FailureLine, FileLine,
    Files, IterationCounts, LoopLine, ReportKind, RunLine, Stuck, Summary,
};
use super::night::duration;
use super::{Source, words};
use crate::model::failure::Evidence;
use crate::model::hint::join;
use crate::model::tasks::TaskLine;
use crate::model::{
    Attempt, AttemptOutcome, ChangeTotals, ChangeType, CheckpointId, Decision, Event, Failure,
    Iteration, IterationStatus, ManualFixStatus, Payload, RepoPath, Run, RunStatus, State,
};
use crate::policy::text::{MAX_EXCERPT_BYTES, Text, beginning, cut, excerpt};

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

/// The tasks of a run, without secrets.
pub(super) fn tasks(run: &Run) -> Vec<TaskLine> {
    let mut tasks = run.task_lines();
    for task in &mut tasks {
        task.id = words::line(&task.id);
        task.waits_for = task.waits_for.iter().map(|id| words::line(id)).collect();
        task.reason = task.reason.as_deref().map(words::line);
    }
    tasks
}

/// The summary.
pub(super) fn summary(source: &Source<'_>, stuck: &[Stuck]) -> Summary {
    let run = source.run;
    let last_event_at = source
        .events
        .last()
        .map_or(run.created_at, |event| event.at)
        .max(run.created_at);
    let now = run.live.as_ref().map(|_| source.now);
    let attempts = attempt_counts(source);
    let stopped_because = stopped_because(run);
    Summary {
        headline: headline(run, attempts, stuck),
        run: run_line(run),
        outcome: outcome(run.status),
        stopped_because,
        started_at: run.created_at,
        last_event_at,
        duration_ms: duration(run, now),
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
fn failure_line(failure: &Failure) -> FailureLine {
    FailureLine {
        kind: failure.kind,
        cause: failure.cause,
        conditions: failure.conditions.clone(),
        severity: failure.severity,
        iteration: failure.iteration,
        attempt: failure.attempt,
        at: failure.at,
        message: words::line(&failure.message),
        failing: failure
            .failing
            .iter()
            .map(|name| words::line(name))
            .collect(),
        recoverable: failure.recoverable,
        suggested_action: failure.suggested_action,
    }
}

/// A decision with its reason.
fn decision_line(decision: &Decision) -> DecisionLine {
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
pub(super) fn stopped_because(run: &Run) -> Option<String> {
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
            let parked = run.parked.as_ref().map(|parked| parked.text.as_str());
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
        let message = beginning(&words::line(&failure.message), MAX_HEADLINE);
        format!("{}{iteration}: {message}", failure.cause.as_str())
    });
    let what = what.map(|what| format!(" {what}")).unwrap_or_default();
    match run.status {
        RunStatus::Complete if run.weakened_attempts().next().is_some() => {
            format!("Complete after {tried}, but tests were weakened: a person must review that.")
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
        RunStatus::Parked => format!("Waiting after {tried}.{what}"),
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
    let of = |status| words::with_status(run, status).count();
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

/// How many attempts are listed: the latest ones.
const MAX_ATTEMPTS: usize = 200;
/// How many errors are shown with their output.
const MAX_ERRORS: usize = 5;
/// How much of the output of all but the first.
const LESS_BYTES: usize = 2 << 10;
/// How many lines of an attempt's output an error shows.
const MAX_ERROR_LINES: usize = 40;

/// The attempts, oldest first, and how many older ones are left out.
pub(super) fn attempts(source: &Source<'_>) -> (Vec<AttemptLine>, usize) {
    let mut all: Vec<_> = source.attempts().collect();
    all.sort_by_key(|(iteration, attempt)| (attempt.started_at, iteration.number, attempt.number));
    let omitted = all.len().saturating_sub(MAX_ATTEMPTS);
    let latest = all[omitted..].iter();
    let lines = latest.map(|(iteration, attempt)| line(source, iteration, attempt));
    (lines.collect(), omitted)
}

fn line(source: &Source<'_>, iteration: &Iteration, attempt: &Attempt) -> AttemptLine {
    let feedback = attempt
        .feedback_results
        .iter()
        .map(|(name, result)| LoopLine {
            name: words::line(name),
            passed: result.passed,
            summary: words::line(&result.summary),
        });
    AttemptLine {
        number: attempt.number,
        iteration: iteration.number,
        iteration_status: iteration.status,
        subtask: words::line(&attempt.subtask),
        approach: attempt.approach.as_deref().map(words::line),
        started_at: attempt.started_at,
        duration_ms: attempt.duration_ms,
        outcome: attempt.outcome,
        exit_code: attempt.exit_code,
        signal: attempt.signal.clone(),
        timed_out: attempt.timed_out,
        failure: attempt.failure.as_ref().map(failure_line),
        conditions: attempt.conditions.clone(),
        notes: attempt.notes.iter().map(|note| words::line(note)).collect(),
        cost_usd: attempt.usage().cost_usd(),
        tokens: attempt.tokens,
        feedback: feedback.collect(),
        decision: attempt.decision.as_ref().map(decision_line),
        checkpoint_id: attempt.checkpoint_id.clone(),
        changes: totals(source, AttemptRef::of(iteration, attempt))
            .or_else(|| since_base(source, attempt)),
        log_path: attempt.log_path.clone(),
    }
}

fn totals(source: &Source<'_>, attempt: AttemptRef) -> Option<ChangeTotals> {
    let known = source
        .changes
        .iter()
        .find(|changes| changes.attempt == attempt)?;
    let of = |kinds: &[ChangeType]| {
        known
            .changes
            .iter()
            .filter(|change| kinds.contains(&change.kind))
            .count() as u64
    };
    Some(ChangeTotals {
        modified: of(&[ChangeType::Modified, ChangeType::Renamed]),
        created: of(&[ChangeType::Created]),
        deleted: of(&[ChangeType::Deleted]),
    })
}

/// The first checkpoint of a run counts from HEAD.
fn since_base(source: &Source<'_>, attempt: &Attempt) -> Option<ChangeTotals> {
    let checkpoint = source.state.checkpoint(attempt.checkpoint_id.as_ref()?)?;
    let counts = checkpoint.previous.is_none() && checkpoint.base_commit.is_some();
    counts.then_some(checkpoint.changes)
}

/// The last error of each subtask that has not passed since; where all have, the last error there was. The one that the
/// run stands at comes first.
pub(super) fn errors(source: &Source<'_>) -> Vec<ErrorDetails> {
    let sizes = std::iter::once(MAX_EXCERPT_BYTES).chain(std::iter::repeat(LESS_BYTES));
    let detailed = failures(source).into_iter().zip(sizes).take(MAX_ERRORS);
    detailed
        .filter_map(|((iteration, attempt), size)| details(iteration, attempt, size))
        .collect()
}

/// The attempts of those errors.
pub(super) fn failures<'a>(source: &'a Source<'_>) -> Vec<(&'a Iteration, &'a Attempt)> {
    let mut last: BTreeMap<&str, (&Iteration, &Attempt)> = BTreeMap::new();
    let mut all: Vec<_> = source.attempts().collect();
    all.sort_by_key(|(_, attempt)| attempt.started_at);
    let failed = all
        .iter()
        .rfind(|(_, attempt)| attempt.failure.is_some())
        .copied();
    for (iteration, attempt) in all {
        match attempt.outcome {
            Some(AttemptOutcome::Passed) => {
                last.remove(attempt.subtask.as_str());
            }
            _ if attempt.failure.is_some() => {
                last.insert(&attempt.subtask, (iteration, attempt));
            }
            _ => {}
        }
    }
    let standing = source
        .run
        .failure
        .as_ref()
        .and_then(|failure| Some((failure.iteration?, failure.attempt?)));
    let mut open: Vec<_> = last.into_values().collect();
    if open.is_empty() {
        open.extend(failed);
    }
    open.sort_by_key(|(iteration, attempt)| {
        let stands = standing == Some((iteration.number, attempt.number));
        (!stands, Reverse(attempt.started_at))
    });
    open
}

fn details(iteration: &Iteration, attempt: &Attempt, size: usize) -> Option<ErrorDetails> {
    let failure = attempt.failure.as_ref()?;
    let text = failure
        .details
        .as_deref()
        .map(|text| shown_excerpt(text, size))
        .filter(|text| !text.trim().is_empty());
    Some(ErrorDetails {
        attempt: AttemptRef::of(iteration, attempt),
        subtask: words::line(&attempt.subtask),
        message: words::line(&failure.message),
        text,
        evidence: evidence(failure),
        log_path: attempt.log_path.clone(),
    })
}

/// The details were made of the first error and the last lines; what is too long now loses its middle.
fn shown_excerpt(details: &str, size: usize) -> String {
    const GAP: &str = "[...]";
    let mut shown = words::lines(details);
    if details.len() > size {
        let text = Text::new(details.as_bytes());
        shown = words::lines(&excerpt(&text, Some(1), size));
        cut(&mut shown, size);
    }
    let lines: Vec<&str> = shown.lines().collect();
    if lines.len() <= MAX_ERROR_LINES {
        return shown;
    }
    let first = lines.iter().position(|line| *line == GAP).unwrap_or(0);
    let first = first.min(MAX_ERROR_LINES / 2);
    let last = lines.len() - (MAX_ERROR_LINES - first - 1);
    [&lines[..first], &[GAP], &lines[last..]]
        .concat()
        .join("\n")
}

fn evidence(failure: &Failure) -> Vec<Evidence> {
    let shown = failure.evidence.iter().take(3);
    let redacted = |evidence: &Evidence| Evidence {
        text: words::line(&evidence.text),
        ..evidence.clone()
    };
    shown.map(redacted).collect()
}

/// How many paths are listed.
const MAX_FILES: usize = 60;
/// How many attempts are compared: the latest ones.
const MAX_COMPARED: usize = 60;

/// An attempt's work: what there was when it began, and what there was at its end. Both are ids of checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// The attempt.
    pub attempt: AttemptRef,
    /// The checkpoint that holds what it began with.
    pub from: CheckpointId,
    /// The checkpoint that holds what it left.
    pub to: CheckpointId,
}

/// Which checkpoints show what the latest attempts changed. What a rollback restored before an attempt is no change of
/// the attempt's.
pub(crate) fn spans(state: &State, events: &[Event]) -> Vec<Span> {
    let mut now: Option<&CheckpointId> = None;
    let mut begun: BTreeMap<AttemptRef, &CheckpointId> = BTreeMap::new();
    let mut spans = Vec::new();
    for event in events {
        match &event.payload {
            Payload::CheckpointCreated { checkpoint, .. } => now = Some(&checkpoint.id),
            Payload::Restored { operation } if operation.scope.covers_files() => {
                // Of a restore of some paths there is no checkpoint; the one before is nearer than the one restored.
                let whole = operation.paths.is_empty();
                now = Some(if whole {
                    &operation.checkpoint_id
                } else {
                    &operation.safety_checkpoint_id
                });
            }
            Payload::AttemptStarted {
                iteration, attempt, ..
            } => {
                let (iteration, attempt) = (*iteration, *attempt);
                let attempt = AttemptRef { iteration, attempt };
                begun.extend(now.map(|now| (attempt, now)));
            }
            Payload::AttemptEnded(end) => {
                let (iteration, attempt) = (end.iteration, end.attempt);
                let attempt = AttemptRef { iteration, attempt };
                let (Some(from), Some(to)) = (begun.get(&attempt), &end.checkpoint_id) else {
                    continue;
                };
                spans.push(Span {
                    attempt,
                    from: (*from).clone(),
                    to: to.clone(),
                });
            }
            _ => {}
        }
    }
    spans.retain(|span| {
        state.checkpoint(&span.from).is_some() && state.checkpoint(&span.to).is_some()
    });
    spans.split_off(spans.len().saturating_sub(MAX_COMPARED))
}

/// Files that declare or pin what a project depends on.
const OF_DEPENDENCIES: [&str; 24] = [
    "Cargo.toml",
    "Cargo.lock",
    "package.json",
    "package-lock.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "go.mod",
    "go.sum",
    "pyproject.toml",
    "requirements.txt",
    "poetry.lock",
    "uv.lock",
    "Pipfile",
    "Pipfile.lock",
    "Gemfile",
    "Gemfile.lock",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "composer.lock",
    "mix.exs",
    "mix.lock",
];

fn is_of_dependencies(path: &RepoPath) -> bool {
    let path = path.to_lossy();
    let name = path.rsplit('/').next().unwrap_or_default();
    OF_DEPENDENCIES.contains(&name)
}

/// The paths that the attempts changed: those of failed attempts first, then those that changed most often.
pub(super) fn files(source: &Source<'_>) -> Files {
    let in_scope: BTreeMap<AttemptRef, bool> = source
        .attempts()
        .map(|(iteration, attempt)| {
            let failed = attempt.outcome == Some(AttemptOutcome::Failed);
            (AttemptRef::of(iteration, attempt), failed)
        })
        .collect();
    let compared: Vec<_> = source
        .changes
        .iter()
        .filter(|changes| in_scope.contains_key(&changes.attempt))
        .collect();
    let mut by_path: BTreeMap<&RepoPath, FileLine> = BTreeMap::new();
    let mut in_failed: BTreeSet<&RepoPath> = BTreeSet::new();
    for changes in &compared {
        for change in &changes.changes {
            let line = by_path.entry(&change.path).or_insert_with(|| FileLine {
                path: change.path.clone(),
                kind: change.kind,
                added: Some(0),
                deleted: Some(0),
                attempts: Vec::new(),
            });
            line.kind = change.kind;
            line.added = line.added.zip(change.added).map(|(sum, more)| sum + more);
            line.deleted = line
                .deleted
                .zip(change.deleted)
                .map(|(sum, more)| sum + more);
            line.attempts.push(changes.attempt);
            if in_scope[&changes.attempt] {
                in_failed.insert(&change.path);
            }
        }
    }
    let mut entries: Vec<FileLine> = by_path.into_values().collect();
    entries.sort_by_key(|line| {
        let is_of_failed = in_failed.contains(&line.path);
        (!is_of_failed, Reverse(line.attempts.len()))
    });
    let total = entries.len();
    entries.truncate(MAX_FILES);
    let dependencies = entries.iter().map(|line| &line.path);
    let dependencies = dependencies.filter(|path| is_of_dependencies(path));
    Files {
        dependencies: dependencies.cloned().collect(),
        total,
        entries,
        attempts_compared: compared.len(),
    }
}
