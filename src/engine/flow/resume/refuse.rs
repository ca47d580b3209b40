//! What a resume refuses before it touches anything, each with the way that is open instead.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::flow::missing_worktree::refuse_for_gone;
use crate::engine::record::run_settings::is_unchecked;
use crate::model::decision::Strategy;
use crate::model::hint::Hint;
use crate::model::run::{Run, RunStatus};
use crate::model::state::State;
use crate::policy::retry::end_of_fix;
use crate::store::views::resume_hint;

use super::{ResumeRequest, is_lane};

/// How many iterations a resume may leave behind undone: each is an event.
const MOST_LEFT_BEHIND: u32 = 10_000;

/// What can't be taken up: another work tree's run, an open manual fix, an iteration that is not there, a run that
/// neither failed nor was interrupted, one in which nothing ever ran.
pub(super) fn refuse(
    context: &Context,
    state: &State,
    run: &Run,
    request: &ResumeRequest,
) -> Result<()> {
    if let Some(from) = request.from_iteration {
        reachable(state, run, request.strategy, from)?;
    }
    if run.worktree != context.worktree_id()
        && state.checkpoints_of(&run.key).next().is_none()
        && is_lane(state, &run.key)
    {
        return Err(only_imported(context, state, run));
    }
    if run.worktree != context.worktree_id() {
        if let Some(refused) = refuse_for_gone(context, state, run)? {
            return Err(refused);
        }
        let there = run.worktree.path();
        let message = format!("run {} belongs to the work tree {}", run.key, run.worktree);
        let message = if there.exists() {
            message
        } else {
            format!("{message}, which is gone")
        };
        // It says how a work tree that is gone comes back.
        return Err(
            Error::new(ErrorKind::RunNotFound, message).hint(resume_hint(run, context.store()))
        );
    }
    if run.is_being_fixed() && !matches!(request.strategy, Some(Strategy::ManualThenContinue)) {
        return Err(Error::new(
            ErrorKind::NeedsPerson,
            format!("a manual fix of run {} is open", run.key),
        )
        .hint(Hint::recover(end_of_fix(is_unchecked(context, run))).run(&run.key)));
    }
    let only_holds = only_holds_checkpoints(state, run);
    if request.restart && only_holds {
        let message = format!(
            "run {} only holds checkpoints: nothing ran in it that could begin again",
            run.key
        );
        return Err(Error::new(ErrorKind::NotFailed, message)
            .hint(Hint::recover(["rollback", "--to", "initial"]).run(&run.key)));
    }
    let interrupted = matches!(
        run.status,
        RunStatus::Cancelled | RunStatus::Paused | RunStatus::Parked
    ) || (run.status == RunStatus::Pending && !run.spec.command.is_empty())
        || (run.status == RunStatus::InProgress
            && !run.spec.command.is_empty()
            && run.live.is_none());
    let failed =
        run.failure.is_some() || matches!(run.status, RunStatus::Failed | RunStatus::Escalated);
    // Steps make a lane that nothing has failed in; a command for it is run.
    let begins = is_lane(state, &run.key) && !request.command.is_empty();
    if !failed && !interrupted && !begins && !request.restart {
        let message = format!(
            "run {} is not in failed state (it is {}): there is nothing to resume",
            run.key,
            run.status.as_str()
        );
        let words: &[&str] = if only_holds {
            &["checkpoint", "list"]
        } else {
            &["resume", "--restart"]
        };
        return Err(
            Error::new(ErrorKind::NotFailed, message).hint(Hint::recover(words).run(&run.key))
        );
    }
    Ok(())
}

/// Whether nothing ever ran in a run: no command, no attempt, no stage or step of a lane.
fn only_holds_checkpoints(state: &State, run: &Run) -> bool {
    run.spec.command.is_empty()
        && run.iterations.count_attempts() == 0
        && run.steps.is_empty()
        && !is_lane(state, &run.key)
}

/// Whether a run can go on from iteration `from`: one of those it has, and where nobody said how many they are, one that
/// is known or the next. What is left behind is recorded iteration by iteration, which has its limit too.
fn reachable(state: &State, run: &Run, strategy: Option<Strategy>, from: u32) -> Result<()> {
    let (last, why) = if let Some(total) = run.spec.iterations_total {
        (total, format!("run {} has {total}", run.key))
    } else {
        let known = run
            .iterations
            .last_number()
            .unwrap_or(0)
            .max(run.current_iteration);
        let checkpoints = state
            .checkpoints_of(&run.key)
            .map(|checkpoint| checkpoint.after_iteration)
            .max();
        let next = known.max(checkpoints.unwrap_or(0)).saturating_add(1);
        (
            next,
            format!("run {} can continue from {next} at most", run.key),
        )
    };
    let farthest = run.current_iteration.saturating_add(MOST_LEFT_BEHIND);
    let (last, message) = match () {
        () if from > last => (last, format!("there is no iteration {from}: {why}")),
        () if from > farthest => (
            farthest,
            format!(
                "{} iterations would be left behind, {MOST_LEFT_BEHIND} are the most",
                from - run.current_iteration
            ),
        ),
        () => return Ok(()),
    };
    let last = last.to_string();
    let mut words = vec!["resume", "--from-iteration", &last];
    words.extend(
        strategy
            .iter()
            .flat_map(|strategy| ["--strategy", strategy.as_str()]),
    );
    Err(Error::new(ErrorKind::Usage, message).hint(Hint::recover(words).run(&run.key)))
}

/// A lane of which there are records and no checkpoint: its work tree is another system's to have made, or is made now.
fn only_imported(context: &Context, state: &State, run: &Run) -> Error {
    let message = format!(
        "lane {} was imported: it belongs to the work tree {}",
        run.key, run.worktree
    );
    let error = Error::new(ErrorKind::RunNotFound, message);
    if run.worktree.path().exists() {
        return error.hint(resume_hint(run, context.store()));
    }
    let base = state
        .lane_base(&run.key)
        .unwrap_or_else(|| "HEAD".to_owned());
    error.hint(
        Hint::git(["worktree", "add", "-b", &run.key.lane])
            .arg(run.worktree.path())
            .arg(base),
    )
}
