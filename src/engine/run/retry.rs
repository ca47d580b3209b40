//! Whether another attempt is allowed, waiting for it, and resetting the count of failures (L2, L4).

use std::time::Duration;

use crate::engine::attempt::preconditions::reconsider;
use crate::engine::attempt::run_summary::{Retry, item_retry_status, run_retry_status};
use crate::engine::base::heartbeat::is_alive;
use crate::engine::base::progress::{ProgressEvent, WakeReason};
use crate::engine::base::runs::{driven_by, driver};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::exchange::views;
use crate::engine::record::run_settings::{max_attempts, settings_of};
use crate::engine::record::{attempt_record, limits, liveness, select};
use crate::engine::recovery;
use crate::model::decision::BudgetScope;
use crate::model::{
    Action, Hint, Payload, ProcessId, Run, RunKey, Standing, State, TaskId, Timestamp,
};
use crate::policy::retry::{Account, Item, RetryStatus};
use crate::store::NewEvent;
use crate::store::views::write_views;

/// Looks without writing: an attempt whose supervisor was killed counts as crashed already.
pub(crate) fn look(context: &Context, about: &About) -> Result<Retry> {
    look_at(context, &*recovery::load_recovered(context)?, about)
}

/// The item of a loop that is asked about; none: how the run stands.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    /// Its iteration.
    pub iteration: Option<u32>,
    /// What its attempts are booked on.
    pub subtask: Option<String>,
    /// Whether `--task` names it, too.
    pub task: Option<TaskId>,
}

/// [`look`] at a state that was read already. Of a run that the environment alone names, and that is not there, nothing
/// has been recorded yet; of one that another system's file describes, that says how it stands.
pub(crate) fn look_at(context: &Context, state: &State, about: &About) -> Result<Retry> {
    let found = match select::find_for_loop(context, state) {
        Err(error)
            if error.kind == ErrorKind::RunNotFound
                && (context.naming().by_environment
                    || views::foreign_run(context, state).is_some()) =>
        {
            None
        }
        found => found?,
    };
    let own = of_run(context, state, found, about);
    Ok(views::hold_back(context, state, own))
}

fn of_run(context: &Context, state: &State, run: Option<&Run>, about: &About) -> Retry {
    let Some(mut run) = run.cloned() else {
        return Retry {
            run: None,
            seen: None,
            status: None,
            standing: Standing::Allowed,
            max_attempts: max_attempts(&context.settings().retry),
            under_way: None,
            is_driven: false,
            limit: None,
        };
    };
    reconsider(context, &mut run);
    let task = about.task.as_ref();
    let item = Item::of(&run, about.iteration, about.subtask.as_deref(), task);
    let (seen, status) = match item {
        None => (None, run_retry_status(context, state, &run)),
        Some(item) => {
            let mut seen = item.seen_from(&run);
            reconsider(context, &mut seen);
            let status = item_retry_status(context, state, &seen, &item);
            (Some(seen), status)
        }
    };
    let may_begin = status.standing == Standing::Allowed && !run.status.has_ended();
    let limit = limits::hold(context, &run).filter(|_| may_begin && run.live.is_none());
    let standing = limit.as_ref().and_then(|limit| limit.until);
    let standing = standing.map_or(status.standing, Standing::Wait);
    let others = driver(context.store(), &run).filter(|driver| !driver.is_own());
    Retry {
        max_attempts: max_attempts(&settings_of(context, &run).retry),
        under_way: others
            .as_ref()
            .filter(|_| may_begin && limit.is_none())
            .map(|driver| driver.pid),
        is_driven: others.is_some() || limit.is_some() && liveness::is_driven(context, &run.key),
        run: Some(run),
        seen,
        status: Some(status),
        standing,
        limit,
    }
}

/// Sleeps until an attempt is allowed; `longest` bounds the wait (exit 9). A standing that no wait changes is returned
/// as it is.
pub(crate) fn wait(context: &Context, longest: Option<Duration>, about: &About) -> Result<Retry> {
    let deadline = longest.map(|longest| context.clock.now().plus(longest));
    loop {
        let retry = look(context, about)?;
        let Standing::Wait(until) = retry.standing else {
            return Ok(retry);
        };
        // Nobody is asked for anything here.
        sleep(
            context,
            &Awaited::of(retry.run.as_ref(), until, &|| false),
            deadline,
        )?;
    }
}

