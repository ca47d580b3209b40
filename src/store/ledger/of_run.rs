//! The events of one run.

use std::io;

use memchr::memmem::Finder;

use crate::model::event::Event;
use crate::model::run::RunKey;

use super::super::error::StoreError;
use super::super::ledger_line::{self, Line};
use super::super::packed_lines::{self, lines_of};
use super::Store;
use super::lines::{lines_after, seq_of};

/// More than what comes before the run in a line: sequence, time, schema.
const HEAD: usize = 160;

impl Store {
    /// A run's events, oldest first.
    pub fn events_of(&self, key: &RunKey) -> Result<Vec<Event>, StoreError> {
        Ok(self
            .lines_of_run(key, 0)?
            .into_iter()
            .map(|(event, _)| event)
            .collect())
    }

    /// A run's events after number `after` with their raw lines, oldest first. Lines about other runs are passed over without
    /// being understood.
    pub fn lines_of_run(
        &self,
        key: &RunKey,
        after: u64,
    ) -> Result<Vec<(Event, String)>, StoreError> {
        let events = self.read_truth(|file| {
            let bytes = lines_after(file, after).map_err(self.io("read"))?;
            self.of_run(&bytes, key, after)
        })?;
        Ok(events.unwrap_or_default())
    }

    fn of_run(
        &self,
        bytes: &[u8],
        key: &RunKey,
        after: u64,
    ) -> Result<Vec<(Event, String)>, StoreError> {
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        let head = Head::of(key)
            .map_err(io::Error::from)
            .map_err(self.io("read"))?;
        let mut events = Vec::new();
        let mut add = |number: u64, text: &[u8]| -> Result<(), StoreError> {
            if number > after
                && head.may_begin(text)
                && let Line::Event(event) =
                    ledger_line::decode(text).map_err(|reason| self.corrupt(number, reason))?
                && event.run.as_ref() == Some(key)
            {
                events.push((*event, String::from_utf8_lossy(text).into_owned()));
            }
            Ok(())
        };
        let mut number = seq_of(&bytes[..whole]).unwrap_or(1);
        for text in lines_of(&bytes[..whole]) {
            match packed_lines::packed(text)
                .transpose()
                .map_err(|flaw| self.flaw(number, flaw))?
            {
                None => {
                    add(number, text)?;
                    number += 1;
                }
                Some(packed) => {
                    let next = number + u64::from(packed.count);
                    if next > after + 1 && packed.runs.contains(&key.run_id) {
                        let lines = packed
                            .unpack_at(number)
                            .map_err(|flaw| self.flaw(number, flaw))?;
                        for (number, text) in (number..).zip(lines_of(&lines)) {
                            add(number, text)?;
                        }
                    }
                    number = next;
                }
            }
        }
        Ok(events)
    }
}

/// How a run's lines begin, which is named before anything of any length.
struct Head {
    run_id: Finder<'static>,
    /// With phase and lane.
    key: Finder<'static>,
    lane: Finder<'static>,
}

impl Head {
    fn of(key: &RunKey) -> serde_json::Result<Self> {
        let run_id = serde_json::to_string(&key.run_id)?;
        let whole = serde_json::to_string(key)?;
        let key = whole.trim_start_matches('{').trim_end_matches('}');
        let finder = |text: &str| Finder::new(text).into_owned();
        Ok(Self {
            run_id: finder(&run_id),
            key: finder(key),
            lane: finder("\"lane\":"),
        })
    }

    /// Whether a line may be one of the run's. Lanes share their run's id.
    fn may_begin(&self, line: &[u8]) -> bool {
        let begin = &line[..line.len().min(HEAD + self.key.needle().len())];
        let has = |finder: &Finder<'_>| finder.find(begin).is_some();
        has(&self.run_id) && (has(&self.key) || !has(&self.lane))
    }
}
