//! What an output looks like, where no rule knows its words: the shape of a compiler's message, a word of the command
//! line that is called unknown, a line that complains of something.

use std::sync::LazyLock;

use super::quoted::{Quote, Quoted, is_wrapper};
use crate::policy::patterns::{Matches, Patterns};
use crate::policy::text::{Line, Text};

/// How many lines may be between a message and its place.
const NEAR: usize = 3;
/// How many of the last lines may say what the command line asked for in vain.
const LAST_LINES: usize = 12;
/// How many words may be between "unknown" and what is unknown.
const BETWEEN: usize = 5;

/// The head of a compiler's message; the line of its own that names the place, with the marks that draw the source; what
/// a test runner says that draws its own so; and place and message on one line.
const SHAPES: &[&str] = &[
    r"(?i)^\W{0,4}(?:[\w.-]+: )?(?:\w+ ){0,2}\w*error\b|^\s*(?:\xE2\x9C\x97|\xC3\x97|\xE2\x9C\x98) \S",
    r"^\s*(?:-->|-\[|,-\[|@@|\xE2\x94\x8C[\xE2\x94\x80]*|\xE2\x95\xAD[\xE2\x94\x80]*\[?|\xE2\x94\x82)\s*\[?\S*\w\.\w+[:(]\d+",
    r"(?i)\bassert",
    r"^(?:\S[^\s:(]*\.\w+)(?:\(\d+(?:, ?\d+)?\)|:\d+(?:[:.]\d+(?:-\d+)?)?):? (?:\w+ )?[Ee]rror\b",
];
static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(SHAPES.iter().copied()));

/// Signs that tests ran: what came after is about them.
const RAN: &[&str] = &[
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
            if let Some((_, line)) = near.filter(|(_, line)| !PATTERNS.matches(line.bytes, &mut room).contains(&2)) {
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
    text.lines().any(|line| RAN_PATTERNS.is_match(line.bytes, &mut room))
}

/// A word of a command line that nobody knows, and the line that says so.
pub(super) struct NotThere<'a> {
    pub line: Line<'a>,
    /// Whether the word is an option.
    pub option: bool,
}

/// The last line that says of a word of the command line, but for the program, that it is not there.
pub(super) fn not_there<'a>(command: &str, text: &'a Text) -> Option<NotThere<'a>> {
    let words: Vec<&str> = command
        .split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ';' | '|' | '&' | '(' | ')' | '=' | ','))
        .skip(1)
        .filter(|word| word.trim_start_matches('-').len() >= 3)
        .collect();
    let mut quotes = Quoted::new(false);
    let mut speaks = text.lines().rev().take(LAST_LINES).filter(move |line| quotes.kind(line.bytes) != Quote::Source);
    speaks.find_map(|line| {
        let said = line.to_text();
        let word = words.iter().filter(|_| !starts_with_place(&said)).find(|word| is_called_unknown(&said, word))?;
        Some(NotThere { line, option: word.starts_with('-') })
    })
}

/// Whether a line begins with a place in a file: what is missing there is the file's business.
fn starts_with_place(said: &str) -> bool {
    let place = said.split_whitespace().next().unwrap_or_default();
    place.split(':').nth(1).is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a line says so of a word, right before or right after it.
fn is_called_unknown(said: &str, word: &str) -> bool {
    /// Then at most [`BETWEEN`] words, and the word.
    const BEFORE: [&str; 20] = [
        "no such ",
        "unknown ",
        "unrecognized ",
        "unrecognised ",
        "no idea ",
        "don't know ",
        "do not know ",
        "doesn't know ",
        "cannot find ",
        "can't find ",
        "couldn't find ",
        "could not find ",
        "cannot locate ",
        "could not locate ",
        "unable to find ",
        "unable to locate ",
        "never heard of ",
        "nothing matches ",
        "nothing called ",
        "nothing named ",
    ];
    const AFTER: [&str; 11] = [
        "not found",
        "not be found",
        "not exist",
        "doesn't exist",
        "unknown",
        "not known",
        "not defined",
        "isn't defined",
        "missing",
        "not registered",
        "not available",
    ];
    /// What is said of an option, before it and after it.
    const REFUSED: [&str; 7] =
        ["not a valid ", "invalid ", "illegal ", "unexpected ", "not understand ", "unsupported ", "bad "];
    const REFUSES: [&str; 9] =
        ["wants", "expects", "requires", "must ", "needs", "cannot", "not ", "takes ", "conflicts"];
    let option = word.starts_with('-');
    let bytes = said.as_bytes();
    // A part of a path or of a longer name is not the word.
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/');
    said.match_indices(word).any(|(start, _)| {
        let end = start + word.len();
        let before_it = start.checked_sub(1).and_then(|before| bytes.get(before));
        let (after_it, then) = (bytes.get(end), bytes.get(end + 1));
        let goes_on = after_it == Some(&b'.') && then.is_some_and(joins);
        let whole =
            !before_it.is_some_and(|byte| joins(byte) || *byte == b'.') && !after_it.is_some_and(joins) && !goes_on;
        // `a.x:3:` and `a.x(3)` are places of something else.
        let place = matches!(bytes.get(end), Some(b':' | b'(')) && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        if !whole || place {
            return false;
        }
        let before = said[..start].to_ascii_lowercase();
        let lacks = |phrase: &&str| {
            let between = before.rfind(*phrase).map(|at| &before[at + phrase.len()..]);
            between.is_some_and(|between| {
                between.split_whitespace().count() <= BETWEEN && !between.contains([',', '.', ';', ')'])
            })
        };
        let none_named = before.contains("no ") && (before.ends_with("named ") || before.ends_with("called "));
        let after = said[end..].trim_start_matches(['\'', '"', '`', '\u{2019}', '\u{bb}', ' ']).to_ascii_lowercase();
        let verbs = ["was ", "is ", "does ", "could ", "can "];
        let after = verbs.iter().fold(after.as_str(), |after, verb| after.strip_prefix(verb).unwrap_or(after));
        let follows = |phrase: &&str| after.starts_with(*phrase);
        let refused = option && (REFUSED.iter().any(lacks) || REFUSES.iter().any(follows));
        let no_file = word.contains(['/', '.']) && after.starts_with(':') && after.contains("no such file");
        refused || no_file || none_named || BEFORE.iter().any(lacks) || AFTER.iter().any(follows)
    })
}

/// The last line, where it says something that is neither success nor progress: what a program ends with when it fails.
pub(super) fn complaint(text: &Text, tests_run: bool) -> Option<Line<'_>> {
    let mut quotes = Quoted::new(tests_run);
    let mut last = None;
    for line in text.lines() {
        quotes.follow(line.bytes);
        match quotes.kind(line.bytes) {
            Quote::No | Quote::Location if !is_aside(line) => last = Some(line),
            // What came before it was not what it failed of.
            Quote::Success if !is_wrapper(line.bytes) => last = None,
            _ => {}
        }
    }
    last.filter(|line| is_sentence(*line))
}

