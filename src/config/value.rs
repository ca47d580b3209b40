//! What a key takes: reading it, saying what is expected, and writing it back.

use std::path::{Component, Path};
use std::time::Duration as StdDuration;

use serde_json::Value as Json;
use serde_json::json;
use toml::de::{DeInteger, DeValue};

use crate::model::failure::Cause;
use crate::model::time::{format_duration, parse_duration};
use crate::policy::text::nearest;

/// Seconds of an hour.
const HOUR: u64 = 3600;
/// The longest time that is given in hours or days: a hundred years, in seconds.
const LONGEST: u64 = 100 * 365 * 24 * HOUR;

/// The specification's retry strategies, and the delay that each is.
const STRATEGIES: [(&str, &str); 4] = [
    ("immediate", "immediate"),
    ("delayed", "delayed"),
    ("exponential_backoff", "exponential"),
    ("conditional", "conditional"),
];

/// What a key takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number of at least this.
    Count(u32),
    /// A whole number of at least 1 that may be large.
    Total,
    /// A whole number of at least this, kept as one more (retries as attempts).
    Retries(u32),
    /// An amount of money, not negative.
    Money,
    /// A duration.
    Duration,
    /// A whole number of milliseconds, kept as a duration.
    Millis,
    /// A whole number of hours of at least 1, kept as a duration.
    Hours,
    /// A whole number of days of at least 1, kept as a duration.
    Days,
    /// How many checkpoints stay, in words.
    KeepLast,
    /// How the wait before another attempt is found, in the words of the specification.
    Strategy,
    /// A number of bytes.
    Size,
    /// A text that is not empty.
    Text,
    /// One of some words.
    Choice(&'static [&'static str]),
    /// Any of some words, each once.
    Choices(&'static [&'static str]),
    /// A duration of at least so many seconds.
    DurationFrom(u64),
    /// The name of a git remote: no URL, no path.
    RemoteName,
    /// The name of a cause.
    Cause,
    /// A shell command, or a program and its arguments.
    Command,
    /// Arguments of a program.
    Words,
    /// Causes by exit code.
    ExitCodes,
    /// Glob patterns.
    Globs,
    /// A regular expression.
    Regex,
    /// Regular expressions.
    Regexes,
    /// Names of environment variables.
    Variables,
    /// A folder of the project, relative to it.
    Folder,
}

/// A value as it is written, wherever that is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Raw {
    Text(String),
    Integer(i128),
    Float(f64),
    Bool(bool),
    List(Vec<Raw>),
    Table(Vec<(String, Raw)>),
    Other(&'static str),
}

impl Raw {
    /// A value of the file.
    pub(super) fn from_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.clone().into_owned()),
            DeValue::Integer(number) => integer(number),
            DeValue::Float(number) => number
                .as_str()
                .replace('_', "")
                .parse()
                .map_or(Self::Other("a number"), Self::Float),
            DeValue::Boolean(value) => Self::Bool(*value),
            DeValue::Datetime(_) => Self::Other("a date"),
            DeValue::Array(items) => Self::List(
                items
                    .iter()
                    .map(|item| Self::from_toml(item.get_ref()))
                    .collect(),
            ),
            DeValue::Table(table) => {
                let entry = |(name, value): (&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
                    let name: &toml::de::DeString<'_> = name.get_ref();
                    (name.to_string(), Self::from_toml(value.get_ref()))
                };
                Self::Table(table.iter().map(entry).collect())
            }
        }
    }

    /// A text of the environment or the command line, for a key of `kind`.
    pub(super) fn from_text(kind: Kind, text: &str) -> Self {
        let text = text.trim();
        let number = || text.parse().ok().map(Self::Integer);
        let parsed = match kind {
            Kind::Bool => text.parse().ok().map(Self::Bool),
            Kind::Count(_)
            | Kind::Total
            | Kind::Retries(_)
            | Kind::Millis
            | Kind::Hours
            | Kind::Days => number(),
            Kind::Money => text.parse().ok().map(Self::Float),
            Kind::Globs | Kind::Regexes | Kind::Variables => {
                Some(Self::List(vec![Self::Text(text.to_owned())]))
            }
            _ => None,
        };
        parsed.unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Text(text) => format!("'{text}'"),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Table(_) => "a table".to_owned(),
            Self::Other(what) => (*what).to_owned(),
        }
    }
}

