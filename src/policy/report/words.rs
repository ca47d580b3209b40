//! Words, times and other people's text, the same in every format.

use std::time::Duration;

use itertools::Itertools as _;

use crate::model::tasks::{TaskLine, TaskStatus};
use crate::model::{
    Action, Attempt, AttemptOutcome, ChangeTotals, Condition, IterationStatus, Run, RunStatus,
    Timestamp,
};
use crate::policy::secrets::redact;
pub(super) use crate::policy::text::count;
use crate::policy::text::{Line, Text, beginning, escape, escape_lines};

/// What every written report holds, so that a file can be recognised as one.
pub(crate) const MARK: &str = "recover report";

/// How long a line of foreign text may get, in characters.
const MAX_LINE: usize = 400;

/// A user's text as one line: redacted, bounded, nothing in it that could steer a terminal.
pub(super) fn line(text: &str) -> String {
    // Without colours first: they could hide a secret from the patterns.
    let text = Text::new(text.as_bytes());
    let plain = text.lines().map(Line::to_text).join("\n");
    let redacted = redact(&plain);
    beginning(&escape(&redacted.split_whitespace().join(" ")), MAX_LINE)
}

/// A text between two others; nothing where it is empty.
pub(super) fn between(before: &str, text: &str, after: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("{before}{text}{after}")
}

/// The iterations of a run with this status.
pub(super) fn with_status(run: &Run, status: IterationStatus) -> impl Iterator<Item = u32> + '_ {
    let all = run.iterations.statuses();
    all.filter(move |(_, own)| *own == status)
        .map(|(number, _)| number)
}

/// Where a task stands.
fn task_state(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Done => "done",
        TaskStatus::GivenUp => "given up",
        TaskStatus::Failed => "failed",
        TaskStatus::Cancelled => "interrupted",
        TaskStatus::InProgress => "under way",
        TaskStatus::Waiting => "waiting",
        TaskStatus::Pending => "to come",
        TaskStatus::ToReview => "to review",
    }
}

/// A task in a line: where it stands, its name, and why.
pub(crate) fn task(task: &TaskLine) -> String {
    let why = match (&task.reason, task.status) {
        (Some(reason), _) => format!(": {}", beginning(&line(reason), 100)),
        (None, TaskStatus::Waiting) => format!(" (needs {})", line(&task.waits_for.join(", "))),
        (None, TaskStatus::ToReview) => {
            " (added during an attempt; recover resume --tasks FILE runs it)".to_owned()
        }
        _ => String::new(),
    };
    format!("{:<10} {}{why}", task_state(task.status), line(&task.id))
}

/// What all tasks amount to: `9 done, 2 given up, 1 waiting`.
pub(crate) fn tasks_counted(tasks: &[TaskLine]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for state in tasks.iter().map(|task| task_state(task.status)) {
        match counts.iter_mut().find(|(known, _)| *known == state) {
            Some((_, count)) => *count += 1,
            None => counts.push((state, 1)),
        }
    }
    let mut parts = counts
        .iter()
        .map(|(state, count)| format!("{count} {state}"));
    parts.join(", ")
}

/// Where an iteration stands, in the word for it everywhere.
pub(crate) fn iteration_state(status: IterationStatus) -> &'static str {
    match status {
        IterationStatus::Completed => "passed",
        IterationStatus::Failed => "failed",
        IterationStatus::Skipped => "given up",
        IterationStatus::Cancelled => "interrupted",
        IterationStatus::Superseded => "rolled back",
        IterationStatus::InProgress => "under way",
        IterationStatus::Pending => "to do",
    }
}

/// Where a run stands, in the word for it everywhere: `complete, 2 given up`.
pub(crate) fn run_state(run: &Run) -> String {
    let state = match run.status {
        _ if run.is_being_fixed() => "being fixed by a person",
        RunStatus::Complete | RunStatus::Escalated if is_over(run) => {
            let skipped = with_status(run, IterationStatus::Skipped).count();
            return format!("complete{}", given_up(skipped));
        }
        status => state_of(status),
    };
    state.to_owned()
}

/// The word for a run's status alone.
pub(super) fn state_of(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Complete => "complete",
        RunStatus::Accepted => "accepted",
        RunStatus::Closed => "closed",
        RunStatus::Escalated | RunStatus::Failed | RunStatus::Blocked => "needs you",
        RunStatus::Parked => "waiting",
        RunStatus::Paused => "paused",
        RunStatus::Cancelled => "interrupted",
        RunStatus::RolledBack => "rolled back",
        RunStatus::Pending => "not begun",
        RunStatus::InProgress => "in progress",
    }
}

/// Whether a run stopped for a person.
pub(super) fn needs_person(run: &Run) -> bool {
    let stopped = [RunStatus::Escalated, RunStatus::Failed, RunStatus::Blocked];
    stopped.contains(&run.status) && !is_over(run)
}

