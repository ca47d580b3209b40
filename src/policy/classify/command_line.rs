//! What a tool says of the words of its own command line, where no rule knows the tool.

use super::complaint;
use super::complaint::{Kind, Said};
use super::rules::Quote;
use super::rules::{BROKEN, INVALID, MISSING, Verdict};
use super::scan::Quoted;
use crate::policy::program::{Words, is_own, of_line};
use crate::policy::text::{Line, Text};

/// How many of the last lines may say what the command line asked for in vain.
const LAST_LINES: usize = 12;
/// An answer to a word of the command line, and the line that gives it.
pub(super) struct Answer<'a> {
    pub line: Line<'a>,
    pub rule: &'static str,
    pub verdict: Verdict,
}

/// The last line that says of an option that it is refused, or of an option's value that it is not one.
pub(super) fn refused<'a>(command: &str, text: &'a Text) -> Option<Answer<'a>> {
    answer(command, text, |word, said, line| match (word.role, said) {
        (Role::Option, _) => Some(("shape.option", INVALID)),
        (Role::Value, Said::Refused) if !is_path(word.text) => Some(("shape.value", INVALID)),
        (Role::Value, Said::Missing) => {
            let verdict = of_missing_value(command, word.text, line);
            (verdict != MISSING).then_some(("shape.value", verdict))
        }
        _ => None,
    })
}

/// The last line that says of a word of the command line, but for the program, that it is not there.
pub(super) fn not_there<'a>(command: &str, text: &'a Text) -> Option<Answer<'a>> {
    answer(command, text, |word, said, line| match (word.role, said) {
        (Role::Value, Said::Missing) => (of_missing_value(command, word.text, line) == MISSING)
            .then_some(("shape.not-there", MISSING)),
        (Role::Plain, Said::Missing) => {
            // The tool's own command, as against what it is to run.
            let own = arguments(command, 1).any(|argument| argument == word.text);
            let command =
                complaint::find(line).is_some_and(|lack| lack.kind == Some(Kind::Command));
            Some(if own && command {
                ("shape.command", INVALID)
            } else {
                ("shape.not-there", MISSING)
            })
        }
        (Role::Option, _) | (Role::Value | Role::Plain, Said::Refused) => None,
    })
}

/// The first line, where it is about a place in the configuration of the program that was run, and no line is about
/// another file.
pub(super) fn own_configuration<'a>(command: &str, text: &'a Text) -> Option<Line<'a>> {
    const ENDS: [&str; 10] = [
        "toml", "ini", "cfg", "conf", "yml", "yaml", "json", "jsonc", "neon", "xml",
    ];
    let programs: Vec<String> = arguments(command, 0)
        .map(|name| name.to_ascii_lowercase())
        .collect();
    let is_own = |file: &str| {
        let name = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
        let configures = name.starts_with('.')
            || name.contains("config")
            || ENDS.iter().any(|end| name.ends_with(&format!(".{end}")));
        configures
            && programs
                .iter()
                .any(|program| name.contains(program.as_str()))
    };
    let mut first = None;
    for line in text.lines() {
        let said = line.to_text();
        match place_of(&said) {
            Some(file) if is_own(file) => first = first.or(Some(line)),
            Some(_) => return None,
            None => {}
        }
    }
    first
}

/// Whether every program of a command line only fetches, copies and stores.
pub(super) fn only_carries(command: &str) -> bool {
    const CARRIERS: [&str; 29] = [
        "aws", "az", "borg", "cp", "curl", "fossil", "gcloud", "gh", "git", "gpg", "gsutil",
        "gzip", "hg", "ln", "mv", "openssl", "rclone", "restic", "rsync", "scp", "sftp", "ssh",
        "stow", "svn", "tar", "unzip", "wget", "xz", "zip",
    ];
    let programs = of_line(command);
    let mut names = programs
        .iter()
        .filter_map(|words| words.first())
        .filter(|name| !is_own(name))
        .peekable();
    names.peek().is_some() && names.all(|name| CARRIERS.contains(&name.as_str()))
}

