//! Restoring on request: who may, what is refused while a run is at work, steps that it crosses.
//!
//! The restore itself is `engine::restore`, what it writes and deletes `policy::restore`, the files `git::restore`.
//!
//! Rollback, `checkpoint restore`, undo and redo are this one operation with different targets.
//!
//! Ignored files that vanished: no checkpoint holds them, and some have a copy.
//!
//! Taking back restores, and doing them again. Undo and redo are restores themselves, with a safety checkpoint each.

use super::settings_follow;
use crate::engine::base::heartbeat::is_alive;
use crate::engine::base::runs::way_to_stop;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::stored::mark_suspect;
use crate::engine::record::{checkpoint, select};
use crate::engine::recovery;
use crate::engine::restore::execute::{self, listen};
use crate::engine::restore::plan::{self, Planned};
use crate::engine::restore::request::{
    Commits, Compensated, CrossedStep, Initiator, OperationReport, Options, Restore,
    RestoreRequest, RestoreResult,
};
use crate::engine::step::{Crossing, compensate, is_ancestor_step};
use crate::git::checkpoint::PreciousFile;
use crate::model::operation::{GitChanges, UndoEntry};
use crate::model::spec::Isolated;
use crate::model::step::StepRef;
use crate::model::{
    Checkpoint, CheckpointId, Hint, ObjectId, OperationKind, PathReason, ProcessId, RepoPath, Run,
    RunKey, State, StepStatus, Verdict,
};
use crate::policy::restore::{Edits, Selection, glob_of};
use crate::policy::text::{count, first_few};

/// The reason of an ignored file that is gone and has a copy.
pub(crate) const COPIED: &str = "copied";

/// Does it; with `--dry-run` only plans it. A request to stop is the caller's: the restore is finished.
pub(crate) fn restore(context: &Context, request: &RestoreRequest) -> Result<Restore> {
    restore_chosen(context, request.kind, false, |_| Ok(request.clone()))
        .inspect_err(|error| note_damage(context, error))
}

/// Restores for a person, whose request to stop reverts it. `request` chooses from the state under the work tree's lock, so
/// that of two restores at once the second is planned from what the first left.
pub(crate) fn restore_with(
    context: &Context,
    kind: OperationKind,
    request: impl FnOnce(&State) -> Result<RestoreRequest>,
) -> Result<Restore> {
    if !context.dry_run() {
        listen()?;
    }
    restore_chosen(context, kind, true, request).inspect_err(|error| note_damage(context, error))
}

fn note_damage(context: &Context, error: &Error) {
    if error.kind == ErrorKind::Corrupt
        && !context.dry_run()
        && let Ok(repo) = context.repo()
    {
        mark_suspect(repo);
    }
}

fn restore_chosen(
    context: &Context,
    kind: OperationKind,
    takes_back: bool,
    request: impl FnOnce(&State) -> Result<RestoreRequest>,
) -> Result<Restore> {
    if !context.dry_run() {
        context.check_safe_mode(kind.as_str())?;
        let cut_off = cut_off_step(context, kind)?;
        recovery::recover(context)?;
        if let Some(target) = cut_off
            && let Some(finished) = finished_step(context, kind, &target)?
        {
            return Ok(finished);
        }
    }
    let lock = checkpoint::lock(context)?;
    let state = recovery::load_recovered(context)?;
    // A plan touches nothing; what a person is asked about comes to be done.
    if !context.only_plans() {
        refuse_live(context, &state)?;
    }
    let mut request = request(&state)?;
    let planned = plan::plan(context, lock, &state, &request)?;
    if request.kind == OperationKind::Discard && !planned.left.is_empty() {
        // What the run changed of a person's work is not back yet.
        request.reposition = None;
    }
    if request.initiator == Initiator::User {
        warn_in_the_way(context, &request, &planned);
    }
    let crossing = Crossing::of(context, &state, &request);
    let before = request.run.as_ref().and_then(|key| state.run(key));
    let moves = request
        .reposition
        .as_ref()
        .zip(before)
        .is_some_and(|(to, run)| to.moves(run))
        || moves_line(&state, &request)
        || gives_steps_back(&state, &crossing.refs());
    // An undo whose files are there already moves on to what was before.
    let mut vanished = Vanished::of(context, &state, &request)?;
    let changes = !planned.is_empty()
        || moves
        || crossing.compensates()
        || request.undoes.is_some()
        // What is left of an attempt is named to the next one.
        || (request.initiator == Initiator::Policy && !planned.left.is_empty())
        || !vanished.back.is_empty();
    if context.dry_run() || !changes {
        let mut result = planned.result(&request.target, None, !context.dry_run());
        result.tell_vanished(vanished);
        result.tell(&request, before, &crossing, crossing.planned());
        return Ok(Restore {
            kind,
            changed: changes,
            result,
            run: before.cloned(),
        });
    }
    let mut restore = execute::run(context, &request, planned, crossing.refs(), takes_back)?;
    vanished.put_back(context)?;
    if request.initiator == Initiator::Policy {
        vanished.tell(context);
    }
    restore.result.tell_vanished(vanished);
    let compensated = compensate(context, &crossing, &request.target.id)?;
    restore
        .result
        .tell(&request, before, &crossing, compensated);
    Ok(restore)
}

