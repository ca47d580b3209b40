//! The ledger's lines, read from its end as far as they are asked for.

use std::io::{self, SeekFrom};

use memchr::memmem::Finder;

use super::super::StoreError;
use super::super::ledger_line::{self, Line, PackedLine, lines_of, packed, whole};
use super::mended::Lines;
use super::{Arc, Loaded, Store};
use crate::model::event::EVENT_SCHEMA;
use crate::model::{Event, RunKey};

/// How much of the end is examined first, in bytes; twice as much each time that it was too little.
const TAIL: u64 = 16 * 1024;

impl Store {
    /// The events after number `after` with their raw lines, for `log` and for checkpoints. What comes before them is
    /// neither read nor checked.
    pub fn read_lines(&self, after: u64) -> Result<Vec<(Event, String)>, StoreError> {
        let events = self.read_truth(|file| {
            let bytes = lines_after(file, after).map_err(self.io("read"))?;
            if bytes.is_empty() {
                Ok(None)
            } else {
                self.read_all(&bytes, after).map(Some)
            }
        })?;
        match events.flatten() {
            Some(events) => Ok(events),
            None if self.exists() => Err(self.corrupt(1, "the file is empty or missing")),
            None => Ok(Vec::new()),
        }
    }

    fn read_all(&self, bytes: &[u8], after: u64) -> Result<Vec<(Event, String)>, StoreError> {
        let is_before = |packed: &PackedLine<'_>, number| {
            packed.seq == number && number + u64::from(packed.count) <= after + 1
        };
        let mut events = Vec::new();
        self.each_line(bytes, is_before, |number, text| {
            if number > after
                && let Line::Event(event) = self.decoded(number, text)?
            {
                self.check_seq(&event, number)?;
                events.push((*event, String::from_utf8_lossy(text).into_owned()));
            }
            Ok(())
        })?;
        Ok(events)
    }

    /// Calls `line` with each whole line and its number, packed ones unpacked but for those that are `passed_over`.
    fn each_line(
        &self,
        bytes: &[u8],
        passed_over: impl Fn(&PackedLine<'_>, u64) -> bool,
        mut line: impl FnMut(u64, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let bytes = whole(bytes);
        let mut number = seq_of(bytes).unwrap_or(1);
        for text in lines_of(bytes) {
            let flaw = |flaw| self.flaw(number, flaw);
            let Some(packed) = packed(text).transpose().map_err(flaw)? else {
                line(number, text)?;
                number += 1;
                continue;
            };
            if !passed_over(&packed, number) {
                let lines = packed.unpack_at(number).map_err(flaw)?;
                for (number, text) in (number..).zip(lines_of(&lines)) {
                    line(number, text)?;
                }
            }
            number += u64::from(packed.count);
        }
        Ok(())
    }

    fn decoded(&self, number: u64, text: &[u8]) -> Result<Line, StoreError> {
        ledger_line::decode(text).map_err(|reason| self.corrupt(number, reason))
    }

    fn check_seq(&self, event: &Event, number: u64) -> Result<(), StoreError> {
        if event.seq == number {
            return Ok(());
        }
        let reason = format!("sequence {} where {number} belongs", event.seq);
        Err(self.corrupt(number, reason))
    }

    /// A run's events, oldest first.
    pub fn events_of(&self, key: &RunKey) -> Result<Vec<Event>, StoreError> {
        let lines = self.lines_of_run(key, 0)?;
        Ok(lines.into_iter().map(|(event, _)| event).collect())
    }

    /// A run's events after number `after` with their raw lines, oldest first. Lines about other runs are passed over without
    /// being understood.
    pub fn lines_of_run(
        &self,
        key: &RunKey,
        after: u64,
    ) -> Result<Vec<(Event, String)>, StoreError> {
        let head = Head::of(key).map_err(self.io("read"))?;
        let is_other = |packed: &PackedLine<'_>, number| {
            number + u64::from(packed.count) <= after + 1 || !packed.runs.contains(&key.run_id)
        };
        let events = self.read_truth(|file| {
            let bytes = lines_after(file, after).map_err(self.io("read"))?;
            let mut events = Vec::new();
            self.each_line(&bytes, is_other, |number, text| {
                if number > after
                    && head.may_begin(text)
                    && let Line::Event(event) = self.decoded(number, text)?
                    && event.run.as_ref() == Some(key)
                {
                    events.push((*event, String::from_utf8_lossy(text).into_owned()));
                }
                Ok(())
            })?;
            Ok(events)
        })?;
        Ok(events.unwrap_or_default())
    }

    /// Folds the whole lines of `bytes`, which come after those that `loaded` has. After an error `loaded` is of no use.
    pub(super) fn fold(&self, loaded: &mut Loaded, bytes: &[u8]) -> Result<(), StoreError> {
        let mut rest = bytes;
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            let text = &rest[..newline];
            rest = &rest[newline + 1..];
            match packed(text) {
                None => self.fold_line(loaded, text)?,
                Some(packed) => {
                    let next = loaded.lines + 1;
                    let lines = packed.and_then(|packed| packed.unpack_at(next));
                    for text in lines_of(&lines.map_err(|flaw| self.flaw(next, flaw))?) {
                        self.fold_line(loaded, text)?;
                    }
                    loaded.packed = loaded.offset + (bytes.len() - rest.len()) as u64;
                }
            }
        }
        if rest.len() < bytes.len() {
            loaded.extend(&bytes[..bytes.len() - rest.len()]);
        }
        loaded.torn = rest.len() as u64;
        Ok(())
    }

    fn fold_line(&self, loaded: &mut Loaded, text: &[u8]) -> Result<(), StoreError> {
        let number = loaded.lines + 1;
        let state = Arc::make_mut(&mut loaded.state);
        match self.decoded(number, text)? {
            Line::Event(event) => {
                self.check_seq(&event, number)?;
                if event.schema > EVENT_SCHEMA {
                    loaded.newer = Some(event.schema);
                }
                loaded.beyond_cache.add(event.run.as_ref());
                state.apply(&event);
            }
            Line::Newer(schema) => {
                loaded.newer = Some(schema);
                loaded.beyond_cache.add(None);
                state.last_seq = number;
            }
        }
        loaded.lines = number;
        Ok(())
    }
}

/// The file's end, from the beginning of a line, with all lines after number `after`; all of it where a line does not
/// show its number.
pub(super) fn lines_after(file: &mut dyn Lines, after: u64) -> io::Result<Vec<u8>> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut wanted = if after == 0 { length } else { TAIL };
    loop {
        let begin = length.saturating_sub(wanted);
        file.seek(SeekFrom::Start(begin))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        if begin == 0 {
            return Ok(bytes);
        }
        let first = memchr::memchr(b'\n', &bytes).map(|newline| newline + 1);
        if let Some(first) = first
            && seq_of(&bytes[first..]).is_some_and(|seq| seq <= after.saturating_add(1))
        {
            bytes.drain(..first);
            return Ok(bytes);
        }
        wanted = wanted.saturating_mul(2);
    }
}

/// The number that a line begins with.
pub(super) fn seq_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"{\"seq\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}

/// More than what comes before the run in a line: sequence, time, schema.
const HEAD: usize = 160;

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
