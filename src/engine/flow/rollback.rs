//! Rollback (B10): one iteration, to a checkpoint, or full; the run's bookkeeping follows.

use std::collections::BTreeSet;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::{edits, select};
use crate::engine::recovery::crash;
use crate::engine::restore::nested::NestedRequest;
use crate::engine::restore::request::{Commits, IndexMode, Restore, RestoreRequest};
use crate::model::checkpoint::Checkpoint;
use crate::model::hint::Hint;
use crate::model::id::CheckpointId;
use crate::model::operation::{OperationKind, Reposition, Scope};
use crate::model::run::{Iteration, Run, RunKey, RunStatus};
use crate::model::selector::Selector;
use crate::model::state::{Named, State};
use crate::policy::restore::Edits;

use super::missing_worktree::refuse_for_gone;
use super::restore::restore_with;

/// Where to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To before this iteration.
    Iteration(u32),
    /// To this checkpoint.
    Checkpoint(Selector),
    /// To before the run.
    Full,
    /// To the safest prior stage of a lane (C5); in any other run to the last good checkpoint, else to before the run.
    Safest,
}

/// How.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is restored.
    pub scope: Scope,
    /// Only these paths (globs).
    pub paths: Vec<String>,
    /// What to do about commits.
    pub commits: Commits,
    /// What to do about hand edits.
    pub edits: Edits,
    /// How the index follows.
    pub index: IndexMode,
    /// Whether the files of nested repositories are restored too.
    pub nested: bool,
    /// Whether copies of ignored files that are gone are put back.
    pub precious: bool,
    /// Whether everything else is restored where a path cannot be replaced.
    pub best_effort: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scope: Scope::All,
            paths: Vec::new(),
            commits: Commits::Refuse,
            edits: Edits::Refuse,
            index: IndexMode::ByPath,
            nested: false,
            precious: false,
            best_effort: false,
        }
    }
}

/// What there is to choose from.
#[derive(Clone, Debug)]
pub struct Targets {
    /// The run that a command works on.
    pub run: Run,
    /// Its checkpoints, those before restores included, oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// Id of the last good one.
    pub last_good: Option<CheckpointId>,
    /// Id of the one that it began with.
    pub initial: Option<CheckpointId>,
    /// Ids of those that a rollback went back over.
    pub superseded: BTreeSet<CheckpointId>,
}

/// The checkpoints of the run that a command works on.
pub fn targets(context: &Context) -> Result<Targets> {
    let state = crash::load_recovered(context)?;
    let run = match find(context, &state, &Target::Safest)? {
        Some(run) => run.clone(),
        None => select::require(context, &state)?.clone(),
    };
    let all = || state.checkpoints_of(&run.key);
    let superseded = all().filter(|one| !one.is_safety() && state.is_superseded(one));
    Ok(Targets {
        checkpoints: all().cloned().collect(),
        last_good: state.last_good(&run.key).map(|good| good.id.clone()),
        initial: state
            .initial(&run.key)
            .and_then(Named::kept)
            .map(|initial| initial.id.clone()),
        superseded: superseded.map(|one| one.id.clone()).collect(),
        run,
    })
}

/// The checkpoints of all runs of this work tree, oldest first: an id names one whatever run it is of.
pub fn targets_of_worktree(context: &Context) -> Result<Vec<Checkpoint>> {
    let state = crash::load_recovered(context)?;
    let worktree = context.worktree_id();
    let here: BTreeSet<&RunKey> = state.runs_of(&worktree).map(|run| &run.key).collect();
    Ok(state
        .checkpoints
        .values()
        .filter(|checkpoint| here.contains(&checkpoint.run))
        .cloned()
        .collect())
}

/// Rolls back.
pub fn rollback(context: &Context, target: &Target, options: &Options) -> Result<Restore> {
    restore_with(context, OperationKind::Rollback, |state| {
        request(context, state, target, options)
    })
}

fn request(
    context: &Context,
    state: &State,
    target: &Target,
    options: &Options,
) -> Result<RestoreRequest> {
    let run = find(context, state, target)?;
    let checkpoint = match target {
        Target::Iteration(number) => before_iteration(state, run, *number)?,
        Target::Checkpoint(selector) => select::checkpoint(context, state, selector)?,
        Target::Full => select::checkpoint(context, state, &Selector::Initial)?,
        Target::Safest => safest(state, run)?,
    };
    let touched = run.filter(|_| options.scope.covers_files());
    if let Some(refused) = touched
        .map(|run| refuse_for_gone(context, state, run))
        .transpose()?
        .flatten()
    {
        return Err(refused);
    }
    // A checkpoint of another run may be restored; only the run it belongs to moves along.
    let run = state
        .run(&checkpoint.run)
        .filter(|_| run.is_none_or(|run| run.key == checkpoint.run))
        .or(run);
    let own = run.is_some_and(|run| run.key == checkpoint.run);
    // Part of the files, or the working memory alone, is no way back to an earlier iteration.
    let whole = options.scope.covers_files() && options.paths.is_empty();
    if own && whole && options.edits != Edits::Keep {
        tell_of_edits(context, state, checkpoint)?;
    }
    let reposition = run
        .filter(|_| own && whole)
        .map(|run| reposition(run, target, checkpoint.after_iteration));
    Ok(RestoreRequest {
        run: run.map(|run| run.key.clone()),
        scope: options.scope,
        paths: options.paths.clone(),
        commits: options.commits,
        edits: options.edits,
        index: options.index,
        reposition,
        nested: NestedRequest {
            restore: options.nested,
            placed: Vec::new(),
        },
        precious: options.precious,
        best_effort: options.best_effort,
        ..RestoreRequest::new(OperationKind::Rollback, checkpoint)
    })
}

