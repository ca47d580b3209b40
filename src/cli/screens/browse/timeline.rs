//! The rows on the left: runs, newest first; in one that is open its iterations, attempts and checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::model::checkpoint::trigger;
use crate::model::{
    AttemptOutcome, Checkpoint, IterationStatus, Run, RunKey, RunStatus, State, Timestamp, Verdict,
};

use super::super::super::render::{in_words, when};
use super::super::super::ui::escape;

/// What a row represents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// The run itself.
    Run,
    /// The iteration with this number.
    Iteration(u32),
    /// Of an iteration the attempt with this number.
    Attempt(u32, u32),
    /// The checkpoint with this sequence.
    Checkpoint(u64),
}

/// A row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub run: Rc<RunKey>,
    pub node: Node,
    /// How far it is indented.
    pub depth: usize,
}

/// What a piece of text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Good,
    Bad,
    Waiting,
    Name,
    Faint,
}

/// Text with its meanings.
pub(super) type Pieces = Vec<(String, Tone)>;

/// All rows; `open` are the runs of which more is shown, of each the iterations with the `latest` so many numbers.
pub(super) fn rows(state: &State, open: &BTreeSet<RunKey>, latest: u32) -> Vec<Row> {
    let mut rows = Vec::new();
    for run in state.runs.iter().rev() {
        let key = Rc::new(run.key.clone());
        rows.push(Row {
            run: Rc::clone(&key),
            node: Node::Run,
            depth: 0,
        });
        if open.contains(&run.key) {
            of_run(state, run, (&key, latest), &mut rows);
        }
    }
    rows
}

/// Iterations, newest first; in each the attempts, newest first, with their checkpoints below them.
fn of_run(state: &State, run: &Run, (key, latest): (&Rc<RunKey>, u32), rows: &mut Vec<Row>) {
    /// Since when, and what stands below each other.
    type Block = (Timestamp, Vec<(Node, usize)>);
    let mut iterations: BTreeMap<u32, (BTreeMap<u32, Block>, Vec<Block>)> = BTreeMap::new();
    let first = run
        .iterations
        .last_number()
        .unwrap_or(0)
        .saturating_sub(latest);
    for iteration in run.iterations.since(first) {
        for attempt in &iteration.attempts {
            let node = Node::Attempt(iteration.number, attempt.number);
            let (attempts, _) = iterations.entry(iteration.number).or_default();
            attempts.insert(attempt.number, (attempt.started_at, vec![(node, 2)]));
        }
    }
    for checkpoint in state
        .checkpoints_of(&run.key)
        .rev()
        .take_while(|one| one.after_iteration >= first)
    {
        let (attempts, others) = iterations.entry(checkpoint.after_iteration).or_default();
        let node = Node::Checkpoint(checkpoint.seq);
        match checkpoint
            .attempt
            .and_then(|number| attempts.get_mut(&number))
        {
            Some((_, block)) => block.push((node, 3)),
            None => others.push((checkpoint.created_at, vec![(node, 2)])),
        }
    }
    for (number, (attempts, others)) in iterations.into_iter().rev() {
        if number > 0 {
            rows.push(Row {
                run: Rc::clone(key),
                node: Node::Iteration(number),
                depth: 1,
            });
        }
        let mut blocks: Vec<Block> = attempts.into_values().chain(others).collect();
        blocks.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        let nodes = blocks.into_iter().flat_map(|(_, nodes)| nodes);
        rows.extend(nodes.map(|(node, depth)| Row {
            run: Rc::clone(key),
            node,
            depth: depth.min(2 + usize::from(number > 0)),
        }));
    }
}

