//! Regular expressions that are matched against many lines at once, and compiled no sooner than they are needed.
//!
//! Every alternative of a pattern knows strings and bytes without which it cannot match (`needs`). One search finds the
//! strings of all patterns at once, and only alternatives whose strings and bytes are there are compiled, when they are
//! first asked, and made fast when they are asked much: most of the time that a short log takes would go into patterns
//! that nothing needs.

mod bytes;
mod finder;
mod found;
mod gradual;
mod needs;
#[cfg(test)]
pub(crate) mod oracle;
mod single;
mod unsought;

use std::cell::LazyCell;
use std::ops::ControlFlow;

use bytes::{Bytes, Required};
use finder::Finder;
pub(crate) use found::Found;
use gradual::Gradual;
use needs::Pieces;
pub(crate) use single::Single;
use unsought::Unsought;

/// Patterns that are asked together.
#[derive(Debug)]
pub(crate) struct Patterns {
    alternatives: Vec<Alternative>,
    /// The strings that they need.
    finder: Option<Finder>,
    unsought: Unsought,
}

#[derive(Debug)]
struct Alternative {
    /// The pattern it belongs to.
    owner: u16,
    /// The bytes that it needs.
    bytes: Required,
    regex: Gradual,
}

/// Room for the matches of one line, to be used again.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// By alternative: the last line it was asked about.
    asked: Vec<u32>,
    line: u32,
    /// The line's bytes, once they are asked for.
    seen: Option<Bytes>,
    /// The patterns that match, in order.
    found: Vec<u16>,
}

impl Patterns {
    /// Reads the patterns; their order gives them their numbers.
    pub(crate) fn new(patterns: impl IntoIterator<Item = &'static str>) -> Self {
        let mut pieces = Pieces::default();
        for (owner, pattern) in (0..).zip(patterns) {
            pieces.read(owner, pattern);
        }
        let numbered = || (0..u16::MAX).zip(pieces.iter());
        let finder = Finder::new(numbered().flat_map(|(number, piece)| {
            pieces
                .strings(piece)
                .iter()
                .map(move |string| (&**string, string.begins_word, number))
        }));
        let unsought =
            numbered().filter(|(_, piece)| finder.is_none() || pieces.strings(piece).is_empty());
        let unsought = Unsought::new(unsought.map(|(number, _)| number).collect());
        let alternatives = pieces.into_pieces().into_iter().map(|piece| Alternative {
            owner: piece.owner,
            bytes: piece.bytes,
            regex: Gradual::new(piece.flags, piece.pattern),
        });
        Self {
            alternatives: alternatives.collect(),
            finder,
            unsought,
        }
    }

