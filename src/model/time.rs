//! Points in time and durations as the contract writes them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// 0000-01-01T00:00:00.000Z and 9999-12-31T23:59:59.999Z.
const EARLIEST: i64 = -62_167_219_200_000;
const LATEST: i64 = 253_402_300_799_999;

/// A point in time in UTC, written as RFC 3339 with milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// Cuts the instant to milliseconds, the precision it is written with, so that what is read back is equal.
    pub fn new(at: DateTime<Utc>) -> Self {
        Self::from_millis(at.timestamp_millis())
    }

    /// Milliseconds since the Unix epoch. What is before the year 0 or after 9999, which RFC 3339 cannot write, is clamped
    /// to them: what is recorded can be read again.
    pub fn from_millis(millis: i64) -> Self {
        Self(DateTime::from_timestamp_millis(millis.clamp(EARLIEST, LATEST)).unwrap_or_default())
    }

    /// Milliseconds since the Unix epoch.
    pub fn millis(self) -> i64 {
        self.0.timestamp_millis()
    }

    /// The date and time itself.
    pub fn datetime(self) -> DateTime<Utc> {
        self.0
    }

    /// This instant moved by `by`, clamped as in [`Self::from_millis`].
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.millis().saturating_add(millis))
    }

    /// So long before it.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        Self::from_millis(self.millis().saturating_sub(millis))
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.millis().saturating_sub(earlier.millis());
        Duration::from_millis(u64::try_from(millis).unwrap_or(0))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl FromStr for Timestamp {
    type Err = chrono::ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(
            DateTime::parse_from_rfc3339(text)?.with_timezone(&Utc),
        ))
    }
}

impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

/// A text; in a form that only programs read, [`Timestamp::millis`].
impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            serializer.serialize_i64(self.millis())
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrMillis)
    }
}

/// Either form: what is buffered on its way does not say which one it came in.
struct TextOrMillis;

impl Visitor<'_> for TextOrMillis {
    type Value = Timestamp;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time in RFC 3339")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Timestamp, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, millis: i64) -> Result<Timestamp, E> {
        Ok(Timestamp::from_millis(millis))
    }

    fn visit_u64<E: de::Error>(self, millis: u64) -> Result<Timestamp, E> {
        Ok(Timestamp::from_millis(
            i64::try_from(millis).unwrap_or(i64::MAX),
        ))
    }
}

/// Why a text is not a duration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("'{0}' is not a duration (write 90, 90s, 10m, 2h, 7d or 500ms)")]
pub(crate) struct InvalidDuration(pub String);

/// Reads `90`, `90s`, `10m`, `2h`, `7d`, `500ms`; a bare number is seconds.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, InvalidDuration> {
    let invalid = || InvalidDuration(text.to_owned());
    let text_trimmed = text.trim();
    let digits = text_trimmed
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text_trimmed.len());
    let number: u64 = text_trimmed[..digits].parse().map_err(|_| invalid())?;
    let millis_per_unit = match &text_trimmed[digits..] {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(invalid()),
    };
    number
        .checked_mul(millis_per_unit)
        .map(Duration::from_millis)
        .ok_or_else(invalid)
}

/// Writes a duration so that [`parse_duration`] reads it back: the largest unit that divides it.
pub(crate) fn format_duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    for (unit, size) in [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
    ] {
        if millis > 0 && millis.is_multiple_of(size) {
            return format!("{}{unit}", millis / size);
        }
    }
    format!("{millis}ms")
}

/// A duration as people say it, rounded down: `40 s`, `3 min`, `2 h`, `5 d`.
pub(crate) fn spoken_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [("d", 86_400), ("h", 3_600), ("min", 60)];
    let fitting = units.into_iter().find(|(_, size)| seconds >= *size);
    fitting.map_or_else(
        || format!("{seconds} s"),
        |(unit, size)| format!("{} {unit}", seconds / size),
    )
}

/// Durations as whole milliseconds, for documents and events.
pub(crate) mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes the milliseconds.
    pub(crate) fn serialize<S: Serializer>(
        duration: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
    }

    /// Reads the milliseconds.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_documented() {
        for (text, millis) in [
            ("90", 90_000),
            ("90s", 90_000),
            ("10m", 600_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
            ("500ms", 500),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in [
            "",
            "s",
            "1.5h",
            "-3s",
            "3 weeks",
            "99999999999999999999s",
            "18446744073709551615d",
        ] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn formatted_durations_are_read_back() {
        for millis in [
            0, 1, 999, 1_000, 1_500, 60_000, 90_000, 3_600_000, 86_400_000,
        ] {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse_duration(&format_duration(duration)), Ok(duration));
        }
    }

    #[test]
    fn what_only_programs_read_has_numbers() {
        for millis in [EARLIEST, -1, 0, 1_790_000_000_123, LATEST] {
            let at = Timestamp::from_millis(millis);
            let packed = rmp_serde::to_vec_named(&at).unwrap();
            assert_eq!(packed, rmp_serde::to_vec_named(&millis).unwrap());
            assert_eq!(rmp_serde::from_slice::<Timestamp>(&packed).unwrap(), at);
            assert_eq!(serde_json::to_value(at).unwrap(), at.to_string());
            // Where it is buffered on its way, as within a flattened struct.
            let buffered: serde_json::Value = rmp_serde::from_slice(&packed).unwrap();
            assert_eq!(serde_json::from_value::<Timestamp>(buffered).unwrap(), at);
        }
    }

    #[test]
    fn timestamps_keep_milliseconds() {
        let at: Timestamp = "2026-01-24T10:00:00.123Z".parse().unwrap();
        assert_eq!(at.to_string(), "2026-01-24T10:00:00.123Z");
        assert_eq!(
            serde_json::from_str::<Timestamp>("\"2026-01-24T11:00:00.123+01:00\"").unwrap(),
            at
        );
    }

    #[test]
    fn whatever_is_written_is_read_back() {
        let mut all: Vec<Timestamp> = [i64::MIN, -1, 0, i64::MAX]
            .map(Timestamp::from_millis)
            .into();
        all.extend(
            ["9999-12-31T23:59:59-23:59", "0000-01-01T00:00:00+23:59"]
                .map(|text| text.parse::<Timestamp>().unwrap()),
        );
        all.push(Timestamp::from_millis(0).plus(Duration::MAX));
        for at in all {
            assert_eq!(at.to_string().parse(), Ok(at));
        }
    }
}
