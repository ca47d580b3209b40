//! Putting a checkpoint back: plan, safety checkpoint, journal, files, working memory, HEAD, index, event.
//!
//! Rollback, `checkpoint restore`, undo and redo are this one operation with different targets. Nothing is written
//! before everything that can be refused has been refused, and nothing is overwritten that the safety checkpoint does
//! not hold.

mod carry_out;
mod head;
mod interruption;
pub mod nested;
mod plan;
mod take_back;

use serde::Serialize;

use crate::engine::base::runs;
use crate::engine::record::damage::doubt;
use crate::engine::restore::nested::{NestedOutcome, NestedRequest};
use crate::git::WorktreeLock;
use crate::model::checkpoint::{Checkpoint, StorageType, Verdict};
use crate::model::operation::{HeadMove, OperationKind, Reposition, Scope};
use crate::model::path::{PathReason, RepoPath};
use crate::model::run::{Run, RunKey};
use crate::model::state::State;
use crate::model::step::{StepRef, StepStatus};
use crate::policy::restore_plan::Edits;

use super::context::Context;
use super::error::{Error, ErrorKind, Result};
use super::step::{Compensated, CrossedStep, Crossing, compensate, is_above};
use super::{checkpoint, settle};

use interruption::listen;

pub use carry_out::{CarryOut, finish_cut_off, restore_state_only};
pub use head::Commits;

const WAIT_OR_STOP: &str = "wait for it, or stop it first with kill -INT";

/// What is to be put back, and how.
#[derive(Clone, Debug)]
pub struct RestoreRequest {
    /// Which command it is.
    pub kind: OperationKind,
    /// The run whose bookkeeping follows, where it does; else the run the event is about.
    pub run: Option<RunKey>,
    /// The checkpoint.
    pub checkpoint_id: String,
    /// What it covers.
    pub scope: Scope,
    /// Only these paths (globs); empty for all.
    pub paths: Vec<String>,
    /// What to do about commits made since.
    pub commits: Commits,
    /// What to do about hand edits.
    pub edits: Edits,
    /// Whether the captured index is put back too.
    pub restore_index: bool,
    /// How the run's bookkeeping follows.
    pub reposition: Option<Reposition>,
    /// What is asked of nested repositories.
    pub nested: NestedRequest,
    /// Where the operation that is taken back found HEAD and left it: while it is still there, it may go back unasked.
    pub undoes: Option<HeadMove>,
}

impl RestoreRequest {
    /// The command that asks for this, with these flags in the place of its own.
    pub(super) fn command(&self, context: &Context, flags: &[&str]) -> String {
        let mut words: Vec<String> = match self.kind {
            OperationKind::Undo | OperationKind::Redo => vec![self.kind.as_str().to_owned()],
            OperationKind::Rollback if self.reposition.as_ref().is_some_and(|to| to.clear_failure) => {
                vec!["rollback".to_owned(), "--full".to_owned()]
            }
            OperationKind::Rollback => vec!["rollback".to_owned(), "--to".to_owned(), self.checkpoint_id.clone()],
            OperationKind::Restore => vec!["checkpoint".to_owned(), "restore".to_owned(), self.checkpoint_id.clone()],
        };
        let takes_back = matches!(self.kind, OperationKind::Undo | OperationKind::Redo);
        let mut add = |flag: &str, value: &str| {
            if !flags.contains(&flag) {
                words.push(format!("{flag}={value}"));
            }
        };
        if self.commits != Commits::Refuse {
            add("--commits", self.commits.as_str());
        }
        match self.edits {
            Edits::Refuse => {}
            Edits::Keep => add("--edits", "keep"),
            Edits::Discard => add("--edits", "discard"),
        }
        if !takes_back {
            match self.scope {
                Scope::Files if self.kind == OperationKind::Rollback => add("--scope", "files"),
                Scope::State => add("--scope", "state"),
                Scope::All | Scope::Files => {}
            }
            self.paths.iter().for_each(|glob| add("--path", glob));
            if self.restore_index {
                words.push("--restore-index".to_owned());
            }
            if self.nested.restore {
                words.push("--nested".to_owned());
            }
        }
        words.extend(flags.iter().map(|flag| (*flag).to_owned()));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        // What is taken back is the work tree's last, whichever run that was.
        context.hint_command(self.run.as_ref().filter(|_| !takes_back), &words)
    }
}

