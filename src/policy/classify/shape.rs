//! What an output looks like where no rule knows its words.
//! The shape of a compiler's message, a line that complains of something.

use std::sync::LazyLock;

use super::quoted::{Quote, Quoted, is_wrapper};
use crate::policy::patterns::{Matches, Patterns};
use crate::policy::text::{Line, Text};

/// How many lines may be between a message and its place.
const NEAR: usize = 3;

/// The head of a compiler's message; the line of its own that names the place, with the marks that draw the source; what
/// a test runner says that draws its own so; and place and message on one line.
pub(super) const SHAPES: &[&str] = &[
    r"(?i)^\W{0,4}(?:[\w.-]+: )?(?:\w+ ){0,2}\w*error\b|^\s*(?:\xE2\x9C\x97|\xC3\x97|\xE2\x9C\x98) \S",
    r"^\s*(?:-->|-\[|,-\[|@@|\xE2\x94\x8C[\xE2\x94\x80]*|\xE2\x95\xAD[\xE2\x94\x80]*\[?|\xE2\x94\x82)\s*\[?\S*\w\.\w+[:(]\d+",
    r"(?i)\bassert",
    r"^(?:\S[^\s:(]*\.\w+)(?:\(\d+(?:, ?\d+)?\)|:\d+(?:[:.]\d+(?:-\d+)?)?):? (?:\w+ )?[Ee]rror\b",
];
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(SHAPES.iter().copied()));

/// Signs that tests ran: what came after is about them.
pub(super) const RAN: &[&str] = &[
    r"(?i)^\W*(?:ok|not ok|pass(?:ed)?|running \d+ tests?|\d+ (?:tests?|passed|failed|passing|failing))\b",
    r"(?i)\.\.\.\s*(?:ok|pass|fail)|\b(?:ok|passed)\W*$",
    r"^\W*FAIL(?:ED)?\b",
    r"\xE2\x9C[\x93\x94]",
];
static RAN_PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(RAN.iter().copied()));

/// The head of the first message that a compiler draws with the place in its source on a line of its own.
pub(super) fn diagnostic(text: &Text) -> Option<Line<'_>> {
    let mut room = Matches::default();
    let mut head: Option<(usize, Line<'_>)> = None;
    for (index, line) in text.lines().enumerate() {
        let matched = PATTERNS.matches(line.bytes, &mut room);
        if matched.contains(&3) && !matched.contains(&2) {
            return Some(line);
        }
        if matched.contains(&1) {
            let near = head.filter(|(at, _)| index - at <= NEAR);
            if let Some((_, line)) =
                near.filter(|(_, line)| !PATTERNS.matches(line.bytes, &mut room).contains(&2))
            {
                return Some(line);
            }
        } else if matched.contains(&0) {
            head = Some((index, line));
        }
    }
    None
}

/// Whether any test seems to have run.
pub(super) fn tests_ran(text: &Text) -> bool {
    let mut room = Matches::default();
    text.lines()
        .any(|line| RAN_PATTERNS.is_match(line.bytes, &mut room))
}

/// The last line, where it says something that is neither success nor progress: what a program ends with when it fails.
pub(super) fn complaint(text: &Text, tests_run: bool) -> Option<Line<'_>> {
    let mut quotes = Quoted::new(tests_run);
    let mut last = None;
    for line in text.lines() {
        quotes.follow(line.bytes);
        match quotes.kind(line.bytes) {
            Quote::No | Quote::Location if !(is_aside(line) || last.is_some() && is_rest(line)) => {
                last = Some(line);
            }
            // What came before it was not what it failed of.
            Quote::Success if !is_wrapper(line.bytes) => last = None,
            _ => {}
        }
    }
    last.filter(|line| is_sentence(*line))
}

/// Whether a line is the last word of the sentence before it.
fn is_rest(line: Line<'_>) -> bool {
    let text = line.to_text();
    let mut words = text.split_whitespace();
    let word = words
        .next()
        .filter(|_| words.next().is_none())
        .unwrap_or_default();
    word.ends_with('.') && word.starts_with(|c: char| c.is_lowercase())
}

/// Whether a line says what to do or where it was called, not what is wrong.
fn is_aside(line: Line<'_>) -> bool {
    const ADVICE: [&str; 10] = [
        "(",
        "try ",
        "run ",
        "see ",
        "for more ",
        "for help",
        "use ",
        "hint",
        "help:",
        "note:",
    ];
    let text = line.to_text().to_ascii_lowercase();
    let frame = text.contains(":in `") || text.contains(":in '");
    frame || text.contains(" [--") || ADVICE.iter().any(|start| text.starts_with(start))
}

