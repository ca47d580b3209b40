//! Reads records that are JSON lines one by one, for the readers of all agents.

use serde_json::Value;

/// Longer lines are skipped unread: no terminal record is that long, a tool result may be.
const MAX_RECORD_BYTES: usize = 8 << 20;

/// The JSON objects in `output` with their 1-based line numbers; lines that are no object, or are cut, are skipped.
pub(super) fn objects(output: &[u8]) -> impl Iterator<Item = (u64, Value)> + '_ {
    let lines = output.split(|byte| *byte == b'\n').zip(1_u64..);
    lines.filter_map(|(line, number)| {
        let line = line.trim_ascii();
        let plausible =
            line.starts_with(b"{") && line.ends_with(b"}") && line.len() <= MAX_RECORD_BYTES;
        let value = plausible
            .then(|| serde_json::from_slice::<Value>(line).ok())
            .flatten()?;
        value.is_object().then_some((number, value))
    })
}

/// The one object that all of `output` is, or that it ends with: programs print warnings before it and indent it.
pub(super) fn document(output: &[u8]) -> Option<(u64, Value)> {
    let mut starts: Vec<(u64, usize)> = Vec::new();
    let mut offset = 0;
    for (line, number) in output.split(|byte| *byte == b'\n').zip(1_u64..) {
        if line.starts_with(b"{") {
            starts.push((number, offset));
        }
        offset += line.len() + 1;
    }
    // A bounded number of candidates keeps this linear.
    starts.iter().rev().take(8).find_map(|(number, start)| {
        let mut values =
            serde_json::Deserializer::from_slice(&output[*start..]).into_iter::<Value>();
        let value = values.next()?.ok()?;
        value.is_object().then_some((*number, value))
    })
}

/// A text member.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// A count at this member; 0 where there is none.
pub(super) fn count(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

/// An HTTP status, given as a number or as text.
pub(super) fn status(value: Option<&Value>) -> Option<u16> {
    let value = value?;
    let number = value
        .as_u64()
        .or_else(|| value.as_str().and_then(|text| text.parse().ok()))?;
    u16::try_from(number)
        .ok()
        .filter(|status| (100..600).contains(status))
}