/// What a restore did, or would do.
#[derive(Clone, Debug, Serialize)]
pub struct RestoreResult {
    /// Whether all of it was done.
    pub success: bool,
    /// The iteration after which the checkpoint was taken.
    pub restored_to_iteration: u32,
    /// The checkpoint.
    pub checkpoint_id: String,
    /// How it is kept.
    pub storage_type: StorageType,
    /// What holds the state before; `None` in a plan and where nothing changed.
    pub safety_checkpoint_id: Option<String>,
    /// Paths written.
    pub written: Vec<RepoPath>,
    /// Paths deleted.
    pub deleted: Vec<RepoPath>,
    /// Paths left as they are, and why.
    pub kept: Vec<PathReason>,
    /// What becomes of nested repositories that are not as the checkpoint has them.
    pub nested: Vec<NestedOutcome>,
    /// HEAD before and after.
    pub head: HeadMove,
    /// Whether what was written was read again and found to be the checkpoint's.
    pub verified: bool,
    /// Steps that it went back past while their effects outside the work tree stayed.
    pub crossed: Vec<CrossedStep>,
    /// Steps whose effects were taken back, in that order.
    pub compensated: Vec<Compensated>,
}

impl RestoreResult {
    /// Tells of the steps that were gone back past; `compensated` are those whose effects were taken back, or would be.
    fn tell(&mut self, crossing: &Crossing, compensated: Vec<Compensated>) {
        self.crossed = crossing.crossed();
        for failed in compensated.iter().filter(|one| one.succeeded == Some(false)) {
            let code = failed.compensate_exit_code.unwrap_or(1);
            let reason = format!("its compensation ended with {code}");
            self.crossed.push(CrossedStep { step: failed.step.clone(), reason });
            self.success = false;
        }
        self.compensated = compensated;
    }
}

/// A restore that was planned or done.
#[derive(Clone, Debug)]
pub struct Restore {
    /// Whether anything changed (or would).
    pub changed: bool,
    /// What.
    pub result: RestoreResult,
    /// The run afterwards.
    pub run: Option<Run>,
}

/// Does it; with `--dry-run` only plans it. A request to stop is the caller's: the restore is finished.
pub fn restore(context: &Context, request: &RestoreRequest) -> Result<Restore> {
    restore_noting_doubt(context, request.kind, false, |_| Ok(request.clone()))
}

/// The same for a person, whose request to stop takes it back: what `request` makes of the state as it is once nobody else can change the work tree: two restores at once take
/// place one after the other, and each is chosen and planned from what the other left.
pub fn restore_with(
    context: &Context,
    kind: OperationKind,
    request: impl FnOnce(&State) -> Result<RestoreRequest>,
) -> Result<Restore> {
    if !context.dry_run() {
        listen()?;
    }
    restore_noting_doubt(context, kind, true, request)
}

fn restore_noting_doubt(
    context: &Context,
    kind: OperationKind,
    takes_back: bool,
    request: impl FnOnce(&State) -> Result<RestoreRequest>,
) -> Result<Restore> {
    restore_chosen(context, kind, takes_back, request).inspect_err(|error| {
        if let (ErrorKind::Corrupt, false, Ok(repo)) = (error.kind, context.dry_run(), context.repo()) {
            doubt(repo);
        }
    })
}

