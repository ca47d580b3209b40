//! The run's story: attempts from the state, everything else from the events, in order of time.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{
    Action, Attempt, AttemptEnd, Checkpoint, CheckpointId, Event, FeedbackResults, Iteration,
    ManualFixStatus, Operation, OperationKind, Payload, Scope, StepEnd, StepStatus, Timestamp,
    Verdict,
};

use super::data::{AttemptRef, Moment, MomentKind};
use super::{Source, words};

/// How many moments are listed: the latest ones.
const MAX_MOMENTS: usize = 600;

/// The moments, oldest first, and how many older ones are left out.
pub(super) fn timeline(source: &Source<'_>) -> (Vec<Moment>, usize) {
    let mut moments: Vec<(Timestamp, u64, Moment)> = attempts(source);
    let scope = Scoped::of(source);
    for event in source.events {
        let made = moments_of(event)
            .into_iter()
            .filter(|moment| scope.holds(moment));
        for moment in made {
            // A wait is one moment, however many probes found that it was not over.
            let is_same = |(.., earlier): &&mut (_, _, Moment)| {
                let of = |moment: &Moment| (moment.kind, moment.iteration, moment.attempt);
                moment.kind == MomentKind::Park && of(earlier) == of(&moment)
            };
            match moments.iter_mut().rfind(is_same) {
                Some((.., earlier)) => earlier.title = moment.title,
                None => moments.push((event.at, event.seq, moment)),
            }
        }
    }
    moments.sort_by_key(|(at, seq, _)| (*at, *seq));
    let omitted = moments.len().saturating_sub(MAX_MOMENTS);
    let latest = moments.split_off(omitted).into_iter();
    (latest.map(|(.., moment)| moment).collect(), omitted)
}

/// What a report about one subtask leaves out: other attempts, and iterations that are not its own.
struct Scoped {
    all: bool,
    attempts: BTreeSet<AttemptRef>,
    iterations: BTreeSet<u32>,
}

impl Scoped {
    fn of(source: &Source<'_>) -> Self {
        let attempts = source
            .attempts()
            .map(|(iteration, attempt)| AttemptRef::of(iteration, attempt));
        let attempts: BTreeSet<AttemptRef> = attempts.collect();
        let iterations = attempts.iter().map(|attempt| attempt.iteration).collect();
        Self {
            all: source.subtask.is_none(),
            attempts,
            iterations,
        }
    }

    fn holds(&self, moment: &Moment) -> bool {
        let of_attempt = match (moment.iteration, moment.attempt) {
            (Some(iteration), Some(attempt)) => {
                self.attempts.contains(&AttemptRef { iteration, attempt })
            }
            (Some(iteration), None) => iteration == 0 || self.iterations.contains(&iteration),
            (None, _) => true,
        };
        self.all || of_attempt
    }
}

fn attempts(source: &Source<'_>) -> Vec<(Timestamp, u64, Moment)> {
    let mut begun: BTreeMap<AttemptRef, u64> = BTreeMap::new();
    for event in source.events {
        if let Payload::AttemptStarted {
            iteration, attempt, ..
        } = event.payload
        {
            begun.insert(AttemptRef { iteration, attempt }, event.seq);
        }
    }
    let moment = |(iteration, attempt): (&Iteration, &Attempt)| {
        let name = AttemptRef::of(iteration, attempt);
        let named = words::attempt(name.iteration, attempt);
        let title = format!("{named} {}", words::outcome(attempt.outcome));
        let failed = attempt.failure.as_ref().map(|failure| &failure.message);
        let detail = failed
            .or(attempt.approach.as_ref())
            .map(|text| words::line(text));
        let made = Moment {
            iteration: Some(name.iteration),
            attempt: Some(name.attempt),
            outcome: attempt.outcome,
            duration_ms: attempt.duration_ms,
            checkpoint_id: attempt.checkpoint_id.clone(),
            ..Moment::new(attempt.started_at, MomentKind::Attempt, title, detail)
        };
        let order = begun.get(&name).copied().unwrap_or(u64::MAX);
        (attempt.started_at, order, made)
    };
    source.attempts().map(moment).collect()
}

/// A text of the record with its times as `shown`.
pub(super) fn with_times(text: &str, shown: &dyn Fn(Timestamp) -> String) -> String {
    let time = |word: &str| {
        let end = word.find('Z')? + 1;
        let at: Timestamp = word.get(..end)?.parse().ok()?;
        Some(shown(at) + &word[end..])
    };
    let words = text
        .split(' ')
        .map(|word| time(word).unwrap_or_else(|| word.to_owned()));
    words.collect::<Vec<_>>().join(" ")
}

impl Moment {
    fn new(
        at: Timestamp,
        kind: MomentKind,
        title: impl Into<String>,
        detail: Option<String>,
    ) -> Self {
        Self {
            at,
            kind,
            title: title.into(),
            detail: detail.filter(|detail| !detail.is_empty()),
            iteration: None,
            attempt: None,
            outcome: None,
            duration_ms: None,
            checkpoint_id: None,
            verdict: None,
        }
    }

