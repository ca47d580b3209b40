//! The iterations of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::attempt::{Attempt, Iteration, IterationStatus};
use super::usage::Usage;

/// Iterations by number. A clone shares those that neither of the two changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Iterations(BTreeMap<u32, Arc<Iteration>>);

impl Iterations {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one with this number.
    pub fn get(&self, number: u32) -> Option<&Iteration> {
        self.0.get(&number).map(Arc::as_ref)
    }

    /// A mutable reference to it.
    pub fn get_mut(&mut self, number: u32) -> Option<&mut Iteration> {
        self.0.get_mut(&number).map(Arc::make_mut)
    }

    /// The one with this number; a pending one where there is none.
    pub fn get_or_pending(&mut self, number: u32) -> &mut Iteration {
        let pending = || {
            Arc::new(Iteration {
                number,
                status: IterationStatus::Pending,
                attempts: Vec::new(),
                reason: None,
                began: None,
            })
        };
        Arc::make_mut(self.0.entry(number).or_insert_with(pending))
    }

    /// All, lowest number first.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Iteration> {
        self.since(0)
    }

    /// Those from this number on, lowest number first.
    pub fn since(&self, first: u32) -> impl DoubleEndedIterator<Item = &Iteration> {
        self.0
            .range(first..)
            .map(|(_, iteration)| iteration.as_ref())
    }

    /// The latest `most` and, of those before them, all that are not completed, lowest number first.
    pub fn recent(&self, most: usize) -> Vec<&Iteration> {
        let before = self.len().saturating_sub(most);
        self.values()
            .enumerate()
            .filter(|(at, iteration)| {
                *at >= before || iteration.status != IterationStatus::Completed
            })
            .map(|(_, iteration)| iteration)
            .collect()
    }

    /// Those from this number on, to be changed.
    pub fn iter_mut_from(&mut self, first: u32) -> impl Iterator<Item = &mut Iteration> {
        self.0
            .range_mut(first..)
            .map(|(_, iteration)| Arc::make_mut(iteration))
    }

    /// The attempts that have not ended, to be changed.
    pub fn unended_mut(&mut self) -> impl Iterator<Item = &mut Attempt> {
        let is_unended = |attempt: &Attempt| attempt.outcome.is_none();
        self.0
            .values_mut()
            .filter(move |iteration| iteration.attempts.iter().any(is_unended))
            .flat_map(|iteration| &mut Arc::make_mut(iteration).attempts)
            .filter(move |attempt| is_unended(attempt))
    }

    /// Where each stands, lowest number first.
    pub fn statuses(&self) -> impl DoubleEndedIterator<Item = (u32, IterationStatus)> {
        self.values()
            .map(|iteration| (iteration.number, iteration.status))
    }

    /// Where the one with this number stands.
    pub fn status(&self, number: u32) -> Option<IterationStatus> {
        self.get(number).map(|iteration| iteration.status)
    }

    /// The highest number.
    pub fn last_number(&self) -> Option<u32> {
        self.0.keys().next_back().copied()
    }

    /// All attempts, each with its iteration, oldest iteration first.
    pub fn attempts(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.values().flat_map(|iteration| {
            let attempts = iteration.attempts.iter();
            attempts.map(move |attempt| (iteration, attempt))
        })
    }

    /// How many attempts there are.
    pub fn count_attempts(&self) -> usize {
        self.attempts().count()
    }

    /// The attempts that are booked on `subtask`.
    pub fn attempts_on(
        &self,
        subtask: &str,
    ) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts()
            .filter(move |(_, attempt)| attempt.subtask == subtask)
    }

    /// The attempts that passed and may have weakened what judges them.
    pub fn weakened(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts().filter(|(_, attempt)| attempt.is_weakened())
    }

    /// The attempts that ended after the event with this sequence.
    pub fn ended_after(&self, seq: u64) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts()
            .filter(move |(_, attempt)| attempt.ended_seq > Some(seq))
    }

    /// The attempt that ended last.
    pub fn last_ended(&self) -> Option<&Attempt> {
        let ended = self.ended_after(0).map(|(_, attempt)| attempt);
        ended.max_by_key(|attempt| attempt.ended_seq)
    }

    /// What all attempts used up.
    pub fn usage(&self) -> Usage {
        self.attempts().map(|(_, attempt)| attempt.usage()).sum()
    }

    /// The attempts that changed git's settings.
    pub fn with_git_changes(&self) -> impl DoubleEndedIterator<Item = (&Iteration, &Attempt)> {
        self.attempts()
            .filter(|(_, attempt)| !attempt.git_changes.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_completed_stays_among_the_recent() {
        let mut iterations = Iterations::default();
        for number in 1..=6 {
            iterations.get_or_pending(number).status = match number {
                2 => IterationStatus::Skipped,
                _ => IterationStatus::Completed,
            };
        }
        let recent = |most| -> Vec<u32> {
            let recent = iterations.recent(most).into_iter();
            recent.map(|iteration| iteration.number).collect()
        };
        assert_eq!(recent(0), [2]);
        assert_eq!(recent(2), [2, 5, 6]);
        assert_eq!(recent(9), [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_clone_is_not_changed_with_the_other() {
        let mut iterations = Iterations::default();
        iterations.get_or_pending(1);
        let before = iterations.clone();
        iterations.get_or_pending(1).status = IterationStatus::Failed;
        assert_eq!(before.status(1), Some(IterationStatus::Pending));
        assert_eq!(iterations.status(1), Some(IterationStatus::Failed));
    }
}
