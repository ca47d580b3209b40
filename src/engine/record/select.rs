//! Applies the rules of selection to a command's flags: `base::runs` (the run), `State::select` (the checkpoint).
//!
//! Checkpoints that were imported from other systems.

use schemars::JsonSchema;
use serde::Serialize;

use crate::engine::base::runs::{
    Naming, Wanted, at_work, candidates, find_as, is_open, new_run_id,
};
use crate::engine::base::{Context, Error, ErrorKind, Result};
use crate::model::import::ForeignCheckpoint;
use crate::model::run::NONE;
use crate::model::state::SelectionError;
use crate::model::{
    Checkpoint, Hint, Named, ObjectId, OperationKind, Payload, Run, RunId, RunKey, RunSpec,
    RunStatus, Selector, State,
};
use crate::store::NewEvent;

/// What bare checkpoints belong to.
const MANUAL: &str = "manual";

/// The run that a command works on.
pub(crate) fn find<'a>(context: &Context, state: &'a State) -> Result<Option<&'a Run>> {
    find_for(context, context.naming(), state, Wanted::Course)
}

/// The same, and nothing is said of it: of who looks before the command itself does.
pub(crate) fn find_quietly<'a>(context: &Context, state: &'a State) -> Result<Option<&'a Run>> {
    found_as(context, context.naming(), state, Wanted::Course)
}

fn found_as<'a>(
    context: &Context,
    naming: &Naming,
    state: &'a State,
    wanted: Wanted<'_>,
) -> Result<Option<&'a Run>> {
    let worktree = context.worktree_id();
    find_as(context.store(), naming, &worktree, state, wanted)
}

/// The run that every command finds which names none, whether it is about its course or its checkpoints; `None` where that is
/// not one and the same.
pub(crate) fn found_unnamed(context: &Context, state: &State) -> Option<RunKey> {
    let naming = Naming {
        run_id: context.env("RECOVER_RUN_ID").map(RunId::from),
        ..Naming::default()
    };
    let found = |wanted| found_as(context, &naming, state, wanted).ok().flatten();
    let course = found(Wanted::Course)?;
    let captured = found(Wanted::Checkpoints(&|_| true))?;
    (course.key == captured.key).then(|| course.key.clone())
}

/// The run whose checkpoints a command is about: it has, or had, those that the selectors name, where one has.
pub(crate) fn find_captured<'a>(
    context: &Context,
    state: &'a State,
    named: &[&Selector],
) -> Result<Option<&'a Run>> {
    // What was removed is not found in another run instead.
    let has = |run: &Run, selector: &Selector| {
        let found = state.select(selector, Some(&run.key));
        matches!(found, Ok(_) | Err(SelectionError::Removed { .. }))
    };
    let has_all = |run: &Run| named.iter().all(|selector| has(run, selector));
    find_having(context, state, &has_all)
}

/// The run whose checkpoints a command is about, where one has what `has` asks for.
pub(crate) fn find_having<'a>(
    context: &Context,
    state: &'a State,
    has: &dyn Fn(&Run) -> bool,
) -> Result<Option<&'a Run>> {
    find_for(context, context.naming(), state, Wanted::Checkpoints(has))
}

fn find_for<'a>(
    context: &Context,
    naming: &Naming,
    state: &'a State,
    wanted: Wanted<'_>,
) -> Result<Option<&'a Run>> {
    let found = found_as(context, naming, state, wanted)?;
    let said = |run: &&Run| say_which(context, naming, state, (&run.key, run.status.as_str()));
    Ok(found.inspect(said))
}

/// Says which run was taken, and how it stands, where another one could have been meant.
fn say_which(context: &Context, naming: &Naming, state: &State, (taken, status): (&RunKey, &str)) {
    if !context.writes() || naming.run_id.is_some() {
        return;
    }
    let others = candidates(naming, &context.worktree_id(), state)
        .filter(|run| run.key != *taken && run.status != RunStatus::Accepted)
        .count();
    if others > 0 {
        let others = if others == 1 {
            "1 other run is".to_owned()
        } else {
            format!("{others} other runs are")
        };
        context.note(format!(
            "using run {taken} ({status}); {others} not closed: recover runs"
        ));
    }
}

