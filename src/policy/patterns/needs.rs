//! Required literals of a regular expression, used as a prefilter.
//!
//! A small reader of the patterns' syntax, wrong only to the safe side: what it does not understand needs nothing, so
//! the pattern itself is asked. What it reads holds for patterns that are compiled without Unicode, and for all in ASCII
//! text.

mod literal;
mod reader;

use std::ops::Range;

use super::bytes::{Bytes, Required};
use super::finder;

use literal::Literal;
use reader::{Need, Reader};

/// Patterns as they are read: their alternatives, and what these need.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pieces: Vec<Piece>,
    strings: Vec<Literal>,
}

/// One alternative of a pattern.
#[derive(Debug)]
pub(super) struct Piece {
    /// The number of the pattern.
    pub owner: u16,
    /// Flags that were set before it.
    pub flags: &'static str,
    /// The alternative, a pattern of its own.
    pub pattern: &'static str,
    /// Bytes that a text that matches has.
    pub bytes: Required,
    /// Strings of which a text that matches contains one (letter case aside); none: no such strings.
    strings: Range<usize>,
}

/// Strings that are shorter are found everywhere.
const MIN_NEED: usize = finder::MIN_LENGTH;
/// More strings than this are no help.
const MAX_NEEDS: usize = 128;

impl Pieces {
    /// Reads the alternatives of the pattern with the number `owner`.
    pub(super) fn read(&mut self, owner: u16, pattern: &'static str) {
        let (first, first_string) = (self.pieces.len(), self.strings.len());
        let mut reader = Reader {
            pattern,
            at: 0,
            lost: false,
            boundary: false,
            strings: &mut self.strings,
        };
        let mut flags = "";
        loop {
            reader.boundary = false;
            let (start, before, first_string) = (reader.at, flags, reader.strings.len());
            let Need { bytes, .. } = reader.concatenation(&mut flags);
            if !is_usable(&reader.strings[first_string..]) {
                reader.strings.truncate(first_string);
            }
            let strings = first_string..reader.strings.len();
            self.pieces.push(Piece {
                owner,
                flags: before,
                pattern: &pattern[start..reader.at],
                bytes,
                strings,
            });
            if !reader.eat(b'|') {
                break;
            }
        }
        if reader.lost || reader.at < pattern.len() {
            self.strings.truncate(first_string);
            self.pieces.truncate(first);
            self.pieces.push(Piece {
                owner,
                flags: "",
                pattern,
                bytes: Required::default(),
                strings: 0..0,
            });
        }
    }

    /// All alternatives, in their order.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = &Piece> {
        self.pieces.iter()
    }

    /// They alone.
    pub(super) fn into_pieces(self) -> Vec<Piece> {
        self.pieces
    }

    /// The strings of one of them.
    pub(super) fn strings(&self, piece: &Piece) -> &[Literal] {
        &self.strings[piece.strings.clone()]
    }

    /// Whether any alternative may match `text`.
    pub(super) fn may_match(&self, text: &[u8]) -> bool {
        let seen = Bytes::in_text(text);
        let contains = |string: &Literal| {
            text.windows(string.len())
                .any(|part| part.eq_ignore_ascii_case(string))
        };
        self.iter().any(|piece| {
            let strings = self.strings(piece);
            piece.bytes.are_in(seen) && (strings.is_empty() || strings.iter().any(contains))
        })
    }
}

