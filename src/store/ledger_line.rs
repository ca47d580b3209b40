//! One line of the ledger: an event as JSON with a checksum as its last field.

use serde::Serialize;

use crate::model::event::{EVENT_SCHEMA, Event};

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
