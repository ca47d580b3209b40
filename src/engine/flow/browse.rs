//! What somebody sees who looks through runs, attempts and checkpoints.

use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use crate::engine::base::context::Context;
use crate::engine::base::error::{Error, Result};
use crate::engine::record::select;
use crate::engine::recovery::crash;
use crate::model::checkpoint::Checkpoint;
use crate::model::event::Event;
use crate::model::hint::Place;
use crate::model::path::FolderId;
use crate::model::run::{Run, RunKey};
use crate::model::state::{Named, State};

/// Only so many of the latest events are read for the log of a run.
const EVENTS: u64 = 2000;
/// Only so much of the end of an attempt's log is read, in bytes.
const LOG_END: u64 = 256 << 10;

/// Everything that is recorded, and the run that a command is about which names none.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    /// All runs and checkpoints.
    pub state: Arc<State>,
    /// That run.
    pub chosen: Option<RunKey>,
    /// The other work trees of the repository that runs work in, which commands about these need.
    pub elsewhere: BTreeMap<FolderId, Place>,
}

/// Loads it; nothing is written.
pub(crate) fn recorded(context: &Context) -> Result<Recorded> {
    let state = crash::load_recovered(context)?;
    let chosen = select::find(context, &state)
        .ok()
        .flatten()
        .map(|run| run.key.clone());
    let mut elsewhere: BTreeMap<FolderId, Option<Place>> = BTreeMap::new();
    for run in &state.runs {
        elsewhere
            .entry(run.worktree.clone())
            .or_insert_with(|| context.elsewhere(run));
    }
    let elsewhere = elsewhere
        .into_iter()
        .filter_map(|(folder, place)| Some((folder, place?)))
        .collect();
    Ok(Recorded {
        state,
        chosen,
        elsewhere,
    })
}

/// The latest events of a run, oldest first, each with its line.
pub(crate) fn events(
    context: &Context,
    state: &State,
    key: &RunKey,
) -> Result<Vec<(Event, String)>> {
    let mut events = context
        .store()
        .read_lines(state.last_seq.saturating_sub(EVENTS))?;
    events.retain(|(event, _)| event.run.as_ref() == Some(key));
    Ok(events)
}

/// The end of an attempt's log.
pub(crate) fn log_end(context: &Context, path: &Path) -> Result<String> {
    let read = || {
        let mut file = context.store().root().open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_END)))?;
        let mut bytes = Vec::new();
        file.take(LOG_END).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes =
        read().map_err(|error| Error::io(format!("cannot read {}", path.display()), error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Between which checkpoints an iteration of a run did its work, where both are known.
pub(crate) fn span_of_iteration<'a>(
    state: &'a State,
    run: &Run,
    number: u32,
) -> Option<(&'a Checkpoint, &'a Checkpoint)> {
    let end = state
        .end_of_iteration(&run.key, number)
        .and_then(Named::kept);
    let end = end.or_else(|| {
        state
            .checkpoints_of(&run.key)
            .rfind(|checkpoint| checkpoint.after_iteration == number)
    })?;
    Some((state.before_iteration(run, number)?, end))
}

/// What a run began with and its latest checkpoint, where both are there.
pub(crate) fn span_of_run<'a>(
    state: &'a State,
    key: &RunKey,
) -> Option<(&'a Checkpoint, &'a Checkpoint)> {
    Some((state.initial(key)?.kept()?, state.latest(key)?))
}
