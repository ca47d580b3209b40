//! Executing a plan under a journal: a kill at any instant can be finished or reverted from it.
//!
//! Handles a request to stop that comes while a restore is under way.
//! It is taken back, or finished where that is nearly done anyway. Either way the work tree is one of the two, however many
//! signals come.

use anyhow::Context as _;

use super::head::{self, HeadPlan, JournalContext, Journaled, not_reverted, temp_file_left};
use super::last_written::LayerPart;
use super::plan::Planned;
use super::request::{Initiator, Restore, RestoreRequest};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::storage::Request;
use crate::engine::record::{checkpoint, memory, seed_json, select};
use crate::git::repo::Loan;
use crate::git::restore::{Expect, RestoreJournal, Restored};
use crate::git::tree::TreeLookup;
use crate::git::{Repo, WorktreeLock};
use crate::model::checkpoint::trigger;
use crate::model::operation::{MAX_CHANGED_PATHS, NestedPart};
use crate::model::step::StepRef;
use crate::model::{
    EventSource, Head, HeadMove, ObjectId, Operation, OperationKind, PathReason, Payload, RepoPath,
    RunKey, Scope,
};
use crate::policy::restore::Baseline;
use crate::policy::text::escape;
use crate::process::{Interrupts, SignalGuard};
use crate::store::NewEvent;
use crate::store::views::write_views;

/// Safety checkpoint, journal, files, memory, HEAD, index, event. `steps` are those that it goes back past.
///
/// With `takes_back` a request to stop takes back what was done, as long as files are left to write; else, and after that,
/// the restore is finished.
pub(crate) fn run(
    context: &Context,
    request: &RestoreRequest,
    planned: Planned,
    steps: Vec<StepRef>,
    takes_back: bool,
) -> Result<Restore> {
    let interruption = &Interruption::new(takes_back)?;
    interruption.refuse(request.kind)?;
    let repo = context.repo()?;
    if !planned.index.paths.is_empty() {
        // Nothing is written where the index could not follow.
        repo.check_index_lock(&planned.prepared.lock, context.lock_timeout())?;
    }
    let mut ledger = context.store().lock()?;
    let (key, created) = match &request.run {
        Some(key) => (key.clone(), Vec::new()),
        None => select::find_or_create(context, ledger.state())?,
    };
    ledger.append(context.clock.now(), created)?;
    let description = format!("Before {} to {}", request.kind.as_str(), request.target.id);
    let safety = Request::new(trigger::SAFETY, description);
    let safety = checkpoint::take(context, &mut ledger, &key, &planned.prepared, safety)?;
    drop(ledger);

    let head_before = planned.prepared.capture.head.clone();
    let head_after = head_after(repo, &planned, &head_before, request)?;
    let head = HeadMove {
        before: head_before.commit.clone(),
        after: head_after
            .as_ref()
            .map_or_else(|| head_before.commit.clone(), |head| head.commit.clone()),
    };
    let mut result = planned.result(&request.target, Some(safety.id.clone()), false);
    result.head = head.clone();
    let operation = Operation {
        scope: request.options.scope,
        paths: request.options.paths.clone(),
        head,
        written: result.written.len() as u64,
        deleted: result.deleted.len() as u64,
        changed_paths: result
            .written
            .iter()
            .chain(&result.deleted)
            .take(MAX_CHANGED_PATHS)
            .cloned()
            .collect(),
        kept: result.kept.clone(),
        left: result.left.clone(),
        reposition: request.reposition.clone(),
        index_restored: request.options.restore_index && !planned.index.paths.is_empty(),
        steps,
        nested: NestedPart {
            restored: request.options.nested,
            placed: planned.nested.place.clone(),
        },
        of_run: request.initiator == Initiator::Policy
            || request.undoes.as_ref().is_some_and(|undone| undone.of_run),
        ..Operation::new("op", request.kind, &safety, &request.target.id)
    };
    let journaled = JournalContext {
        clear_loop_state: request.initiator == Initiator::Policy,
        leave_memory: request.leaves_memory(&context.settings().rollback),
        leave_branch: request.kind == OperationKind::Undo
            && request
                .undoes
                .as_ref()
                .is_some_and(|undone| undone.kind == OperationKind::Accept),
        on_top: head::is_on_top(&planned.head, request),
        of_base: planned.of_base,
        unlink: planned.nested.remove.clone(),
        ..JournalContext::new(&key, operation)
    };
    let journal = RestoreJournal {
        selection: request.options.paths.clone(),
        plan: planned.files,
        kept: result.kept.clone(),
        head_before,
        head_after,
        index_paths: planned.index.paths,
        ..journaled.journal((&safety.commit, &request.target.commit))?
    };
    // What was captured is recorded: what follows reads the stored one, and needs the memory.
    let (lock, _nested) = &planned.prepared.into_locks();
    let journaled = Journaled::new(context, lock, &journal)?;
    journaled.read_back(request)?;
    interruption.refuse(request.kind)?;
    journaled.start()?;
    let applied = journaled.apply(Expect::Captured, interruption);
    let restored = applied
        .map_err(|error| journaled.revert_after(interruption.explained(request.kind, error)))?;
    result.verified = true;
    // What something turned up in meanwhile has stayed, and so has what the loop wrote meanwhile.
    let stayed = |path: &RepoPath| restored.kept.iter().any(|kept| kept.path == *path);
    result.deleted.retain(|path| !stayed(path));
    result.written.retain(|path| !stayed(path));
    result.kept.extend(restored.kept);
    result.kept.sort();
    result.kept.dedup();
    journaled
        .finish()
        .map_err(|error| journaled.unrecorded(error))?;
    interruption.tell_finished(context, request.kind);
    let run = context.load()?.state.run(&key).cloned();
    Ok(Restore {
        kind: request.kind,
        changed: true,
        result,
        run,
    })
}