fn integer(number: &DeInteger<'_>) -> Raw {
    i128::from_str_radix(number.as_str(), number.radix())
        .map_or(Raw::Other("a number"), Raw::Integer)
}

/// Why a value is not one for its key: what it is, what is expected, and a word that is near.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// `is 5.5: expected …`, to follow the key's name.
    pub message: String,
    /// What was meant, perhaps.
    pub hint: Option<String>,
}

impl Kind {
    /// What it takes, in words.
    pub(super) fn expected(self, optional: bool) -> String {
        let own = match self {
            Self::Bool => "true or false".to_owned(),
            Self::Count(min) | Self::Retries(min) => format!("a whole number of at least {min}"),
            Self::Total => "a whole number of at least 1".to_owned(),
            Self::Money => "an amount in dollars, not negative (2.5)".to_owned(),
            Self::Duration => {
                "a duration (\"500ms\", \"90s\", \"10m\", \"2h\", \"7d\", or whole seconds)"
                    .to_owned()
            }
            Self::Millis => "a whole number of milliseconds".to_owned(),
            Self::Hours => format!(
                "a whole number of hours of at least 1 and at most {}",
                LONGEST / HOUR
            ),
            Self::Days => format!(
                "a whole number of days of at least 1 and at most {}",
                LONGEST / (24 * HOUR)
            ),
            Self::KeepLast => "\"keep_last_3\" (or another number), or \"keep_all\"".to_owned(),
            Self::Strategy => {
                format!("one of {}", quoted(&STRATEGIES.map(|(word, _)| word)))
            }
            Self::Size => "a size (100, \"100KiB\", \"50MiB\", \"1GiB\", \"10MB\")".to_owned(),
            Self::Text => "a text that is not empty".to_owned(),
            Self::DurationFrom(least) => {
                format!("a duration of at least {least} s (\"90s\", \"10m\", \"2h\")")
            }
            Self::Choice(words) => format!("one of {}", quoted(words)),
            Self::Choices(words) => format!("a list of {}", quoted(words)),
            Self::RemoteName => {
                "the name of a git remote (\"origin\"), neither a URL nor a path".to_owned()
            }
            Self::Cause => format!("a cause ({})", Cause::ALL.map(Cause::as_str).join(", ")),
            Self::Command => "a shell command, or a list of a program and its arguments".to_owned(),
            Self::Words => "a list of texts ([\"--flag\", \"value\"])".to_owned(),
            Self::ExitCodes => "causes by exit code ({ 3 = \"RATE_LIMITED\" })".to_owned(),
            Self::Globs => "a list of glob patterns ([\"target/**\"])".to_owned(),
            Self::Regex => "a regular expression".to_owned(),
            Self::Regexes => "a list of regular expressions (['ACME-[0-9]+'])".to_owned(),
            Self::Variables => "a list of names of variables ([\"MY_PIN\"])".to_owned(),
            Self::Folder => "a folder of the project, relative to it (\"crates/core\")".to_owned(),
        };
        if optional {
            format!("{own}, or \"none\"")
        } else {
            own
        }
    }

    /// Reads a value into its canonical form, which is that of the settings' JSON; `null` for `"none"`.
    pub(super) fn read(self, raw: &Raw, optional: bool) -> Result<Json, Mismatch> {
        if optional && matches!(raw, Raw::Text(text) if text.eq_ignore_ascii_case("none")) {
            return Ok(Json::Null);
        }
        let read = self.accept(raw);
        read.map_err(|problem| {
            let detail = problem
                .map(|problem| format!(" ({problem})"))
                .unwrap_or_default();
            let message = format!(
                "is {}{detail}: expected {}",
                raw.describe(),
                self.expected(optional)
            );
            Mismatch {
                message,
                hint: self
                    .nearest_word(raw)
                    .map(|word| format!("did you mean '{word}'?")),
            }
        })
    }

