//! Executing a plan under a journal: a kill at any instant can be finished or reverted from it.
//!
//! Handles a request to stop that comes while a restore is under way.
//! It is taken back, or finished where that is nearly done anyway. Either way the work tree is one of the two, however many
//! signals come.

use anyhow::Context as _;

use super::head;
use super::head::{
    HeadPlan, JournalContext, decode, is_recorded, not_reverted, revert, revert_after,
    temp_file_left, unrecorded,
};
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
    CheckpointType, EventSource, Head, HeadMove, ObjectId, Operation, OperationKind, PathReason,
    Payload, RepoPath, RunKey, Scope,
};
use crate::policy::restore::Baseline;
use crate::policy::text::escape;
use crate::process::{Interrupts, Shield};
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
    let now = context.clock.now();
    ledger.append(now, created)?;
    let safety = Request {
        description: format!("Before {} to {}", request.kind.as_str(), request.target.id),
        trigger: trigger::SAFETY.to_owned(),
        kind: CheckpointType::Operation,
        ..Request::default()
    };
    let safety = checkpoint::record(context, &ledger, &key, &planned.prepared, safety)?;
    ledger.append(now, vec![checkpoint::event(&safety)])?;
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
    read_back(context, lock, &journal, request)?;
    interruption.refuse(request.kind)?;
    start_journal(context, lock, &journal)?;
    let done = match apply(context, lock, &journal, (Expect::Captured, interruption)) {
        Ok(done) => done,
        Err(error) => {
            return Err(revert_after(
                context,
                lock,
                &journal,
                interruption.explained(request.kind, error),
            ));
        }
    };
    result.verified = done.verified;
    // What something turned up in meanwhile has stayed, and so has what the loop wrote meanwhile.
    let stayed = |path: &RepoPath| done.restored.kept.iter().any(|kept| kept.path == *path);
    result.deleted.retain(|path| !stayed(path));
    result.written.retain(|path| !stayed(path));
    result.kept.extend(done.restored.kept);
    result.kept.sort();
    result.kept.dedup();
    finish_journal(context, lock, &journal)
        .map_err(|error| unrecorded(context, lock, &journal, error))?;
    interruption.tell_finished(context, request.kind);
    let run = context.load()?.state.run(&key).cloned();
    Ok(Restore {
        kind: request.kind,
        changed: true,
        result,
        run,
    })
}

