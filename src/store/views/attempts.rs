//! `attempt_history.json` (A3): attempts by subtask across restarts.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::model::attempt::Attempt;
use crate::model::import::IMPORTED_SESSION;
use crate::model::operation::UndoEntry;
use crate::model::run::{run_of_subtask, subtask_checksum};
use crate::model::{
    Action, AttemptOutcome, CheckpointId, ImportKind, IterationStatus, Run, State, Timestamp,
};

use super::ITERATIONS_IN_VIEW;

/// The history of all subtasks.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct AttemptHistory<'a> {
    /// By subtask id.
    pub subtasks: BTreeMap<&'a str, Subtask<'a>>,
    /// Those that were given up, for a person (A7).
    pub stuck_subtasks: Vec<StuckSubtask<'a>>,
}

/// One subtask.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Subtask<'a> {
    /// Oldest first.
    pub attempts: Vec<HistoryAttempt<'a>>,
    /// `pending`, `in_progress`, `failed`, `completed` or `stuck`.
    pub status: &'a str,
    /// Rollbacks that took attempts of it back, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Option<Vec<HistoryRollback>>")]
    pub rollbacks: Vec<HistoryRollback<'a>>,
}

/// A rollback that took attempts of a subtask back.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct HistoryRollback<'a> {
    /// When.
    pub timestamp: Timestamp,
    /// Where to.
    pub checkpoint_id: &'a CheckpointId,
    /// Whether the run did it by itself.
    pub automatic: bool,
}

/// One attempt.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct HistoryAttempt<'a> {
    /// Which session: as it was imported, else counted on from 1 for each subtask.
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
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct StuckSubtask<'a> {
    /// Which.
    pub subtask_id: &'a str,
    /// Why.
    pub reason: &'a str,
    /// The time of its last attempt; where neither that nor the time itself was imported, when that was.
    pub escalated_at: Timestamp,
    /// How many attempts were made.
    pub attempt_count: usize,
}

/// How many runs that are over are in the view for themselves, as long as they have no more than [`ITERATIONS_IN_VIEW`]
/// between them; the latest one is there in any case. `attempt list` has them all.
const ENDED_IN_VIEW: usize = 8;
/// How many older ones may be for the sake of a subtask that they share with those.
const RELATED_IN_VIEW: usize = 50;

/// What the view holds: the runs that go on and the latest of those that are over, with what they last did for their
/// subtasks, and what was imported. It is written at every attempt, and must not grow for ever.
fn recent_history(state: &State) -> AttemptHistory<'_> {
    let mut ended: Vec<(usize, &Run)> = state
        .runs
        .iter()
        .enumerate()
        .filter(|(_, run)| run.status.has_ended())
        .collect();
    ended.sort_by_key(|(_, run)| Reverse(run.last_seq));
    let mut shown: Vec<(usize, &Run)> = state
        .runs
        .iter()
        .enumerate()
        .filter(|(_, run)| !run.status.has_ended() || is_import(run))
        .collect();
    let mut seen = 0;
    let told = ended.iter().take(ENDED_IN_VIEW).take_while(|(_, run)| {
        let is_first = seen == 0;
        seen += run.iterations.len();
        is_first || seen <= ITERATIONS_IN_VIEW
    });
    let older = ended.split_off(told.count());
    shown.extend(ended.into_iter().filter(|(_, run)| !is_import(run)));
    let most = |run: &Run| {
        if is_import(run) {
            usize::MAX
        } else {
            ITERATIONS_IN_VIEW
        }
    };
    let iterations = shown
        .iter()
        .flat_map(|(_, run)| run.iterations.recent(most(run)));
    let shares = sharing(
        iterations
            .flat_map(|one| &one.attempts)
            .map(|one| one.subtask.as_str())
            .collect(),
    );
    let related = older
        .into_iter()
        .filter(|(_, run)| !is_import(run) && shares(run));
    shown.extend(related.take(RELATED_IN_VIEW));
    shown.sort_by_key(|(place, _)| *place);
    history(state, shown.into_iter().map(|(_, run)| (run, most(run))))
}

/// Whether another system's history was taken over into the run.
fn is_import(run: &Run) -> bool {
    run.imported
        .iter()
        .any(|one| one.imported.kind == ImportKind::AttemptHistory)
}

/// Which runs may have attempts that are booked on any of these.
fn sharing(subtasks: BTreeSet<&str>) -> impl Fn(&Run) -> bool {
    let names: BTreeSet<u32> = subtasks
        .iter()
        .map(|subtask| subtask_checksum(subtask))
        .collect();
    let owners: BTreeSet<&str> = subtasks.into_iter().filter_map(run_of_subtask).collect();
    move |run| {
        owners.contains(run.key.run_id.as_str())
            || run.subtasks.iter().any(|name| names.contains(name))
    }
}

