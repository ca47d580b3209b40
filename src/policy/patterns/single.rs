//! A pattern that is asked on its own, and the parts of a text that it finds.

use std::sync::OnceLock;

use regex::Regex;

use super::found::Found;
use super::gradual::Gradual;
use super::needs::Pieces;

/// A pattern that is compiled when a text comes that has what it needs, and in ASCII text without Unicode's tables, which
/// cost more than all the rest. What is found is the same.
#[derive(Debug)]
pub(crate) struct Single {
    pattern: &'static str,
    needs: OnceLock<Pieces>,
    ascii: Gradual,
    unicode: OnceLock<Option<Regex>>,
}

impl Single {
    pub(crate) const fn new(pattern: &'static str) -> Self {
        let ascii = Gradual::new("", pattern);
        Self {
            pattern,
            needs: OnceLock::new(),
            ascii,
            unicode: OnceLock::new(),
        }
    }

    /// The text with `to` in place of each match; `None` where nothing matches. A pattern that does not compile finds
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
        let captures = self.unicode()?.captures(text)?;
        Found::of(captures.len(), |group| {
            captures.get(group).map(|part| part.range())
        })
    }

    /// The first match in bytes of any kind, of which those beyond ASCII are no letters.
    pub(crate) fn first_in(&self, line: &[u8]) -> Option<Found> {
        self.may_match(line)
            .then(|| self.ascii.first(line))
            .flatten()
    }

    /// Every match in `text`.
    pub(crate) fn all(&self, text: &str) -> Vec<Found> {
        if text.is_ascii() {
            return if self.may_match(text.as_bytes()) {
                self.ascii.all(text.as_bytes())
            } else {
                Vec::new()
            };
        }
        let Some(regex) = self.unicode() else {
            return Vec::new();
        };
        let found = |captures: regex::Captures<'_>| {
            Found::of(captures.len(), |group| {
                captures.get(group).map(|part| part.range())
            })
        };
        regex.captures_iter(text).filter_map(found).collect()
    }

    /// Whether the pattern is to be asked: once it is compiled, it is faster than a look at what it needs.
    fn may_match(&self, text: &[u8]) -> bool {
        let needs = || {
            let mut needs = Pieces::default();
            needs.read(0, self.pattern);
            needs
        };
        self.ascii.is_compiled() || self.needs.get_or_init(needs).may_match(text)
    }

    fn unicode(&self) -> Option<&Regex> {
        self.unicode
            .get_or_init(|| Regex::new(self.pattern).ok())
            .as_ref()
    }

    /// Whether the pattern compiles both ways.
    #[cfg(test)]
    pub(crate) fn compiles(&self) -> bool {
        self.ascii.compiles() && self.unicode().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::gradual::FEW_BYTES;
    use super::*;

    #[test]
    fn every_way_finds_the_same() {
        let pattern = Single::new(r"(?i)\b(key=)\w+(;)?");
        let long = "x ".repeat(FEW_BYTES);
        for (text, expected) in [
            ("a key=b; KEY=c d", Some("a key=[;] KEY=[] d")),
            ("\u{e4} key=b\u{fc}; x", Some("\u{e4} key=[;] x")),
            (&format!("{long}KEY=c d"), Some(&format!("{long}KEY=[] d"))),
            ("nothing", None),
            ("n\u{f6}", None),
        ] {
            let replaced = pattern.replace(text, |found| {
                let part = |group: usize| found.group(group).map_or("", |range| &text[range]);
                format!("{}[{}]", part(1), part(2))
            });
            assert_eq!(replaced.as_deref(), expected);
        }
    }
}
