//! A run's events as they lie on a server: a line each, with the SHA-256 of the line before.

use serde_json::{Map, Value};

use super::digest::sha256;
use super::places::Places;
use crate::model::event::{EVENT_SCHEMA, Event, Payload};
use crate::model::manifest::ObjectId;
use crate::model::remote::{ChainedEvent, Link};
use crate::model::run::RunKey;
use crate::policy::masked_event::masked_payload;

use super::flaw::Flaw;

/// The lines that come with a state.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    /// The lines, each with its line end.
    pub text: String,
    /// Where the chain stands after them.
    pub end: Link,
}

impl Segment {
    /// What follows `link`.
    pub(crate) fn after(link: &Link) -> Self {
        Self {
            text: String::new(),
            end: link.clone(),
        }
    }

    /// Adds an event without secrets and without places of this machine; `false` where it cannot be written so that it could be
    /// read again.
    pub(crate) fn push(&mut self, event: &Event, places: &Places) -> bool {
        let masked = Event {
            payload: masked_payload(&event.payload).into_owned(),
            ..event.clone()
        };
        let Ok(Value::Object(mut fields)) =
            serde_json::to_value(&masked).map(|document| places.hide(document))
        else {
            return false;
        };
        fields.shift_remove("seq");
        let id = event_id(event.seq, &fields);
        let mut line = Map::new();
        line.insert("run_seq".to_owned(), (self.end.run_seq + 1).into());
        line.insert("id".to_owned(), id.into());
        line.insert("previous".to_owned(), self.end.sha256.clone().into());
        line.extend(fields);
        let text = Value::Object(line).to_string();
        self.end = Link {
            run_seq: self.end.run_seq + 1,
            sha256: sha256(text.as_bytes()),
        };
        self.text.push_str(&text);
        self.text.push('\n');
        true
    }
}

/// The name of an event: of its number in the ledger that it was recorded in, and of what it says.
pub(crate) fn event_id(seq: u64, fields: &Map<String, Value>) -> String {
    let said = Value::Object(fields.clone()).to_string();
    sha256(format!("{seq} {said}").as_bytes())[..32].to_owned()
}

/// Reads the lines of a state that follow `link`. Returns the events, and where the chain stands then.
pub(super) fn read(
    key: &RunKey,
    link: &Link,
    text: &str,
) -> Result<(Vec<ChainedEvent>, Link), Flaw> {
    let mut end = link.clone();
    let mut events = Vec::new();
    for line in text.split_terminator('\n') {
        let number = end.run_seq + 1;
        let damaged = |what: &str| Flaw::Damaged(format!("event {number}: {what}"));
        let Ok(Value::Object(mut fields)) = serde_json::from_str(line) else {
            return Err(damaged("it is no JSON object"));
        };
        // What a newer version says may be unreadable here, and is no damage.
        let schema = fields
            .get("schema")
            .and_then(Value::as_u64)
            .ok_or_else(|| damaged("it has no schema"))?;
        if schema > u64::from(EVENT_SCHEMA) {
            return Err(Flaw::Newer(format!("event {number} has schema {schema}")));
        }
        if fields.shift_remove("run_seq").and_then(|seq| seq.as_u64()) != Some(number) {
            return Err(damaged("it has another number"));
        }
        if fields
            .shift_remove("previous")
            .as_ref()
            .and_then(Value::as_str)
            != Some(end.sha256.as_str())
        {
            return Err(damaged(
                "it does not follow the one before: the chain is broken",
            ));
        }
        let id = fields.shift_remove("id");
        let id = id
            .as_ref()
            .and_then(Value::as_str)
            .filter(|id| is_id(id))
            .ok_or_else(|| damaged("it has no id"))?;
        let id = id.to_owned();
        fields.insert("seq".to_owned(), number.into());
        let event: Event = serde_json::from_value(Value::Object(fields))
            .map_err(|error| damaged(&error.to_string()))?;
        if event.run.as_ref() != Some(key) {
            return Err(damaged("it is about another run"));
        }
        events.push(ChainedEvent { id, event });
        end = Link {
            run_seq: number,
            sha256: sha256(line.as_bytes()),
        };
    }
    Ok((events, end))
}

fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The commit that a run began on: that of its first checkpoint.
pub(crate) fn base<'a>(events: impl IntoIterator<Item = &'a Event>) -> Option<ObjectId> {
    events.into_iter().find_map(|event| match &event.payload {
        Payload::CheckpointCreated { checkpoint, .. } => checkpoint.base_commit.clone(),
        _ => None,
    })
}
