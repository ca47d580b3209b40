//! Which run is meant, among those that a state knows.

use crate::model::folder::FolderId;
use crate::model::hint::Hint;
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::model::time::Timestamp;

use super::error::{Error, ErrorKind, Result};

/// How the run to work on is named.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// `--run`, else `RECOVER_RUN_ID`.
    pub run_id: Option<String>,
    /// `--phase`.
    pub phase: Option<String>,
    /// `--lane`.
    pub lane: Option<String>,
    /// `--task`.
    pub task: Option<String>,
    /// `RECOVER_SESSION`.
    pub session: Option<String>,
}

/// The run that `naming` names, else the only open one of the work tree; the latest one where none is open.
pub(in crate::engine) fn find_as<'a>(
    naming: &Naming,
    worktree: &FolderId,
    state: &'a State,
) -> Result<Option<&'a Run>> {
    if let Some(id) = &naming.run_id {
        return named(state, id, naming.phase.as_deref(), naming.lane.as_deref()).map(Some);
    }
    let fits = |run: &&Run| {
        naming.phase.as_ref().is_none_or(|phase| run.key.phase == *phase)
            && naming.lane.as_ref().is_none_or(|lane| run.key.lane == *lane)
            && naming.task.as_ref().is_none_or(|task| run.task_id.as_ref() == Some(task))
    };
    let here: Vec<&Run> = state.runs_of(worktree).filter(fits).collect();
    let open: Vec<&Run> = here.iter().copied().filter(|run| is_open(run)).collect();
    match open.as_slice() {
        [] => Ok(here.last().copied()),
        [run] => Ok(Some(run)),
        several => Err(ambiguous(several)),
    }
}

/// The run of that id; several lanes may share one.
pub fn named<'a>(state: &'a State, id: &str, phase: Option<&str>, lane: Option<&str>) -> Result<&'a Run> {
    if phase.is_some() || lane.is_some() {
        let key = RunKey::new(id, phase, lane);
        if let Some(run) = state.run(&key) {
            return Ok(run);
        }
    }
    let fitting: Vec<&Run> = state
        .runs
        .iter()
        .filter(|run| run.key.run_id == id)
        .filter(|run| phase.is_none_or(|phase| run.key.phase == phase) && lane.is_none_or(|lane| run.key.lane == lane))
        .collect();
    match fitting.as_slice() {
        [run] => Ok(run),
        [] => Err(Error::new(ErrorKind::RunNotFound, format!("no run '{id}'")).hint(Hint::recover(["log"]))),
        several => {
            let plain = RunKey::new(id, phase, lane);
            several.iter().find(|run| run.key == plain).copied().ok_or_else(|| ambiguous(several))
        }
    }
}

fn ambiguous(runs: &[&Run]) -> Error {
    let list: Vec<String> = runs.iter().map(|run| format!("{} [{}]", run.key, run.status.as_str())).collect();
    let message = format!("several runs are open here, choose one with --run ID: {}", list.join(", "));
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
pub fn new_run_id(prefix: &str, now: Timestamp, state: &State) -> String {
    let base = format!("{prefix}-{}", now.datetime().format("%Y%m%d-%H%M%S"));
    let taken = |id: &str| state.runs.iter().any(|run| run.key.run_id == id);
    if !taken(&base) {
        return base;
    }
    (2..u32::MAX).map(|number| format!("{base}-{number}")).find(|id| !taken(id)).unwrap_or(base)
}

/// The run with this key, which was there a moment ago: a ledger that lost it meanwhile is damaged (12).
pub fn run_of(state: &State, key: &RunKey) -> Result<Run> {
    state.run(key).cloned().ok_or_else(|| {
        let message = format!("run {key} is gone from the ledger, which was removed or replaced meanwhile");
        Error::new(ErrorKind::Corrupt, message).hint(Hint::recover(["doctor", "--rebuild"]))
    })
}
