//! What a key takes: reading it, saying what is expected, and writing it back.

use std::path::{Component, Path};
use std::time::Duration as StdDuration;

use itertools::Itertools as _;
use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::json;
use toml::Spanned;
use toml::de::{DeValue, ValueDeserializer};

use crate::model::failure::Cause;
use crate::model::time::{format_duration, parse_duration};
use crate::policy::text::nearest;

/// The longest time that is given as a number of a unit: a hundred years.
const LONGEST_MILLIS: u64 = 100 * 365 * 24 * 3_600_000;

/// The specification's retry strategies, and the delay that each is.
const STRATEGIES: [(&str, &str); 4] = [
    ("immediate", "immediate"),
    ("delayed", "delayed"),
    ("exponential_backoff", "exponential"),
    ("conditional", "conditional"),
];

/// What a key takes.
#[derive(Clone, PartialEq)]
pub(super) enum Kind {
    /// `true` or `false`.
    Bool,
    /// A whole number from `least` to `most`.
    Count { least: u64, most: u64 },
    /// A whole number, stored as one more (retries as attempts).
    Retries,
    /// A number of a unit of time of this many milliseconds each, at least `least`; stored as a duration.
    Units {
        unit: &'static str,
        millis: u64,
        least: u64,
    },
    /// An amount of money, not negative.
    Money,
    /// A duration of at least this many seconds.
    Duration(u64),
    /// How many checkpoints stay, in words.
    KeepLast,
    /// How the wait before another attempt is found, in the words of the specification.
    Strategy,
    /// A number of bytes.
    Size,
    /// A text with a meaning.
    Text(&'static TextKind),
    /// One of some words.
    Choice(Vec<String>),
    /// Any number of one kind; of words each once.
    List(Box<Kind>),
    /// A shell command, or a program and its arguments.
    Command,
    /// Causes by exit code.
    ExitCodes,
}

/// A kind of text.
pub(super) struct TextKind {
    /// Its name in the schema of a field.
    name: &'static str,
    /// What is expected of one.
    one: &'static str,
    /// What is expected of a list of them.
    list: &'static str,
    /// Its canonical form; what is wrong with it, where there is more to say than what is expected.
    read: fn(&str) -> Result<String, Option<String>>,
}

impl PartialEq for TextKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The kinds of texts, the plain one first.
static TEXTS: [TextKind; 10] = [
    TextKind {
        name: "text",
        one: "a text that is not empty",
        list: "a list of texts",
        read: |text| accept_if(text, !text.trim().is_empty()),
    },
    TextKind {
        name: "word",
        one: "",
        list: "a list of texts ([\"--flag\", \"value\"])",
        read: |text| Ok(text.to_owned()),
    },
    TextKind {
        name: "remote_name",
        one: "the name of a git remote (\"origin\") or of a [store.NAME], neither a URL nor a path",
        list: "",
        read: |text| accept_if(text, is_remote_name(text)),
    },
    TextKind {
        name: "glob",
        one: "",
        list: "a list of glob patterns ([\"target/**\"])",
        read: |text| match globset::Glob::new(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(error) => Err(Some(error.to_string())),
        },
    },
    TextKind {
        name: "regex",
        one: "a regular expression",
        list: "",
        read: |text| regex(text).and_then(|_| accept_if(text, !text.is_empty())),
    },
    TextKind {
        name: "mask",
        one: "",
        list: "a list of regular expressions (['ACME-[0-9]+'])",
        read: |text| {
            let is_all = regex(text)?.is_match("");
            let problem = || Some("it matches the empty text".to_owned());
            (!is_all).then(|| text.to_owned()).ok_or_else(problem)
        },
    },
    TextKind {
        name: "variable",
        one: "",
        list: "a list of names of variables ([\"MY_PIN\"])",
        read: |text| accept_if(text, !text.is_empty() && !text.contains(['=', '\0', ' '])),
    },
    TextKind {
        name: "folder",
        one: "a folder of the project, relative to it (\"crates/core\")",
        list: "",
        read: |text| folder(text).ok_or(None),
    },
    TextKind {
        name: "below",
        one: "",
        list: "a list of files or folders of the project, relative to it ([\"node_modules\"])",
        read: |text| {
            let path = folder(text).filter(|path| !path.is_empty());
            let is_git = |path: &String| {
                path.split('/')
                    .any(|name| name.eq_ignore_ascii_case(".git"))
            };
            path.filter(|path| !is_git(path)).ok_or(None)
        },
    },
    TextKind {
        name: "place",
        one: "an absolute path, or one in your home folder (\"~/vaults\")",
        list: "a list of absolute paths, or of some in your home folder ([\"~/.npm\"])",
        read: |text| accept_if(text, text.starts_with('/') || text.starts_with("~/")),
    },
];

fn accept_if(text: &str, is_valid: bool) -> Result<String, Option<String>> {
    is_valid.then(|| text.to_owned()).ok_or(None)
}

/// Why a value is not one for its key: what it is, what is expected, and a word that is near.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// `is 5.5: expected …`, to follow the key's name.
    pub message: String,
    /// What was meant, perhaps.
    pub hint: Option<String>,
}

