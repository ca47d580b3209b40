//! What a complaint says of the kind of thing that it names: that it is not there, or that it is not accepted.
//!
//! Tools that no rule knows say this in few ways; which cause it is follows from what is lacking: a thing of the project
//! or of a registry (a file, a target, a package), a setting of the tool (an option, a format, a profile), or something
//! of the source (a module, a type), which belongs to the compiler.

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
const NEAR: usize = 6;

/// What comes before the thing that is not there.
const MISSING_BEFORE: &[&str] = &[
    "no such",
    "unknown",
    "unrecognized",
    "unrecognised",
    "cannot find",
    "failed to find",
    "could not find",
    "unable to find",
    "cannot locate",
    "could not locate",
    "unable to locate",
    "cannot open",
    "could not open",
    "unable to open",
    "failed to open",
    "cannot access",
    "could not access",
    "unable to access",
    "failed to access",
    "does not contain",
    "does not have",
    "is not a",
    "is not an",
    "not a known",
    "missing",
];
/// What comes after it.
const MISSING_AFTER: &[&str] = &[
    "not found",
    "not be found",
    "not exist",
    "is missing",
    "is unknown",
    "not known",
    "not defined",
    "never defined",
    "not registered",
    "not declared",
    "not available",
];
/// What comes after a thing of which there is none.
const NONE_AFTER: &[&str] = &[
    "found",
    "exists",
    "named",
    "called",
    "matching",
    "matches",
    "matched",
    "remain",
    "given",
    "specified",
];
/// What comes before a thing that is not accepted.
const REFUSED_BEFORE: &[&str] = &[
    "invalid",
    "unsupported",
    "illegal",
    "bad",
    "not a valid",
    "not a supported",
    "unexpected",
    "disallowed",
    "not support",
    "not understand",
];
/// What comes after it.
const REFUSED_AFTER: &[&str] = &[
    "not valid",
    "is invalid",
    "not supported",
    "is unsupported",
    "not allowed",
    "not recognized",
    "not recognised",
    "not understood",
    "not accepted",
    "must be",
];
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
        .collect();
    let words: Vec<&str> = words
        .into_iter()
        .map(|word| word.trim_matches(['.', '\'']))
        .filter(|w| !w.is_empty())
        .collect();
    // That things do not fit together is another matter than that one of them is not there.
    // Nor is what the operating system answers a word about an argument.
    let errno = words.ends_with(&["invalid", "argument"]) && words.len() > 2;
    if errno
        || words.iter().any(|word| {
            matches!(
                *word,
                "compatible" | "incompatible" | "conflict" | "conflicting" | "conflicts"
            )
        })
    {
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
        if let Some(at) = before.iter().find_map(|phrase| ends(&words, phrase)) {
            return found(
                said,
                words[at..].iter().take(NEAR).find_map(|word| kind(word)),
            );
        }
        if let Some(at) = after.iter().find_map(|phrase| starts(&words, phrase)) {
            return found(
                said,
                words[..at]
                    .iter()
                    .rev()
                    .take(NEAR)
                    .find_map(|word| kind(word)),
            );
        }
        if said == Said::Missing
            && let Some(at) = words.iter().position(|word| *word == "no")
            && let Some((near, kind)) = words[at..]
                .iter()
                .take(NEAR)
                .enumerate()
                .find_map(|(near, word)| Some((near, kind(word)?)))
            && words[at + near..]
                .iter()
                .take(NEAR)
                .any(|word| NONE_AFTER.contains(word))
        {
            return found(said, Some(kind));
        }
    }
    None
}

fn kind(word: &str) -> Option<Kind> {
    let kinds = [
        (THINGS, Kind::Thing),
        (SETTINGS, Kind::Setting),
        (COMMANDS, Kind::Command),
        (CODE, Kind::Code),
    ];
    kinds.into_iter().find_map(|(words, kind)| {
        words
            .split_ascii_whitespace()
            .any(|known| known == word)
            .then_some(kind)
    })
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
    use std::collections::BTreeSet;

    use super::*;

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
