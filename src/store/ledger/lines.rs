//! The ledger's lines, read from its end as far as they are asked for.

use std::io::{self, SeekFrom};

use memchr::memmem::Finder;

use super::super::StoreError;
use super::super::ledger_line::{self, Line};
use super::super::packed_lines::{self, lines_of};
use super::mended::Lines;
use super::{Arc, Beyond, Loaded, Store};
use crate::model::event::{EVENT_SCHEMA, Event};
use crate::model::run::RunKey;
use crate::model::state::State;

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
        let whole = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        let mut events: Vec<(Event, String)> = Vec::new();
        let first = seq_of(&bytes[..whole]).unwrap_or(1);
        let mut number = first;
        for text in packed_lines::lines_of(&bytes[..whole]) {
            match packed_lines::packed(text)
                .transpose()
                .map_err(|flaw| self.flaw(number, flaw))?
            {
                None => self.read_line(text, &mut number, after, &mut events)?,
                Some(packed)
                    if packed.seq == number && number + u64::from(packed.count) <= after + 1 =>
                {
                    number += u64::from(packed.count);
                }
                Some(packed) => {
                    let lines = packed
                        .unpack_at(number)
                        .map_err(|flaw| self.flaw(number, flaw))?;
                    for text in packed_lines::lines_of(&lines) {
                        self.read_line(text, &mut number, after, &mut events)?;
                    }
                }
            }
        }
        Ok(events)
    }

    fn read_line(
        &self,
        text: &[u8],
        number: &mut u64,
        after: u64,
        events: &mut Vec<(Event, String)>,
    ) -> Result<(), StoreError> {
        let expected = *number;
        *number += 1;
        if expected > after
            && let Line::Event(event) =
                ledger_line::decode(text).map_err(|reason| self.corrupt(expected, reason))?
        {
            if event.seq != expected {
                return Err(self.corrupt(
                    expected,
                    format!("sequence {} where {expected} belongs", event.seq),
                ));
            }
            events.push((*event, String::from_utf8_lossy(text).into_owned()));
        }
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

/// How far lines were folded.
struct Progress<'l> {
    /// Events so far.
    lines: u64,
    newer: Option<u32>,
    beyond_cache: &'l mut Beyond,
}

impl Store {
    /// Folds the whole lines of `bytes`, which come after those that `loaded` has.
    pub(super) fn fold(&self, loaded: &mut Loaded, bytes: &[u8]) -> Result<(), StoreError> {
        let mut rest = bytes;
        if !rest.contains(&b'\n') {
            loaded.torn = rest.len() as u64;
            return Ok(());
        }
        let state = Arc::make_mut(&mut loaded.state);
        let mut progress = Progress {
            lines: loaded.lines,
            newer: loaded.newer,
            beyond_cache: &mut loaded.beyond_cache,
        };
        while let Some(newline) = memchr::memchr(b'\n', rest) {
            match packed_lines::packed(&rest[..newline]) {
                None => self.fold_line(state, &mut progress, &rest[..newline])?,
                Some(packed) => {
                    let next = progress.lines + 1;
                    let lines = packed
                        .and_then(|packed| packed.unpack_at(next))
                        .map_err(|flaw| self.flaw(next, flaw))?;
                    for text in packed_lines::lines_of(&lines) {
                        self.fold_line(state, &mut progress, text)?;
                    }
                    loaded.packed = loaded.offset + (bytes.len() - rest.len() + newline + 1) as u64;
                }
            }
            rest = &rest[newline + 1..];
        }
        (loaded.lines, loaded.newer) = (progress.lines, progress.newer);
        loaded.extend(&bytes[..bytes.len() - rest.len()]);
        loaded.torn = rest.len() as u64;
        Ok(())
    }

    fn fold_line(
        &self,
        state: &mut State,
        progress: &mut Progress<'_>,
        text: &[u8],
    ) -> Result<(), StoreError> {
        let number = progress.lines + 1;
        match ledger_line::decode(text).map_err(|reason| self.corrupt(number, reason))? {
            Line::Event(event) if event.seq != number => {
                return Err(self.corrupt(
                    number,
                    format!("sequence {} where {number} belongs", event.seq),
                ));
            }
            Line::Event(event) => {
                if event.schema > EVENT_SCHEMA {
                    progress.newer = Some(event.schema);
                }
                progress.beyond_cache.add(event.run.as_ref());
                state.apply(&event);
            }
            Line::Newer(schema) => {
                progress.newer = Some(schema);
                progress.beyond_cache.add(None);
                state.last_seq = number;
            }
        }
        progress.lines = number;
        Ok(())
    }
}
