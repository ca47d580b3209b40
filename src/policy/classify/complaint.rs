//! What an output says where no rule knows its words: by its shape, and by the kind of thing that a complaint names.

use std::sync::LazyLock;

use super::rules::Quote;
use super::scan::{Quoted, is_wrapper};
use crate::policy::patterns::{Patterns, Single};
use crate::policy::text::{Line, Text, places};

/// How many lines may be between a message and its place.
const NEAR_LINES: usize = 3;

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
    let mut head: Option<(usize, Line<'_>)> = None;
    for (index, line) in text.lines().enumerate() {
        let matched = PATTERNS.matches(line.bytes);
        if matched.contains(&3) && !matched.contains(&2) {
            return Some(line);
        }
        if matched.contains(&1) {
            let near = head.filter(|(at, _)| index - at <= NEAR_LINES);
            if let Some((_, line)) =
                near.filter(|(_, line)| !PATTERNS.matches(line.bytes).contains(&2))
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
    text.lines().any(|line| RAN_PATTERNS.is_match(line.bytes))
}

/// The last line, where it says something that is neither success nor progress: what a program ends with when it fails.
pub(super) fn complaint(text: &Text, tests_run: bool) -> Option<Line<'_>> {
    let mut quotes = Quoted::new(tests_run);
    let mut last = None;
    let mut guesses = false;
    for line in text.lines() {
        quotes.follow(line.bytes);
        guesses = guesses && is_item(line) || is_head_of_guesses(line);
        match quotes.kind(line.bytes) {
            Quote::No | Quote::Location
                if !(guesses || is_aside(line) || last.is_some() && is_rest(line)) =>
            {
                last = Some(line);
            }
            // What came before it was not what it failed of.
            Quote::Success if !is_wrapper(line.bytes) => last = None,
            _ => {}
        }
    }
    last.filter(|line| is_sentence(*line))
}

/// The first line that says something of a place in a source.
pub(super) fn located(text: &Text) -> Option<Line<'_>> {
    let says = |said: &str| {
        let is_word = |word: &&str| word.len() > 1 && word.chars().all(char::is_alphabetic);
        said.split_whitespace().filter(is_word).count() > 2 && !places(said).is_empty()
    };
    text.lines()
        .find(|line| says(&line.to_text()) && is_sentence(*line) && !is_aside(*line))
}

/// The first row of a table of findings, which names a file beside numbers, below the words that head them.
pub(super) fn row(text: &Text) -> Option<Line<'_>> {
    static HEAD: Single =
        Single::new(r"(?i)^\W*(?:warnings?|errors?|violations?|findings?|problems?|issues?)\b");
    static NAMES_FILE: Single = Single::new(r"\w\.[a-z]\w{0,5}(?:$|[^\w./])");
    static NUMBER: Single = Single::new(r"(?:^|\s)\d+(?:\.\d+)?\s");
    let heads = |line: &Line<'_>| HEAD.first_in(line.bytes).is_some();
    let is_row = |line: &Line<'_>| {
        NAMES_FILE.first_in(line.bytes).is_some() && NUMBER.first_in(line.bytes).is_some()
    };
    let mut below = text.lines().skip_while(|line| !heads(line)).skip(1);
    below.find(is_row)
}

/// Whether a line announces what the reason may be, which nobody knows.
fn is_head_of_guesses(line: Line<'_>) -> bool {
    static GUESSES: Single = Single::new(
        r"(?i)^\W*(?:possible|common|likely) (?:causes?|reasons?|fix(?:es)?|solutions?)\b.*:\W*$",
    );
    GUESSES.first_in(line.bytes).is_some()
}

