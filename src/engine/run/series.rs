//! Series: one name for every night. Each of its runs has a number, and the next one begins where the latest ended well.
//!
//! A command that a loop runs again and again: where it fails with nothing changed, its runs are one task.

use crate::engine::base::runs::{Naming, latest_of_series};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::checkpoint::changes_since;
use crate::engine::record::liveness::is_driven;
use crate::engine::record::stored::baseline;
use crate::engine::recovery;
use crate::engine::remote::Server;
use crate::engine::run::Driven;
use crate::engine::runs::refuse_driven;
use crate::git::capture::Capture;
use crate::model::{Hint, Run, RunId, RunSpec, RunStatus, State};
use crate::policy::report::run_state;
use crate::policy::retry::{Account, REPEATED, task_spent};

/// What `run --series` is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A new run.
    Begin(RunId),
    /// The latest one, which waits.
    Resume(RunId),
}

/// What comes next in a series in this work tree.
///
/// # Errors
/// Its latest run is at work (11), or ended badly (13): a loop that starts it again and again gets no new budget.
pub(crate) fn next(context: &Context, series: &str) -> Result<Next> {
    let state = recovery::load_recovered(context)?;
    let here = context.worktree_id();
    let latest = latest_of_series(state.runs_of(&here), series);
    if let Some(run) = latest {
        refuse_driven(context, run)?;
        if is_driven(context, &run.key) {
            return Err(begun_meanwhile(series, run));
        }
        match run.status {
            RunStatus::Complete | RunStatus::Accepted | RunStatus::Closed => {}
            RunStatus::Pending | RunStatus::InProgress | RunStatus::Paused | RunStatus::Parked => {
                return Ok(Next::Resume(run.key.run_id.clone()));
            }
            RunStatus::Failed
            | RunStatus::Blocked
            | RunStatus::Cancelled
            | RunStatus::Escalated
            | RunStatus::RolledBack => return Err(ended_badly(series, run)),
        }
    }
    let remote = context.remote_name();
    let server = remote
        .map(|remote| Server::of(context, &remote))
        .transpose()?;
    let lies_there = server.map(|server| server.has()).transpose()?;
    let is_taken = |id: &RunId| {
        state.runs.iter().any(|run| run.key.run_id == *id)
            || lies_there.as_ref().is_some_and(|has| has(id))
    };
    let first = latest.map_or(1, |run| number_of(series, run).saturating_add(1));
    let named = |number: u32| match number {
        1 => RunId::from(series),
        number => RunId::from(format!("{series}-{number}")),
    };
    let free = (first..=u32::MAX).map(named).find(|id| !is_taken(id));
    let next = free.ok_or_else(|| {
        Error::new(
            ErrorKind::AlreadyExists,
            format!("series {series} has no number left"),
        )
    })?;
    Ok(Next::Begin(next))
}

/// What is said of a run that a series begins.
pub(crate) fn begins(series: &str, id: &RunId) -> String {
    format!("series {series}: this is run {id}")
}

/// The next name of the series, where the one that was chosen was taken meanwhile, in another work tree for example.
///
/// # Errors
/// As [`next`].
pub(crate) fn taken_meanwhile(context: &Context, driven: &Result<Driven>) -> Result<Option<RunId>> {
    let Naming { series, run_id, .. } = context.naming();
    let is_taken = matches!(driven, Err(error) if error.kind == ErrorKind::AlreadyExists);
    let Some(series) = series.as_ref().filter(|_| is_taken) else {
        return Ok(None);
    };
    Ok(match next(context, series)? {
        Next::Begin(id) if run_id.as_ref() != Some(&id) => Some(id),
        _ => None,
    })
}

/// The first of the runs that a new one repeats: of this command, here, the latest of which did not end well within a day, with
/// HEAD and files as they were left.
pub(super) fn repeated(
    context: &Context,
    state: &State,
    spec: &RunSpec,
    now: &Capture,
) -> Result<Option<RunId>> {
    let here = context.worktree_id();
    let is_same = |run: &&Run| {
        let (one, other) = (&run.spec, spec);
        // Another check or another time limit may be what was wrong.
        (&one.command, &one.dir, &one.prompt) == (&other.command, &other.dir, &other.prompt)
            && (&one.feedback, one.timeout_ms) == (&other.feedback, other.timeout_ms)
            && one.tasks == other.tasks
            && one.within.is_none()
            && run.task_id.is_none()
    };
    let all = state.runs_of(&here).filter(|run| run.begun_seq > 0);
    let Some(latest) = all.filter(is_same).max_by_key(|run| run.begun_seq) else {
        return Ok(None);
    };
    let is_recent = context.clock.now().since(latest.last_at) <= REPEATED;
    if latest.status.has_ended() || !is_recent {
        return Ok(None);
    }
    let left = baseline(context, state)
        .last()
        .and_then(|layer| state.checkpoint(&layer.checkpoint_id))
        .filter(|left| state.run(&left.run).is_some_and(|run| run.begun_seq > 0));
    let Some(left) = left.filter(|left| left.base_commit == now.head.commit) else {
        return Ok(None);
    };
    let (_, changed) = changes_since(context, Some(left), now)?;
    if !changed
        .iter()
        .all(|path| now.manifest.outputs.contains(path))
    {
        return Ok(None);
    }
    let first = latest.spec.repeats.as_ref().unwrap_or(&latest.key.run_id);
    refuse_spent(context, state, latest, first)?;
    context.note(format!(
        "run {} of this command did not end well, and nothing has changed since: their failed attempts are counted together; \
         recover retry-status --reset gives a new budget",
        latest.key
    ));
    Ok(Some(first.clone()))
}

/// Refuses to make a run that could not make a single attempt.
fn refuse_spent(context: &Context, state: &State, latest: &Run, first: &RunId) -> Result<()> {
    let account = Account {
        state,
        run: latest,
        subtask: &format!("{first}/iteration-1"),
        session: &latest.session,
        witnessed: &[],
    };
    let retry = &context.settings().retry;
    let Some(spent) = task_spent(&account, retry, context.clock.now()) else {
        return Ok(());
    };
    let message = format!(
        "{spent}, and nothing has changed since run {} of this command did not end well; a reset gives it a new budget",
        latest.key
    );
    let reset = Hint::recover(["retry-status", "--reset"]).run(&latest.key);
    Err(Error::new(ErrorKind::Exhausted, message).hint(reset))
}

fn number_of(series: &str, run: &Run) -> u32 {
    let rest = run.key.run_id.as_str().strip_prefix(series);
    let number = rest.and_then(|rest| rest.strip_prefix('-')?.parse().ok());
    number.unwrap_or(1)
}

/// Another process began the run that was to come next.
pub(super) fn begun_meanwhile(series: &str, run: &Run) -> Error {
    let key = &run.key;
    let message =
        format!("run {key} of series {series} was begun by another process just now: wait for it");
    Error::new(ErrorKind::Locked, message).hint(Hint::recover(["status"]).run(key))
}

fn ended_badly(series: &str, run: &Run) -> Error {
    let (key, status) = (&run.key, run_state(run));
    let message = format!(
        "the latest run of series {series}, {key}, did not end well ({status}); decide about it before the next one \
        begins: recover resume {id} --strategy retry_with_context continues it, recover discard {id} reverts it, recover close {id} leaves the \
        files as they are",
        id = key.run_id
    );
    let again = ["resume", "--strategy", "retry_with_context"];
    Error::new(ErrorKind::AlreadyExists, message).hint(Hint::recover(again).run(key))
}
