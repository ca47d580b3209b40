//! Which line of an output says what is wrong, where the one that decided only counts, heads or ends a report.

use std::sync::LazyLock;

use super::crash;
use super::inputs::{Inputs, complained};
use super::rules::Quote;
use super::scan::{Quoted, is_log, is_marked, is_wrapper};
use crate::model::failure::{Cause, EvidenceSource};
use crate::model::feedback::CheckKind;
use crate::policy::patterns::{Patterns, Single};
use crate::policy::text::{Line, Text, places};

/// How many lines below a heading say what it is about.
const NEAR: usize = 8;

/// What is counted in a summary.
const COUNTED: &str = "\
    error errors warning warnings problem problems issue issues finding findings diagnostic diagnostics violation \
    violations offense offenses failure failures failed fail failing test tests spec specs examples passed pass \
    passing file files timeout timed crashing crash opportunity opportunities leak leaks";

/// A line that heads a report: what is wrong comes below it.
static HEADING: Single = Single::new(
    r"^(?:BUILD FAILED$|Parse error at \S+$|Usage: \S|== Compilation error in file |\*{5,} Module |A problem occurred |Cause: |Execution failed for task |Fail(?:ure|ing)\b.* (?:->|@) |Failing \w+:|In \S+ line \d+:|Test: .*\.\.\.FAILED$|Error compiling .* file:|\W*\w+ failed[!.:]?$|File \x22[^\x22]+\x22, lines? \d+.*:$|\S+:\d+:\d+ \w+ (?:\xE2\x94\x81)+|An error occurred while loading |ERROR \S+\.py$|ImportError(?:: Failed to import| while (?:import|load)ing) (?:test module|conftest)|npm (?:error|ERR!) code \S+$|_+ ERROR collecting |FAIL\s+(?:\S+ \[|\S+\.\w+$)|(?:[\w -]+ )?(?i:errors?|problems?|failures?|issues?|violations?|findings) (?:was|were) (?:detected|encountered|found|reported)[.:]*$|.*: error: \[\w+\]$|(?i:error): (?:\[\w+\]|[A-Z][A-Z\d_]{6,})$)",
);
/// A line that ends one: what is wrong came before it.
static FOOTER: Single = Single::new(
    r"^(?:BEGIN failed--|.* had compilation errors|.* aborted due to compilation errors|collect2: |compilation terminated|\W*Failed to build\W*$|(?:Error: )?Failed to compile\b|\s*(?:but )?expecting ['\x22#\w]|error: subprocess-exited-with-error|error: could not compile|\W*Some errors were emitted|Errors while running CTest|Failed validating '|ninja: build stopped|\W*[Bb]uild failed\W*$|error: (?:build failed|Type checking failed\.?$|Test failed$)|\d+: \(|[-+]{2}\S|Another git process seems |.*\bThere (?:was|were) \d+ errors?\b|\W*\(?\d+ ?/ ?\d+\)?\W*$|.*\b(?:file|config(?:uration)?)\b.* (?:test|check|validation) failed\W*$|.*\b[Ee]rror(?:s|\(s\))? (?:was |were )?found (?:in|at) |.*\bloading .* failed\b|.*\bnot loaded due to errors|(?i:detail): |\W*[Tt]ry ['\x22`].*(?:\s-h|help)\b)",
);
/// A property of an error that is printed as an object, or nothing but a place.
static PROPERTY: Single = Single::new(
    r"^(?:(?:npm (?:error|ERR!) *)?[a-z_$][\w$]*: (?:'[^']*'|-?\d+),?|(?:at |in |on |from )?[^\s:]+\.\w+:\d+(?:[:.]\d+(?:-\d+)?)?:?)$",
);

