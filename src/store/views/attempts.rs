//! `attempt_history.json` (A3): attempts by subtask across restarts.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use crate::model::decision::Action;
use crate::model::import::ImportKind;
use crate::model::run::{AttemptOutcome, IterationStatus, Run};
use crate::model::state::State;
use crate::model::time::Timestamp;

/// The history of all subtasks.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct AttemptHistory<'a> {
    /// By subtask id.
    pub subtasks: BTreeMap<&'a str, Subtask<'a>>,
    /// Those that were given up, for a person (A7).
    pub stuck_subtasks: Vec<StuckSubtask<'a>>,
}

/// One subtask.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Subtask<'a> {
    /// Oldest first.
    pub attempts: Vec<HistoryAttempt<'a>>,
    /// `pending`, `in_progress`, `failed`, `completed` or `stuck`.
    pub status: &'static str,
}

/// One attempt.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct HistoryAttempt<'a> {
    /// Which session, counted from 1 for each subtask.
    pub session: u64,
    /// When it began.
    pub timestamp: Timestamp,
    /// What it tried.
    pub approach: Cow<'a, str>,
    /// Whether it passed.
    pub success: bool,
    /// Why not.
    pub error: Option<&'a str>,
}

/// A subtask that was given up.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct StuckSubtask<'a> {
    /// Which.
    pub subtask_id: &'a str,
    /// Why.
    pub reason: &'a str,
    /// The time of its last attempt.
    pub escalated_at: Timestamp,
    /// How many attempts were made.
    pub attempt_count: usize,
}

/// How many runs that are over are in the view for themselves; `attempt list` has them all.
const ENDED_IN_VIEW: usize = 5;
/// How many older ones may be for the sake of a subtask that they share with those.
const RELATED_IN_VIEW: usize = 50;

/// What the view holds: the runs that go on and the latest of those that are over, with all that is known of their
/// subtasks, and what was imported. It is written at every attempt, and must not grow for ever.
fn recent_history(state: &State) -> AttemptHistory<'_> {
    let mut ended: Vec<(usize, &Run)> =
        state.runs.iter().enumerate().filter(|(_, run)| run.status.has_ended()).collect();
    ended.sort_by_key(|(_, run)| Reverse(run.last_seq));
    let is_import = |run: &Run| run.imported.iter().any(|one| one.imported.kind == ImportKind::AttemptHistory);
    let mut shown: Vec<(usize, &Run)> =
        state.runs.iter().enumerate().filter(|(_, run)| !run.status.has_ended() || is_import(run)).collect();
    let older = ended.split_off(ended.len().min(ENDED_IN_VIEW));
    shown.extend(ended.into_iter().filter(|(_, run)| !is_import(run)));
    let names: BTreeSet<u32> = shown.iter().flat_map(|(_, run)| &run.subtasks).copied().collect();
    let related =
        older.into_iter().filter(|(_, run)| !is_import(run) && run.subtasks.iter().any(|name| names.contains(name)));
    shown.extend(related.take(RELATED_IN_VIEW));
    shown.sort_by_key(|(place, _)| *place);
    history(shown.into_iter().map(|(_, run)| run))
}

/// Folds all runs into the history.
pub fn attempt_history(state: &State) -> AttemptHistory<'_> {
    history(state.runs.iter())
}

