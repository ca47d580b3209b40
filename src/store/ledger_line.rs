//! Lines of the ledger: an event as JSON with a checksum as its last field, or many old lines packed in one.
//!
//! The ledger compacts itself without losing a byte of its history: what was appended long ago is deflated as it stands,
//! checksums and all. A packed line holds the number of its first event, how many it holds and of which runs:
//! `{"seq":1,"packed":900,"schema":1,"runs":["a"],"lines":"…","checksum":"…"}`.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use serde::{Deserialize, Serialize};

use crate::model::event::{EVENT_SCHEMA, Event};
use crate::model::id::RunId;

const LABEL: &str = ",\"checksum\":\"";
/// `,"checksum":"xxxxxxxx"}`
const SUFFIX: usize = LABEL.len() + 8 + 2;

/// What a line turned out to be.
pub(super) enum Line {
    /// An event that this version understands.
    Event(Box<Event>),
    /// A sound event of a newer schema that this version cannot read.
    Newer(u32),
}

/// The line for an event, newline included.
pub(super) fn encode(event: &Event) -> serde_json::Result<String> {
    with_checksum(event)
}

/// An object as a line with its checksum, newline included.
pub(super) fn with_checksum(object: &impl Serialize) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(object)?;
    let checksum = crc32fast::hash(text.as_bytes());
    text.pop();
    Ok(format!("{text}{LABEL}{checksum:08x}\"}}\n"))
}

/// The text of a line (without its newline), an object with its checksum; an error where that does not fit.
pub(super) fn checked(line: &[u8]) -> Result<&str, String> {
    let body_length = line
        .len()
        .checked_sub(SUFFIX)
        .ok_or("too short for an event")?;
    let (body, suffix) = line.split_at(body_length);
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(body);
    checksum.update(b"}");
    if suffix != format!("{LABEL}{:08x}\"}}", checksum.finalize()).as_bytes() {
        return Err("the checksum does not fit".to_owned());
    }
    std::str::from_utf8(line).map_err(|error| error.to_string())
}

/// Reads a line without its newline; the error says what is wrong with it.
pub(super) fn decode(line: &[u8]) -> Result<Line, String> {
    let json = checked(line)?;
    match serde_json::from_str::<Event>(json) {
        Ok(event) => Ok(Line::Event(Box::new(event))),
        Err(error) => match schema_of(json) {
            Some(schema) if schema > EVENT_SCHEMA => Ok(Line::Newer(schema)),
            _ => Err(error.to_string()),
        },
    }
}

/// The sequence number and schema, for lines whose payload is not understood.
pub(super) fn schema_of(json: &str) -> Option<u32> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: u32,
    }
    serde_json::from_str::<Head>(json)
        .ok()
        .map(|head| head.schema)
}

/// How lines are packed; another way gets another number.
const SCHEMA: u32 = 1;
/// How many bytes of lines a packed one is made of: so much a damaged byte may cost.
const CHUNK: usize = 512 * 1024;
/// More than any line holds.
const MOST: u64 = 256 * 1024 * 1024;
/// Shorter pieces of base64 are no lines.
const SHORTEST: usize = 64;

/// What is wrong with a packed line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// A reason.
    Damaged(String),
    /// Another version packed it, in a way that this one does not know.
    Newer(u32),
}

fn damaged(reason: &(impl ToString + ?Sized)) -> DecodeError {
    DecodeError::Damaged(reason.to_string())
}

/// A packed line.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PackedLine<'l> {
    /// The number of its first event.
    pub seq: u64,
    /// How many events it holds.
    #[serde(rename = "packed")]
    pub count: u32,
    schema: u32,
    /// The ids of the runs that they are about.
    pub runs: BTreeSet<RunId>,
    /// Deflated, as base64.
    #[serde(borrow)]
    lines: Cow<'l, str>,
}

/// The packed line that `text` (without its newline) is, if it is one; the error says what is wrong with it.
pub(super) fn packed(text: &[u8]) -> Option<Result<PackedLine<'_>, DecodeError>> {
    let digits = text.strip_prefix(b"{\"seq\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    digits[end..].starts_with(b",\"packed\":").then(|| {
        let json = checked(text).map_err(|error| damaged(&error))?;
        let newer = |schema| {
            if schema > SCHEMA {
                Err(DecodeError::Newer(schema))
            } else {
                Ok(())
            }
        };
        match serde_json::from_str::<PackedLine<'_>>(json) {
            Ok(packed) => newer(packed.schema).map(|()| packed),
            Err(error) => {
                schema_of(json).map_or(Ok(()), newer)?;
                Err(damaged(&error))
            }
        }
    })
}

