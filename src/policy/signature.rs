//! How a failure is recognised again.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::failure::Cause;

/// What varies from run to run, and what it becomes. In this order: longer forms first.
const VARYING: &[(&str, &str)] = &[
    (r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b", "<id>"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?", "<time>"),
    (r"\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?\s?(?:[ap]m\b)?", "<time>"),
    (r"\b0x[0-9a-fA-F]+\b", "<address>"),
    (r"\b[a-z]+://\S+", "<url>"),
    (r"(?:[A-Za-z]:)?(?:[\w.@~+-]*[/\\])+(?P<name>[\w.@+-]*)", "$name"),
    (r"\b(?:tmp|temp)[\w.-]*\b|\.tmp\w+", "<temporary>"),
    (r"\b[0-9a-f]{7,64}\b", "<hash>"),
    (r"\b\d+(?:\.\d+)?\s?(?:ns|us|\u{b5}s|ms|s|sec|secs|seconds?|min|minutes?|h|hours?)\b", "<duration>"),
    (r"\d+", "#"),
    (r"\s+", " "),
];

static REGEXES: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    VARYING.iter().filter_map(|(pattern, to)| Regex::new(pattern).ok().map(|regex| (regex, *to))).collect()
});

/// The message without paths, line numbers, times, durations, addresses, hashes and temporary names.
pub fn normalize(message: &str) -> String {
    let mut text = message.trim().to_owned();
    for (regex, to) in REGEXES.iter() {
        text = regex.replace_all(&text, *to).into_owned();
    }
    text.to_lowercase()
}

/// Sixteen hexadecimal digits of the cause and the normalised message; the same on every platform and version.
pub fn signature(cause: Cause, message: &str) -> String {
    // FNV-1a, 64 bits: short, and defined once and for all.
    let text = format!("{}\n{}", cause.as_str(), normalize(message));
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(REGEXES.len(), VARYING.len());
    }

    #[test]
    fn what_varies_does_not_count() {
        let a = "/home/a/x/src/net.rs:12:5: error after 1.2s at 0x7f00 (pid 4711, commit 0c3e936)";
        let b = "C:\\work\\src\\net.rs:99:1: error after 800ms at 0xdead (pid 12, commit fffffff)";
        assert_eq!(normalize(a), normalize(b));
        assert_eq!(signature(Cause::BrokenBuild, a), signature(Cause::BrokenBuild, b));
        assert_ne!(signature(Cause::BrokenBuild, a), signature(Cause::Crashed, a));
        assert_ne!(signature(Cause::BrokenBuild, "cannot find a"), signature(Cause::BrokenBuild, "cannot find b"));
    }

    #[test]
    fn the_hash_never_changes() {
        assert_eq!(signature(Cause::Unknown, "x"), "5278224eb71e68e3");
    }
}
