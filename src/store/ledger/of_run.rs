//! The events of one run.

use std::io;

use crate::model::event::Event;
use crate::model::run::RunKey;

use super::super::error::StoreError;
use super::super::ledger_line::{self, Line};
use super::super::packed_lines::{self, lines_of};
use super::Store;

/// More than what comes before the run in a line: sequence, time, schema.
const HEAD: usize = 160;

impl Store {
    /// A run's events, oldest first. Lines about other runs are passed over without being understood.
    pub fn events_of(&self, key: &RunKey) -> Result<Vec<Event>, StoreError> {
        let events = self.read_truth(|file| {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(self.io("read"))?;
            self.of_run(&bytes, key)
        })?;
        Ok(events.unwrap_or_default())
    }

    fn of_run(&self, bytes: &[u8], key: &RunKey) -> Result<Vec<Event>, StoreError> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let named = serde_json::to_string(&key.run_id).map_err(io::Error::from).map_err(self.io("read"))?;
        let mut events = Vec::new();
        let of_run = |text: &[u8], number: u64| -> Result<Option<Event>, StoreError> {
            // The run is named at the beginning of a line, before anything of any length.
            let head = &text[..text.len().min(HEAD + named.len())];
            if memchr::memmem::find(head, named.as_bytes()).is_none() {
                return Ok(None);
            }
            match ledger_line::decode(text).map_err(|reason| self.corrupt(number, reason))? {
                Line::Event(event) if event.run.as_ref() == Some(key) => Ok(Some(*event)),
                _ => Ok(None),
            }
        };
        let mut number = 1;
        for text in lines_of(&bytes[..whole]) {
            match packed_lines::packed(text).transpose().map_err(|flaw| self.flaw(number, flaw))? {
                None => {
                    events.extend(of_run(text, number)?);
                    number += 1;
                }
                Some(packed) => {
                    if packed.runs.contains(&key.run_id) {
                        let lines = packed.unpack_at(number).map_err(|flaw| self.flaw(number, flaw))?;
                        for (number, text) in (number..).zip(lines_of(&lines)) {
                            events.extend(of_run(text, number)?);
                        }
                    }
                    number += u64::from(packed.count);
                }
            }
        }
        Ok(events)
    }
}
