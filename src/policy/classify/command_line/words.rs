//! The words of a command line that a tool may speak of, and what each of them is.

use crate::policy::program::{Words, of_line};

/// How short a word is that may be anything.
const MIN_WORD: usize = 3;

/// What a word of the command line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It begins with a dash.
    Option,
    /// It follows an option, or is a part of it.
    Value,
    /// Anything else.
    Plain,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    pub role: Role,
}

pub(super) fn words(command: &str) -> Vec<Word<'_>> {
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
pub(super) fn arguments(command: &str, place: usize) -> impl Iterator<Item = String> {
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
pub(super) fn is_path(word: &str) -> bool {
    word.contains('/')
        || word
            .rsplit_once('.')
            .is_some_and(|(_, end)| end.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