/// Whether a line begins with a place in a file that the command line names.
pub(super) fn is_about_argument(command: &str, said: &str) -> bool {
    place_of(said).is_some_and(|file| {
        words(command)
            .iter()
            .any(|word| word.role == Role::Plain && word.text == file)
    })
}

/// Whether a line says something of a file that the command line names.
pub(super) fn names_file_of(command: &str, said: &str) -> bool {
    let mut files = words(command).into_iter();
    files.any(|word| word.text.contains('.') && said.contains(word.text))
}

/// Whether a line begins with a place in a file, perhaps after the name of the tool.
pub(super) fn is_about_place(said: &str) -> bool {
    let is_place = |token: &str| {
        let mut parts = token.split(':');
        let mut before = parts.next().unwrap_or_default();
        parts.any(|part| {
            let named = before
                .rsplit_once('.')
                .is_some_and(|(_, end)| end.starts_with(|c: char| c.is_ascii_alphabetic()));
            let is = named && part.starts_with(|c: char| c.is_ascii_digit());
            before = part;
            is
        })
    };
    said.split_whitespace().take(3).any(is_place)
}

/// The file of a line that begins with a place in one: `a.x:3: ...`, `a.x:3:4: ...`.
fn place_of(said: &str) -> Option<&str> {
    let (file, rest) = said.split_whitespace().next()?.split_once(':')?;
    (file.contains('.') && rest.starts_with(|c: char| c.is_ascii_digit())).then_some(file)
}

fn answer<'a>(
    command: &str,
    text: &'a Text,
    judge: impl Fn(Word<'_>, Said, &str) -> Option<(&'static str, Verdict)>,
) -> Option<Answer<'a>> {
    let words = words(command);
    let quotes = Quoted::new(false);
    let mut speaks = text
        .lines()
        .rev()
        .take(LAST_LINES)
        .filter(move |line| quotes.kind(line.bytes) != Quote::Source);
    speaks.find_map(|line| {
        let line_text = line.to_text();
        let mut asked = words.iter().filter(|_| !starts_with_place(&line_text));
        let (rule, verdict) =
            asked.find_map(|word| judge(*word, said_of(&line_text, *word)?, &line_text))?;
        Some(Answer {
            line,
            rule,
            verdict,
        })
    })
}

/// What is not there where an option names it: a thing of the project, a library that something is built with, or none of
/// the values that the option takes.
fn of_missing_value(command: &str, value: &str, line: &str) -> Verdict {
    /// Words of commands that fetch what is named.
    const FETCHES: [&str; 8] = [
        "install", "add", "get", "pull", "fetch", "update", "upgrade", "clone",
    ];
    /// What is made of code, and has a name that an option gives.
    const LIBRARIES: [&str; 3] = ["package", "library", "module"];
    let fetches = command
        .split_whitespace()
        .any(|word| FETCHES.contains(&word));
    let said = line.to_lowercase();
    let library = LIBRARIES.iter().any(|word| said.contains(word));
    match complaint::find(line).and_then(|lack| lack.kind) {
        Some(Kind::Thing | Kind::Code) if library && !fetches => BROKEN,
        Some(Kind::Thing) => MISSING,
        _ if is_path(value) || fetches => MISSING,
        Some(Kind::Code) => BROKEN,
        _ => INVALID,
    }
}

/// Whether a line begins with a place in a file: what is missing there is the file's business.
fn starts_with_place(said: &str) -> bool {
    let place = said.split_whitespace().next().unwrap_or_default();
    // Where a script language was when it complained is no place of the complaint.
    let frame = [":in`", ":in'", ":in"]
        .iter()
        .any(|end| place.ends_with(end));
    !frame
        && place
            .split(':')
            .nth(1)
            .is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// How short a word is that may be anything.
const MIN_WORD: usize = 3;

/// What a word of the command line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It begins with a dash.
    Option,
    /// It follows an option, or is a part of it.
    Value,
    /// Anything else.
    Plain,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    pub text: &'a str,
    pub role: Role,
}