impl PackedLine<'_> {
    /// Its lines as they were appended, each with its newline.
    pub(super) fn unpack(&self) -> Result<Vec<u8>, DecodeError> {
        let deflated = STANDARD_NO_PAD
            .decode(self.lines.as_bytes())
            .map_err(|error| damaged(&error))?;
        let mut lines = Vec::new();
        DeflateDecoder::new(deflated.as_slice())
            .take(MOST)
            .read_to_end(&mut lines)
            .map_err(|error| damaged(&error))?;
        let count = memchr::memchr_iter(b'\n', &lines).count();
        if count == self.count as usize && lines.ends_with(b"\n") {
            Ok(lines)
        } else {
            let reason = format!("{count} lines are packed where {} belong", self.count);
            Err(damaged(&reason))
        }
    }

    /// Unpacks a line, which has to begin with sequence `next`.
    pub(super) fn unpack_at(&self, next: u64) -> Result<Vec<u8>, DecodeError> {
        if self.seq != next {
            let reason = format!("sequence {} where {next} belongs", self.seq);
            return Err(damaged(&reason));
        }
        self.unpack()
    }

    fn pack(seq: u64, lines: &[u8]) -> Result<Self, DecodeError> {
        let mut runs = BTreeSet::new();
        for text in lines_of(lines) {
            let event = decode(text).map_err(|error| damaged(&error))?;
            if let Line::Event(event) = event {
                runs.extend(event.run.map(|run| run.run_id));
            }
        }
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(2));
        let deflated = encoder
            .write_all(lines)
            .and_then(|()| encoder.finish())
            .map_err(|error| damaged(&error))?;
        let count = u32::try_from(memchr::memchr_iter(b'\n', lines).count())
            .map_err(|error| damaged(&error))?;
        Ok(Self {
            seq,
            count,
            schema: SCHEMA,
            runs,
            lines: STANDARD_NO_PAD.encode(deflated).into(),
        })
    }
}

/// The lines that have an end.
pub(super) fn whole(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1)]
}

/// Whole lines, without their newlines.
pub(super) fn lines_of(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (line, after) = match memchr::memchr(b'\n', rest) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None if rest.is_empty() => return None,
            None => (rest, &rest[rest.len()..]),
        };
        rest = after;
        Some(line)
    })
}

/// Whole lines as packed ones, a newline after each; `first` is the number of the first of them. What does not come out
/// of it again byte for byte is an error.
pub(super) fn pack(first: u64, lines: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut packed_lines = Vec::new();
    let (mut rest, mut seq) = (lines, first);
    while !rest.is_empty() {
        let longest = &rest[..rest.len().min(CHUNK)];
        // A line that is longer alone is packed alone.
        let end = memchr::memrchr(b'\n', longest).or_else(|| memchr::memchr(b'\n', rest));
        let (chunk, after) =
            rest.split_at(end.ok_or_else(|| damaged("the last line has no end"))? + 1);
        let made = PackedLine::pack(seq, chunk)?;
        let text = with_checksum(&made).map_err(|error| damaged(&error))?;
        let read = packed(text.trim_end().as_bytes()).transpose()?;
        if read.is_none_or(|read| read.unpack_at(seq).as_deref() != Ok(chunk)) {
            return Err(damaged("what was packed is not what was there"));
        }
        packed_lines.extend(text.into_bytes());
        seq += u64::from(made.count);
        rest = after;
    }
    Ok(packed_lines)
}

/// All lines in the open; damaged ones stand as they are.
pub(super) fn decompress_all(lines: &[u8]) -> Vec<u8> {
    let mut open = Vec::with_capacity(lines.len());
    for text in lines.split_inclusive(|byte| *byte == b'\n') {
        let line = text.strip_suffix(b"\n").unwrap_or(text);
        match packed(line)
            .and_then(Result::ok)
            .map(|packed| packed.unpack())
        {
            Some(Ok(lines)) => open.extend(lines),
            _ => open.extend(text),
        }
    }
    open
}

