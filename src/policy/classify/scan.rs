//! One pass over the output: which rules match where, and which lines are no evidence.
//!
//! No evidence are printed source, names, passing tests, logs, expected values.

use std::sync::LazyLock;

use super::rules::{FAMILIES, Family, Quote, Rule, StageRules};
use crate::model::failure::{Evidence, EvidenceSource};
use crate::policy::patterns::{Patterns, Single};
use crate::policy::text::{Line, Text};

/// Where one rule matched in one stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hits {
    /// How many lines.
    pub count: u32,
    first: usize,
    last: usize,
}

impl Hits {
    fn note(&mut self, index: usize) {
        if self.count == 0 {
            self.first = index;
        }
        self.last = index;
        self.count += 1;
    }
}

/// A rule that matched, and its line.
#[derive(Clone, Copy)]
pub(super) struct Hit<'a> {
    /// The rule.
    pub rule: &'static Rule,
    /// The stream.
    pub source: EvidenceSource,
    /// The first line that matched, for what a compiler says, else the last.
    pub line: Line<'a>,
    /// How many lines matched.
    pub count: u32,
}

impl Hit<'_> {
    /// The match as evidence.
    pub(super) fn evidence(self) -> Evidence {
        evidence(self.rule.id, self.source, self.line)
    }
}

/// A line as evidence for a rule.
pub(super) fn evidence(rule: &str, source: EvidenceSource, line: Line<'_>) -> Evidence {
    Evidence {
        rule: rule.to_owned(),
        source,
        line: Some(line.number).filter(|number| *number > 0),
        text: line.to_text(),
    }
}

/// The two streams and every rule's matches in them.
pub(super) struct Scan<'a> {
    stderr: &'a Text,
    stdout: &'a Text,
    /// By family, by rule: stderr, stdout.
    hits: Vec<Vec<[Hits; 2]>>,
}

impl<'a> Scan<'a> {
    /// Reads both streams once for the rules of `stages`. Where tests run, marked lines are their names.
    pub(super) fn new(stderr: &'a Text, stdout: &'a Text, stages: u8, tests_run: bool) -> Self {
        let rules = StageRules::of(stages);
        let mut hits: Vec<Vec<[Hits; 2]>> = FAMILIES
            .iter()
            .map(|family| vec![[Hits::default(); 2]; family.rules.len()])
            .collect();
        for (stream, text) in [stderr, stdout].into_iter().enumerate() {
            let mut quotes = Quoted::new(tests_run);
            for (index, line) in text.lines().enumerate() {
                quotes.follow(line.bytes);
                if quotes.section == Section::Warned {
                    continue;
                }
                let matched = rules.patterns.matches(line.bytes);
                if matched.is_empty() {
                    continue;
                }
                let quote = quotes.kind(line.bytes);
                for (family, rule) in matched
                    .iter()
                    .map(|number| rules.places[usize::from(*number)])
                {
                    if !FAMILIES[family].skips.contains(&quote) {
                        hits[family][rule][stream].note(index);
                    }
                }
            }
        }
        Self {
            stderr,
            stdout,
            hits,
        }
    }

    /// What matched in `family` at `stages`, strongest first: stderr before stdout, then the table's order.
    pub(super) fn matches(&self, family: Family, stages: u8) -> impl Iterator<Item = Hit<'a>> + '_ {
        let table = &self.hits[family as usize];
        let description = &FAMILIES[family as usize];
        let streams = [
            (EvidenceSource::Stderr, self.stderr),
            (EvidenceSource::Stdout, self.stdout),
        ];
        streams
            .into_iter()
            .enumerate()
            .flat_map(move |(stream, (source, text))| {
                let rules = description.rules.iter().zip(table);
                rules.filter_map(move |(rule, hits)| {
                    let hits = hits[stream];
                    let applies = hits.count > 0 && rule.stages & stages != 0;
                    let index = if description.first_line {
                        hits.first
                    } else {
                        hits.last
                    };
                    applies.then(|| Hit {
                        rule,
                        source,
                        line: text.line(index),
                        count: hits.count,
                    })
                })
            })
    }

