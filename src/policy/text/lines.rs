//! Output as lines of plain text (colours stripped, carriage returns resolved, length bounded).
//!
//! The part of it that says the most, and the locations in source files that it names, for an editor to open.

use std::sync::LazyLock;

use regex::Regex;

use crate::model::failure::Location;
use crate::policy::secrets::redact;

/// Output beyond this is read only at its start and its end.
const MAX_BYTES: usize = 8 << 20;
/// How much of the start is kept of longer output.
const HEAD_BYTES: usize = 2 << 20;
/// Longer lines are cut; what a tool says of a failure is not that long.
const MAX_LINE_BYTES: usize = 4096;

/// One stream of output, cleaned.
#[derive(Debug, Default)]
pub(crate) struct Text {
    bytes: Vec<u8>,
    lines: Vec<Span>,
}

/// Where a line is. A flood has a million of them: each is kept small.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// Of [`Line::number`]; a later one than it can say is said as the last that it can.
    number: u32,
    /// In at most [`MAX_BYTES`], and notes.
    start: u32,
    /// At most [`MAX_LINE_BYTES`].
    length: u16,
}

impl Span {
    fn in_bytes(self, bytes: &[u8]) -> Line<'_> {
        let rest = usize::try_from(self.start)
            .ok()
            .and_then(|start| bytes.get(start..))
            .unwrap_or_default();
        Line {
            number: self.number.into(),
            bytes: &rest[..usize::from(self.length).min(rest.len())],
        }
    }
}

/// One line and where it was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// 1-based line of the output; 0 where the text was no part of it.
    pub number: u64,
    /// The text without colours.
    pub bytes: &'a [u8],
}

impl Line<'_> {
    /// The text, trimmed, with bytes that are not UTF-8 replaced.
    pub(crate) fn to_text(self) -> String {
        String::from_utf8_lossy(self.bytes).trim().to_owned()
    }
}

impl Text {
    /// Cleans `output`. What a carriage return overwrites on a terminal becomes a line of its own with the same number.
    pub(crate) fn new(output: &[u8]) -> Self {
        let mut text = Self::default();
        if output.len() <= MAX_BYTES {
            text.push(output, 1);
            return text;
        }
        let head_end = output[..HEAD_BYTES]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(HEAD_BYTES, |at| at + 1);
        let tail_start = output.len() - (MAX_BYTES - HEAD_BYTES);
        let cut = output[tail_start..]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        text.push(&output[..head_end], 1);
        let skipped = output[..tail_start + cut]
            .iter()
            .fold(1, |sum, byte| sum + u64::from(*byte == b'\n'));
        text.push(&output[tail_start + cut..], skipped);
        text
    }

    /// Adds text that was no part of the output, such as a caller's message.
    pub(crate) fn push_note(&mut self, note: &str) {
        let from = self.lines.len();
        self.push(note.as_bytes(), 1);
        for line in &mut self.lines[from..] {
            line.number = 0;
        }
    }

    fn push(&mut self, output: &[u8], first_number: u64) {
        let lines = (first_number..).zip(output.split(|byte| *byte == b'\n'));
        for (number, raw) in lines.filter(|(_, raw)| !raw.is_empty()) {
            for part in raw
                .split(|byte| *byte == b'\r')
                .filter(|part| !part.is_empty())
            {
                let start = self.bytes.len();
                strip(part, &mut self.bytes);
                self.bytes.truncate(start + MAX_LINE_BYTES);
                if !self.bytes[start..].trim_ascii().is_empty() {
                    let (Ok(start), Ok(length)) = (
                        u32::try_from(start),
                        u16::try_from(self.bytes.len() - start),
                    ) else {
                        return;
                    };
                    self.lines.push(Span {
                        number: u32::try_from(number).unwrap_or(u32::MAX),
                        start,
                        length,
                    });
                }
            }
        }
    }

