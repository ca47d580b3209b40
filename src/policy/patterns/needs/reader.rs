//! Reading a pattern: what each of its parts needs.

use std::ops::Range;

use super::super::bytes::{Bytes, Required};
use super::literal::Literal;

const DIGITS: Bytes = Bytes::all_of(b"0123456789");
/// Letters, digits and `_`.
const WORD: Bytes = Bytes::all_of(b"abcdefghijklmnopqrstuvwxyz0123456789_");
/// What `\s` is.
const SPACE: Bytes = Bytes::all_of(b"\t\n\x0b\x0c\r ");

/// What a part of a pattern needs, beside the strings that its reading left: one of these is in what the part matches.
#[derive(Debug, Default)]
pub(super) struct Need {
    /// The part is this very text.
    exact: Option<Literal>,
    pub bytes: Required,
}

/// A pattern, and how far it was read.
pub(super) struct Reader<'a> {
    pub pattern: &'static str,
    pub at: usize,
    /// Whether there was something that changes how all is read.
    pub lost: bool,
    /// Whether what comes next stands right behind a `\b`.
    pub boundary: bool,
    /// What is needed, the strings of the part that is read last.
    pub strings: &'a mut Vec<Literal>,
}

impl Reader<'_> {
    fn bytes(&self) -> &'static [u8] {
        self.pattern.as_bytes()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    pub(super) fn eat(&mut self, byte: u8) -> bool {
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
    pub(super) fn concatenation(&mut self, flags: &mut &'static str) -> Need {
        let (mut run, mut all) = (Literal::default(), true);
        let mut bytes = Required::default();
        // The best strings so far are those from here on.
        let first = self.strings.len();
        while let Some(byte) = self.peek().filter(|byte| !matches!(byte, b'|' | b')')) {
            if self.is_plain(byte) {
                // What most of a pattern is, by a shorter way.
                self.at += 1;
                let letter = byte.to_ascii_lowercase();
                bytes.add(letter);
                self.add(&mut run, letter);
                continue;
            }
            let next = self.strings.len();
            let boundary = self.boundary;
            let atom = self.atom(byte, flags);
            let (at_least_once, once) = self.quantifier();
            match atom {
                Atom::Nothing | Atom::Boundary => {
                    self.boundary &= at_least_once;
                    continue;
                }
                Atom::Letter(byte) if at_least_once => {
                    bytes.add(byte);
                    self.boundary = boundary;
                    self.add(&mut run, byte);
                }
                Atom::Part(Need {
                    exact: Some(text),
                    bytes: part,
                }) if at_least_once => {
                    bytes.add_part(&part);
                    if run.is_empty() {
                        run = text;
                    } else {
                        run.extend(&text);
                    }
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

    /// Adds a byte to what is read literally.
    fn add(&mut self, run: &mut Literal, byte: u8) {
        if run.is_empty() {
            *run = Literal::at(self.boundary && WORD.has(byte));
        }
        run.push(byte);
        self.boundary = false;
    }

    /// Takes the run for the strings from `first` on, where it is longer.
    fn end_run(&mut self, run: &mut Literal, first: usize) {
        let run = std::mem::take(run);
        if run.len() > shortest(&self.strings[first..]) {
            self.strings.truncate(first);
            self.strings.push(run);
        }
    }

    /// Whether the byte here stands for itself, once.
    fn is_plain(&self, byte: u8) -> bool {
        let follows = self.bytes().get(self.at + 1);
        (byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'_' | b'-' | b':'))
            && !follows.is_some_and(|next| matches!(next, b'?' | b'*' | b'+' | b'{'))
    }

    fn atom(&mut self, byte: u8, flags: &mut &'static str) -> Atom {
        self.at += 1;
        let boundary = self.boundary;
        let atom = match byte {
            b'^' | b'$' => Atom::Nothing,
            b'(' => self.group(flags),
            b'[' => self.class(),
            b'.' => Atom::Any,
            b'\\' => self.escape(),
            _ => self.letter(byte),
        };
        self.boundary = match atom {
            Atom::Boundary => true,
            Atom::Nothing => boundary,
            _ => false,
        };
        atom
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
        text.extend(&self.bytes()[start..self.at]);
        Atom::Part(Need {
            exact: Some(text),
            bytes: Required::each_of(&self.bytes()[start..self.at]),
        })
    }

    fn escape(&mut self) -> Atom {
        let Some(byte) = self.peek() else {
            return Atom::Any;
        };
        self.at += 1;
        match byte {
            b'b' if self.peek() != Some(b'{') => Atom::Boundary,
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
        let digits = self
            .bytes()
            .get(self.at..self.at + 2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
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
        let is_range = self.peek() == Some(b'-') && self.bytes().get(self.at + 1) != Some(&b']');
        (!is_range).then_some(set)
    }

    /// The characters from `first` on, in a class: one, or a range of them.
    fn range(&mut self, first: u8) -> Option<Range<u8>> {
        let last = self
            .bytes()
            .get(self.at + 1)
            .copied()
            .filter(|last| self.peek() == Some(b'-') && *last != b']');
        let Some(last) = last else {
            return Some(first..first + 1);
        };
        if !last.is_ascii_alphanumeric() {
            return None;
        }
        self.at += 2;
        Some(first..last + 1)
    }

    fn group(&mut self, flags: &mut &'static str) -> Atom {
        let opens = self.at - 1;
        if self.eat(b'?') {
            if self.bytes()[self.at..].starts_with(b"P<") || self.peek() == Some(b'<') {
                self.skip_to(b">");
            } else {
                let start = self.at;
                self.skip_to(b":)");
                // Spaces that do not count, and tables of Unicode.
                let set = self.bytes()[start..self.at]
                    .split(|byte| *byte == b'-')
                    .next()
                    .unwrap_or_default();
                self.lost |= set.iter().any(|flag| matches!(flag, b'x' | b'u'));
                if self.eat(b')') {
                    // Flags that are set twice are not followed.
                    self.lost |= !flags.is_empty();
                    *flags = &self.pattern[opens..self.at];
                    return Atom::Nothing;
                }
            }
            self.at += 1;
        }
        let (first, boundary, mut inner) = (self.strings.len(), self.boundary, "");
        let mut need = self.concatenation(&mut inner);
        let mut all = self.strings.len() > first;
        while self.eat(b'|') {
            self.boundary = boundary;
            let next = self.strings.len();
            let other = self.concatenation(&mut inner);
            // Each of them has to need something.
            all &= self.strings.len() > next;
            need = Need {
                exact: None,
                bytes: need.bytes.or(&other.bytes),
            };
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
    /// Nor does this: a word begins or ends here.
    Boundary,
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