    fn accept(self, raw: &Raw) -> Result<Json, Option<String>> {
        match (self, raw) {
            (Self::Bool, Raw::Bool(value)) => Ok(json!(value)),
            (Self::Count(min), Raw::Integer(number)) => {
                count(*number, min).map(|value| json!(value)).ok_or(None)
            }
            (Self::Total, Raw::Integer(number)) => u64::try_from(*number)
                .ok()
                .filter(|total| *total > 0)
                .map(|total| json!(total))
                .ok_or(None),
            (Self::Retries(min), Raw::Integer(number)) => count(*number, min)
                .and_then(|value| value.checked_add(1))
                .map(|value| json!(value))
                .ok_or(None),
            (Self::Money, Raw::Integer(_) | Raw::Float(_)) => {
                money(raw).map(|value| json!(value)).ok_or(None)
            }
            (Self::Duration, Raw::Text(text)) => {
                parse_duration(text).map(duration).map_err(|_| None)
            }
            (Self::Duration, Raw::Integer(seconds)) => parse_duration(&seconds.to_string())
                .map(duration)
                .map_err(|_| None),
            (Self::DurationFrom(least), _) => {
                let read = Self::Duration.accept(raw)?;
                let length = read.as_str().and_then(|text| parse_duration(text).ok());
                length
                    .filter(|length| length.as_secs() >= least)
                    .map(|_| read)
                    .ok_or(None)
            }
            (Self::Millis, Raw::Integer(millis)) => u64::try_from(*millis)
                .map(|millis| duration(StdDuration::from_millis(millis)))
                .map_err(|_| None),
            (Self::Hours, Raw::Integer(hours)) => whole(*hours, HOUR).ok_or(None),
            (Self::Days, Raw::Integer(days)) => whole(*days, 24 * HOUR).ok_or(None),
            (Self::KeepLast, Raw::Text(text)) => keep_last(text).ok_or(None),
            (Self::Strategy, Raw::Text(text)) => {
                let wanted = text.to_ascii_lowercase().replace('-', "_");
                STRATEGIES
                    .iter()
                    .find(|(word, _)| *word == wanted)
                    .map(|(_, delay)| json!(delay))
                    .ok_or(None)
            }
            (Self::Size, Raw::Text(text)) => {
                parse_size(text).map(|size| json!(size)).map_err(|_| None)
            }
            (Self::Size, Raw::Integer(bytes)) => u64::try_from(*bytes)
                .map(|size| json!(size))
                .map_err(|_| None),
            (Self::Text, Raw::Text(text)) if !text.trim().is_empty() => Ok(json!(text)),
            (Self::Choice(words), Raw::Text(text)) => {
                choice(words, text).map(|word| json!(word)).ok_or(None)
            }
            (Self::Choices(words), Raw::List(items)) => {
                choices(words, items).map(|words| json!(words)).ok_or(None)
            }
            (Self::RemoteName, Raw::Text(text)) if is_remote_name(text) => Ok(json!(text)),
            (Self::Cause, Raw::Text(text)) => cause_named(text)
                .map(|cause| json!(cause.as_str()))
                .ok_or(None),
            (Self::Command, Raw::Text(text)) => Ok(if text.trim().is_empty() {
                Json::Null
            } else {
                json!(text)
            }),
            (Self::Command, Raw::List(items)) => command(items).ok_or(None),
            (Self::Words, Raw::List(items)) => texts(items).map(|words| json!(words)).ok_or(None),
            (Self::ExitCodes, Raw::Table(codes)) => exit_codes(codes).ok_or(None),
            (Self::Globs, Raw::List(items)) => globs(items),
            (Self::Regex, Raw::Text(text)) if !text.is_empty() => {
                valid_regex(text).map(|()| json!(text)).map_err(Some)
            }
            (Self::Regexes, Raw::List(items)) => regexes(items),
            (Self::Variables, Raw::List(items)) => {
                let is_name = |name: &&str| !name.is_empty() && !name.contains(['=', '\0', ' ']);
                texts(items)
                    .filter(|names| names.iter().all(is_name))
                    .map(|names| json!(names))
                    .ok_or(None)
            }
            (Self::Folder, Raw::Text(text)) => folder(text).map(|folder| json!(folder)).ok_or(None),
            _ => Err(None),
        }
    }