/// A value of the file; `null` for what no key takes: a date, a number out of range.
pub(super) fn from_toml(value: &Spanned<DeValue<'_>>) -> Json {
    if matches!(value.get_ref(), DeValue::Datetime(_)) {
        return Json::Null;
    }
    Json::deserialize(ValueDeserializer::from(value.clone())).unwrap_or_default()
}

fn described(value: &Json) -> String {
    match value {
        Json::Null => "a date, or a number out of range".to_owned(),
        Json::String(text) => format!("'{text}'"),
        Json::Array(_) => "a list".to_owned(),
        Json::Object(_) => "a table".to_owned(),
        other => other.to_string(),
    }
}

impl Kind {
    /// What a text is that is not more than that.
    pub(super) const TEXT: &Self = &Self::Text(&TEXTS[0]);
    pub(super) const MILLIS: Self = Self::units("milliseconds", 1, 0);
    pub(super) const HOURS: Self = Self::units("hours", 3_600_000, 1);
    pub(super) const DAYS: Self = Self::units("days", 24 * 3_600_000, 1);

    const fn units(unit: &'static str, millis: u64, least: u64) -> Self {
        Self::Units {
            unit,
            millis,
            least,
        }
    }

    /// The text of that name in a schema.
    pub(super) fn text(name: &str) -> Option<Self> {
        TEXTS.iter().find(|text| text.name == name).map(Self::Text)
    }

    /// What the field of this schema takes; `None` where it holds keys itself.
    pub(super) fn of_schema(schema: &Json) -> Option<Self> {
        let kind = schema["kind"].as_str();
        let least = schema["minimum"].as_u64().unwrap_or_default();
        let types = &schema["type"];
        let words = words(schema);
        Some(match (types.as_str().or_else(|| types[0].as_str()), kind) {
            (Some("array"), Some(kind)) => Self::List(Box::new(Self::text(kind)?)),
            (Some("array"), None) => Self::List(Box::new(Self::of_schema(&schema["items"])?)),
            (_, Some("duration")) => Self::Duration(least),
            (_, Some("size")) => Self::Size,
            (_, Some("command")) => Self::Command,
            (_, Some("exit_codes")) => Self::ExitCodes,
            (_, Some(kind)) => Self::text(kind)?,
            _ if !words.is_empty() => Self::Choice(words),
            (Some("boolean"), _) => Self::Bool,
            (Some("integer"), _) => {
                let is_small = schema["format"] == "uint32";
                let most = if is_small { u32::MAX.into() } else { u64::MAX };
                Self::Count { least, most }
            }
            (Some("number"), _) => Self::Money,
            (Some("string"), _) => Self::TEXT.clone(),
            _ => return None,
        })
    }

    /// What a text of the environment or the command line is for a key of this kind.
    pub(super) fn parse(&self, text: &str) -> Json {
        let text = text.trim();
        let parsed = match self {
            Self::Bool => text.parse().ok().map(Json::Bool),
            Self::Count { .. } | Self::Retries | Self::Units { .. } => {
                text.parse::<i64>().ok().map(Json::from)
            }
            Self::Money => text.parse::<f64>().ok().map(Json::from),
            Self::List(_) => Some(json!([text])),
            _ => None,
        };
        parsed.unwrap_or_else(|| json!(text))
    }

