//! A pattern that is matched on its own, and what it matches.

use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

use super::LazyRegex;

/// A pattern that is compiled when it is first used; for ASCII text without Unicode's tables, which take longer to
/// compile and match the same there.
#[derive(Debug)]
pub(crate) struct Single {
    ascii: LazyRegex,
    unicode: OnceLock<Option<Regex>>,
}

/// One match, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// All of it.
    pub whole: Range<usize>,
    groups: Vec<Option<Range<usize>>>,
}

impl Found {
    /// A match with so many groups, where the whole is group 0.
    fn of(groups: usize, group: impl Fn(usize) -> Option<Range<usize>>) -> Option<Self> {
        Some(Self {
            whole: group(0)?,
            groups: (1..groups).map(group).collect(),
        })
    }

    fn in_bytes(captures: &regex::bytes::Captures<'_>) -> Option<Self> {
        Self::of(captures.len(), |group| Some(captures.get(group)?.range()))
    }

    fn in_text(captures: &regex::Captures<'_>) -> Option<Self> {
        Self::of(captures.len(), |group| Some(captures.get(group)?.range()))
    }

    /// What the group with this number matched (the first is 1), where there is one and it took part.
    pub(crate) fn group(&self, number: usize) -> Option<Range<usize>> {
        self.groups.get(number.checked_sub(1)?)?.clone()
    }

    /// What the first group that took part matched.
    pub(crate) fn first_group(&self) -> Option<Range<usize>> {
        self.groups.iter().flatten().next().cloned()
    }
}

impl Single {
    pub(crate) const fn new(pattern: &'static str) -> Self {
        Self {
            ascii: LazyRegex::new(pattern),
            unicode: OnceLock::new(),
        }
    }

    /// The text with `to` in place of each match; `None` where nothing matches. A pattern that does not compile matches
    /// nothing; tests compile them all.
    pub(crate) fn replace(&self, text: &str, to: impl Fn(&Found) -> String) -> Option<String> {
        let found = self.all(text);
        let last = found.last()?.whole.end;
        let mut replaced = String::with_capacity(text.len());
        let mut copied = 0;
        for found in found {
            replaced.push_str(&text[copied..found.whole.start]);
            replaced.push_str(&to(&found));
            copied = found.whole.end;
        }
        replaced.push_str(&text[last..]);
        Some(replaced)
    }

    /// The first match in `text`.
    pub(crate) fn first(&self, text: &str) -> Option<Found> {
        if text.is_ascii() {
            return self.first_in(text.as_bytes());
        }
        Found::in_text(&self.unicode()?.captures(text)?)
    }

    /// The first match in bytes of any kind, of which those beyond ASCII are no letters.
    pub(crate) fn first_in(&self, line: &[u8]) -> Option<Found> {
        Found::in_bytes(&self.ascii.get()?.captures(line)?)
    }

    /// Every match in `text`.
    pub(crate) fn all(&self, text: &str) -> Vec<Found> {
        if text.is_ascii() {
            let regex = self.ascii.get().into_iter();
            let captures = regex.flat_map(|regex| regex.captures_iter(text.as_bytes()));
            captures
                .filter_map(|captures| Found::in_bytes(&captures))
                .collect()
        } else {
            let regex = self.unicode().into_iter();
            let captures = regex.flat_map(|regex| regex.captures_iter(text));
            captures
                .filter_map(|captures| Found::in_text(&captures))
                .collect()
        }
    }

    fn unicode(&self) -> Option<&Regex> {
        self.unicode
            .get_or_init(|| Regex::new(self.ascii.pattern).ok())
            .as_ref()
    }

    /// Whether the pattern compiles both ways.
    #[cfg(test)]
    pub(crate) fn compiles(&self) -> bool {
        self.ascii.get().is_some() && self.unicode().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ascii_and_other_text_match_the_same() {
        let pattern = Single::new(r"(?i)\b(key=)\w+(;)?");
        for (text, expected) in [
            ("a key=b; KEY=c d", Some("a key=[;] KEY=[] d")),
            ("\u{e4} key=b\u{fc}; x", Some("\u{e4} key=[;] x")),
            ("nothing", None),
            ("n\u{f6}", None),
        ] {
            let replaced = pattern.replace(text, |found| {
                let part = |group: usize| found.group(group).map_or("", |range| &text[range]);
                format!("{}[{}]", part(1), part(2))
            });
            assert_eq!(replaced.as_deref(), expected);
            assert_eq!(pattern.first(text), pattern.all(text).first().cloned());
        }
    }
}