/// Says what could not be replaced where the run stays open for it, or a person can move it aside, and the commands.
fn warn_in_the_way(context: &Context, request: &RestoreRequest, planned: &Planned) {
    let in_the_way = &planned.in_the_way;
    let discarded = request.run.as_ref();
    let discarded = discarded.filter(|_| request.kind == OperationKind::Discard);
    let open = discarded.filter(|_| !planned.left.is_empty());
    if context.dry_run() || (open.is_none() && in_the_way.is_empty()) {
        return;
    }
    let end = open.map_or_else(String::new, |run| format!("run {run} is not closed: "));
    let again = if discarded.is_some() {
        request.command(&["--yes"])
    } else {
        let id = request.target.id.as_str();
        let restore = Hint::recover(["checkpoint", "restore", id, "--edits", "discard"]);
        let globs = in_the_way.iter().take(NAMED).map(glob_of);
        restore.args(globs.flat_map(|glob| ["--path".to_owned(), glob]))
    };
    let folder = context.worktree();
    let move_aside = |path: &RepoPath| {
        let mut aside = path.clone();
        while aside == *path || aside.below(folder).symlink_metadata().is_ok() {
            aside = RepoPath::new([aside.as_bytes(), b".aside"].concat());
        }
        Hint::program("mv")
            .arg(path.below(folder))
            .arg(aside.below(folder))
    };
    let moves = in_the_way.iter().take(NAMED).map(move_aside);
    let way = moves.chain([again]).reduce(Hint::and);
    let way = way.map_or_else(String::new, |way| context.line(way));
    context.warn(if in_the_way.is_empty() {
        let left: Vec<&RepoPath> = planned.left.iter().map(|one| &one.path).collect();
        let left = names(&left);
        format!("{end}{left} could not be replaced; once that is possible: {way}")
    } else {
        let left = names(&in_the_way.iter().collect::<Vec<_>>());
        format!(
            "{end}{left} could not be replaced, as no checkpoint has what is there now; to move that aside and restore \
             the checkpoint's: {way}"
        )
    });
}

/// The target of an undo or a redo that was cut off, where the same is asked for again: it is the same step, not another one.
fn cut_off_step(context: &Context, kind: OperationKind) -> Result<Option<ObjectId>> {
    let is_step = matches!(kind, OperationKind::Undo | OperationKind::Redo);
    let Some(repo) = context.git().filter(|_| is_step) else {
        return Ok(None);
    };
    let journal = repo.restore_journal()?;
    let same = journal.filter(|journal| journal.kind == kind.as_str());
    Ok(same.map(|journal| journal.target_commit))
}

