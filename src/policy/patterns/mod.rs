//! Regular expressions that are matched against many lines, each compiled only when a line may match it.
//!
//! Compiling all of them would take far longer than reading a short log. So each has a few literals of which every text
//! that it matches contains one: a table that a test makes (`literals`). One automaton finds the literals of all patterns
//! in a line at once, and only patterns with a literal in the line are compiled and matched.

mod literals;
#[cfg(test)]
pub(crate) mod oracle;
mod single;

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::{Regex, RegexBuilder};

pub(crate) use single::{Found, Single};

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

/// The matches of one line, reused for the next.
#[derive(Debug, Default)]
pub(crate) struct Matches(Vec<u16>);

impl Patterns {
    /// The patterns, numbered in their order. One that is not in the table of literals is matched against every line: the
    /// test of the table lists where patterns are.
    pub(crate) fn new(patterns: impl IntoIterator<Item = &'static str>) -> Self {
        let with_literals = patterns
            .into_iter()
            .map(|pattern| (pattern, literals::of(pattern)));
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
    pub(crate) fn matches<'m>(&self, line: &[u8], matches: &'m mut Matches) -> &'m [u16] {
        self.candidates(line, &mut matches.0);
        matches
            .0
            .retain(|number| self.regexes[usize::from(*number)].is_match(line));
        &matches.0
    }

    /// Whether any pattern matches `line`.
    pub(crate) fn is_match(&self, line: &[u8], matches: &mut Matches) -> bool {
        self.candidates(line, &mut matches.0);
        matches
            .0
            .iter()
            .any(|number| self.regexes[usize::from(*number)].is_match(line))
    }

    /// The patterns that may match `text`, by number, in order; also those that match only when compiled with Unicode.
    pub(crate) fn possible(&self, text: &[u8]) -> Vec<u16> {
        if folds_into_ascii(text) {
            return (0..).take(self.regexes.len()).collect();
        }
        let mut possible = Vec::new();
        self.candidates(text, &mut possible);
        possible
    }

    /// Whether [`Self::possible`] finds any in `text` or in a part of it.
    pub(crate) fn any_possible(&self, text: &[u8]) -> bool {
        !self.without_literals.is_empty()
            || folds_into_ascii(text)
            || self
                .with_literal_in(&text.to_ascii_lowercase())
                .next()
                .is_some()
    }

    /// Those with a literal in `text`, and those without literals, in order.
    fn candidates(&self, text: &[u8], candidates: &mut Vec<u16>) {
        candidates.clear();
        candidates.extend_from_slice(&self.without_literals);
        candidates.extend(self.with_literal_in(&text.to_ascii_lowercase()));
        candidates.sort_unstable();
        candidates.dedup();
    }

    /// Those with a literal in a text in lower case, once for each place.
    fn with_literal_in<'t>(&'t self, folded: &'t [u8]) -> impl Iterator<Item = u16> + 't {
        let is_in_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let automaton = self.automaton.iter();
        let found = automaton.flat_map(move |automaton| automaton.find_overlapping_iter(folded));
        found.filter_map(move |found| {
            let (number, begins_word) = self.owners[found.pattern().as_usize()];
            let is_inside = begins_word && folded[..found.start()].last().is_some_and(is_in_word);
            (!is_inside).then_some(number)
        })
    }
}

/// Whether a text has one of the two characters beyond ASCII that a case-insensitive pattern takes for an ASCII letter.
fn folds_into_ascii(text: &[u8]) -> bool {
    let has = |letter: &str| memchr::memmem::find(text, letter.as_bytes()).is_some();
    has("\u{17f}") || has("\u{212a}")
}

/// A pattern over bytes, without Unicode, compiled when it is first used.
#[derive(Debug)]
struct LazyRegex {
    pattern: &'static str,
    regex: OnceLock<Option<Regex>>,
}

impl LazyRegex {
    const fn new(pattern: &'static str) -> Self {
        Self {
            pattern,
            regex: OnceLock::new(),
        }
    }

    /// `None` where the pattern does not compile; tests compile them all.
    fn get(&self) -> Option<&Regex> {
        let compile = || RegexBuilder::new(self.pattern).unicode(false).build().ok();
        self.regex.get_or_init(compile).as_ref()
    }

    fn is_match(&self, text: &[u8]) -> bool {
        self.get().is_some_and(|regex| regex.is_match(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_where_a_literal_is_and_without_one() {
        let space: &[&str] = &["no space", "\u{8}space"];
        let with_literals = |patterns: &[(&'static str, &'static [&'static str])]| {
            let patterns = patterns.iter();
            Patterns::with_literals(patterns.map(|(pattern, all)| (*pattern, all.iter().copied())))
        };
        let patterns = with_literals(&[
            (r"^Tests?: .*failed$|\d+ errors", &["failed", "errors"]),
            (r"(?i)no space|disk\sspace", space),
            (r"^\d+:\d+", &[]),
        ]);
        let mut matches = Matches::default();
        for (line, expected, possible) in [
            ("Test: 3 failed", vec![0], vec![0, 2]),
            ("Test: 3 FAILED", vec![], vec![0, 2]),
            ("3:4 _errors, No Space", vec![1, 2], vec![0, 1, 2]),
            ("3:4 4 errors", vec![0, 2], vec![0, 2]),
            ("1 error", vec![], vec![2]),
            ("", vec![], vec![2]),
            ("No \u{17f}pace", vec![], vec![0, 1, 2]),
        ] {
            let line = line.as_bytes();
            assert_eq!(patterns.matches(line, &mut matches), expected);
            assert_eq!(patterns.is_match(line, &mut matches), !expected.is_empty());
            assert_eq!(patterns.possible(line), possible);
            assert!(patterns.any_possible(line));
        }
        let patterns = with_literals(&[(r"(?i)disk\sspace", space)]);
        for (text, expected) in [
            ("a\nno SPACE\n", true),
            ("\u{17f}", true),
            ("s pace", false),
            ("a disk_space", false),
            ("", false),
        ] {
            assert_eq!(patterns.any_possible(text.as_bytes()), expected, "{text}");
        }
    }
}