/// Whether a line is an item of a list.
fn is_item(line: Line<'_>) -> bool {
    static ITEM: Single = Single::new(r"^\s*(?:[*-]|\xE2\x80\xA2|\d+[.)]) ");
    ITEM.first_in(line.bytes).is_some()
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
    static ASIDE: Single = Single::new(
        r"(?i)^(?:\(|hint|help:|note:|for help|(?:try|run|see|use|for more|check out|alternatively,|(?:npm|pnpm|yarn|pip3?|cargo|brew) (?:add|i|install)|stack trace was) )| \[--|:in [`']|^\W*https?://\S+$",
    );
    ASIDE.first(&line.to_text()).is_some()
}

/// Whether a line is more than a word, and not about what is being done or was done.
fn is_sentence(line: Line<'_>) -> bool {
    /// A first word that says what is being done or was done.
    static PROGRESS: Single = Single::new(
        r"^(?:added|analy[sz]ed|built|cached|checked|cleaned|compiled|completed|copied|created|done|downloaded|ended|exit(?:ed)?|fetched|finished|generated|installed|linked|loaded|processed|published|read|removed|resolved|saved|scanned|started|took|updated|wrote|written)$",
    );
    /// What ends like something that is being done, and is not.
    static NOT_DOING: Single = Single::new(
        r"^(?:missing|warning|conflicting|dangling|nothing|failing|overlapping|mismatching)$",
    );
    /// What is said where all is well.
    static WELL: Single = Single::new(
        r"up to date|up-to-date|nothing to do|no changes|thank you|thanks for| is (?:ready|live)| available at ",
    );
    /// A word with which a step that went well ends.
    static WELL_END: Single =
        Single::new(r"^(?:ok|ready|bundled|emitted|ms|passed|clean|unchanged)$");
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
    let is = |form: &Single, text: &str| form.first(text).is_some();
    let doing = first.ends_with("ing") && !is(&NOT_DOING, first) && !counted;
    let well = is(&WELL, &text) || words.last().is_some_and(|last| is(&WELL_END, last));
    letters >= 2 && !doing && !well && !is(&PROGRESS, first) && !text.ends_with("...")
}

/// What kind of thing a complaint is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Something with a name that a project or a registry has.
    Thing,
    /// What a tool is given by its command line or its configuration.
    Setting,
    /// A command of the tool itself.
    Command,
    /// A part of the source, or what it refers to.
    Code,
}

/// What is said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It is not there, or not known.
    Missing,
    /// It is not accepted.
    Refused,
}

/// A complaint about something that is not there or not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MissingResource {
    /// What of it.
    pub said: Said,
    /// The kind of thing, where a word names it.
    pub kind: Option<Kind>,
}

/// How many words may be between what is said and what it is said of.
const NEAR_WORDS: usize = 6;

/// What comes before the thing that is not there; a bar is between two phrases, here and below.
const MISSING_BEFORE: &str = "\
    no such|unknown|unrecognized|unrecognised|cannot find|failed to find|could not find|\
    unable to find|cannot locate|could not locate|unable to locate|cannot open|could not open|\
    unable to open|failed to open|cannot access|could not access|unable to access|\
    failed to access|does not contain|does not have|is not a|is not an|not a known|missing";
/// What comes after it.
const MISSING_AFTER: &str = "\
    not found|not be found|not exist|is missing|is unknown|not known|not defined|\
    never defined|not registered|not declared|not available|is required|are required";
/// What comes after a thing of which there is none.
const NONE_AFTER: &str =
    "found|exists|named|called|matching|matches|matched|remain|given|specified";
/// What comes before a thing that is not accepted.
const REFUSED_BEFORE: &str = "\
    invalid|unsupported|illegal|bad|not a valid|not a supported|unexpected|disallowed|\
    not support|not understand";
/// What comes after it.
const REFUSED_AFTER: &str = "\
    not valid|is invalid|not supported|is unsupported|not allowed|not recognized|\
    not recognised|not understood|not accepted|must be";
/// Words for things of a project or a registry.
const THINGS: &str = "\
    branch chart commit config configuration container dataset directories directory document file files folder \
    formula goal image inventory jarfile job manifest package packages path playbook project projects recipe \
    release remote repository revision role ruleset scheme script service session spec specification \
    stack stage suite target targets task tasks version versions volume workspace";
