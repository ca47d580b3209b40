//! A pattern that costs little until it is asked much.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use regex::bytes::{Regex, RegexBuilder};
use regex_automata::meta;
use regex_automata::util::syntax;

/// After how many bytes of text a pattern is made fast. Making it fast costs about as much as searching so many slowly.
pub(super) const FEW_BYTES: usize = 4 << 10;

/// A pattern over bytes, without Unicode. Most patterns are asked about a line or two of a log, where making the
/// tables for a fast search would take most of the time.
#[derive(Debug)]
pub(super) struct Gradual {
    flags: String,
    pattern: &'static str,
    searched: AtomicUsize,
    slow: OnceLock<Option<meta::Regex>>,
    fast: OnceLock<Option<Regex>>,
}

impl Gradual {
    /// The pattern with flags before it.
    pub(super) fn new(flags: String, pattern: &'static str) -> Self {
        Self { flags, pattern, searched: AtomicUsize::new(0), slow: OnceLock::new(), fast: OnceLock::new() }
    }

    /// A pattern that does not compile is silent; tests compile them all.
    pub(super) fn is_match(&self, text: &[u8]) -> bool {
        // A count that is a little off does no harm.
        let searched = self.searched.load(Ordering::Relaxed);
        if searched < FEW_BYTES {
            self.searched.store(searched + text.len(), Ordering::Relaxed);
            self.slow().is_some_and(|regex| regex.is_match(text))
        } else {
            self.fast().is_some_and(|regex| regex.is_match(text))
        }
    }

    fn slow(&self) -> Option<&meta::Regex> {
        self.slow.get_or_init(|| slow(&self.text())).as_ref()
    }

    fn fast(&self) -> Option<&Regex> {
        self.fast.get_or_init(|| RegexBuilder::new(&self.text()).unicode(false).build().ok()).as_ref()
    }

    fn text(&self) -> String {
        format!("{}{}", self.flags, self.pattern)
    }
}

/// Compiles a pattern for few bytes: at once, and without what makes it fast.
pub(super) fn slow(pattern: &str) -> Option<meta::Regex> {
    let config = meta::Config::new().auto_prefilter(false).hybrid(false).dfa(false).onepass(false).utf8_empty(false);
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    meta::Builder::new().configure(config).syntax(syntax).build(pattern).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_and_fast_agree() {
        let pattern = Gradual::new("(?i)".to_owned(), r"^a+b\b|\xE2\x9C\x96$");
        let long = vec![b'x'; FEW_BYTES];
        for _ in 0..3 {
            assert!(pattern.is_match(b"AAB c"));
            assert!(pattern.is_match("x \u{2716}".as_bytes()));
            assert!(!pattern.is_match(b"aabc"));
            assert!(!pattern.is_match(b"\xff\xfe"));
            assert!(!pattern.is_match(&long));
        }
        assert!(pattern.fast.get().is_some(), "it was made fast");
    }
}