fn head_after(
    repo: &Repo,
    planned: &Planned,
    before: &Head,
    request: &RestoreRequest,
) -> Result<Option<Head>> {
    let commit = match &planned.head {
        HeadPlan::Stay => return Ok(None),
        HeadPlan::Switch(to) => return Ok(Some(to.clone())),
        HeadPlan::Move(to) => to.clone(),
        HeadPlan::Revert => {
            let message = format!("Revert to checkpoint {}\n", request.target.id);
            let tree = &planned.stored.tree;
            let made = repo.commit_on_top(
                &planned.prepared.lock,
                tree,
                before.commit.as_ref(),
                &message,
            )?;
            tracing::debug!(commit = %made, kind = request.kind.as_str(), "the checkpoint's content as a commit on top");
            Some(made)
        }
    };
    Ok(Some(Head {
        commit,
        branch: before.branch.clone(),
    }))
}

impl Journaled<'_> {
    /// Makes sure that the safety checkpoint has all that is overwritten or deleted, and that it can be read. The work tree is
    /// not changed.
    fn read_back(&self, request: &RestoreRequest) -> Result<()> {
        let (repo, plan) = (self.repo, &self.journal.plan);
        let mut lost = repo.read_back_overwritten(self.lock, plan)?;
        let safety = self.safety()?;
        let nested = LayerPart::all(repo, &safety, &[])?;
        let lookup = TreeLookup::stored(repo)?;
        for (path, from) in plan.overwritten() {
            let held = match LayerPart::baseline(&nested, &lookup, path)? {
                Some(Baseline::Present(entry)) => Some(entry),
                Some(_) => None,
                None => safety.view().entry(&lookup, path)?,
            };
            if held.is_none_or(|held| (held.kind, held.oid) != (from.kind, from.oid.clone())) {
                let reason = "the safety checkpoint does not have its content";
                lost.push(PathReason::new(path.clone(), reason));
            }
        }
        if lost.is_empty() {
            return Ok(());
        }
        let message =
            "the files that would be overwritten could not be brought back; nothing was written";
        Err(Error::new(ErrorKind::Conflicts, message)
            .paths(lost)
            .hint(request.command(&[])))
    }

    /// Writes the journal. An error may come after it has got its name: then it goes again.
    fn start(&self) -> Result<()> {
        let written = self.repo.write_restore_journal(self.lock, self.journal);
        written.map_err(|error| {
            if self.repo.has_restore_journal() {
                self.revert_after(error.into())
            } else {
                error.into()
            }
        })
    }

    /// Everything between the journal and the event, verified. May be repeated after a cut.
    fn apply(&self, expect: Expect, interruption: &Interruption) -> Result<Restored> {
        let (context, repo, lock, journal) = (self.context, self.repo, self.lock, self.journal);
        let unlink = &self.engine.unlink;
        unlink
            .iter()
            .try_for_each(|file| repo.remove_git_file(file))?;
        let mut restored =
            repo.execute_restore(lock, &journal.plan, expect, &|| interruption.stops())?;
        let placed = &self.engine.operation.nested.placed;
        placed
            .iter()
            .try_for_each(|file| repo.write_git_file(file))?;
        let mut verified = repo.verify_restore(&journal.plan, &restored)?;
        if verified.differing.is_empty() {
            verified.differing = repo.set_last_modes(lock, &restored)?;
        }
        if !verified.differing.is_empty() {
            let message = "what was written does not read back as the checkpoint's";
            return Err(Error::new(ErrorKind::Failed, message).paths(verified.differing));
        }
        let mut memory_kept = Vec::new();
        if self.covers_memory() && !self.engine.leave_memory {
            memory_kept = self.restore_memory()?;
        }
        self.move_head()?;
        if context.has_git()
            && self.engine.operation.scope != Scope::State
            && !journal.restore_index
            && let Err(error) =
                repo.refresh_index(lock, &restored.written, &verified, context.lock_timeout())
        {
            // Only stat data: git finds out by itself, a little slower.
            tracing::debug!(%error, "the index was not refreshed");
        }
        self.apply_index()?;
        for lost in &restored.lost {
            let path = escape(&lost.path.to_lossy());
            context.warn(format!("{path}: {}", lost.reason));
        }
        let root = memory::named_root(context);
        let named = |kept: PathReason| PathReason {
            path: root.join(kept.path.as_bytes()),
            ..kept
        };
        restored.kept.extend(memory_kept.into_iter().map(named));
        Ok(restored)
    }

    /// Moves HEAD on its branch, or to another one; the branch that `accept` began goes with what it was begun for.
    fn move_head(&self) -> Result<()> {
        let (repo, lock, before) = (self.repo, self.lock, &self.journal.head_before);
        let Some(after) = &self.journal.head_after else {
            return Ok(());
        };
        if repo.head()? == *after {
            return Ok(());
        }
        let (kind, target) = (&self.journal.kind, &self.engine.operation.checkpoint_id);
        let message = format!("recover: {kind} to {target}");
        if after.branch == before.branch {
            repo.move_branch(lock, before, after.commit.as_ref(), &message)?;
        } else if self.engine.leave_branch {
            repo.leave_branch(lock, before, after, &message)?;
        } else {
            repo.switch(lock, before, after, &message)?;
        }
        Ok(())
    }

    /// Puts the working memory back. What the loop wrote since the safety checkpoint stays as it is and is returned.
    fn restore_memory(&self) -> Result<Vec<PathReason>> {
        let (context, repo) = (self.context, self.repo);
        let now = memory::read(context)?;
        let before = self.safety()?.memory(repo)?;
        let target = self.target()?;
        let then = target.memory(repo)?;
        let plan_from = if self.engine.clear_loop_state {
            memory::plan_after_error
        } else {
            memory::plan
        };
        let settings = &context.settings().memory;
        let mut plan = plan_from(&now, &then, settings)?;
        let kept = plan.leave_changed(&now, &[&before, &then]);
        // What went before a kill may have left a folder that is empty now.
        let mut gone = plan_from(&before, &then, settings)?.delete;
        gone.retain(|path| now.iter().all(|file| file.path != *path));
        plan.delete.extend(gone);
        plan.leave(&target.withheld_memory());
        memory::apply(context.store(), &plan)?;
        Ok(kept)
    }

    /// The event, then the journal goes: from here on the restore is history.
    fn finish(&self) -> Result<()> {
        let (context, engine) = (self.context, &self.engine);
        let mut ledger = context.store().lock()?;
        if !self.is_recorded(ledger.state()) {
            let operation = Box::new(engine.operation.clone());
            let event = NewEvent {
                run: engine.run.clone(),
                source: EventSource::Recover,
                payload: Payload::Restored { operation },
            };
            ledger.append(context.clock.now(), vec![event])?;
        }
        // It is done: the next command writes the views, should they fail now.
        let written = seed_json::refresh_active(context, ledger.state());
        let runs: Vec<_> = engine.run.iter().collect();
        if let Err(error) = written.and_then(|()| Ok(write_views(ledger, &runs)?)) {
            let kind = &self.journal.kind;
            tracing::warn!(%error, "the {kind} is done, but what is written for others to read is not up to date");
        }
        Ok(self.repo.remove_restore_journal(self.lock)?)
    }
}