/// What a finding looks like, the text in the first group.
static FINDINGS: [Single; 9] = [
    // A place and a text.
    Single::new(
        r"^\W{0,4}(?:\d+[.)] +)?(?:\[\w+\] *|\w[\w-]*: )?(?:[^\s:(]*\.\w[\w-]*|\w*file)(?:\(\d+(?:, ?\d+)?\)|: \d+:|:\d+(?:[:.,]\d+(?:-\d+(?:[:.]\d+)?)?)?)\]?:?(?: +-)?:? +(\S.* \S.*)",
    ),
    Single::new(r"^(?:[^\s:(]*\w\.\w+:\([^()]*\)): (\S.* \S.*)"),
    Single::new(
        r"^\s*(?:line )?\d+(?::| col(?:umn)? ?)\d+:?\s+(?:- )?(\S.*\s\S.*)|^[CWEFRI]: *\d+: *\d+: (\S.*\s\S.*)",
    ),
    // Marks below the source, and what is wrong there.
    Single::new(r"^[\s\d|:]*\^[-~^]*\s+(\S.*\s\S.*)$|\xE2\x95\xB0(?:\xE2\x94\x80)+ +(\S.*)$"),
    // A mark before it.
    Single::new(
        r"^(?:\s|\xE2\x94\x83|\xE2\x94\x82)*(?:\xC3\x97|\xE2\x9C\x96|\xE2\x9C\x97|\xE2\x9C\x98|\xE2\x9D\x8C|!|x|\[[A-Z]\](?: \xE2\x86\x92)?|>>)\s+(\S.*\s\S.*)|^\s*(\[[45]\d\d\] \S.*)",
    ),
    // The word.
    Single::new(
        r"(?i)^\W*(?:[\w.-]+: )?(?:(?:fatal|syntax|type|compile) )?(?:error|fatal|fehler|erreur|failure)(?:\[[^\]]*\])?\b\W+(\S.* \S.*)|^[^\[]{0,40}\[(?:emerg|alert|crit|fatal|panic)\]\W+(\S.* \S.*)",
    ),
    // The innermost cause.
    Single::new(r"^\s*\xE2\x95\xB0\xE2\x94\x80\xE2\x96\xB6 +(\S.*)|^\s*=+> (\S.*)"),
    Single::new(r"(?i)^\W*warn(?:ing)?\b\W+(\S.* \S.*)"),
    // The place behind it.
    Single::new(r"^(\S.* \S.*) - [^\s:(]*\.\w+:\d+(?::\d+)?$"),
];
/// Which of them are drawn, so that only the text in them speaks.
const DRAWN: [u16; 2] = [3, CAUSE];
/// Which of them is the innermost cause.
const CAUSE: u16 = 6;
/// Which of them only warns.
const WARNING: u16 = 7;
/// All forms in one pass: most lines have none.
static FINDING_PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(finding_patterns()));

/// Why a test failed, the text in the first group.
static REASONS: [Single; 9] = [
    // pytest.
    Single::new(r"^E\s{2,}([^\s\d\[].*|\d[^/]*)$"),
    // An error by its type.
    Single::new(
        r"^\s*(?:[-*\d.)]+ )?(?:error: )?((?:[A-Za-z_]\w*(?:\.|::|\\))*(?:(?:[A-Z]\w*)?(?:Error|Exception|Failed)|[A-Z]\w+Failure|FailTest)(?: \[\w+\])?:(?: .*)?|[A-Z]\w*(?:::[A-Z]\w+)+:)$",
    ),
    // Rust, Robot Framework: on the next line.
    Single::new(r"^thread '.*' (?:\(\d+\) )?panicked at (\S+:\d+:\d+:)$|^(\S.*) \| FAIL \|$"),
    // Go.
    Single::new(r"^\s+\S+_test\.go:\d+: (.+)|^panic: (.+?)(?: \[recovered\])?$"),
    // TAP.
    Single::new(
        r"^\s+(?:error|message): ['\x22](.+)['\x22],?$|^  message: ([^'\x22|>\s].*)$|^\s*# +(Failed test .+)",
    ),
    // Words of comparison.
    Single::new(
        r"(?i)^\s*(?:\S+:\d+:(?:\d+:)? |\d+(?:\.\d+)*\) |\W{1,3}|error: |tests? failed: )?((?:failed asserting|failed example:|expected: |assert(?:ion)?\b.*\bfailed|expected\b.* .*\S \S|expect\(.*\)\.|the \w+ should|failure/error: ).*|.*\bexpected: ?<.*> but was: ?<.*)",
    ),
    // The error that is raised in a program's own words.
    Single::new(r"^\s*\*\* (\(\w.*)"),
    // A mark and a test.
    Single::new(r"^\W*(?:FAIL|FAILED)\b[ :-]+([^\s-].*)"),
    Single::new(r"^(?:FAILED|ERROR) \S+::\S.* - (.+)$"),
];
/// All forms in one pass.
static REASON_PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns::new(reason_patterns()));
/// From here on a reason is only what a line says that names a test.
const OF_NAMES: usize = 7;
/// Which is pytest's own.
const PYTEST: usize = 0;
/// Which names an error by its type.
const TYPED: usize = 1;
/// Which is a heading: why is on the next line.
const HEADS: usize = 2;

