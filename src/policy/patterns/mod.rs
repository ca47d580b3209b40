//! Regular expressions that are matched against many lines, each compiled only when a line may match it.
//!
//! Compiling all of them would take far longer than reading a short log. So each has a few literals of which every text
//! that it matches contains one: a table that a test makes (`literals.txt`), since reading the patterns at every start would take too long. One automaton finds the literals of all patterns
//! in a line at once, and only patterns with a literal in the line are compiled and matched.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;
use regex::bytes::{Regex as BytesRegex, RegexBuilder};

/// Between literals.
const SEPARATOR: char = '\u{1f}';

/// What a literal begins with that is found only where a word begins.
const WORD_START: char = '\u{8}';

/// Patterns that are matched against the same lines.
#[derive(Debug)]
pub(crate) struct Patterns {
    regexes: Vec<LazyRegex>,
    /// Finds literals in text in lower case.
    automaton: Option<AhoCorasick>,
    /// By literal: the number of its pattern, and whether it begins a word.
    owners: Vec<(u16, bool)>,
    /// The patterns that are matched against every line.
    without_literals: Vec<u16>,
}

impl Patterns {
    /// The patterns, numbered in their order. One that is not in the table of literals is matched against every line: the
    /// test of the table lists where patterns are.
    pub(crate) fn new(patterns: impl IntoIterator<Item = &'static str>) -> Self {
        let with_literals = patterns
            .into_iter()
            .map(|pattern| (pattern, literals_of(pattern)));
        Self::with_literals(with_literals)
    }

    fn with_literals(
        patterns: impl IntoIterator<Item = (&'static str, impl Iterator<Item = &'static str>)>,
    ) -> Self {
        let (mut regexes, mut all, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        let mut without_literals = Vec::new();
        for (number, (pattern, literals)) in (0..).zip(patterns) {
            regexes.push(LazyRegex::new(pattern));
            let before = all.len();
            for literal in literals {
                let begins_word = literal.starts_with(WORD_START);
                all.push(literal.trim_start_matches(WORD_START));
                owners.push((number, begins_word));
            }
            if all.len() == before {
                without_literals.push(number);
            }
        }
        // The program starts anew for every log, so building must be quick: an automaton for both letter cases would take
        // three times as long, so the text's case is folded instead.
        let automaton = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .dense_depth(1)
            .prefilter(false)
            .build(all)
            .ok();
        if automaton.is_none() {
            without_literals = (0..).take(regexes.len()).collect();
        }
        Self {
            regexes,
            automaton,
            owners,
            without_literals,
        }
    }

    /// The patterns that match `line`, by number, in order.
    pub(crate) fn matches(&self, line: &[u8]) -> Vec<u16> {
        let mut matches = self.candidates(line);
        matches.retain(|number| self.regexes[usize::from(*number)].is_match(line));
        matches
    }

    /// Whether any pattern matches `line`.
    pub(crate) fn is_match(&self, line: &[u8]) -> bool {
        let mut candidates = self.candidates(line).into_iter();
        candidates.any(|number| self.regexes[usize::from(number)].is_match(line))
    }

    /// The patterns that may match `text`, by number, in order; also those that match only when compiled with Unicode.
    pub(crate) fn possible(&self, text: &[u8]) -> Vec<u16> {
        if folds_into_ascii(text) {
            return (0..).take(self.regexes.len()).collect();
        }
        self.candidates(text)
    }

    /// Those with a literal in `text`, and those without literals, in order.
    fn candidates(&self, text: &[u8]) -> Vec<u16> {
        let folded = text.to_ascii_lowercase();
        let is_in_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let automaton = self.automaton.iter();
        let found = automaton.flat_map(|automaton| automaton.find_overlapping_iter(&folded));
        let with_literal = found.filter_map(|found| {
            let (number, begins_word) = self.owners[found.pattern().as_usize()];
            let is_inside = begins_word && folded[..found.start()].last().is_some_and(is_in_word);
            (!is_inside).then_some(number)
        });
        let mut candidates = self.without_literals.clone();
        candidates.extend(with_literal);
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }
}

/// Whether a text has one of the two characters beyond ASCII that a case-insensitive pattern takes for an ASCII letter.
fn folds_into_ascii(text: &[u8]) -> bool {
    let has = |letter: &str| memchr::memmem::find(text, letter.as_bytes()).is_some();
    has("\u{17f}") || has("\u{212a}")
}

/// By the pattern's checksum: literals in lower case, with [`SEPARATOR`]s between, of which every text that the pattern matches
/// contains one, letter case aside; after a [`WORD_START`] where a word begins.
static TABLE: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!("literals.txt").lines();
    lines
        .filter_map(|line| line.split_once(SEPARATOR))
        .collect()
});

/// The literals of a pattern; none where the table has none.
fn literals_of(pattern: &str) -> impl Iterator<Item = &'static str> {
    let literals = TABLE.get(checksum(pattern).as_str());
    literals
        .into_iter()
        .flat_map(|literals| literals.split(SEPARATOR))
}

fn checksum(pattern: &str) -> String {
    format!("{:08x}", crc32fast::hash(pattern.as_bytes()))
}

/// A pattern over bytes, without Unicode, compiled when it is first used.
#[derive(Debug)]
struct LazyRegex {
    pattern: &'static str,
    regex: OnceLock<Option<BytesRegex>>,
}

impl LazyRegex {
    const fn new(pattern: &'static str) -> Self {
        Self {
            pattern,
            regex: OnceLock::new(),
        }
    }

    /// `None` where the pattern does not compile; tests compile them all.
    fn get(&self) -> Option<&BytesRegex> {
        let compile = || RegexBuilder::new(self.pattern).unicode(false).build().ok();
        self.regex.get_or_init(compile).as_ref()
    }

    fn is_match(&self, text: &[u8]) -> bool {
        self.get().is_some_and(|regex| regex.is_match(text))
    }
}

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
    /// A match with this many groups, where the whole is group 0.
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
    pub(super) fn first_group(&self) -> Option<Range<usize>> {
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

    /// As it is written.
    pub(super) fn pattern(&self) -> &'static str {
        self.ascii.pattern
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
    pub(super) fn first_in(&self, line: &[u8]) -> Option<Found> {
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
    pub(super) fn compiles(&self) -> bool {
        self.ascii.get().is_some() && self.unicode().is_some()
    }
}

#[cfg(test)]
pub(crate) mod tests;