pub(crate) fn words(command: &str) -> Vec<Word<'_>> {
    /// What an option's value may be, and what may be said of anything.
    const COMMON: [&str; 20] = [
        "all", "auto", "build", "default", "dev", "error", "errors", "false", "file", "high",
        "info", "low", "main", "none", "release", "src", "test", "tests", "true", "warning",
    ];
    let mut words = Vec::new();
    let mut add = |text, role| {
        let long: &str = text;
        if long.trim_start_matches('-').len() >= MIN_WORD
            && !(role == Role::Value && COMMON.contains(&long))
        {
            words.push(Word { text, role });
        }
    };
    let mut option = false;
    for token in command
        .split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ';' | '|' | '&' | '(' | ')'))
        .skip(1)
    {
        if let Some(name) = token.strip_prefix('-') {
            let (first, values) = token.split_once('=').unwrap_or((token, ""));
            add(first, Role::Option);
            // The letter of an option and its value in one: `-bhtml`.
            if values.is_empty()
                && !name.starts_with('-')
                && name.starts_with(|c: char| c.is_ascii_alphabetic())
            {
                add(&name[1..], Role::Value);
            }
            pieces(values).for_each(|piece| add(piece, Role::Value));
            option = values.is_empty();
        } else if !token.is_empty() {
            let role = if option { Role::Value } else { Role::Plain };
            pieces(token).for_each(|piece| add(piece, role));
            option = false;
        }
    }
    words
}

/// A word and the parts of it that may be named alone; `@` before a word says that it is a file.
fn pieces(token: &str) -> impl Iterator<Item = &str> {
    let token = token.trim_start_matches('@');
    let whole = token.contains([',', '+', '#', '=', ':']).then_some(token);
    whole
        .into_iter()
        .chain(token.split([',', '+', '#', '=', ':']))
}

/// The names of the programs that a command line runs, those that only run others left out, or their first, second, ...
/// arguments.
pub(crate) fn arguments(command: &str, place: usize) -> impl Iterator<Item = String> {
    let of_program = move |words: Words| {
        let mut names = words
            .into_iter()
            .filter(|word| !word.starts_with('-') && !word.contains('='));
        names
            .nth(place)
            .map(|name| name.rsplit('/').next().unwrap_or(&name).to_owned())
    };
    of_line(command)
        .into_iter()
        .filter_map(of_program)
        .filter(|name| name.len() >= MIN_WORD)
}

