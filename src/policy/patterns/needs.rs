//! What a text must contain for a pattern to match it.
//!
//! A small reader of the patterns' syntax, wrong only to the safe side: what it does not understand needs nothing, so
//! the pattern itself is asked.

use std::ops::Deref;

use super::finder;

/// One alternative of a pattern, and strings of which one must be there (letter case aside); none: no such strings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Flags that were set before it.
    pub flags: String,
    /// The alternative, a pattern of its own.
    pub pattern: &'static str,
    /// Strings of which a text that matches contains one.
    pub needs: Vec<Literal>,
    /// Whether a text that matches has a digit in it.
    pub needs_digit: bool,
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

/// The alternatives of `pattern`.
pub(super) fn pieces(pattern: &'static str) -> Vec<Piece> {
    let mut reader = Reader { bytes: pattern.as_bytes(), at: 0 };
    let (mut pieces, mut flags) = (Vec::new(), String::new());
    loop {
        let (start, before) = (reader.at, flags.clone());
        let Need { best, digit: needs_digit, .. } = reader.concatenation(&mut flags);
        let pattern = &pattern[start..reader.at];
        pieces.push(Piece { flags: before, pattern, needs: usable(best), needs_digit });
        if !reader.eat(b'|') {
            break;
        }
    }
    // What is left was not understood.
    if reader.at < pattern.len() {
        return vec![Piece { flags: String::new(), pattern, needs: Vec::new(), needs_digit: false }];
    }
    pieces
}

fn usable(needs: Vec<Literal>) -> Vec<Literal> {
    let short = needs.iter().any(|need| need.len() < MIN_NEED);
    if short || needs.len() > MAX_NEEDS { Vec::new() } else { needs }
}

/// What a part of a pattern needs.
#[derive(Debug, Default)]
struct Need {
    /// The part is this very text.
    exact: Option<Literal>,
    /// One of these is in what the part matches; empty: nothing is known.
    best: Vec<Literal>,
    /// So is a digit.
    digit: bool,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
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

    /// Reads up to `|`, `)` or the end. Flags that are set on the way hold for the alternatives that follow.
    fn concatenation(&mut self, flags: &mut String) -> Need {
        let (mut run, mut all) = (Literal::default(), true);
        let (mut best, mut digit) = (Vec::new(), false);
        while let Some(byte) = self.peek().filter(|byte| !matches!(byte, b'|' | b')')) {
            let atom = self.atom(byte, flags);
            let (at_least_once, once) = self.quantifier();
            match atom {
                Atom::Nothing => continue,
                Atom::Letter(byte) if at_least_once => run.push(byte),
                Atom::Part(Need { exact: Some(text), .. }) if at_least_once => run.extend(&text),
                Atom::Letter(_) | Atom::Any | Atom::Digit => {
                    all = false;
                    digit |= at_least_once && matches!(atom, Atom::Digit);
                    end_run(&mut run, &mut best);
                }
                Atom::Part(part) => {
                    all = false;
                    end_run(&mut run, &mut best);
                    if at_least_once {
                        digit |= part.digit;
                        prefer(&mut best, part.best);
                    }
                }
            }
            // What comes again may come again before what follows.
            if !once {
                all = false;
                end_run(&mut run, &mut best);
            }
        }
        let exact = all.then_some(run);
        end_run(&mut run, &mut best);
        Need { exact, best, digit }
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
        let mut text = Literal::default();
        text.push(first);
        while let Some(byte) = self.peek().filter(|byte| byte & 0xc0 == 0x80) {
            text.push(byte);
            self.at += 1;
        }
        Atom::Part(Need { exact: Some(text), ..Need::default() })
    }

    fn escape(&mut self) -> Atom {
        let Some(byte) = self.peek() else { return Atom::Any };
        self.at += 1;
        match byte {
            b'b' | b'B' | b'A' | b'z' => Atom::Nothing,
            b't' => Atom::literal(b'\t'),
            b'n' => Atom::literal(b'\n'),
            b'x' => {
                let digits = self.bytes.get(self.at..self.at + 2).and_then(|digits| std::str::from_utf8(digits).ok());
                let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                self.at += 2;
                value.map_or(Atom::Any, Atom::literal)
            }
            b'd' => Atom::Digit,
            _ if byte.is_ascii_alphanumeric() => Atom::Any,
            _ => Atom::literal(byte),
        }
    }