/// The answer of a step that was finished just now; `None` where the files are not its target's.
fn finished_step(
    context: &Context,
    kind: OperationKind,
    target: &ObjectId,
) -> Result<Option<Restore>> {
    let lock = checkpoint::lock(context)?;
    let state = recovery::load_recovered(context)?;
    let mut all = state.checkpoints.values();
    let Some(target) = all.find(|one| one.commit == *target) else {
        return Ok(None);
    };
    let request = RestoreRequest::new(kind, target, Options::default());
    let planned = plan::plan(context, lock, &state, &request)?;
    Ok(planned.is_empty().then(|| Restore {
        kind,
        changed: false,
        result: planned.result(&request.target, None, true),
        run: state.run(&target.run).cloned(),
    }))
}

impl RestoreResult {
    /// Tells what became of ignored files that are gone.
    fn tell_vanished(&mut self, vanished: Vanished) {
        let reasoned = |paths: Vec<RepoPath>, reason: &str| {
            let reason = reason.to_owned();
            paths
                .into_iter()
                .map(move |path| PathReason::new(path, reason.clone()))
        };
        self.precious = vanished.back.into_iter().map(|file| file.path).collect();
        self.missing = reasoned(vanished.copied, COPIED)
            .chain(reasoned(vanished.lost, "no_copy"))
            .collect();
    }

    /// Tells what was taken back, over which iterations of the run it went, as that was `before`, and of the steps that were
    /// gone back past; `compensated` are those whose effects were
    /// taken back, or would be.
    fn tell(
        &mut self,
        request: &RestoreRequest,
        before: Option<&Run>,
        crossing: &Crossing,
        compensated: Vec<Compensated>,
    ) {
        let over = request.reposition.as_ref().zip(before);
        self.superseded = over.map(|(to, run)| to.supersedes(run)).unwrap_or_default();
        self.operation = request.undoes.as_ref().map(|undone| OperationReport {
            command: undone.kind.as_str(),
            checkpoint_id: undone.restored.clone(),
        });
        self.crossed = crossing.crossed();
        for failed in compensated
            .iter()
            .filter(|one| one.succeeded == Some(false))
        {
            let code = failed.compensate_exit_code.unwrap_or(1);
            let reason = format!("its compensation ended with {code}");
            self.crossed.push(CrossedStep {
                step: failed.step.clone(),
                reason,
            });
            self.success = false;
        }
        self.compensated = compensated;
    }
}

/// Whether another checkpoint is good afterwards, or stages of a lane come to stand as rolled back (C5).
fn moves_line(state: &State, request: &RestoreRequest) -> bool {
    let run = request.reposition.as_ref().and(request.run.as_ref());
    let target = &request.target;
    if run != Some(&target.run) {
        return false;
    }
    let passed = |one: &Checkpoint| one.verdict == Verdict::Passed;
    let mut after = state
        .standing(&target.run)
        .rev()
        .take_while(|one| one.seq > target.seq);
    (passed(target) && state.is_superseded(target))
        || after.any(|one| passed(one) || one.lane_fields.stage.is_some())
}

/// Whether steps of a lane that are done come to be run again (C4).
fn gives_steps_back(state: &State, crossed: &[StepRef]) -> bool {
    crossed.iter().any(|step| {
        let known = state.run(&step.run).and_then(|run| run.step(&step.name));
        known.is_some_and(|known| !known.crossed && known.would_run_again(&step.run))
    })
}

/// While an attempt of a live `recover run`, or a step, is under way in this work tree, nothing is restored under it.
fn refuse_live(context: &Context, state: &State) -> Result<()> {
    let worktree = context.worktree_id();
    for run in state.runs_of(&worktree) {
        let supervisor = run.live.as_ref().and_then(|live| live.supervisor.as_ref());
        if let Some(supervisor) =
            supervisor.filter(|id| !id.is_own() && is_alive(context.store(), id))
        {
            return Err(under_way("an attempt", &run.key, supervisor));
        }
    }
    for run in &state.runs {
        let here = run
            .steps
            .iter()
            .filter(|step| step.start.worktree == worktree);
        let mut live = here.filter(|step| step.status == StepStatus::Running);
        // What a step's own command does is the step's affair.
        if let Some(step) = live.find(|step| !is_ancestor_step(context, &run.key, &step.start.name))
        {
            let what = format!("step '{}'", step.start.name);
            return Err(under_way(&what, &run.key, &step.start.supervisor));
        }
    }
    Ok(())
}