    fn of_checkpoint(self, id: &CheckpointId) -> Self {
        Self {
            checkpoint_id: Some(id.clone()),
            ..self
        }
    }
}

fn step_title(end: &StepEnd) -> String {
    let found = match end.status {
        StepStatus::CutOff => "cut off",
        status => status.as_str(),
    };
    let is_restored = end.rolled_back;
    let back = if is_restored {
        ", its files restored"
    } else {
        ""
    };
    format!("Step {} {found}{back}", words::line(&end.name))
}

fn moments_of(event: &Event) -> Vec<Moment> {
    let new = |kind, title: &str, detail| vec![Moment::new(event.at, kind, title, detail)];
    let run = |title: &str, detail| new(MomentKind::Run, title, detail);
    let fix = |title: &str, detail| new(MomentKind::ManualFix, title, detail);
    let checkpoint = |id: &CheckpointId, title: &str, detail| {
        let moment = Moment::new(event.at, MomentKind::Checkpoint, title, detail);
        vec![moment.of_checkpoint(id)]
    };
    let changed = |count| Some(format!("{} changed", words::count(count, "file")));
    match &event.payload {
        Payload::RunCreated { spec, .. } => {
            run("Run began", Some(words::line(&spec.command.join(" "))))
        }
        Payload::RunStatusChanged { status, reason } => run(
            &format!("Run {}", words::state_of(*status)),
            Some(words::line(reason)),
        ),
        Payload::RunResumed {
            strategy,
            iteration,
            instructions,
            restart,
            ..
        } => {
            let how = strategy
                .map(|strategy| format!(" with {}", strategy.as_str()))
                .unwrap_or_default();
            let verb = if *restart { "Restarted" } else { "Resumed" };
            run(
                &format!("{verb}{how} at iteration {iteration}"),
                instructions.as_deref().map(words::line),
            )
        }
        Payload::RunSpecChanged { changes, .. } if changes.is_empty() => Vec::new(),
        Payload::RunSpecChanged { changes, .. } => {
            run("Terms changed", Some(words::line(&changes.join(", "))))
        }
        Payload::RunReplaced { remote } => {
            run(&format!("Taken up from {}", words::line(remote)), None)
        }
        Payload::RunAccepted { commits, .. } => {
            run("Accepted", Some(words::count(commits.len(), "commit")))
        }
        Payload::RunClosed {} => run("Closed", None),
        Payload::RetryReset {} => run("Failures forgotten on request", None),
        Payload::IterationChanged {
            iteration,
            status,
            reason,
        } => {
            let title = format!("Iteration {iteration} {}", words::iteration_state(*status));
            let reason = reason.as_deref().map(words::line);
            vec![Moment {
                iteration: Some(*iteration),
                ..Moment::new(event.at, MomentKind::Iteration, title, reason)
            }]
        }
        Payload::BaselineVerified {
            checkpoint_id,
            verdict,
            results,
        } => vec![baseline(event.at, checkpoint_id, *verdict, results)],
        Payload::AttemptEnded(end) => decided(event.at, end),
        Payload::CheckpointCreated { checkpoint, .. } => vec![taken(event.at, checkpoint)],
        Payload::CheckpointReturned { checkpoint: back } => {
            checkpoint(&back.id, "Checkpoint came back", None)
        }
        Payload::CheckpointPinned {
            checkpoint_id,
            pinned,
            note,
        } => {
            let verb = if *pinned { "pinned" } else { "unpinned" };
            let note = note.as_deref().map(words::line);
            checkpoint(checkpoint_id, &format!("Checkpoint {verb}"), note)
        }
        Payload::CheckpointLabelled {
            checkpoint_id,
            label,
        } => checkpoint(
            checkpoint_id,
            "Checkpoint labelled",
            Some(words::line(label)),
        ),
        Payload::CheckpointsPruned { ids } => {
            let title = format!("{} removed", words::count(ids.len(), "checkpoint"));
            new(MomentKind::Checkpoint, &title, None)
        }
        Payload::Restored { operation } => vec![restored(event.at, operation)],
        Payload::ManualFixStarted { session } => {
            let issue = session.issue.as_ref();
            fix(
                &format!("Manual fix {} began", session.id),
                issue.map(|issue| words::line(&issue.message)),
            )
        }
        Payload::ManualFixVerified {
            changes, verified, ..
        } => {
            let found = if *verified {
                "verified"
            } else {
                "not good yet"
            };
            fix(&format!("Manual fix {found}"), changed(changes.len()))
        }
        Payload::ManualFixEnded { status, changes } => {
            let how = match status {
                ManualFixStatus::Completed => "taken over",
                ManualFixStatus::Aborted => "given up",
                ManualFixStatus::Active => "still open",
            };
            fix(&format!("Manual fix {how}"), changed(changes.len()))
        }
        Payload::StepEnded(end) => new(MomentKind::Step, &step_title(end), None),
        Payload::StepCompensated {
            name, succeeded, ..
        } => {
            let found = if *succeeded { "undone" } else { "not undone" };
            let title = format!("Effect of step {} {found}", words::line(name));
            new(MomentKind::Step, &title, None)
        }
        Payload::Imported(imported) => run(
            &format!("Imported: {}", words::line(imported.kind.as_str())),
            Some(words::line(&imported.source)),
        ),
        Payload::AttemptStarted { .. }
        | Payload::StepStarted(_)
        | Payload::StepChildStarted { .. }
        | Payload::StepCompensating { .. }
        | Payload::BaselineStarted { .. }
        | Payload::ChildStarted { .. }
        | Payload::AgentSessionSeen { .. }
        | Payload::OperationRecorded { .. }
        | Payload::RollbackInitiated { .. }
        | Payload::RunsForgotten { .. }
        | Payload::RalphLoopFailed { .. } => Vec::new(),
    }
}