    /// A class of one letter in both cases is that letter, and one of digits only is known.
    fn class(&mut self) -> Atom {
        let start = self.at;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b']' && self.at > start + 1 {
                break;
            }
        }
        let inside = self.bytes.get(start..self.at.saturating_sub(1)).unwrap_or_default();
        match inside {
            [one, other] if one.is_ascii_alphabetic() && one.eq_ignore_ascii_case(other) => Atom::literal(*one),
            [one] if one.is_ascii_alphabetic() => Atom::literal(*one),
            [from, b'-', to] if from.is_ascii_digit() && to.is_ascii_digit() => Atom::Digit,
            [_, _, ..] if inside.iter().all(u8::is_ascii_digit) => Atom::Digit,
            _ => Atom::Any,
        }
    }

    fn group(&mut self, flags: &mut String) -> Atom {
        if self.eat(b'?') && !self.bytes[self.at..].starts_with(b"P<") {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte != b':' && byte != b')') {
                self.at += 1;
            }
            if self.eat(b')') {
                let set = String::from_utf8_lossy(&self.bytes[start..self.at]);
                flags.push_str(&format!("(?{set}"));
                return Atom::Nothing;
            }
            self.at += 1;
        } else if self.bytes[self.at..].starts_with(b"P<") {
            while self.peek().is_some_and(|byte| byte != b'>') {
                self.at += 1;
            }
            self.at += 1;
        }
        let (mut parts, mut inner) = (Vec::new(), String::new());
        loop {
            parts.push(self.concatenation(&mut inner));
            if !self.eat(b'|') {
                break;
            }
        }
        self.eat(b')');
        if parts.len() == 1 {
            return Atom::Part(parts.remove(0));
        }
        // Each of them has to need something.
        let all = parts.iter().all(|part| !part.best.is_empty());
        let digit = parts.iter().all(|part| part.digit);
        let best = if all { parts.into_iter().flat_map(|part| part.best).collect() } else { Vec::new() };
        Atom::Part(Need { exact: None, best, digit })
    }

    /// Whether what stands before is there at least once, and exactly once.
    fn quantifier(&mut self) -> (bool, bool) {
        let (at_least_once, once) = match self.peek() {
            Some(b'?' | b'*') => (false, false),
            Some(b'+') => (true, false),
            Some(b'{') => {
                let optional = self.bytes.get(self.at + 1).is_none_or(|byte| matches!(byte, b'0' | b','));
                while self.peek().is_some_and(|byte| byte != b'}') {
                    self.at += 1;
                }
                (!optional, false)
            }
            _ => return (true, true),
        };
        self.at += 1;
        self.eat(b'?');
        (at_least_once, once)
    }
}

enum Atom {
    /// It takes no room: an anchor, a flag.
    Nothing,
    /// One byte that may be many.
    Any,
    /// Some digit.
    Digit,
    /// This very byte.
    Letter(u8),
    Part(Need),
}

impl Atom {
    fn literal(byte: u8) -> Self {
        Self::Letter(byte.to_ascii_lowercase())
    }
}

fn end_run(run: &mut Literal, best: &mut Vec<Literal>) {
    let run = std::mem::take(run);
    if run.len() > shortest(best) {
        best.clear();
        best.push(run);
    }
}

/// Keeps the needs whose shortest is longer.
fn prefer(best: &mut Vec<Literal>, needs: Vec<Literal>) {
    if shortest(best) < shortest(&needs) {
        *best = needs;
    }
}

fn shortest(needs: &[Literal]) -> usize {
    needs.iter().map(|need| need.len()).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &'static str) -> Vec<(String, Vec<String>)> {
        let text = |need: Literal| String::from_utf8(need.to_vec()).unwrap();
        let whole = |piece: &Piece| format!("{}{}", piece.flags, piece.pattern);
        let read = |piece: Piece| (whole(&piece), piece.needs.into_iter().map(text).collect());
        pieces(pattern).into_iter().map(read).collect()
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
}