/// Words for what a tool is given.
const SETTINGS: &str = "\
    algorithm argument arguments backend builder charset color compression cop \
    dialect edition encoding engine fixer fixers flag flags format formatter generator level linter locale mode \
    option options parameter parameters platform pool preset profile provider reporter rule rules \
    setting settings strategy style switch theme value";
/// Words for what a tool can do.
const COMMANDS: &str = "action command operation subcommand verb";
/// Words for parts of a source.
const CODE: &str = "\
    attribute character class component constant constructor crate dependencies dependency directive element enum \
    field filter function header identifier import include instruction interface keyword libraries \
    library macro member method module modules operator reference shortcode source struct symbol tag token trait \
    type variable word";

/// What a line says is lacking, if it says so in words.
pub(super) fn find(line: &str) -> Option<MissingResource> {
    let text = without_quoted(line)
        .replace("can't", "cannot")
        .replace("can not", "cannot")
        .replace("n't", " not");
    let words: Vec<&str> = text
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, '\'' | '_' | '-' | '.' | '/')))
        .map(|word| word.trim_matches(['.', '\'']))
        .filter(|word| !word.is_empty())
        .collect();
    // That things do not fit together is another matter than that one of them is not there.
    // Nor is what the operating system answers a word about an argument.
    let errno = words.ends_with(&["invalid", "argument"]) && words.len() > 2;
    let is_unfit = |word: &&str| {
        matches!(
            *word,
            "compatible" | "incompatible" | "conflict" | "conflicting" | "conflicts"
        )
    };
    if errno || words.iter().any(is_unfit) {
        return None;
    }
    let found = |said, kind| Some(MissingResource { said, kind });
    // A flake, a chart, a package that is asked for something by its name.
    if let Some(at) = ends(&words, "does not provide") {
        return found(Said::Missing, words.get(at).map(|_| Kind::Thing));
    }
    // What is refused may be called unknown, too; that it is not there is the stronger word.
    for (said, before, after) in [
        (Said::Missing, MISSING_BEFORE, MISSING_AFTER),
        (Said::Refused, REFUSED_BEFORE, REFUSED_AFTER),
    ] {
        if let Some(at) = before.split('|').find_map(|phrase| ends(&words, phrase)) {
            let near = words[at..].iter().take(NEAR_WORDS);
            return found(said, near.copied().find_map(kind));
        }
        if let Some(at) = after.split('|').find_map(|phrase| starts(&words, phrase)) {
            let near = words[..at].iter().rev().take(NEAR_WORDS);
            return found(said, near.copied().find_map(kind));
        }
        if said == Said::Missing
            && let Some(at) = words.iter().position(|word| *word == "no")
            && let Some((near, kind)) = words[at..]
                .iter()
                .take(NEAR_WORDS)
                .enumerate()
                .find_map(|(near, word)| Some((near, kind(word)?)))
            && words[at + near..]
                .iter()
                .take(NEAR_WORDS)
                .any(|word| NONE_AFTER.split('|').any(|known| known == *word))
        {
            return found(said, Some(kind));
        }
    }
    None
}

fn kind(word: &str) -> Option<Kind> {
    // What a project is described by.
    static MANIFEST: Single =
        Single::new(r"^[\w./-]+\.(?:cfg|gradle|ini|json|lock|toml|xml|ya?ml)$");
    if MANIFEST.first(word).is_some() {
        return Some(Kind::Thing);
    }
    if word.starts_with("--") {
        return Some(Kind::Setting);
    }
    let kinds = [
        (THINGS, Kind::Thing),
        (SETTINGS, Kind::Setting),
        (COMMANDS, Kind::Command),
        (CODE, Kind::Code),
    ];
    let mut kinds = kinds.into_iter();
    let (_, kind) = kinds.find(|(words, _)| words.split(' ').any(|known| known == word))?;
    Some(kind)
}

