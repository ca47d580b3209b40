//! How a failure is recognised again.

use super::patterns::{Found, Single};
use crate::model::failure::Cause;

/// What varies from run to run, and what it becomes.
struct Varying {
    pattern: Single,
    /// What takes its place; `None`: its group.
    to: Option<&'static str>,
    /// Whether a text may hold it at all.
    possible: fn(&str) -> bool,
}

const fn varying(pattern: &'static str, to: &'static str, possible: fn(&str) -> bool) -> Varying {
    Varying {
        pattern: Single::new(pattern),
        to: Some(to),
        possible,
    }
}

/// In this order: longer forms first.
static VARYING: [Varying; 10] = [
    varying(
        r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b",
        "<id>",
        |text| text.bytes().filter(|byte| *byte == b'-').count() >= 4,
    ),
    varying(
        r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?",
        "<time>",
        |text| text.contains('-') && text.contains(':') && has_digit(text),
    ),
    varying(
        r"\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\s?(?:[ap]m\b)?",
        "<time>",
        |text| text.contains(':') && has_digit(text),
    ),
    varying(r"\b0x[0-9a-fA-F]+\b", "<address>", |text| {
        text.contains("0x")
    }),
    varying(r"\b[a-z]+://\S+", "<url>", |text| text.contains("://")),
    Varying {
        pattern: Single::new(r"(?:[A-Za-z]:)?(?:[\w.@~+-]*[/\\])+([\w.@+-]*)"),
        to: None,
        possible: |text| text.contains(['/', '\\']),
    },
    varying(r"\b(?:tmp|temp)[\w.-]*\b|\.tmp\w+", "<temporary>", |text| {
        text.contains("tmp") || text.contains("temp")
    }),
    varying(r"\b[0-9a-f]{7,64}\b", "<hash>", has_hash),
    varying(
        r"\b\d+(?:\.\d+)?\s?(?:ns|us|\u{b5}s|ms|s|sec|secs|seconds?|min|minutes?|h|hours?)\b",
        "<duration>",
        has_digit,
    ),
    varying(r"\d+", "#", has_digit),
];

/// Other scripts have digits of their own.
fn has_digit(text: &str) -> bool {
    text.bytes()
        .any(|byte| byte.is_ascii_digit() || !byte.is_ascii())
}

fn has_hash(text: &str) -> bool {
    let hexadecimal = |byte: &u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte);
    text.as_bytes()
        .chunk_by(|a, b| hexadecimal(a) && hexadecimal(b))
        .any(|run| run.len() >= 7)
}

/// The message without paths, line numbers, times, durations, addresses, hashes and temporary names.
pub(crate) fn normalize(message: &str) -> String {
    let mut text = message.trim().to_owned();
    for Varying {
        pattern,
        to,
        possible,
    } in &VARYING
    {
        let replacement = |found: &Found| {
            let group = found.group(1).map_or("", |range| &text[range]);
            to.unwrap_or(group).to_owned()
        };
        if let Some(replaced) = possible(&text)
            .then(|| pattern.replace(&text, replacement))
            .flatten()
        {
            text = replaced;
        }
    }
    one_space(&text).to_lowercase()
}

/// One space for each run of space.
fn one_space(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_whitespace() {
            spaced.push(c);
        } else if !spaced.ends_with(' ') {
            spaced.push(' ');
        }
    }
    spaced
}

/// Sixteen hexadecimal digits of the cause and the normalised message; the same on every platform and version.
pub(crate) fn signature(cause: Cause, message: &str) -> String {
    // FNV-1a, 64 bits: short, and defined once and for all.
    let text = format!("{}\n{}", cause.as_str(), normalize(message));
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert!(VARYING.iter().all(|varying| varying.pattern.compiles()));
    }

    #[test]
    fn what_varies_does_not_count() {
        let a = "/home/a/x/src/net.rs:12:5: error after 1.2s at 0x7f00 (pid 4711, commit 0c3e936)";
        let b = "C:\\work\\src\\net.rs:99:1: error after 800ms at 0xdead (pid 12, commit fffffff)";
        assert_eq!(normalize(a), normalize(b));
        assert_eq!(
            signature(Cause::BrokenBuild, a),
            signature(Cause::BrokenBuild, b)
        );
        assert_ne!(
            signature(Cause::BrokenBuild, a),
            signature(Cause::Crashed, a)
        );
        assert_ne!(
            signature(Cause::BrokenBuild, "cannot find a"),
            signature(Cause::BrokenBuild, "cannot find b")
        );
    }

    #[test]
    fn space_counts_once() {
        let space = regex::Regex::new(r"\s+").unwrap();
        for text in [
            "",
            " ",
            "a",
            " a \t\u{a0}b\n",
            "a\u{2003}b  c",
            "a\u{b}\u{c}\r\u{85}b\u{1c}c",
        ] {
            assert_eq!(one_space(text), space.replace_all(text, " "), "{text:?}");
        }
    }

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(signature(Cause::Unknown, "x"), "5278224eb71e68e3");
    }
}