/// Finishes a restore that a kill cut off, or takes it back where that is not possible. Returns what was done.
pub(crate) fn finish_cut_off(context: &Context) -> Result<Option<String>> {
    let repo = context.repo()?;
    if repo.restore_journal()?.is_none() {
        return give_back_left(context, repo);
    }
    let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
    // Read again under the lock: whoever held it may have been the one that was at it.
    let Some(journal) = repo.restore_journal()? else {
        return Ok(None);
    };
    // It was interrupted once: now it comes to an end, one way or the other.
    let interruption = Interruption::new(false)?;
    repo.reap_temp_files(&lock, &journal.plan)
        .map_err(|error| temp_file_left(&error.into()))?;
    let journaled =
        Journaled::new(context, &lock, &journal).map_err(|error| not_reverted(&error, &error))?;
    let end = match journaled.apply(Expect::CutOff, &interruption) {
        Ok(_) => {
            journaled.finish()?;
            interruption.tell_finished(context, journaled.engine.operation.kind);
            interruption.go_on()?;
            "finished"
        }
        Err(error) => {
            tracing::warn!(%error, "a restore that was interrupted cannot be finished; it is reverted");
            let reverted = journaled.revert();
            let left = reverted.map_err(|second| not_reverted(&error, &second))?;
            if !left.is_empty() {
                let message = "a cut-off restore could be reverted in part only";
                return Err(Error::new(ErrorKind::Partial, message).paths(left));
            }
            "reverted"
        }
    };
    let (kind, id) = (&journal.kind, &journal.operation_id);
    Ok(Some(format!("{kind} {id} was interrupted: {end}")))
}

