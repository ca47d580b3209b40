//! Selects the run that a command is about, among those of a state.

use itertools::Itertools as _;

use crate::model::{
    FolderId, Hint, ProcessId, Run, RunId, RunKey, RunStatus, State, TaskId, Timestamp,
};
use crate::policy::text::misspelt;
use crate::store::Store;

use super::error::{Error, ErrorKind, Result};
use super::heartbeat::is_alive;

/// How the run to work on is named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Naming {
    /// `--run`, else `RECOVER_RUN_ID`.
    pub run_id: Option<RunId>,
    /// `--series`: its latest run here, unless a run is begun.
    pub series: Option<String>,
    /// Whether `RECOVER_RUN_ID` named the run.
    pub by_environment: bool,
    /// `--phase`.
    pub phase: Option<String>,
    /// `--lane`.
    pub lane: Option<String>,
    /// `--task`.
    pub task: Option<TaskId>,
    /// `RECOVER_SESSION`.
    pub session: Option<String>,
}

impl Naming {
    /// Whether a run is of the phase and lane that are named, where any are.
    pub(crate) fn fits(&self, key: &RunKey) -> bool {
        self.phase.as_ref().is_none_or(|phase| key.phase == *phase)
            && self.lane.as_ref().is_none_or(|lane| key.lane == *lane)
    }
}

/// What a command wants a run for that nobody names.
#[derive(Clone, Copy)]
pub(in crate::engine) enum Wanted<'a> {
    /// Where it stands, and going on with it.
    Course,
    /// Its checkpoints: those of which this says that they are there.
    Checkpoints(&'a dyn Fn(&Run) -> bool),
}

/// The run that a command is about: the one that `naming` names; else, of those of the work tree that are not closed, the
/// one that is at work there; else for checkpoints the one that captured something last, for everything else the one
/// that was begun or continued last. Sessions of hooks, runs that only hold checkpoints, and those within an attempt of
/// another one come after all others, those that are over last, and imported history after them.
pub(in crate::engine) fn find_as<'a>(
    store: &Store,
    naming: &Naming,
    worktree: &FolderId,
    state: &'a State,
    wanted: Wanted<'_>,
) -> Result<Option<&'a Run>> {
    if let Some(id) = &naming.run_id {
        return named(state, id, naming.phase.as_deref(), naming.lane.as_deref()).map(Some);
    }
    if let Some(series) = &naming.series {
        return Ok(of_series(state, worktree, series));
    }
    if let Some(run) = at_work(store, naming, worktree, state) {
        return Ok(Some(run));
    }
    if let Wanted::Checkpoints(has) = wanted {
        let captured = |run: &&Run| {
            state
                .checkpoints_of(&run.key)
                .next_back()
                .map(|last| last.seq)
        };
        let mut all: Vec<_> = candidates(naming, worktree, state)
            .map(|run| (captured(&run), run))
            .collect();
        all.retain(|(captured, _)| captured.is_some());
        all.sort_by_key(|(captured, _)| std::cmp::Reverse(*captured));
        if let Some((_, run)) = all.iter().find(|(_, run)| has(run)).or(all.first()) {
            return Ok(Some(run));
        }
    }
    Ok(candidates(naming, worktree, state).max_by_key(|run| {
        let is_main = run.begun_seq > 0 && !run.is_hook_session() && run.spec.within.is_none();
        match (run.is_history(), is_main, run.status.has_ended()) {
            (true, ..) => (0, run.last_seq),
            (false, false, true) => (1, run.last_seq),
            (false, false, false) => (2, run.last_seq),
            (false, true, _) => (3, run.begun_seq),
        }
    }))
}

/// The runs that may be meant where none is named by its id: those of the work tree that are not closed.
pub(in crate::engine) fn candidates<'a>(
    naming: &Naming,
    worktree: &FolderId,
    state: &'a State,
) -> impl Iterator<Item = &'a Run> {
    let Naming {
        phase, lane, task, ..
    } = naming;
    let fits = move |run: &&Run| {
        run.status != RunStatus::Closed
            && phase.as_ref().is_none_or(|phase| run.key.phase == *phase)
            && lane.as_ref().is_none_or(|lane| run.key.lane == *lane)
            && (task.is_none() || run.task_id == *task)
    };
    state.runs_of(worktree).filter(fits)
}

/// The run of the work tree whose supervisor is alive; the one that was begun last where several are, of those that are not
/// within an attempt of another one.
pub(in crate::engine) fn at_work<'a>(
    store: &Store,
    naming: &Naming,
    worktree: &FolderId,
    state: &'a State,
) -> Option<&'a Run> {
    let is_at_work = |run: &&Run| !run.status.has_ended() && driver(store, run).is_some();
    candidates(naming, worktree, state)
        .filter(is_at_work)
        .max_by_key(|run| (run.spec.within.is_none(), run.begun_seq))
}

