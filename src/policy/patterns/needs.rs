//! What a text must contain for a pattern to match it.
//!
//! A small reader of the patterns' syntax, wrong only to the safe side: what it does not understand needs nothing, so
//! the pattern itself is asked.

use super::finder;

/// One alternative of a pattern, and strings of which one must be there (letter case aside); none: no such strings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Flags that were set before it.
    pub flags: String,
    /// The alternative, a pattern of its own.
    pub pattern: &'static str,
    /// Strings of which a text that matches contains one.
    pub needs: Vec<Vec<u8>>,
}

/// Strings that are shorter are found everywhere.
const MIN_NEED: usize = finder::MIN_LENGTH;
/// Longer strings find no less, and cost more.
const MAX_NEED: usize = finder::MAX_LENGTH;
/// More strings than this are no help.
const MAX_NEEDS: usize = 48;

/// The alternatives of `pattern`.
pub(super) fn pieces(pattern: &'static str) -> Vec<Piece> {
    let mut reader = Reader { bytes: pattern.as_bytes(), at: 0 };
    let (mut pieces, mut flags) = (Vec::new(), String::new());
    loop {
        let (start, before) = (reader.at, flags.clone());
        let found = reader.concatenation(&mut flags);
        pieces.push(Piece { flags: before, pattern: &pattern[start..reader.at], needs: usable(found.best) });
        if !reader.eat(b'|') {
            break;
        }
    }
    // What is left was not understood.
    if reader.at < pattern.len() {
        return vec![Piece { flags: String::new(), pattern, needs: Vec::new() }];
    }
    pieces
}

fn usable(needs: Option<Vec<Vec<u8>>>) -> Vec<Vec<u8>> {
    let mut needs = needs.unwrap_or_default();
    let short = needs.iter().any(|need| need.len() < MIN_NEED);
    if short || needs.len() > MAX_NEEDS {
        return Vec::new();
    }
    for need in &mut needs {
        need.truncate(MAX_NEED);
    }
    needs
}

/// What a part of a pattern needs.
#[derive(Debug, Default)]
struct Need {
    /// The part is this very text.
    exact: Option<Vec<u8>>,
    /// One of these is in what the part matches.
    best: Option<Vec<Vec<u8>>>,
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
        let (mut run, mut all) = (Vec::new(), true);
        let mut best: Option<Vec<Vec<u8>>> = None;
        while let Some(byte) = self.peek().filter(|byte| !matches!(byte, b'|' | b')')) {
            let atom = self.atom(byte, flags);
            let (at_least_once, once) = self.quantifier();
            match atom {
                Atom::Nothing => continue,
                Atom::Letter(byte) if at_least_once => run.push(byte),
                Atom::Part(Need { exact: Some(text), .. }) if at_least_once => run.extend_from_slice(&text),
                Atom::Letter(_) | Atom::Any => {
                    all = false;
                    end_run(&mut run, &mut best);
                }
                Atom::Part(part) => {
                    all = false;
                    end_run(&mut run, &mut best);
                    if let Some(needs) = part.best.filter(|_| at_least_once) {
                        prefer(&mut best, needs);
                    }
                }
            }
            // What comes again may come again before what follows.
            if !once {
                all = false;
                end_run(&mut run, &mut best);
            }
        }
        let exact = all.then(|| run.clone());
        end_run(&mut run, &mut best);
        Need { exact, best }
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
        let mut text = vec![first];
        while let Some(byte) = self.peek().filter(|byte| byte & 0xc0 == 0x80) {
            text.push(byte);
            self.at += 1;
        }
        Atom::Part(Need { exact: Some(text), best: None })
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
            _ if byte.is_ascii_alphanumeric() => Atom::Any,
            _ => Atom::literal(byte),
        }
    }

    /// A class of one letter in both cases is that letter.
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
        let all: Option<Vec<Vec<Vec<u8>>>> = parts.into_iter().map(|part| part.best).collect();
        Atom::Part(Need { exact: None, best: all.map(|all| all.into_iter().flatten().collect()) })
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
    /// This very byte.
    Letter(u8),
    Part(Need),
}

impl Atom {
    fn literal(byte: u8) -> Self {
        Self::Letter(byte.to_ascii_lowercase())
    }
}

fn end_run(run: &mut Vec<u8>, best: &mut Option<Vec<Vec<u8>>>) {
    if !run.is_empty() {
        prefer(best, vec![std::mem::take(run)]);
    }
}

/// Keeps the needs whose shortest is longer.
fn prefer(best: &mut Option<Vec<Vec<u8>>>, needs: Vec<Vec<u8>>) {
    let shortest = |needs: &[Vec<u8>]| needs.iter().map(|need| need.len().min(MAX_NEED)).min().unwrap_or(0);
    if best.as_ref().is_none_or(|best| shortest(best) < shortest(&needs)) {
        *best = Some(needs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &'static str) -> Vec<(String, Vec<String>)> {
        let text = |need: Vec<u8>| String::from_utf8(need).unwrap();
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