    /// The strongest match of a family.
    pub(super) fn best(&self, family: Family, stages: u8) -> Option<Hit<'a>> {
        self.matches(family, stages).next()
    }

    /// The last line of one stream that matched in `family`.
    pub(super) fn last_line(&self, family: Family, source: EvidenceSource) -> Option<Line<'a>> {
        let (stream, text) = if source == EvidenceSource::Stderr {
            (0, self.stderr)
        } else {
            (1, self.stdout)
        };
        let hits = self.hits[family as usize]
            .iter()
            .map(|hits| hits[stream])
            .filter(|hits| hits.count > 0);
        hits.map(|hits| hits.last)
            .max()
            .map(|index| text.line(index))
    }

    /// How many lines the rule with this id matched, both streams together.
    pub(super) fn count(&self, family: Family, id: &str) -> u32 {
        let rules = FAMILIES[family as usize]
            .rules
            .iter()
            .zip(&self.hits[family as usize]);
        rules
            .filter(|(rule, _)| rule.id == id)
            .map(|(_, hits)| hits[0].count + hits[1].count)
            .sum()
    }
}

const SOURCE: &[&str] = &[
    // Code excerpts with a gutter: rustc, gcc, ruff, tsc --pretty, babel.
    r"^\s*>?\s*\d*\s*\|(?:\s|$|\^)",
    r"^\s*(?:--> |::: |\.\.\.\s*$)",
    // The box that some frameworks draw around a traceback.
    r"^\s*\xE2\x94\x82\s*(?:\xE2\x9D\xB1\s*)?\d+\s+\xE2\x94\x82",
    r"^[\s^~|+-]*$",
    // Diffs.
    r"^(?:[-+](?:[^-+]|$)|\s+[-+]\s*['\x22])",
    r"^E\s+[-+?](?:\s|$)",
    r"^[\s#>|*+-]*(?:left|right|expected|actual|got|want|wanted|found|received|Expected|Actual|Received|Got|Want|Found)\b\s*:",
    // What pytest explains of an assertion.
    r"^E\s+(?:\+\s|assert\b|AssertionError\b)",
    r"(?i)^\s*(?:E\s+)?(?:\w+\.)*Assertion(?:Failed)?Error\b",
    // Not final: the tool tries again, or only warns.
    r"(?i)^\W*(?:npm )?warn(?:ing)?\b[:\s]",
    r"(?i)\b(?:will retry|tr(?:y|ies) remaining|attempts? (?:left|remaining))",
    r"(?:^|[ ,;(])(?:[Rr]etrying|Reconnecting)(?:[ ,;.)]|$)(?:[^(]|$)",
    // What is not there, and what is taken in its place.
    r"(?i)\bfound\b.{0,12}\b(?:using|taking) (?:the )?(?:defaults?|preset|built-?in|fallback|bundled|global)\b|\b(?:fall(?:ing|s)? back|defaulting) (?:to|on)\b|\busing (?:the )?(?:defaults?|built-?in|fallback)\b.{0,12}\binstead\b",
    // What a program advises beside its error.
    r"(?i)^\W*(?:[\w./-]+: )?(?:hint|tip)s?: (?:please|try|consider|use|make sure|run|see|check|you (?:can|may|might)|did you|maybe|perhaps)\b",
    // Source that an interpreter or a linter prints.
    r#"^\s+(?:if|for|while|return|raise|throw|throws|assert|print|printf|println!|panic!|expect|import|from|const|let|var|def|fn|func|echo)\b.*[({;:"]"#,
    r"^[\s>]*(?:[\w$.:]*[.:])?(?:(?i:assert)\w*!?|expect|EXPECT_\w+|REQUIRE|CHECK)\s?\(.*\S",
    r"^\s+at\s+\S+.*:\d+",
    r"^\s*#\s*(?:captured|expected|stdout of)",
    // A value on a line of its own.
    r"^\s+(?:\x22.*\x22|'.*'|`.*`),?\s*$",
];