/// What is no word of what is wrong: advice, notes.
static ASIDE: Single = Single::new(
    r"(?i)^\W*(?:note|info|hint|help|tip|debug)\b|^\s*(?-i:i) |\((?:info|note|style)(?:/\d)?\)|^\W*(?:error|warning)s? (?:was|were|is|are)\b",
);
/// A finding that only warns.
static WARNS: Single = Single::new(
    r"(?i)^\W*(?:\w\b: *\d+: *\d+: )?(?:! |warn(?:ing)?\b)|[:\s(-]warn(?:ing)?\b[:\s)]",
);
/// One that is an error.
static ERRS: Single = Single::new(
    r"(?i)\berror\b|\bfehler\b|\berreur\b|^\s*(?:\xC3\x97|\xE2\x9C\x96|x) |\s\xE2\x9C\x96\s|^E: |\bE\d{3,4}\b|\(error|undefined reference|\[(?:emerg|alert|crit|fatal|panic)\]",
);

fn finding_patterns() -> impl Iterator<Item = &'static str> {
    FINDINGS.iter().map(Single::pattern)
}

fn reason_patterns() -> impl Iterator<Item = &'static str> {
    REASONS.iter().map(Single::pattern)
}

/// The patterns that lines are matched against.
#[cfg(test)]
pub(super) fn patterns() -> impl Iterator<Item = &'static str> {
    finding_patterns().chain(reason_patterns())
}

/// What says more than `message`, the line that decided, where that says nothing itself.
pub(super) fn instead_of(
    inputs: &Inputs<'_>,
    source: EvidenceSource,
    line: Option<u64>,
    cause: Cause,
    message: &str,
) -> Option<String> {
    // An agent's words are its own.
    let counts = inputs.stage != Some(CheckKind::Agent) && is_count(message);
    let words: Option<&Single> = match cause {
        Cause::ToolTimeout => Some(&TIMES),
        Cause::Crashed => Some(&DIES),
        _ => None,
    };
    if let Some(words) = words {
        let wraps = counts || message.starts_with("process didn't exit successfully");
        return wraps.then(|| with_words(inputs, words, message)).flatten();
    }
    let is = |form: &Single| form.first_in(message.as_bytes()).is_some();
    if is(&OWN_WARNING) {
        return complained(inputs);
    }
    let around = crash::is_around(message);
    // A file's name heads what is found in it.
    let names = cause == Cause::VerificationFailed && is(&PATH);
    let (heads, ends, property) = (is(&HEADING), is(&FOOTER), is(&PROPERTY));
    let text = inputs.stream(source);
    let finding = |from| {
        let other = || finding(other(inputs, source), 0, message);
        finding(text, from, message).or_else(other)
    };
    if names {
        let (rank, found) = self::finding(text, 0, message)?;
        return (rank < 2).then_some(found);
    }
    if !(counts || around || heads || ends || property) {
        // A warning is not what a check failed of where there is an error; nor is that a file cannot be read, where its
        // error is at a place in it.
        let warns = cause == Cause::VerificationFailed && (is(&WARNS) || is(&ASIDE));
        let reads = is(&READS);
        let of_file = |found: &str| {
            let places = places(found);
            places.iter().any(|place| message.contains(&place.path))
        };
        let reads = reads && places(message).is_empty();
        let (rank, found) = (warns || reads).then(|| finding(0)).flatten()?;
        return (rank == 0 && (warns || of_file(&found))).then_some(found);
    }
    let raised = || Some(inputs.raised()?.text.clone()).filter(|text| text != message);
    let near = || {
        let number = line?;
        if heads {
            below(text, number)
        } else {
            above(text, number)
        }
    };
    let reason = || {
        let tests = cause == Cause::VerificationFailed || heads;
        let reason = tests.then(|| reason(inputs)).flatten();
        reason.filter(|reason| reason != message)
    };
    let found = || Some(finding(line.filter(|_| heads).unwrap_or(0))?.1);
    if property && !around {
        // A place stands below what is wrong there; a property among others.
        return sibling(text, line?).or_else(raised).or_else(near);
    }
    boxed(text)
        .filter(|_| heads || ends)
        .or_else(|| raised().filter(|_| !counts))
        .or_else(|| sibling(text, line?).filter(|_| property))
        .or_else(|| reason().filter(|_| heads))
        .or_else(found)
        .or_else(reason)
        .or_else(|| near().filter(|_| heads || ends || property))
}