fn under_way(what: &str, key: &RunKey, by: &ProcessId) -> Error {
    let (pid, way) = (by.pid, way_to_stop(by));
    let message = format!("{what} of run {key} is under way (pid {pid}): {way}");
    Error::new(ErrorKind::Locked, message).hint(Hint::recover(["status"]).run(key))
}

/// Paths that a line names at most.
const NAMED: usize = 3;

/// What a restore does about them.
#[derive(Clone, Debug, Default)]
struct Vanished {
    /// Put back.
    pub back: Vec<PreciousFile>,
    /// Not put back, though there is a copy.
    pub copied: Vec<RepoPath>,
    /// Without a copy.
    pub lost: Vec<RepoPath>,
}

impl Vanished {
    /// What is gone of what was there. Unasked, that is what was there when the attempt began, and its copies come back; a
    /// person gets what was there at the checkpoint, and the copies where that was asked for.
    pub(crate) fn of(context: &Context, state: &State, request: &RestoreRequest) -> Result<Self> {
        let is_here = request.target.worktree == context.worktree_id();
        let selection = Selection::globs(&request.options.paths).unwrap_or_default();
        let then = if request.initiator == Initiator::Policy {
            begun_at(context, state, request)
        } else {
            Some(&request.target.id)
        };
        let Some(then) = then.filter(|_| is_here && request.options.scope.covers_files()) else {
            return Ok(Self::default());
        };
        let repo = context.repo()?;
        let (mut copies, mut lost) = repo.ignored_at(then).missing(repo);
        copies.retain(|file| selection.matches(&file.path));
        lost.retain(|path| selection.matches(path));
        if request.initiator == Initiator::Policy || request.options.precious {
            return Ok(Self {
                back: copies,
                copied: Vec::new(),
                lost,
            });
        }
        Ok(Self {
            back: Vec::new(),
            copied: copies.into_iter().map(|file| file.path).collect(),
            lost,
        })
    }

    /// Puts the copies back. What cannot be, or has its name by now, is no longer among them.
    pub(crate) fn put_back(&mut self, context: &Context) -> Result<()> {
        let repo = context.repo()?;
        self.back.retain(|file| {
            let done = file.put_back(repo);
            done.inspect_err(|error| {
                context.warn(format!("{} is not put back: {error}", file.path));
            })
            .unwrap_or(false)
        });
        Ok(())
    }

    /// Says what became of them, where nobody reads the answer of the restore.
    pub(crate) fn tell(&self, context: &Context) {
        let back: Vec<&RepoPath> = self.back.iter().map(|file| &file.path).collect();
        if !back.is_empty() {
            context.note(format!(
                "put back from its copy, as the attempt removed it: {}",
                names(&back)
            ));
        }
        let lost: Vec<&RepoPath> = self.copied.iter().chain(&self.lost).collect();
        if !lost.is_empty() {
            context.warn(format!(
                "ignored by git, in no checkpoint, and deleted since the attempt began: {}",
                names(&lost)
            ));
        }
    }
}

/// The latest checkpoint before the run's last attempt began.
fn begun_at<'s>(
    context: &Context,
    state: &'s State,
    request: &RestoreRequest,
) -> Option<&'s CheckpointId> {
    let run = state.run(request.run.as_ref()?)?;
    let begun = Run::attempts(run).last()?.1.started_at;
    let here = context.worktree_id();
    let before = state
        .checkpoints
        .values()
        .filter(|one| one.worktree == here && one.created_at <= begun);
    before.max_by_key(|one| one.seq).map(|one| &one.id)
}

/// The first few paths.
fn names(paths: &[&RepoPath]) -> String {
    let all = paths.iter().map(ToString::to_string);
    first_few(all, NAMED, |others| count(others, "other path"))
}