/// Whether a word names a file rather than a choice.
pub(crate) fn is_path(word: &str) -> bool {
    word.contains('/')
        || word
            .rsplit_once('.')
            .is_some_and(|(_, end)| end.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// How many words may be between "unknown" and what is unknown.
const BETWEEN: usize = 5;

/// Then at most [`BETWEEN`] words, and the word; a bar is between two phrases, here and below.
const BEFORE: &str = "\
    no such |unknown |unrecognized |unrecognised |no idea |don't know |do not know |\
    doesn't know |cannot find |can't find |couldn't find |could not find |couldn't resolve |\
    could not resolve |cannot resolve |cannot locate |could not locate |unable to find |\
    unable to locate |cannot open |can't open |could not open |couldn't open |unable to open |\
    failed to open |unable to access |never heard of |nothing matches |nothing called |\
    nothing named |never defined: |does not contain |does not provide |does not have |\
    not a valid |not a known ";
const AFTER: &str = "\
    not found|not be found|not exist|doesn't exist|unknown|not known|not defined|\
    isn't defined|missing|not registered|not available|not a task|not a target|\
    not a valid task|not a valid target|not a command";
/// What is said of an option or of its value, before it and after it.
const REFUSED: &str = "\
    not a valid |invalid |illegal |unexpected |not understand |unsupported |bad |\
    error parsing |not support ";
const REFUSES: &str = "wants|expects|requires|must |needs|cannot|not |takes |conflicts";
const REFUSES_VALUE: &str = "\
    not a valid|not valid|not supported|unsupported|not recognized|not recognised|not one of|\
    not allowed|invalid";

/// What a line says of a word, right before or right after it.
fn said_of(said: &str, word: Word<'_>) -> Option<Said> {
    let mut places = said
        .match_indices(word.text)
        .map(|(start, _)| (start, start + word.text.len()));
    places.find_map(|(start, end)| {
        if is_the_word(said.as_bytes(), start, end) {
            said_around(&said[..start], word, &said[end..])
        } else {
            None
        }
    })
}

/// Whether what stands there is a word: neither a part of a path or of a longer name, nor the place of something else
/// (`a.x:3:`, `a.x(3)`).
fn is_the_word(bytes: &[u8], start: usize, end: usize) -> bool {
    let joins = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'/');
    let before = start.checked_sub(1).and_then(|before| bytes.get(before));
    let (after, then) = (bytes.get(end), bytes.get(end + 1));
    let comes_from = before.is_some_and(|byte| joins(byte) || *byte == b'.');
    let goes_on = after.is_some_and(joins) || after == Some(&b'.') && then.is_some_and(joins);
    let place = matches!(after, Some(b':' | b'(')) && then.is_some_and(u8::is_ascii_digit);
    !comes_from && !goes_on && !place
}

/// What is said of a word by what stands before and after it.
fn said_around(before: &str, word: Word<'_>, after: &str) -> Option<Said> {
    let before = before.to_ascii_lowercase();
    let after = after
        .trim_start_matches(['\'', '"', '`', '\u{2019}', '\u{bb}', ' '])
        .to_ascii_lowercase();
    let verbs = ["was ", "is ", "does ", "could ", "can "];
    let after = verbs.iter().fold(after.as_str(), |after, verb| {
        after.strip_prefix(verb).unwrap_or(after)
    });
    let precede = |phrases: &str| {
        phrases
            .split('|')
            .any(|phrase| leads_to_end(&before, phrase))
    };
    let follow = |phrases: &str| phrases.split('|').any(|phrase| after.starts_with(phrase));
    let refused = match word.role {
        Role::Option => precede(REFUSED) || follow(REFUSES),
        Role::Value => precede(REFUSED) || follow(REFUSES_VALUE),
        Role::Plain => false,
    };
    if refused {
        return Some(Said::Refused);
    }
    let named = before.trim_end_matches([' ', '\'', '"', '`', '\u{2018}', '\u{201c}']);
    let none_named =
        before.contains("no ") && (named.ends_with(" named") || named.ends_with(" called"));
    let no_file =
        word.text.contains(['/', '.']) && after.starts_with(':') && after.contains("no such file");
    (no_file || none_named || precede(BEFORE) || follow(AFTER)).then_some(Said::Missing)
}

/// Whether a phrase is about what comes right after the text: few words between, and no other name among them.
fn leads_to_end(text: &str, phrase: &str) -> bool {
    let between = text.rfind(phrase).map(|at| &text[at + phrase.len()..]);
    between.is_some_and(|between| {
        // Another name between them is what is meant.
        let named = between.matches(['"', '`', '\'']).count() > 1;
        between.split_whitespace().count() <= BETWEEN
            && !named
            && !between.contains([',', '.', ';', ')'])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::failure::Cause;

    #[test]
    fn what_the_command_names_may_be_called_unknown() {
        for (command, output, expected) in [
            (
                "inv relase",
                "No idea what 'relase' is!",
                Some(Cause::ResourceNotFound),
            ),
            (
                "run task:deploy",
                "there is no task named task:deploy here",
                Some(Cause::ResourceNotFound),
            ),
            (
                "run task:deploy",
                "'task:deploy' is not a task. See 'run help'.",
                Some(Cause::ResourceNotFound),
            ),
            (
                "tool deploy",
                "Unknown command: 'deploy'",
                Some(Cause::InvalidInput),
            ),
            (
                "tool call deploy",
                "unknown command \"deploy\" for \"tool call\"",
                Some(Cause::ResourceNotFound),
            ),
            (
                "run --fats x.cfg",
                "I do not know --fats",
                Some(Cause::InvalidInput),
            ),
            ("run x.cfg", "x.cfg: a file named x.cfg is wrong", None),
            ("run deploy", "redeploy does not exist", None),
            ("run deploy", "deploy: 3 steps", None),
            ("compile x.cfg", "x.cfg:3:4: name is not defined", None),
            ("compile x.cfg", "x.cfg: line 3: file not found: y", None),
            ("deploy", "deploy: not found", None),
            (
                "run a/b.x",
                "run: a/b.x: cannot open: No such file or directory",
                Some(Cause::ResourceNotFound),
            ),
            (
                "run @etc/a.args x",
                "Error: could not open `etc/a.args'",
                Some(Cause::ResourceNotFound),
            ),
            (
                "compile -I proto a.x",
                "Import \"b/c.proto\" was not found",
                None,
            ),
            (
                "compile x.cfg",
                "warning: x.cfg not found in the cache",
                None,
            ),
            // An option's value is one of those it knows, a thing of the project, or a library.
            (
                "draw --theme drak a.x",
                "The theme drak does not exist, there are: dark, light",
                Some(Cause::InvalidInput),
            ),
            (
                "draw -bsvgg a.x",
                "Builder name svgg not registered",
                Some(Cause::InvalidInput),
            ),
            (
                "draw --mode=fast a.x",
                "Invalid draw mode (fast)",
                Some(Cause::InvalidInput),
            ),
            ("draw --level error a.x", "unknown error", None),
            (
                "make --bin servr",
                "no target named `servr`",
                Some(Cause::ResourceNotFound),
            ),
            (
                "draw --from in/a.x",
                "in/a.x does not exist",
                Some(Cause::ResourceNotFound),
            ),
            (
                "compile -package str,yaml a.x",
                "Package `yaml' not found",
                Some(Cause::BrokenBuild),
            ),
            (
                "fetch install -U yaml",
                "Package yaml not found",
                Some(Cause::ResourceNotFound),
            ),
        ] {
            let text = Text::new(output.as_bytes());
            let found = refused(command, &text).or_else(|| not_there(command, &text));
            assert_eq!(
                found.map(|found| found.verdict.cause),
                expected,
                "{command}: {output}"
            );
        }
    }

    #[test]
    fn a_program_may_find_fault_with_its_own_configuration() {
        for (command, output, own) in [
            (
                "npx drift check --fast",
                ".driftconfig:2 No such glob",
                true,
            ),
            (
                "cd a && vendor/bin/drift",
                "/x/drift.toml:2:3: error: unknown",
                true,
            ),
            (
                "drift src",
                "drift.toml:2:3: error: unknown\nsrc/a.x:3:4: unused",
                false,
            ),
            ("drift site", "site.yml:2:3: error: unknown", false),
            ("drift src", "src/drift.x:2:3: error: unknown", false),
            ("drift src", "unknown glob", false),
        ] {
            let text = Text::new(output.as_bytes());
            assert_eq!(
                own_configuration(command, &text).is_some(),
                own,
                "{command}: {output}"
            );
        }
    }

    #[test]
    fn wrappers_are_no_programs() {
        for (line, programs, firsts) in [
            ("timeout -k 5 30m npx -y eslint src", "eslint", "src"),
            (
                "A=1 python3 -m pytest tests; sh -c 'cd app && mytool sub'",
                "pytest mytool",
                "tests app sub",
            ),
            ("sudo -u ci /opt/bin/deploy stage", "deploy", "stage"),
        ] {
            let found = [0, 1].map(|place| arguments(line, place).collect::<Vec<_>>().join(" "));
            assert_eq!(found, [programs, firsts], "{line}");
        }
    }
}
