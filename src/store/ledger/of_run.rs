//! The events of one run.

use std::fs;
use std::io;

use crate::model::event::Event;
use crate::model::run::RunKey;

use super::super::error::StoreError;
use super::super::line::{self, Line};
use super::Store;

/// More than what comes before the run in a line: sequence, time, schema.
const HEAD: usize = 160;

impl Store {
    /// A run's events, oldest first. Lines about other runs are passed over without being understood.
    pub fn events_of(&self, key: &RunKey) -> Result<Vec<Event>, StoreError> {
        let bytes = match fs::read(self.truth()) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.io("read")(error)),
        };
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let named = serde_json::to_string(&key.run_id).map_err(io::Error::from).map_err(self.io("read"))?;
        let mut events = Vec::new();
        for (number, text) in (1..).zip(bytes[..whole].split(|byte| *byte == b'\n')) {
            // The run is told at the beginning of a line, before anything of any length.
            let head = &text[..text.len().min(HEAD + named.len())];
            if !head.windows(named.len()).any(|window| window == named.as_bytes()) {
                continue;
            }
            if let Line::Event(event) = line::decode(text).map_err(|reason| self.corrupt(number, reason))?
                && event.run.as_ref() == Some(key)
            {
                events.push(*event);
            }
        }
        Ok(events)
    }
}
