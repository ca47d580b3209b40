//! What became of a run, for all that shows it.
//!
//! Its state in a word, what it changed, what a person must look at, what it took, and the commands that keep, fix and discard
//! it.

use schemars::JsonSchema;
use serde::Serialize;
use strum::IntoStaticStr;

use crate::model::agent_record::{Tokens, usage_text};
use crate::model::{Attempt, AttemptOutcome, Hint, IterationStatus, Run, RunStatus, Timestamp};
use crate::policy::changes::in_short;
use crate::policy::retry::{Outlook, ToAccept, next_command, resume_command};

use super::to_look_at::{Outside, ToLookAt, stopped_at, to_look_at};
use super::words;

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Night {
    /// What became of it: `complete`, `complete, 2 given up`, `needs you`, `waiting`, `running`, …
    pub state: String,
    /// What the iterations that passed did, in the words of who did it; those that said nothing are left out.
    pub done: Vec<IterationSummary>,
    /// What a person must look at before it is accepted.
    pub to_look_at: Vec<ToLookAt>,
    /// Its iterations, without those that a rollback took back.
    pub iterations: NightIterations,
    /// From its beginning to the end of its last attempt, or up to now while it is at work.
    pub duration_ms: u64,
    /// Dollars by the agents' records; `None` where they say none.
    pub cost_usd: Option<f64>,
    /// Tokens by the agents' records; `None` where they say none.
    pub tokens: Option<Tokens>,
    /// What differs between its first and its last good checkpoint; `None` where one of them is not there.
    pub files: Option<ChangedFiles>,
    /// What its last attempts left in the work tree on top of that, and was not rolled back.
    #[serde(rename = "not_rolled_back", skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftInTree>,
    /// All of that in one line.
    pub summary: String,
    /// The command to go on with, which works from any folder.
    pub next: Option<Hint>,
    /// The commands that keep, fix and discard it, as far as each is possible now; the recommended one first.
    pub commands: Vec<NextCommand>,
    /// What there is to accept; nothing while it is not over.
    #[serde(skip)]
    pub to_accept: ToAccept,
}

/// What an iteration did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct IterationSummary {
    /// Which.
    pub iteration: u32,
    /// The agent's last words, or the approach that was given for its attempt; a line.
    pub summary: String,
}

/// What a command does with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
#[schemars(rename = "next_command_purpose")]
pub(crate) enum Purpose {
    /// Shows what it made, where tests were changed.
    Review,
    /// Commits what it made.
    Keep,
    /// Has what failed made good, by a person or by another attempt.
    Fix,
    /// Goes on where it stopped.
    Resume,
    /// Takes back what it made.
    Discard,
}

/// A command that a person may want next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NextCommand {
    /// What for.
    pub purpose: Purpose,
    /// It works from any folder.
    pub command: Hint,
    /// Whether it is the one that is recommended.
    pub recommended: bool,
}

/// Iterations by what came of them; each is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct NightIterations {
    /// All of them.
    pub total: usize,
    /// Passed, with nothing to look at.
    pub passed: usize,
    /// Given up.
    pub given_up: usize,
    /// Passed, and may have weakened their tests.
    pub to_look_at: usize,
    /// Failed.
    pub failed: usize,
    /// Interrupted.
    pub cancelled: usize,
    /// Not over yet.
    pub under_way: usize,
}

/// What failed attempts left in the work tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct LeftInTree {
    /// The last iteration that left something.
    pub iteration: u32,
    /// How many files are not as in the last good checkpoint, or as the run began.
    pub files: usize,
}

/// Paths and lines; binary content has no lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ChangedFiles {
    /// Paths.
    pub changed: usize,
    /// Lines added; `None` where there are too many files to compare each.
    pub added: Option<u64>,
    /// Lines removed.
    pub deleted: Option<u64>,
}

/// What its iterations did that passed, in the words of who did it.
fn done(run: &Run) -> Vec<IterationSummary> {
    let passed = words::with_status(run, IterationStatus::Completed);
    passed
        .filter_map(|number| {
            Some(IterationSummary {
                iteration: number,
                summary: summary_of(run, number)?,
            })
        })
        .collect()
}