/// The run of a loop that runs its own commands. Its `--phase` is that of the events (L5): without a lane it selects only a
/// run that was made with it, else it is the loop's one run.
pub(crate) fn find_for_loop<'a>(context: &Context, state: &'a State) -> Result<Option<&'a Run>> {
    let naming = context.naming();
    let found = find(context, state);
    let is_taken = match &found {
        Ok(run) => run.is_some_and(|run| may_go_on(context, run)),
        Err(error) => error.kind != ErrorKind::RunNotFound,
    };
    if is_taken || naming.phase.is_none() || naming.lane.is_some() {
        return found;
    }
    let of_no_phase = Naming {
        phase: Some(NONE.to_owned()),
        ..naming.clone()
    };
    match find_for(context, &of_no_phase, state, Wanted::Course) {
        Ok(Some(run)) if may_go_on(context, run) => Ok(Some(run)),
        _ => found,
    }
}

/// Whether something may be recorded in a run that was found: one that is over has to be named.
fn may_go_on(context: &Context, run: &Run) -> bool {
    context.naming().run_id.is_some() || is_open(run)
}

/// The run that [`find_or_create_for_loop`] would find.
pub(crate) fn find_open<'a>(context: &Context, state: &'a State) -> Result<Option<&'a Run>> {
    Ok(find_for_loop(context, state)?.filter(|run| may_go_on(context, run)))
}

/// Like [`find`], and an error where there is none.
pub(crate) fn require<'a>(context: &Context, state: &'a State) -> Result<&'a Run> {
    find(context, state)?.ok_or_else(|| {
        let mut here = state.runs_of(&context.worktree_id()).rev();
        let closed = here.find(|run| run.status == RunStatus::Closed);
        let (known, hint) = match closed {
            _ if state.runs.is_empty() => (
                "nothing has been recorded yet; recover run begins one".to_owned(),
                Hint::recover(["run", "--help"]),
            ),
            Some(run) => {
                let (ended, hint) = ended_by(context, state, run);
                (format!("{}, the latest one here, {ended}", run.key), hint)
            }
            None => ("none in this work tree".to_owned(), Hint::recover(["log"])),
        };
        Error::new(ErrorKind::RunNotFound, format!("no run: {known}")).hint(hint)
    })
}

/// How a run was closed, and the command that opens it again.
fn ended_by(context: &Context, state: &State, run: &Run) -> (String, Hint) {
    let here = state.worktrees.get(&context.worktree_id());
    let last = here.and_then(|known| known.undo.last());
    let is_discarded = last.is_some_and(|last| {
        last.kind == OperationKind::Discard && last.run.as_ref() == Some(&run.key)
    });
    let id = &run.key.run_id;
    if is_discarded {
        let how =
            format!("was discarded: recover undo restores it, recover resume {id} begins it again");
        (how, Hint::recover(["undo"]))
    } else {
        let how = format!("is closed: recover resume {id} reopens it");
        (how, Hint::recover(["resume", id.as_str()]))
    }
}

/// The checkpoint that a selector names, seen from the run that a command works on.
pub(crate) fn checkpoint<'a>(
    context: &Context,
    state: &'a State,
    selector: &Selector,
) -> Result<&'a Checkpoint> {
    checkpoint_beside(context, state, selector, &[])
}

/// The same where the command names others, which are of the same run.
pub(crate) fn checkpoint_beside<'a>(
    context: &Context,
    state: &'a State,
    selector: &Selector,
    others: &[&Selector],
) -> Result<&'a Checkpoint> {
    let by_itself = matches!(selector, Selector::Id(_) | Selector::Seq(_));
    let named: Vec<&Selector> = others.iter().copied().chain([selector]).collect();
    let run = if by_itself {
        None
    } else {
        let found = find_captured(context, state, &named)?;
        Some(found.ok_or_else(|| nothing_captured(state))?)
    };
    let found = state.select(selector, run.map(|run| &run.key));
    if let (Err(SelectionError::NotFound { .. }), Selector::Id(id)) = (&found, selector)
        && let Some(foreign) = foreign(context, state, None)
            .into_iter()
            .find(|one| one.checkpoint.id == *id)
    {
        return Err(is_foreign(&foreign));
    }
    found.map_err(|error| {
        let number = selector.to_string().parse().map(Selector::Seq);
        let is_numbered = number.is_ok_and(|number| state.select(&number, None).is_ok());
        let mut error = Error::from(error);
        let run = state.runs.iter().find(
            |run| matches!(selector, Selector::Id(id) if id.as_str() == run.key.run_id.as_str()),
        );
        if is_numbered {
            error.hint(context.rerun_numbered())
        } else if let Some(run) = run {
            error.message.push_str("; a run has that name");
            error.hint(Hint::recover(["checkpoint", "list"]).run(&run.key))
        } else {
            error
        }
    })
}

