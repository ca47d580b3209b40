//! Applies one event to the state.

mod attempts;
mod operations;

use crate::model::attempt::ManualFixStatus;
use crate::model::checkpoint::{Checkpoint, Verdict};
use crate::model::decision::Strategy;
use crate::model::event::{Event, Payload};
use crate::model::id::CheckpointId;
use crate::model::import::{ImportKind, ImportedDocument};
use crate::model::operation::BaselineLayer;
use crate::model::run::{
    AcceptedAs, AttemptOutcome, IterationStatus, Run, RunDetails, RunKey, RunSpec, RunStatus,
    TermChange,
};
use crate::model::time::Timestamp;

use super::State;
use attempts::{attempt_ended, attempt_started, session_seen};
use operations::count_operations;

impl State {
    /// Adds one event. Events about runs that are not known (their creation was lost with the state directory)
    /// change nothing but the sequence.
    pub fn apply(&mut self, event: &Event) {
        self.last_seq = event.seq;
        match &event.payload {
            Payload::RunCreated { .. } => self.create_run(event),
            Payload::CheckpointCreated { checkpoint, .. } => self.add_checkpoint(checkpoint),
            Payload::CheckpointReturned { checkpoint } => {
                if let Some(run) = run_mut(&mut self.runs, Some(&checkpoint.run)) {
                    run.removed.remove(&checkpoint.seq);
                }
                self.insert_checkpoint(checkpoint);
            }
            Payload::CheckpointPinned {
                checkpoint_id,
                pinned,
                note,
            } => self.checkpoints.change(checkpoint_id, |checkpoint| {
                checkpoint.pinned = *pinned;
                checkpoint.pin_note.clone_from(note);
            }),
            Payload::CheckpointLabelled {
                checkpoint_id,
                label,
            } => {
                let add = |checkpoint: &mut Checkpoint| checkpoint.add_label(label);
                self.checkpoints.change(checkpoint_id, add);
            }
            Payload::BaselineVerified {
                checkpoint_id,
                verdict,
                results,
            } => self.checkpoints.change(checkpoint_id, |checkpoint| {
                checkpoint.verdict = *verdict;
                checkpoint.feedback_results.clone_from(results);
            }),
            Payload::CheckpointsPruned { ids } => {
                self.remember_removed(ids);
                self.checkpoints.remove(ids);
                self.pruned.extend(ids.iter().cloned());
            }
            Payload::Restored { operation } => self.restored(event, operation),
            Payload::RunAccepted {
                operation: Some(operation),
                ..
            } => self.accepted(event, operation),
            Payload::RunsForgotten { runs } => self.forget(runs),
            Payload::RunReplaced { .. } => {
                self.forget(event.run.as_slice());
                if let Some(key) = &event.run {
                    self.forgotten.remove(key);
                }
            }
            _ => {}
        }
        let after_checkpoint = self.last_checkpoint_seq;
        if let Some(run) = run_mut(&mut self.runs, &event.run) {
            apply_to_run(run, event);
            attempts::apply(run, event, after_checkpoint);
            count_operations(run, event);
            if let (Payload::AttemptStarted { iteration, .. }, Some(live)) =
                (&event.payload, &mut run.live)
            {
                live.after_checkpoint = after_checkpoint;
                let known = self
                    .worktrees
                    .get(&run.worktree)
                    .and_then(|worktree| worktree.baseline.first());
                live.baseline = known.map(|layer| layer.checkpoint_id.clone());
                let began = live.baseline.clone();
                let entry = run.iterations.get_or_pending(*iteration);
                entry.began = entry.began.take().or(began);
            }
            if let Payload::Imported(imported) = &event.payload {
                let imported = (**imported).clone();
                if imported.kind == ImportKind::Recovery {
                    take_cooldown(run, &imported.document);
                }
                run.imported.retain(|known| {
                    (known.imported.kind, &known.imported.id) != (imported.kind, &imported.id)
                });
                run.imported.push(ImportedDocument {
                    imported,
                    seq: event.seq,
                    at: event.at,
                    after_checkpoint,
                });
            }
            (run.last_seq, run.last_at) = (event.seq, event.at);
            let ended_at = run.ended_at.unwrap_or(event.at);
            run.ended_at = run.status.is_over().then_some(ended_at);
            if begins(&event.payload) {
                run.begun_seq = event.seq;
            }
        }
    }

    fn create_run(&mut self, event: &Event) {
        let (Some(key), Some(mut run)) = (&event.run, new_run(event)) else {
            return;
        };
        if self.run(key).is_none() {
            run.checkpoint_event_seq = event.seq.saturating_sub(1);
            self.forgotten.remove(key);
            self.runs.push(run);
        }
    }