/// What the agent says that it did in an iteration, or what was said for it; in a line.
pub(crate) fn summary_of(run: &Run, iteration: u32) -> Option<String> {
    let attempts = &run.iterations.get(iteration)?.attempts;
    let last = attempts
        .iter()
        .rfind(|attempt| attempt.outcome == Some(AttemptOutcome::Passed))?;
    // What was given for all of them says nothing of one.
    let own = |said: &&String| run.spec.approach.as_ref() != Some(*said);
    let said = last.approach.as_ref().filter(own)?;
    Some(words::line(said)).filter(|said| !said.is_empty())
}

/// From the beginning of a run to the end of its last attempt; `now` where that is not over.
pub(super) fn duration(run: &Run, now: Option<Timestamp>) -> u64 {
    let ended = run.attempts().map(|(_, attempt)| attempt.ended_at()).max();
    // The clock may have been set meanwhile: nothing of a run is later than what was recorded last.
    let ended = ended.map(|ended| ended.min(run.last_at));
    let all = words::millis(run.created_at, now.or(ended).unwrap_or(run.created_at));
    all.saturating_sub(run.idle_ms)
}

/// The commands that keep, fix and discard a run, as far as each is possible; `can_keep` says whether it made what can be
/// committed.
fn commands(
    run: &Run,
    outlook: Outlook,
    can_keep: bool,
    command: &dyn Fn(&[&str]) -> Hint,
) -> Vec<NextCommand> {
    if outlook.at_work || run.status == RunStatus::Accepted {
        return Vec::new();
    }
    let next = next_command(run, outlook);
    let is_kept = next.as_deref() == Some(&["accept"]);
    let way = |purpose, words: &[&str]| NextCommand {
        purpose,
        command: command(words),
        recommended: false,
    };
    let keep = can_keep.then(|| way(Purpose::Keep, &["accept"]));
    // Whoever changed the tests has passed them by that, maybe.
    let is_to_review = is_kept && run.weakened_attempts().next().is_some();
    let review = keep
        .as_ref()
        .filter(|_| is_to_review)
        .map(|_| way(Purpose::Review, &["diff", "initial", "good", "--patch"]));
    let on = match &next {
        Some(words) if !is_kept && (words::needs_person(run) || run.is_being_fixed()) => {
            Some(way(Purpose::Fix, words))
        }
        Some(words) if !is_kept => Some(way(Purpose::Resume, words)),
        _ if run.failure.is_some() && !run.status.is_done() => {
            Some(way(Purpose::Fix, &resume_command(run, outlook.unchecked)))
        }
        // One that did all that it was to do goes on with one more.
        _ if run.status == RunStatus::Complete
            && !run.spec.command.is_empty()
            && run.spec.tasks.is_none() =>
        {
            let more = run.iterations.last_number().unwrap_or(0).saturating_add(1);
            let more = more.to_string();
            Some(way(Purpose::Resume, &["resume", "--iterations", &more]))
        }
        _ => None,
    };
    let discard = (run.status != RunStatus::Closed).then(|| way(Purpose::Discard, &["discard"]));
    let (first, second) = if is_kept || next.is_none() {
        (keep, on)
    } else {
        (on, keep)
    };
    let mut all: Vec<NextCommand> = [review, first, second, discard]
        .into_iter()
        .flatten()
        .collect();
    if let Some(first) = all.first_mut().filter(|_| next.is_some()) {
        first.recommended = true;
    }
    all
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

/// What the engine found out beside the run's record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Around {
    /// Commits of others since it began.
    pub outside: Outside,
    /// What it changed.
    pub files: Option<ChangedFiles>,
    /// The present moment, while it is at work or is supervised.
    pub now: Option<Timestamp>,
    /// Whether another attempt begins later by itself.
    pub waits: bool,
    /// Work of a person, or of runs that are not accepted, that it changed.
    pub uncommitted: Vec<ToLookAt>,
    /// What failed attempts left in the work tree.
    pub left: Option<LeftInTree>,
}