/// Two checkpoints of one run, from which and to which its course is looked through: the run that one of them belongs to which
/// is named by itself, by an id or a number, else the run whose course a command is about.
pub(crate) fn ends<'a>(
    context: &Context,
    state: &'a State,
    (from, to): (&Selector, &Selector),
) -> Result<(&'a Checkpoint, &'a Checkpoint)> {
    let by_itself = |selector: &&Selector| matches!(selector, Selector::Id(_) | Selector::Seq(_));
    let run = match [from, to].into_iter().find(by_itself) {
        Some(selector) => &checkpoint(context, state, selector)?.run,
        None => {
            &find(context, state)?
                .ok_or_else(|| nothing_captured(state))?
                .key
        }
    };
    let end = |selector: &Selector| match selector {
        Selector::Id(_) | Selector::Seq(_) => checkpoint(context, state, selector),
        Selector::Initial if matches!(state.initial(run), Some(Named::Removed)) => {
            let oldest = state.standing(run).next();
            let oldest = oldest.ok_or_else(|| nothing_captured(state))?;
            context.note(format!(
                "the first checkpoint of run {run} was removed: @{} is the oldest that is left",
                oldest.seq
            ));
            Ok(oldest)
        }
        _ => Ok(state.select(selector, Some(run))?),
    };
    Ok((end(from)?, end(to)?))
}

/// A checkpoint of another system is a record: what it holds, if anything, is git's to bring back.
fn is_foreign(known: &KnownCheckpoint) -> Error {
    let id = &known.checkpoint.id;
    let list = Hint::recover(["checkpoint", "list", "--all-runs"]);
    let (why, hint) = match (&known.checkpoint.commit, known.in_repository) {
        (Some(commit), Some(true)) => (
            format!(
                "its commit {commit} is in this repository: git restore --source restores it, after a checkpoint"
            ),
            Hint::git(["show", "--stat", commit]),
        ),
        (Some(commit), _) => (
            format!("its commit {commit} is not in this repository: it has to be fetched first"),
            list,
        ),
        (None, _) => ("it names no commit".to_owned(), list),
    };
    let message = format!("No checkpoint available: {id} was imported as a record, and {why}");
    Error::new(ErrorKind::NoCheckpoint, message).hint(hint)
}

/// For errors about a checkpoint where none was taken.
pub(crate) fn nothing_captured(state: &State) -> Error {
    if state.runs.is_empty() {
        let message =
            "No checkpoint available: nothing has been recorded yet; recover run begins a run";
        return Error::new(ErrorKind::NoCheckpoint, message).hint(Hint::recover(["run", "--help"]));
    }
    Error::new(ErrorKind::NoCheckpoint, "No checkpoint available")
        .hint(Hint::recover(["checkpoint", "create"]))
}

/// The run for a command that records something, with the events that make it where there is none yet.
pub(crate) fn find_or_create(context: &Context, state: &State) -> Result<(RunKey, Vec<NewEvent>)> {
    or_create(context, context.naming(), state, find(context, state))
}

/// The run that a bare checkpoint belongs to: the one that is at work, else the work tree's one run `manual`. `None` where
/// there is none yet.
pub(crate) fn find_for_capture<'a>(context: &Context, state: &'a State) -> Result<Option<&'a Run>> {
    let (naming, worktree) = (context.naming(), context.worktree_id());
    if naming.run_id.is_some() {
        return match find(context, state) {
            Err(error) if error.kind == ErrorKind::RunNotFound => Ok(None),
            found => found,
        };
    }
    if let Some(run) = at_work(context.store(), naming, &worktree, state) {
        return Ok(Some(run));
    }
    // A loop and an agent's session have no supervisor; a lane, a phase or a task says enough.
    let says_which = naming.lane.is_some() || naming.phase.is_some() || naming.task.is_some();
    let is_under_way =
        |run: &Run| run.status == RunStatus::InProgress || says_which && !run.status.has_ended();
    let begun = |run: &&Run| is_under_way(run) && !run.is_history();
    if let Some(run) = candidates(naming, &worktree, state)
        .filter(begun)
        .max_by_key(|run| run.last_seq)
    {
        return Ok(Some(run));
    }
    let is_manual = |run: &&Run| {
        let id = &run.key.run_id;
        let of_before = || {
            id.as_str().starts_with("manual-")
                && run.begun_seq == 0
                && run.status != RunStatus::Closed
        };
        (run.key.phase.as_str(), run.key.lane.as_str()) == (NONE, NONE)
            && (*id == MANUAL || of_before())
    };
    let manual = state
        .runs_of(&worktree)
        .filter(is_manual)
        .max_by_key(|run| run.last_seq);
    Ok(manual.filter(|_| !says_which))
}

