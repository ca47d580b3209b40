//! What a text must contain for a pattern to match it.
//!
//! A small reader of the patterns' syntax, wrong only to the safe side: what it does not understand needs nothing, so
//! the pattern itself is asked. What it reads holds for patterns that are compiled without Unicode, and for all in ASCII
//! text.

use std::ops::{Deref, Range};

use super::bytes::{Bytes, Required};
use super::finder;

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
    pub flags: String,
    /// The alternative, a pattern of its own.
    pub pattern: &'static str,
    /// Bytes that a text that matches has.
    pub bytes: Required,
    /// Strings of which a text that matches contains one (letter case aside); none: no such strings.
    strings: Range<usize>,
}

/// The beginning of a string, in lower case: longer ones find no less, and cost more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Literal {
    bytes: [u8; finder::MAX_LENGTH],
    length: usize,
}

impl Literal {
    fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.length) {
            *place = byte;
            self.length += 1;
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.push(*byte);
        }
    }
}

impl Deref for Literal {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Strings that are shorter are found everywhere.
const MIN_NEED: usize = finder::MIN_LENGTH;
/// More strings than this are no help.
const MAX_NEEDS: usize = 48;

/// Letters, digits and `_`.
const WORD: Bytes = Bytes::all_of(b"abcdefghijklmnopqrstuvwxyz0123456789_");
const DIGITS: Bytes = Bytes::all_of(b"0123456789");
/// What `\s` is.
const SPACE: Bytes = Bytes::all_of(b"\t\n\x0b\x0c\r ");

impl Pieces {
    /// Reads the alternatives of the pattern with the number `owner`.
    pub(super) fn read(&mut self, owner: u16, pattern: &'static str) {
        let (first, first_string) = (self.pieces.len(), self.strings.len());
        let mut reader = Reader { bytes: pattern.as_bytes(), at: 0, lost: false, strings: &mut self.strings };
        let mut flags = String::new();
        loop {
            let (start, before, first_string) = (reader.at, flags.clone(), reader.strings.len());
            let Need { bytes, .. } = reader.concatenation(&mut flags);
            if !is_usable(&reader.strings[first_string..]) {
                reader.strings.truncate(first_string);
            }
            let strings = first_string..reader.strings.len();
            self.pieces.push(Piece { owner, flags: before, pattern: &pattern[start..reader.at], bytes, strings });
            if !reader.eat(b'|') {
                break;
            }
        }
        if reader.lost || reader.at < pattern.len() {
            self.strings.truncate(first_string);
            self.pieces.truncate(first);
            let (flags, bytes) = (String::new(), Required::default());
            self.pieces.push(Piece { owner, flags, pattern, bytes, strings: 0..0 });
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
        let contains = |string: &Literal| text.windows(string.len()).any(|part| part.eq_ignore_ascii_case(string));
        self.iter().any(|piece| {
            let strings = self.strings(piece);
            piece.bytes.are_in(seen) && (strings.is_empty() || strings.iter().any(contains))
        })
    }
}

fn is_usable(strings: &[Literal]) -> bool {
    strings.len() <= MAX_NEEDS && strings.iter().all(|string| string.len() >= MIN_NEED)
}

/// What a part of a pattern needs, beside the strings that its reading left: one of these is in what the part matches.
#[derive(Debug, Default)]
struct Need {
    /// The part is this very text.
    exact: Option<Literal>,
    bytes: Required,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Whether there was something that changes how all is read.
    lost: bool,
    /// What is needed, the strings of the part that is read last.
    strings: &'a mut Vec<Literal>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn skip_to(&mut self, ends: &[u8]) {
        while self.peek().is_some_and(|byte| !ends.contains(&byte)) {
            self.at += 1;
        }
    }

    /// Reads up to `|`, `)` or the end. Flags that are set on the way hold for the alternatives that follow.
    fn concatenation(&mut self, flags: &mut String) -> Need {
        let (mut run, mut all) = (Literal::default(), true);
        let mut bytes = Required::default();
        // The best strings so far are those from here on.
        let first = self.strings.len();
        while let Some(byte) = self.peek().filter(|byte| !matches!(byte, b'|' | b')')) {
            let next = self.strings.len();
            let atom = self.atom(byte, flags);
            let (at_least_once, once) = self.quantifier();
            match atom {
                Atom::Nothing => continue,
                Atom::Letter(byte) if at_least_once => {
                    bytes.add(byte);
                    run.push(byte);
                }
                Atom::Part(Need { exact: Some(text), bytes: part }) if at_least_once => {
                    bytes.add_part(&part);
                    run.extend(&text);
                    self.strings.truncate(next);
                }
                Atom::Letter(_) | Atom::Any => {
                    all = false;
                    self.end_run(&mut run, first);
                }
                Atom::Class(set) => {
                    all = false;
                    if at_least_once {
                        bytes.add_any(set);
                    }
                    self.end_run(&mut run, first);
                }
                Atom::Part(part) => {
                    all = false;
                    if at_least_once {
                        bytes.add_part(&part.bytes);
                    }
                    let known = run.len().max(shortest(&self.strings[first..next]));
                    if at_least_once && shortest(&self.strings[next..]) > known {
                        run = Literal::default();
                        self.strings.drain(first..next);
                    } else {
                        self.strings.truncate(next);
                        self.end_run(&mut run, first);
                    }
                }
            }
            // What comes again may come again before what follows.
            if !once {
                all = false;
                self.end_run(&mut run, first);
            }
        }
        let exact = all.then_some(run);
        self.end_run(&mut run, first);
        Need { exact, bytes }
    }