/// Folds all runs into the history. What was imported stays as it was recorded there, until there is an attempt more.
pub(crate) fn attempt_history(state: &State) -> AttemptHistory<'_> {
    history_with_imports(state, state.runs.iter())
}

/// The history of the subtasks that `run` worked on.
pub(crate) fn attempt_history_of<'a>(state: &'a State, run: &Run) -> AttemptHistory<'a> {
    let shares = sharing(
        run.attempts()
            .map(|(_, attempt)| attempt.subtask.as_str())
            .collect(),
    );
    history_with_imports(
        state,
        state
            .runs
            .iter()
            .filter(|other| is_import(other) || shares(other)),
    )
}

fn history_with_imports<'a>(
    state: &'a State,
    runs: impl Iterator<Item = &'a Run>,
) -> AttemptHistory<'a> {
    let mut history = history(state, runs.map(|run| (run, usize::MAX)));
    for (id, imported) in untouched(state, &history) {
        history.stuck_subtasks.retain(|own| own.subtask_id != id);
        let own = history.subtasks.remove(id);
        let subtask = imported
            .subtask
            .map(|document| subtask(document, own.as_ref()));
        let attempts = subtask
            .as_ref()
            .map_or(&[][..], |subtask| &subtask.attempts);
        let stuck: Vec<_> = imported
            .stuck
            .iter()
            .map(|entry| stuck(id, entry, attempts, imported.at))
            .collect();
        history.stuck_subtasks.extend(stuck);
        history
            .subtasks
            .extend(subtask.map(|subtask| (id, subtask)));
    }
    history
}

/// A subtask that was imported. What its document does not say is shown as it was imported.
fn subtask<'a>(document: &'a Value, own: Option<&Subtask<'a>>) -> Subtask<'a> {
    let attempts = document["attempts"]
        .as_array()
        .into_iter()
        .flatten()
        .zip(1_u64..);
    let attempts = attempts.filter_map(|(attempt, number)| {
        Some(HistoryAttempt {
            session: attempt["session"].as_u64().unwrap_or(1),
            timestamp: attempt["timestamp"].as_str()?.parse().ok()?,
            approach: match attempt["approach"].as_str() {
                Some(approach) => Cow::Borrowed(approach),
                None => Cow::Owned(format!("Attempt {number}")),
            },
            success: attempt["success"].as_bool()?,
            error: attempt["error"].as_str(),
        })
    });
    let status = document["status"].as_str().or(own.map(|own| own.status));
    Subtask {
        attempts: attempts.collect(),
        status: status.unwrap_or("pending"),
        rollbacks: Vec::new(),
    }
}

/// The entry of a subtask that was given up elsewhere.
fn stuck<'a>(
    subtask_id: &'a str,
    entry: &'a Value,
    attempts: &[HistoryAttempt<'_>],
    imported_at: Timestamp,
) -> StuckSubtask<'a> {
    let last = || attempts.last().map_or(imported_at, |last| last.timestamp);
    StuckSubtask {
        subtask_id,
        reason: entry["reason"].as_str().unwrap_or("given up"),
        escalated_at: entry["escalated_at"]
            .as_str()
            .and_then(|at| at.parse().ok())
            .unwrap_or_else(last),
        attempt_count: entry["attempt_count"]
            .as_u64()
            .and_then(|count| usize::try_from(count).ok())
            .unwrap_or(attempts.len()),
    }
}