    /// Removes runs with their checkpoints, and all that restores of them could be taken back to.
    fn forget(&mut self, runs: &[RunKey]) {
        let gone: Vec<CheckpointId> = runs
            .iter()
            .flat_map(|key| self.checkpoints_of(key))
            .map(|checkpoint| checkpoint.id.clone())
            .collect();
        self.checkpoints.remove(&gone);
        for worktree in self.worktrees.values_mut() {
            let stays = |id: &CheckpointId| !gone.contains(id);
            worktree.undo.retain(|entry| stays(&entry.checkpoint_id));
            worktree.redo.retain(|entry| stays(&entry.checkpoint_id));
            worktree.of_runs.retain(|entry| stays(&entry.checkpoint_id));
            worktree
                .baseline
                .retain(|layer| stays(&layer.checkpoint_id));
        }
        self.pruned.extend(gone);
        self.runs.retain(|run| !runs.contains(&run.key));
        self.forgotten.extend(runs.iter().cloned());
    }

    fn remember_removed(&mut self, ids: &[CheckpointId]) {
        let gone = ids
            .iter()
            .filter_map(|id| self.checkpoints.by_id(id))
            .filter(|checkpoint| !checkpoint.is_safety());
        for checkpoint in gone {
            if let Some(run) = run_mut(&mut self.runs, Some(&checkpoint.run)) {
                run.removed.insert(checkpoint.seq, checkpoint.into());
            }
        }
    }

    fn add_checkpoint(&mut self, checkpoint: &Checkpoint) {
        // What is imported after a loss may have come after others that are lost.
        let is_next = checkpoint
            .previous
            .as_ref()
            .is_none_or(|id| self.checkpoints.has(id));
        if let Some(run) =
            run_mut(&mut self.runs, Some(&checkpoint.run)).filter(|_| !checkpoint.is_safety())
        {
            let begins = checkpoint.attempt.is_none() || checkpoint.verdict == Verdict::Passed;
            if !run.was_captured && is_next && begins {
                run.initial_checkpoint = Some(checkpoint.id.clone());
            }
            run.was_captured = true;
        }
        // One whose run was replaced is there again with it.
        self.insert_checkpoint(checkpoint);
        if !self.places.contains(&checkpoint.state_dir) {
            self.places.insert(checkpoint.state_dir.clone());
        }
        // What a safety checkpoint holds may be a person's work: it says nothing about what the run wrote.
        if !checkpoint.is_safety() {
            let whole = BaselineLayer {
                checkpoint_id: checkpoint.id.clone(),
                paths: Vec::new(),
                left: Vec::new(),
            };
            self.worktrees
                .entry(checkpoint.worktree.clone())
                .or_default()
                .baseline = vec![whole];
        }
    }

    fn insert_checkpoint(&mut self, checkpoint: &Checkpoint) {
        self.pruned.remove(&checkpoint.id);
        self.last_checkpoint_seq = self.last_checkpoint_seq.max(checkpoint.seq);
        if checkpoint.lane_fields.stage.is_some()
            && let Some(run) = run_mut(&mut self.runs, Some(&checkpoint.run))
        {
            run.staged.insert(checkpoint.seq);
        }
        self.checkpoints.insert(checkpoint.clone());
    }
}

/// Whether this event began or continued what the run is there for.
fn begins(payload: &Payload) -> bool {
    match payload {
        Payload::RunCreated { spec, .. } | Payload::RunSpecChanged { spec, .. } => {
            !spec.command.is_empty()
        }
        Payload::RunResumed { .. }
        | Payload::BaselineStarted { .. }
        | Payload::AttemptStarted { .. }
        | Payload::StepStarted(_) => true,
        _ => false,
    }
}

/// The run that an event creates, where it does.
fn new_run(event: &Event) -> Option<Run> {
    let Payload::RunCreated {
        task_id,
        session,
        worktree,
        spec,
    } = &event.payload
    else {
        return None;
    };
    let details = RunDetails {
        session: session.clone(),
        created_at: event.at,
        spec: (**spec).clone(),
        current_iteration: 1,
        next_error_context: true,
        ..RunDetails::default()
    };
    Some(Run {
        key: event.run.clone()?,
        task_id: task_id.clone(),
        worktree: worktree.clone(),
        last_at: event.at,
        details: details.into(),
        ..Run::default()
    })
}

/// The run with this key. Most events are about one of the latest.
fn run_mut<'r, 'k>(
    runs: &'r mut [Run],
    key: impl IntoIterator<Item = &'k RunKey>,
) -> Option<&'r mut Run> {
    let key = key.into_iter().next()?;
    runs.iter_mut().rfind(|run| run.key == *key)
}

