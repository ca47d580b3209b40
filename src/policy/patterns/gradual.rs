//! A regular expression that is compiled in stages, each only when a text needs it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use regex::bytes::{Captures, Regex, RegexBuilder};
use regex_automata::meta;
use regex_automata::util::{captures, syntax};

use super::found::Found;

/// After how many bytes of text a pattern is made fast. Making it fast costs about as much as searching so many slowly.
pub(super) const FEW_BYTES: usize = 4 << 10;

/// A pattern over bytes, without Unicode. Most patterns are asked about a line or two of a log, where making the
/// tables for a fast search would take most of the time.
#[derive(Debug)]
pub(super) struct Gradual {
    flags: &'static str,
    pattern: &'static str,
    /// Made when it is first asked: most patterns never are.
    compiled: OnceLock<Box<Compiled>>,
}

#[derive(Debug, Default)]
struct Compiled {
    searched: AtomicUsize,
    slow: OnceLock<Option<meta::Regex>>,
    fast: OnceLock<Option<Regex>>,
}

/// The way that costs least.
enum Way<'a> {
    Slow(&'a meta::Regex),
    Fast(&'a Regex),
}

impl Gradual {
    /// The pattern with flags before it.
    pub(super) const fn new(flags: &'static str, pattern: &'static str) -> Self {
        Self {
            flags,
            pattern,
            compiled: OnceLock::new(),
        }
    }

    /// A pattern that does not compile is silent; tests compile them all.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        self.way(text).is_some_and(|way| match way {
            Way::Slow(regex) => regex.is_match(text),
            Way::Fast(regex) => regex.is_match(text),
        })
    }

    /// The first match.
    pub(super) fn first(&self, text: &[u8]) -> Option<Found> {
        match self.way(text)? {
            Way::Slow(regex) => {
                let mut captures = regex.create_captures();
                regex.captures(text, &mut captures);
                of_slow(&captures)
            }
            Way::Fast(regex) => of_fast(&regex.captures(text)?),
        }
    }

    /// Every match.
    pub(super) fn all(&self, text: &[u8]) -> Vec<Found> {
        match self.way(text) {
            Some(Way::Slow(regex)) => regex
                .captures_iter(text)
                .filter_map(|captures| of_slow(&captures))
                .collect(),
            Some(Way::Fast(regex)) => regex
                .captures_iter(text)
                .filter_map(|captures| of_fast(&captures))
                .collect(),
            None => Vec::new(),
        }
    }

    /// Whether it was asked before.
    pub(super) fn is_compiled(&self) -> bool {
        self.compiled.get().is_some()
    }

    fn way(&self, text: &[u8]) -> Option<Way<'_>> {
        let compiled = self.compiled.get_or_init(Box::default);
        // A count that is a little off does no harm.
        let before = compiled.searched.load(Ordering::Relaxed);
        let searched = before.saturating_add(text.len());
        if before <= FEW_BYTES {
            compiled.searched.store(searched, Ordering::Relaxed);
        }
        if searched <= FEW_BYTES {
            compiled
                .slow
                .get_or_init(|| slow(&self.text()))
                .as_ref()
                .map(Way::Slow)
        } else {
            compiled
                .fast
                .get_or_init(|| fast(&self.text()))
                .as_ref()
                .map(Way::Fast)
        }
    }

    /// With its flags.
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.flags, self.pattern)
    }

    /// Whether the pattern compiles.
    #[cfg(test)]
    pub(super) fn compiles(&self) -> bool {
        slow(&self.text()).is_some() && fast(&self.text()).is_some()
    }
}

fn of_slow(captures: &captures::Captures) -> Option<Found> {
    Found::of(captures.group_len(), |group| {
        captures.get_group(group).map(|span| span.range())
    })
}

fn of_fast(captures: &Captures<'_>) -> Option<Found> {
    Found::of(captures.len(), |group| {
        captures.get(group).map(|part| part.range())
    })
}

/// Compiles a pattern for few bytes: at once, and without what makes it fast.
fn slow(pattern: &str) -> Option<meta::Regex> {
    let config = meta::Config::new()
        .auto_prefilter(false)
        .hybrid(false)
        .dfa(false)
        .onepass(false)
        .utf8_empty(false);
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    meta::Builder::new()
        .configure(config)
        .syntax(syntax)
        .build(pattern)
        .ok()
}

/// Compiles a pattern for many.
pub(super) fn fast(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).unicode(false).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_and_fast_agree() {
        let pattern = Gradual::new("(?i)", r"^a+b\b|\xE2\x9C\x96$");
        let long = vec![b'x'; FEW_BYTES];
        for _ in 0..3 {
            assert!(pattern.is_match(b"AAB c"));
            assert!(pattern.is_match("x \u{2716}".as_bytes()));
            assert!(!pattern.is_match(b"aabc"));
            assert!(!pattern.is_match(b"\xff\xfe"));
            assert!(!pattern.is_match(&long));
        }
        assert!(
            matches!(pattern.way(b""), Some(Way::Fast(_))),
            "it was made fast"
        );
    }
}
