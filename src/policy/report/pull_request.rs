//! Title and body of a pull request, from the record of a run: the first line is the title.

use crate::model::attempt::Attempt;
use crate::model::checkpoint::Checkpoint;
use crate::model::manifest::Change;
use crate::model::run::{IterationStatus, Run};
use crate::policy::commit_message::headline;
use crate::policy::escape::escape_lines;
use crate::policy::tamper::tampering_text;

use super::data::Report;
use super::markdown::escape::{code, text};
use super::words;

/// So many files are listed.
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
    let of = |status| {
        run.iterations
            .statuses()
            .filter(|(_, stands)| *stands == status)
            .count()
    };
    let given_up = of(IterationStatus::Skipped);
    let given_up = if given_up > 0 {
        format!(", {given_up} given up")
    } else {
        String::new()
    };
    let passed = of(IterationStatus::Completed);
    let tried = words::count(report.summary.attempts.total, "attempt");
    line(format!(
        "- {} passed{given_up}, in {tried}",
        words::count(passed, "iteration")
    ));
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
    let weakened: Vec<String> = run
        .weakened_attempts()
        .map(|(number, attempt)| {
            format!(
                "- iteration {number} may have weakened tests: {}",
                text(&tampering_text(&attempt.notes, ", "))
            )
        })
        .collect();
    let skipped = run
        .iterations
        .statuses()
        .filter(|(_, status)| *status == IterationStatus::Skipped);
    let skipped = skipped.map(|(number, _)| format!("- iteration {number} was given up"));
    let look_at: Vec<String> = weakened.into_iter().chain(skipped).collect();
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