    fn nearest_word(self, raw: &Raw) -> Option<&'static str> {
        if let (Self::Choices(words), Raw::List(items)) = (self, raw) {
            let wrong = items
                .iter()
                .find(|item| item.text().is_none_or(|text| choice(words, text).is_none()));
            return Self::Choice(words).nearest_word(wrong?);
        }
        let Raw::Text(text) = raw else { return None };
        match self {
            Self::Choice(words) => nearest(text, words.iter().copied()),
            Self::Strategy => nearest(text, STRATEGIES.iter().map(|(word, _)| *word)),
            Self::Cause => nearest(
                &text.to_ascii_uppercase(),
                Cause::ALL.iter().map(|cause| cause.as_str()),
            ),
            _ => None,
        }
    }

    /// Writes a canonical value as TOML.
    pub(super) fn to_toml(self, value: &Json) -> String {
        match (self, value) {
            (Self::Command, Json::Null) => "[]".to_owned(),
            (_, Json::Null) => "\"none\"".to_owned(),
            (Self::Size, Json::Number(bytes)) => {
                format!("\"{}\"", format_size(bytes.as_u64().unwrap_or(0)))
            }
            (_, Json::String(text)) => toml::Value::String(text.clone()).to_string(),
            (_, Json::Array(items)) => {
                let items: Vec<String> = items.iter().map(|item| self.to_toml(item)).collect();
                format!("[{}]", items.join(", "))
            }
            (Self::ExitCodes, Json::Object(codes)) => {
                let codes: Vec<String> = codes
                    .iter()
                    .map(|(code, cause)| format!("{code} = {cause}"))
                    .collect();
                format!("{{ {} }}", codes.join(", "))
            }
            (_, other) => other.to_string(),
        }
    }
}

fn choice(words: &'static [&'static str], text: &str) -> Option<&'static str> {
    let wanted = text.to_ascii_lowercase().replace('-', "_");
    words.iter().copied().find(|word| *word == wanted)
}

/// The words, each once.
fn choices(words: &'static [&'static str], items: &[Raw]) -> Option<Vec<&'static str>> {
    let mut chosen = Vec::new();
    for item in items {
        let word = choice(words, item.text()?)?;
        if !chosen.contains(&word) {
            chosen.push(word);
        }
    }
    Some(chosen)
}

/// What git takes for a remote's name and nothing else: no URL, no path, no option, no transport (`ext::`).
fn is_remote_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_plain)
}

/// A number of at least 1 of something that has so many seconds.
fn whole(number: i128, seconds: u64) -> Option<Json> {
    let number = u64::try_from(number).ok().filter(|number| *number > 0)?;
    // What a time may be added to.
    let seconds = number
        .checked_mul(seconds)
        .filter(|seconds| *seconds <= LONGEST)?;
    Some(duration(StdDuration::from_secs(seconds)))
}

/// `keep_last_N`; `null` for `keep_all`.
fn keep_last(text: &str) -> Option<Json> {
    let text = text.trim().to_ascii_lowercase().replace('-', "_");
    if text == "keep_all" {
        return Some(Json::Null);
    }
    text.strip_prefix("keep_last_")?
        .parse::<u32>()
        .ok()
        .map(|number| json!(number))
}

fn count(number: i128, min: u32) -> Option<u32> {
    u32::try_from(number).ok().filter(|value| *value >= min)
}

fn money(raw: &Raw) -> Option<f64> {
    let amount = match raw {
        Raw::Float(number) => *number,
        Raw::Integer(number) => f64::from(i32::try_from(*number).ok()?),
        _ => return None,
    };
    (amount.is_finite() && amount >= 0.0).then_some(amount)
}

fn duration(value: StdDuration) -> Json {
    Json::String(format_duration(value))
}

fn texts(items: &[Raw]) -> Option<Vec<&str>> {
    items.iter().map(Raw::text).collect()
}

fn command(items: &[Raw]) -> Option<Json> {
    let argv = texts(items)?;
    match argv.first() {
        None => Some(Json::Null),
        Some(program) if program.trim().is_empty() => None,
        Some(_) => Some(json!(argv)),
    }
}