    /// What it takes, in words.
    pub(super) fn expected(&self, optional: bool) -> String {
        let own = match self {
            Self::Bool => "true or false".to_owned(),
            Self::Count { least, .. } => format!("a whole number of at least {least}"),
            Self::Retries => "a whole number of at least 0".to_owned(),
            Self::Money => "an amount in dollars, not negative (2.5)".to_owned(),
            Self::Duration(0) => {
                "a duration (\"500ms\", \"90s\", \"10m\", \"2h\", \"7d\", or whole seconds)"
                    .to_owned()
            }
            Self::Duration(least) => {
                format!("a duration of at least {least} s (\"90s\", \"10m\", \"2h\")")
            }
            Self::Units { unit, least: 0, .. } => format!("a whole number of {unit}"),
            Self::Units {
                unit,
                millis,
                least,
            } => format!(
                "a whole number of {unit} of at least {least} and at most {}",
                LONGEST_MILLIS / millis
            ),
            Self::KeepLast => "\"keep_last_3\" (or another number), or \"keep_all\"".to_owned(),
            Self::Strategy => format!(
                "one of {}",
                quoted(STRATEGIES.iter().map(|(word, _)| *word))
            ),
            Self::Size => "a size (100, \"100KiB\", \"50MiB\", \"1GiB\", \"10MB\")".to_owned(),
            Self::Text(text) => text.one.to_owned(),
            Self::Choice(words) => format!("one of {}", quoted(words.iter().map(String::as_str))),
            Self::List(of) => match &**of {
                Self::Text(text) => text.list.to_owned(),
                Self::Duration(_) => {
                    "a list of at least one duration, none of them zero ([\"30s\", \"5m\"])"
                        .to_owned()
                }
                other => other.expected(false).replacen("one of", "a list of", 1),
            },
            Self::Command => "a shell command, or a list of a program and its arguments".to_owned(),
            Self::ExitCodes => "causes by exit code ({ 3 = \"RATE_LIMITED\" })".to_owned(),
        };
        if optional {
            format!("{own}, or \"none\"")
        } else {
            own
        }
    }

    /// Reads a value into its canonical form, which is that of the settings' JSON; `null` for `"none"`.
    pub(super) fn read(&self, value: &Json, optional: bool) -> Result<Json, Mismatch> {
        let says_none = |text: &str| text.eq_ignore_ascii_case("none");
        if optional && value.as_str().is_some_and(says_none) {
            return Ok(Json::Null);
        }
        self.accept(value).map_err(|problem| {
            let detail = problem.map(|problem| format!(" ({problem})"));
            let message = format!(
                "is {}{}: expected {}",
                described(value),
                detail.unwrap_or_default(),
                self.expected(optional)
            );
            let near = self.nearest_word(value);
            let hint = near.map(|word| format!("did you mean '{word}'?"));
            Mismatch { message, hint }
        })
    }