/// The history of these runs, each with as many of its [recent](crate::model::attempt::Iterations::recent) iterations.
fn history<'a>(
    state: &'a State,
    runs: impl Iterator<Item = (&'a Run, usize)>,
) -> AttemptHistory<'a> {
    let rollbacks = rollbacks(state);
    let mut history = AttemptHistory::default();
    let mut sessions: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
    let mut given_up: BTreeMap<&str, &str> = BTreeMap::new();

    // What another of their files holds is not in this one, until its run goes on.
    let is_own = |run: &Run| {
        run.attempts()
            .any(|(_, attempt)| attempt.checkpoint_id.is_some())
    };
    let told_here =
        |run: &Run| run.last_import_untouched().is_none() || is_import(run) || is_own(run);
    let iterations = runs
        .filter(|(run, _)| told_here(run))
        .flat_map(|(run, most)| {
            let recent = run.iterations.recent(most).into_iter();
            recent.map(move |iteration| (run, iteration))
        });
    let attempts = iterations.flat_map(|(run, iteration)| {
        let attempts = iteration.attempts.iter();
        attempts.map(move |attempt| (run, iteration, attempt))
    });
    let mut attempts: Vec<_> = attempts.collect();
    attempts.sort_by_key(|(_, _, attempt)| attempt.started_at);

    for (run, iteration, attempt) in attempts {
        let known = sessions.entry(&attempt.subtask).or_default();
        let session = known
            .get(attempt.session.as_str())
            .copied()
            .unwrap_or_else(|| {
                let told = attempt
                    .session
                    .strip_prefix(IMPORTED_SESSION)
                    .and_then(|number| number.parse().ok());
                told.unwrap_or_else(|| {
                    known
                        .values()
                        .max()
                        .map_or(1, |last: &u64| last.saturating_add(1))
                })
            });
        known.insert(&attempt.session, session);
        let subtask = history.subtasks.entry(&attempt.subtask);
        let subtask = subtask.or_insert_with(|| Subtask {
            attempts: Vec::new(),
            status: "pending",
            rollbacks: Vec::new(),
        });
        let took_back = rollbacks.iter().filter(|one| one.took_back(run, attempt));
        for entry in took_back.map(|one| one.entry) {
            if !subtask
                .rollbacks
                .iter()
                .any(|known| known.timestamp == entry.at)
            {
                subtask.rollbacks.extend(HistoryRollback::of(entry));
            }
        }
        subtask.attempts.push(HistoryAttempt {
            session,
            timestamp: attempt.started_at,
            approach: match &attempt.approach {
                Some(approach) => Cow::Borrowed(approach),
                None => Cow::Owned(format!("Attempt {}", attempt.number)),
            },
            success: attempt.outcome == Some(AttemptOutcome::Passed),
            error: attempt
                .failure
                .as_ref()
                .map(|failure| failure.message.as_str()),
        });
        // An iteration that several subtasks share speaks for the last of them only.
        let speaks = iteration
            .attempts
            .last()
            .is_some_and(|last| last.subtask == attempt.subtask);
        subtask.status = match (attempt.outcome, iteration.status) {
            // Taken back by a rollback: to be done again.
            (_, IterationStatus::Superseded) if speaks => "pending",
            (Some(AttemptOutcome::Passed), _) => "completed",
            (_, IterationStatus::Skipped) if speaks && iteration.stuck.is_some() => "stuck",
            // One that was skipped and is not stuck a person took as it is.
            (_, IterationStatus::Completed | IterationStatus::Skipped) if speaks => "completed",
            (_, IterationStatus::InProgress) if speaks => "in_progress",
            (_, IterationStatus::Cancelled | IterationStatus::Pending) if speaks => "pending",
            // An interrupted attempt adds nothing.
            (Some(AttemptOutcome::Cancelled), _) if subtask.attempts.len() > 1 => continue,
            (Some(AttemptOutcome::Cancelled), _) => "pending",
            (None, _) => "in_progress",
            (Some(AttemptOutcome::Failed), _) => "failed",
        };
        let own = attempt
            .decision
            .as_ref()
            .filter(|decision| decision.has(Action::Escalate))
            .map(|decision| decision.reason.as_str());
        let stuck = if speaks {
            iteration.stuck.as_deref()
        } else {
            own.filter(|_| subtask.status == "failed")
        };
        match stuck {
            Some(reason) => {
                if matches!(subtask.status, "failed" | "pending") {
                    subtask.status = "stuck";
                }
                given_up.insert(&attempt.subtask, reason);
            }
            None if subtask.status != "failed" => {
                given_up.remove(attempt.subtask.as_str());
            }
            None => {}
        }
    }
    for (subtask_id, reason) in given_up {
        let attempts = &history.subtasks[subtask_id].attempts;
        let Some(last) = attempts.last() else {
            continue;
        };
        history.stuck_subtasks.push(StuckSubtask {
            reason,
            escalated_at: last.timestamp,
            attempt_count: attempts.len(),
            subtask_id,
        });
    }
    history
}

/// A rollback that stands, and when what it went back to was taken.
struct Rollback<'a> {
    entry: &'a UndoEntry,
    since: Timestamp,
}

impl Rollback<'_> {
    fn took_back(&self, run: &Run, attempt: &Attempt) -> bool {
        self.entry.run.as_ref() == Some(&run.key)
            && (self.since..self.entry.at).contains(&attempt.started_at)
    }
}

impl<'a> HistoryRollback<'a> {
    fn of(entry: &'a UndoEntry) -> Option<Self> {
        Some(Self {
            timestamp: entry.at,
            checkpoint_id: entry.restored.as_ref()?,
            automatic: entry.of_run,
        })
    }
}

