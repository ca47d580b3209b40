//! Values as users write them.

use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;

use crate::model::time::parse_duration;

pub use crate::model::lane::STAGES;

/// Reads `90`, `90s`, `10m`, `2h`, `7d`, `500ms`.
pub fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// Reads `100`, `100KiB`, `50MiB`, `10MB`.
pub fn size(text: &str) -> Result<u64, String> {
    crate::config::parse_size(text).map_err(|error| error.to_string())
}

/// Reads the name of a run, a phase, a lane or a task: anything but nothing.
pub fn name(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

/// A value as it is written on the command line.
pub fn word_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|word| word.get_name().to_owned()).unwrap_or_default()
}

/// `--wait` alone, or with the longest time to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As long as it takes.
    Forever,
    /// At most so long, then exit 9.
    AtMost(Duration),
}

impl FromStr for Wait {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() { Ok(Self::Forever) } else { duration(text).map(Self::AtMost) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read() {
        assert_eq!("".parse(), Ok(Wait::Forever));
        assert_eq!("2s".parse(), Ok(Wait::AtMost(Duration::from_secs(2))));
        assert!("soon".parse::<Wait>().is_err());
    }
}
