//! A run in one line: what came of it, what a person must look at, what it took, what it changed.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::agent_record::{Tokens, short_count};
use crate::model::hint::Advice;
use crate::model::path::TOO_MANY;
use crate::model::{Attempt, Hint, IterationStatus, ObjectId, PathReason, RepoPath, Run};
use crate::policy::changes::{in_short, tampering_text};
use crate::policy::retry::ToAccept;

use super::words;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "night")]
pub(crate) struct Night {
    /// What a person must look at before it is accepted.
    pub to_look_at: Vec<ToLookAt>,
    /// Its iterations, without those that a rollback took back.
    pub iterations: NightIterations,
    /// From its beginning to its end, or up to now while it is at work.
    pub duration_ms: u64,
    /// Dollars by the agents' records; `None` where they say none.
    pub cost_usd: Option<f64>,
    /// Tokens by the agents' records; `None` where they say none.
    pub tokens: Option<Tokens>,
    /// What differs between its first and its last good checkpoint; `None` where one of them is not there.
    pub files: Option<ChangedFiles>,
    /// All of that in one line.
    pub summary: String,
    /// The command to go on with, which works from any folder.
    pub next: Option<Hint>,
    /// What there is to accept; nothing while it is not over.
    #[serde(skip)]
    pub to_accept: ToAccept,
}

/// Iterations by what came of them; each is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "night_iterations")]
pub(crate) struct NightIterations {
    /// All of them.
    pub total: usize,
    /// Passed, with nothing to look at.
    pub passed: usize,
    /// Given up.
    pub given_up: usize,
    /// Passed, and may have weakened what judges them.
    pub to_look_at: usize,
    /// Failed.
    pub failed: usize,
    /// Interrupted.
    pub cancelled: usize,
    /// Not over yet.
    pub under_way: usize,
}

/// Paths and lines; binary content has no lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "changed_files")]
pub(crate) struct ChangedFiles {
    /// Paths.
    pub changed: usize,
    /// Lines added; `None` where there are too many files to compare each.
    pub added: Option<u64>,
    /// Lines removed.
    pub deleted: Option<u64>,
}

/// Why a person must look at something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "look_at_kind")]
pub(crate) enum LookAtKind {
    /// Changes that were uncommitted before the run are not as they were.
    Uncommitted,
    /// An iteration passed and may have weakened what judges it.
    Weakened,
    /// An iteration was given up.
    GivenUp,
    /// A commit was made by others meanwhile.
    OutsideCommit,
    /// An attempt changed git's settings or hooks.
    GitSettings,
    /// A folder is in no checkpoint because it holds too many files.
    LeftOut,
    /// Files of an attempt that was rolled back could not be removed or replaced.
    LeftBehind,
}

/// What a person must look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "to_look_at")]
pub(crate) struct ToLookAt {
    /// Why.
    pub kind: LookAtKind,
    /// The iteration.
    pub iteration: Option<u32>,
    /// The commit.
    pub commit: Option<ObjectId>,
    /// In a line.
    pub text: Advice,
}

impl ToLookAt {
    fn new(kind: LookAtKind, text: impl Into<Advice>) -> Self {
        Self {
            kind,
            iteration: None,
            commit: None,
            text: text.into(),
        }
    }

    /// A person's uncommitted changes that the run changed or removed; `command` brings them back.
    pub(crate) fn uncommitted(paths: &BTreeSet<RepoPath>, command: Hint) -> Option<Self> {
        let names = named(paths.iter());
        let what = format!("the run changed or removed uncommitted changes of yours: {names}; ");
        let text = Advice::with(what, command, " brings them back");
        (!paths.is_empty()).then(|| Self::new(LookAtKind::Uncommitted, text))
    }

    /// What rollbacks of its attempts could not remove or replace.
    pub(crate) fn left_behind(paths: &BTreeSet<&RepoPath>) -> Option<Self> {
        let text = format!(
            "a rollback could not remove or replace {}; accept leaves it out",
            named(paths.iter().copied())
        );
        (!paths.is_empty()).then(|| Self::new(LookAtKind::LeftBehind, text))
    }