/// Whether a line says what to do or where it was called, not what is wrong.
fn is_aside(line: Line<'_>) -> bool {
    const ADVICE: [&str; 10] = ["(", "try ", "run ", "see ", "for more ", "for help", "use ", "hint", "help:", "note:"];
    let text = line.to_text().to_ascii_lowercase();
    let frame = text.contains(":in `") || text.contains(":in '");
    frame || ADVICE.iter().any(|start| text.starts_with(start))
}

/// Whether a line is more than a word, and not about what is being done or was done.
fn is_sentence(line: Line<'_>) -> bool {
    /// What ends like something that is being done, and is not.
    const NOT_DOING: [&str; 8] =
        ["missing", "warning", "conflicting", "dangling", "nothing", "failing", "overlapping", "mismatching"];
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
    const WELL_ENDS: [&str; 8] = ["ok", "ready", "bundled", "emitted", "ms", "passed", "clean", "unchanged"];
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
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| word.len() > 1).collect();
    let letters = words.iter().filter(|word| word.chars().any(char::is_alphabetic)).count();
    let Some(first) = words.iter().find(|word| word.chars().all(char::is_alphabetic)) else { return false };
    let doing = first.ends_with("ing") && !NOT_DOING.contains(first);
    let well =
        WELL.iter().any(|phrase| text.contains(phrase)) || words.last().is_some_and(|last| WELL_ENDS.contains(last));
    letters >= 2 && !doing && !well && !DONE.contains(first) && !text.ends_with("...")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(output: &str) -> Text {
        Text::new(output.as_bytes())
    }

    #[test]
    fn a_message_and_its_place_are_a_diagnostic() {
        for (output, expected) in [
            ("error: no field `x`\n  \u{250c}\u{2500} src/a.foo:3:4\n", Some("error: no field `x`")),
            ("note\nType error\n --> src/a.foo:3\n", Some("Type error")),
            ("  \u{d7} unexpected thing\n   \u{256d}\u{2500}[main.foo:1:2]\n", Some("\u{d7} unexpected thing")),
            ("warning: unused\n --> src/a.foo:3:4\n", None),
            ("Error: boom\n    at f (a.js:3:4)\n", None),
        ] {
            assert_eq!(diagnostic(&text(output)).map(Line::to_text).as_deref(), expected, "{output}");
        }
    }

    #[test]
    fn what_the_command_names_may_be_called_unknown() {
        for (command, output, expected) in [
            ("inv relase", "No idea what 'relase' is!", Some(false)),
            ("run task:deploy", "there is no task named task:deploy here", Some(false)),
            ("run --fats x.cfg", "I do not know --fats", Some(true)),
            ("run x.cfg", "x.cfg: a file named x.cfg is wrong", None),
            ("run deploy", "redeploy does not exist", None),
            ("run deploy", "deploy: 3 steps", None),
            ("compile x.cfg", "x.cfg:3:4: name is not defined", None),
            ("compile x.cfg", "x.cfg: line 3: file not found: y", None),
            ("deploy", "deploy: not found", None),
            ("run a/b.x", "run: a/b.x: cannot open: No such file or directory", Some(false)),
            ("compile -I proto a.x", "Import \"b/c.proto\" was not found", None),
            ("compile x.cfg", "warning: x.cfg not found in the cache", None),
        ] {
            let found = not_there(command, &text(output)).map(|found| found.option);
            assert_eq!(found, expected, "{output}");
        }
    }

    #[test]
    fn the_last_line_may_complain() {
        for (output, complains) in [
            ("stage two: the moon is in the wrong house", true),
            ("Missing moon in house two", true),
            ("Building stage two", false),
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
            assert_eq!(complaint(&text(output), false).is_some(), complains, "{output}");
        }
    }
}