/// Whether a line is more than a word, and not about what is being done or was done.
fn is_sentence(line: Line<'_>) -> bool {
    /// What ends like something that is being done, and is not.
    const NOT_DOING: [&str; 8] = [
        "missing",
        "warning",
        "conflicting",
        "dangling",
        "nothing",
        "failing",
        "overlapping",
        "mismatching",
    ];
    /// What is said where all is well.
    const WELL: [&str; 9] = [
        "up to date",
        "up-to-date",
        "nothing to do",
        "no changes",
        "thank you",
        "thanks for",
        " is ready",
        " is live",
        " available at ",
    ];
    /// Words with which a step that went well ends.
    const WELL_ENDS: [&str; 8] = [
        "ok",
        "ready",
        "bundled",
        "emitted",
        "ms",
        "passed",
        "clean",
        "unchanged",
    ];
    const DONE: [&str; 34] = [
        "added",
        "analysed",
        "analyzed",
        "built",
        "cached",
        "checked",
        "cleaned",
        "compiled",
        "completed",
        "copied",
        "created",
        "done",
        "downloaded",
        "ended",
        "exit",
        "exited",
        "fetched",
        "finished",
        "generated",
        "installed",
        "linked",
        "loaded",
        "processed",
        "published",
        "read",
        "removed",
        "resolved",
        "saved",
        "scanned",
        "started",
        "took",
        "updated",
        "wrote",
        "written",
    ];
    let text = line.to_text().to_lowercase();
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| word.len() > 1)
        .collect();
    let letters = words
        .iter()
        .filter(|word| word.chars().any(char::is_alphabetic))
        .count();
    let Some(first) = words
        .iter()
        .find(|word| word.chars().all(char::is_alphabetic))
    else {
        return false;
    };
    // "1 warning": what is counted is not done.
    let counted = text.starts_with(|c: char| c.is_ascii_digit());
    let doing = first.ends_with("ing") && !NOT_DOING.contains(first) && !counted;
    let well = WELL.iter().any(|phrase| text.contains(phrase))
        || words.last().is_some_and(|last| WELL_ENDS.contains(last));
    letters >= 2 && !doing && !well && !DONE.contains(first) && !text.ends_with("...")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::patterns::oracle;

    fn text(output: &str) -> Text {
        Text::new(output.as_bytes())
    }

    #[test]
    fn every_pattern_is_found_where_it_matches() {
        oracle::nothing_is_missed(SHAPES);
        oracle::nothing_is_missed(RAN);
    }

    #[test]
    fn a_message_and_its_place_are_a_diagnostic() {
        for (output, expected) in [
            (
                "error: no field `x`\n  \u{250c}\u{2500} src/a.foo:3:4\n",
                Some("error: no field `x`"),
            ),
            ("note\nType error\n --> src/a.foo:3\n", Some("Type error")),
            (
                "  \u{d7} unexpected thing\n   \u{256d}\u{2500}[main.foo:1:2]\n",
                Some("\u{d7} unexpected thing"),
            ),
            ("warning: unused\n --> src/a.foo:3:4\n", None),
            ("Error: boom\n    at f (a.js:3:4)\n", None),
        ] {
            assert_eq!(
                diagnostic(&text(output)).map(Line::to_text).as_deref(),
                expected,
                "{output}"
            );
        }
    }

    #[test]
    fn the_last_line_may_complain() {
        for (output, complains) in [
            ("stage two: the moon is in the wrong house", true),
            ("Missing moon in house two", true),
            ("The moon is not in any of the\nhouses.", true),
            ("Building stage two", false),
            ("1 refactoring opportunity", true),
            ("one\nDone in 3 s", false),
            ("all tests passed successfully", false),
            ("finished", false),
            ("Compass: page four is unreadable\nexit status 3", true),
            ("step one\nAn unexpected error occurred.", false),
            ("Release 1.4 is live", false),
            ("The index is up to date", false),
            ("Compiled 3 files\n(See the full trace with --trace)", false),
            ("", false),
        ] {
            assert_eq!(
                complaint(&text(output), false).is_some(),
                complains,
                "{output}"
            );
        }
    }
}