    /// Whether nothing was said.
    pub(crate) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The line at `index`.
    pub(crate) fn line(&self, index: usize) -> Line<'_> {
        self.lines[index].in_bytes(&self.bytes)
    }

    /// Every line that is not blank, in order.
    pub(crate) fn lines(&self) -> impl DoubleEndedIterator<Item = Line<'_>> + ExactSizeIterator {
        self.lines.iter().map(|span| span.in_bytes(&self.bytes))
    }
}

/// Output as lines of plain text.
pub(crate) fn plain_text(output: &[u8]) -> String {
    Text::new(output)
        .lines()
        .map(|line| line.to_text() + "\n")
        .collect()
}

/// A text of many lines without escape sequences and control characters; blank lines stay. Of a line that was overwritten
/// (`\r`) it is what it said last.
pub(crate) fn without_controls(text: &str) -> String {
    let mut clean = Vec::with_capacity(text.len());
    for line in text.lines() {
        let last = line.rsplit('\r').find(|part| !part.trim().is_empty());
        strip(last.unwrap_or_default().as_bytes(), &mut clean);
        clean.push(b'\n');
    }
    clean.pop();
    String::from_utf8_lossy(&clean).into_owned()
}

/// Copies `part` without escape sequences and control characters (tabs stay).
fn strip(part: &[u8], into: &mut Vec<u8>) {
    let start = into.len();
    let mut at = 0;
    while at < part.len() {
        at += match part[at] {
            0x1b => escape_length(&part[at..]),
            0..0x20 | 0x7f if part[at] != b'\t' => 1,
            // U+0080 to U+009F are controls too; what was left out between their two bytes may have brought them together.
            0x80..0xa0 if into[start..].last() == Some(&0xc2) => {
                into.pop();
                1
            }
            byte => {
                into.push(byte);
                1
            }
        };
    }
}

/// The length of the escape sequence that `rest` starts with. Broken ones end where their form ends.
fn escape_length(rest: &[u8]) -> usize {
    let body = rest.get(2..).unwrap_or_default();
    match rest.get(1) {
        Some(b'[') => {
            let parameters = body
                .iter()
                .take_while(|byte| (0x20..0x40).contains(*byte))
                .count();
            let ended = body
                .get(parameters)
                .is_some_and(|byte| (0x40..0x7f).contains(byte));
            2 + parameters + usize::from(ended)
        }
        // A title or a link: up to BEL or ESC \.
        Some(b']') => {
            let end = body.iter().position(|byte| *byte == 0x07 || *byte == 0x1b);
            end.map_or(rest.len(), |at| {
                3 + at + usize::from(body.get(at..at + 2) == Some(b"\x1b\\"))
            })
        }
        Some(b'(' | b')') => rest.len().min(3),
        Some(_) => 2,
        None => 1,
    }
}

/// How long an excerpt is at most, in bytes.
pub(crate) const MAX_EXCERPT_BYTES: usize = 8 << 10;
/// How much of it the first error with its surroundings may take.
const ERROR_BYTES: usize = 3 << 10;
/// How many lines follow an error.
const LINES_AFTER: usize = 14;
/// How many lines come before one.
const LINES_BEFORE: usize = 2;

/// Takes the surroundings of the line numbered `error_line` and the last lines of `text`, redacted.
pub(crate) fn excerpt(text: &Text, error_line: Option<u64>, max_bytes: usize) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| String::from_utf8_lossy(line.bytes).into_owned())
        .collect();
    let error = error_line.and_then(|number| text.lines().position(|line| line.number == number));
    // What the last lines hold anyway needs no place of its own.
    let whole_tail = tail_start(&lines, 0, max_bytes);
    let error = error.filter(|at| at.saturating_sub(LINES_BEFORE) < whole_tail);
    let mut head = String::new();
    let mut head_end = 0;
    if let Some(at) = error {
        for (index, line) in lines
            .iter()
            .enumerate()
            .skip(at.saturating_sub(LINES_BEFORE))
            .take(LINES_AFTER + LINES_BEFORE)
        {
            if head.len() + line.len() + 1 > ERROR_BYTES.min(max_bytes / 2) {
                break;
            }
            head.push_str(line);
            head.push('\n');
            head_end = index + 1;
        }
    }
    let tail_start = tail_start(&lines, head_end, max_bytes.saturating_sub(head.len() + 8));
    let gap = if head.is_empty() || tail_start <= head_end {
        ""
    } else {
        "[...]\n"
    };
    let tail = lines[tail_start..].join("\n");
    let mut excerpt = redact(&format!("{head}{gap}{tail}")).into_owned();
    cut(&mut excerpt, max_bytes);
    excerpt
}

