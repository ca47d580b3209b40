//! Files involved: what the attempts changed, path by path.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::event::{Event, Payload};
use crate::model::id::CheckpointId;
use crate::model::path::RepoPath;
use crate::model::run::AttemptOutcome;
use crate::model::state::State;

use super::data::{AttemptRef, FileLine, Files};
use super::source::Source;

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
                let attempt = AttemptRef {
                    iteration: *iteration,
                    attempt: *attempt,
                };
                begun.extend(now.map(|now| (attempt, now)));
            }
            Payload::AttemptEnded(end) => {
                let attempt = AttemptRef {
                    iteration: end.iteration,
                    attempt: end.attempt,
                };
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

/// The paths that the attempts changed: those of failed attempts first, then those that changed most often.
pub(super) fn files(source: &Source<'_>) -> Files {
    let name = |iteration: u32, attempt: u32| AttemptRef { iteration, attempt };
    let in_scope: BTreeMap<AttemptRef, bool> = source
        .attempts()
        .map(|(iteration, attempt)| {
            (
                name(iteration.number, attempt.number),
                attempt.outcome == Some(AttemptOutcome::Failed),
            )
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
        (
            !in_failed.contains(&line.path),
            std::cmp::Reverse(line.attempts.len()),
        )
    });
    let total = entries.len();
    entries.truncate(MAX_FILES);
    Files {
        total,
        entries,
        attempts_compared: compared.len(),
    }
}