/// Takes back what was last done in this work tree: a rollback, a restore or an accept; with `of_run` what a run did by
/// itself. Of the options those count that are about what is in the way.
pub(crate) fn undo(context: &Context, how: &Options, of_run: bool) -> Result<Restore> {
    step(context, OperationKind::Undo, how, of_run)
}

/// Does again what the last undo took back.
pub(crate) fn redo(context: &Context, how: &Options) -> Result<Restore> {
    step(context, OperationKind::Redo, how, false)
}

fn step(context: &Context, kind: OperationKind, how: &Options, of_run: bool) -> Result<Restore> {
    // A restore that was cut off is finished first: then there is something to take back.
    let done = restore_with(context, kind, |state| {
        let named = context.naming().run_id.as_ref();
        if named.is_some_and(|id| context.env("RECOVER_RUN_ID").as_deref() != Some(id.as_str())) {
            select::require(context, state)?;
        }
        let worktree = state.worktrees.get(&context.worktree_id());
        let entry: Option<&UndoEntry> = worktree.and_then(|worktree| match kind {
            OperationKind::Undo if of_run => worktree.of_runs.last(),
            OperationKind::Undo => worktree.undo.last(),
            _ => worktree.redo.last(),
        });
        let of_runs = worktree.map_or(&[][..], |worktree| &worktree.of_runs);
        let entry = entry.ok_or_else(|| {
            let mut message = format!("nothing to {} in this work tree", kind.as_str());
            let mut hint = instead(context, state, kind);
            if kind == OperationKind::Undo && !of_runs.is_empty() && !of_run {
                message.push_str(": a run rolled back by itself, --of-run undoes that");
                hint = context.rerun(&["--of-run"]);
            }
            Error::new(ErrorKind::NothingToUndo, message).hint(hint)
        })?;
        confirm(context, state, kind, entry, of_runs)?;
        let is_accept = entry.kind == OperationKind::Accept;
        if is_accept && kind == OperationKind::Undo && how.commits == Commits::Refuse {
            refuse_built_upon(context, entry)?;
        }
        // Accepting wrote none of what was edited since.
        let edits = if is_accept && how.edits == Edits::Refuse {
            Edits::Keep
        } else {
            how.edits
        };
        let options = Options {
            scope: entry.scope,
            paths: entry.paths.clone(),
            edits,
            // Of what accepting left there only its own entries go back, though earlier versions noted the whole index.
            restore_index: entry.index_restored && !is_accept,
            nested: entry.nested.restored,
            ..how.clone()
        };
        Ok(RestoreRequest {
            run: entry.run.clone(),
            undoes: Some(entry.clone()),
            ..RestoreRequest::noted(kind, state, &entry.checkpoint_id, options)?
        })
    })?;
    let command = done.result.operation.as_ref().map(|one| one.command);
    if command == Some(OperationKind::Discard.as_str()) {
        let which = if kind == OperationKind::Undo {
            GitChanges::PutBack
        } else {
            GitChanges::OfRun
        };
        settings_follow(context, &done, which);
    }
    Ok(done)
}

/// Refuses, without a confirmation, to take back what a run did by itself, and to go back over what was done since.
fn confirm(
    context: &Context,
    state: &State,
    kind: OperationKind,
    entry: &UndoEntry,
    of_runs: &[UndoEntry],
) -> Result<()> {
    if context.dry_run() || context.says_yes() {
        return Ok(());
    }
    let safety = state.checkpoint(&entry.checkpoint_id);
    let since = safety.map_or_else(Vec::new, |safety| {
        work_since(state, context, safety.seq, None)
    });
    let mut message = match (
        entry.of_run && kind == OperationKind::Undo,
        since.is_empty(),
    ) {
        (false, true) => return Ok(()),
        (false, false) => format!("{} would revert later work", kind.as_str()),
        (true, _) => format!(
            "the run did this by itself, the latest first: {}",
            told(of_runs)
        ),
    };
    if !since.is_empty() {
        message.push_str(&format!(
            "; done since, and not in the files afterwards: {}",
            since.join(", ")
        ));
    }
    message.push_str("; pass --yes to continue");
    Err(Error::new(ErrorKind::ConfirmationNeeded, message).hint(context.rerun(&["--yes"])))
}

