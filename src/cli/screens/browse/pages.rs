//! What stands on the right, as text.

use std::path::Path;

use itertools::Itertools as _;

use super::super::super::render;
use super::super::super::ui::{Ui, escape};
use super::app::{Page, Subject};
use super::timeline::{Node, Row};
use crate::engine::{Context, Result, inspect, status};
use crate::model::failure::Evidence;
use crate::model::{Attempt, Checkpoint, Failure, Run, RunKey, State, Timestamp};
use crate::policy::report::{iteration_state, markdown, outcome, run_state, summary_of};
use crate::policy::secrets::redact;

/// This many lines of a page are shown; commands show the rest.
const MOST: usize = 5000;
/// This many characters of a line.
const LONGEST: usize = 4000;

/// The lines of a page, with control characters and secrets masked; what cannot be read is said.
pub(super) fn lines(
    context: &Context,
    ui: &Ui,
    recorded: &inspect::Recorded,
    subject: &Subject,
    page: Page,
) -> Vec<String> {
    let text = match subject {
        Subject::Nothing => Ok("Nothing has been recorded here.".to_owned()),
        Subject::Pair(from, to) => match [from, to].map(|seq| recorded.state.checkpoints.get(*seq))
        {
            [Some(from), Some(to)] => between(context, from, to),
            _ => Ok("One of them is gone.".to_owned()),
        },
        Subject::Row(row) => of_row(context, ui, recorded, row, page),
    };
    let text = text.unwrap_or_else(|error| format!("error: {}", error.message));
    let cut = |line: &str| {
        line.char_indices()
            .nth(LONGEST)
            .map_or(line.len(), |(at, _)| at)
    };
    let text: Vec<&str> = text
        .lines()
        .take(MOST + 1)
        .map(|line| &line[..cut(line)])
        .collect();
    let text = redact(&text.join("\n")).into_owned();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| escape(&line.replace('\t', "    ")))
        .collect();
    if lines.len() > MOST {
        lines[MOST] = format!("only the first {MOST} lines are shown");
    }
    lines
}

fn of_row(
    context: &Context,
    ui: &Ui,
    recorded: &inspect::Recorded,
    row: &Row,
    page: Page,
) -> Result<String> {
    let state = &recorded.state;
    let Some(run) = state.run(&row.run) else {
        return Ok("It is gone.".to_owned());
    };
    match page {
        Page::Overview => overview(context, ui, recorded, run, row),
        Page::Diff => difference(context, state, run, row),
        Page::Evidence => Ok(evidence(state, run, &row.node)),
        Page::Log => log(context, ui, state, run, row),
        Page::Report => Ok(markdown(&inspect::report_of_key(context, &run.key)?)),
    }
}

fn overview(
    context: &Context,
    ui: &Ui,
    recorded: &inspect::Recorded,
    run: &Run,
    row: &Row,
) -> Result<String> {
    let now = context.clock.now();
    Ok(match &row.node {
        Node::Run if recorded.chosen.as_ref() == Some(&run.key) => {
            render::whole_text(ui, &status::glance(context)?, now)
        }
        Node::Run => about_run(run, now),
        Node::Iteration(number) => about_iteration(ui, run, *number, now),
        Node::Attempt(..) => match attempt(&recorded.state, run, &row.node) {
            Some(attempt) => about_attempt(ui, attempt, now),
            None => "It is gone.".to_owned(),
        },
        Node::Checkpoint(seq) => match recorded.state.checkpoints.get(*seq) {
            Some(checkpoint) => render::checkpoint_text(checkpoint, now),
            None => "It is gone.".to_owned(),
        },
    })
}

fn about_run(run: &Run, now: Timestamp) -> String {
    let mut text = format!("Run {}: {}\n\n", run.key, run_state(run));
    let total = run.spec.of_total();
    text += &format!("Iteration: {}{total}\n", run.shown_iteration());
    text += &format!("Attempts:  {}\n", run.iterations.count_attempts());
    text += &format!("Began:     {}\n", render::moment(run.created_at, now));
    if let Some(at) = run.ended_at {
        text += &format!("Ended:     {}\n", render::moment(at, now));
    }
    text += &format!("Work tree: {}\n", run.worktree.path().display());
    if let Some(failure) = &run.failure {
        text += &format!("\n{}: {}\n", failure.cause.as_str(), failure.message);
    }
    text
}

