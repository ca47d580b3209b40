//! Compares what [`Patterns`] match with what the regular expressions themselves match, and makes the table of literals.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use memchr::memmem;
use proptest::strategy::{Strategy, ValueTree};
use proptest::string::bytes_regex_parsed;
use proptest::test_runner::TestRunner;
use regex::bytes::{RegexSet, RegexSetBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{Extractor, Literal};
use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, HirKind, Look};

use super::{Patterns, SEPARATOR, Single, WORD_START, checksum};
use crate::policy::{classify, hook, secrets};

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
    assert_eq!(ours.is_match(text), expected, "{pattern}: {shown:?}");
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
fn parse(pattern: &str) -> Hir {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    parser.parse(pattern).expect("a pattern that compiles")
}

/// The same with other leaves, and without groups.
fn with_leaves(hir: &Hir, leaf: &impl Fn(&Hir) -> Hir) -> Hir {
    let each = |parts: &[Hir]| parts.iter().map(|part| with_leaves(part, leaf)).collect();
    match hir.kind() {
        HirKind::Concat(parts) => Hir::concat(each(parts)),
        HirKind::Alternation(parts) => Hir::alternation(each(parts)),
        HirKind::Repetition(part) => Hir::repetition(part.with(with_leaves(&part.sub, leaf))),
        HirKind::Capture(group) => with_leaves(&group.sub, leaf),
        _ => leaf(hir),
    }
}

const REFRESH: &str = "RECOVER_TEST_REFRESH=1 cargo test --lib the_table_is_up_to_date";

/// Shorter literals are in most lines.
const MIN_LENGTH: usize = 2;
/// Longer ones are cut: they make the table large, and are hardly rarer.
const MAX_LENGTH: usize = 12;
/// The most literals that a part without alternatives is written out as.
const MAX_EXACT: usize = 8;
/// The most literals of a pattern.
const MAX_LITERALS: usize = 64;
/// What many lines of a log contain.
const COMMON: &str =
    " error: failed failure code status test file not found could not cannot line http";

/// A word's boundary, until the literals are known: [`WORD_START`].
const BOUNDARY: u8 = 8;

type Literals = BTreeSet<Vec<u8>>;

/// Literals in lower case of which every match contains one, letter case aside: those that the fewest lines contain.
fn required(pattern: &str) -> Option<Literals> {
    let folded = with_leaves(&parse(pattern), &|leaf| match leaf.kind() {
        HirKind::Literal(text) => Hir::literal(text.0.to_ascii_lowercase()),
        HirKind::Class(Class::Bytes(class)) => {
            let bytes = class.iter().flat_map(|range| range.start()..=range.end());
            let bytes = bytes.map(|byte| byte.to_ascii_lowercase());
            let ranges = bytes.map(|byte| ClassBytesRange::new(byte, byte));
            Hir::class(Class::Bytes(ClassBytes::new(ranges)))
        }
        HirKind::Look(Look::WordAscii | Look::WordStartAscii) => Hir::literal([BOUNDARY]),
        HirKind::Look(_) => Hir::empty(),
        _ => leaf.clone(),
    });
    required_of(&folded)
}

fn required_of(hir: &Hir) -> Option<Literals> {
    let choices = match hir.kind() {
        HirKind::Concat(parts) => {
            let ends = (0..parts.len()).map(|start| Hir::concat(parts[start..].to_vec()));
            let ends = ends.map(|end| prefixes(&end));
            let each = (0..parts.len()).map(|at| match parts[at].kind() {
                HirKind::Alternation(inner) => alternatives(parts[..at].last(), inner),
                _ => required_of(&parts[at]),
            });
            each.chain(ends).collect()
        }
        HirKind::Alternation(parts) => vec![alternatives(None, parts)],
        HirKind::Repetition(repeated) if repeated.min > 0 => {
            vec![required_of(&repeated.sub), prefixes(hir)]
        }
        _ => vec![prefixes(hir)],
    };
    let choices = choices.into_iter().flatten();
    choices.min_by(|one, two| frequency(one).total_cmp(&frequency(two)))
}

/// What each of the alternatives requires, after a boundary where `before` ends with one.
fn alternatives(before: Option<&Hir>, parts: &[Hir]) -> Option<Literals> {
    let is_after_boundary = before.is_some_and(|before| match before.kind() {
        HirKind::Literal(text) => text.0.ends_with(&[BOUNDARY]),
        _ => false,
    });
    let of = |part: &Hir| {
        let boundary = is_after_boundary.then(|| Hir::literal([BOUNDARY]));
        let whole = boundary.into_iter().chain([part.clone()]).collect();
        required_of(&Hir::concat(whole))
    };
    let each: Option<Vec<Literals>> = parts.iter().map(of).collect();
    each.and_then(|each| usable(each.iter().flatten().map(Vec::as_slice)))
}

/// What every match begins with one of.
fn prefixes(hir: &Hir) -> Option<Literals> {
    let mut extractor = Extractor::new();
    extractor.limit_class(MAX_EXACT).limit_total(MAX_EXACT);
    let found = extractor.extract(hir);
    usable(found.literals()?.iter().map(Literal::as_bytes))
}

