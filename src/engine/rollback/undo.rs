//! Taking back restores, and doing them again. Undo and redo are restores themselves, with a safety checkpoint each.

use super::on_request::restore_with;
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::engine::record::select;
use crate::engine::restore::request::{Commits, Options, Restore, RestoreRequest};
use crate::model::operation::UndoEntry;
use crate::model::{CheckpointId, Hint, OperationKind, Run, State};
use crate::policy::restore::Edits;
use crate::policy::text::{count, first_few};

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
    restore_with(context, kind, |state| {
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
                message
                    .push_str(": what was rolled back belongs to a run, --of-run takes that back");
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
            restore_index: entry.index_restored,
            nested: entry.nested.restored,
            ..how.clone()
        };
        Ok(RestoreRequest {
            run: entry.run.clone(),
            undoes: Some(entry.clone()),
            ..RestoreRequest::noted(kind, state, &entry.checkpoint_id, options)?
        })
    })
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
    let since = work_since(state, context, entry);
    let mut message = match (
        entry.of_run && kind == OperationKind::Undo,
        since.is_empty(),
    ) {
        (false, true) => return Ok(()),
        (false, false) => format!("{} goes back over work that was done since", kind.as_str()),
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
    message.push_str("; --yes goes on");
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

/// The attempts whose files were captured in this work tree after an operation, by run. The order is that of the
/// checkpoints: clocks jump.
fn work_since(state: &State, context: &Context, entry: &UndoEntry) -> Vec<String> {
    let Some(safety) = state.checkpoint(&entry.checkpoint_id) else {
        return Vec::new();
    };
    let is_later = |id: &CheckpointId| state.checkpoint(id).is_some_and(|end| end.seq > safety.seq);
    let worktree = context.worktree_id();
    let of_run = |run: &Run| {
        let ends = run
            .attempts()
            .filter_map(|(_, one)| one.checkpoint_id.as_ref());
        let later = ends.filter(|id| is_later(id)).count();
        (later > 0).then(|| format!("{} of run {}", count(later, "attempt"), run.key))
    };
    let here = state.runs.iter().filter(|run| run.worktree == worktree);
    here.filter_map(of_run).collect()
}

/// Refuses to take back commits of `accept` that others have, or that have others on top.
fn refuse_built_upon(context: &Context, entry: &UndoEntry) -> Result<()> {
    let repo = context.repo()?;
    let (Some(after), Some(head)) = (&entry.head.after, repo.head()?.commit) else {
        return Ok(());
    };
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
        "what accept committed ({}) {why}: it is taken back by a commit of its own",
        after.short()
    );
    Err(Error::new(ErrorKind::HeadMoved, message).hint(Hint::git(["revert", &range])))
}

/// What there is where nothing was restored yet: the way to what the run began with.
fn instead(context: &Context, state: &State, kind: OperationKind) -> Hint {
    let run = select::find_captured(context, state, &[])
        .ok()
        .flatten()
        .filter(|_| kind == OperationKind::Undo);
    match run.filter(|run| state.initial(&run.key).is_some()) {
        Some(_) => Hint::recover(["rollback", "--to", "initial"]),
        None => Hint::recover(["log"]),
    }
}