/// Where the last lines begin that have room, at `first` or behind it.
fn tail_start(lines: &[String], first: usize, mut room: usize) -> usize {
    let mut start = lines.len();
    while start > first && lines[start - 1].len() < room {
        start -= 1;
        room -= lines[start].len() + 1;
    }
    start
}

/// Cuts a text to at most `max_bytes`, at a character.
pub(crate) fn cut(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes {
        let end = (0..=max_bytes)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        text.truncate(end);
    }
}

/// `File "a.py", line 3`; `in a.sh line 3`; `a.ts(3,5)`; `a.rs:3:5`, `a.go:3`.
static FORMS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let forms = [
        r#"File "(?<path>[^"]+)", line (?<line>\d+)"#,
        r#"\b(?:at|in) (?<path>[^\s"'`()\[\]<>,:]+\.\w+),? (?:on )?line (?<line>\d+)"#,
        r#"(?<path>[^\s"'`()\[\]<>,:]+)\((?<line>\d+)(?:,(?<column>\d+))?\)"#,
        r#"(?<path>[^\s"'`()\[\]<>,:]+):(?<line>\d+)(?::(?<column>\d+))?"#,
    ];
    forms
        .iter()
        .filter_map(|form| Regex::new(form).ok())
        .collect()
});

/// The places that a text names, in its order.
pub(crate) fn places(text: &str) -> Vec<Location> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut here: Vec<(usize, Location)> = Vec::new();
        for captures in FORMS.iter().flat_map(|form| form.captures_iter(line)) {
            let number = |name| {
                captures
                    .name(name)
                    .and_then(|digits| digits.as_str().parse().ok())
            };
            let (Some(path), Some(line)) = (captures.name("path"), number("line")) else {
                continue;
            };
            let place = Location {
                path: path.as_str().to_owned(),
                line,
                column: number("column"),
            };
            here.push((path.start(), place));
        }
        here.sort_by_key(|(at, _)| *at);
        found.extend(here.into_iter().map(|(_, place)| place));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(output: &[u8]) -> Vec<(u64, String)> {
        Text::new(output)
            .lines()
            .map(|line| (line.number, line.to_text()))
            .collect()
    }

    #[test]
    fn colours_titles_and_carriage_returns_are_resolved() {
        let output =
            b"\x1b[1;31merror\x1b[0m: x\r\n\x1b]8;;http://a\x1b\\link\x1b]8;;\x07\n 10%\r 90%\rdone\n\n\xff\x00z\x1b[";
        let expected = [
            (1, "error: x"),
            (2, "link"),
            (3, "10%"),
            (3, "90%"),
            (3, "done"),
            (5, "\u{fffd}z"),
        ];
        assert_eq!(
            lines(output),
            expected.map(|(number, text)| (number, text.to_owned()))
        );
    }

    #[test]
    fn no_control_character_is_left() {
        for output in ["\u{92}x", "\u{9b}31mx\u{85}", "\x7f\x08x\u{80}\u{9f}"] {
            let text = plain_text(output.as_bytes());
            assert!(
                text.contains('x') && !text.trim_end().contains(char::is_control),
                "{output:?}: {text:?}"
            );
        }
        for output in [
            &b"x\xc2\xc2\x92\x92"[..],
            b"x\xc2\x00\x92",
            b"x\xc2\x1b[m\x92",
            "x\u{a0}é".as_bytes(),
        ] {
            let text = plain_text(output);
            assert!(
                !text.trim_end().contains(char::is_control),
                "{output:?}: {text:?}"
            );
        }
        assert_eq!(plain_text("é\u{a0}À".as_bytes()), "é\u{a0}À\n");
    }

    #[test]
    fn long_output_keeps_its_ends_and_its_line_numbers() {
        let mut output = b"first\n".to_vec();
        output.extend(b"0123456\n".repeat(2 << 20));
        output.extend(b"last");
        let text = Text::new(&output);
        assert_eq!(text.line(0).bytes, b"first");
        let last = text.lines().next_back().unwrap();
        assert_eq!(
            (last.number, last.bytes),
            ((2 << 20) + 2, b"last".as_slice())
        );
    }

    fn of_output(output: &[u8], error_line: Option<u64>) -> String {
        excerpt(&Text::new(output), error_line, MAX_EXCERPT_BYTES)
    }

    #[test]
    fn the_error_and_the_end_are_kept() {
        let mut output = String::from("start\nerror: the reason\n");
        output.extend((0..5000).map(|number| format!("noise {number}\n")));
        output.push_str("password=hunter22 end\n");
        let excerpt = of_output(output.as_bytes(), Some(2));
        assert!(excerpt.len() <= MAX_EXCERPT_BYTES);
        assert!(excerpt.starts_with("start\nerror: the reason\n"));
        assert!(excerpt.contains("[...]") && excerpt.ends_with("[redacted] end"));
    }

    #[test]
    fn colours_and_progress_are_left_out_of_text() {
        let text = "\u{1b}[32mdone\u{1b}[0m\r\n\nprogress 10%\rprogress 100%\r\n";
        assert_eq!(without_controls(text), "done\n\nprogress 100%");
    }

    #[test]
    fn short_output_is_kept_whole() {
        assert_eq!(of_output(b"a\nb\n", Some(1)).trim_end(), "a\nb");
        assert_eq!(
            of_output(b"1\n2\n3\n4\nerror\n", Some(5)).trim_end(),
            "1\n2\n3\n4\nerror"
        );
        assert_eq!(of_output(b"", None), "");
    }
}