/// The first line that a program marks as an error, where it says what is wrong.
pub(super) fn marked(text: &Text, tests_run: bool) -> Option<Line<'_>> {
    let mut quotes = Quoted::new(tests_run);
    text.lines().find(|line| {
        quotes.follow(line.bytes);
        let is = |form: &Single| form.first_in(line.bytes).is_some();
        is_marked(line.bytes)
            && !is_wrapper(line.bytes)
            && matches!(quotes.kind(line.bytes), Quote::No | Quote::Location)
            && !is(&HEADING)
            && !is(&FOOTER)
            && !is_count(&line.to_text())
    })
}

/// Python's own warning of a tool's source.
static OWN_WARNING: Single = Single::new(r"^\S+:\d+: \w+Warning: ");
/// Nothing but a path.
static PATH: Single = Single::new(r"^[\w./@+-]+\.\w+$");
/// Something was not read.
static READS: Single = Single::new(
    r"(?i)\b(?:error|failed|cannot|can't|could not|unable)\b.{0,20}\b(?:read|load|pars|open)",
);

fn other<'a>(inputs: &Inputs<'a>, source: EvidenceSource) -> &'a Text {
    match source {
        EvidenceSource::Stderr => inputs.stdout,
        _ => inputs.stderr,
    }
}

/// Words of a time limit.
static TIMES: Single = Single::new(r"(?i)\btime(?:d|s)?[ _-]?outs?\b|\btime limit\b");
/// Words of a crash.
static DIES: Single = Single::new(r"(?i)\bcrash|\bsignal\b|\bstack overflow|\boverflowed\b");

/// The first line with such words that counts nothing, and is not `known`.
fn with_words(inputs: &Inputs<'_>, words: &Single, known: &str) -> Option<String> {
    let lines = inputs.texts().into_iter().flat_map(Text::lines);
    lines
        .filter(|line| words.first_in(line.bytes).is_some())
        .map(Line::to_text)
        .find(|said| said != known && !is_count(said))
}

/// Whether a line only says how many there are of something, at no place.
pub(super) fn is_count(line: &str) -> bool {
    if !line.bytes().any(|byte| byte.is_ascii_digit()) || !places(line).is_empty() {
        return false;
    }
    let words: Vec<&str> = line
        .split(|c: char| !(c.is_alphanumeric() || matches!(c, ':' | '=')))
        .filter(|word| word.contains(char::is_alphanumeric))
        .flat_map(|word| match word.split_once('=') {
            Some((name, number)) if !number.is_empty() => [&word[..=name.len()], number],
            _ => [word, ""],
        })
        .filter(|word| !word.is_empty())
        .collect();
    let bare = |word: &str| word.trim_matches([':', '=']).to_lowercase();
    let counted = |word: &&str| {
        let word = bare(word);
        COUNTED.split(' ').any(|known| known == word)
    };
    let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
    // What a place in a line is followed by is no count.
    words
        .windows(2)
        .any(|pair| is_number(&pair[0]) && counted(&pair[1]) && !pair[1].ends_with(':'))
        || words
            .windows(3)
            .any(|three| is_number(&three[0]) && counted(&three[2]))
        || words
            .windows(2)
            .any(|pair| counted(&pair[0]) && is_number(&pair[1]) && !is_numbered(pair[0]))
}

/// Whether a number behind a word is its name rather than how many there are: `error 403`.
fn is_numbered(word: &str) -> bool {
    !word.ends_with([':', '=', 's', 'S', 'd', 'D'])
}