const NAMES: &[&str] = &[
    r"^test .* \.\.\. (?:ok|ignored|FAILED)",
    r"\s(?:PASSED|SKIPPED|XFAIL)\b",
    r"^(?:FAILED|ERROR) \S+::",
    r"\s(?:FAILED|ERROR)\s+\[\s*\d+%\]",
    r"^(?:\s*)(?:ok|not ok) \d+",
    r"^\s*#\s+(?:Subtest|Failed test )",
    r"^\s*(?:--- (?:PASS|FAIL|SKIP)|=== (?:RUN|PAUSE|CONT|NAME))",
    r"^\s*(?:PASS|FAIL)\s+\[",
    r"^\s*\d+\) \D",
    r"^\[\s*(?:RUN|OK|FAILED|PASSED)\s*\]",
    r"^_{3,} .* _{3,}$",
    r"^---- .* stdout ----$",
    r"^(?:FAIL|ERROR): \w+ \(",
    r"^\s*\d+/\d+ Test\s+#\d+:",
    r"^\s*(?:Start|Running)\s+\d+:",
    r"^\((?:pass|fail|skip)\) ",
];

/// Lines with a time: logs of the program under test, or a tool's own.
const LOGS: &[&str] = &[
    r"^\W*\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d",
    r"^\W*\d\d:\d\d:\d\d[.,\s]",
];

/// Lines with a level: of no failure.
const LEVELS: &[&str] = &[
    r"^\W*(?:TRACE|DEBUG|INFO|WARN|NOTICE)\b",
    r"^time=\S+ level=(?:debug|info|warn)",
    r#"level"?[=:]"?(?:debug|info|warn)"#,
];

/// Where no program is under test, a tool writes its last words like this.
const SEVERE: &[&str] = &[
    r"\b(?:FATAL|ERROR|CRITICAL|PANIC)\b",
    r"(?i)level=(?:error|fatal)|\[(?:emerg|alert|crit|error|fatal|panic)\]",
];

/// Marks that stand before a test's name where tests run, and before a finding elsewhere.
const MARKED_NAMES: &[&str] = &[
    r"^\W*(?:FAIL|PASS|OK|SKIP)(?: |: ?)[\w./:-]+",
    r" \.\.\. (?:(?i:ok|fail(?:ed)?|pass(?:ed)?|skip(?:ped)?)|ERROR)\W*$",
    r"^\s*(?:\xE2\x9C\x93|\xE2\x9C\x94|\xE2\x88\x9A|\xE2\x9C\x97|\xE2\x9C\x98|\xE2\x9C\x96|\xC3\x97|\xE2\x9C\x95|\xE2\x97\x8F|\xE2\x97\x8B|\xE2\x80\xA2)\s+[^\[\s]",
];

const LOCATIONS: &[&str] = &[
    r"^(?:\[\w+\] )?\s*\S+\.(?:pyi?|rs|[cm]?[jt]sx?|go|c|cc|cpp|cxx|h|hpp|mm?|java|kts?|scala|rb|php|swift|cs|fs|exs?|sh|vue|svelte|hs|mli?|zig|lua|dart|css|scss|md|xml|xsd|xslt?|html?|svg|rst|adoc|txt|csv)(?::\d|\(\d|:?\[\d| \d+:\d| line \d)",
    r"^\s+\d+:\d+\s+(?:error|warning|\xE2\x9C\x96)",
];

/// A wrapper's words that only repeat the status.
const WRAPPERS: &[&str] = &[
    r"^\S*make(?:\[\d+\])?: \*\*\* .* \S+ \d+$|^ninja: build stopped",
    r"^npm (?:error|ERR!) (?:code ELIFECYCLE|errno|path|command|workspace|location|Lifecycle|Exit status|A complete log)|ELIFECYCLE",
    r"(?i)^\W*(?:error:? )?(?:command|process|script|recipe|task|step)\b.* (?:failed|exited|completed|terminated) (?:with|on line).*\d+\W*$",
    r"^rake aborted!$|^Command failed with status \(\d+\)|^Tasks: TOP =>|^ERROR +run failed: command|^error Command failed with exit code|^task: Failed to run task|^Failed: .* exited with \d+$|^WARNING: .* exited \d+$",
    r"(?i)^\W*(?:exit|return)(?:ed)?(?: with)?(?: status| code)*\W*\d+\W*$",
];