/// What can still be read of damaged packed lines: theirs up to the damage, whose own checksums show what is sound.
/// Wherever a piece of base64 begins, lines may have been packed: what stood around it is not asked for.
pub(super) fn salvage_lines(text: &[u8]) -> Vec<u8> {
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut remains = Vec::new();
    for piece in text
        .split(|byte| !is_base64(byte))
        .filter(|piece| piece.len() >= SHORTEST)
    {
        let deflated = STANDARD_NO_PAD
            .decode(piece)
            .or_else(|_| STANDARD_NO_PAD.decode(&piece[..piece.len() / 4 * 4]))
            .unwrap_or_default();
        let mut lines = Vec::new();
        // Up to where it cannot be inflated any more: that it may end in an error is why it is asked for.
        let _ = DeflateDecoder::new(deflated.as_slice())
            .take(MOST)
            .read_to_end(&mut lines);
        remains.extend_from_slice(whole(&lines));
    }
    remains
}

/// What can be read of lines that may be damaged.
#[derive(Clone, Debug, Default)]
pub struct Salvaged {
    /// Events whose checksum fits, in their order.
    pub events: Vec<Event>,
    /// Lines that cannot be read.
    pub unreadable: u64,
    /// The schema of a newer version that wrote some of them.
    pub newer: Option<u32>,
}

/// Reads the events of a ledger or of a part of one; lines that are damaged are counted and left out.
pub fn salvage(bytes: &[u8]) -> Salvaged {
    let mut found = Salvaged::default();
    for text in lines_of(bytes).filter(|text| !text.is_empty()) {
        let packed = packed(text).map(|packed| packed.and_then(|packed| packed.unpack()));
        match packed {
            None => {
                if !found.take(text) {
                    found.unreadable += 1;
                    // It may be a packed one that is not known any more.
                    found.take_remains(text);
                }
            }
            Some(Ok(lines)) => found.take_all(&lines),
            Some(Err(DecodeError::Newer(schema))) => found.newer = Some(schema),
            Some(Err(DecodeError::Damaged(_))) => {
                found.unreadable += 1;
                found.take_remains(text);
            }
        }
    }
    found
}

impl Salvaged {
    /// Whether all that could be read is in `other`, too.
    pub(super) fn is_part_of(&self, other: &Self) -> bool {
        let lines = |of: &Self| -> BTreeSet<String> {
            let lines = of.events.iter().map(encode);
            lines.filter_map(Result::ok).collect()
        };
        self.newer.is_none() && lines(self).is_subset(&lines(other))
    }

    fn take_all(&mut self, lines: &[u8]) {
        for text in lines_of(lines) {
            self.unreadable += u64::from(!self.take(text));
        }
    }

    fn take_remains(&mut self, text: &[u8]) {
        for text in lines_of(&salvage_lines(text)) {
            self.take(text);
        }
    }