#[cfg(test)]
mod place_tests {
    use super::*;

    #[test]
    fn the_forms_of_common_tools_are_read() {
        for (text, path, line, column) in [
            ("  --> src/main.rs:12:5", "src/main.rs", 12, Some(5)),
            (
                "src/auth.ts(23,5): error TS2322: Type",
                "src/auth.ts",
                23,
                Some(5),
            ),
            (
                "src/auth.ts:23:5 - error TS2322",
                "src/auth.ts",
                23,
                Some(5),
            ),
            (
                "  File \"/w/app.py\", line 7, in main",
                "/w/app.py",
                7,
                None,
            ),
            ("    main_test.go:14: want 1", "main_test.go", 14, None),
            (
                "thread 'a' panicked at src/lib.rs:3:9:",
                "src/lib.rs",
                3,
                Some(9),
            ),
            ("    at f (/w/a.js:4:2)", "/w/a.js", 4, Some(2)),
            (
                "E   tests/test_a.py:9: AssertionError",
                "tests/test_a.py",
                9,
                None,
            ),
        ] {
            let place = Location {
                path: path.to_owned(),
                line,
                column,
            };
            assert_eq!(places(text).first(), Some(&place), "{text}");
        }
        assert_eq!(
            places("no place: at all, 12:30"),
            [Location {
                path: "12".to_owned(),
                line: 30,
                column: None
            }]
        );
        let two = places("a.c:1: x\nb.c:2: y");
        assert_eq!(
            two.iter()
                .map(|place| place.path.as_str())
                .collect::<Vec<_>>(),
            ["a.c", "b.c"]
        );
    }
}