fn about_iteration(ui: &Ui, run: &Run, number: u32, now: Timestamp) -> String {
    let Some(iteration) = run.iterations.get(number) else {
        return format!("Iteration {number}: nothing was tried.\n");
    };
    let mut text = format!(
        "Iteration {number}: {}\n\n",
        iteration_state(iteration.status)
    );
    if let Some(summary) = summary_of(run, number) {
        text += &format!("{summary}\n\n");
    }
    if let Some(reason) = &iteration.reason {
        text += &format!("{reason}\n\n");
    }
    for attempt in &iteration.attempts {
        text += &about_attempt(ui, attempt, now);
        text.push('\n');
    }
    text
}

fn about_attempt(ui: &Ui, attempt: &Attempt, now: Timestamp) -> String {
    let ended = outcome(attempt.outcome);
    let mut text = format!("Attempt {}: {ended}\n", attempt.number);
    text += &format!(
        "  began       {}\n",
        render::moment(attempt.started_at, now)
    );
    if let Some(took) = attempt.duration_ms {
        text += &format!(
            "  took        {}\n",
            render::seconds(std::time::Duration::from_millis(took))
        );
    }
    let ended = attempt
        .exit_code
        .map(|code| format!("exit code {code}"))
        .or_else(|| attempt.signal.clone());
    if let Some(ended) = ended {
        text += &format!("  ended with  {ended}\n");
    }
    if let Some(id) = &attempt.checkpoint_id {
        text += &format!("  checkpoint  {}\n", ui.id(id));
    }
    if let Some(approach) = &attempt.approach {
        text += &format!("  {}\n", approach.split_whitespace().format(" "));
    }
    for (name, result) in &attempt.feedback_results {
        let verdict = if result.passed { "passed" } else { "failed" };
        text += &format!("  check {name}: {verdict} ({})\n", result.summary);
    }
    if let Some(failure) = &attempt.failure {
        text += &format!("  {}: {}\n", failure.cause.as_str(), failure.message);
        for name in &failure.failing {
            text += &format!("    {name}\n");
        }
    }
    for note in &attempt.notes {
        text += &format!("  {note}\n");
    }
    text
}

/// The attempt that a row is about: itself, or the one that a checkpoint was taken after.
fn attempt<'a>(state: &State, run: &'a Run, node: &Node) -> Option<&'a Attempt> {
    let (iteration, number) = match node {
        Node::Attempt(iteration, number) => (*iteration, *number),
        Node::Checkpoint(seq) => {
            let checkpoint = state.checkpoints.get(*seq)?;
            (checkpoint.after_iteration, checkpoint.attempt?)
        }
        Node::Run | Node::Iteration(_) => return None,
    };
    run.iterations
        .get(iteration)?
        .attempts
        .iter()
        .rfind(|attempt| attempt.number == number)
}

fn difference(context: &Context, state: &State, run: &Run, row: &Row) -> Result<String> {
    let since = |checkpoint: Option<&Checkpoint>| match checkpoint {
        Some(checkpoint) => {
            let patch = inspect::patch_since_previous(context, state, checkpoint)?;
            Ok(if patch.is_empty() {
                "No differences.".to_owned()
            } else {
                lossy(&patch)
            })
        }
        None => Ok("No checkpoint was taken of it.".to_owned()),
    };
    let across = |span: Option<(&Checkpoint, &Checkpoint)>| match span {
        Some((from, to)) => between(context, from, to),
        None => Ok("There are no two checkpoints of it to compare.".to_owned()),
    };
    match &row.node {
        Node::Run => across(inspect::span_of_run(state, &run.key)),
        Node::Iteration(number) => across(inspect::span_of_iteration(state, run, *number)),
        Node::Attempt(..) => {
            let id =
                attempt(state, run, &row.node).and_then(|attempt| attempt.checkpoint_id.as_ref());
            since(id.and_then(|id| state.checkpoint(id)))
        }
        Node::Checkpoint(seq) => since(state.checkpoints.get(*seq)),
    }
}