fn history<'a>(runs: impl Iterator<Item = &'a Run>) -> AttemptHistory<'a> {
    let mut history = AttemptHistory::default();
    let mut sessions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut given_up: BTreeMap<&str, &str> = BTreeMap::new();

    // What another of their files tells is not in this one, until its run goes on.
    let told_here = |run: &&Run| run.last_import_untouched().is_none_or(|kind| kind == ImportKind::AttemptHistory);
    let mut attempts: Vec<_> = runs.filter(told_here).flat_map(Run::attempts).collect();
    attempts.sort_by_key(|(_, attempt)| attempt.started_at);

    for (iteration, attempt) in attempts {
        let known = sessions.entry(&attempt.subtask).or_default();
        let session = known.iter().position(|name| *name == attempt.session).unwrap_or_else(|| {
            known.push(&attempt.session);
            known.len() - 1
        });
        let subtask = history.subtasks.entry(&attempt.subtask).or_default();
        subtask.attempts.push(HistoryAttempt {
            session: session as u64 + 1,
            timestamp: attempt.started_at,
            approach: match &attempt.approach {
                Some(approach) => Cow::Borrowed(approach),
                None => Cow::Owned(format!("Attempt {}", attempt.number)),
            },
            success: attempt.outcome == Some(AttemptOutcome::Passed),
            error: attempt.failure.as_ref().map(|failure| failure.message.as_str()),
        });
        // An iteration that several subtasks share speaks for the last of them only.
        let speaks = iteration.attempts.last().is_some_and(|last| last.subtask == attempt.subtask);
        subtask.status = match (attempt.outcome, iteration.status) {
            (Some(AttemptOutcome::Passed), _) => "completed",
            (_, IterationStatus::Completed) if speaks => "completed",
            (_, IterationStatus::Skipped) if speaks => "stuck",
            (_, IterationStatus::InProgress) if speaks => "in_progress",
            (_, IterationStatus::Superseded | IterationStatus::Cancelled | IterationStatus::Pending) if speaks => {
                "pending"
            }
            // An interrupted attempt tells nothing new.
            (Some(AttemptOutcome::Cancelled), _) if subtask.attempts.len() > 1 => continue,
            (Some(AttemptOutcome::Cancelled), _) => "pending",
            (None, _) => "in_progress",
            (Some(AttemptOutcome::Failed), _) => "failed",
        };
        let escalated = attempt.decision.as_ref().is_some_and(|decision| decision.has(Action::Escalate));
        if subtask.status == "stuck" || (subtask.status == "failed" && escalated) {
            subtask.status = "stuck";
            let reason = iteration.reason.as_deref().or(attempt.decision.as_ref().map(|d| d.reason.as_str()));
            given_up.insert(&attempt.subtask, reason.unwrap_or("given up"));
        } else {
            given_up.remove(attempt.subtask.as_str());
        }
    }
    for (subtask_id, reason) in given_up {
        let attempts = &history.subtasks[subtask_id].attempts;
        let Some(last) = attempts.last() else { continue };
        history.stuck_subtasks.push(StuckSubtask {
            reason,
            escalated_at: last.timestamp,
            attempt_count: attempts.len(),
            subtask_id,
        });
    }
    history
}

/// The history as its file has it: what was imported stands as it was written there, until there is an attempt more.
pub fn attempt_view(state: &State) -> impl Serialize + use<'_> {
    let AttemptHistory { subtasks, stuck_subtasks } = recent_history(state);
    let mut untouched = imported_subtasks(state);
    untouched.retain(|id, (document, _)| {
        let told = document["attempts"].as_array().map_or(0, Vec::len);
        subtasks.get(id).map_or(0, |subtask| subtask.attempts.len()) == told
    });
    let is_own = |entry: &StuckSubtask<'_>| !untouched.contains_key(entry.subtask_id);
    let mut view = View {
        stuck_subtasks: stuck_subtasks.into_iter().filter(is_own).map(Told::Own).collect(),
        subtasks: subtasks.into_iter().map(|(id, subtask)| (id, Told::Own(subtask))).collect(),
    };
    for (id, (subtask, entries)) in untouched {
        view.subtasks.insert(id, Told::Imported(subtask));
        view.stuck_subtasks.extend(entries.into_iter().map(Told::Imported));
    }
    view
}

#[derive(Serialize)]
struct View<'a> {
    subtasks: BTreeMap<&'a str, Told<'a, Subtask<'a>>>,
    stuck_subtasks: Vec<Told<'a, StuckSubtask<'a>>>,
}

/// What is told by the ledger, or as another system wrote it.
#[derive(Serialize)]
#[serde(untagged)]
enum Told<'a, T> {
    Own(T),
    Imported(&'a Value),
}

/// Subtasks as they were imported, each with its entry among the stuck ones.
fn imported_subtasks(state: &State) -> BTreeMap<&str, (&Value, Vec<&Value>)> {
    let mut all: Vec<_> = state.runs.iter().flat_map(|run| &run.imported).collect();
    all.retain(|one| one.imported.kind == ImportKind::AttemptHistory);
    all.sort_by_key(|one| one.seq);
    let mut subtasks = BTreeMap::new();
    for document in all.iter().map(|one| &one.imported.document) {
        let stuck = document["stuck_subtasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (id, subtask) in document["subtasks"].as_object().into_iter().flatten() {
            let names = |entry: &&Value| entry.as_str().or_else(|| entry["subtask_id"].as_str()) == Some(id.as_str());
            subtasks.insert(id.as_str(), (subtask, stuck.iter().filter(names).collect()));
        }
    }
    subtasks
}