/// What a row says. `open` is whether more of its run is shown.
pub(super) fn label(state: &State, row: &Row, open: bool, now: Timestamp) -> Pieces {
    let Some(run) = state.run(&row.run) else {
        return plain("gone");
    };
    let indent = (" ".repeat(2 * row.depth), Tone::Plain);
    let mut pieces = match &row.node {
        Node::Run => {
            let mark = if open { "- " } else { "+ " };
            let status = in_words(run.status.as_str());
            vec![
                (mark.to_owned(), Tone::Plain),
                (escape(&run.key.to_string()), Tone::Name),
                (" ".to_owned(), Tone::Plain),
                (status, tone_of_run(run.status)),
                (format!(" {}", when(run.last_at, now)), Tone::Faint),
            ]
        }
        Node::Iteration(number) => {
            let total = run.spec.of_total();
            let status = run
                .iterations
                .get(*number)
                .map(|iteration| iteration.status);
            let mut pieces = plain(&format!("iteration {number}{total} "));
            pieces.extend(
                status.map(|status| (in_words(status.as_str()), tone_of_iteration(status))),
            );
            pieces
        }
        Node::Attempt(number, attempt) => of_attempt(run, *number, *attempt),
        Node::Checkpoint(seq) => match state.checkpoints.get(*seq) {
            Some(checkpoint) => of_checkpoint(checkpoint, state.is_superseded(checkpoint), now),
            None => plain("gone"),
        },
    };
    pieces.insert(0, indent);
    pieces
}

fn plain(text: &str) -> Pieces {
    vec![(text.to_owned(), Tone::Plain)]
}

fn of_attempt(run: &Run, number: u32, attempt: u32) -> Pieces {
    let found = run
        .iterations
        .get(number)
        .and_then(|iteration| iteration.attempts.iter().rfind(|one| one.number == attempt));
    let Some(found) = found else {
        return plain("gone");
    };
    let (word, tone) = match found.outcome {
        Some(AttemptOutcome::Passed) => ("passed", Tone::Good),
        Some(AttemptOutcome::Failed) => ("failed", Tone::Bad),
        Some(AttemptOutcome::Cancelled) => ("cancelled", Tone::Waiting),
        None => ("at work", Tone::Waiting),
    };
    let mut pieces = plain(&format!("attempt {attempt} "));
    pieces.push((word.to_owned(), tone));
    if let Some(failure) = &found.failure {
        pieces.push((
            format!(" {}: {}", failure.cause.as_str(), escape(&failure.message)),
            Tone::Plain,
        ));
    }
    pieces
}

fn of_checkpoint(checkpoint: &Checkpoint, superseded: bool, now: Timestamp) -> Pieces {
    let tone = match checkpoint.verdict {
        Verdict::Passed => Tone::Good,
        Verdict::Failed => Tone::Bad,
        Verdict::Unverified => Tone::Plain,
    };
    let pin = if checkpoint.pinned { ", pinned" } else { "" };
    let over = if superseded { ", superseded" } else { "" };
    let faint = if superseded || checkpoint.is_safety() {
        Tone::Faint
    } else {
        Tone::Plain
    };
    let mut pieces = vec![
        (format!("@{} ", checkpoint.seq), Tone::Name),
        (checkpoint.verdict.as_str().to_owned(), tone),
        (format!("{pin}{over}"), faint),
        (
            if checkpoint.damaged { ", damaged" } else { "" }.to_owned(),
            Tone::Bad,
        ),
        (
            format!(" {}", when(checkpoint.created_at, now)),
            Tone::Faint,
        ),
    ];
    // Of one below its attempt all is said.
    if checkpoint.trigger != trigger::ATTEMPT {
        pieces.push((format!(" {}", escape(&checkpoint.description)), faint));
    }
    pieces
}

fn tone_of_run(status: RunStatus) -> Tone {
    match status {
        RunStatus::Complete => Tone::Good,
        RunStatus::Pending | RunStatus::InProgress | RunStatus::Paused | RunStatus::Parked => {
            Tone::Waiting
        }
        RunStatus::Accepted | RunStatus::Closed | RunStatus::RolledBack => Tone::Faint,
        RunStatus::Failed | RunStatus::Blocked | RunStatus::Cancelled | RunStatus::Escalated => {
            Tone::Bad
        }
    }
}

fn tone_of_iteration(status: IterationStatus) -> Tone {
    match status {
        IterationStatus::Completed => Tone::Good,
        IterationStatus::Failed => Tone::Bad,
        IterationStatus::Pending | IterationStatus::InProgress => Tone::Waiting,
        IterationStatus::Cancelled | IterationStatus::Skipped | IterationStatus::Superseded => {
            Tone::Faint
        }
    }
}
