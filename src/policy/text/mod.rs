//! Text for people and from tools: escaped, counted, cut, an agent's headline, and long output made short while it is read.

mod lines;

pub(super) use lines::{Line, MAX_EXCERPT_BYTES, Text, cut, excerpt};
pub(crate) use lines::{places, plain_text, without_controls};

use std::fmt::Display;
use std::io;
use std::io::Read;
use std::sync::LazyLock;

use memchr::memchr_iter;
use regex::bytes::Regex;

use super::secrets::redact;

/// Control characters as escapes, so that a path or a message can neither steer the terminal nor feign a line.
pub(crate) fn escape(text: &str) -> String {
    escape_but(text, &[])
}

/// Like [`escape`], but newlines and tabs stay.
pub(crate) fn escape_lines(text: &str) -> String {
    escape_but(text, &['\n', '\t'])
}

fn escape_but(text: &str, plain: &[char]) -> String {
    // Marks that turn the direction of text around can hide what a line says.
    let turns = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if (c.is_control() && !plain.contains(&c)) || turns(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

/// FNV-1a, 64 bits: short, and the same on every platform and version.
pub(crate) fn checksum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// `12.3 MiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut tenths = u128::from(bytes) * 10;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1024;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit]),
    }
}

/// `1 file`, `2 files`.
pub(crate) fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, word: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {word}{plural}")
}

/// The first words of a text that is longer than `most` characters, with a mark behind them.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text.to_owned();
    };
    let mark = text[..end].char_indices().next_back();
    let cut = &text[..mark.map_or(0, |(at, _)| at)];
    // One word that is too long cannot be kept whole.
    let whole = cut
        .rsplit_once(' ')
        .filter(|(before, _)| before.len() > cut.len() / 2)
        .map_or(cut, |(before, _)| before);
    let whole = whole.trim_end_matches([' ', ',', ';', ':', '-']);
    format!("{whole}…")
}

/// The first few of some names, and what `more` says of how many others there are: `a, b, 3 more`.
pub(crate) fn first_few(
    all: impl ExactSizeIterator<Item = String>,
    most: usize,
    more: impl FnOnce(usize) -> String,
) -> String {
    let others = all.len().saturating_sub(most);
    let mut named: Vec<String> = all.take(most).collect();
    if others > 0 {
        named.push(more(others));
    }
    named.join(", ")
}

/// The candidate that is most like `text`.
pub(crate) fn nearest<'a>(
    text: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let by_distance =
        candidates.map(|candidate| (strsim::damerau_levenshtein(text, candidate), candidate));
    by_distance
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The candidate that `text` may be a slip of: at most one letter in three is another one.
pub(crate) fn misspelt<'a>(
    text: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let slips = (text.chars().count() / 3).max(1);
    let close =
        |candidate: &&str| candidate.len().abs_diff(text.len()) <= slips && *candidate != text;
    nearest(text, candidates.filter(close))
        .filter(|near| strsim::damerau_levenshtein(text, near) <= slips)
}

/// This many characters of it are enough.
const LONGEST: usize = 100;

/// The first line that says something, without the marks of Markdown, and cut between words; `None` where there is none.
pub(crate) fn headline(text: &str) -> Option<String> {
    let text = plain_text(text.as_bytes());
    let lines = text.lines().map(|line| {
        line.trim()
            .trim_start_matches(['#', '*', '-', '>', ' '])
            .trim()
    });
    let line = lines
        .map(|line| line.replace(['*', '`'], ""))
        .find(|line| line.chars().any(char::is_alphanumeric))?;
    Some(beginning(&redact(&line), LONGEST))
}

/// How much of the start is kept whole.
const HEAD_BYTES: usize = 64 << 10;
/// How much of the end is kept whole, at least.
const TAIL_BYTES: usize = 192 << 10;
/// How much is read before anything of it is left out.
const BLOCK_BYTES: usize = 4 << 20;
/// How much is kept of the lines between.
const MIDDLE_BYTES: usize = 256 << 10;
/// How many lines that are left out keep their place; after this many, numbers no longer matter.
const MAX_BLANKS: usize = 6 << 20;
/// Longer lines are cut.
const MAX_LINE_BYTES: usize = 4 << 10;

/// Parts of words without which no tool reports a failure. Few and plain, so that they are found at the speed of
/// memory; what the words mean is the rules' business.
static TRIGGERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let words = "error|Error|ERROR|fail|Fail|FAIL|panic|atal|FATAL|xception|raceback|imed out|imeout|TIMEOUT|enied|\
        EACCES|o space|ENOSPC|EROFS|ead-only|onnection re|ECONN|ENOTFOUND|nterrupt|illed|SIGKILL|SIGSEGV|f mem|\
        OutOfMem|egmentation|Aborted|not found|No such|annot |nable to|ndefined|nexpected|nvalid|CONFLICT|not ok|\
        oo many|FLAKY|flaky";
    Regex::new(words).ok()
});

/// Reads `input` to its end and makes it short: its start, its end, and between them the lines that speak of trouble.
///
/// Memory is bounded whatever comes, time is linear, and a line keeps its number: a line that is left out leaves an
/// empty one. Nothing is left out of output that is short.
pub(crate) fn condensed(mut input: impl Read) -> io::Result<Vec<u8>> {
    let mut output = Condensed::default();
    loop {
        let room = BLOCK_BYTES - output.recent.len();
        output.recent.reserve_exact(room);
        if input
            .by_ref()
            .take(room as u64)
            .read_to_end(&mut output.recent)?
            < room
        {
            return Ok(output.finish());
        }
        output.sift();
    }
}