/// The first finding of a text from a line on that is not `known`: an error (0), else what is none, else a warning (2).
fn finding(text: &Text, from: u64, known: &str) -> Option<(usize, String)> {
    let mut best: [Option<String>; 3] = [None, None, None];
    let mut before: Option<Line<'_>> = None;
    for line in text.lines().filter(|line| line.number >= from) {
        let said = line.to_text();
        let matched = FINDING_PATTERNS.matches(line.bytes);
        let found = matched.iter().find_map(|number| {
            let found = FINDINGS[usize::from(*number)].first_in(line.bytes)?;
            let text = String::from_utf8_lossy(&line.bytes[found.first_group()?]).into_owned();
            Some((*number, text))
        });
        let found = found
            .filter(|(_, text)| is_sentence(text))
            .map(|(number, text)| {
                let is = |form: &Single| form.first_in(line.bytes).is_some();
                let rank = match number {
                    WARNING => 2,
                    _ if is(&WARNS) => 2,
                    _ if is(&ERRS) => 0,
                    _ => 1,
                };
                let shown = if DRAWN.contains(&number) {
                    text
                } else {
                    said.clone()
                };
                (rank, shown)
            });
        let is_aside = ASIDE.first_in(line.bytes).is_some() || is_count(&said) || said == known;
        let place = is_place(&said);
        if let Some((rank, shown)) = found.filter(|_| !is_aside && !place) {
            best[rank].get_or_insert(shown);
        } else if place {
            // A place on a line of its own: what is wrong there is right above it, else below.
            let above = before
                .filter(|above| above.number + 1 == line.number)
                .map(Line::to_text);
            let about = above
                .filter(|above| is_sentence(above))
                .or_else(|| below(text, line.number));
            if let Some(about) = about.filter(|about| !is_count(about)) {
                best[1].get_or_insert(about);
            }
        }
        if best[0].is_some() {
            // Drawn below it may be its causes, the innermost last.
            best[0] = innermost(text, line.number).or(best[0].take());
            break;
        }
        before = Some(line);
    }
    let mut ranked = best.into_iter().enumerate();
    ranked.find_map(|(rank, found)| Some((rank, found?)))
}

/// The innermost cause that is drawn near below a line.
fn innermost(text: &Text, number: u64) -> Option<String> {
    let mut near = text.lines().filter(|line| line.number > number).take(NEAR);
    near.find_map(|line| {
        let group = FINDINGS[usize::from(CAUSE)]
            .first_in(line.bytes)?
            .first_group()?;
        Some(String::from_utf8_lossy(&line.bytes[group]).into_owned())
    })
}

/// What is said in a box that is drawn with "Error" as its title.
fn boxed(text: &Text) -> Option<String> {
    static TITLE: Single = Single::new(r"^\xE2\x95[\xAD\x94]\W+(?:\w+ )?[Ee]rror\W+$");
    let mut lines = text.lines();
    lines.find(|line| TITLE.first_in(line.bytes).is_some())?;
    let said = lines.next()?.to_text();
    let said = said
        .trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{2502}' | '\u{2551}' | ':'));
    (!said.is_empty()).then(|| said.to_owned())
}

/// Whether a line names only a place, and what kind of thing is there.
fn is_place(line: &str) -> bool {
    static PLACE: Single = Single::new(
        r"^(?:\[[\w/ ]+\] )?[^\s:]+\.\w+:\d+(?::\d+)?(?: (?:at #\S*|[A-Z]\w+/\w+: .*))?$",
    );
    PLACE.first(line).is_some()
}

/// Whether a text is more than a code or a mark.
fn is_sentence(text: &str) -> bool {
    let words = text
        .split_whitespace()
        .filter(|word| word.chars().filter(|c| c.is_alphabetic()).count() >= 2)
        .count();
    words >= 2 && !text.ends_with('\u{2501}') && FOOTER.first(text).is_none()
}

/// The line below one that says what it announces, past printed source and its marks; a chain of causes to its end.
pub(super) fn below(text: &Text, number: u64) -> Option<String> {
    let lines = text.lines().filter(|line| line.number > number).take(NEAR);
    let mut found: Option<String> = None;
    for line in lines.filter(|line| !is_source(line.bytes)) {
        let said = line.to_text();
        let chained = |text: &str| text.starts_with(['>', '=']) || text.starts_with("Cause: ");
        match &found {
            None => found = Some(said),
            // Nested marks lead to the innermost cause.
            Some(last) if chained(last) && chained(&said) => found = Some(said),
            Some(last) if last.ends_with(':') || last.contains(" parse error at ") => {
                found = Some(format!("{last} {said}"));
            }
            Some(_) => break,
        }
    }
    found.filter(|text| !text.is_empty())
}