/// Words of success, and of a failure without a reason.
const SUCCESS: &[&str] = &[
    // Words that say that it failed, and not at all why.
    r"(?i)^\W*(?:(?:error|fatal|failed|oops|sorry)\W+)?(?:an? )?(?:(?:unknown|unexpected|unspecified|internal|fatal|generic|undefined) )?(?:error|problem|exception)(?: has)? (?:occurr?ed|happened)\W*$|^\W*(?:(?:error|fatal|failed|oops|sorry)\W+)?(?:something (?:went|is) wrong|unknown (?:error|reason|failure)|unspecified error|for an? unknown reason|no (?:further )?details?(?: (?:is|are))?(?: available| given)?)\W*$|^\W*(?:oops|error|fatal(?: error)?|giving up|aborting|exiting|stopped|bye)\W*$",
    r"(?i)\b(?:no|0|zero|without(?: any)?) (?:\w+ )?(?:errors?|failures?|failed|problems?|issues?|warnings?|offenses?|violations?|differences)\b",
    r"(?i)\b(?:errors?|failures?|failed|warnings?): ?0\b|\b(?:errors?|failures?|failed|failing|broken)\? *(?:no|none|false)\b",
    r"(?i)\b(?:succe(?:ss|ss?ful(?:ly)?|eded)|all (?:\w+ )?(?:checks|tests|good|ok|passed|done)|completed ok)\b",
];

/// What the operating system answered is why a compiler could not do its work, whatever place it names.
const REFUSED: &[&str] = &[
    r"(?::|\() ?'?(?:Permission denied|Read-only file system|No space left on device|Operation not permitted|Too many open files|Disk quota exceeded|Cannot allocate memory|Input/output error)'?\)?\.?$",
    r"executable file not found in \$PATH",
];

pub(super) const PATTERNS: [&[&str]; 10] = [
    SOURCE,
    NAMES,
    LOCATIONS,
    SUCCESS,
    MARKED_NAMES,
    LOGS,
    SEVERE,
    REFUSED,
    LEVELS,
    WRAPPERS,
];

/// By the place in [`PATTERNS`].
static SETS: LazyLock<[Patterns; 10]> =
    LazyLock::new(|| PATTERNS.map(|patterns| Patterns::new(patterns.iter().copied())));

/// Follows the sections of a report, line by line.
#[derive(Debug, Default)]
pub(super) struct Quoted {
    section: Section,
    tests_run: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    None,
    /// pytest's FAILURES and ERRORS: only `E` lines speak.
    Pytest,
    /// What a test printed.
    Captured,
    /// A warning in a box of lines, as Terraform draws them.
    Warned,
}

impl Quoted {
    /// Starts at the top of an output.
    pub(super) fn new(tests_run: bool) -> Self {
        Self {
            tests_run,
            ..Self::default()
        }
    }

    /// What `line` quotes, after [`Self::follow`] has seen it.
    pub(super) fn kind(&self, line: &[u8]) -> Quote {
        if is_in(1, line) || self.tests_run && is_in(4, line) {
            return Quote::Name;
        }
        let inside = match self.section {
            Section::None => false,
            Section::Pytest => {
                !line.starts_with(b"E ") && !line.starts_with(b"==") && !line.starts_with(b"!!")
            }
            Section::Captured | Section::Warned => true,
        };
        // The last of pip's retries is no mere warning: what follows only says that nothing was found.
        let last_retry = contains(line, b"Retrying (Retry(total=0")
            || line.starts_with(b"WARNING: fetching http");
        // Nor is a warning that it goes no further without force.
        let last_retry = last_retry || contains(line, b"--force to continue");
        if inside || !last_retry && (is_in(0, line) || self.is_log(line)) {
            Quote::Source
        } else if is_in(2, line) && !own_trouble(line) && (self.tests_run || !is_in(7, line)) {
            Quote::Location
        } else if is_in(3, line) || is_in(9, line) {
            Quote::Success
        } else {
            Quote::No
        }
    }

    /// Whether the line is in what a test printed.
    pub(super) fn is_captured(&self) -> bool {
        self.section == Section::Captured
    }

    fn is_log(&self, line: &[u8]) -> bool {
        is_in(8, line) || is_in(5, line) && (self.tests_run || !is_in(6, line))
    }

