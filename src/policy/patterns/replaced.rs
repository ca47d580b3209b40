//! Parts of a text that a pattern finds, to be replaced.

use std::ops::Range;
use std::sync::OnceLock;

use regex::{Regex, bytes};
use regex_automata::meta;
use regex_automata::util::captures::Captures;

use super::gradual::{FEW_BYTES, slow};

/// A pattern that is compiled when it is first asked, and in ASCII text without Unicode's tables, which cost more than
/// all the rest. What is found is the same.
#[derive(Debug)]
pub(crate) struct Replaced {
    pattern: &'static str,
    few: OnceLock<Option<meta::Regex>>,
    ascii: OnceLock<Option<bytes::Regex>>,
    unicode: OnceLock<Option<Regex>>,
}

/// One match, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// All of it.
    pub whole: Range<usize>,
    /// Its first two groups, where they took part.
    pub groups: [Option<Range<usize>>; 2],
}

impl Replaced {
    pub(crate) const fn new(pattern: &'static str) -> Self {
        Self { pattern, few: OnceLock::new(), ascii: OnceLock::new(), unicode: OnceLock::new() }
    }

    /// The text with `to` in place of each match; `None` where nothing matches. A pattern that does not compile finds
    /// nothing; tests compile them all.
    pub(crate) fn replace(&self, text: &str, to: impl Fn(&Found) -> String) -> Option<String> {
        let found = self.find(text);
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

    fn find(&self, text: &str) -> Vec<Found> {
        if text.is_ascii() && text.len() <= FEW_BYTES {
            let Some(regex) = self.few() else { return Vec::new() };
            let found = |captures: Captures| Found::of(|group| captures.get_group(group).map(|span| span.range()));
            regex.captures_iter(text).filter_map(found).collect()
        } else if text.is_ascii() {
            let Some(regex) = self.ascii() else { return Vec::new() };
            let found = |captures: bytes::Captures<'_>| Found::of(|group| captures.get(group).map(|part| part.range()));
            regex.captures_iter(text.as_bytes()).filter_map(found).collect()
        } else {
            let Some(regex) = self.unicode() else { return Vec::new() };
            let found = |captures: regex::Captures<'_>| Found::of(|group| captures.get(group).map(|part| part.range()));
            regex.captures_iter(text).filter_map(found).collect()
        }
    }

    fn few(&self) -> Option<&meta::Regex> {
        self.few.get_or_init(|| slow(self.pattern)).as_ref()
    }

    fn ascii(&self) -> Option<&bytes::Regex> {
        let compile = || bytes::RegexBuilder::new(self.pattern).unicode(false).build().ok();
        self.ascii.get_or_init(compile).as_ref()
    }

    fn unicode(&self) -> Option<&Regex> {
        self.unicode.get_or_init(|| Regex::new(self.pattern).ok()).as_ref()
    }

    /// Whether the pattern compiles both ways.
    #[cfg(test)]
    pub(crate) fn compiles(&self) -> bool {
        self.few().is_some() && self.ascii().is_some() && self.unicode().is_some()
    }
}

impl Found {
    fn of(group: impl Fn(usize) -> Option<Range<usize>>) -> Option<Self> {
        Some(Self { whole: group(0)?, groups: [group(1), group(2)] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_finds_the_same() {
        let pattern = Replaced::new(r"(?i)\b(key=)\w+(;)?");
        let long = "x ".repeat(FEW_BYTES);
        for (text, expected) in [
            ("a key=b; KEY=c d", Some("a key=[;] KEY=[] d")),
            ("\u{e4} key=b\u{fc}; x", Some("\u{e4} key=[;] x")),
            (&format!("{long}KEY=c d"), Some(&format!("{long}KEY=[] d"))),
            ("nothing", None),
            ("n\u{f6}", None),
        ] {
            let replaced = pattern.replace(text, |found| {
                let part = |group: usize| found.groups[group].clone().map_or("", |range| &text[range]);
                format!("{}[{}]", part(0), part(1))
            });
            assert_eq!(replaced.as_deref(), expected);
        }
    }
}
