//! Tables of patterns held against the regular expressions themselves.

use proptest::strategy::{Strategy, ValueTree};
use proptest::string::bytes_regex;
use proptest::test_runner::TestRunner;
use regex::bytes::{RegexSet, RegexSetBuilder};

use super::{Matches, Patterns, Single};

/// How many texts are made for each pattern.
const TEXTS: usize = 24;
/// How long a text is at most: what is needed must not be there by chance.
const MAX_BYTES: usize = 120;

/// Nothing that the patterns match goes unnoticed because it seems not to have what they need: in texts made after the
/// patterns, whole, cut, and in other letter case.
pub(crate) fn nothing_is_missed(patterns: &[&'static str]) {
    let mut runner = TestRunner::deterministic();
    let mut matched = 0;
    for pattern in patterns {
        let real = RegexSetBuilder::new([pattern])
            .unicode(false)
            .build()
            .expect("a pattern that compiles");
        let ours = Patterns::new([*pattern]);
        // One of the whole alone: where it is not asked, its alternatives are.
        for text in texts(pattern, &mut runner) {
            matched += usize::from(check(&real, &ours, pattern, &text));
        }
    }
    assert!(matched > patterns.len(), "{matched} of the texts match");
}

fn check(real: &RegexSet, ours: &Patterns, pattern: &'static str, text: &[u8]) -> bool {
    let expected = real.is_match(text);
    let shown = String::from_utf8_lossy(text);
    assert_eq!(
        ours.is_match(text, &mut Matches::default()),
        expected,
        "{pattern}: {shown:?}"
    );
    assert!(
        !expected || ours.possible(text) == [0],
        "{pattern}: {shown:?}"
    );
    if expected && text.len() < 8 {
        assert!(
            Single::new(pattern).first_in(text).is_some(),
            "{pattern}: {shown:?}"
        );
    }
    expected
}

fn texts(pattern: &str, runner: &mut TestRunner) -> Vec<Vec<u8>> {
    let mut texts = vec![
        Vec::new(),
        b" ".to_vec(),
        b"again".to_vec(),
        b"x: 1".to_vec(),
    ];
    let made = bytes_regex(&format!("(?s-u:{})", without_places(pattern)))
        .expect("a pattern that texts are made after");
    for _ in 0..TEXTS {
        let mut text = made.new_tree(runner).expect("a text").current();
        text.truncate(MAX_BYTES);
        let at = (0..=text.len())
            .new_tree(runner)
            .expect("a place")
            .current();
        texts.push(text.to_ascii_uppercase());
        texts.push(text.to_ascii_lowercase());
        texts.push(text[at..].to_vec());
        texts.push(text[..at].to_vec());
        texts.push(text);
    }
    texts
}

/// A pattern without what is about a place, which no text can be made after.
fn without_places(pattern: &str) -> String {
    let (mut left, mut inside, mut escaped) = (String::new(), false, false);
    for c in pattern.chars() {
        if escaped {
            escaped = false;
            if !inside && "bBAz".contains(c) {
                left.pop();
                continue;
            }
        } else if !inside && matches!(c, '^' | '$') {
            continue;
        } else {
            escaped = c == '\\';
            inside = c == '[' || inside && c != ']';
        }
        left.push(c);
    }
    left
}