    /// A commit that the run did not make.
    pub(crate) fn commit(commit: ObjectId, subject: &str) -> Self {
        let text = format!(
            "commit {} was made outside of the run ({})",
            commit.short(),
            words::line(subject)
        );
        Self {
            commit: Some(commit),
            ..Self::new(LookAtKind::OutsideCommit, text)
        }
    }

    /// The folders that a checkpoint leaves out because they hold too many files.
    pub(crate) fn left_out(skipped: &[PathReason]) -> impl Iterator<Item = Self> + '_ {
        skipped.iter().filter(|one| one.reason == TOO_MANY).map(|one| {
            let path = words::line(&one.path.to_lossy());
            let files = one.files.map_or_else(|| "too many files".to_owned(), |files| format!("{files} files"));
            let text = format!(
                "{path}/ ({files}, over [checkpoint] max_untracked_files or max_untracked_bytes) is in no checkpoint; \
                 if it can be made again, add the line /{path}/ to .git/info/exclude"
            );
            Self::new(LookAtKind::LeftOut, text)
        })
    }

    /// This many more commits that the run did not make; `None` for none.
    pub(crate) fn earlier_commits(count: usize) -> Option<Self> {
        let text = format!(
            "{} before them, made outside of the run",
            words::count(count, "more commit")
        );
        (count > 0).then(|| Self::new(LookAtKind::OutsideCommit, text))
    }
}

/// The first of some paths, and how many more there are.
fn named<'p>(paths: impl ExactSizeIterator<Item = &'p RepoPath>) -> String {
    let more = paths.len().saturating_sub(NAMED);
    let names: Vec<String> = paths
        .take(NAMED)
        .map(|path| words::line(&path.to_lossy()))
        .collect();
    let more = (more > 0).then(|| format!(" and {more} more"));
    names.join(", ") + &more.unwrap_or_default()
}

/// What of a run's own record a person must look at.
pub(crate) fn to_look_at(run: &Run) -> Vec<ToLookAt> {
    let of = |kind, iteration, text: String| ToLookAt {
        iteration: Some(iteration),
        ..ToLookAt::new(kind, text)
    };
    let weakened = run.weakened_attempts().map(|(iteration, attempt)| {
        let notes = words::line(&tampering_text(&attempt.notes, ", "));
        let what = words::between(" (", &notes, ")");
        of(
            LookAtKind::Weakened,
            iteration,
            format!("iteration {iteration} may have weakened what judges it{what}"),
        )
    });
    let skipped = words::with_status(run, IterationStatus::Skipped);
    let given_up = |number| {
        of(
            LookAtKind::GivenUp,
            number,
            format!("iteration {number} was given up"),
        )
    };
    let changed = run
        .iterations
        .with_git_changes()
        .map(|(iteration, attempt)| {
            let names = words::line(&attempt.git_changes.join(", "));
            let text = format!(
                "attempt {} of iteration {} changed git's settings: {names}",
                attempt.number, iteration.number
            );
            of(LookAtKind::GitSettings, iteration.number, text)
        });
    weakened
        .chain(skipped.map(given_up))
        .chain(changed)
        .collect()
}