fn restore_chosen(
    context: &Context,
    kind: OperationKind,
    takes_back: bool,
    request: impl FnOnce(&State) -> Result<RestoreRequest>,
) -> Result<Restore> {
    if !context.dry_run() {
        context.check_safe_mode(kind.as_str())?;
        settle::settle(context)?;
    }
    let lock = checkpoint::lock(context)?;
    let state = settle::load_settled(context)?;
    // A plan touches nothing.
    if !context.dry_run() {
        refuse_live(context, &state)?;
    }
    let request = request(&state)?;
    let planned = plan::plan(context, lock, &state, &request)?;
    let crossing = Crossing::of(context, &state, &request);
    let run = || request.run.as_ref().and_then(|key| state.run(key)).cloned();
    let moves = request.reposition.as_ref().is_some_and(|to| run().is_some_and(|run| to.moves(&run)))
        || moves_line(&state, &request)
        || gives_steps_back(&state, &crossing.refs());
    // An undo whose files are there already moves on to what was before.
    let changes = !planned.is_empty() || moves || crossing.compensates() || request.undoes.is_some();
    if context.dry_run() || !changes {
        let mut result = planned.result(None, !context.dry_run());
        result.tell(&crossing, crossing.planned());
        return Ok(Restore { changed: changes, result, run: run() });
    }
    let mut restore = carry_out::carry_out(context, &request, planned, crossing.refs(), takes_back)?;
    let compensated = compensate(context, &crossing, &request.checkpoint_id)?;
    restore.result.tell(&crossing, compensated);
    Ok(restore)
}

/// Whether another checkpoint is good afterwards, or stages of a lane come to stand as rolled back (C5).
fn moves_line(state: &State, request: &RestoreRequest) -> bool {
    let run = request.reposition.as_ref().and(request.run.as_ref());
    let target = state.checkpoint(&request.checkpoint_id).filter(|target| run == Some(&target.run));
    let Some(target) = target else { return false };
    let passed = |one: &Checkpoint| one.verdict == Verdict::Passed;
    let mut after = state.standing(&target.run).rev().take_while(|one| one.seq > target.seq);
    (passed(target) && state.is_superseded(target)) || after.any(|one| passed(one) || one.lane_fields.stage.is_some())
}

/// Whether steps of a lane that are done come to be run again (C4).
fn gives_steps_back(state: &State, crossed: &[StepRef]) -> bool {
    crossed.iter().any(|step| {
        let known = state.run(&step.run).and_then(|run| run.step(&step.name));
        known.is_some_and(|known| !known.crossed && known.would_run_again(&step.run))
    })
}

/// Puts back what a step has changed that was to be all or nothing: that is part of the step, whoever else is at work.
pub fn put_back_unasked(context: &Context, lock: WorktreeLock, request: &RestoreRequest) -> Result<Restore> {
    let state = context.load()?.state;
    let planned = plan::plan(context, lock, &state, request)?;
    if planned.is_empty() {
        return Ok(Restore { changed: false, result: planned.result(None, true), run: None });
    }
    carry_out::carry_out(context, request, planned, Vec::new(), false)
}

/// While an attempt of a live `recover run`, or a step, is under way in this work tree, nothing is put back under it.
fn refuse_live(context: &Context, state: &State) -> Result<()> {
    let own = std::process::id();
    let worktree = context.worktree_id();
    for run in state.runs_of(&worktree) {
        let supervisor = run.live.as_ref().and_then(|live| live.supervisor.as_ref());
        if let Some(supervisor) = supervisor.filter(|id| id.pid != own && crate::process::is_alive(id)) {
            let (key, pid) = (&run.key, supervisor.pid);
            let message = format!("an attempt of run {key} is under way (pid {pid}): {WAIT_OR_STOP} {pid}");
            return Err(Error::new(ErrorKind::Locked, message).hint(runs::about(key, "recover status")));
        }
    }
    for run in &state.runs {
        let here = run.steps.iter().filter(|step| step.start.worktree == worktree);
        let mut live = here.filter(|step| step.status == StepStatus::Running);
        // What a step's own command does is the step's affair.
        if let Some(step) = live.find(|step| !is_above(context, &run.key, &step.start.name)) {
            let (name, pid) = (&step.start.name, step.start.supervisor.pid);
            let message = format!("step '{name}' of run {} is under way (pid {pid}): {WAIT_OR_STOP} {pid}", run.key);
            return Err(Error::new(ErrorKind::Locked, message).hint(runs::about(&run.key, "recover status")));
        }
    }
    Ok(())
}