    /// Takes the run for the strings from `first` on, where it is longer.
    fn end_run(&mut self, run: &mut Literal, first: usize) {
        let run = std::mem::take(run);
        if run.len() > shortest(&self.strings[first..]) {
            self.strings.truncate(first);
            self.strings.push(run);
        }
    }

    fn atom(&mut self, byte: u8, flags: &mut String) -> Atom {
        self.at += 1;
        match byte {
            b'^' | b'$' => Atom::Nothing,
            b'(' => self.group(flags),
            b'[' => self.class(),
            b'.' => Atom::Any,
            b'\\' => self.escape(),
            _ => self.letter(byte),
        }
    }

    /// One character: a quantifier is about all its bytes.
    fn letter(&mut self, first: u8) -> Atom {
        if first < 0xc0 {
            return Atom::literal(first);
        }
        let start = self.at - 1;
        while self.peek().is_some_and(|byte| byte & 0xc0 == 0x80) {
            self.at += 1;
        }
        let mut text = Literal::default();
        text.extend(&self.bytes[start..self.at]);
        Atom::Part(Need { exact: Some(text), bytes: Required::each_of(&self.bytes[start..self.at]) })
    }

    fn escape(&mut self) -> Atom {
        let Some(byte) = self.peek() else { return Atom::Any };
        self.at += 1;
        match byte {
            b'b' | b'B' | b'A' | b'z' | b'<' | b'>' => {
                self.braces();
                Atom::Nothing
            }
            b'x' => self.hexadecimal().map_or(Atom::Any, Atom::literal),
            b'd' => Atom::Class(DIGITS),
            b'w' => Atom::Class(WORD),
            b's' => Atom::Class(SPACE),
            b'p' | b'P' | b'u' | b'U' if self.braces() => Atom::Any,
            b'p' | b'P' => {
                self.at += 1;
                Atom::Any
            }
            b'u' | b'U' => {
                self.lost = true;
                Atom::Any
            }
            _ => control(byte).map_or(Atom::Any, Atom::literal),
        }
    }

    /// What stands in braces behind an escape.
    fn braces(&mut self) -> bool {
        let found = self.eat(b'{');
        if found {
            self.skip_to(b"}");
            self.at += 1;
        }
        found
    }

    /// The two digits behind `\x`.
    fn hexadecimal(&mut self) -> Option<u8> {
        if self.braces() {
            return None;
        }
        let digits = self.bytes.get(self.at..self.at + 2).and_then(|digits| std::str::from_utf8(digits).ok());
        self.at += 2;
        u8::from_str_radix(digits?, 16).ok()
    }

    /// What is in brackets: known where these are characters and ranges of ASCII.
    fn class(&mut self) -> Atom {
        let mut known = !self.eat(b'^');
        let mut set = Bytes::default();
        let mut first = true;
        while let Some(byte) = self.peek().filter(|byte| first || *byte != b']') {
            first = false;
            self.at += 1;
            match byte {
                // Classes in classes.
                b'[' => {
                    self.class();
                    known = false;
                }
                b'\\' => match self.class_escape() {
                    Some(escaped) => set = set.or(escaped),
                    None => known = false,
                },
                b'&' | b'~' | b'-' if self.peek() == Some(byte) => known = false,
                0x80.. => known = false,
                _ => match self.range(byte) {
                    Some(range) => set = range.fold(set, |set, byte| set.or(Bytes::of(byte))),
                    None => known = false,
                },
            }
        }
        self.at += 1;
        match set.only() {
            _ if !known => Atom::Any,
            Some(byte) => Atom::Letter(byte),
            None => Atom::Class(set),
        }
    }

    /// What a backslash in a class stands for; not what begins a range.
    fn class_escape(&mut self) -> Option<Bytes> {
        let byte = self.peek()?;
        self.at += 1;
        let set = match byte {
            b'd' => DIGITS,
            b'w' => WORD,
            b's' => SPACE,
            b'x' => Bytes::of(self.hexadecimal()?),
            b'b' => return None,
            _ => Bytes::of(control(byte)?),
        };
        let is_range = self.peek() == Some(b'-') && self.bytes.get(self.at + 1) != Some(&b']');
        (!is_range).then_some(set)
    }