    /// The patterns that match `line`, by number, in order.
    pub(crate) fn matches<'m>(&self, line: &[u8], matches: &'m mut Matches) -> &'m [u16] {
        matches.next(self.alternatives.len());
        for number in self.unsought.of(line, &self.alternatives) {
            self.ask(*number, line, matches);
        }
        if let Some(finder) = &self.finder {
            let _all = finder.find(line, |owners, _| {
                for number in owners {
                    self.ask(*number, line, matches);
                }
                ControlFlow::Continue(())
            });
        }
        matches.found.sort_unstable();
        &matches.found
    }

    /// The patterns that `text` may match, by number, in order: what they need is there. So it is for patterns that are
    /// compiled with Unicode.
    pub(crate) fn possible(&self, text: &[u8]) -> Vec<u16> {
        // Beyond ASCII there is more that is a space or a digit.
        let seen = LazyCell::new(|| text.is_ascii().then(|| Bytes::in_text(text)));
        let owner = |number: &u16| {
            let alternative = &self.alternatives[usize::from(*number)];
            alternative.may_match(*seen).then_some(alternative.owner)
        };
        if folds_into_ascii(text) {
            return self.all();
        }
        let mut possible: Vec<u16> = self.unsought.numbers().iter().filter_map(owner).collect();
        if let Some(finder) = &self.finder {
            let _all = finder.find(text, |owners, _| {
                possible.extend(owners.iter().filter_map(owner));
                ControlFlow::Continue(())
            });
        }
        possible.sort_unstable();
        possible.dedup();
        possible
    }

    /// All patterns, by number, in order.
    fn all(&self) -> Vec<u16> {
        let mut all: Vec<u16> = self
            .alternatives
            .iter()
            .map(|alternative| alternative.owner)
            .collect();
        all.dedup();
        all
    }

    /// Whether one of the patterns may match within a line of `text`, as [`Self::possible`] has it of the line alone.
    pub(crate) fn may_match_a_line(&self, text: &[u8]) -> bool {
        let is_sought = self.unsought.numbers().is_empty() && !folds_into_ascii(text);
        let Some(finder) = self.finder.as_ref().filter(|_| is_sought) else {
            return !text.is_empty();
        };
        let found = finder.find(text, |owners, at| {
            let start = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |length| at + length);
            let line = &text[start..end];
            let seen = line.is_ascii().then(|| Bytes::in_text(line));
            let may_match = owners
                .iter()
                .any(|number| self.alternatives[usize::from(*number)].may_match(seen));
            if may_match {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        found.is_break()
    }

    /// Whether any pattern matches `line`.
    pub(crate) fn is_match(&self, line: &[u8], matches: &mut Matches) -> bool {
        !self.matches(line, matches).is_empty()
    }

    fn ask(&self, number: u16, line: &[u8], matches: &mut Matches) {
        let alternative = &self.alternatives[usize::from(number)];
        let known = matches.found.contains(&alternative.owner);
        if !known
            && matches.first_time(number)
            && matches.have(&alternative.bytes, line)
            && alternative.regex.is_match(line)
        {
            matches.found.push(alternative.owner);
        }
    }
}

/// Whether a text has one of the two characters that are letters of ASCII in another case: no string is found in it by its
/// bytes alone.
fn folds_into_ascii(text: &[u8]) -> bool {
    let has = |letter: &str| memchr::memmem::find(text, letter.as_bytes()).is_some();
    memchr::memchr2(0xc5, 0xe2, text).is_some() && (has("\u{17f}") || has("\u{212a}"))
}

impl Alternative {
    /// Whether a text may match that has these bytes; `None` where that is not all.
    fn may_match(&self, seen: Option<Bytes>) -> bool {
        seen.is_none_or(|seen| self.bytes.are_in(seen))
    }
}

impl Matches {
    fn next(&mut self, alternatives: usize) {
        self.found.clear();
        self.seen = None;
        if self.asked.len() != alternatives || self.line == u32::MAX {
            self.asked.clear();
            self.asked.resize(alternatives, 0);
            self.line = 0;
        }
        self.line += 1;
    }

    /// Whether the line has the bytes.
    fn have(&mut self, required: &Required, line: &[u8]) -> bool {
        required.are_in(*self.seen.get_or_insert_with(|| Bytes::in_text(line)))
    }

    fn first_time(&mut self, number: u16) -> bool {
        let asked = &mut self.asked[usize::from(number)];
        let first = *asked != self.line;
        *asked = self.line;
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_needs_is_looked_for_in_that_line() {
        let patterns = Patterns::new([r"\btoken\d", r"(?i)secret="]);
        assert_eq!(patterns.possible("a \u{17f}ecret=".as_bytes()), [0, 1]);
        for text in [
            "a \u{17f}ecret=",
            "to\u{212a}en1",
            "token1",
            "a\n1 token",
            "x\ntokenX9\n",
            "\u{e9} token",
            "a secret=",
            "SECRET=",
        ] {
            assert!(patterns.may_match_a_line(text.as_bytes()), "{text}");
        }
        for text in ["", "token\n1", "1\ntoken\n2", "atoken1", "secret\n="] {
            assert!(!patterns.may_match_a_line(text.as_bytes()), "{text}");
        }
        assert!(
            Patterns::new([r"\d"]).may_match_a_line(b"x"),
            "one that needs no string is not looked for"
        );
    }

    #[test]
    fn those_without_strings_are_asked_of_a_long_text_too() {
        let (patterns, mut room) = (
            Patterns::new([r"(?i)^[a-f]\d+$", r"x\b.{0,3}y", r"^\d+:\d+"]),
            Matches::default(),
        );
        assert_eq!(patterns.unsought.numbers(), [0, 1, 2]);
        for _ in 0..3 {
            assert!(!patterns.is_match(&vec![b'-'; 20 << 10], &mut room));
            for (line, expected) in [
                ("F12", vec![0]),
                ("12:3 x, y", vec![1, 2]),
                ("G12", vec![]),
                ("", vec![]),
            ] {
                assert_eq!(
                    patterns.matches(line.as_bytes(), &mut room),
                    expected,
                    "{line}"
                );
            }
        }
        assert!(patterns.unsought.is_joined());
    }

    #[test]
    fn what_a_set_of_the_same_patterns_finds_is_found() {
        let patterns = [
            r"^Tests?: .*failed$|\d+ errors?",
            r"(?i)no space|quota",
            r"^\d+:\d+",
            r"x\b.{0,3}(?:foo|[Bb]ar)+",
            r"^[0-9-]+$|^[^0-9] [0-9]{2}|^[A-Z]\d*$",
            r"^(?:\d|-)$|=(?:\d\d?|[135])?;|^\D$",
        ];
        let set = regex::bytes::RegexSetBuilder::new(patterns)
            .unicode(false)
            .build()
            .unwrap();
        let (ours, mut room) = (Patterns::new(patterns), Matches::default());
        let lines = "Test: 3 FAILED/Tests: 1 failed/12 error, No Space/3:4 x a bar/xfoo/x foofoo//-/X/1/a 12/=;/=3;/=2;/n";
        for line in lines.split('/') {
            let wanted: Vec<usize> = set.matches(line.as_bytes()).into_iter().collect();
            let found = ours
                .matches(line.as_bytes(), &mut room)
                .iter()
                .map(|number| usize::from(*number));
            assert_eq!(found.collect::<Vec<_>>(), wanted, "{line}");
        }
    }
}