/// The line above one that says something.
fn above(text: &Text, number: u64) -> Option<String> {
    let lines = text.lines().rev().filter(|line| line.number < number);
    lines
        .take(NEAR)
        .filter(|line| !is_source(line.bytes))
        .map(Line::to_text)
        .find(|said| is_sentence(said))
}

/// Whether a line is printed source or a mark in it.
fn is_source(line: &[u8]) -> bool {
    static PRINTED: Single = Single::new(
        r"^\s*(?:>?\s*\d+\s*(?:\||\xE2\x94\x82)|\||\xE2\x94\x82|\xE2\x95[\xAD-\xB0]|\xE2\x94\x8C|\xE2\x94\x80|\d+  \S|[\^~\s-]+$|\d+ \|)|^Reference: |^npm (?:error|ERR!) (?:syscall|errno|code|path)\b",
    );
    PRINTED.first_in(line).is_some()
}

/// Among the properties of an error, its message.
fn sibling(text: &Text, number: u64) -> Option<String> {
    static MESSAGE: Single = Single::new(r"^\s*(?:error|message): ['\x22](.+)['\x22],?$");
    let near = text
        .lines()
        .filter(|line| line.number.abs_diff(number) <= NEAR as u64);
    near.into_iter().find_map(|line| {
        let group = MESSAGE.first_in(line.bytes)?.first_group()?;
        Some(String::from_utf8_lossy(&line.bytes[group]).into_owned())
    })
}

/// Why the first test failed: the error or comparison that its report names.
pub(super) fn reason(inputs: &Inputs<'_>) -> Option<String> {
    let mut streams = [inputs.stdout, inputs.stderr].into_iter();
    streams.find_map(reason_in)
}

/// A reason with the line below it, where a colon announces that, or it says what there was instead.
fn with_next(said: String, next: Option<&Line<'_>>) -> String {
    static INSTEAD: Single = Single::new(r"(?i)^\s*(?:actual|received|got|but was): ");
    let goes_on = |line: &&Line<'_>| said.ends_with(':') || INSTEAD.first_in(line.bytes).is_some();
    match next.filter(goes_on) {
        Some(line) => format!("{said} {}", line.to_text()),
        None => said,
    }
}