/// What is waited for.
pub(crate) struct Awaited<'a> {
    pub until: Timestamp,
    /// When the trouble began that is not the agent's doing.
    pub since: Option<Timestamp>,
    /// `until` is a time that a limit names.
    pub is_reset: bool,
    /// Another run met it: nothing of this one says so.
    pub is_shared: bool,
    /// The run does not wait beyond this.
    pub latest: Option<Timestamp>,
    pub reason: String,
    /// Whether the wait is over before that.
    pub is_over: &'a dyn Fn() -> bool,
}

impl<'a> Awaited<'a> {
    /// What was decided about `run`.
    pub(crate) fn of(run: Option<&Run>, until: Timestamp, is_over: &'a dyn Fn() -> bool) -> Self {
        let parked = run.and_then(|run| run.parked.as_ref());
        let decided = run.and_then(|run| run.decision.as_ref());
        let reason = parked.map(|parked| &parked.text);
        Self {
            until,
            since: parked.map(|parked| parked.since),
            is_reset: run.is_some_and(Run::waits_for_reset),
            is_shared: false,
            latest: None,
            reason: reason
                .or(decided.map(|decision| &decision.reason))
                .cloned()
                .unwrap_or_default(),
            is_over,
        }
    }

    /// Whether it is known to end too late: only then is it not even begun.
    pub(crate) fn is_futile(&self, deadline: Option<Timestamp>) -> bool {
        let mut latest = deadline.into_iter().chain(self.latest);
        self.is_reset && latest.any(|latest| latest < self.until)
    }
}

/// Sleeps until it is time, or gives up where `deadline` comes first: before sleeping, not after. Who watches may cut it
/// short.
pub(crate) fn sleep(
    context: &Context,
    awaited: &Awaited<'_>,
    deadline: Option<Timestamp>,
) -> Result<WakeReason> {
    context.progress.begin_wait();
    context.emit(ProgressEvent::Waiting {
        until: awaited.until,
        parked: awaited.since.is_some(),
        reason: &awaited.reason,
    });
    let slept = sleep_until(context, awaited, deadline);
    context.emit(ProgressEvent::Waited);
    slept
}

fn sleep_until(
    context: &Context,
    awaited: &Awaited<'_>,
    deadline: Option<Timestamp>,
) -> Result<WakeReason> {
    let until = awaited.until;
    if let Some(deadline) = deadline.filter(|deadline| *deadline < until) {
        let woken = interruptible(context, deadline, awaited)?;
        if (awaited.is_over)() || woken != WakeReason::InTime {
            return Ok(woken);
        }
        let message = format!(
            "gave up waiting: the next attempt is allowed at {until}; --wait without a limit waits as long as it takes"
        );
        return Err(
            Error::new(ErrorKind::GaveUpWaiting, message).hint(Hint::recover(["retry-status"]))
        );
    }
    interruptible(context, until, awaited)
}

/// Sleeps until `wake`, which may come before what is awaited.
fn interruptible(context: &Context, wake: Timestamp, awaited: &Awaited<'_>) -> Result<WakeReason> {
    /// How soon it is noticed that a user asked for something.
    const GLANCE: Duration = Duration::from_millis(100);
    /// So soon it is noticed that the machine slept.
    const LONGEST_SLICE: Duration = Duration::from_secs(5);
    let interrupted = |signal: crate::process::Signal| {
        let message = format!(
            "interrupted by {} while waiting; no attempt was used",
            signal.name()
        );
        Error::new(ErrorKind::Interrupted(signal.exit_code()), message)
    };
    let sleeping = context.clock.wait(wake);
    // Who watches may ask for something; a clock that jumps is noticed as well.
    let slice = if context.progress.is_observed() {
        GLANCE
    } else {
        LONGEST_SLICE
    };
    loop {
        if let Some(woken) = context.progress.take_request(awaited.until) {
            return Ok(woken);
        }
        let left = context.clock.left(&sleeping);
        if left.is_zero() || (awaited.is_over)() {
            return Ok(WakeReason::InTime);
        }
        context
            .clock
            .sleep(left.min(slice), &context.interrupts)
            .map_err(interrupted)?;
    }
}

