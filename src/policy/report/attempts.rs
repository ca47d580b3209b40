//! Attempts made, and what their errors said.

use std::collections::BTreeMap;

use crate::model::checkpoint::ChangeTotals;
use crate::model::failure::Failure;
use crate::model::manifest::ChangeType;
use crate::model::run::{Attempt, AttemptOutcome, Iteration};
use crate::policy::excerpt::{MAX_BYTES, cut, of_text};
use crate::policy::text::Text;

use super::data::{AttemptLine, AttemptRef, ErrorDetails, LoopLine};
use super::source::Source;
use super::summary::{decision_line, failure_line};
use super::words;

/// How many attempts are listed: the latest ones.
const MAX_ATTEMPTS: usize = 200;
/// How many errors are shown with their output.
const MAX_ERRORS: usize = 5;
/// How much of the output of all but the first.
const LESS_BYTES: usize = 2 << 10;

/// The attempts, oldest first, and how many older ones are left out.
pub(super) fn attempts(source: &Source<'_>) -> (Vec<AttemptLine>, usize) {
    let mut all: Vec<_> = source.attempts().collect();
    all.sort_by_key(|(iteration, attempt)| (attempt.started_at, iteration.number, attempt.number));
    let omitted = all.len().saturating_sub(MAX_ATTEMPTS);
    (
        all[omitted..]
            .iter()
            .map(|(iteration, attempt)| line(source, iteration, attempt))
            .collect(),
        omitted,
    )
}

fn line(source: &Source<'_>, iteration: &Iteration, attempt: &Attempt) -> AttemptLine {
    let name = AttemptRef {
        iteration: iteration.number,
        attempt: attempt.number,
    };
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
        changes: totals(source, name).or_else(|| since_base(source, attempt)),
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
    let sizes = std::iter::once(MAX_BYTES).chain(std::iter::repeat(LESS_BYTES));
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
        (!stands, std::cmp::Reverse(attempt.started_at))
    });
    open
}

fn details(iteration: &Iteration, attempt: &Attempt, size: usize) -> Option<ErrorDetails> {
    let failure = attempt.failure.as_ref()?;
    let text = failure
        .details
        .as_deref()
        .map(|text| excerpt(text, size))
        .filter(|text| !text.trim().is_empty());
    Some(ErrorDetails {
        attempt: AttemptRef {
            iteration: iteration.number,
            attempt: attempt.number,
        },
        subtask: words::line(&attempt.subtask),
        message: words::line(&failure.message),
        text,
        evidence: evidence(failure),
        log_path: attempt.log_path.clone(),
    })
}

/// The details were made of the first error and the last lines; what is too long now loses its middle.
fn excerpt(details: &str, size: usize) -> String {
    if details.len() <= size {
        return words::lines(details);
    }
    let text = Text::new(details.as_bytes());
    let mut excerpt = words::lines(&of_text(&text, Some(1), size));
    cut(&mut excerpt, size);
    excerpt
}

fn evidence(failure: &Failure) -> Vec<crate::model::failure::Evidence> {
    let shown = failure.evidence.iter().take(3).cloned();
    shown
        .map(|mut evidence| {
            evidence.text = words::line(&evidence.text);
            evidence
        })
        .collect()
}