/// The `recover` that is at work on a run.
pub(crate) fn driver<'a>(store: &Store, run: &'a Run) -> Option<&'a ProcessId> {
    let of_attempt = run.live.as_ref().and_then(|live| live.supervisor.as_ref());
    [
        of_attempt,
        run.baseline_supervisor.as_deref(),
        run.driver.as_deref(),
    ]
    .into_iter()
    .flatten()
    .find(|id| is_alive(store, id))
}

/// What to do about a process that is in the way.
pub(in crate::engine) fn way_to_stop(id: &ProcessId) -> String {
    if id.is_out_of_sight() {
        "wait for it, or stop it there: it is in another PID namespace, a container for example"
            .to_owned()
    } else {
        format!("wait for it, or stop it first with kill -INT {}", id.pid)
    }
}

/// The error of what a `recover` that works on a run is in the way of.
pub(in crate::engine) fn driven_by(key: &RunKey, id: &ProcessId) -> Error {
    let message = format!("run {key} is at work (pid {}): {}", id.pid, way_to_stop(id));
    Error::new(ErrorKind::Locked, message).hint(Hint::recover(["status"]).run(key))
}

/// The latest of these runs, oldest first, that is of a series: begun for it, or of its very name.
pub(in crate::engine) fn latest_of_series<'a>(
    runs: impl DoubleEndedIterator<Item = &'a Run>,
    series: &str,
) -> Option<&'a Run> {
    runs.rev()
        .find(|run| run.spec.series.as_deref() == Some(series) || run.key.run_id.as_str() == series)
}

/// The run that a series names: its latest one in the work tree, else anywhere.
pub(in crate::engine) fn of_series<'a>(
    state: &'a State,
    worktree: &FolderId,
    series: &str,
) -> Option<&'a Run> {
    let here = latest_of_series(state.runs_of(worktree), series);
    here.or_else(|| latest_of_series(state.runs.iter(), series))
}

/// The run of that id; several lanes may share one.
pub(crate) fn named<'a>(
    state: &'a State,
    id: &RunId,
    phase: Option<&str>,
    lane: Option<&str>,
) -> Result<&'a Run> {
    if let Some(run) = state.run(&RunKey::new(id.clone(), phase, lane)) {
        return Ok(run);
    }
    let fits = |run: &&Run| {
        run.key.run_id == *id
            && phase.is_none_or(|phase| run.key.phase == phase)
            && lane.is_none_or(|lane| run.key.lane == lane)
    };
    match state
        .runs
        .iter()
        .filter(fits)
        .collect::<Vec<_>>()
        .as_slice()
    {
        [run] => Ok(run),
        [] => {
            let ids = || state.runs.iter().map(|run| run.key.run_id.as_str());
            let begin = format!("{id}-");
            let of_it: Vec<&str> = ids().filter(|other| other.starts_with(&begin)).collect();
            let near = match misspelt(id.as_str(), ids()) {
                _ if !of_it.is_empty() => format!("; there is {}", of_it.join(", ")),
                Some(near) => format!("; did you mean '{near}'?"),
                None => String::new(),
            };
            let message = format!("no run '{id}'{near}");
            Err(Error::new(ErrorKind::RunNotFound, message).hint(Hint::recover(["runs", "--all"])))
        }
        several => Err(ambiguous(several)),
    }
}

fn ambiguous(runs: &[&Run]) -> Error {
    let list = runs
        .iter()
        .map(|run| format!("{} [{}]", run.key, run.status.as_str()));
    let message = format!(
        "several lanes share this id, choose one with --lane or --phase: {}",
        list.format(", ")
    );
    let error = Error::new(ErrorKind::Ambiguous, message);
    match runs.last() {
        Some(latest) => error.hint(Hint::recover(["status"]).run(&latest.key)),
        None => error,
    }
}

/// What was imported for its history alone is nobody's work under way.
pub(in crate::engine) fn is_open(run: &Run) -> bool {
    !run.status.has_ended() && !run.is_history()
}

/// `<prefix>-<date>-<time>`, with a number where that is taken.
pub(crate) fn new_run_id(prefix: &str, now: Timestamp, state: &State) -> RunId {
    let base = RunId::from(format!(
        "{prefix}-{}",
        now.datetime().format("%Y%m%d-%H%M%S")
    ));
    let taken = |id: &RunId| state.runs.iter().any(|run| run.key.run_id == *id);
    if !taken(&base) {
        return base;
    }
    (2..u32::MAX)
        .map(|number| RunId::from(format!("{base}-{number}")))
        .find(|id| !taken(id))
        .unwrap_or(base)
}

/// The run with this key, which was there a moment ago: a ledger that lost it meanwhile is damaged (12).
pub(crate) fn run_of(state: &State, key: &RunKey) -> Result<Run> {
    state.run(key).cloned().ok_or_else(|| {
        let message =
            format!("run {key} is gone from the ledger, which was removed or replaced meanwhile");
        Error::new(ErrorKind::Corrupt, message).hint(Hint::recover(["doctor", "--rebuild"]))
    })
}