    /// Takes the next line.
    pub(super) fn follow(&mut self, line: &[u8]) {
        if line.starts_with("│ Warning: ".as_bytes()) {
            self.section = Section::Warned;
        } else if self.section == Section::Warned {
            if line.starts_with("╵".as_bytes()) {
                self.section = Section::None;
            }
        } else if line.starts_with(b"=====") {
            let title = line.trim_ascii_start();
            let opens = contains(title, b" FAILURES =") || contains(title, b" ERRORS =");
            self.section = if opens {
                Section::Pytest
            } else {
                Section::None
            };
        } else if self.section != Section::None {
            if line.starts_with(b"-----") && contains(line, b" Captured ") {
                self.section = Section::Captured;
            } else if line.starts_with(b"_____") || line.starts_with(b"!!!!!") {
                self.section = Section::Pytest;
            }
        }
    }
}

/// Whether a line is in the set at this place of [`PATTERNS`].
fn is_in(set: usize, line: &[u8]) -> bool {
    SETS[set].is_match(line)
}

/// Whether a line only repeats the status of what it ran.
pub(super) fn is_wrapper(line: &[u8]) -> bool {
    is_in(9, line)
}

/// Whether a line is one of a log: it begins with a time or a level.
pub(super) fn is_log(line: &[u8]) -> bool {
    is_in(5, line) || is_in(8, line)
}

/// Whether a program marks the line as an error: by a word before it, by its severity, by the type that it raises.
pub(super) fn is_marked(line: &[u8]) -> bool {
    static MARKED: Single = Single::new(
        r"(?i)^[^\[]{0,40}\[(?:emerg|alert|crit|fatal|panic|error)\]\W+\w|^(?:\S+:\s+|[\w.-]+ ){0,2}\W*(?:fatal|error)(?:\[[\w:-]+\])?:\s+\S|(?-i:^\W*(?:[A-Za-z_]\w*(?:\.|::))*[A-Z]\w*(?:Error|Exception): \S)",
    );
    MARKED.first_in(line).is_some()
}

/// A place where the compiler itself, or the running program, came to grief, as against what is wrong in the source.
fn own_trouble(line: &[u8]) -> bool {
    static OWN: Single = Single::new(
        r"fatal error: |internal compiler error|:in |\)\] |: error while writing |: java\.",
    );
    OWN.first_in(line).is_some()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted_as(quoted: &mut Quoted, line: &str) -> Quote {
        quoted.follow(line.as_bytes());
        quoted.kind(line.as_bytes())
    }

    #[test]
    fn every_pattern_compiles_and_is_found_where_it_matches() {
        for patterns in PATTERNS {
            let set = regex::bytes::RegexSetBuilder::new(patterns)
                .unicode(false)
                .build();
            assert!(set.is_ok(), "{:?}", set.err());
            crate::policy::patterns::tests::nothing_is_missed(patterns);
        }
    }

    #[test]
    fn code_names_and_logs_are_quotes() {
        for (line, quote) in [
            ("12 |     status = 403  # permission denied", Quote::Source),
            ("test tests::returns_429 ... ok", Quote::Name),
            (
                "2026-03-01T00:00:07.000Z WARN upstream: connection reset",
                Quote::Source,
            ),
            (
                "warning: spurious network error (1 try remaining): timed out",
                Quote::Source,
            ),
            ("ld: cannot open output file: Permission denied", Quote::No),
            ("    at connect (net.js:10:3)", Quote::Source),
            ("  left: \"No space left on device\"", Quote::Source),
        ] {
            assert_eq!(quoted_as(&mut Quoted::default(), line), quote, "{line}");
        }
    }

    #[test]
    fn in_a_pytest_report_only_the_error_lines_speak() {
        let mut quoted = Quoted::default();
        assert_eq!(
            quoted_as(
                &mut quoted,
                "=================== FAILURES ==================="
            ),
            Quote::No
        );
        assert_eq!(
            quoted_as(&mut quoted, "open('x')  # Permission denied"),
            Quote::Source
        );
        assert_eq!(
            quoted_as(
                &mut quoted,
                "E   OSError: [Errno 28] No space left on device"
            ),
            Quote::No
        );
        assert_eq!(
            quoted_as(&mut quoted, "----------- Captured stdout call -----------"),
            Quote::Source
        );
        assert_eq!(quoted_as(&mut quoted, "Permission denied"), Quote::Source);
        assert_eq!(
            quoted_as(
                &mut quoted,
                "=========== short test summary info ==========="
            ),
            Quote::No
        );
    }
}
