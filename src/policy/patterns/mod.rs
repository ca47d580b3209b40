//! Many patterns against many lines.
//!
//! Every alternative of a pattern knows strings without which it cannot match, or that it cannot without a digit
//! (`needs`). One search finds the strings of all patterns at once, and only alternatives whose strings are there are
//! compiled, when they are first asked, and made fast when they are asked much: most of the time that a short log takes
//! would go into patterns that nothing needs.

mod finder;
mod gradual;
mod needs;
mod replaced;

use finder::Finder;
use gradual::Gradual;
pub(crate) use replaced::{Found, Replaced};

/// Patterns that are asked together.
#[derive(Debug)]
pub(crate) struct Patterns {
    alternatives: Vec<Alternative>,
    /// The strings that they need.
    finder: Option<Finder>,
    /// The alternatives that need no more than a digit.
    with_digit: Vec<u16>,
    /// The alternatives that need nothing.
    always: Vec<u16>,
}

#[derive(Debug)]
struct Alternative {
    /// The pattern it belongs to.
    owner: u16,
    regex: Gradual,
}

/// Room for the matches of one line, to be used again.
#[derive(Debug, Default)]
pub(crate) struct Matches {
    /// By alternative: the last line it was asked about.
    asked: Vec<u32>,
    line: u32,
    /// The patterns that match, in order.
    found: Vec<u16>,
}

impl Patterns {
    /// Reads the patterns; their order gives them their numbers.
    pub(crate) fn new(patterns: impl IntoIterator<Item = &'static str>) -> Self {
        let (mut alternatives, mut with_digit, mut always) = (Vec::new(), Vec::new(), Vec::new());
        let mut needed = Vec::new();
        for (owner, pattern) in (0..).zip(patterns) {
            for piece in needs::pieces(pattern) {
                let number = u16::try_from(alternatives.len()).unwrap_or(u16::MAX);
                match (piece.needs.is_empty(), piece.needs_digit) {
                    (true, true) => with_digit.push(number),
                    (true, false) => always.push(number),
                    (false, _) => {}
                }
                needed.extend(piece.needs.into_iter().map(|need| (need, number)));
                alternatives.push(Alternative { owner, regex: Gradual::new(piece.flags, piece.pattern) });
            }
        }
        let finder = Finder::new(needed.iter().map(|(need, number)| (&**need, *number)));
        if finder.is_none() {
            with_digit.clear();
            always = (0..).take(alternatives.len()).collect();
        }
        Self { alternatives, finder, with_digit, always }
    }

    /// The patterns that match `line`, by number, in order.
    pub(crate) fn matches<'m>(&self, line: &[u8], matches: &'m mut Matches) -> &'m [u16] {
        matches.next(self.alternatives.len());
        for number in self.unsought(line) {
            self.ask(*number, line, matches);
        }
        if let Some(finder) = &self.finder {
            finder.find(line, |owners| {
                for number in owners {
                    self.ask(*number, line, matches);
                }
            });
        }
        matches.found.sort_unstable();
        &matches.found
    }

    /// The patterns that `text` may match, by number, in order: what they need is there.
    pub(crate) fn possible(&self, text: &[u8]) -> Vec<u16> {
        let owner = |number: &u16| self.alternatives[usize::from(*number)].owner;
        let mut possible: Vec<u16> = self.unsought(text).map(owner).collect();
        if let Some(finder) = &self.finder {
            finder.find(text, |owners| possible.extend(owners.iter().map(owner)));
        }
        possible.sort_unstable();
        possible.dedup();
        possible
    }

    /// The alternatives without strings to look for that `text` may match.
    fn unsought(&self, text: &[u8]) -> impl Iterator<Item = &u16> {
        let digits = (!self.with_digit.is_empty() && text.iter().any(u8::is_ascii_digit)).then_some(&self.with_digit);
        self.always.iter().chain(digits.into_iter().flatten())
    }

    /// Whether any pattern matches `line`.
    pub(crate) fn is_match(&self, line: &[u8], matches: &mut Matches) -> bool {
        !self.matches(line, matches).is_empty()
    }

    fn ask(&self, number: u16, line: &[u8], matches: &mut Matches) {
        let alternative = &self.alternatives[usize::from(number)];
        let known = matches.found.contains(&alternative.owner);
        if !known && matches.first_time(number) && alternative.regex.is_match(line) {
            matches.found.push(alternative.owner);
        }
    }
}

impl Matches {
    fn next(&mut self, alternatives: usize) {
        self.found.clear();
        if self.asked.len() != alternatives || self.line == u32::MAX {
            self.asked.clear();
            self.asked.resize(alternatives, 0);
            self.line = 0;
        }
        self.line += 1;
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
    fn what_a_set_of_the_same_patterns_finds_is_found() {
        let patterns = [
            r"^Tests?: .*failed$|\d+ errors?",
            r"(?i)no space|quota",
            r"^\d+:\d+",
            r"x\b.{0,3}(?:foo|[Bb]ar)+",
            r"^[0-9-]+$|^[^0-9] [0-9]{2}|^[A-Z]\d*$",
            r"^(?:\d|-)$|=(?:\d\d?|[135])?;|^\D$",
        ];
        let set = regex::bytes::RegexSetBuilder::new(patterns).unicode(false).build().unwrap();
        let (ours, mut room) = (Patterns::new(patterns), Matches::default());
        let lines =
            "Test: 3 FAILED/Tests: 1 failed/12 error, No Space/3:4 x a bar/xfoo/x foofoo//-/X/1/a 12/=;/=3;/=2;/n";
        for line in lines.split('/') {
            let wanted: Vec<usize> = set.matches(line.as_bytes()).into_iter().collect();
            let found = ours.matches(line.as_bytes(), &mut room).iter().map(|number| usize::from(*number));
            assert_eq!(found.collect::<Vec<_>>(), wanted, "{line}");
        }
    }
}