    fn accept(&self, value: &Json) -> Result<Json, Option<String>> {
        let number = value.as_u64();
        let read = match (self, value) {
            (Self::Count { least, most }, _) => number
                .filter(|number| (*least..=*most).contains(number))
                .map(Json::from),
            (Self::Retries, _) => number
                .filter(|number| *number < u32::MAX.into())
                .map(|number| json!(number + 1)),
            (Self::Money, _) => value
                .as_f64()
                .filter(|amount| *amount >= 0.0)
                .map(Json::from),
            (Self::Duration(least), Json::String(_) | Json::Number(_)) => {
                let text = value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned);
                let length = parse_duration(&text).ok();
                length
                    .filter(|length| length.as_secs() >= *least)
                    .map(duration)
            }
            (Self::Units { millis, least, .. }, _) => number
                .filter(|number| number >= least)
                .and_then(|number| number.checked_mul(*millis))
                .filter(|millis| *millis <= LONGEST_MILLIS)
                .map(|millis| duration(StdDuration::from_millis(millis))),
            (Self::KeepLast, Json::String(text)) => keep_last(text),
            (Self::Strategy, Json::String(text)) => STRATEGIES
                .iter()
                .find(|(word, _)| is_word(word, text))
                .map(|(_, delay)| json!(delay)),
            (Self::Size, Json::String(text)) => parse_size(text).ok().map(Json::from),
            (Self::Size, _) => number.map(Json::from),
            (Self::Text(kind), Json::String(text)) => Some((kind.read)(text)?.into()),
            (Self::Choice(words), Json::String(text)) => words
                .iter()
                .find(|word| is_word(word, text))
                .map(|word| json!(word)),
            (Self::List(of), Json::Array(items)) => {
                let zero = duration(StdDuration::ZERO);
                let is_schedule = |all: &Json| {
                    *all != json!([]) && !all.as_array().is_some_and(|all| all.contains(&zero))
                };
                let all = of.accept_all(items)?;
                Some(all).filter(|all| !matches!(**of, Self::Duration(_)) || is_schedule(all))
            }
            (Self::Command, Json::String(text)) if text.trim().is_empty() => Some(Json::Null),
            (Self::Bool, Json::Bool(_)) | (Self::Command, Json::String(_)) => Some(value.clone()),
            (Self::Command, Json::Array(items)) => command(items),
            (Self::ExitCodes, Json::Object(codes)) => exit_codes(codes),
            _ => None,
        };
        read.ok_or(None)
    }

    fn accept_all(&self, items: &[Json]) -> Result<Json, Option<String>> {
        let mut read = Vec::new();
        for item in items {
            let named = |problem| format!("{}: {problem}", described(item));
            let one = self.accept(item).map_err(|problem| problem.map(named))?;
            if !matches!(self, Self::Choice(_)) || !read.contains(&one) {
                read.push(one);
            }
        }
        Ok(read.into())
    }

    fn nearest_word(&self, value: &Json) -> Option<&str> {
        match (self, value) {
            (Self::List(of), Json::Array(items)) => {
                let wrong = items.iter().find(|item| of.accept(item).is_err())?;
                of.nearest_word(wrong)
            }
            (Self::Strategy, Json::String(text)) => {
                nearest(text, STRATEGIES.iter().map(|(word, _)| *word))
            }
            (Self::Choice(words), Json::String(text)) => {
                let is_upper = words.iter().all(|word| *word == word.to_ascii_uppercase());
                let upper = is_upper.then(|| text.to_ascii_uppercase());
                nearest(
                    upper.as_ref().unwrap_or(text),
                    words.iter().map(String::as_str),
                )
            }
            _ => None,
        }
    }

    /// Writes a canonical value as TOML.
    pub(super) fn to_toml(&self, value: &Json) -> String {
        match (self, value) {
            (Self::Command, Json::Null) => "[]".to_owned(),
            (_, Json::Null) => "\"none\"".to_owned(),
            (Self::Size, Json::Number(bytes)) => {
                format!("\"{}\"", format_size(bytes.as_u64().unwrap_or(0)))
            }
            (_, Json::String(text)) => toml::Value::String(text.clone()).to_string(),
            (_, Json::Array(items)) => {
                let items = items.iter().map(|item| self.to_toml(item));
                format!("[{}]", items.format(", "))
            }
            (Self::ExitCodes, Json::Object(codes)) => {
                let codes = codes
                    .iter()
                    .map(|(code, cause)| format!("{code} = {cause}"));
                format!("{{ {} }}", codes.format(", "))
            }
            (_, other) => other.to_string(),
        }
    }
}

/// The words that a schema has one of.
fn words(schema: &Json) -> Vec<String> {
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().filter_map(Json::as_str);
        return words.map(str::to_owned).collect();
    }
    if let Some(word) = schema["const"].as_str() {
        return vec![word.to_owned()];
    }
    let either = schema["oneOf"].as_array().or(schema["anyOf"].as_array());
    either.into_iter().flatten().flat_map(words).collect()
}

/// Whether a text is a word, in any case, with `-` for `_` if need be.
fn is_word(word: &str, text: &str) -> bool {
    text.replace('-', "_").eq_ignore_ascii_case(word)
}

/// What git takes for a remote's name and nothing else: no URL, no path, no option, no transport (`ext::`).
fn is_remote_name(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(is_plain)
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

fn duration(value: StdDuration) -> Json {
    Json::String(format_duration(value))
}

fn command(items: &[Json]) -> Option<Json> {
    let argv: Vec<&str> = items.iter().map(Json::as_str).collect::<Option<_>>()?;
    match argv.first() {
        None => Some(Json::Null),
        Some(program) if program.trim().is_empty() => None,
        Some(_) => Some(json!(argv)),
    }
}

fn exit_codes(codes: &serde_json::Map<String, Json>) -> Option<Json> {
    let entry = |(code, cause): (&String, &Json)| {
        let cause = cause_named(cause.as_str()?)?;
        Some((code.parse::<u8>().ok()?.to_string(), json!(cause)))
    };
    let read: Option<serde_json::Map<_, _>> = codes.iter().map(entry).collect();
    read.map(Json::Object)
}

fn regex(text: &str) -> Result<regex::Regex, Option<String>> {
    let last = |text: &str| Some(text.lines().last()?.trim().to_owned());
    regex::Regex::new(text).map_err(|error| last(&error.to_string()))
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
    let mut all = Cause::ALL.iter().copied();
    all.find(|cause| is_word(cause.as_str(), text.trim()))
}

fn quoted<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| format!("\"{word}\"")).join(", ")
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