/// Whether a run did all that it was to do, or all but what it gave up.
pub(crate) fn is_over(run: &Run) -> bool {
    if run.status != RunStatus::Escalated {
        return run.status == RunStatus::Complete;
    }
    let given_up: Vec<u32> = run.given_up().collect();
    let stands_at = run.failure.as_ref().and_then(|failure| failure.iteration);
    let mut statuses = run
        .iterations
        .statuses()
        .filter(|(_, status)| *status != IterationStatus::Superseded);
    let last = statuses.next_back().map(|(_, status)| status);
    // The files of one that was given up last are still there.
    !given_up.is_empty()
        && stands_at.is_none_or(|number| given_up.contains(&number))
        && last == Some(IterationStatus::Completed)
}

/// `1 modified, 0 created, 2 deleted`.
pub(super) fn changes(of: ChangeTotals) -> String {
    let (modified, created, deleted) = (of.modified, of.created, of.deleted);
    format!("{modified} modified, {created} created, {deleted} deleted")
}

/// `, 2 given up`; nothing for none.
pub(super) fn given_up(count: usize) -> String {
    match count {
        0 => String::new(),
        count => format!(", {count} given up"),
    }
}

/// Whether a failure is one that a run can go on after.
pub(super) fn recoverable(is_recoverable: bool) -> &'static str {
    if is_recoverable {
        "recoverable"
    } else {
        "not recoverable"
    }
}

/// A user's text with its lines.
pub(super) fn lines(text: &str) -> String {
    escape_lines(&redact(text).replace("\r\n", "\n"))
}

/// `850 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`.
pub(super) fn span(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{seconds}.{} s", millis % 1000 / 100),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// Milliseconds from one time to another.
pub(super) fn millis(earlier: Timestamp, later: Timestamp) -> u64 {
    let span: Duration = later.since(earlier);
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// `2026-01-05 10:00:00 UTC`.
pub(super) fn date_time(at: Timestamp) -> String {
    at.datetime().format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// `2026-01-05`.
pub(super) fn date(at: Timestamp) -> String {
    at.datetime().format("%Y-%m-%d").to_string()
}

/// `10:00:00`.
pub(super) fn time(at: Timestamp) -> String {
    at.datetime().format("%H:%M:%S").to_string()
}

/// How an attempt ended, in one word.
pub(crate) fn outcome(outcome: Option<AttemptOutcome>) -> &'static str {
    match outcome {
        Some(AttemptOutcome::Passed) => "passed",
        Some(AttemptOutcome::Failed) => "failed",
        Some(AttemptOutcome::Cancelled) => "cancelled",
        None => "under way",
    }
}

/// A decision's actions, in order.
pub(super) fn actions(actions: &[Action]) -> String {
    actions.iter().map(|action| action.as_str()).join(" + ")
}

/// What is true beside a cause.
pub(super) fn condition(condition: Condition) -> String {
    condition.as_str().replace('_', " ")
}

/// The title of what [`conditions`] returns.
pub(super) fn conditions_title(conditions: &[Condition]) -> &'static str {
    if conditions.is_empty() {
        "Notes"
    } else {
        "Conditions"
    }
}

/// All that is true beside an outcome, and what that is about; only notes where there are no conditions.
pub(super) fn conditions(conditions: &[Condition], notes: &[String]) -> String {
    if conditions.is_empty() {
        return notes.join("; ");
    }
    let named = conditions.iter().map(|one| condition(*one)).join(", ");
    let about = between(" (", &notes.join("; "), ")");
    between("", &named, &about)
}

/// How the command of an attempt ended: `exit 1`, `SIGKILL`, `deadline`.
pub(super) fn ending(
    exit_code: Option<i32>,
    signal: Option<&str>,
    timed_out: bool,
) -> Option<String> {
    match (timed_out, signal, exit_code) {
        (true, _, _) => Some("deadline".to_owned()),
        (_, Some(signal), _) => Some(line(signal)),
        (_, None, Some(code)) => Some(format!("exit {code}")),
        (_, None, None) => None,
    }
}

/// A name for an attempt: its iteration and its number.
pub(super) fn attempt(iteration: u32, attempt: &Attempt) -> String {
    format!("Iteration {iteration}, attempt {}", attempt.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_redacted_bounded_and_plain() {
        assert_eq!(line("a\n  b\tpassword=hunter22"), "a b password=[redacted]");
        assert_eq!(line("\u{1b}[31mred\u{202e}\u{7}"), "red\\u{202e}");
        assert_eq!(line("pass\u{1b}[0mword=hunter22"), "password=[redacted]");
        assert_eq!(line(&"é".repeat(500)).chars().count(), MAX_LINE);
        assert_eq!(lines("a\r\n\u{7}b"), "a\n\\u{7}b");
    }

    #[test]
    fn spans_are_short() {
        for (millis, text) in [
            (0, "0 ms"),
            (850, "850 ms"),
            (12_345, "12.3 s"),
            (250_000, "4 min 10 s"),
            (7_500_000, "2 h 5 min"),
            (273_600_000, "3 d 4 h"),
        ] {
            assert_eq!(span(millis), text);
        }
    }
}
