//! Rollback (B10): one iteration, to a checkpoint, or full; the run's bookkeeping follows.
//!
//! The checkpoint that an automatic rollback restores before the next attempt, and restoring it.
//!
//! Work trees whose folder is missing: the commands that restore one from what git still has of it, its branch and its checkpoints.
//!
//! Only shown, not done: what git keeps of such a work tree (a detached `HEAD`, the index, the reflog, the journal of a
//! restore) may be the last name of a user's work. The commands that are printed take nothing of it away.

pub(crate) mod on_request;

use std::collections::BTreeSet;
use std::path::Path;

pub(crate) use on_request::restore;
use on_request::restore_with;

use crate::engine::base::context::plain_path;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::{git_state, nested, select, stored};
use crate::engine::recovery;
use crate::engine::restore::automatic::mixed;
use crate::engine::restore::request::{Initiator, RestoreRequest};
use crate::engine::runs::refuse_driven;
use crate::model::checkpoint::trigger;
use crate::model::operation::{GitChanges, Reposition};
use crate::model::{
    Cause, Checkpoint, CheckpointId, FolderId, Hint, Iteration, Named, OperationKind, PathReason,
    Run, RunKey, RunStatus, Selector, State,
};
use crate::policy::restore::Edits;
use crate::policy::text::{count, escape, first_few};

pub(crate) use crate::engine::restore::request::{
    Commits, IndexOutcome, NestedAction, Options, Restore, RestoreResult,
};
pub(crate) use on_request::{COPIED, redo, undo};

/// Where to go back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To before this iteration.
    Iteration(u32),
    /// To this checkpoint.
    Checkpoint(Selector),
    /// To before the run.
    Full,
    /// To before the run, which is closed with it.
    Discard,
    /// To the safest prior stage of a lane (C5); in any other run to the last good checkpoint, else to before the run.
    Safest,
}