impl Night {
    /// The night of a run that has attempts; what goes on is the caller's to say.
    pub(crate) fn new(run: &Run, around: Around) -> Self {
        let weakened: Vec<(u32, &Attempt)> = run.weakened_attempts().collect();
        let mut iterations = NightIterations::default();
        let is_waiting = around.waits || run.status == RunStatus::Parked;
        let stands_at = run.failure.as_ref().and_then(|failure| failure.iteration);
        for (number, status) in run.iterations.statuses() {
            let count = match status {
                IterationStatus::Superseded => continue,
                IterationStatus::Completed if weakened.iter().any(|(one, _)| *one == number) => {
                    &mut iterations.to_look_at
                }
                IterationStatus::Completed => &mut iterations.passed,
                IterationStatus::Skipped => &mut iterations.given_up,
                // What is waited for is none of its failures.
                IterationStatus::Failed if is_waiting && stands_at == Some(number) => {
                    &mut iterations.under_way
                }
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
            state: match around.now {
                _ if is_waiting => "waiting".to_owned(),
                Some(_) => "running".to_owned(),
                None => words::run_state(run),
            },
            done: done(run),
            to_look_at: around
                .uncommitted
                .into_iter()
                .chain(stopped_at(run).filter(|_| around.now.is_none() && !is_waiting))
                .chain(to_look_at(run))
                .chain(around.outside.to_look_at)
                .collect(),
            iterations,
            duration_ms: duration(run, around.now),
            cost_usd: run.usage().cost_usd(),
            tokens: run.usage().tokens,
            files: around.files,
            left: around.left,
            summary: String::new(),
            next: None,
            commands: Vec::new(),
            to_accept: ToAccept::Nothing,
        };
        night.summary = night.told(&why, outside);
        night
    }

    /// Notes how to go on with it; `can_keep` says whether it made what can be committed.
    pub(crate) fn go_on(
        &mut self,
        run: &Run,
        outlook: Outlook,
        can_keep: bool,
        command: &dyn Fn(&[&str]) -> Hint,
    ) {
        self.next = next_command(run, outlook).map(|words| command(&words));
        self.commands = commands(run, outlook, can_keep, command);
    }

    /// What it took: `7 h 12 min, $14.20, 1.9M tokens`.
    pub(crate) fn took(&self) -> String {
        let used = usage_text(self.cost_usd, self.tokens).unwrap_or_default();
        words::span(self.duration_ms) + &words::between(", ", &used, "")
    }

    /// What came of its iterations: `12 iterations: 9 passed, 2 given up, 1 to look at`.
    pub(crate) fn counted(&self) -> String {
        self.counts(&[], 0)
    }

    /// `12 iterations: 9 passed, 2 given up, 1 to look at (tests removed); 7 h 12 min, $14.20, 1.9M tokens; 84 files …`.
    fn told(&self, why: &[&str], outside: usize) -> String {
        let files = self.files.map(ChangedFiles::told).unwrap_or_default();
        let files = words::between("; ", &files, "");
        format!("{}; {}{files}", self.counts(why, outside), self.took())
    }

    fn counts(&self, why: &[&str], outside: usize) -> String {
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
        let parts = words::between(": ", &parts.join(", "), "");
        format!("{}{parts}", words::count(all.total, "iteration"))
    }

    /// The line, with the command to go on with in the form that suits its place.
    pub(crate) fn line(&self, next: Option<&str>) -> String {
        let next = next
            .map(|next| format!(". Next: {next}"))
            .unwrap_or_default();
        format!("{}; {}{next}", self.state, self.summary)
    }
}

impl LeftInTree {
    /// `not rolled back: 2 files of iteration 2`.
    pub(crate) fn told(self) -> String {
        let files = words::count(self.files, "file");
        format!("not rolled back: {files} of iteration {}", self.iteration)
    }
}

impl ChangedFiles {
    /// `84 files +1,204 −300`.
    pub(crate) fn told(self) -> String {
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
            state: "complete, 2 given up".to_owned(),
            done: Vec::new(),
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
            left: None,
            summary: String::new(),
            next: None,
            commands: Vec::new(),
            to_accept: ToAccept::Nothing,
        };
        let summary = night.told(&["tests removed"], 0);
        let night = Night { summary, ..night };
        assert_eq!(
            night.line(Some("recover accept")),
            "complete, 2 given up; 12 iterations: 9 passed, 2 given up, 1 to look at (tests removed); 7 h 12 min, $14.20, 1.9M tokens; \
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
