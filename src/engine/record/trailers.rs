//! `Recover-*: value` lines at the end of a checkpoint's message: what is needed to rebuild the ledger's view of it.

use std::fmt::Write as _;

/// What every key begins with.
const PREFIX: &str = "Recover-";

/// A message from a headline for people and trailers, in the given order.
///
/// Keys are given without `Recover-`. A value may hold anything: line ends, control characters and backslashes are escaped.
pub fn format(headline: &str, trailers: &[(&str, &str)]) -> String {
    // A line of the headline must not be read back as a trailer, so it stays in the first paragraph.
    let headline: String = headline
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let headline = headline.trim();
    let mut message = if headline.is_empty() {
        "checkpoint".to_owned()
    } else {
        headline.to_owned()
    };
    message.push_str("\n\n");
    for (key, value) in trailers {
        let _ = writeln!(message, "{PREFIX}{key}: {}", escape(value));
    }
    message
}

/// The trailers of a message, keys without `Recover-`, in their order.
pub(crate) fn parse(message: &str) -> Vec<(String, String)> {
    let last = message
        .trim_end_matches('\n')
        .rsplit_once("\n\n")
        .map_or("", |(_, last)| last);
    let lines = last.lines().filter_map(|line| {
        line.strip_prefix(PREFIX)?
            .split_once(": ")
            .or_else(|| Some((line.strip_prefix(PREFIX)?.strip_suffix(':')?, "")))
    });
    lines
        .map(|(key, value)| (key.to_owned(), unescape(value)))
        .collect()
}

fn escape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Besides the control characters, the separators that some readers take for line ends.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

fn unescape(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let mut chars = after.chars();
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('u') => {
                let code = chars
                    .as_str()
                    .strip_prefix('{')
                    .and_then(|text| text.split_once('}'));
                let read = code.and_then(|(hex, rest)| {
                    Some((char::from_u32(u32::from_str_radix(hex, 16).ok()?)?, rest))
                });
                if let Some((c, rest)) = read {
                    out.push(c);
                    chars = rest.chars();
                }
            }
            Some(c) => out.push(c),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn values_are_read_back(headline in any::<String>(), values in prop::collection::vec(any::<String>(), 1..5)) {
            let keys: Vec<_> = (0..values.len()).map(|n| std::format!("Key-{n}")).collect();
            let pairs: Vec<_> = keys.iter().map(String::as_str).zip(values.iter().map(String::as_str)).collect();
            let message = format(&headline, &pairs);
            let expected: Vec<_> = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            prop_assert_eq!(parse(&message), expected);
        }
    }
}