/// Makes sure that the safety checkpoint has all that is overwritten or deleted, and that it can be read. The work tree is not
/// changed.
fn read_back(
    context: &Context,
    lock: &WorktreeLock,
    journal: &RestoreJournal,
    request: &RestoreRequest,
) -> Result<()> {
    let repo = context.repo()?;
    let mut lost = repo.read_back_overwritten(lock, &journal.plan)?;
    let safety = repo.load_checkpoint(&journal.safety_commit)?;
    let (nested, lookup) = (
        LayerPart::all(repo, &safety, &[])?,
        TreeLookup::stored(repo)?,
    );
    for (path, from) in journal.plan.overwritten() {
        let held = match LayerPart::baseline(&nested, &lookup, path)? {
            Some(Baseline::Present(entry)) => Some(entry),
            Some(_) => None,
            None => safety.view().entry(&lookup, path)?,
        };
        if held.is_none_or(|held| (held.kind, held.oid) != (from.kind, from.oid.clone())) {
            let reason = "the safety checkpoint does not have its content".to_owned();
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
fn start_journal(context: &Context, lock: &WorktreeLock, journal: &RestoreJournal) -> Result<()> {
    let repo = context.repo()?;
    repo.write_restore_journal(lock, journal).map_err(|error| {
        if repo.has_restore_journal() {
            revert_after(context, lock, journal, error.into())
        } else {
            error.into()
        }
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

struct Done {
    restored: Restored,
    verified: bool,
}

/// Everything between the journal and the event. May be repeated after a cut.
fn apply(
    context: &Context,
    lock: &WorktreeLock,
    journal: &RestoreJournal,
    (expect, interruption): (Expect, &Interruption),
) -> Result<Done> {
    let repo = context.repo()?;
    let journaled = decode(journal)?;
    let scope = journaled.operation.scope;
    journaled
        .unlink
        .iter()
        .try_for_each(|file| repo.remove_git_file(file))?;
    let mut restored =
        repo.execute_restore(lock, &journal.plan, expect, &|| interruption.stops())?;
    journaled
        .operation
        .nested
        .placed
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
    if scope.covers_state() && journal.selection.is_empty() && !journaled.leave_memory {
        memory_kept = restore_memory(context, journal, journaled.clear_loop_state)?;
    }
    if let Some(after) = &journal.head_after {
        let now = repo.head()?;
        if now != *after {
            let message = format!(
                "recover: {} to {}",
                journal.kind, journaled.operation.checkpoint_id
            );
            move_head(repo, lock, (journal, &journaled), &message)?;
        }
    }
    if context.has_git()
        && scope != Scope::State
        && !journal.restore_index
        && let Err(error) =
            repo.refresh_index(lock, &restored.written, &verified, context.lock_timeout())
    {
        // Only stat data: git finds out by itself, a little slower.
        tracing::debug!(%error, "the index was not refreshed");
    }
    head::apply_index(context, lock, journal, &journaled)?;
    for lost in &restored.lost {
        context.warn(format!(
            "{}: {}",
            escape(&lost.path.to_lossy()),
            lost.reason
        ));
    }
    let root = memory::named_root(context);
    let named = |kept: PathReason| PathReason {
        path: root.join(kept.path.as_bytes()),
        ..kept
    };
    restored.kept.extend(memory_kept.into_iter().map(named));
    Ok(Done {
        restored,
        verified: true,
    })
}

/// Moves HEAD on its branch, or to another one; the branch that `accept` began goes with what it was begun for.
fn move_head(
    repo: &Repo,
    lock: &WorktreeLock,
    (journal, journaled): (&RestoreJournal, &JournalContext),
    message: &str,
) -> Result<()> {
    let (before, Some(after)) = (&journal.head_before, &journal.head_after) else {
        return Ok(());
    };
    if after.commit.is_none() || after.branch == before.branch {
        repo.move_branch(lock, before, after.commit.as_ref(), message)?;
    } else if journaled.leave_branch {
        repo.leave_branch(lock, before, after, message)?;
    } else {
        repo.switch(lock, before, after, message)?;
    }
    Ok(())
}

/// Puts the working memory back. What the loop wrote since the safety checkpoint stays as it is and is returned.
fn restore_memory(
    context: &Context,
    journal: &RestoreJournal,
    clear_loop_state: bool,
) -> Result<Vec<PathReason>> {
    let repo = context.repo()?;
    let now = memory::read(context)?;
    let before = repo.load_checkpoint(&journal.safety_commit)?.memory(repo)?;
    let target = repo.load_checkpoint(&journal.target_commit)?;
    let then = target.memory(repo)?;
    let plan_from = if clear_loop_state {
        memory::plan_after_error
    } else {
        memory::plan
    };
    let settings = &context.settings().memory;
    let mut plan = plan_from(&now, &then, settings)?;
    let kept = plan.leave_changed(&now, &[&before, &then]);
    // What went before a kill may have left a folder that is empty now.
    let is_gone = |path: &RepoPath| now.iter().all(|file| file.path != *path);
    plan.delete.extend(
        plan_from(&before, &then, settings)?
            .delete
            .into_iter()
            .filter(is_gone),
    );
    plan.leave(&target.withheld_memory());
    memory::apply(context.store(), &plan)?;
    Ok(kept)
}

/// The event, then the journal goes: from here on the restore is history.
fn finish_journal(context: &Context, lock: &WorktreeLock, journal: &RestoreJournal) -> Result<()> {
    let journaled = decode(journal)?;
    let mut ledger = context.store().lock()?;
    if !is_recorded(ledger.state(), journal) {
        let payload = Payload::Restored {
            operation: Box::new(journaled.operation),
        };
        let event = NewEvent {
            run: journaled.run.clone(),
            source: EventSource::Recover,
            payload,
        };
        ledger.append(context.clock.now(), vec![event])?;
    }
    // It is done: the next command writes the views, should they fail now.
    let written = seed_json::refresh_active(context, ledger.state());
    let runs: Vec<_> = journaled.run.iter().collect();
    if let Err(error) = written.and_then(|()| Ok(write_views(ledger, &runs)?)) {
        let kind = &journal.kind;
        tracing::warn!(%error, "the {kind} is done, but what is written for others to read is not up to date");
    }
    Ok(context.repo()?.remove_restore_journal(lock)?)
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
    match apply(context, &lock, &journal, (Expect::CutOff, &interruption)) {
        Ok(_) => {
            finish_journal(context, &lock, &journal)?;
            interruption.tell_finished(context, decode(&journal)?.operation.kind);
            interruption.go_on()?;
            Ok(Some(format!(
                "{} {} was interrupted: finished",
                journal.kind, journal.operation_id
            )))
        }
        Err(error) => {
            tracing::warn!(%error, "a restore that was interrupted cannot be finished; it is reverted");
            let left =
                revert(context, &lock, &journal).map_err(|second| not_reverted(&error, &second))?;
            if !left.is_empty() {
                return Err(Error::new(
                    ErrorKind::Partial,
                    "a cut-off restore could be reverted in part only",
                )
                .paths(left));
            }
            Ok(Some(format!(
                "{} {} was interrupted: reverted",
                journal.kind, journal.operation_id
            )))
        }
    }
}

/// Gives rights back that a capture had lent which was killed.
fn give_back_left(context: &Context, repo: &Repo) -> Result<Option<String>> {
    if !Loan::is_left(repo) {
        return Ok(None);
    }
    let lock = WorktreeLock::acquire(repo, context.lock_timeout())?;
    let was_left = Loan::give_back_left(repo, &lock)?;
    Ok(was_left.then(|| {
        "a capture was interrupted: permissions that it had lent were given back".to_owned()
    }))
}

/// Puts the working memory back as an operation of its own: nothing but the state directory is touched (L6).
pub(super) fn restore_state_only(
    context: &Context,
    lock: &WorktreeLock,
    run: &RunKey,
    operation: Operation,
    commits: (&ObjectId, &ObjectId),
) -> Result<RestoreJournal> {
    let journaled = JournalContext {
        clear_loop_state: true,
        ..JournalContext::new(run, operation)
    };
    let journal = journaled.journal(commits)?;
    let _interruption = Interruption::new(false)?;
    start_journal(context, lock, &journal)?;
    let kept = restore_memory(context, &journal, true)
        .map_err(|error| revert_after(context, lock, &journal, error))?;
    if !kept.is_empty() {
        tracing::warn!(?kept, "written meanwhile: left as it is");
    }
    Ok(journal)
}

/// What a restore does about a request to stop.
#[derive(Debug)]
struct Interruption {
    shield: Shield,
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
            tracing::error!("{name}: the {done} was finished first; recover {back} takes it back");
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