/// The rollbacks that were not undone, oldest first.
fn rollbacks(state: &State) -> Vec<Rollback<'_>> {
    let entries = state
        .worktrees
        .values()
        .flat_map(|worktree| worktree.undo.iter().chain(&worktree.of_runs));
    let mut all: Vec<_> = entries
        .filter(|entry| entry.kind.is_rollback() && entry.scope.covers_files())
        .filter_map(|entry| {
            let since = state.checkpoint(entry.restored.as_ref()?)?.created_at;
            Some(Rollback { entry, since })
        })
        .collect();
    all.sort_by_key(|one| one.entry.at);
    all
}

/// The history as its file has it: what was imported stands as it was written there, until there is an attempt more.
pub fn attempt_view(state: &State) -> impl Serialize + use<'_> {
    let recent = recent_history(state);
    let untouched = untouched(state, &recent);
    let AttemptHistory {
        subtasks,
        stuck_subtasks,
    } = recent;
    let is_own = |entry: &StuckSubtask<'_>| !untouched.contains_key(entry.subtask_id);
    let mut view = View {
        stuck_subtasks: stuck_subtasks
            .into_iter()
            .filter(is_own)
            .map(Told::Own)
            .collect(),
        subtasks: subtasks
            .into_iter()
            .map(|(id, subtask)| (id, Told::Own(subtask)))
            .collect(),
    };
    for (id, imported) in untouched {
        view.subtasks.extend(
            imported
                .subtask
                .map(|subtask| (id, Told::Imported(subtask))),
        );
        view.stuck_subtasks
            .extend(imported.stuck.into_iter().map(Told::Imported));
    }
    view
}

#[derive(Serialize)]
struct View<'a> {
    subtasks: BTreeMap<&'a str, Told<'a, Subtask<'a>>>,
    stuck_subtasks: Vec<Told<'a, StuckSubtask<'a>>>,
}

/// What the ledger holds, or what another system wrote.
#[derive(Serialize)]
#[serde(untagged)]
enum Told<'a, T> {
    Own(T),
    Imported(&'a Value),
}

/// A subtask as it was imported.
struct ImportedSubtask<'a> {
    /// Its document; `None` where it is only known that it was given up.
    subtask: Option<&'a Value>,
    /// Its entries among the stuck ones.
    stuck: Vec<&'a Value>,
    /// When it was imported, and the place of the run.
    at: Timestamp,
    run: usize,
}

/// The imported subtasks that have no attempt more in the history.
fn untouched<'a>(
    state: &'a State,
    history: &AttemptHistory<'_>,
) -> BTreeMap<&'a str, ImportedSubtask<'a>> {
    let runs = state.runs.iter().enumerate();
    let mut all: Vec<_> = runs
        .flat_map(|(run, of)| of.imported.iter().map(move |one| (run, one)))
        .collect();
    all.retain(|(_, one)| one.imported.kind == ImportKind::AttemptHistory);
    all.sort_by_key(|(_, one)| one.seq);
    let mut subtasks: BTreeMap<&str, ImportedSubtask<'_>> = BTreeMap::new();
    for (run, one) in all {
        let document = &one.imported.document;
        // The run's document of before said so, and this one speaks for itself.
        subtasks.retain(|_, known| known.subtask.is_some() || known.run != run);
        for (id, subtask) in document["subtasks"].as_object().into_iter().flatten() {
            subtasks.insert(
                id,
                ImportedSubtask {
                    subtask: Some(subtask),
                    stuck: Vec::new(),
                    at: one.at,
                    run,
                },
            );
        }
        let stuck = document["stuck_subtasks"].as_array().into_iter().flatten();
        let named = |entry: &'a Value| {
            Some((
                entry.as_str().or_else(|| entry["subtask_id"].as_str())?,
                entry,
            ))
        };
        let mut given_up: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for (id, entry) in stuck.filter_map(named) {
            given_up.entry(id).or_default().push(entry);
        }
        for (id, stuck) in given_up {
            let known = subtasks.remove(id).and_then(|known| known.subtask);
            subtasks.insert(
                id,
                ImportedSubtask {
                    subtask: known,
                    stuck,
                    at: one.at,
                    run,
                },
            );
        }
    }
    subtasks.retain(|id, imported| {
        let told = imported
            .subtask
            .and_then(|subtask| subtask["attempts"].as_array())
            .map_or(0, Vec::len);
        history
            .subtasks
            .get(id)
            .map_or(0, |subtask| subtask.attempts.len())
            == told
    });
    subtasks
}