fn decided(at: Timestamp, end: &AttemptEnd) -> Vec<Moment> {
    let Some(decision) = &end.decision else {
        return Vec::new();
    };
    let actions = words::actions(&decision.actions);
    let (kind, title) = match decision.not_before {
        Some(until) if decision.has(Action::Park) => {
            (MomentKind::Park, format!("Parked until {until}"))
        }
        Some(until) if until > at => {
            let title = format!("Decided: {actions}, not before {until}");
            (MomentKind::Decision, title)
        }
        _ => (MomentKind::Decision, format!("Decided: {actions}")),
    };
    vec![Moment {
        iteration: Some(end.iteration),
        attempt: Some(end.attempt),
        ..Moment::new(at, kind, title, Some(words::line(&decision.reason)))
    }]
}

/// What the feedback loops said before the first attempt.
fn baseline(
    at: Timestamp,
    checkpoint_id: &CheckpointId,
    verdict: Verdict,
    results: &FeedbackResults,
) -> Moment {
    let failed: Vec<String> = results
        .iter()
        .filter(|(_, result)| !result.passed)
        .map(|(name, _)| words::line(name))
        .collect();
    let found = if failed.is_empty() {
        "passed"
    } else {
        "failed"
    };
    let title = format!("Checks {found} before the first attempt");
    Moment {
        checkpoint_id: Some(checkpoint_id.to_owned()),
        verdict: Some(verdict),
        ..Moment::new(at, MomentKind::Checkpoint, title, Some(failed.join(", ")))
    }
}

fn taken(at: Timestamp, checkpoint: &Checkpoint) -> Moment {
    let verdict = match checkpoint.verdict {
        Verdict::Unverified => String::new(),
        verdict => format!(", {}", verdict.as_str()),
    };
    let changes = checkpoint.changes;
    let mut detail = words::line(&checkpoint.description);
    if changes.modified + changes.created + changes.deleted > 0 {
        let between = if detail.is_empty() { "" } else { " · " };
        detail = format!("{detail}{between}{}", words::changes(changes));
    }
    let title = format!(
        "Checkpoint @{} ({}{verdict})",
        checkpoint.seq,
        words::line(&checkpoint.trigger)
    );
    Moment {
        iteration: Some(checkpoint.after_iteration).filter(|_| checkpoint.attempt.is_some()),
        attempt: checkpoint.attempt,
        checkpoint_id: Some(checkpoint.id.clone()),
        verdict: Some(checkpoint.verdict),
        ..Moment::new(at, MomentKind::Checkpoint, title, Some(detail))
    }
}

fn restored(at: Timestamp, operation: &Operation) -> Moment {
    let (kind, verb) = match operation.kind {
        OperationKind::Rollback => (MomentKind::Rollback, "Rolled back"),
        OperationKind::Restore if operation.scope == Scope::State => {
            (MomentKind::Rollback, "Working memory restored")
        }
        OperationKind::Restore => (MomentKind::Rollback, "Restored"),
        OperationKind::Undo => (MomentKind::Undo, "Undone"),
        OperationKind::Redo => (MomentKind::Undo, "Redone"),
        OperationKind::Accept => (MomentKind::Run, "Accepted"),
        OperationKind::Discard => (MomentKind::Rollback, "Discarded, back"),
    };
    let paths = words::between("", &words::line(&operation.paths.join(" ")), " · ");
    let kept = match operation.kept.len() {
        0 => String::new(),
        kept => format!(", {kept} kept"),
    };
    let detail = format!(
        "{paths}{} written, {} deleted{kept}",
        operation.written, operation.deleted
    );
    let title = format!("{verb} to {}", operation.checkpoint_id);
    Moment::new(at, kind, title, Some(detail)).of_checkpoint(&operation.checkpoint_id)
}