/// The iterations that a run was to do and has not done, where it did not come to its end: neither passed, nor given up, nor
/// gone back over.
pub(crate) fn unfinished(run: &Run) -> Option<String> {
    if run.status.is_done() {
        return None;
    }
    let stands = |status| {
        !matches!(
            status,
            IterationStatus::Completed | IterationStatus::Skipped | IterationStatus::Superseded
        )
    };
    let begun = run
        .iterations
        .statuses()
        .filter(|(_, status)| stands(*status))
        .map(|(number, _)| (number, number));
    let last = run.iterations.last_number().unwrap_or(0);
    let never = run
        .spec
        .iterations_total
        .filter(|total| *total > last)
        .map(|total| (last + 1, total));
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (from, to) in begun.chain(never) {
        match ranges.last_mut() {
            Some((_, end)) if *end + 1 == from => *end = to,
            _ => ranges.push((from, to)),
        }
    }
    let is_one = matches!(ranges.as_slice(), [(from, to)] if from == to);
    let named = |(from, to): &(u32, u32)| {
        if from == to {
            from.to_string()
        } else {
            format!("{from} to {to}")
        }
    };
    let which = ranges.iter().map(named).collect::<Vec<_>>().join(", ");
    match ranges.is_empty() {
        true => None,
        false if is_one => Some(format!("iteration {which} did not run to its end")),
        false => Some(format!("iterations {which} did not run to their end")),
    }
}

/// Commits that are none of a run's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outside {
    /// How many.
    pub commits: usize,
    /// The newest of them, and how many earlier ones there are.
    pub to_look_at: Vec<ToLookAt>,
}

/// What the engine found out beside the run's record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around {
    /// Commits of others since it began.
    pub outside: Outside,
    /// What it changed.
    pub files: Option<ChangedFiles>,
    /// From its beginning to its end.
    pub duration_ms: u64,
    /// A person's own work that it changed.
    pub uncommitted: Option<ToLookAt>,
}

/// Paths that a line names at most.
const NAMED: usize = 3;

impl Night {
    /// The night of a run that has attempts; what goes on is the caller's to say.
    pub(crate) fn new(run: &Run, around: Around) -> Self {
        let weakened: Vec<(u32, &Attempt)> = run.weakened_attempts().collect();
        let mut iterations = NightIterations::default();
        for (number, status) in run.iterations.statuses() {
            let count = match status {
                IterationStatus::Superseded => continue,
                IterationStatus::Completed if weakened.iter().any(|(one, _)| *one == number) => {
                    &mut iterations.to_look_at
                }
                IterationStatus::Completed => &mut iterations.passed,
                IterationStatus::Skipped => &mut iterations.given_up,
                IterationStatus::Failed => &mut iterations.failed,
                IterationStatus::Cancelled => &mut iterations.cancelled,
                IterationStatus::Pending | IterationStatus::InProgress => &mut iterations.under_way,
            };
            *count += 1;
            iterations.total += 1;
        }
        let mut why: Vec<&str> = weakened
            .iter()
            .flat_map(|(_, attempt)| in_short(&attempt.notes))
            .collect();
        why.sort_unstable();
        why.dedup();
        let outside = around.outside.commits;
        let mut night = Self {
            to_look_at: around
                .uncommitted
                .into_iter()
                .chain(to_look_at(run))
                .chain(around.outside.to_look_at)
                .collect(),
            iterations,
            duration_ms: around.duration_ms,
            cost_usd: run.usage().cost_usd(),
            tokens: run.usage().tokens,
            files: around.files,
            summary: String::new(),
            next: None,
            to_accept: ToAccept::Nothing,
        };
        night.summary = night.told(&why, outside);
        night
    }

    /// `12 iterations: 9 passed, 2 given up, 1 to look at (tests removed); 7 h 12 min, $14.20, 1.9 M tokens; 84 files …`.
    fn told(&self, why: &[&str], outside: usize) -> String {
        let all = self.iterations;
        let why = words::between(" (", &why.join(", "), ")");
        let counted = [
            (all.passed, "passed".to_owned()),
            (all.given_up, "given up".to_owned()),
            (all.to_look_at, format!("to look at{why}")),
            (all.failed, "failed".to_owned()),
            (all.cancelled, "interrupted".to_owned()),
            (all.under_way, "under way".to_owned()),
        ];
        let mut parts: Vec<String> = counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if outside > 0 {
            parts.push(format!("{} from outside", words::count(outside, "commit")));
        }
        let mut took = vec![words::span(self.duration_ms)];
        took.extend(self.cost_usd.map(|cost| format!("${cost:.2}")));
        took.extend(
            self.tokens
                .map(|tokens| format!("{} tokens", apart(&short_count(tokens.total)))),
        );
        let parts = words::between(": ", &parts.join(", "), "");
        let mut text = format!(
            "{}{parts}; {}",
            words::count(all.total, "iteration"),
            took.join(", ")
        );
        if let Some(files) = self.files {
            text.push_str("; ");
            text.push_str(&files.told());
        }
        text
    }