/// Gives rights back that a capture had lent which was killed.
fn give_back_left(context: &Context, repo: &Repo) -> Result<Option<String>> {
    if !Loan::is_left(repo) {
        return Ok(None);
    }
    let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
    let was_left = Loan::give_back_left(repo, &lock)?;
    Ok(was_left.then(|| {
        "a capture was interrupted: the permissions that it had changed were restored".to_owned()
    }))
}

/// Puts the working memory back as an operation of its own: nothing but the state directory is touched (L6).
pub(super) fn restore_state_only(
    context: &Context,
    lock: &WorktreeLock,
    run: &RunKey,
    operation: Operation,
    commits: (&ObjectId, &ObjectId),
) -> Result<()> {
    let engine = JournalContext {
        clear_loop_state: true,
        ..JournalContext::new(run, operation)
    };
    let journal = engine.journal(commits)?;
    let journaled = Journaled::new(context, lock, &journal)?;
    let _interruption = Interruption::new(false)?;
    journaled.start()?;
    let restored = journaled.restore_memory();
    let kept = restored.map_err(|error| journaled.revert_after(error))?;
    if !kept.is_empty() {
        tracing::warn!(?kept, "written meanwhile: left as it is");
    }
    Ok(())
}

/// What a restore does about a request to stop.
#[derive(Debug)]
struct Interruption {
    shield: SignalGuard,
    takes_back: bool,
}

impl Interruption {
    /// From here on no signal ends the process. With `takes_back` a request takes back what was done; else the restore
    /// comes to its end, and whoever asked for it acts on the request then.
    pub(crate) fn new(takes_back: bool) -> Result<Self> {
        Ok(Self {
            shield: listen()?.shield(),
            takes_back,
        })
    }

    /// Whether to stop now.
    pub(crate) fn stops(&self) -> bool {
        self.takes_back && self.shield.pending().is_some()
    }

    /// Refuses to begin.
    pub(crate) fn refuse(&self, kind: OperationKind) -> Result<()> {
        let stop = self.shield.pending().filter(|_| self.takes_back);
        stop.map_or(Ok(()), |signal| {
            let (name, what) = (signal.name(), kind.as_str());
            let message = format!("{name}: the {what} was not begun, nothing was written");
            Err(Error::interrupted(signal, message))
        })
    }

    /// The error of a restore that stopped, by the signal that stopped it.
    pub(crate) fn explained(&self, kind: OperationKind, error: Error) -> Error {
        match (error.kind, self.shield.pending()) {
            (ErrorKind::Interrupted(_), Some(signal)) => {
                let message = format!("{}: the {} was stopped", signal.name(), kind.as_str());
                Error::interrupted(signal, message)
            }
            _ => error,
        }
    }

    /// Says that it was finished although a user asked to stop. The program ends with that signal's code.
    fn tell_finished(&self, context: &Context, kind: OperationKind) {
        if let Some(signal) = self.shield.pending() {
            let (name, done, back) = (signal.name(), kind.as_str(), kind.taken_back_by());
            tracing::error!("{name}: the {done} was finished first; recover {back} reverts it");
            context.progress.stop_late(signal);
        }
    }

    /// Refuses what comes after a restore that was finished although a user asked to stop.
    pub(crate) fn go_on(&self) -> Result<()> {
        self.shield.pending().map_or(Ok(()), |signal| {
            let message = format!("{}: nothing else was done", signal.name());
            Err(Error::interrupted(signal, message))
        })
    }
}

/// From here on a request to stop is noted and asked for, instead of ending the process.
pub(crate) fn listen() -> Result<Interrupts> {
    Ok(Interrupts::install().context("cannot listen for signals")?)
}