    /// Whether it could be read.
    fn take(&mut self, text: &[u8]) -> bool {
        match decode(text) {
            Ok(Line::Event(event)) => {
                if event.schema > EVENT_SCHEMA {
                    self.newer = Some(event.schema);
                }
                self.events.push(*event);
            }
            Ok(Line::Newer(schema)) => self.newer = Some(schema),
            Err(_) => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::{EventSource, Payload};
    use crate::model::run::RunKey;
    use crate::model::time::Timestamp;

    fn event() -> Event {
        Event {
            seq: 7,
            at: Timestamp::from_millis(1_700_000_000_000),
            schema: EVENT_SCHEMA,
            run: Some(RunKey::new("r", None, None)),
            source: EventSource::Recovery,
            payload: Payload::RetryReset {},
        }
    }

    #[test]
    fn a_line_is_read_back() {
        let text = encode(&event()).unwrap();
        assert!(
            text.ends_with("\"}\n") && text.contains("\"run_id\":\"r\""),
            "{text}"
        );
        match decode(text.trim_end().as_bytes()).unwrap() {
            Line::Event(read) => assert_eq!(*read, event()),
            Line::Newer(_) => panic!("not newer"),
        }
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let text = encode(&event()).unwrap();
        let line = text.trim_end().as_bytes();
        for at in 0..line.len() * 8 {
            let mut damaged = line.to_vec();
            damaged[at / 8] ^= 1 << (at % 8);
            assert!(decode(&damaged).is_err(), "bit {at}");
        }
    }

    #[test]
    fn a_newer_schema_is_told_from_rubbish() {
        let json = r#"{"seq":1,"at":"2030-01-01T00:00:00.000Z","schema":9,"source":"recover","type":"from_the_future"}"#;
        let checksum = crc32fast::hash(json.as_bytes());
        let line = format!("{}{LABEL}{checksum:08x}\"}}", &json[..json.len() - 1]);
        assert!(matches!(decode(line.as_bytes()), Ok(Line::Newer(9))));
    }
}

#[cfg(test)]
mod packed_lines_tests {
    use super::*;
    use crate::model::event::{EVENT_SCHEMA, Event, EventSource, Payload};
    use crate::model::run::RunKey;
    use crate::model::time::Timestamp;

    fn lines(first: u64, count: u64) -> Vec<u8> {
        let line = |seq| {
            let event = Event {
                seq,
                at: Timestamp::from_millis(1_700_000_000_000),
                schema: EVENT_SCHEMA,
                run: Some(RunKey::new(format!("run-{}", seq / 1000), None, None)),
                source: EventSource::Recovery,
                payload: Payload::RetryReset {},
            };
            encode(&event).expect("an event")
        };
        (first..first + count)
            .map(line)
            .collect::<String>()
            .into_bytes()
    }

    #[test]
    fn lines_come_out_as_they_went_in() {
        let all = lines(7, 9000);
        let made = pack(7, &all).unwrap();
        assert!(
            made.len() * 5 < all.len(),
            "{} of {}",
            made.len(),
            all.len()
        );
        assert_eq!(decompress_all(&made), all);
        let packed_lines: Vec<_> = made
            .split(|byte| *byte == b'\n')
            .filter_map(packed)
            .collect::<Result<_, _>>()
            .unwrap();
        assert!(packed_lines.len() > 1);
        let mut next = 7;
        for packed in packed_lines {
            assert_eq!(packed.seq, next);
            assert!(
                packed
                    .runs
                    .contains(format!("run-{}", next / 1000).as_str())
            );
            next += u64::from(packed.count);
        }
        assert_eq!(next, 9007);
    }

    #[test]
    fn what_is_no_whole_event_is_not_packed() {
        assert!(pack(1, b"{\"seq\":1}\n").is_err());
        assert!(pack(1, lines(1, 3).strip_suffix(b"\n").unwrap()).is_err());
        assert!(packed(&lines(1, 1)).is_none());
    }

    // A damaged byte is noticed wherever it is, and what comes before it is not lost.
    #[test]
    fn damage_is_noticed_and_costs_what_comes_after_it() {
        let all = lines(1, 500);
        let made = pack(1, &all).unwrap();
        let line = made.strip_suffix(b"\n").unwrap();
        for at in (0..line.len()).step_by(7) {
            let mut damaged = line.to_vec();
            damaged[at] ^= 1;
            assert!(
                packed(&damaged).is_none_or(|read| read.is_err()),
                "byte {at}"
            );
        }
        let mut damaged = line.to_vec();
        let at = damaged.len() * 3 / 4;
        damaged[at] = b'!';
        let rest = salvage_lines(&damaged);
        assert!(
            rest.len() > all.len() / 4 && all.starts_with(&rest[..all.len() / 4]),
            "{}",
            rest.len()
        );
        // Around the packed lines nothing of them is lost, also where a damaged newline joins two.
        let begin = memchr::memmem::find(line, b"\"lines\":\"").unwrap() + 9;
        let end = begin + memchr::memchr(b'"', &line[begin..]).unwrap();
        for at in (0..begin).chain(end..line.len()) {
            let mut damaged = line.to_vec();
            damaged[at] = b'!';
            let both = [&damaged[..], b"!", line].concat();
            let (one, two) = (salvage_lines(&damaged), salvage_lines(&both));
            assert!(
                one == all && two == [&all[..], &all[..]].concat(),
                "byte {at}"
            );
        }
    }

    #[test]
    fn another_versions_way_is_told_from_damage() {
        let made = String::from_utf8(pack(1, &lines(1, 500)).unwrap()).unwrap();
        let mut newer: serde_json::Value = serde_json::from_str(&made).unwrap();
        newer["schema"] = serde_json::json!(2);
        newer.as_object_mut().unwrap().remove("checksum");
        let text = with_checksum(&newer).unwrap();
        assert_eq!(
            packed(text.trim_end().as_bytes()),
            Some(Err(DecodeError::Newer(2)))
        );
    }
}