/// Operations of runs that are listed at most.
const LISTED: usize = 5;

fn told(of_runs: &[UndoEntry]) -> String {
    let one = |entry: &UndoEntry| {
        let mut text = entry.kind.as_str().to_owned();
        text.extend(entry.run.as_ref().map(|run| format!(" of run {run}")));
        text.extend(entry.restored.as_ref().map(|id| format!(" to {id}")));
        text
    };
    first_few(of_runs.iter().rev().map(one), LISTED, |more| {
        format!("{more} more")
    })
}

/// The attempts whose files were captured in this work tree after a checkpoint, by run, of others than `own`. The order is
/// that of the checkpoints: clocks jump.
pub(super) fn work_since(
    state: &State,
    context: &Context,
    seq: u64,
    own: Option<&Run>,
) -> Vec<String> {
    let is_later = |id: &CheckpointId| state.checkpoint(id).is_some_and(|end| end.seq > seq);
    let worktree = context.worktree_id();
    let of_run = |run: &Run| {
        let ends = run
            .attempts()
            .filter_map(|(_, one)| one.checkpoint_id.as_ref());
        let later = ends.filter(|id| is_later(id)).count();
        (later > 0).then(|| format!("{} of run {}", count(later, "attempt"), run.key))
    };
    let is_own = |run: &Run| own.is_some_and(|own| own.key == run.key);
    let here = state
        .runs
        .iter()
        .filter(|run| run.worktree == worktree && !is_own(run));
    here.filter_map(of_run).collect()
}

/// Refuses to take back commits of `accept` that others have, that have others on top, or that are on another branch.
fn refuse_built_upon(context: &Context, entry: &UndoEntry) -> Result<()> {
    let repo = context.repo()?;
    let (Some(after), Some(head)) = (&entry.head.after, repo.head()?.commit) else {
        return Ok(());
    };
    // Where it is on no branch either, a person took it off.
    if !repo.is_ancestor(after, &head)?
        && let Some(branch) = repo.branch_with(after)?
    {
        let message = format!(
            "what accept committed ({}) is on branch {branch}, which is not checked out: switch to it first",
            after.short()
        );
        return Err(
            Error::new(ErrorKind::HeadMoved, message).hint(Hint::git(["switch", branch.as_str()]))
        );
    }
    let why = if repo.on_remote_tracking(std::slice::from_ref(after))? {
        "is on a remote-tracking branch"
    } else if *after != head && repo.is_ancestor(after, &head)? {
        "has commits on top"
    } else {
        return Ok(());
    };
    let range = match &entry.head.before {
        Some(before) if repo.is_ancestor(before, after)? => {
            format!("{}..{}", before.short(), after.short())
        }
        _ => after.short().to_owned(),
    };
    let message = format!(
        "what accept committed ({}) {why}: revert it with a new commit",
        after.short()
    );
    Err(Error::new(ErrorKind::HeadMoved, message).hint(Hint::git(["revert", &range])))
}

/// What there is where nothing was restored yet: what was in the work tree of a run that was begun here, else the way to what
/// the run began with.
fn instead(context: &Context, state: &State, kind: OperationKind) -> Hint {
    let here = context.worktree_id();
    let mut elsewhere = state.runs.iter().filter(|run| {
        let is_from_here = |one: &Isolated| one.home == here;
        let known = state.worktrees.get(&run.worktree);
        run.spec.isolated.as_ref().is_some_and(is_from_here)
            && known.is_some_and(|known| match kind {
                OperationKind::Undo => !known.undo.is_empty(),
                _ => !known.redo.is_empty(),
            })
    });
    if let Some(run) = elsewhere.next_back() {
        return Hint::recover([kind.as_str()]).run(&run.key);
    }
    let run = select::find_captured(context, state, &[])
        .ok()
        .flatten()
        .filter(|_| kind == OperationKind::Undo);
    match run.filter(|run| state.initial(&run.key).is_some()) {
        Some(_) => Hint::recover(["rollback", "--to", "initial"]),
        None => Hint::recover(["log"]),
    }
}
