//! Taking a failed or interrupted run up again (B3–B7, S15).

mod checks;
mod next;

use std::path::Path;
use std::time::Duration;

use crate::model::checkpoint::{Checkpoint, trigger};
use crate::model::decision::{Action, Standing, Strategy};
use crate::model::event::Payload;
use crate::model::failure::Cause;
use crate::model::manual_fix::ManualFixStatus;
use crate::model::operation::{OperationKind, Scope};
use crate::model::run::{IterationStatus, Run, RunKey, RunStatus};
use crate::model::state::State;
use crate::policy::restore_plan::Edits;
use crate::policy::retry_status::retry_status;
use crate::store::NewEvent;
use crate::store::views::{resume_hint, write_views};

use super::attempt::run_of;
use super::context::Context;
use super::error::{Error, ErrorKind, Result};
use super::live::Woken;
use super::restore::{Commits, RestoreRequest, restore};
use super::run::{DriveOptions, Driven, Driving, drive, prompt_of};
use super::{manual_fix, retry, select, settle};

use checks::validate;

pub use checks::Check;
pub use next::next_actions;

/// How many iterations a resume may leave behind undone: each is an event.
const MOST_LEFT_BEHIND: u32 = 10_000;

/// How to take it up.
#[derive(Clone, Debug, Default)]
pub struct ResumeRequest {
    /// The run, where it is named by an argument.
    pub run_id: Option<String>,
    /// The strategy; the policy's where it is not named.
    pub strategy: Option<Strategy>,
    /// The iteration to go on from.
    pub from_iteration: Option<u32>,
    /// Leave the error out of the prompt.
    pub no_error_context: bool,
    /// More for the prompt.
    pub instructions: Option<String>,
    /// Start fresh from iteration 1.
    pub restart: bool,
    /// Prepare and print, run nothing.
    pub prepare_only: bool,
    /// Wait for the earliest time: `Some(None)` as long as it takes.
    pub wait: Option<Option<Duration>>,
    /// A command in place of the recorded one.
    pub command: Vec<String>,
}

/// What a resume did.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// Whether anything changed.
    pub changed: bool,
    /// The run afterwards.
    pub run: Run,
    /// How it was taken up.
    pub strategy: Option<Strategy>,
    /// The prompt of the attempt that came or comes next.
    pub prompt: Option<String>,
    /// Whether the command was run.
    pub executed: bool,
    /// What was looked at.
    pub validation: Vec<Check>,
    /// What came of it; `None` where nothing was run.
    pub driven: Option<Driven>,
    /// Where it stands when nothing was run.
    pub standing: Standing,
}

/// Takes the run up.
pub fn resume(context: &Context, request: &ResumeRequest, drive_options: &DriveOptions) -> Result<Resumed> {
    if !context.dry_run() {
        settle::settle(context)?;
    }
    let mut state = settle::load_settled(context)?;
    let key = chosen(context, &state, request)?;
    let run = run_of(&state, &key)?;
    if run.status == RunStatus::Complete && !request.restart {
        let validation = if is_lane(&state, &key) { validate(context, &state, &run, request) } else { Vec::new() };
        return Ok(Resumed { validation, ..untouched(context, &state, run) });
    }
    let driving = if context.dry_run() { None } else { Some(Driving::take(context, &key)?) };
    match refuse(context, &state, &run, request) {
        // A lane is told where it stands whatever its state (C4, C6).
        Err(error) if error.kind == ErrorKind::NotFailed && is_lane(&state, &key) => {
            let validation = validate(context, &state, &run, request);
            return Ok(Resumed { validation, ..untouched(context, &state, run) });
        }
        refused => refused?,
    }

    if !request.restart
        && let Some(stop) = stop_early(context, &key, request, &state)?
    {
        return Ok(stop);
    }
    state = settle::load_settled(context)?;
    let run = run_of(&state, &key)?;
    let standing = standing_of(context, &state, &run);
    let granted = request.strategy.is_some() && matches!(standing, Standing::Exhausted | Standing::NeedsPerson);
    let strategy = effective_strategy(&run, request);
    let validation = validate(context, &state, &run, request);

    if strategy == Some(Strategy::ManualThenContinue) {
        if !context.dry_run() {
            manual_fix::open(context, &key)?;
        }
        let run = run_of(&context.load()?.state, &key)?;
        let standing = Standing::NeedsPerson;
        return Ok(Resumed {
            changed: true,
            run,
            strategy,
            prompt: None,
            executed: false,
            validation,
            driven: None,
            standing,
        });
    }
    let Some(driving) = driving else {
        let prompt = prompt_of(&planned(&run, request, strategy), &run.default_subtask(run.current_iteration));
        return Ok(Resumed {
            changed: true,
            run,
            strategy,
            prompt,
            executed: false,
            validation,
            driven: None,
            standing,
        });
    };
    prepare(context, &state, &run, request, strategy, granted)?;
    let run = run_of(&context.load()?.state, &key)?;
    let prompt = prompt_of(&run, &run.default_subtask(run.current_iteration));
    if request.prepare_only || run.spec.command.is_empty() {
        let standing = Standing::Allowed;
        return Ok(Resumed {
            changed: true,
            run,
            strategy,
            prompt,
            executed: false,
            validation,
            driven: None,
            standing,
        });
    }
    let driven = drive(context, &driving, drive_options)?;
    let standing = driven.standing;
    let run = driven.run.clone();
    Ok(Resumed { changed: true, run, strategy, prompt, executed: true, validation, driven: Some(driven), standing })
}

