//! What a resume depends on (S15).
//!
//! What a resume refuses before it touches anything, each with the way that is open instead.

use schemars::JsonSchema;
use serde::Serialize;

use super::{ResumeRequest, is_lane};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::lane::branch_commit;
use crate::engine::record::run_settings::{configured_checks, folder_of, is_unchecked, loops_of};
use crate::engine::rollback::refuse_for_gone;
use crate::engine::run::{Problem, missing_checks, problem_of};
use crate::model::checkpoint::trigger;
use crate::model::{Hint, ObjectId, Run, RunStatus, State, StepStatus, Strategy};
use crate::policy::report::run_state;
use crate::policy::retry::end_of_fix;
use crate::store::views::resume_hint;

/// One thing that was examined before going on (S15).
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Check {
    /// What was examined.
    #[serde(rename = "check")]
    pub name: &'static str,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found.
    pub message: String,
}

impl Check {
    fn new(name: &'static str, ok: bool, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { name, ok, message }
    }

    /// Of something that is there, or `otherwise`.
    fn there(name: &'static str, what: &str, is_there: bool, otherwise: &str) -> Self {
        let otherwise = if is_there { "" } else { otherwise };
        Self::new(name, is_there, format!("{what}{otherwise}"))
    }

    /// Of a command that a problem keeps from being started.
    fn of_command(name: &'static str, problem: Option<&Problem>, command: &str) -> Self {
        let message = problem.map_or_else(|| command.to_owned(), Problem::text);
        Self::new(name, problem.is_none(), message)
    }
}

/// What a resume depends on, examined before it goes on.
pub(super) fn validate(
    context: &Context,
    state: &State,
    run: &Run,
    request: &ResumeRequest,
) -> Vec<Check> {
    let is_there = run.worktree.path().is_dir();
    let mut checks = vec![Check::new("worktree", is_there, run.worktree.to_string())];
    let (command, dir) = request.command_of(run);
    if let Some(program) = command.first() {
        let problem = problem_of(context, command, &folder_of(context, dir));
        checks.push(Check::of_command("command", problem.as_ref(), program));
    }
    // It has its own, whatever the file says now.
    let configured = run.spec.configured.as_ref();
    if configured.is_some_and(|own| *own != configured_checks(context)) {
        let message = "the configured checks have changed; this run goes on with those it began with (resume \
        --feedback NAME=CMD replaces them)";
        checks.push(Check::new("configuration", false, message));
    }
    let missing = missing_checks(context, run);
    for feedback in loops_of(context, run) {
        let problem = missing.iter().find(|(name, _)| *name == feedback.name);
        let message = problem.map_or(&feedback.command, |(_, why)| why);
        let message = format!("{}: {message}", feedback.name);
        checks.push(Check::new("feedback", problem.is_none(), message));
    }
    if let Some(id) = &run.initial_checkpoint {
        let is_there = context
            .load()
            .is_ok_and(|loaded| loaded.state.checkpoint(id).is_some());
        let name = "initial_checkpoint";
        checks.push(Check::there(name, id.as_str(), is_there, " is gone"));
    }
    checks.extend(lane_checks(context, state, run));
    checks.extend(head_checks(context, state, run));
    checks
}

/// The branch that was checked out and the commit that was HEAD when the run was last at work in this work tree, or when
/// HEAD was last moved for it. A checkpoint of what a killed attempt left shows what was there later on, when that was found.
fn head_checks(context: &Context, state: &State, run: &Run) -> Vec<Check> {
    let here = context.worktree_id();
    let mut taken = state.checkpoints.of(&run.key);
    let latest = taken
        .rfind(|checkpoint| checkpoint.worktree == here && checkpoint.trigger != trigger::CRASH);
    // Before its work tree was made, a lane was at home elsewhere.
    let Some(latest) = latest.filter(|_| context.has_git()) else {
        return Vec::new();
    };
    let Ok(head) = context.repo().and_then(|repo| Ok(repo.head()?)) else {
        return Vec::new();
    };
    let operations = state.worktrees.get(&here);
    let entries = operations
        .iter()
        .flat_map(|worktree| worktree.undo.last().into_iter().chain(worktree.redo.last()));
    let moved = entries
        .filter(|entry| entry.at >= latest.created_at)
        .max_by_key(|entry| entry.at);
    let last = moved
        .and_then(|entry| entry.head.after.as_ref())
        .or(latest.base_commit.as_ref());

    let name = |branch: &Option<String>| match branch {
        None => "a detached HEAD".to_owned(),
        Some(branch) => branch
            .strip_prefix("refs/heads/")
            .unwrap_or(branch)
            .to_owned(),
    };
    let is_same_branch = head.branch == latest.head_ref;
    let branch = if is_same_branch {
        name(&head.branch)
    } else {
        format!(
            "{} is checked out, the run was on {}",
            name(&head.branch),
            name(&latest.head_ref)
        )
    };
    let mut checks = vec![Check::new("branch", is_same_branch, branch)];
    // Whoever works in a lane commits there between its steps.
    if state.lane_stands(&run.key).is_none() {
        let is_same_commit = head.commit.as_ref() == last;
        let short =
            |commit: Option<&ObjectId>| commit.map_or("no commit", ObjectId::short).to_owned();
        let commit = if is_same_commit {
            "as it was".to_owned()
        } else {
            format!(
                "HEAD is {}, it was {} when the run was last at work",
                short(head.commit.as_ref()),
                short(last)
            )
        };
        checks.push(Check::new("head", is_same_commit, commit));
    }
    checks
}

