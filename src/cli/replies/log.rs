//! JSON documents of `log`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::event::EventSource;
use crate::model::run_key::RunKey;
use crate::model::time::Timestamp;

/// What is recorded, an event each as it is in the ledger.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LogReply {
    #[schemars(with = "Vec<EventLine>")]
    pub events: Vec<Value>,
}

/// An event of any version.
#[derive(JsonSchema)]
#[schemars(rename = "event")]
#[expect(
    dead_code,
    reason = "events are passed on as they are; only the schema is wanted"
)]
struct EventLine {
    seq: u64,
    at: Timestamp,
    schema: u32,
    #[serde(flatten)]
    run: Option<RunKey>,
    source: EventSource,
    #[serde(rename = "type")]
    kind: String,
    payload: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}