fn is_lane(state: &State, key: &RunKey) -> bool {
    state.lane_stands(key).is_some()
}

fn chosen(context: &Context, state: &State, request: &ResumeRequest) -> Result<RunKey> {
    if let Some(id) = &request.run_id {
        let naming = context.naming();
        if naming.run_id.as_ref().is_some_and(|named| named != id) {
            return Err(Error::new(ErrorKind::Usage, "RUN and --run name different runs"));
        }
        return Ok(select::named(state, id, naming.phase.as_deref(), naming.lane.as_deref())?.key.clone());
    }
    Ok(select::require(context, state)?.key.clone())
}

fn standing_of(context: &Context, state: &State, run: &Run) -> Standing {
    let settings = retry::settings_of(context, run);
    retry_status(state, run, &settings.retry, context.clock.now()).standing
}

fn untouched(context: &Context, state: &State, run: Run) -> Resumed {
    let standing = standing_of(context, state, &run);
    Resumed {
        changed: false,
        run,
        strategy: None,
        prompt: None,
        executed: false,
        validation: Vec::new(),
        driven: None,
        standing,
    }
}

/// What can't be taken up: another work tree's run, an open manual fix, an iteration that is not there, a run that
/// neither failed nor was interrupted.
fn refuse(context: &Context, state: &State, run: &Run, request: &ResumeRequest) -> Result<()> {
    if let Some(from) = request.from_iteration {
        reachable(context, state, run, request.strategy, from)?;
    }
    if run.worktree != context.worktree_name()
        && state.checkpoints_of(&run.key).next().is_none()
        && is_lane(state, &run.key)
    {
        return Err(only_imported(context, state, run));
    }
    if run.worktree != context.worktree_name() {
        let there = Path::new(&run.worktree);
        let message = format!("run {} belongs to the work tree {}", run.key, run.worktree);
        let message = if there.exists() { message } else { format!("{message}, which is gone") };
        // It says how a work tree that is gone comes back.
        return Err(Error::new(ErrorKind::RunNotFound, message).hint(resume_hint(run, context.store())));
    }
    let open = run.manual_fix.as_ref().is_some_and(|fix| fix.status == ManualFixStatus::Active);
    if open && !matches!(request.strategy, Some(Strategy::ManualThenContinue)) {
        return Err(Error::new(ErrorKind::NeedsPerson, format!("a manual fix of run {} is open", run.key))
            .hint(context.hint_command(Some(&run.key), &["manual-fix", "verify"])));
    }
    let interrupted = matches!(run.status, RunStatus::Cancelled | RunStatus::Paused | RunStatus::Parked)
        || (run.status == RunStatus::Pending && !run.spec.command.is_empty())
        || (run.status == RunStatus::InProgress && !run.spec.command.is_empty() && run.live.is_none());
    let failed = run.failure.is_some() || matches!(run.status, RunStatus::Failed | RunStatus::Escalated);
    if !failed && !interrupted && !request.restart {
        let message = format!("Battle is not in failed state: run {} is {}", run.key, run.status.as_str());
        return Err(Error::new(ErrorKind::NotFailed, message)
            .hint(context.hint_command(Some(&run.key), &["resume", "--restart"])));
    }
    Ok(())
}

