//! Texts for git from a run's record: messages of commits, and title and body of a pull request.

use super::data::Report;
use super::markdown::{code, text};
use super::words;
use crate::model::{Attempt, Change, Checkpoint, IterationStatus, Run};
use crate::policy::changes::tampering_text;
use crate::policy::secrets::redact;
use crate::policy::text::escape_lines;

/// How long a subject is at most, in characters.
const LONGEST: usize = 72;

/// What a run was about, in a line: its prompt's first line, its task, else its name.
pub(crate) fn title(run: &Run) -> String {
    let prompt = run.spec.prompt.as_deref().map(|prompt| {
        prompt
            .trim_start_matches(['#', ' ', '\n', '\r', '\t'])
            .lines()
            .next()
            .unwrap_or_default()
            .trim()
    });
    let prompt = prompt
        .filter(|line| !line.is_empty())
        .map(|line| redact(line).into_owned());
    let task = || run.task_id.as_ref().map(|task| task.as_str().to_owned());
    prompt
        .or_else(task)
        .unwrap_or_else(|| format!("Accept run {}", run.key.run_id))
}

/// A subject: `title` and, in its length, what comes after it.
fn subject(title: &str, after: &str) -> String {
    let room = LONGEST.saturating_sub(after.chars().count());
    let title = title.replace(|c: char| c.is_control(), " ");
    if title.chars().count() <= room {
        return format!("{title}{after}");
    }
    let cut: String = title.chars().take(room.saturating_sub(1)).collect();
    format!("{}…{after}", cut.trim_end())
}

/// The title in the length of a subject.
pub(crate) fn headline(run: &Run) -> String {
    subject(&title(run), "")
}

/// What a commit is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject<'a> {
    /// The run.
    pub run: &'a Run,
    /// The iteration, where a commit is of one.
    pub iteration: Option<u32>,
    /// Whether it is of files that its other commits left out.
    pub is_rest: bool,
    /// The text that was given.
    pub given: Option<&'a str>,
    /// Subjects of the commits that were folded into it, oldest first.
    pub folded: &'a [String],
}

/// The whole message; what was given stands as it is, but for the number of the iteration.
pub(crate) fn message(about: &Subject<'_>) -> String {
    let Subject {
        run,
        iteration,
        is_rest,
        given,
        folded,
    } = *about;
    let after = match iteration {
        Some(number) => format!(" (iteration {number})"),
        None if is_rest && given.is_none() => " (new files)".to_owned(),
        None => String::new(),
    };
    if let Some(given) = given {
        let (first, rest) = given.split_once('\n').unwrap_or((given, ""));
        return format!("{first}{after}\n{rest}");
    }
    let mut text = format!("{}\n\n", subject(&title(run), &after));
    let of = |status| words::with_status(run, status).count();
    match iteration {
        None => {
            let given_up = words::given_up(of(IterationStatus::Skipped));
            let passed = of(IterationStatus::Completed);
            text.push_str(&format!("Iterations: {passed} passed{given_up}.\n"));
            push_checks(&mut text, run, None);
            if !folded.is_empty() {
                text.push_str("\nWith the work of these commits:\n");
                for line in folded {
                    text.push_str(&format!("- {}\n", redact(line)));
                }
            }
        }
        Some(number) => push_checks(&mut text, run, Some(number)),
    }
    text.push_str(&format!("\nRecover-Run: {}\n", run.key.run_id));
    if let Some(number) = iteration {
        text.push_str(&format!("Recover-Iteration: {number}\n"));
    }
    text
}

/// The checks that passed on the last attempt, of all or of one iteration.
fn push_checks(text: &mut String, run: &Run, iteration: Option<u32>) {
    let of = |number: u32| iteration.is_none_or(|iteration| iteration == number);
    let last = run.attempts().rfind(|(iteration, _)| of(iteration.number));
    let passed = last
        .iter()
        .flat_map(|(_, attempt)| &attempt.feedback_results)
        .filter(|(_, result)| result.passed);
    let names: Vec<&str> = passed.map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() {
        text.push_str(&format!("Checks passed: {}.\n", names.join(", ")));
    }
}

/// This many files are listed.
const FILES: usize = 50;

/// What a person pastes, or `gh pr create` takes, of what is to be merged: the run's last `good` checkpoint, which differs from
/// its first one by these `changes`.
pub(crate) fn pull_request(
    run: &Run,
    report: &Report,
    good: Option<&Checkpoint>,
    changes: &[Change],
) -> String {
    let mut out = format!("{}\n\n", headline(run));
    let mut line = |text: String| {
        out.push_str(&text);
        out.push('\n');
    };
    if let Some(prompt) = &run.spec.prompt {
        escape_lines(prompt.trim())
            .lines()
            .for_each(|asked| line(format!("> {asked}")));
        line(String::new());
    }
    line("## What was done".to_owned());
    line(String::new());
    let with = |status| words::with_status(run, status);
    let given_up = words::given_up(with(IterationStatus::Skipped).count());
    let passed = words::count(with(IterationStatus::Completed).count(), "iteration");
    let tried = words::count(report.summary.attempts.total, "attempt");
    line(format!("- {passed} passed{given_up}, in {tried}"));
    let is_good = |attempt: &&Attempt| {
        good.is_some_and(|good| attempt.checkpoint_id.as_ref() == Some(&good.id))
    };
    let attempts = || run.attempts().rev().map(|(_, attempt)| attempt);
    if let Some(attempt) = attempts().find(is_good).or_else(|| attempts().next()) {
        for (name, result) in &attempt.feedback_results {
            let verdict = if result.passed { "passed" } else { "failed" };
            line(format!(
                "- check {}: {verdict} ({})",
                code(name),
                text(&result.summary)
            ));
        }
    }
    let weakened = run.weakened_attempts().map(|(number, attempt)| {
        let notes = text(&tampering_text(&attempt.notes, ", "));
        format!("- iteration {number} may have weakened tests: {notes}")
    });
    let skipped = with(IterationStatus::Skipped);
    let skipped = skipped.map(|number| format!("- iteration {number} was given up"));
    let look_at: Vec<String> = weakened.chain(skipped).collect();
    if !look_at.is_empty() {
        line("\n## To look at\n".to_owned());
        look_at.into_iter().for_each(&mut line);
    }
    if !changes.is_empty() {
        line("\n## Files\n".to_owned());
        for file in changes.iter().take(FILES) {
            let lines = match (file.added, file.deleted) {
                (Some(added), Some(deleted)) => format!(" (+{added} −{deleted})"),
                _ => String::new(),
            };
            line(format!("- {}{lines}", code(&file.path.to_lossy())));
        }
        let more = changes.len().saturating_sub(FILES);
        if more > 0 {
            line(format!("- and {more} more"));
        }
    }
    line(format!("\nRecover-Run: {}", run.key.run_id));
    out
}