fn between(context: &Context, from: &Checkpoint, to: &Checkpoint) -> Result<String> {
    let patch = inspect::diff(context, from, Some(to), &[], true)?
        .patch
        .unwrap_or_default();
    let what = if patch.is_empty() {
        "No differences.".to_owned()
    } else {
        patch
    };
    Ok(format!("@{} to @{}\n\n{what}", from.seq, to.seq))
}

fn lossy(patch: &[u8]) -> String {
    String::from_utf8_lossy(patch).into_owned()
}

/// Why it failed, and by what that is known; of an iteration each attempt that did.
fn evidence(state: &State, run: &Run, node: &Node) -> String {
    const NONE: &str = "No failure is recorded of it.";
    match node {
        Node::Run => match &run.failure {
            Some(failure) => why(failure),
            None if run.attempts().any(|(_, attempt)| attempt.failure.is_some()) => {
                "No current failure; see the attempts.".to_owned()
            }
            None => NONE.to_owned(),
        },
        Node::Iteration(number) => {
            let attempts = run
                .iterations
                .get(*number)
                .map_or(&[][..], |iteration| &iteration.attempts);
            let failed: Vec<_> = attempts
                .iter()
                .filter_map(|attempt| Some((attempt.number, attempt.failure.as_ref()?)))
                .collect();
            match failed.as_slice() {
                [] => NONE.to_owned(),
                [(_, failure)] if attempts.len() == 1 => why(failure),
                several => several
                    .iter()
                    .map(|(number, failure)| format!("Attempt {number}: {}", why(failure)))
                    .join("\n"),
            }
        }
        Node::Attempt(..) | Node::Checkpoint(_) => {
            let failure = attempt(state, run, node).and_then(|attempt| attempt.failure.as_ref());
            failure.map_or_else(|| NONE.to_owned(), why)
        }
    }
}

fn why(failure: &Failure) -> String {
    let mut text = format!("{}\n\n", failure.message);
    text += &format!(
        "Type:      {} ({})\n",
        failure.kind.as_str(),
        failure.cause.as_str()
    );
    text += &format!("Severity:  {}\n", failure.severity.as_str());
    text += &format!(
        "Again:     {}\n",
        if failure.retryable {
            "the same may pass"
        } else {
            "the same fails again"
        }
    );
    let mut listed = |title: &str, all: &[Evidence]| {
        if !all.is_empty() {
            text += &format!("\n{title}\n");
        }
        for one in all {
            let line = one
                .line
                .map_or_else(String::new, |line| format!(", line {line}"));
            text += &format!(
                "  {} ({}{line})\n    {}\n",
                one.rule,
                one.source.as_str(),
                one.text
            );
        }
    };
    listed("Evidence", &failure.evidence);
    listed("Also matched", &failure.rejected);
    if let Some(details) = &failure.details {
        text += &format!("\nOutput\n{details}\n");
    }
    text
}

/// What an attempt printed, of an iteration each of them; of a run what was recorded about it.
fn log(context: &Context, ui: &Ui, state: &State, run: &Run, row: &Row) -> Result<String> {
    let printed = |attempt: &Attempt| {
        let Some(path) = &attempt.log_path else {
            return Ok("No log is kept of it.".to_owned());
        };
        let end = inspect::log_end(context, Path::new(path))?;
        Ok(if end.trim().is_empty() {
            "It printed nothing.".to_owned()
        } else {
            end
        })
    };
    match &row.node {
        Node::Iteration(number) => {
            let attempts = run
                .iterations
                .get(*number)
                .map_or(&[][..], |one| &one.attempts);
            let logs = attempts.iter().map(|attempt| {
                Ok(format!(
                    "Attempt {}:\n{}\n",
                    attempt.number,
                    printed(attempt)?
                ))
            });
            Ok(logs.collect::<Result<Vec<_>>>()?.join("\n"))
        }
        node => match attempt(state, run, node) {
            Some(attempt) => printed(attempt),
            None => recorded_log(context, ui, state, &run.key),
        },
    }
}

fn recorded_log(context: &Context, ui: &Ui, state: &State, key: &RunKey) -> Result<String> {
    let events = inspect::events(context, state, key)?;
    let lines = events
        .iter()
        .map(|(event, line)| render::event_line_of_run(ui, event, line));
    Ok(lines.collect())
}