/// What a lane depends on beside that: its base branch, its own branch, its latest checkpoint, the commands of its steps.
fn lane_checks(context: &Context, state: &State, run: &Run) -> Vec<Check> {
    let mut checks = Vec::new();
    let Some(record) = state.lane_stands(&run.key) else {
        return checks;
    };
    if let Some(base) = state.lane_base(&run.key) {
        let is_there = branch_commit(context, &base).is_some();
        checks.push(Check::there(
            "base_branch",
            &base,
            is_there,
            " is not there",
        ));
    }
    checks.push(if let Some(checkpoint) = record.checkpoint() {
        let read = context
            .repo()
            .and_then(|repo| Ok(repo.load_checkpoint(&checkpoint.commit)?));
        let error = read.as_ref().err().map(ToString::to_string);
        let message = error.unwrap_or_else(|| checkpoint.id.to_string());
        Check::new("checkpoint", read.is_ok(), message)
    } else {
        let message = format!("{} was imported without its content", record.stage);
        Check::new("checkpoint", false, message)
    });
    for step in run
        .steps
        .iter()
        .filter(|step| step.status != StepStatus::Done)
    {
        if let Some(program) = step.start.command.first() {
            let problem = problem_of(context, &step.start.command, &step.start.cwd.path());
            let mut check = Check::of_command("step", problem.as_ref(), program);
            check.message = format!("{}: {}", step.start.name, check.message);
            checks.push(check);
        }
    }
    checks
}

/// How many iterations a resume may leave behind undone: each is an event.
const MOST_LEFT_BEHIND: u32 = 10_000;

/// What cannot be resumed: another work tree's run, an open manual fix, an iteration that is not there, a run that
/// neither failed nor was interrupted, one in which nothing ever ran.
pub(super) fn refuse(
    context: &Context,
    state: &State,
    run: &Run,
    request: &ResumeRequest,
) -> Result<()> {
    if run.spec.tasks.is_some() && request.terms.iterations.is_some() {
        let message = format!(
            "run {} has one iteration for each task: add tasks to its file instead",
            run.key
        );
        let hint = Hint::recover(["status"]).run(&run.key);
        return Err(Error::new(ErrorKind::Usage, message).hint(hint));
    }
    if let Some(from) = request.from_iteration {
        reachable(state, run, request, from)?;
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
        let is_there = run.worktree.path().exists();
        let gone = if is_there { "" } else { ", which is gone" };
        let (key, worktree) = (&run.key, &run.worktree);
        let message = format!("run {key} belongs to the work tree {worktree}{gone}");
        // It says how a work tree that is gone comes back.
        return Err(
            Error::new(ErrorKind::RunNotFound, message).hint(resume_hint(run, context.store()))
        );
    }
    if run.is_being_fixed() && !matches!(request.strategy, Some(Strategy::ManualThenContinue)) {
        let message = format!("a manual fix of run {} is open", run.key);
        let hint = Hint::recover(end_of_fix(is_unchecked(context, run))).run(&run.key);
        return Err(Error::new(ErrorKind::NeedsPerson, message).hint(hint));
    }
    let only_holds = only_holds_checkpoints(state, run);
    if request.restart && only_holds {
        let message = format!(
            "run {} only holds checkpoints: no attempt ran in it that could be restarted",
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
    if !failed && !interrupted && !begins && !request.restart && !request.extends(run) {
        let message = format!(
            "run {} is not in failed state (it is {}): there is nothing to resume",
            run.key,
            run_state(run)
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
fn reachable(state: &State, run: &Run, request: &ResumeRequest, from: u32) -> Result<()> {
    let total = request.terms.iterations.or(run.spec.iterations_total);
    let next = || {
        let known = run
            .iterations
            .last_number()
            .max(Some(run.current_iteration));
        let taken = state.checkpoints_of(&run.key);
        let captured = taken.map(|checkpoint| checkpoint.after_iteration).max();
        known.max(captured).unwrap_or(0).saturating_add(1)
    };
    let farthest = run.current_iteration.saturating_add(MOST_LEFT_BEHIND);
    let last = total.unwrap_or_else(next).min(farthest);
    if from <= last {
        return Ok(());
    }
    let message = format!(
        "no resume from iteration {from}: run {} can continue from {last} at most",
        run.key
    );
    let last = last.to_string();
    let mut words = vec!["resume", "--from-iteration", &last];
    let strategy = request.strategy.iter();
    words.extend(strategy.flat_map(|strategy| ["--strategy", strategy.as_str()]));
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
