//! What a line says of a word right before or right after it: that it is not there, or that it is refused.

use super::words::{Role, Word};

/// How many words may be between "unknown" and what is unknown.
const BETWEEN: usize = 5;

/// What a line says of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Missing,
    Refused,
}

/// Then at most [`BETWEEN`] words, and the word.
const BEFORE: &[&str] = &[
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
    "couldn't resolve ",
    "could not resolve ",
    "cannot resolve ",
    "cannot locate ",
    "could not locate ",
    "unable to find ",
    "unable to locate ",
    "cannot open ",
    "can't open ",
    "could not open ",
    "couldn't open ",
    "unable to open ",
    "failed to open ",
    "unable to access ",
    "never heard of ",
    "nothing matches ",
    "nothing called ",
    "nothing named ",
    "never defined: ",
    "does not contain ",
    "does not provide ",
    "does not have ",
    "not a valid ",
    "not a known ",
];
const AFTER: &[&str] = &[
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
    "not a task",
    "not a target",
    "not a valid task",
    "not a valid target",
    "not a command",
];
/// What is said of an option or of its value, before it and after it.
const REFUSED: &[&str] = &[
    "not a valid ",
    "invalid ",
    "illegal ",
    "unexpected ",
    "not understand ",
    "unsupported ",
    "bad ",
    "error parsing ",
    "not support ",
];
const REFUSES: &[&str] = &[
    "wants",
    "expects",
    "requires",
    "must ",
    "needs",
    "cannot",
    "not ",
    "takes ",
    "conflicts",
];
const REFUSES_VALUE: &[&str] = &[
    "not a valid",
    "not valid",
    "not supported",
    "unsupported",
    "not recognized",
    "not recognised",
    "not one of",
    "not allowed",
    "invalid",
];

/// What a line says of a word, right before or right after it.
pub(super) fn said_of(said: &str, word: Word<'_>) -> Option<Said> {
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
    let precede = |phrases: &[&str]| phrases.iter().any(|phrase| leads_to_end(&before, phrase));
    let follow = |phrases: &[&str]| phrases.iter().any(|phrase| after.starts_with(phrase));
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
