//! Durations as the text a person writes, so that a value looks the same in the file, in a template and in JSON.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer};

use crate::model::time::{format_duration, parse_duration};

fn parse<E: serde::de::Error>(text: &str) -> Result<Duration, E> {
    parse_duration(text).map_err(E::custom)
}

/// A duration that is always there.
pub(super) mod duration {
    use super::{Deserialize, Deserializer, Duration, Serializer, format_duration, parse};

    /// Writes `30s`.
    pub(crate) fn serialize<S: Serializer>(
        value: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_duration(*value))
    }

    /// Reads `30s`.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        parse(&String::deserialize(deserializer)?)
    }
}

/// A duration that may be absent (`null`).
pub(super) mod optional {
    use super::{Deserialize, Deserializer, Duration, Serializer, format_duration, parse};

    /// Writes `30s` or null.
    // The signature is serde's: a field is handed over by reference.
    #[allow(clippy::ref_option)]
    pub(crate) fn serialize<S: Serializer>(
        value: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(duration) => serializer.serialize_str(&format_duration(*duration)),
            None => serializer.serialize_none(),
        }
    }

    /// Reads `30s` or null.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        Option::<String>::deserialize(deserializer)?
            .map(|text| parse(&text))
            .transpose()
    }
}