fn apply_to_run(run: &mut Run, event: &Event) {
    match &event.payload {
        Payload::RunSpecChanged { spec, changes } => spec_changed(run, spec, changes, event.at),
        Payload::RunStatusChanged { status, reason } => {
            run.status = *status;
            let stands = matches!(status, RunStatus::Paused | RunStatus::Parked);
            run.stopped_for =
                Some(reason.clone()).filter(|reason| stands && *reason != status.unexplained());
            run.baseline_supervisor = None;
            let is_through = matches!(status, RunStatus::Complete | RunStatus::Escalated);
            if is_through && run.parked.take().is_some() {
                // No iteration comes that would wait.
                run.decision = None;
                run.cooldown_until = None;
            }
            if *status == RunStatus::Escalated && run.failure.is_none() {
                stand_at_given_up(run);
            }
        }
        Payload::RunAccepted {
            commits, left_out, ..
        } => {
            end_attempts(run);
            run.status = RunStatus::Accepted;
            run.accepted_as = AcceptedAs {
                commit: commits.last().cloned(),
                left_out: *left_out,
            };
            run.own_commits.extend(commits.iter().cloned());
        }
        Payload::RunClosed {} => {
            end_attempts(run);
            run.closed_from = Some(run.status);
            run.status = RunStatus::Closed;
        }
        Payload::RunResumed { .. } => run_resumed(run, event),
        Payload::AttemptStarted { .. } => attempt_started(run, event),
        Payload::ChildStarted { child } => {
            if let Some(live) = &mut run.live {
                live.child = Some(child.clone());
            }
        }
        Payload::BaselineStarted { supervisor } => {
            run.baseline_supervisor = Some(Box::new(supervisor.clone()));
            run.driver.clone_from(&run.baseline_supervisor);
        }
        Payload::BaselineVerified { results, .. } => {
            run.baseline = Some(results.clone());
            run.baseline_supervisor = None;
        }
        Payload::AgentSessionSeen { session } => session_seen(run, session),
        Payload::AttemptEnded(end) => attempt_ended(run, end, event.seq, event.at),
        Payload::IterationChanged {
            iteration,
            status,
            reason,
        } => {
            let entry = run.iterations.get_or_pending(*iteration);
            entry.status = *status;
            entry.reason.clone_from(reason);
            match status {
                IterationStatus::Skipped => {
                    let why = reason.as_deref().unwrap_or("given up");
                    entry.stuck = Some(why.to_owned());
                }
                IterationStatus::Completed => entry.stuck = None,
                _ => {}
            }
            if matches!(
                status,
                IterationStatus::Completed | IterationStatus::Skipped
            ) && run.current_iteration == *iteration
            {
                run.current_iteration = run.iteration_after(*iteration);
                run.status = RunStatus::InProgress;
            }
            if *status == IterationStatus::Skipped {
                leave_failure_of(run, *iteration);
                run.fresh_session = true;
                run.accepted.remove(iteration);
                run.to_roll_back = Some(*iteration);
            } else if run.to_roll_back == Some(*iteration) {
                run.to_roll_back = None;
            }
        }
        Payload::CheckpointCreated {
            checkpoint,
            own_commits,
            ..
        } => {
            run.own_commits.extend(own_commits.iter().cloned());
            checkpoint_created(run, checkpoint, event.seq);
        }
        Payload::RetryReset {} => {
            forgive(run, event.seq);
            run.reset_seq = event.seq;
            run.granted = 0;
            for iteration in run.iterations.iter_mut_from(0) {
                iteration.waits = None;
            }
            // The failure is still there to be examined; what was decided about it holds nothing up any more.
            run.decision = None;
            if matches!(run.status, RunStatus::Escalated | RunStatus::Parked) {
                run.status = RunStatus::Failed;
            }
        }
        Payload::ManualFixStarted { session } => {
            run.manual_fix = Some((**session).clone());
            run.status = RunStatus::Paused;
        }
        Payload::ManualFixVerified {
            changes,
            results,
            verified,
            tree,
        } => {
            if let Some(session) = &mut run.manual_fix {
                session.detected_changes.clone_from(changes);
                session.verification_results.clone_from(results);
                session.verified = *verified;
                session.verified_tree = Some(tree.clone());
            }
        }
        Payload::ManualFixEnded { status, changes } => {
            if let Some(session) = &mut run.manual_fix {
                session.status = *status;
                session.detected_changes.clone_from(changes);
            }
            if *status == ManualFixStatus::Completed {
                begin_anew(run, event.seq);
            }
        }
        _ => {}
    }
}

fn spec_changed(run: &mut Run, spec: &RunSpec, changes: &[String], at: Timestamp) {
    if (&run.spec.launch, &run.spec.agent) != (&spec.launch, &spec.agent) {
        // Another agent knows nothing of that session.
        run.agent_session = None;
    }
    let was_through = !run.has_iterations_left();
    run.spec = spec.clone();
    if was_through && run.spec.tasks.is_some() {
        run.current_iteration = run.iteration_after(0);
    }
    if !changes.is_empty() {
        let changes = changes.to_vec();
        run.term_changes.push(TermChange { at, changes });
    }
}