/// Says what goes back that was not the run's, and how it comes again.
pub(in crate::engine) fn tell_of_edits(
    context: &Context,
    state: &State,
    target: &Checkpoint,
) -> Result<()> {
    for edits in edits::since(context, state, target)? {
        context.note(format!(
            "{} goes back as well, which somebody else changed during the run (checkpoint @{}); to bring it in again: {}",
            edits.names(),
            edits.checkpoint.seq,
            context.line(edits.brought_back())
        ));
    }
    Ok(())
}

fn reposition(run: &Run, target: &Target, after_iteration: u32) -> Reposition {
    match target {
        Target::Full => Reposition {
            current_iteration: 1,
            status: RunStatus::Pending,
            clear_failure: true,
        },
        Target::Iteration(number) => Reposition {
            current_iteration: *number,
            status: RunStatus::Paused,
            clear_failure: false,
        },
        Target::Checkpoint(_) | Target::Safest => {
            let current_iteration = next_after(run, after_iteration);
            Reposition {
                current_iteration,
                status: RunStatus::Paused,
                clear_failure: false,
            }
        }
    }
}

/// The iteration that comes next with the files as they were after `iteration`: after that one, as far as the run has come,
/// also where a rollback took it back since.
fn next_after(run: &Run, iteration: u32) -> u32 {
    let mut next = iteration
        .saturating_add(1)
        .min(run.current_iteration.max(1));
    while next <= iteration && run.iterations.get(next).is_some_and(Iteration::has_passed) {
        next += 1;
    }
    next
}

/// The run that is rolled back to a target.
fn find<'a>(context: &Context, state: &'a State, target: &Target) -> Result<Option<&'a Run>> {
    match target {
        Target::Iteration(number) => {
            let has = |run: &Run| {
                run.iterations.last_number().is_some() && *number <= run.current_iteration.max(1)
            };
            select::find_having(context, state, &has)
        }
        Target::Checkpoint(selector) => select::find_captured(context, state, &[selector]),
        Target::Full => select::find_captured(context, state, &[&Selector::Initial]),
        Target::Safest => {
            // What only holds checkpoints is passed over, as by `--to good`; a run that was begun has a place of its own.
            let is_begun = |run: &Run| run.begun_seq > 0 && state.keeps_initial(&run.key);
            let has = |run: &Run| {
                is_lane(state, run) || is_begun(run) || state.last_good(&run.key).is_some()
            };
            select::find_having(context, state, &has)
        }
    }
}

fn is_lane(state: &State, run: &Run) -> bool {
    !state.lane_records(&run.key).is_empty()
}

/// Whether a rollback that names no target is one of a lane, which has a place of its own to go back to (C5).
pub fn is_of_lane(context: &Context) -> Result<bool> {
    let state = context.load()?.state;
    Ok(find(context, &state, &Target::Safest)?.is_some_and(|run| is_lane(&state, run)))
}

/// The safest prior stage of a lane; of any other run the last good checkpoint, without one what it began with.
fn safest<'a>(state: &'a State, run: Option<&Run>) -> Result<&'a Checkpoint> {
    let none = |message: String| {
        let list = Hint::recover(["checkpoint", "list", "--all-runs"]);
        Error::new(ErrorKind::NoCheckpoint, message).hint(afresh(run).unwrap_or(list))
    };
    if state.runs.is_empty() {
        return Err(select::nothing_captured(state));
    }
    let Some(run) = run else {
        return Err(none("No checkpoint available".to_owned()));
    };
    if is_lane(state, run) {
        let message = || {
            format!(
                "No checkpoint available: no stage of lane {} is one to go back to",
                run.key
            )
        };
        let first = Hint::recover(["rollback", "--to", "initial"]).run(&run.key);
        let is_kept = state.keeps_initial(&run.key);
        return state.lane_safest(&run.key).ok_or_else(|| {
            if is_kept {
                none(message()).hint(first)
            } else {
                none(message())
            }
        });
    }
    let good = state
        .last_good(&run.key)
        .or_else(|| state.initial(&run.key).and_then(Named::kept));
    good.ok_or_else(|| {
        none(format!(
            "No checkpoint available: run {} has none that is good",
            run.key
        ))
    })
}

/// The command that starts a run afresh whose checkpoint is gone (B15).
fn afresh(run: Option<&Run>) -> Option<Hint> {
    let run = run.filter(|run| !run.spec.command.is_empty())?;
    Some(Hint::recover(["resume", "--restart"]).run(&run.key))
}

/// The checkpoint before iteration `number`.
fn before_iteration<'a>(
    state: &'a State,
    run: Option<&Run>,
    number: u32,
) -> Result<&'a Checkpoint> {
    let none = || {
        let at = run.filter(|run| number > run.current_iteration.max(1));
        let why = at.map_or(String::new(), |run| {
            format!(": the run is at iteration {}", run.shown_iteration())
        });
        let message = format!("No checkpoint available before iteration {number}{why}");
        let list = Hint::recover(["checkpoint", "list"]).run(run.map(|run| &run.key));
        let afresh = afresh(run).filter(|_| at.is_none());
        Error::new(ErrorKind::NoCheckpoint, message).hint(afresh.unwrap_or(list))
    };
    let run = run.ok_or_else(none)?;
    if number > run.current_iteration.max(1) {
        return Err(none());
    }
    state.before_iteration(run, number).ok_or_else(none)
}