/// Whether a run can go on from iteration `from`: one of those it has, and where nobody said how many they are, one that
/// is known or the next. What is left behind is recorded iteration by iteration, which has its limit too.
fn reachable(context: &Context, state: &State, run: &Run, strategy: Option<Strategy>, from: u32) -> Result<()> {
    let (last, why) = if let Some(total) = run.spec.iterations_total {
        (total, format!("run {} has {total}", run.key))
    } else {
        let known = run.iterations.keys().next_back().copied().unwrap_or(0).max(run.current_iteration);
        let checkpoints = state.checkpoints_of(&run.key).map(|checkpoint| checkpoint.after_iteration).max();
        let next = known.max(checkpoints.unwrap_or(0)).saturating_add(1);
        (next, format!("run {} can go on from {next} at most", run.key))
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
    words.extend(strategy.iter().flat_map(|strategy| ["--strategy", strategy.as_str()]));
    let hint = context.hint_command(Some(&run.key), &words);
    Err(Error::new(ErrorKind::Usage, message).hint(hint))
}

/// A lane of which there are records and no checkpoint: its work tree is another system's to have made, or is made now.
fn only_imported(context: &Context, state: &State, run: &Run) -> Error {
    let message = format!("lane {} was imported: it belongs to the work tree {}", run.key, run.worktree);
    let error = Error::new(ErrorKind::RunNotFound, message);
    if Path::new(&run.worktree).exists() {
        return error.hint(resume_hint(run, context.store()));
    }
    let base = state.lane_base(&run.key).unwrap_or_else(|| "HEAD".to_owned());
    let main = context.worktree_name();
    let words = ["git", "-C", &main, "worktree", "add", "-b", &run.key.lane, &run.worktree, &base];
    error.hint(shlex::try_join(words).unwrap_or_else(|_| words.join(" ")))
}

/// Cooldown, exhausted budgets and decisions that need a person end a resume before it begins; a wait that is asked
/// for is taken here.
fn stop_early(context: &Context, key: &RunKey, request: &ResumeRequest, state: &State) -> Result<Option<Resumed>> {
    let run = run_of(state, key)?;
    match standing_of(context, state, &run) {
        Standing::Allowed => Ok(None),
        // Handing over is no attempt: a person need not wait.
        Standing::Wait(_) if request.strategy == Some(Strategy::ManualThenContinue) => Ok(None),
        Standing::Wait(_) if request.prepare_only || context.dry_run() => Ok(None),
        Standing::Wait(until) if context.live.waives(until) => Ok(None),
        Standing::Wait(until) => match request.wait {
            None => Ok(Some(untouched(context, state, run))),
            Some(longest) => {
                let deadline = longest.map(|longest| context.clock.now().plus(longest));
                match retry::sleep(context, Some(&run), until, deadline)? {
                    Woken::InTime | Woken::Now => Ok(None),
                    Woken::Stop => Ok(Some(untouched(context, state, run))),
                }
            }
        },
        // An explicit strategy grants one attempt.
        Standing::Exhausted | Standing::NeedsPerson if request.strategy.is_some() => Ok(None),
        Standing::Exhausted | Standing::NeedsPerson => Ok(Some(untouched(context, state, run))),
    }
}

fn effective_strategy(run: &Run, request: &ResumeRequest) -> Option<Strategy> {
    if request.restart {
        return None;
    }
    let by_policy = || {
        let decision = run.decision.as_ref().filter(|_| run.failure.is_some())?;
        if decision.has(Action::Rollback) && decision.leads_to_attempt() {
            Some(Strategy::RollbackAndRetry)
        } else {
            decision.strategy
        }
    };
    request.strategy.or_else(by_policy).or(Some(if run.failure.is_some() {
        Strategy::RetryWithContext
    } else {
        Strategy::RetrySame
    }))
}

/// The iteration that an attempt would be made of.
fn iteration_of(run: &Run, request: &ResumeRequest, strategy: Option<Strategy>) -> u32 {
    if request.restart {
        return 1;
    }
    if let Some(from) = request.from_iteration {
        return from;
    }
    let skipped = run.iterations.values().find(|iteration| iteration.status == IterationStatus::Skipped);
    let failed = run.failure.as_ref().and_then(|failure| failure.iteration);
    let at = match run.status {
        // All iterations are through: what was given up is what is left to do.
        RunStatus::Escalated => failed.or(skipped.map(|iteration| iteration.number)),
        _ => None,
    };
    let at = at.unwrap_or(run.current_iteration);
    if strategy == Some(Strategy::ContinueNext) { run.iteration_after(at) } else { at }
}

/// The run as it would stand after [`prepare`], for a dry run.
fn planned(run: &Run, request: &ResumeRequest, strategy: Option<Strategy>) -> Run {
    let mut run = run.clone();
    run.current_iteration = iteration_of(&run, request, strategy);
    run.next_instructions.clone_from(&request.instructions);
    run.next_error_context = error_context(request, strategy);
    run.resumed_with = strategy;
    run
}

fn error_context(request: &ResumeRequest, strategy: Option<Strategy>) -> bool {
    !request.no_error_context
        && !request.restart
        && matches!(strategy, Some(Strategy::RetryWithContext | Strategy::RollbackAndRetry))
}

/// The checkpoint that an automatic rollback goes back to: after a crash the run's last one that did not fail, else the
/// last good one.
pub fn way_back<'a>(state: &'a State, key: &RunKey, cause: Option<Cause>) -> Option<&'a Checkpoint> {
    if cause == Some(Cause::Crashed) {
        let attempted = |c: &Checkpoint| c.trigger == trigger::CRASH || c.is_in_between() || c.is_failed_attempt();
        let usable = |c: &&Checkpoint| !c.is_safety() && !attempted(c);
        return state.checkpoints_of(key).rfind(usable);
    }
    state.last_good(key)
}