/// The literals, cut, and without those that contain another one; `None` where one would be too short or is no text of one line,
/// or where they are too many.
fn usable<'a>(literals: impl Iterator<Item = &'a [u8]>) -> Option<Literals> {
    let cut = |literal: &'a [u8]| {
        let text = std::str::from_utf8(literal).ok()?;
        if text.contains(['\n', '\r', SEPARATOR]) {
            return None;
        }
        let whole = text.replace(WORD_START, "");
        let ends = whole.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = ends.take_while(|end| *end <= MAX_LENGTH).last()?;
        // Before what is no word, a boundary is where one ends.
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start = WORD_START.to_string();
        let start = if text.starts_with(WORD_START) && whole.starts_with(is_word) {
            start.as_str()
        } else {
            ""
        };
        (end >= MIN_LENGTH).then(|| [start, &whole[..end]].concat().into_bytes())
    };
    let all: Literals = literals.map(cut).collect::<Option<_>>()?;
    let mut least = all.clone();
    least.retain(|literal| {
        let mut others = all.iter().filter(|other| *other != literal);
        !others.any(|other| memmem::find(literal, other).is_some())
    });
    (1..=MAX_LITERALS).contains(&least.len()).then_some(least)
}

/// How many lines contain one of them, as a guess.
fn frequency(literals: &Literals) -> f64 {
    let each = literals.iter().map(|literal| {
        let text = literal.strip_prefix(&[BOUNDARY]).unwrap_or(literal);
        let is_common = memmem::find(COMMON.as_bytes(), text).is_some();
        0.3_f64.powf(literal.len() as f64) * if is_common { 10.0 } else { 1.0 }
    });
    each.sum()
}

/// The patterns of all [`Patterns`].
fn all_patterns() -> Vec<&'static str> {
    [
        classify::patterns(),
        hook::patterns(),
        secrets::PATTERNS.to_vec(),
    ]
    .concat()
}

/// The table as it should be, one line for each pattern.
fn table() -> String {
    let mut patterns = BTreeMap::new();
    for pattern in all_patterns() {
        let same = *patterns.entry(checksum(pattern)).or_insert(pattern) == pattern;
        assert!(same, "the checksum of another pattern: {pattern}");
    }
    let mut table = String::new();
    for (checksum, pattern) in patterns {
        let Some(literals) = required(pattern) else {
            continue;
        };
        table.push_str(&checksum);
        for literal in literals {
            table.push(SEPARATOR);
            table.push_str(std::str::from_utf8(&literal).expect("text"));
        }
        table.push('\n');
    }
    table
}

#[test]
fn the_table_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/policy/patterns/literals.txt");
    let table = table();
    if std::env::var_os("RECOVER_TEST_REFRESH").is_some() {
        std::fs::write(path, table).expect("written");
        return;
    }
    let found = std::fs::read_to_string(path).expect("the table");
    assert!(
        found == table,
        "the table of literals is out of date: {REFRESH}"
    );
}

#[test]
fn literals_are_what_every_match_contains() {
    for (pattern, expected) in [
        (r"^Tests?: .*failed$", &["tests: ", "test: "][..]),
        (r"\b[Nn]o space(?: left)?\b", &["\u{8}no space"]),
        (
            r"\b(?:S0|S1|S2|S3|S4|S5|S6|S7|S8|S9)",
            &[
                "\u{8}s0", "\u{8}s1", "\u{8}s2", "\u{8}s3", "\u{8}s4", "\u{8}s5", "\u{8}s6",
                "\u{8}s7", "\u{8}s8", "\u{8}s9",
            ],
        ),
        (r"\b(?:x?sk_|-one)", &["\u{8}xsk_", "\u{8}sk_", "-one"]),
        (r"(?i)(?:one|two) [(]", &["one (", "two ("]),
        (r"(?:ab|cd)+x{0,2}", &["ab", "cd"]),
        (
            r"^_{3,} x|^[-+]{3} ",
            &[
                "___", "+++ ", "++- ", "+-+ ", "+-- ", "-++ ", "-+- ", "--+ ", "--- ",
            ],
        ),
        (r"\xE2\x9C[\x93\x94] ", &["\u{2713} ", "\u{2714} "]),
        (r"a[0-9]b", &[]),
        (r"abc|[a-z]d", &[]),
        (r"(?:abc)?d|\xE2\x9C", &[]),
        (r"(?:error|error in) \w", &["error "]),
        (r"error .*unlikely", &["unlikely"]),
    ] {
        let expected = expected.iter().map(|text| text.as_bytes().to_vec());
        assert_eq!(
            required(pattern).unwrap_or_default(),
            expected.collect(),
            "{pattern}"
        );
    }
}

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
        assert_eq!(patterns.matches(line), expected);
        assert_eq!(patterns.is_match(line), !expected.is_empty());
        assert_eq!(patterns.possible(line), possible);
    }
}

#[test]
fn ascii_and_other_text_match_the_same() {
    let pattern = Single::new(r"(?i)\b(key=)\w+(;)?");
    for (text, expected) in [
        ("a key=b; KEY=c d", Some("a key=[;] KEY=[] d")),
        ("\u{e4} key=b\u{fc}; x", Some("\u{e4} key=[;] x")),
        ("nothing", None),
        ("n\u{f6}", None),
    ] {
        let replaced = pattern.replace(text, |found| {
            let part = |group: usize| found.group(group).map_or("", |range| &text[range]);
            format!("{}[{}]", part(1), part(2))
        });
        assert_eq!(replaced.as_deref(), expected);
        assert_eq!(pattern.first(text), pattern.all(text).first().cloned());
    }
}