    /// The characters from `first` on, in a class: one, or a range of them.
    fn range(&mut self, first: u8) -> Option<Range<u8>> {
        let last = self.bytes.get(self.at + 1).copied().filter(|last| self.peek() == Some(b'-') && *last != b']');
        let Some(last) = last else { return Some(first..first + 1) };
        if !last.is_ascii_alphanumeric() {
            return None;
        }
        self.at += 2;
        Some(first..last + 1)
    }

    fn group(&mut self, flags: &mut String) -> Atom {
        if self.eat(b'?') {
            if self.bytes[self.at..].starts_with(b"P<") || self.peek() == Some(b'<') {
                self.skip_to(b">");
            } else {
                let start = self.at;
                self.skip_to(b":)");
                let set = String::from_utf8_lossy(&self.bytes[start..self.at]);
                // Spaces that do not count, and tables of Unicode.
                self.lost |= set.split('-').next().is_some_and(|set| set.contains(['x', 'u']));
                if self.eat(b')') {
                    flags.push_str("(?");
                    flags.push_str(&set);
                    flags.push(')');
                    return Atom::Nothing;
                }
            }
            self.at += 1;
        }
        let (first, mut inner) = (self.strings.len(), String::new());
        let mut need = self.concatenation(&mut inner);
        let mut all = self.strings.len() > first;
        while self.eat(b'|') {
            let next = self.strings.len();
            let other = self.concatenation(&mut inner);
            // Each of them has to need something.
            all &= self.strings.len() > next;
            need = Need { exact: None, bytes: need.bytes.or(&other.bytes) };
        }
        self.eat(b')');
        if !all {
            self.strings.truncate(first);
        }
        Atom::Part(need)
    }

    /// Whether what stands before is there at least once, and exactly once.
    fn quantifier(&mut self) -> (bool, bool) {
        let (mut at_least_once, mut once) = (true, true);
        while let Some(byte @ (b'?' | b'*' | b'+' | b'{')) = self.peek() {
            once = false;
            self.at += 1;
            at_least_once &= match byte {
                b'+' => true,
                b'{' => matches!(self.peek(), Some(b'1'..=b'9')),
                _ => false,
            };
            if byte == b'{' {
                self.skip_to(b"}");
                self.at += 1;
            }
            self.eat(b'?');
        }
        (at_least_once, once)
    }
}

enum Atom {
    /// It takes no room: an anchor, a flag.
    Nothing,
    /// One byte that may be many.
    Any,
    /// One of these bytes.
    Class(Bytes),
    /// This very byte.
    Letter(u8),
    Part(Need),
}

impl Atom {
    fn literal(byte: u8) -> Self {
        Self::Letter(byte.to_ascii_lowercase())
    }
}

/// The byte that a backslash before `byte` stands for, where it is one.
fn control(byte: u8) -> Option<u8> {
    match byte {
        b't' => Some(b'\t'),
        b'n' => Some(b'\n'),
        _ => (byte.is_ascii() && !byte.is_ascii_alphanumeric()).then_some(byte),
    }
}

fn shortest(needs: &[Literal]) -> usize {
    needs.iter().map(|need| need.len()).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &'static str) -> Vec<(String, Vec<String>)> {
        let text = |need: &Literal| String::from_utf8(need.to_vec()).unwrap();
        let whole = |piece: &Piece| format!("{}{}", piece.flags, piece.pattern);
        let mut pieces = Pieces::default();
        pieces.read(0, pattern);
        pieces.iter().map(|piece| (whole(piece), pieces.strings(piece).iter().map(text).collect())).collect()
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
        let pattern = r"^Tests?: .*failed$|\b[Nn]o space(?: left)?|(?:^|x)a|(?:one|two) [(]|[|)\]]error\x22";
        let expected: Vec<_> = expected
            .iter()
            .map(|(pattern, needs)| ((*pattern).to_owned(), needs.iter().map(ToString::to_string).collect::<Vec<_>>()))
            .collect();
        assert_eq!(read(pattern), expected);
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
            let real = regex::bytes::RegexBuilder::new(pattern).unicode(false).build().unwrap();
            assert!(real.is_match(text.as_bytes()), "{pattern}: {text}");
            assert!(is_asked(pattern, text), "{pattern}: {text}");
        }
        for (pattern, text) in [(r"\pL1", "a1"), (r"\p{Lu}+b", "Ab"), (r"(?u)\d\w\s", "1a "), (r"\u{61}b", "ab")] {
            assert!(regex::Regex::new(pattern).unwrap().is_match(text), "{pattern}: {text}");
            assert!(is_asked(pattern, text), "{pattern}: {text}");
        }
    }
}