/// Files first (that may be refused), then the ledger.
fn prepare(
    context: &Context,
    state: &State,
    run: &Run,
    request: &ResumeRequest,
    strategy: Option<Strategy>,
    granted: bool,
) -> Result<()> {
    let key = &run.key;
    if request.restart {
        if let Some(initial) = run.initial_checkpoint.as_deref().and_then(|id| state.checkpoint(id)) {
            // Starting fresh is asked for, losing somebody's edits is not.
            put_back(context, key, initial, Edits::Keep)?;
        }
    } else if strategy == Some(Strategy::RollbackAndRetry) {
        let cause = run.failure.as_ref().map(|failure| failure.cause);
        // Who asks for it takes an initial checkpoint whose checks failed already as well.
        let initial = || run.initial_checkpoint.as_deref().and_then(|id| state.checkpoint(id));
        let target = way_back(state, key, cause).or_else(initial).ok_or_else(|| {
            Error::new(ErrorKind::NoCheckpoint, "No checkpoint available to roll back to")
                .hint(context.hint_command(Some(key), &["resume", "--strategy", "retry_with_context"]))
        })?;
        put_back(context, key, target, Edits::Refuse)?;
    }
    let iteration = iteration_of(run, request, strategy);
    let mut events = Vec::new();
    let mut spec = run.spec.clone();
    if !request.command.is_empty() {
        spec.command.clone_from(&request.command);
        if spec.iterations_total.is_none() && spec.until.is_none() {
            spec.iterations_total = Some(iteration.max(1));
        }
        events.push(Payload::RunSpecChanged { spec: Box::new(spec) });
    }
    // What is left behind undone is left behind on request.
    for left in run.current_iteration..iteration {
        events.push(Payload::IterationChanged {
            iteration: left,
            status: IterationStatus::Skipped,
            reason: Some("skipped on request: the current state was accepted".to_owned()),
        });
    }
    events.push(Payload::RunResumed {
        strategy,
        iteration,
        supersede: request.restart || request.from_iteration.is_some(),
        instructions: request.instructions.clone(),
        error_context: error_context(request, strategy),
        granted: granted || (strategy == Some(Strategy::ContinueNext)),
        restart: request.restart,
    });
    let mut ledger = context.store().lock()?;
    ledger.append(context.clock.now(), events.into_iter().map(|payload| NewEvent::about(key, payload)).collect())?;
    Ok(write_views(&ledger, Some(key))?)
}

/// Puts a checkpoint's files in place of those that are there, commits of the attempt included; with `Edits::Keep` hand
/// edits stay, and HEAD where moving it would be refused.
pub fn put_back(context: &Context, key: &RunKey, target: &Checkpoint, edits: Edits) -> Result<()> {
    let mut request = RestoreRequest {
        kind: OperationKind::Rollback,
        run: Some(key.clone()),
        checkpoint_id: target.id.clone(),
        scope: Scope::All,
        paths: Vec::new(),
        commits: Commits::Refuse,
        edits,
        restore_index: false,
        reposition: None,
        undoes: None,
    };
    match restore(context, &request) {
        Err(error) if error.kind == ErrorKind::HeadMoved && edits == Edits::Keep => {
            tracing::warn!(%error, "HEAD stays; only the files go back");
            request.commits = Commits::Keep;
            restore(context, &request).map(drop)
        }
        other => other.map(drop),
    }
}