fn reason_in(text: &Text) -> Option<String> {
    let mut quotes = Quoted::new(true);
    let mut named = None;
    let lines: Vec<Line<'_>> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        quotes.follow(line.bytes);
        if quotes.is_captured() {
            continue;
        }
        let matched = REASON_PATTERNS.matches(line.bytes);
        // A heading of a kind of failure is none.
        let is_head = line.bytes.ends_with(b") Error:") || line.bytes.ends_with(b") Failure:");
        let Some(&number) = matched.iter().find(|_| !is_head && !is_log(line.bytes)) else {
            continue;
        };
        let number = usize::from(number);
        let Some(group) = REASONS[number]
            .first_in(line.bytes)
            .and_then(|found| found.first_group())
        else {
            continue;
        };
        let mut said = String::from_utf8_lossy(&line.bytes[group])
            .trim()
            .to_owned();
        // The error is named below the source that it is about.
        let typed = |line: &&Line<'_>| {
            let said = line.to_text();
            let said = said
                .strip_prefix('E')
                .map_or(said.as_str(), str::trim_start);
            let found = REASONS[TYPED].first_in(said.as_bytes());
            let is_error = found.is_some() || said.starts_with("expected: ");
            is_error.then(|| said.to_owned())
        };
        let is_source =
            number == PYTEST && said.starts_with("File \"") || said.starts_with("Failure/Error: ");
        if is_source {
            let near = lines[at + 1..].iter().take(NEAR).enumerate();
            let mut named = near.filter_map(|(index, line)| Some((index, typed(&line)?)));
            if let Some((index, named)) = named.next() {
                return Some(with_next(named, lines.get(at + index + 2)));
            }
        }
        // What a mark with a name announces is on the next line.
        let next = || {
            lines
                .get(at + 1)
                .map(|line| line.to_text())
                .unwrap_or_default()
        };
        if number == HEADS {
            said = next();
        } else if number == OF_NAMES && !said.contains(' ') {
            said = format!("{said} {}", next());
        } else {
            said = with_next(said, lines.get(at + 1));
        }
        let counts = number > TYPED && is_count(&said);
        if counts || said.is_empty() {
            continue;
        }
        if number >= OF_NAMES {
            named.get_or_insert(said);
        } else {
            return Some(said);
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::patterns::tests::nothing_is_missed;

    fn text(output: &str) -> Text {
        Text::new(output.as_bytes())
    }

    #[test]
    fn every_pattern_compiles_and_is_found_where_it_matches() {
        let forms = FINDINGS.iter().chain(&REASONS);
        for pattern in forms.chain([
            &HEADING,
            &FOOTER,
            &PROPERTY,
            &ASIDE,
            &WARNS,
            &ERRS,
            &TIMES,
            &DIES,
            &READS,
            &OWN_WARNING,
            &PATH,
        ]) {
            assert!(pattern.compiles());
        }
        nothing_is_missed(&patterns().collect::<Vec<_>>());
    }

    #[test]
    fn what_only_counts_does_not_speak() {
        for (line, counts) in [
            ("Found 3 errors.", true),
            ("\u{2716} 12 problems (4 errors, 8 warnings)", true),
            ("9 passed, 0 failed, 1 timed out", true),
            ("Issues : 4", true),
            ("(failures=1, successes=1)", true),
            ("2 files inspected, 3 offenses detected", true),
            ("ERROR: HTTP error 403 while getting the moon", false),
            ("error: expected 2 arguments, found 3", false),
            ("src/a.rs:3: 2 errors", false),
            ("the moon is in house 7", false),
            ("Tests failed", false),
        ] {
            assert_eq!(is_count(line), counts, "{line}");
        }
    }

    #[test]
    fn the_first_error_is_the_finding() {
        for (output, expected) in [
            (
                "a.foo:1:2: warning: late moon\na.foo:3:4: error: no moon here\nFound 2 problems\n",
                "a.foo:3:4: error: no moon here",
            ),
            (
                "  1:3  warning  late moon  rule\n  2:3  error  no moon  rule\n",
                "2:3  error  no moon  rule",
            ),
            (
                "rule-x: The moon is late\nb.foo:3\n\nrule-y: It is early\nb.foo:9\n",
                "rule-x: The moon is late",
            ),
            (
                "[1] o.foo:1:1 at #/moon\n\nThe moon must be present.\n\n1 | moon\n",
                "The moon must be present.",
            ),
            (
                "In m.foo line 2:\nmoon $x\n     ^-- X1 (warning): Quote the moon.\n",
                "X1 (warning): Quote the moon.",
            ),
            (
                "  i a moon is shown\n  \u{d7} this moon is unexpected\n",
                "\u{d7} this moon is unexpected",
            ),
            ("3 errors\n", ""),
        ] {
            assert_eq!(
                finding(&text(output), 0, "").unwrap_or_default().1,
                expected,
                "{output}"
            );
        }
    }

    #[test]
    fn a_failed_test_has_its_reason() {
        for (output, expected) in [
            (
                "    def test_a():\n>       f()\nE       moon.Late: by 3 days\n\na.py:3: Late\n",
                "moon.Late: by 3 days",
            ),
            (
                "--- FAIL: TestMoon (0.00s)\n    moon_test.go:8: moon = late, want full\nFAIL\n",
                "moon = late, want full",
            ),
            (
                "thread 'a' panicked at src/m.rs:3:9:\nthe moon is late\n",
                "the moon is late",
            ),
            (
                "not ok 1 - moon\n  ---\n  error: 'moon is late'\n  code: 'X'\n",
                "moon is late",
            ),
            (
                "  1) moon\n     Failure/Error: expect(moon).to eq(1)\n",
                "Failure/Error: expect(moon).to eq(1)",
            ),
            (
                "FAIL: moon (a.M)\nTraceback (most recent call last):\n  File \"a.py\", line 1, in moon\nAssertionError: 1 != 2\n",
                "AssertionError: 1 != 2",
            ),
            ("ok\n3 tests, 1 failure\n", ""),
        ] {
            assert_eq!(
                reason_in(&text(output)).unwrap_or_default(),
                expected,
                "{output}"
            );
        }
    }
}
