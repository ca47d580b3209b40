//! What a supervised agent may do with `recover`: everything but what decides about its own run.
//!
//! A process below a supervised attempt is found by the attempt's mark, its own or an ancestor's, and by an ancestor that
//! the ledger knows as the supervisor of an attempt; a variable that it unsets changes neither. An attempt in another
//! project is not concerned.

use std::cell::LazyCell;

use crate::engine::base::attempt_mark::numbers;
use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, ErrorKind, Result};
use crate::engine::base::heartbeat::is_alive;
use crate::model::hint::Hint;
use crate::model::id::RunId;
use crate::process::{self, ProcessId};

/// What a command would decide about that is not for an attempt to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Nothing: it looks, adds, or only plans.
    Nothing,
    /// Runs of its own, and that of the attempt only if that is the one named.
    Run,
    /// The files of the work tree, or the run's course.
    Tree,
    /// What is recorded, and what guards it.
    Record,
}

/// An attempt that this process is part of.
struct Attempt {
    run_id: Option<RunId>,
    supervisor: ProcessId,
    /// Whether it works in this work tree.
    is_here: bool,
}

/// Refuses `command` where this process is part of an attempt that it would decide about.
pub(crate) fn refuse(context: &Context, command: &str, reach: Reach) -> Result<()> {
    if reach == Reach::Nothing || context.dry_run() {
        return Ok(());
    }
    let named = context.naming().run_id.as_ref();
    let Some(attempt) = attempts(context, command).into_iter().find(|attempt| {
        let is_own = named.is_none()
            || attempt
                .run_id
                .as_ref()
                .is_none_or(|run_id| named == Some(run_id));
        match reach {
            Reach::Nothing => false,
            Reach::Run => is_own,
            Reach::Tree => is_own || attempt.is_here,
            Reach::Record => true,
        }
    }) else {
        return Ok(());
    };
    let run = attempt
        .run_id
        .as_ref()
        .map_or_else(|| "a run".to_owned(), |run_id| format!("run {run_id}"));
    let message = format!(
        "recover {command} is refused inside an attempt of {run}, which recover supervises (pid {})",
        attempt.supervisor.pid
    );
    let mut words = vec!["status"];
    words.extend(
        attempt
            .run_id
            .iter()
            .flat_map(|run_id| ["--run", run_id.as_str()]),
    );
    Err(Error::new(ErrorKind::InsideAttempt, message).hint(Hint::recover(words)))
}

/// The attempts of this project that this process is part of. Trust is the repository's: whatever the state directory and
/// the work tree are, no attempt gives it.
fn attempts(context: &Context, command: &str) -> Vec<Attempt> {
    let anywhere = command == "trust" || command == "init";
    let [state, tree] = places(context);
    let marks = process::marks().into_iter().filter(|marked| {
        let [of_state, of_tree] = marked.mark.places;
        anywhere || of_state == state || of_tree == tree
    });
    let mut found: Vec<Attempt> = marks
        .map(|marked| {
            let is_here = marked.mark.places[1] == tree;
            Attempt {
                run_id: marked.run_id,
                supervisor: marked.mark.supervisor,
                is_here,
            }
        })
        .collect();
    let above = LazyCell::new(process::ancestors);
    // A ledger that cannot be read names nobody; what a command does with it is its own to say.
    for run in context
        .load()
        .iter()
        .flat_map(|loaded| loaded.state.runs.iter())
    {
        let supervisor = run.live.as_ref().and_then(|live| live.supervisor.as_ref());
        let is_above = |id: &&ProcessId| {
            above
                .iter()
                .any(|one| (one.pid, one.start_time) == (id.pid, id.start_time))
        };
        if let Some(supervisor) = supervisor
            .filter(is_above)
            .filter(|id| is_alive(context.store(), id))
        {
            let is_here = run.worktree == context.worktree_id();
            found.push(Attempt {
                run_id: Some(run.key.run_id.clone()),
                supervisor: supervisor.clone(),
                is_here,
            });
        }
    }
    found
}

/// State directory and work tree, as numbers for the mark of an attempt.
pub(in crate::engine) fn places(context: &Context) -> [u32; 2] {
    numbers(context.store().dir(), context.worktree())
}