/// What there is to choose from.
#[derive(Clone, Debug)]
pub(crate) struct Targets {
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
pub(crate) fn targets(context: &Context) -> Result<Targets> {
    let state = recovery::load_recovered(context)?;
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
pub(crate) fn targets_of_worktree(context: &Context) -> Result<Vec<Checkpoint>> {
    let state = recovery::load_recovered(context)?;
    let worktree = context.worktree_id();
    let here: BTreeSet<&RunKey> = state.runs_of(&worktree).map(|run| &run.key).collect();
    Ok(state
        .checkpoints
        .values()
        .filter(|checkpoint| here.contains(&checkpoint.run))
        .cloned()
        .collect())
}

/// Restores the files of a checkpoint; the state of the run stays as it is.
pub(crate) fn restore_files(
    context: &Context,
    selector: &Selector,
    options: Options,
) -> Result<Restore> {
    let selector = nested::adopt(context, selector)?;
    restore_with(context, OperationKind::Restore, |state| {
        let checkpoint = select::checkpoint(context, state, &selector)?;
        let kind = OperationKind::Restore;
        Ok(RestoreRequest::new(kind, checkpoint, options))
    })
}

/// Rolls back.
pub(crate) fn rollback(context: &Context, target: &Target, options: &Options) -> Result<Restore> {
    restore_with(context, target.kind(), |state| {
        request(context, state, target, options)
    })
}

/// Takes a whole run back and closes it.
///
/// # Errors
/// Nobody confirmed it (13).
pub(crate) fn discard(context: &Context, options: &Options) -> Result<Restore> {
    let target = Target::Discard;
    if !context.dry_run() && !context.says_yes() {
        // What is refused whatever a person says comes first.
        let planned = rollback(&context.rehearsal()?, &target, options)?;
        let back = planned.taken_back_by(context);
        if let (true, Some(run)) = (planned.changed, &planned.run) {
            let result = planned.result;
            let edited = if result.edited.is_empty() {
                ""
            } else {
                ", with the edits made since"
            };
            let closes = if result.left.is_empty() {
                "and closes it"
            } else {
                "but cannot restore everything, and leaves it open"
            };
            let message = format!(
                "discard reverts run {} ({} to write, {} to delete{edited}{}) {closes}; pass --yes to continue, \
                {back} reverts that",
                run.key,
                count(result.written.len(), "path"),
                count(result.deleted.len(), "path"),
                head_moves(&result)
            );
            let naming = context.naming();
            let is_named = naming.run_id.is_some()
                || naming.series.is_some()
                || naming.phase.is_some()
                || naming.lane.is_some();
            // Without a name it would be about another run once one has begun.
            let hint = context.rerun(&["--yes"]);
            return Err(Error::new(ErrorKind::ConfirmationNeeded, message)
                .paths(result.edited)
                .hint(hint.run((!is_named).then_some(&run.key))));
        }
    }
    let done = rollback(context, &target, options)?;
    settings_follow(context, &done, GitChanges::OfRun);
    Ok(done)
}

/// Puts git's settings and hooks back as a run that is discarded found them, or as it left them where that is undone.
pub(crate) fn settings_follow(context: &Context, done: &Restore, which: GitChanges) {
    let Some(run) = done.run.as_ref().filter(|_| done.changed) else {
        return;
    };
    let back = if context.dry_run() {
        Vec::new()
    } else {
        git_state::put_back(context, &run.key, which)
    };
    let changed = run.attempts().flat_map(|(_, attempt)| &attempt.git_changes);
    // HEAD is the restore's own.
    let others = changed.filter(|name| *name != "HEAD" && !back.contains(name));
    let others: BTreeSet<&str> = others.map(String::as_str).collect();
    if others.is_empty() || which == GitChanges::PutBack {
        return;
    }
    let names = escape(&others.into_iter().collect::<Vec<_>>().join(", "));
    context.note(if context.dry_run() {
        format!("git's settings and hooks are restored too, as far as they are recorded: {names}")
    } else {
        format!(
            "git's settings and hooks that the run changed are left as they are, because their earlier values were \
            not recorded or they changed again since: {names}; see git config --edit, and the hooks in {}",
            context.git().map_or_else(String::new, |repo| repo.common_dir().join("hooks").display().to_string())
        )
    });
}

/// `, HEAD moves from 1234567890 to 0987654321 and 1 commit leaves the branch`; nothing where HEAD stays.
fn head_moves(result: &RestoreResult) -> String {
    let (Some(before), Some(after)) = (&result.head.before, &result.head.after) else {
        return String::new();
    };
    if before == after {
        return String::new();
    }
    format!(
        ", HEAD moves from {} to {}{}",
        before.short(),
        after.short(),
        result.leaving(" and ")
    )
}

impl RestoreResult {
    /// `2 commits leave the branch` behind this word; nothing where none does.
    pub(crate) fn leaving(&self, before: &str) -> String {
        match self.commits_left.len() {
            0 => String::new(),
            1 => format!("{before}1 commit leaves the branch"),
            many => format!("{before}{many} commits leave the branch"),
        }
    }
}

impl Target {
    fn kind(&self) -> OperationKind {
        match self {
            Self::Discard => OperationKind::Discard,
            _ => OperationKind::Rollback,
        }
    }
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
        Target::Discard => state.select(&Selector::Initial, run.map(|run| &run.key))?,
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
    if *target == Target::Discard {
        run.map_or(Ok(()), |run| refuse_driven(context, run))?;
        let others = on_request::work_since(state, context, checkpoint.seq, run);
        if !others.is_empty() {
            context.note(format!(
                "this also reverts later work: {}",
                others.join(", ")
            ));
        }
    }
    let reposition = run
        .filter(|_| own && whole)
        .map(|run| reposition(run, target, checkpoint.after_iteration));
    Ok(RestoreRequest {
        run: run.map(|run| run.key.clone()),
        reposition,
        ..RestoreRequest::new(target.kind(), checkpoint, options.clone())
    })
}

/// Says what goes back that was not the run's, and how it comes again.
pub(in crate::engine) fn tell_of_edits(
    context: &Context,
    state: &State,
    target: &Checkpoint,
) -> Result<()> {
    for edits in stored::since(context, state, target)? {
        context.note(format!(
            "{} is restored too, though it was changed from outside during the run (checkpoint @{}); to get that \
            change back: {}",
            edits.names(),
            edits.checkpoint.seq,
            context.line(edits.brought_back())
        ));
    }
    Ok(())
}

fn reposition(run: &Run, target: &Target, after_iteration: u32) -> Reposition {
    Reposition {
        current_iteration: match target {
            Target::Full | Target::Discard => 1,
            Target::Iteration(number) => *number,
            Target::Checkpoint(_) | Target::Safest => next_after(run, after_iteration),
        },
        status: match target {
            Target::Discard => RunStatus::Closed,
            Target::Full => RunStatus::Pending,
            _ => RunStatus::Paused,
        },
        clear_failure: matches!(target, Target::Full | Target::Discard),
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
        Target::Discard => discarded(context, state).map(Some),
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

/// The run to discard. The same command again, or one that a kill cut off and the next command finished, is about the run that
/// is discarded by then, not about an older one.
fn discarded<'a>(context: &Context, state: &'a State) -> Result<&'a Run> {
    let naming = context.naming();
    if naming.run_id.is_none() && naming.task.is_none() {
        let here = context.worktree_id();
        let last = state
            .worktrees
            .get(&here)
            .and_then(|known| known.undo.last());
        let last = last.filter(|entry| entry.kind == OperationKind::Discard);
        let run = last.and_then(|entry| state.run(entry.run.as_ref()?));
        let begun = state.runs_of(&here).map(|run| run.begun_seq).max();
        // Nothing has been begun since.
        if let Some(run) =
            run.filter(|run| run.status == RunStatus::Closed && Some(run.begun_seq) == begun)
        {
            context.note(format!(
                "run {} is discarded already; to discard another one, name it",
                run.key
            ));
            return Ok(run);
        }
    }
    select::require(context, state)
}

fn is_lane(state: &State, run: &Run) -> bool {
    !state.lane_records(&run.key).is_empty()
}

/// Whether a rollback that names no target is one of a lane, which has a place of its own to go back to (C5).
pub(crate) fn is_of_lane(context: &Context) -> Result<bool> {
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
            "No checkpoint available: run {} has no checkpoint that passed its checks",
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

/// The checkpoint that an automatic rollback goes back to: after a crash the run's last one that did not fail, else the
/// last good one.
pub(crate) fn rollback_target<'a>(
    state: &'a State,
    key: &RunKey,
    cause: Option<Cause>,
) -> Option<&'a Checkpoint> {
    if cause != Some(Cause::Crashed) {
        return state.last_good(key);
    }
    let attempted =
        |c: &Checkpoint| c.trigger == trigger::CRASH || c.is_in_between() || c.is_failed_attempt();
    state.standing(key).rfind(|c| !attempted(c))
}

/// Puts a checkpoint's files in place of those that are there, commits of the attempt included; with `Edits::Keep` hand
/// edits stay, and HEAD where moving it would be refused. What cannot be replaced stays, and [`refuse_mixed`] says whether
/// the run may go on with it. A dry run only plans it.
pub(crate) fn restore_checkpoint(
    context: &Context,
    key: &RunKey,
    target: &Checkpoint,
    edits: Edits,
) -> Result<Restore> {
    let hidden_by = git_state::put_settings_back(context, key);
    let options = Options {
        edits,
        best_effort: true,
        ..Options::default()
    };
    let mut request = RestoreRequest {
        run: Some(key.clone()),
        initiator: Initiator::Policy,
        hidden_by,
        ..RestoreRequest::new(OperationKind::Rollback, target, options)
    };
    match restore(context, &request) {
        Err(error) if error.kind == ErrorKind::HeadMoved && edits == Edits::Keep => {
            tracing::warn!(%error, "HEAD stays; only the files go back");
            request.options.commits = Commits::Keep;
            restore(context, &request)
        }
        other => other,
    }
}

/// Paths that a message names at most.
const NAMED: usize = 5;

/// Refuses to go on after an automatic rollback with a path that could not be replaced and is in the checkpoint, or that
/// tests, checks or configuration would read. Anything else that is left of the attempt can change no verdict.
///
/// # Errors
/// There is such a path (8).
pub(crate) fn refuse_mixed(
    context: &Context,
    run: &Run,
    target: &Checkpoint,
    restore: &Restore,
) -> Result<()> {
    let mixed = mixed(context, run, target, &restore.result.left)?;
    if mixed.is_empty() {
        return Ok(());
    }
    let name = |kept: &PathReason| format!("{} ({})", escape(&kept.path.to_lossy()), kept.reason);
    let names = first_few(mixed.iter().map(name), NAMED, |more| format!("{more} more"));
    let message = format!(
        "the rollback to {} is not complete, so that the run stops here: {} could not be replaced, everything else was; \
         make room for them, then roll back again",
        target.id, names
    );
    let hint = Hint::recover(["rollback", "--to", target.id.as_str()]).run(&run.key);
    Err(Error::new(ErrorKind::NeedsPerson, message)
        .paths(mixed)
        .hint(hint))
}

/// The refusal to work in the folder `path`, which is gone, with the commands that bring it back, if one of the runs that
/// `project` knows had its work tree there. `None`: nobody had.
pub(crate) fn refuse_gone(project: &Context, path: &Path) -> Result<Option<Error>> {
    refusal(project, &*recovery::load_recovered(project)?, path)
}

/// The refusal to roll a run back here whose own work tree, a linked one of this repository, is gone: what is here is
/// another user's. `None`: its folder is there, or it is this one that was moved.
pub(crate) fn refuse_for_gone(
    context: &Context,
    state: &State,
    run: &Run,
) -> Result<Option<Error>> {
    let (place, state_dir) = (run.worktree.path(), context.store().dir());
    if run.worktree == context.worktree_id() || place.exists() || state_dir.starts_with(&place) {
        return Ok(None);
    }
    // Where the project was moved, its checkpoints name another state directory.
    let same = |checkpoint: &Checkpoint| checkpoint.state_dir.path() == state_dir;
    if !state.checkpoints_of(&run.key).any(same) {
        return Ok(None);
    }
    refusal(context, state, &place)
}

fn refusal(project: &Context, state: &State, path: &Path) -> Result<Option<Error>> {
    let path = plain_path(path);
    let Some(latest) = latest_in(project, state, &path).filter(|_| project.has_git()) else {
        return Ok(None);
    };
    let held = held_last(state, &path, latest);
    let repo = project.repo()?;
    let base = held
        .base_commit
        .as_ref()
        .map_or("HEAD", |commit| commit.0.as_str());
    let tip = held
        .head_ref
        .as_deref()
        .and_then(|branch| repo.resolve_ref(branch));
    let short = held
        .head_ref
        .as_deref()
        .map(|branch| branch.strip_prefix("refs/heads/").unwrap_or(branch));
    let kept = repo.find_linked(&path)?;
    let add = || Hint::git(["worktree", "add"]);
    let back = match (&kept, short) {
        // `add --force` and `prune` would throw away what git keeps.
        (Some(_), _) => Hint::program("mkdir")
            .arg("-p")
            .arg(&path)
            .and(Hint::git(["worktree", "repair"])),
        (None, Some(branch)) if tip.is_some() => add().arg(&path).arg(branch),
        (None, Some(branch)) => add().args(["-b", branch]).arg(&path).arg(base),
        (None, None) => add().arg("--detach").arg(&path).arg(base),
    };
    let mut commands = back.at(project.place());
    let stands_at = match &kept {
        Some(kept) => kept.commit.as_ref(),
        None => tip.as_ref().or(held.base_commit.as_ref()),
    };
    let (id, there) = (held.id.as_str(), project.place_of(&path));
    let (last, moved) = if stands_at == held.base_commit.as_ref() {
        let restore = Hint::recover(["checkpoint", "restore", id, "--edits", "discard"]);
        (restore, "")
    } else {
        // What is committed there is newer than the checkpoint; what was not committed then is in there still.
        if kept.is_some() {
            commands = commands.and(Hint::git(["checkout-index", "--all"]).at(&path));
        }
        let diff = Hint::recover(["checkpoint", "diff", id]);
        (diff, ", and its HEAD has moved on since")
    };
    commands = commands.and(last.run(&held.run).at(there));
    let message = format!(
        "the work tree {} of run {} is gone; {} is what it held last{moved}",
        path.display(),
        held.run,
        held.id
    );
    let refused = Error::new(ErrorKind::UnsafePath, message);
    Ok(Some(refused.hint(commands)))
}

/// The checkpoint of what the work tree held last: the one that its run last wrote it from, unless that was another run's
/// or taken on another branch, or parts of others lie on top of it.
fn held_last<'a>(state: &'a State, path: &Path, latest: &'a Checkpoint) -> &'a Checkpoint {
    let known = state.worktrees.get(&FolderId::of(path));
    let layer = known
        .and_then(|worktree| worktree.baseline.last())
        .filter(|layer| layer.paths.is_empty());
    let written = layer.and_then(|layer| state.checkpoint(&layer.checkpoint_id));
    written
        .filter(|written| written.run == latest.run && written.head_ref == latest.head_ref)
        .unwrap_or(latest)
}

/// The latest checkpoint that was taken there, of the run that is named where one is.
fn latest_in<'a>(project: &Context, state: &'a State, path: &Path) -> Option<&'a Checkpoint> {
    let naming = project.naming();
    let named = naming
        .run_id
        .as_ref()
        .map(|id| RunKey::new(id.clone(), naming.phase.as_deref(), naming.lane.as_deref()));
    let there = |checkpoint: &&Checkpoint| checkpoint.worktree.path() == path;
    let own = named
        .as_ref()
        .and_then(|key| state.checkpoints_of(key).rfind(there));
    own.or_else(|| state.checkpoints.values().rfind(there))
}