    /// The line, with the command to go on with in the form that suits its place.
    pub(crate) fn line(&self, next: Option<&str>) -> String {
        let next = next
            .map(|next| format!(". Next: {next}"))
            .unwrap_or_default();
        format!("night: {}{next}", self.summary)
    }
}

impl ChangedFiles {
    /// `84 files +1,204 −300`.
    fn told(self) -> String {
        let files = match self.changed {
            0 => return "no file changed".to_owned(),
            1 => "1 file".to_owned(),
            many => format!("{} files", grouped(many as u64)),
        };
        match (self.added, self.deleted) {
            (Some(added), Some(deleted)) => {
                format!("{files} +{} −{}", grouped(added), grouped(deleted))
            }
            _ => files,
        }
    }
}

/// `1.9 M` for `1.9M`.
fn apart(count: &str) -> String {
    match count.find(|c: char| c.is_ascii_alphabetic()) {
        Some(unit) => format!("{} {}", &count[..unit], &count[unit..]),
        None => count.to_owned(),
    }
}

/// `1,204`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_came_of_it_first_and_what_it_took_then() {
        let night = Night {
            to_look_at: Vec::new(),
            iterations: NightIterations {
                total: 12,
                passed: 9,
                given_up: 2,
                to_look_at: 1,
                ..NightIterations::default()
            },
            duration_ms: (7 * 60 + 12) * 60_000,
            cost_usd: Some(14.2),
            tokens: Some(Tokens::new(1_900_000, 0, 0, 0)),
            files: Some(ChangedFiles {
                changed: 84,
                added: Some(1_204),
                deleted: Some(300),
            }),
            summary: String::new(),
            next: None,
            to_accept: ToAccept::Nothing,
        };
        let summary = night.told(&["tests removed"], 0);
        let night = Night { summary, ..night };
        assert_eq!(
            night.line(Some("recover accept")),
            "night: 12 iterations: 9 passed, 2 given up, 1 to look at (tests removed); 7 h 12 min, $14.20, 1.9 M tokens; \
             84 files +1,204 −300. Next: recover accept"
        );
        let iterations = NightIterations {
            total: 1,
            failed: 1,
            ..NightIterations::default()
        };
        let poor = Night {
            iterations,
            cost_usd: None,
            tokens: None,
            files: None,
            duration_ms: 850,
            ..night
        };
        let interrupted = NightIterations {
            total: 1,
            cancelled: 1,
            ..NightIterations::default()
        };
        assert_eq!(
            Night {
                iterations: interrupted,
                ..poor.clone()
            }
            .told(&[], 0),
            "1 iteration: 1 interrupted; 850 ms"
        );
        let none = Night {
            iterations: NightIterations::default(),
            ..poor.clone()
        };
        assert_eq!(none.told(&[], 0), "0 iterations; 850 ms");
        assert_eq!(
            poor.told(&[], 2),
            "1 iteration: 1 failed, 2 commits from outside; 850 ms"
        );
    }

    #[test]
    fn numbers_are_easy_to_read() {
        assert_eq!(
            [0, 999, 1_000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [950, 12_345, 1_900_000].map(|count| apart(&short_count(count))),
            ["950", "12.3 k", "1.9 M"]
        );
        let files = |changed, added| {
            ChangedFiles {
                changed,
                added,
                deleted: added,
            }
            .told()
        };
        assert_eq!(
            (files(0, Some(0)).as_str(), files(84_000, None).as_str()),
            ("no file changed", "84,000 files")
        );
    }
}