/// Where the phrase starts.
fn starts(words: &[&str], phrase: &str) -> Option<usize> {
    let parts: Vec<&str> = phrase.split(' ').collect();
    words
        .windows(parts.len())
        .position(|window| window == parts)
}

/// Where the words after the phrase start.
fn ends(words: &[&str], phrase: &str) -> Option<usize> {
    starts(words, phrase).map(|at| at + phrase.split(' ').count())
}

/// The line in small letters, with names in quotes made `_`: they are called what they like.
fn without_quoted(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut closing: Option<char> = None;
    let mut before = ' ';
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match closing {
            Some(end) if c == end => {
                text.push('_');
                closing = None;
            }
            Some(_) => {}
            None => {
                // The quote must end again; an apostrophe is none.
                let end = match c {
                    '"' | '`' => Some(if c == '`' && !rest.clone().any(|c| c == '`') {
                        '\''
                    } else {
                        c
                    }),
                    '\'' if !before.is_alphanumeric() => Some('\''),
                    '\u{201c}' => Some('\u{201d}'),
                    '\u{2018}' => Some('\u{2019}'),
                    _ => None,
                };
                match end.filter(|end| rest.clone().any(|c| c == *end)) {
                    Some(end) => closing = Some(end),
                    None => text.extend(c.to_lowercase()),
                }
            }
        }
        before = c;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::patterns::tests::nothing_is_missed;
    use std::collections::BTreeSet;

    fn text(output: &str) -> Text {
        Text::new(output.as_bytes())
    }

    #[test]
    fn every_pattern_is_found_where_it_matches() {
        nothing_is_missed(SHAPES);
        nothing_is_missed(RAN);
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

    #[test]
    fn a_word_is_of_one_kind() {
        let words: Vec<&str> = [THINGS, SETTINGS, COMMANDS, CODE]
            .iter()
            .flat_map(|words| words.split(' '))
            .collect();
        let different: BTreeSet<&str> = words.iter().copied().collect();
        assert_eq!(different.len(), words.len());
    }

    #[test]
    fn what_is_lacking_is_told_by_its_kind() {
        for (line, expected) in [
            (
                "Error: could not find any target named 'file'",
                Some((Said::Missing, Some(Kind::Thing))),
            ),
            (
                "flake does not provide attribute 'x.y'",
                Some((Said::Missing, Some(Kind::Thing))),
            ),
            (
                "'jarr' is not a task. See 'x help'.",
                Some((Said::Missing, Some(Kind::Thing))),
            ),
            (
                "No ruleset has been found. Please provide one",
                Some((Said::Missing, Some(Kind::Thing))),
            ),
            (
                "The theme 'file' does not exist",
                Some((Said::Missing, Some(Kind::Setting))),
            ),
            (
                "Invalid pool \"fibers\". Supported pools are: a, b",
                Some((Said::Refused, Some(Kind::Setting))),
            ),
            (
                "Could not run due to missing configuration",
                Some((Said::Missing, Some(Kind::Thing))),
            ),
            ("write: Invalid argument", None),
            (
                "Unknown command: 'x'",
                Some((Said::Missing, Some(Kind::Command))),
            ),
            (
                "can't find the module of that name",
                Some((Said::Missing, Some(Kind::Code))),
            ),
            (
                "Error: Unable to access jarfile out/a.jar",
                Some((Said::Missing, Some(Kind::Thing))),
            ),
            (
                "Can't locate revision identified by 'x'",
                Some((Said::Missing, Some(Kind::Thing))),
            ),
            (
                "cannot open source file \"x.h\"",
                Some((Said::Missing, Some(Kind::Code))),
            ),
            ("No issues in any file", None),
            ("the moon is in the wrong house", None),
        ] {
            assert_eq!(
                find(line).map(|lack| (lack.said, lack.kind)),
                expected,
                "{line}"
            );
        }
    }
}
