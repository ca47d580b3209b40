//! The fold's steps at an operation on files or commits: a restore, what takes it back, a run's commits.

use super::{attempts, end_attempts, leave_failure_of, run_mut, supersede_from};
use crate::model::attempt::ManualFixStatus;
use crate::model::event::{Event, Payload};
use crate::model::id::CheckpointId;
use crate::model::lane::stages_after;
use crate::model::operation::{
    BaselineLayer, Operation, OperationKind, Reposition, RunPosition, UndoEntry,
};
use crate::model::path::{NESTED, PathReason};
use crate::model::run::{IterationStatus, LeftBehind, RestoredFiles, Run, RunStatus};
use crate::model::state::State;
use crate::model::time::Timestamp;

impl State {
    pub(super) fn accepted(&mut self, event: &Event, operation: &Operation) {
        let Some(key) = &event.run else { return };
        let run = self.run(key);
        let position = run.map(|run| position_of(run, self.last_checkpoint_seq));
        let seq_of = |id: &CheckpointId| self.checkpoints.by_id(id).map(|one| one.seq);
        let worktree = self.worktrees.entry(operation.worktree.clone());
        let worktree = worktree.or_default();
        // What it put back before it committed is taken back with it.
        if let Some(safety) = seq_of(&operation.safety_checkpoint_id) {
            let is_before = |entry: &UndoEntry| seq_of(&entry.checkpoint_id) <= Some(safety);
            worktree.undo.retain(is_before);
        }
        let done = UndoEntry::of(operation, event.at, event.run.clone(), position);
        worktree.undo.push(done);
        worktree.redo.clear();
    }

    pub(super) fn restored(&mut self, event: &Event, operation: &Operation) {
        let target = self.checkpoint(&operation.checkpoint_id);
        // A checkpoint of another run is on no line of this one.
        let target = target
            .filter(|target| event.run.as_ref() == Some(&target.run))
            .map(|target| target.seq);
        let passed = event.run.as_ref().and_then(|key| self.run(key)).zip(target);
        let passed = passed
            .map(|(run, target)| stages_after(self, run, target))
            .unwrap_or_default();
        let last = self.last_checkpoint_seq;
        let worktree = self
            .worktrees
            .entry(operation.worktree.clone())
            .or_default();

        worktree.last_operation = Some(operation.id.clone());
        let kept: Vec<PathReason> = operation.left().cloned().collect();
        let changed = operation.written + operation.deleted > 0;
        if operation.scope.covers_files() && (changed || !kept.is_empty()) {
            let restored = RestoredFiles {
                checkpoint_id: operation.checkpoint_id.clone(),
                written: operation.written,
                deleted: operation.deleted,
                paths: operation.changed_paths.clone(),
                at: event.at,
                of_run: operation.of_run,
                before: (!kept.is_empty()).then(|| operation.safety_checkpoint_id.clone()),
                kept,
            };
            // What is over is resumed by a command that is about it, which restores for it.
            let concerned = |other: &&mut Run| {
                event.run.as_ref() == Some(&other.key)
                    || (other.worktree == operation.worktree && !other.status.is_over())
            };
            for other in self.runs.iter_mut().filter(concerned) {
                other.fresh_session = true;
                other.restored = Some(restored.clone());
            }
            if let Some(run) = run_mut(&mut self.runs, &event.run) {
                note_left_behind(run, operation, event.at);
            }
        }
        let run = run_mut(&mut self.runs, &event.run);
        if operation.scope.covers_files() {
            if operation.paths.is_empty() {
                worktree.baseline.clear();
            }
            let all = operation.nested.restored;
            let nested = operation.kept.iter();
            let nested = nested.filter(|kept| !all && kept.reason.starts_with(NESTED));
            let left = operation.left().chain(nested);
            worktree.baseline.push(BaselineLayer {
                checkpoint_id: operation.checkpoint_id.clone(),
                paths: operation.paths.clone(),
                left: left.map(|kept| kept.path.clone()).collect(),
            });
        }

        let taken_back = match operation.kind {
            OperationKind::Undo if operation.of_run => worktree.of_runs.pop(),
            OperationKind::Undo => worktree.undo.pop(),
            OperationKind::Redo => worktree.redo.pop(),
            OperationKind::Rollback
            | OperationKind::Restore
            | OperationKind::Accept
            | OperationKind::Discard => None,
        };
        // `checkpoint restore`, parts of the files and the working memory leave the run where it stands, and so does what
        // takes that back.
        let kind = taken_back
            .as_ref()
            .map_or(operation.kind, |entry| entry.kind);
        let whole = operation.scope.covers_files() && operation.paths.is_empty();
        // Taking back what the run did by itself, while it was at work, does not put it to work again.
        let is_of_run = taken_back.as_ref().is_some_and(|entry| entry.of_run);
        let moves = (kind.is_rollback() || kind == OperationKind::Accept) && whole && !is_of_run;
        let run = run.filter(|_| moves);
        let position = run.as_deref().map(|run| position_of(run, last));
        if let Some(run) = run {
            if let Some(position) = taken_back
                .as_ref()
                .and_then(|entry| entry.position.as_ref())
            {
                put_back(run, position, last);
                if kind == OperationKind::Accept {
                    run.accepted_as.clone_from(&position.accepted_as);
                }
            } else if let Some(target) = target {
                run.line.turn(last, target);
            }
            run.to_roll_back = None;
            if let Some(to) = &operation.reposition {
                reposition(run, to);
                run.rolled_back.extend(passed);
                let standing = run.line.standing();
                run.rolled_back.retain(|seq| !standing.holds(*seq));
            }
        }
        // Those that an undo gives back a redo takes again.
        let given_back = taken_back
            .as_ref()
            .map(|entry| entry.steps.clone())
            .unwrap_or_default();
        let steps = operation.steps.iter().chain(&given_back).cloned().collect();
        // Undo and redo mirror each other: each keeps what the other needs, where things stood before it.
        let mut entry = UndoEntry::of(operation, event.at, event.run.clone(), position);
        entry.steps = steps;
        if let Some(back) = taken_back {
            (entry.operation_id, entry.kind) = (back.operation_id, back.kind);
            (entry.restored, entry.of_run) = (back.restored, back.of_run);
        }
        if !matches!(operation.kind, OperationKind::Undo | OperationKind::Redo) {
            worktree.redo.clear();
        }
        let entries = match operation.kind {
            OperationKind::Undo => &mut worktree.redo,
            _ if entry.of_run => &mut worktree.of_runs,
            _ => &mut worktree.undo,
        };
        entries.push(entry);
        attempts::crossed(self, operation, &given_back);
    }
}