fn exit_codes(codes: &[(String, Raw)]) -> Option<Json> {
    let entry = |(code, cause): &(String, Raw)| {
        let code: u8 = code.parse().ok()?;
        Some((
            code.to_string(),
            json!(cause_named(cause.text()?)?.as_str()),
        ))
    };
    codes
        .iter()
        .map(entry)
        .collect::<Option<serde_json::Map<_, _>>>()
        .map(Json::Object)
}

fn globs(items: &[Raw]) -> Result<Json, Option<String>> {
    let patterns = texts(items).ok_or(None)?;
    for pattern in &patterns {
        globset::Glob::new(pattern).map_err(|error| Some(error.to_string()))?;
    }
    Ok(json!(patterns))
}

fn valid_regex(text: &str) -> Result<(), String> {
    let last = |error: regex::Error| {
        error
            .to_string()
            .lines()
            .last()
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    regex::Regex::new(text).map(drop).map_err(last)
}

fn regexes(items: &[Raw]) -> Result<Json, Option<String>> {
    let patterns = texts(items).ok_or(None)?;
    for pattern in &patterns {
        let matches_nothing = regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(""));
        let valid = if matches_nothing {
            Err("it matches the empty text".to_owned())
        } else {
            valid_regex(pattern)
        };
        valid.map_err(|problem| Some(format!("'{pattern}': {problem}")))?;
    }
    Ok(json!(patterns))
}

/// A path that leads nowhere but down, without the steps that do not matter.
fn folder(text: &str) -> Option<String> {
    let text = text.trim();
    let mut down = Vec::new();
    for step in Path::new(text).components() {
        match step {
            Component::Normal(name) => down.push(name.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    (!text.is_empty()).then(|| down.join("/"))
}

/// The cause of that name, in any case, with `-` for `_` if need be.
pub(super) fn cause_named(text: &str) -> Option<Cause> {
    let wanted = text.trim().to_ascii_uppercase().replace('-', "_");
    Cause::ALL
        .into_iter()
        .find(|cause| cause.as_str() == wanted)
}

fn quoted(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("\"{word}\""))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Why a text is not a size.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("'{0}' is not a size (write 100, 100KiB, 50MiB, 1GiB or 10MB)")]
pub(crate) struct InvalidSize(pub String);

/// Units, larger ones first; binary ones first among equals, because they are written by [`format_size`].
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// Reads `100`, `100KiB`, `50MiB`, `1GiB`, `10MB`; a bare number is bytes, upper and lower case are alike.
pub(crate) fn parse_size(text: &str) -> Result<u64, InvalidSize> {
    let invalid = || InvalidSize(text.to_owned());
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(trimmed.len());
    let number: u64 = trimmed[..digits].parse().map_err(|_| invalid())?;
    let unit = match trimmed[digits..].trim_start() {
        "" => 1,
        name => {
            UNITS
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name))
                .ok_or_else(invalid)?
                .1
        }
    };
    number.checked_mul(unit).ok_or_else(invalid)
}

/// Writes a size so that [`parse_size`] reads it back: the largest binary unit that divides it.
pub(crate) fn format_size(bytes: u64) -> String {
    let binary = UNITS.iter().filter(|(name, _)| name.ends_with("iB"));
    for (name, size) in binary {
        if bytes > 0 && bytes.is_multiple_of(*size) {
            return format!("{}{name}", bytes / size);
        }
    }
    bytes.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_documented() {
        for (text, bytes) in [
            ("100", 100),
            ("100KiB", 102_400),
            ("50MiB", 52_428_800),
            ("1GiB", 1 << 30),
            ("10MB", 10_000_000),
            ("10 kb", 10_000),
            ("0", 0),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "MiB",
            "-1",
            "1.5MiB",
            "10 potatoes",
            "99999999999999TiB",
            "1e3",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn formatted_sizes_are_read_back() {
        for bytes in [0, 1, 1023, 1024, 1 << 20, 50 << 20, 1 << 40, 10_000_000] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
        assert_eq!(format_size(50 << 20), "50MiB");
    }
}
