//! Cycle detection (A1): a fix that was tried and failed is tried again.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::model::failure::{Failure, FailureType};
use crate::model::feedback::FeedbackResults;
use crate::model::manifest::ObjectId;
use crate::model::run::{Attempt, AttemptOutcome, Run};

use super::changed::ChangedFile;

/// How many attempts are examined, the current one included.
const WINDOW: usize = 5;
/// How many of them make a circle, the current one included.
const CIRCLE: usize = 3;
/// From which likeness on two of them count as the same.
const ALIKE: f64 = 0.6;

/// The lines that an attempt's work adds and removes, each by its path: hashes, because only likeness is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetLines(BTreeSet<u64>);

/// What an attempt that failed left.
#[derive(Clone, Debug)]
pub(crate) struct Tried<'a> {
    /// The work tree.
    pub tree: &'a ObjectId,
    /// What differs from the last good checkpoint; `None` where that is not known.
    pub lines: Option<NetLines>,
    /// What it tried, in the loop's own words.
    pub approach: Option<&'a str>,
    /// How many checks failed, where that is known.
    pub failed_checks: Option<u64>,
}

impl NetLines {
    /// Of the files that differ. A line that is there three times more counts three times.
    pub(crate) fn of(files: &[ChangedFile]) -> Self {
        let mut lines = BTreeSet::new();
        let differs = |file: &&ChangedFile| file.before != file.after;
        for file in files.iter().filter(differs) {
            let mut own = Vec::new();
            if file.is_text() {
                let (old, new) = (counted(file.old_text()), counted(file.new_text()));
                own = more('-', &file.path, &old, &new);
                own.extend(more('+', &file.path, &new, &old));
            }
            // Lines in another order, other blanks, what is no text: that it is this very content is all there is to say.
            if own.is_empty() {
                own.push(hash(&(
                    '~',
                    &file.path,
                    file.after.as_ref().map(|content| &content.oid.0),
                )));
            }
            lines.extend(own);
        }
        Self(lines)
    }

    /// Lines that both have, in proportion to those that either has (Jaccard). Nothing is like nothing.
    pub(crate) fn likeness(&self, other: &Self) -> f64 {
        jaccard(&self.0, &other.0)
    }
}

fn counted(text: &str) -> BTreeMap<&str, usize> {
    let mut lines = BTreeMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        *lines.entry(line).or_default() += 1;
    }
    lines
}

/// Lines of `one` that the other has not, or not as often.
fn more(
    sign: char,
    path: &str,
    one: &BTreeMap<&str, usize>,
    other: &BTreeMap<&str, usize>,
) -> Vec<u64> {
    let surplus = |(line, count): (&&str, &usize)| {
        let common = other.get(line).copied().unwrap_or(0);
        (common..*count)
            .map(|nth| hash(&(sign, path, line, nth)))
            .collect::<Vec<_>>()
    };
    one.iter().flat_map(surplus).collect()
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn jaccard<T: Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>) -> f64 {
    let common = one.intersection(other).count();
    let all = one.len() + other.len() - common;
    if all == 0 {
        0.0
    } else {
        common as f64 / all as f64
    }
}

/// How alike two descriptions are, by their words.
pub(crate) fn approach_likeness(one: &str, other: &str) -> f64 {
    let words = |text: &str| -> BTreeSet<String> {
        let parts = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        parts.map(str::to_lowercase).collect()
    };
    jaccard(&words(one), &words(other))
}

/// Whether the current attempt closes a circle with `earlier` ones of the same iteration and failure signature.
///
/// Three attempts it takes: the work tree comes back to one that failed before, or the net differences from the last
/// good checkpoint (`base`) are alike. Approaches that are alike count only beside such a likeness. Fewer failing checks
/// than ever before is progress, not a circle; and attempts that left everything as it was have tried no fix at all.
pub(crate) fn goes_in_circle(
    base: Option<&ObjectId>,
    earlier: &[Tried<'_>],
    current: &Tried<'_>,
) -> bool {
    if earlier.len() + 1 < CIRCLE || is_progress(earlier, current) {
        return false;
    }
    let moved = base
        .into_iter()
        .chain(earlier.iter().map(|tried| tried.tree))
        .any(|tree| tree != current.tree);
    if moved && earlier.iter().any(|tried| tried.tree == current.tree) {
        return true;
    }
    let same_lines = |tried: &Tried<'_>| match (&tried.lines, &current.lines) {
        (Some(one), Some(other)) => one.likeness(other) >= ALIKE,
        _ => false,
    };
    let same_approach = |tried: &Tried<'_>| match (tried.approach, current.approach) {
        (Some(one), Some(other)) => approach_likeness(one, other) >= ALIKE,
        _ => false,
    };
    let by_lines = earlier.iter().any(same_lines);
    let alike = earlier
        .iter()
        .filter(|tried| same_lines(tried) || same_approach(tried))
        .count();
    by_lines && alike + 1 >= CIRCLE
}

fn is_progress(earlier: &[Tried<'_>], current: &Tried<'_>) -> bool {
    let fewest = earlier.iter().filter_map(|tried| tried.failed_checks).min();
    matches!((current.failed_checks, fewest), (Some(now), Some(before)) if now < before)
}

/// Whether a failure says something about the work: that a build or a check of the project failed.
pub(crate) fn is_about_the_work(failure: &Failure, in_feedback_loop: bool) -> bool {
    failure.kind == FailureType::FeedbackFailure
        || (in_feedback_loop && failure.kind != FailureType::Cancellation)
}

/// Earlier attempts that may make a circle with one that fails like this: those of its iteration and subtask with the
/// same signature, among the last few since anything was forgiven.
pub(crate) fn same_failures<'a>(
    run: &'a Run,
    iteration: u32,
    subtask: &str,
    signature: &str,
) -> Vec<&'a Attempt> {
    let since = run.counts_since(subtask);
    let Some(iteration) = run.iterations.get(iteration) else {
        return Vec::new();
    };
    let counts = |attempt: &&Attempt| {
        attempt.subtask == subtask
            && attempt.outcome == Some(AttemptOutcome::Failed)
            && attempt.ended_seq > Some(since)
    };
    let alike = |attempt: &&Attempt| {
        attempt
            .failure
            .as_ref()
            .is_some_and(|failure| failure.signature == signature)
    };
    iteration
        .attempts
        .iter()
        .rev()
        .filter(counts)
        .take(WINDOW - 1)
        .filter(alike)
        .collect()
}

/// How many checks failed, as the feedback loops report; a loop that does not say counts as one.
pub(crate) fn failed_checks(results: &FeedbackResults) -> Option<u64> {
    let failed: Vec<u64> = results
        .values()
        .filter(|result| !result.passed)
        .map(|result| result.failed_count.unwrap_or(1).max(1))
        .collect();
    if failed.is_empty() {
        None
    } else {
        Some(failed.iter().sum())
    }
}

#[cfg(test)]
mod tests;
