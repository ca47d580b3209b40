//! The rows on the left: runs, newest first; in one that is open its iterations, attempts and checkpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::model::checkpoint::trigger;
use crate::model::{
    Attempt, AttemptOutcome, Checkpoint, IterationStatus, Run, RunKey, RunStatus, State, Timestamp,
    Verdict,
};

use super::super::super::render::when;
use super::super::super::ui::escape;
use crate::policy::report::{iteration_state, run_state, summary_of};

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

/// All rows; `open` are the runs of which more is shown.
pub(super) fn rows(state: &State, open: &BTreeSet<RunKey>) -> Vec<Row> {
    let mut rows = Vec::new();
    for run in state.runs.iter().rev() {
        let key = Rc::new(run.key.clone());
        rows.push(Row {
            run: Rc::clone(&key),
            node: Node::Run,
            depth: 0,
        });
        if open.contains(&run.key) {
            of_run(state, run, &key, &mut rows);
        }
    }
    rows
}

/// Iterations, newest first; in each the attempts, newest first, with their checkpoints below them.
fn of_run(state: &State, run: &Run, key: &Rc<RunKey>, rows: &mut Vec<Row>) {
    /// Since when, and what stands below each other.
    type Block = (Timestamp, Vec<(Node, usize)>);
    let mut iterations: BTreeMap<u32, (BTreeMap<u32, Block>, Vec<Block>)> = BTreeMap::new();
    for iteration in run.iterations.since(0) {
        for attempt in &iteration.attempts {
            let node = Node::Attempt(iteration.number, attempt.number);
            let (attempts, _) = iterations.entry(iteration.number).or_default();
            attempts.insert(attempt.number, (attempt.started_at, vec![(node, 2)]));
        }
    }
    for checkpoint in state.checkpoints_of(&run.key).rev() {
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

/// What a row says, by columns.
#[derive(Clone, Debug, Default)]
pub(super) struct Label {
    /// What it is, indented.
    pub name: Pieces,
    /// What came of it.
    pub state: Pieces,
    /// More about it, the most important first; what does not fit is counted.
    pub details: Vec<String>,
    /// When, at the right.
    pub time: Option<String>,
    /// The columns are its own: a run's name is as long as it is.
    pub is_free: bool,
}

impl Label {
    fn gone() -> Self {
        Self {
            name: plain("gone"),
            ..Self::default()
        }
    }

    /// All that it says, for a search.
    pub(super) fn text(&self) -> String {
        let pieces = self.name.iter().chain(&self.state);
        let pieces = pieces.map(|(text, _)| text.trim());
        let details = self.details.iter().map(String::as_str);
        let all: Vec<&str> = pieces.chain(details).chain(self.time.as_deref()).collect();
        all.join(" ")
    }
}

/// What a row says. `open` is whether more of its run is shown.
pub(super) fn label(state: &State, row: &Row, open: bool, now: Timestamp) -> Label {
    let Some(run) = state.run(&row.run) else {
        return Label::gone();
    };
    let mut label = match &row.node {
        Node::Run => {
            let mark = if open { "- " } else { "+ " };
            Label {
                name: vec![
                    (mark.to_owned(), Tone::Plain),
                    (escape(&run.key.to_string()), Tone::Name),
                ],
                state: vec![(run_state(run), tone_of_run(run.status))],
                time: Some(when(run.last_at, now)),
                is_free: true,
                ..Label::default()
            }
        }
        Node::Iteration(number) => of_iteration(run, *number),
        Node::Attempt(number, attempt) => of_attempt(run, *number, *attempt),
        Node::Checkpoint(seq) => match state.checkpoints.get(*seq) {
            Some(checkpoint) => of_checkpoint(checkpoint, state.is_superseded(checkpoint), now),
            None => Label::gone(),
        },
    };
    let indent = (" ".repeat(2 * row.depth), Tone::Plain);
    label.name.insert(0, indent);
    label
}

fn plain(text: &str) -> Pieces {
    vec![(text.to_owned(), Tone::Plain)]
}

fn name_of_iteration(run: &Run, number: u32) -> String {
    format!("iteration {number}{}", run.spec.of_total())
}

/// The columns that the names below a run take.
pub(super) fn width_of_names(run: &Run) -> usize {
    let last = run.iterations.last_number().unwrap_or(0);
    2 + name_of_iteration(run, last).len()
}

fn of_iteration(run: &Run, number: u32) -> Label {
    let name = plain(&name_of_iteration(run, number));
    let Some(iteration) = run.iterations.get(number) else {
        return Label {
            name,
            ..Label::default()
        };
    };
    let word = iteration_state(iteration.status).to_owned();
    let details = match summary_of(run, number) {
        Some(summary) => vec![summary],
        None => iteration.attempts.last().map_or_else(Vec::new, why),
    };
    Label {
        name,
        state: vec![(word, tone_of_iteration(iteration.status))],
        details,
        ..Label::default()
    }
}

/// Why an attempt failed: the tests by their names, else what its failure says.
fn why(attempt: &Attempt) -> Vec<String> {
    match &attempt.failure {
        Some(failure) if failure.failing.is_empty() => vec![escape(&failure.message)],
        Some(failure) => {
            // Without its file or module, which the page has: there is little room.
            let short = |name: &String| escape(name.rsplit("::").next().unwrap_or(name));
            failure.failing.iter().map(short).collect()
        }
        None => Vec::new(),
    }
}

fn of_attempt(run: &Run, number: u32, attempt: u32) -> Label {
    let found = run
        .iterations
        .get(number)
        .and_then(|iteration| iteration.attempts.iter().rfind(|one| one.number == attempt));
    let Some(found) = found else {
        return Label::gone();
    };
    let (word, tone) = match found.outcome {
        Some(AttemptOutcome::Passed) => ("passed", Tone::Good),
        Some(AttemptOutcome::Failed) => ("failed", Tone::Bad),
        Some(AttemptOutcome::Cancelled) => ("interrupted", Tone::Waiting),
        None => ("at work", Tone::Waiting),
    };
    Label {
        name: plain(&format!("attempt {attempt}")),
        state: vec![(word.to_owned(), tone)],
        details: why(found),
        ..Label::default()
    }
}

fn of_checkpoint(checkpoint: &Checkpoint, superseded: bool, now: Timestamp) -> Label {
    let tone = match checkpoint.verdict {
        _ if superseded || checkpoint.is_safety() => Tone::Faint,
        Verdict::Passed => Tone::Good,
        Verdict::Failed => Tone::Bad,
        Verdict::Unverified => Tone::Plain,
    };
    let word = if superseded {
        "rolled back"
    } else {
        checkpoint.verdict.as_str()
    };
    let mut state = vec![(word.to_owned(), tone)];
    for (is_so, note, tone) in [
        (checkpoint.pinned, ", pinned", Tone::Plain),
        (checkpoint.damaged, ", damaged", Tone::Bad),
    ] {
        state.extend(is_so.then(|| (note.to_owned(), tone)));
    }
    // Of one below its attempt all is said.
    let is_own = checkpoint.trigger != trigger::ATTEMPT;
    let details = is_own.then(|| escape(&checkpoint.description));
    Label {
        name: vec![(format!("@{}", checkpoint.seq), Tone::Name)],
        state,
        details: details.into_iter().collect(),
        time: Some(when(checkpoint.created_at, now)),
        ..Label::default()
    }
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