/// Refuses an attempt that would be the last of a budget which another run's attempt, under way now, may still use up
/// (exit 7): of two that want the last one, one gets it.
pub(super) fn leave_to_others(
    context: &Context,
    state: &State,
    run: &Run,
    status: &RetryStatus,
) -> Result<()> {
    let subtask = run.next_subtask(run.current_iteration, context.naming().task.as_ref());
    let session = attempt_record::session_of(context, run);
    let account = Account {
        state,
        run,
        subtask: &subtask,
        session: &session,
        witnessed: &[],
    };
    let claimed = account.under_way_elsewhere(|live| {
        live.supervisor
            .as_ref()
            .is_some_and(|supervisor| is_alive(context.store(), supervisor))
    });
    for budget in &status.budgets {
        let others = match budget.scope {
            // The fallback comes after the task's attempts.
            BudgetScope::Task
                if run
                    .decision
                    .as_ref()
                    .is_some_and(|decided| decided.has(Action::Fallback)) =>
            {
                continue;
            }
            BudgetScope::Task => claimed.task,
            BudgetScope::Session => claimed.session,
            _ => continue,
        };
        if others > 0 && budget.left <= u64::from(others) {
            let scope = budget.scope.as_str();
            let message = format!(
                "another run is using the last attempt of the {scope}: resume once it has ended"
            );
            return Err(Error::new(ErrorKind::Exhausted, message)
                .hint(Hint::recover(["retry-status"]).run(&run.key)));
        }
    }
    Ok(())
}

/// Refuses (11) while a `recover` is at work on the run, on another one of its task in this work tree, or, for what
/// `concerns_worktree`, on any run there: what runs below that one may have left its session and cleared its environment,
/// and looks like anybody.
pub(super) fn refuse_at_work(
    context: &Context,
    state: &State,
    run: &Run,
    concerns_worktree: bool,
) -> Result<()> {
    let worktree = context.worktree_id();
    let is_concerned = |other: &&Run| {
        let of_task = other.task_id.is_some() && other.task_id == run.task_id;
        let is_here = other.worktree == worktree;
        other.key == run.key
            || if concerns_worktree {
                of_task || is_here
            } else {
                of_task && is_here
            }
    };
    let is_at_work = |id: &&ProcessId| !id.is_own() && is_alive(context.store(), id);
    let mut concerned = state.runs.iter().filter(is_concerned);
    let at_work =
        concerned.find_map(|run| Some((&run.key, run.driver.as_deref().filter(is_at_work)?)));
    at_work.map_or(Ok(()), |(key, driver)| Err(driven_by(key, driver)))
}

/// Forgets the run's failures and its cooldown; with `--task` alone those of all runs of the task.
///
/// # Errors
/// There is no run (4); it, its task or its work tree is at work (11).
pub(crate) fn reset(context: &Context) -> Result<Retry> {
    if !context.store().exists() {
        // Nothing is made where nothing is recorded.
        select::require(context, &context.load()?.state)?;
    }
    recovery::recover(context)?;
    let mut ledger = context.store().lock()?;
    let naming = context.naming();
    let task = naming.task.as_ref().filter(|_| naming.run_id.is_none());
    let is_of_task =
        |run: &&Run| task.is_some() && run.task_id.as_ref() == task && !run.status.has_ended();
    let mut runs: Vec<Run> = ledger
        .state()
        .runs
        .iter()
        .filter(is_of_task)
        .cloned()
        .collect();
    if runs.is_empty() {
        runs.push(match select::find_for_loop(context, ledger.state())? {
            Some(run) => run.clone(),
            None => select::require(context, ledger.state())?.clone(),
        });
    }
    for run in &runs {
        refuse_at_work(context, ledger.state(), run, true)?;
    }
    let keys: Vec<&RunKey> = runs.iter().map(|run| &run.key).collect();
    let resets = keys
        .iter()
        .map(|key| NewEvent::about(key, Payload::RetryReset {}))
        .collect();
    ledger.append(context.clock.now(), resets)?;
    let state = write_views(ledger, &keys)?;
    Ok(of_run(
        context,
        &state,
        runs.last().and_then(|run| state.run(&run.key)),
        &About::default(),
    ))
}