/// Output that is being read.
#[derive(Debug, Default)]
struct Condensed {
    kept: Vec<u8>,
    /// What was read last, of which the end may be the end of all.
    recent: Vec<u8>,
    left_out: bool,
    middle: usize,
    blanks: usize,
}

impl Condensed {
    fn finish(mut self) -> Vec<u8> {
        if self.left_out {
            if self.recent.len() > 2 * TAIL_BYTES {
                self.sift();
            }
            self.kept.append(&mut self.recent);
            return self.kept;
        }
        self.recent
    }

    /// Leaves out what says nothing, but for the newest part.
    fn sift(&mut self) {
        let mut recent = std::mem::take(&mut self.recent);
        let mut from = 0;
        if !self.left_out {
            self.left_out = true;
            from = part(&recent, HEAD_BYTES);
            self.kept.extend_from_slice(&recent[..from]);
        }
        let to = part(&recent, recent.len() - TAIL_BYTES);
        self.sift_lines(&recent[from..to]);
        recent.drain(..to);
        self.recent = recent;
    }

    fn sift_lines(&mut self, lines: &[u8]) {
        let mut done = 0;
        let full = self.middle >= MIDDLE_BYTES;
        let found = TRIGGERS
            .iter()
            .filter(|_| !full)
            .flat_map(|triggers| triggers.find_iter(lines));
        for found in found {
            if found.start() < done {
                continue;
            }
            let start = lines[done..found.start()]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(done, |at| done + at + 1);
            let end = line_end(lines, found.start());
            self.blank(&lines[done..start]);
            self.keep(&lines[start..end]);
            done = end;
            if self.middle >= MIDDLE_BYTES {
                break;
            }
        }
        self.blank(&lines[done..]);
    }

    fn keep(&mut self, line: &[u8]) {
        let ended = line.ends_with(b"\n");
        let short = &line[..line.len().min(MAX_LINE_BYTES)];
        self.kept.extend_from_slice(short);
        if ended && !short.ends_with(b"\n") {
            self.kept.push(b'\n');
        }
        self.middle += short.len();
    }

    /// Empty lines for those that are left out.
    fn blank(&mut self, lines: &[u8]) {
        let count = memchr_iter(b'\n', lines)
            .count()
            .min(MAX_BLANKS - self.blanks);
        self.blanks += count;
        self.kept.resize(self.kept.len() + count, b'\n');
    }
}

/// Where to part the output near `at`: after a line, unless the line is endless.
fn part(text: &[u8], at: usize) -> usize {
    let end = line_end(&text[..text.len().min(at + MAX_LINE_BYTES)], at);
    if text[end - 1] == b'\n' { end } else { at }
}

/// Where the line that `at` is in ends.
fn line_end(text: &[u8], at: usize) -> usize {
    text[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |length| at + length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units() {
        assert_eq!(
            [size(0), size(1023), size(1536), size(5 << 30)],
            ["0 B", "1023 B", "1.5 KiB", "5.0 GiB"]
        );
        assert_eq!([count(0, "file"), count(1, "file")], ["0 files", "1 file"]);
    }

    #[test]
    fn a_slip_is_recognised_and_another_word_is_none() {
        let known = ["cat", "claude", "cargo", "codex"];
        for (text, expected) in [
            ("cluade", Some("claude")),
            ("crago", Some("cargo")),
            ("npx", None),
            ("no-such-agent", None),
            ("cta", Some("cat")),
        ] {
            assert_eq!(misspelt(text, known.into_iter()), expected, "{text}");
        }
    }

    #[test]
    fn a_headline_is_the_first_line_that_says_something() {
        for (text, expected) in [
            (
                "Set up JWT middleware\n\nDetails.",
                Some("Set up JWT middleware"),
            ),
            (
                "\n---\n## **Done:** the `auth` module works\n",
                Some("Done: the auth module works"),
            ),
            ("\n***\n", None),
            ("", None),
        ] {
            assert_eq!(headline(text).as_deref(), expected, "{text}");
        }
        let long = headline(&"a word ".repeat(50)).unwrap();
        assert!(
            long.chars().count() <= LONGEST && long.ends_with("word…"),
            "{long}"
        );
    }

    #[test]
    fn the_triggers_compile() {
        assert!(TRIGGERS.is_some());
    }

    #[test]
    fn short_output_is_kept_whole() {
        let text = b"one\ntwo\n".repeat(1000);
        assert_eq!(condensed(text.as_slice()).unwrap(), text);
    }

    #[test]
    fn the_ends_and_the_trouble_between_them_keep_their_lines() {
        let mut lines = vec!["[12/900] compiling a file of the project".to_owned(); 400_000];
        lines[0] = "first".to_owned();
        lines[200_000] = "src/a.c:3:5: error: expected ';'".to_owned();
        lines[399_999] = "last".to_owned();
        let text = lines.join("\n");
        let short = condensed(text.as_bytes()).unwrap();
        let (head, rest) = text.as_bytes().split_at(1_000_003);
        assert!(
            condensed(head.chain(rest)).unwrap() == short,
            "read in parts"
        );
        assert!(short.len() < 5 << 20, "{}", short.len());
        let kept: Vec<&[u8]> = short.split(|byte| *byte == b'\n').collect();
        for line in [0, 200_000, 399_999] {
            assert_eq!(kept[line], lines[line].as_bytes());
        }
        assert_eq!((kept.len(), kept[100_000]), (400_000, b"".as_slice()));
    }

    #[test]
    fn output_without_lines_stays_small() {
        assert!(
            condensed(b"error ".repeat(4 << 20).as_slice())
                .unwrap()
                .len()
                < 5 << 20
        );
    }
}