/// A person is done with the run: nothing of it is under way any more.
fn end_attempts(run: &mut Run) {
    for attempt in run.iterations.unended_mut() {
        attempt.outcome = Some(AttemptOutcome::Cancelled);
    }
    (run.live, run.baseline_supervisor) = (None, None);
}

fn run_resumed(run: &mut Run, event: &Event) {
    let Payload::RunResumed {
        strategy,
        iteration,
        supersede,
        instructions,
        error_context,
        granted,
        restart,
    } = &event.payload
    else {
        return;
    };
    run.resumed_with = *strategy;
    run.resumed_at = Some(event.at);
    if *supersede {
        supersede_from(run, *iteration);
    }
    run.current_iteration = *iteration;
    run.stopped_for = None;
    run.status = RunStatus::InProgress;
    // Whoever drove it before does not any more.
    run.driver = None;
    run.next_instructions.clone_from(instructions);
    run.next_error_context = *error_context;
    run.granted = u32::from(*granted);
    if *granted {
        // A person's word: what is waited for from now on is bounded anew.
        if let Some(iteration) = run.iterations.get_mut(*iteration) {
            iteration.waits = None;
        }
    }
    // Only who asks for it is granted to go on past what was given up.
    let accepts = *granted && *strategy == Some(Strategy::ContinueNext);
    if accepts {
        let given_up: Vec<u32> = run.given_up().collect();
        run.accepted.extend(given_up);
        if run.spec.tasks.is_some() {
            run.current_iteration = run.iteration_after(0);
        }
    }
    if accepts || *restart {
        let mut left = Vec::new();
        for iteration in run.iterations.iter_mut_from(1) {
            // What was rolled back is not accepted with what is there: it is left as it is.
            if *restart || iteration.status != IterationStatus::Superseded {
                iteration.stuck = None;
            } else if iteration.stuck.is_some() {
                left.push(iteration.number);
            }
        }
        for number in left {
            leave_failure_of(run, number);
        }
    }
    if accepts
        || *restart
        || run
            .to_roll_back
            .is_some_and(|given_up| *iteration <= given_up)
    {
        run.to_roll_back = None;
    }
    if *restart {
        begin_anew(run, event.seq);
        run.restored = None;
    }
}

/// What another loop's `recovery.json` says of the next attempt holds here, too (L1).
fn take_cooldown(run: &mut Run, document: &serde_json::Value) {
    let until = document["cooldownUntil"]
        .as_str()
        .and_then(|at| at.parse().ok());
    if run.error_count > 0 && until.is_some() {
        run.cooldown_until = until;
    }
}

fn checkpoint_created(run: &mut Run, checkpoint: &Checkpoint, seq: u64) {
    run.checkpoint_event_seq = seq;
    run.own_commits.extend(checkpoint.branch_commit.clone());
    let fields = &checkpoint.lane_fields;
    // A lane begins in the work tree of the project, where its own is made, and goes on in that: there is no way back.
    let is_project = checkpoint
        .state_dir
        .path()
        .starts_with(checkpoint.worktree.path());
    if fields.stage.is_some() && !is_project {
        run.worktree.clone_from(&checkpoint.worktree);
    }
}

/// The run goes on after an iteration that was given up: its failure is no failure of what comes next.
fn leave_failure_of(run: &mut Run, iteration: u32) {
    if run
        .failure
        .as_ref()
        .is_some_and(|failure| failure.iteration == Some(iteration))
    {
        run.failure = None;
        run.decision = None;
    }
}

/// Nothing is left to do but what was given up: the run stands at the last of it.
fn stand_at_given_up(run: &mut Run) {
    let given_up = run
        .given_up()
        .next_back()
        .and_then(|number| run.iterations.get(number));
    let Some(last) = given_up.and_then(|iteration| iteration.attempts.last()) else {
        return;
    };
    (run.failure, run.decision) = (last.failure.clone(), last.decision.clone());
}

/// Success or an explicit reset: earlier failures count no more (L4).
fn forgive(run: &mut Run, seq: u64) {
    run.forgiven_seq = seq;
    run.error_count = 0;
    run.last_error = None;
    run.last_error_at = None;
    run.cooldown_until = None;
    run.parked = None;
}

/// What failed before holds nothing up any more, and no session goes on that knows of it.
fn begin_anew(run: &mut Run, seq: u64) {
    forgive(run, seq);
    run.reset_seq = seq;
    (run.failure, run.decision) = (None, None);
    run.fresh_session = true;
}

fn supersede_from(run: &mut Run, first: u32) {
    for iteration in run.iterations.iter_mut_from(first) {
        iteration.status = IterationStatus::Superseded;
    }
}
