//! A session's checkpoint in the state recovery's format (S11): its record; the content is not in it.

use serde_json::Value;

use crate::model::event::Payload;
use crate::model::id::TaskId;
use crate::model::import::ImportKind;
use crate::model::run::{RunKey, RunStatus};

use super::part::{ImportInput, Part, created, imported, known};
use super::read::{Place, Problem};

pub(super) fn read(document: &Value, at: &ImportInput<'_>) -> Result<Part, Problem> {
    let root = Place::root(document);
    let id = root.required("checkpoint_id")?.name()?;
    let session = root.required("session_id")?.name()?;
    let when = root.time_of("timestamp")?.unwrap_or(at.now);
    let task = root.text_of("task_id")?.map(str::to_owned);
    root.text_of("phase")?;
    root.text_of("previous_checkpoint")?;
    let state = root.required("state")?;
    state.object()?;
    for part in ["working_memory", "file_states"] {
        if let Some(part) = state.field(part) {
            part.object()?;
        }
    }
    let key = RunKey::new(session, None, None);
    let mut part = Part {
        key: key.clone(),
        events: Vec::new(),
        left_out: Vec::new(),
    };
    // One of ours that comes back is no other system's.
    let own = at.state.checkpoint(&id.into()).is_some();
    if own || known(at, &key, ImportKind::Session, id) == Some(document) {
        return Ok(part);
    }
    if at.state.run(&key).is_none() {
        part.events
            .push((when, created(at, &key, task.map(TaskId::from), None)));
        let reason = "its checkpoint was imported".to_owned();
        part.events.push((
            when,
            Payload::RunStatusChanged {
                status: RunStatus::Paused,
                reason,
            },
        ));
    }
    part.events
        .push((when, imported(at, ImportKind::Session, id, document)));
    Ok(part)
}