fn is_usable(strings: &[Literal]) -> bool {
    strings.len() <= MAX_NEEDS && strings.iter().all(|string| string.len() >= MIN_NEED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &'static str) -> Vec<(String, Vec<String>)> {
        let text = |need: &Literal| String::from_utf8(need.to_vec()).unwrap();
        let whole = |piece: &Piece| format!("{}{}", piece.flags, piece.pattern);
        let mut pieces = Pieces::default();
        pieces.read(0, pattern);
        pieces
            .iter()
            .map(|piece| {
                (
                    whole(piece),
                    pieces.strings(piece).iter().map(text).collect(),
                )
            })
            .collect()
    }

    #[test]
    fn alternatives_are_told_apart_with_what_they_need() {
        let expected = [
            ("^Tests?: .*failed$", vec!["failed"]),
            (r"\b[Nn]o space(?: left)?", vec!["no space"]),
            ("(?:^|x)a", vec![]),
            ("(?:one|two) [(]", vec!["one", "two"]),
            (r"[|)\]]error\x22", vec!["error\""]),
        ];
        let pattern =
            r"^Tests?: .*failed$|\b[Nn]o space(?: left)?|(?:^|x)a|(?:one|two) [(]|[|)\]]error\x22";
        let expected: Vec<_> = expected
            .iter()
            .map(|(pattern, needs)| {
                (
                    (*pattern).to_owned(),
                    needs.iter().map(ToString::to_string).collect::<Vec<_>>(),
                )
            })
            .collect();
        assert_eq!(read(pattern), expected);
    }

    #[test]
    fn what_a_word_begins_with_is_told_apart() {
        let begins = |pattern: &'static str| {
            let mut pieces = Pieces::default();
            pieces.read(0, pattern);
            pieces
                .iter()
                .flat_map(|piece| pieces.strings(piece).to_vec())
                .map(|need| need.begins_word)
                .collect::<Vec<_>>()
        };
        for pattern in [
            r"\bsk_[a-z]",
            r"(?i)\bsk-",
            r"\b(?:sk_|hf_|(?:one|two){2})x",
            r"\b(?:abc)d",
            r"\b^(?:abc|def)",
            r"(\babc)",
        ] {
            assert!(begins(pattern).iter().all(|begins| *begins), "{pattern}");
        }
        for pattern in [
            r"sk_",
            r"\bx?sk_",
            r"\b[a-z]sk_",
            r"\b-abc",
            r"\Bsk_",
            r"\b{end}abc",
            r"(?:\bx|abc)def",
            r"x\b.abc",
        ] {
            assert!(begins(pattern).iter().all(|begins| !*begins), "{pattern}");
        }
        assert_eq!(begins(r"\babc|def"), [true, false]);
        assert_eq!(begins(r"\b(?:abc|.def|ghi)"), [true, false, true]);
    }

    #[test]
    fn flags_hold_for_the_alternatives_that_follow() {
        let read = read("abc|(?i)def|ghi");
        let patterns: Vec<&str> = read.iter().map(|(pattern, _)| pattern.as_str()).collect();
        assert_eq!(patterns, ["abc", "(?i)def", "(?i)ghi"]);
    }

    /// Whether the pattern is asked about the text.
    fn is_asked(pattern: &'static str, text: &str) -> bool {
        let mut pieces = Pieces::default();
        pieces.read(0, pattern);
        pieces.may_match(text.as_bytes())
    }

    #[test]
    fn what_cannot_match_is_not_asked() {
        for (pattern, text) in [
            (r"^\s*(?:\^C\s*)+$", "again"),
            (r"\bE(?:IO|FBIG)\b: ", "again: no"),
            (r"^[A-Z]+\d{1,3}", "again"),
            (r"^(?:a|b[0-9])x?$", "cd"),
            (r"[-+]{3} ", "a b"),
            (r"^\s*(?:\xE2\x9C\x97|\xC3\x97) \S", "it is so"),
            ("\u{2717} ", "it is so"),
            (r"(?:^|[;/])(?:timeout|ulimit) (\d+)", "; time 3 limit"),
            (r" \([a-z]+\)$", "again"),
            (r"\S\.[a-z]", "again"),
            (r"\s", "again"),
        ] {
            assert!(!is_asked(pattern, text), "{pattern}: {text}");
        }
    }

    #[test]
    fn what_matches_is_asked_however_it_is_written() {
        for (pattern, text) in [
            (r"[[:alpha:]_]x", "ax"),
            (r"[^]b]x", "ax"),
            (r"[]b]x", "]x"),
            (r"[a[b]c]x", "cx"),
            (r"[a-z&&[^b]]x", "ax"),
            (r"[a-c--b]x", "ax"),
            (r"[+-9]", ","),
            (r"[!-~]", "q"),
            (r"[a-]b", "-b"),
            (r"[\x20-\x2f]", "#"),
            (r"[\w.-]", "-"),
            (r"[\n\x41]", "A"),
            (r"\x{41}bc", "Abc"),
            (r"\<abc\>", "abc"),
            (r"\b{start}abc", "abc"),
            (r"(?<name>abc)d", "abcd"),
            (r"(?P<name>abc|d)e", "de"),
            (r"(P<a|b)c", "bc"),
            (r"a{2}?b", "aab"),
            (r"a{2}{0}b", "b"),
            (r"a+?b", "ab"),
            (r"a+*b", "b"),
            (r"(?:abc)??d", "d"),
            (r"a{ 0}b", "b"),
            (r"(?x) abc [1-2] # 3", "abc1"),
            (r"(?x: a b)c", "abc"),
            (r"(?i)ABC|\x4B", "k"),
            (r"(?i:STRASSE)[D-E]", "strasseE"),
            (r"(?:|abc)d", "d"),
            (r"(?:abc|)d", "d"),
            (r"\+\/\-\x7e", "+/-~"),
            (r"\v\f\r\a", "\u{b}\u{c}\r\u{7}"),
            ("\u{2717}?a\u{d7}*b", "ab"),
        ] {
            let real = regex::bytes::RegexBuilder::new(pattern)
                .unicode(false)
                .build()
                .unwrap();
            assert!(real.is_match(text.as_bytes()), "{pattern}: {text}");
            assert!(is_asked(pattern, text), "{pattern}: {text}");
        }
        for (pattern, text) in [
            (r"\pL1", "a1"),
            (r"\p{Lu}+b", "Ab"),
            (r"(?u)\d\w\s", "1a "),
            (r"\u{61}b", "ab"),
        ] {
            assert!(
                regex::Regex::new(pattern).unwrap().is_match(text),
                "{pattern}: {text}"
            );
            assert!(is_asked(pattern, text), "{pattern}: {text}");
        }
    }
}
