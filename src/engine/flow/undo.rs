//! Taking back restores, and doing them again. Undo and redo are restores themselves, with a safety checkpoint each.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::record::select;
use crate::engine::restore::nested::NestedRequest;
use crate::engine::restore::request::{Commits, Restore, RestoreRequest, ToldOperation, Undone};
use crate::git::history::{is_ancestor, on_remote_tracking};
use crate::model::hint::Hint;
use crate::model::operation::{OperationKind, UndoEntry};
use crate::model::state::State;
use crate::policy::restore_plan::Edits;

use super::restore::restore_with;

/// What to do about what is in the way.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// About commits.
    pub commits: Commits,
    /// About hand edits.
    pub edits: Edits,
    /// Whether everything else is restored where a path cannot be replaced.
    pub best_effort: bool,
}

/// Takes the last restore of this work tree back.
pub fn undo(context: &Context, how: How) -> Result<Restore> {
    step(context, OperationKind::Undo, how)
}

/// Does again what the last undo took back.
pub fn redo(context: &Context, how: How) -> Result<Restore> {
    step(context, OperationKind::Redo, how)
}

fn step(context: &Context, kind: OperationKind, how: How) -> Result<Restore> {
    // A restore that was cut off is finished first: then there is something to take back.
    restore_with(context, kind, |state| {
        let worktree = state.worktrees.get(&context.worktree_id());
        let entry: Option<&UndoEntry> = worktree.and_then(|worktree| match kind {
            OperationKind::Undo => worktree.undo.last(),
            _ => worktree.redo.last(),
        });
        let entry = entry.ok_or_else(|| {
            let message = format!("nothing to {} in this work tree", kind.as_str());
            Error::new(ErrorKind::NothingToUndo, message).hint(instead(context, state, kind))
        })?;
        let is_accept = entry.kind == OperationKind::Accept;
        if is_accept && kind == OperationKind::Undo && how.commits == Commits::Refuse {
            refuse_built_upon(context, entry)?;
        }
        // Accepting wrote none of what was edited since.
        let edits = if is_accept && how.edits == Edits::Refuse { Edits::Keep } else { how.edits };
        Ok(RestoreRequest {
            run: entry.run.clone(),
            scope: entry.scope,
            paths: entry.paths.clone(),
            commits: how.commits,
            edits,
            best_effort: how.best_effort,
            index: entry.index_restored.into(),
            nested: NestedRequest { restore: entry.nested.restored, placed: entry.nested.placed.clone() },
            undoes: Some(Undone {
                head: entry.head.clone(),
                operation: ToldOperation { command: entry.kind.as_str(), checkpoint_id: entry.restored.clone() },
            }),
            ..RestoreRequest::noted(kind, state, &entry.checkpoint_id)?
        })
    })
}

/// Refuses to take back commits of `accept` that others have, or that have others on top.
fn refuse_built_upon(context: &Context, entry: &UndoEntry) -> Result<()> {
    let repo = context.repo()?;
    let (Some(after), Some(head)) = (&entry.head.after, repo.head()?.commit) else { return Ok(()) };
    let why = if on_remote_tracking(repo, std::slice::from_ref(after))? {
        "is on a remote-tracking branch"
    } else if *after != head && is_ancestor(repo, after, &head)? {
        "has commits on top"
    } else {
        return Ok(());
    };
    let range = match &entry.head.before {
        Some(before) if is_ancestor(repo, before, after)? => format!("{}..{}", before.short(), after.short()),
        _ => after.short().to_owned(),
    };
    let message = format!("what accept committed ({}) {why}: it is taken back by a commit of its own", after.short());
    Err(Error::new(ErrorKind::HeadMoved, message).hint(Hint::git(["revert", &range])))
}

/// What there is where nothing was restored yet: the way to what the run began with.
fn instead(context: &Context, state: &State, kind: OperationKind) -> Hint {
    let run = select::find_captured(context, state, &[]).ok().flatten().filter(|_| kind == OperationKind::Undo);
    match run.filter(|run| state.initial(&run.key).is_some()) {
        Some(_) => Hint::recover(["rollback", "--to", "initial"]),
        None => Hint::recover(["log"]),
    }
}
