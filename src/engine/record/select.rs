//! Selects the run, and the checkpoint, that a command is about; `base::runs` has the rules.

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::base::runs::{Naming, find_as, is_open, new_run_id};
use crate::model::checkpoint::Checkpoint;
use crate::model::event::Payload;
use crate::model::hint::Hint;
use crate::model::run::{NONE, Run, RunKey, RunSpec};
use crate::model::selector::Selector;
use crate::model::state::{SelectionError, State};
use crate::store::NewEvent;

use super::foreign::{self, KnownCheckpoint};

/// The run that is named, else the only open one of this work tree; the latest one where none is open.
pub fn find<'a>(context: &Context, state: &'a State) -> Result<Option<&'a Run>> {
    find_as(context.naming(), &context.worktree_id(), state)
}

/// The same for the end of an attempt, whose `--phase` is that of its events too (L5): where no run has that phase, it
/// says nothing of the run.
pub fn find_for_attempt<'a>(context: &Context, state: &'a State) -> Result<Option<&'a Run>> {
    let naming = context.naming();
    let found = find(context, state);
    let is_taken = match &found {
        Ok(run) => run.is_some_and(|run| may_go_on(context, run)),
        Err(error) => error.kind != ErrorKind::RunNotFound,
    };
    if is_taken || naming.phase.is_none() || naming.lane.is_some() {
        return found;
    }
    let without = Naming { phase: None, ..naming.clone() };
    match find_as(&without, &context.worktree_id(), state) {
        Ok(Some(run)) if run.key.phase == NONE && may_go_on(context, run) => Ok(Some(run)),
        _ => found,
    }
}

/// Whether something may be recorded in a run that was found: one that is over has to be named.
fn may_go_on(context: &Context, run: &Run) -> bool {
    context.naming().run_id.is_some() || is_open(run)
}

/// The run that [`find_or_create`] would find.
pub fn find_open<'a>(context: &Context, state: &'a State) -> Result<Option<&'a Run>> {
    Ok(find(context, state)?.filter(|run| may_go_on(context, run)))
}

/// Like [`find`], and an error where there is none.
pub fn require<'a>(context: &Context, state: &'a State) -> Result<&'a Run> {
    find(context, state)?.ok_or_else(|| {
        let (known, hint) = if state.runs.is_empty() {
            ("nothing has been recorded yet; recover run begins one", Hint::recover(["checkpoint", "create"]))
        } else {
            ("none of this work tree", Hint::recover(["log"]))
        };
        Error::new(ErrorKind::RunNotFound, format!("no run: {known}")).hint(hint)
    })
}

/// The checkpoint that a selector names, seen from the run that a command works on.
pub fn checkpoint<'a>(context: &Context, state: &'a State, selector: &Selector) -> Result<&'a Checkpoint> {
    let by_itself = matches!(selector, Selector::Id(_) | Selector::Seq(_));
    let run = if by_itself { None } else { Some(require_for_checkpoint(context, state)?) };
    let found = state.select(selector, run.map(|run| &run.key));
    if let (Err(SelectionError::NotFound { .. }), Selector::Id(id)) = (&found, selector)
        && let Some(foreign) = foreign::foreign(context, state, None).into_iter().find(|one| one.checkpoint.id == *id)
    {
        return Err(is_foreign(&foreign));
    }
    Ok(found?)
}

/// A checkpoint of another system is a record: what it holds, if anything, is git's to bring back.
fn is_foreign(known: &KnownCheckpoint) -> Error {
    let id = &known.checkpoint.id;
    let list = Hint::recover(["checkpoint", "list", "--all-runs"]);
    let (why, hint) = match (&known.checkpoint.commit, known.in_repository) {
        (Some(commit), Some(true)) => (
            format!("its commit {commit} is in this repository: git restore --source puts it back, after a checkpoint"),
            Hint::git(["show", "--stat", commit]),
        ),
        (Some(commit), _) => {
            (format!("its commit {commit} is not in this repository: it has to be fetched first"), list)
        }
        (None, _) => ("it names no commit".to_owned(), list),
    };
    let message = format!("No checkpoint available: {id} was imported as a record, and {why}");
    Error::new(ErrorKind::NoCheckpoint, message).hint(hint)
}

fn require_for_checkpoint<'a>(context: &Context, state: &'a State) -> Result<&'a Run> {
    find(context, state)?.ok_or_else(|| {
        Error::new(ErrorKind::NoCheckpoint, "No checkpoint available").hint(Hint::recover(["checkpoint", "create"]))
    })
}

/// The run for a command that records something, with the events that make it where there is none yet. `prefix` names
/// a new run (`manual`, `run`).
pub fn find_or_create(context: &Context, state: &State, prefix: &str) -> Result<(RunKey, Vec<NewEvent>)> {
    or_create(context, state, find(context, state), prefix)
}

/// The same for the end of an attempt.
pub fn find_or_create_for_attempt(context: &Context, state: &State) -> Result<(RunKey, Vec<NewEvent>)> {
    or_create(context, state, find_for_attempt(context, state), "manual")
}

fn or_create(
    context: &Context,
    state: &State,
    found: Result<Option<&Run>>,
    prefix: &str,
) -> Result<(RunKey, Vec<NewEvent>)> {
    match found {
        Ok(Some(run)) if may_go_on(context, run) => return Ok((run.key.clone(), Vec::new())),
        Ok(_) => {}
        Err(error) if error.kind == ErrorKind::RunNotFound => {}
        Err(error) => return Err(error),
    }
    let naming = context.naming();
    let id = naming.run_id.clone().unwrap_or_else(|| new_run_id(prefix, context.clock.now(), state));
    let key = RunKey::new(id, naming.phase.as_deref(), naming.lane.as_deref());
    let created = created(context, &key, RunSpec::default());
    Ok((key, vec![created]))
}

/// The event that makes a run.
pub fn created(context: &Context, key: &RunKey, spec: RunSpec) -> NewEvent {
    NewEvent::about(
        key,
        Payload::RunCreated {
            task_id: context.naming().task.clone(),
            session: context.session(&key.run_id),
            worktree: context.worktree_id(),
            spec: Box::new(spec),
        },
    )
}