/// Adds what a rollback left behind; what is brought back as it was before one is the run's again.
fn note_left_behind(run: &mut Run, operation: &Operation, at: Timestamp) {
    run.left_behind
        .retain(|left| left.before != operation.checkpoint_id);
    if !operation.kind.is_rollback() {
        return;
    }
    for left in operation.left() {
        run.left_behind.retain(|earlier| earlier.path != left.path);
        run.left_behind.push(LeftBehind {
            path: left.path.clone(),
            at,
            target: operation.checkpoint_id.clone(),
            before: operation.safety_checkpoint_id.clone(),
        });
    }
}

/// Operations since the run's latest checkpoint (S10).
pub(super) fn count_operations(run: &mut Run, event: &Event) {
    match &event.payload {
        Payload::OperationRecorded {
            announces_restore, ..
        } => {
            run.operations = run.operations.saturating_add(1);
            if *announces_restore {
                run.restore_was_announced();
            }
        }
        Payload::StepEnded(_) => run.operations = run.operations.saturating_add(1),
        Payload::CheckpointCreated { checkpoint, .. } if !checkpoint.is_safety() => {
            run.operations = 0;
        }
        _ => {}
    }
}

fn position_of(run: &Run, last_checkpoint: u64) -> RunPosition {
    RunPosition {
        checkpoint: run.line.end(last_checkpoint),
        status: run.status,
        current_iteration: run.current_iteration,
        iterations: run.iterations.statuses().collect(),
        failure: run.failure.clone(),
        decision: run.decision.clone(),
        rolled_back: run.rolled_back.clone(),
        accepted_as: run.accepted_as.clone(),
    }
}

fn put_back(run: &mut Run, position: &RunPosition, last_checkpoint: u64) {
    run.line.turn(last_checkpoint, position.checkpoint);
    run.status = position.status;
    run.current_iteration = position.current_iteration;
    run.failure.clone_from(&position.failure);
    run.decision.clone_from(&position.decision);
    run.rolled_back.clone_from(&position.rolled_back);
    for (number, status) in &position.iterations {
        if let Some(iteration) = run.iterations.get_mut(*number) {
            iteration.status = *status;
        }
    }
}

fn reposition(run: &mut Run, to: &Reposition) {
    // Forward again: what a rollback before had taken back is there once more.
    for number in run.current_iteration..to.current_iteration {
        if let Some(iteration) = run
            .iterations
            .get_mut(number)
            .filter(|iteration| iteration.has_passed())
        {
            iteration.status = IterationStatus::Completed;
        }
    }
    supersede_from(run, to.current_iteration);
    run.current_iteration = to.current_iteration;
    run.status = to.status;
    if let Some(failed) = run.failure.as_ref().and_then(|failure| failure.iteration)
        && failed != to.current_iteration
    {
        // What comes next has not failed. What the iteration has used up it finds used up when it comes again.
        leave_failure_of(run, failed);
    }
    if to.closes() {
        end_attempts(run);
        run.closed_from = Some(RunStatus::Pending);
        let open = run.manual_fix.as_mut();
        if let Some(session) = open.filter(|one| one.status == ManualFixStatus::Active) {
            session.status = ManualFixStatus::Aborted;
        }
    }
    if to.clear_failure {
        // The decision stays: a rollback gives neither attempts nor the rest of a cooldown back.
        run.failure = None;
    }
}
