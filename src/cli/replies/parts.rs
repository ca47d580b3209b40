//! Parts of several JSON documents.

use std::borrow::Cow;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::decision::Standing;
use crate::model::time::Timestamp;

/// When an attempt is allowed that is not allowed now.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Wait {
    retry_after: Option<Timestamp>,
    wait_ms: u64,
}

impl Wait {
    pub(super) fn of(standing: Standing, now: Timestamp) -> Self {
        match standing {
            Standing::Wait(until) => {
                let wait_ms = u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX);
                Self {
                    retry_after: Some(until),
                    wait_ms,
                }
            }
            _ => Self {
                retry_after: None,
                wait_ms: 0,
            },
        }
    }
}

/// A path as text.
pub(super) fn shown(path: Option<&Path>) -> Option<Cow<'_, str>> {
    path.map(Path::to_string_lossy)
}