/// The same, with the events that make it where there is none yet. One that was closed is open again.
pub(crate) fn find_or_create_for_capture(
    context: &Context,
    state: &State,
) -> Result<(RunKey, Vec<NewEvent>)> {
    let Some(run) = find_for_capture(context, state)? else {
        let (key, events) = create(context, context.naming(), state, MANUAL.into());
        say_which(context, context.naming(), state, (&key, "new"));
        return Ok((key, events));
    };
    let naming = context.naming();
    say_which(context, naming, state, (&run.key, run.status.as_str()));
    let mut events = Vec::new();
    if run.status == RunStatus::Closed && naming.run_id.is_none() {
        let reopened = Payload::RunStatusChanged {
            status: RunStatus::Pending,
            reason: "a checkpoint was taken".to_owned(),
        };
        events.push(NewEvent::about(&run.key, reopened));
    }
    Ok((run.key.clone(), events))
}

/// [`find_or_create`] for an attempt of a loop: see [`find_for_loop`].
pub(crate) fn find_or_create_for_loop(
    context: &Context,
    state: &State,
) -> Result<(RunKey, Vec<NewEvent>)> {
    let mut naming = context.naming().clone();
    naming.phase = naming.phase.filter(|_| naming.lane.is_some());
    or_create(context, &naming, state, find_for_loop(context, state))
}

fn or_create(
    context: &Context,
    naming: &Naming,
    state: &State,
    found: Result<Option<&Run>>,
) -> Result<(RunKey, Vec<NewEvent>)> {
    match found {
        Ok(Some(run)) if may_go_on(context, run) => return Ok((run.key.clone(), Vec::new())),
        Ok(_) => {}
        Err(error) if error.kind == ErrorKind::RunNotFound => {}
        Err(error) => return Err(error),
    }
    let id = new_run_id(MANUAL, context.clock.now(), state);
    Ok(create(context, naming, state, id))
}

/// A run of that id, another one where it is taken, or the one that is named.
fn create(context: &Context, naming: &Naming, state: &State, id: RunId) -> (RunKey, Vec<NewEvent>) {
    let key = |id: RunId| RunKey::new(id, naming.phase.as_deref(), naming.lane.as_deref());
    let key = match &naming.run_id {
        Some(id) => key(id.clone()),
        None if state.run(&key(id.clone())).is_none() => key(id),
        None => key(new_run_id(id.as_str(), context.clock.now(), state)),
    };
    let created = created(context, &key, RunSpec::default());
    (key, vec![created])
}

/// The event that makes a run.
pub(crate) fn created(context: &Context, key: &RunKey, spec: RunSpec) -> NewEvent {
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

/// Another system's checkpoint, and what of it is there.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct KnownCheckpoint {
    /// Its record.
    #[serde(flatten)]
    pub checkpoint: ForeignCheckpoint,
    /// Whether its commit is in this repository; `None` where it names none.
    pub in_repository: Option<bool>,
}

/// What of another system's checkpoint is there.
pub(crate) fn known(context: &Context, checkpoint: ForeignCheckpoint) -> KnownCheckpoint {
    let there = |commit: &String| {
        let commit = ObjectId(commit.clone());
        context
            .git()
            .is_some_and(|repo| repo.commit_exists(&commit))
    };
    let in_repository = checkpoint.commit.as_ref().map(there);
    KnownCheckpoint {
        checkpoint,
        in_repository,
    }
}

/// Other systems' checkpoints that the ledger knows of.
pub(crate) fn foreign(
    context: &Context,
    state: &State,
    run: Option<&RunKey>,
) -> Vec<KnownCheckpoint> {
    let runs = state
        .runs
        .iter()
        .filter(|one| run.is_none_or(|key| one.key == *key));
    let of_run = |run: &Run| {
        let all = run
            .imported
            .iter()
            .flat_map(|one| one.checkpoints(&run.key));
        all.map(|one| known(context, one)).collect::<Vec<_>>()
    };
    runs.flat_map(of_run).collect()
}
