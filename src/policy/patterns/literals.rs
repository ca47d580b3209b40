//! The table of the patterns' literals, `literals.txt`. Reading the patterns at every start would take too long.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Between literals.
const SEPARATOR: char = '\u{1f}';

/// By the pattern's checksum: literals in lower case, with [`SEPARATOR`]s between, of which every text that the pattern matches
/// contains one, letter case aside; after a [`WORD_START`](super::WORD_START) where a word begins.
static TABLE: LazyLock<HashMap<&str, &str>> = LazyLock::new(|| {
    let lines = include_str!("literals.txt").lines();
    lines
        .filter_map(|line| line.split_once(SEPARATOR))
        .collect()
});

/// The literals of a pattern; none where the table has none.
pub(super) fn of(pattern: &str) -> impl Iterator<Item = &'static str> {
    let literals = TABLE.get(checksum(pattern).as_str());
    literals
        .into_iter()
        .flat_map(|literals| literals.split(SEPARATOR))
}

fn checksum(pattern: &str) -> String {
    format!("{:08x}", crc32fast::hash(pattern.as_bytes()))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;

    use memchr::memmem;
    use regex_syntax::hir::literal::{Extractor, Literal};
    use regex_syntax::hir::{Class, ClassBytes, ClassBytesRange, Hir, HirKind, Look};

    use super::super::WORD_START;
    use super::super::oracle::{parse, with_leaves};
    use super::{SEPARATOR, checksum};
    use crate::policy::{check_summary, classify, pre_tool, redact};

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

    /// The patterns of all [`Patterns`](super::super::Patterns).
    fn all_patterns() -> Vec<&'static str> {
        [
            classify::patterns(),
            check_summary::patterns(),
            pre_tool::patterns(),
            redact::PATTERNS.to_vec(),
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
}
