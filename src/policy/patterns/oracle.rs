//! Compares what [`Patterns`] match with what the regular expressions themselves match.

use proptest::strategy::{Strategy, ValueTree};
use proptest::string::bytes_regex_parsed;
use proptest::test_runner::TestRunner;
use regex::bytes::{RegexSet, RegexSetBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Hir, HirKind};

use super::{Matches, Patterns};

/// How many texts are made for each pattern.
const TEXTS: usize = 24;
/// How long a text is at most: a literal must not be in it by chance.
const MAX_BYTES: usize = 120;

/// No pattern misses a match for want of a literal: in texts made after the patterns, whole, cut, and in other letter
/// case.
pub(crate) fn nothing_is_missed(patterns: &[&'static str]) {
    let mut runner = TestRunner::deterministic();
    let mut matched = 0;
    for pattern in patterns {
        let real = RegexSetBuilder::new([pattern])
            .unicode(false)
            .build()
            .expect("a pattern that compiles");
        let ours = Patterns::new([*pattern]);
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
    expected
}

fn texts(pattern: &str, runner: &mut TestRunner) -> Vec<Vec<u8>> {
    let mut texts = vec![
        Vec::new(),
        b" ".to_vec(),
        b"again".to_vec(),
        b"x: 1".to_vec(),
    ];
    let without_places = with_leaves(&parse(pattern), &|leaf| match leaf.kind() {
        HirKind::Look(_) => Hir::empty(),
        _ => leaf.clone(),
    });
    let made = bytes_regex_parsed(&without_places).expect("a pattern that texts are made after");
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

/// The pattern as it is compiled.
pub(super) fn parse(pattern: &str) -> Hir {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    parser.parse(pattern).expect("a pattern that compiles")
}

/// The same with other leaves, and without groups.
pub(super) fn with_leaves(hir: &Hir, leaf: &impl Fn(&Hir) -> Hir) -> Hir {
    let each = |parts: &[Hir]| parts.iter().map(|part| with_leaves(part, leaf)).collect();
    match hir.kind() {
        HirKind::Concat(parts) => Hir::concat(each(parts)),
        HirKind::Alternation(parts) => Hir::alternation(each(parts)),
        HirKind::Repetition(part) => Hir::repetition(part.with(with_leaves(&part.sub, leaf))),
        HirKind::Capture(group) => with_leaves(&group.sub, leaf),
        _ => leaf(hir),
    }
}
