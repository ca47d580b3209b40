//! Text that is fitted to a terminal: lines end between two words, and never within a command.

use std::ops::Range;

use unicode_width::UnicodeWidthStr;

/// Programs that hints call.
const PROGRAMS: [&str; 3] = ["recover ", "git ", "tail "];

/// The text with lines that end between two words; what follows is indented as far as the line's own content. A word that is
/// longer than a line stays whole, and so does a command: where the terminal breaks it, it can still be copied.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    let line = |line: &str| {
        let content = line.trim_end_matches('\n');
        if shown_width(content) <= width {
            line.to_owned()
        } else {
            wrap(content, width) + &line[content.len()..]
        }
    };
    text.split_inclusive('\n').map(line).collect()
}

fn wrap(line: &str, width: usize) -> String {
    let words = words(line);
    // A long word has its line to itself rather than one that runs over.
    let longest = words
        .iter()
        .map(|word| shown_width(word.trim_end()))
        .filter(|word| *word <= width)
        .max()
        .unwrap_or(0);
    let hang = hang_of(line).min(width / 2).min(width - longest);
    let mut out = String::with_capacity(line.len() + 16);
    let mut columns = 0;
    for word in words {
        let bare = word.trim_end();
        if columns > hang && columns + shown_width(bare) > width && !bare.is_empty() {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.push_str(&" ".repeat(hang));
            columns = hang;
        }
        out.push_str(word);
        columns += shown_width(word);
    }
    out
}

/// The words of a line with the blanks behind them; a command is one.
fn words(line: &str) -> Vec<&str> {
    let commands = commands(line);
    let mut words = Vec::new();
    let mut begin = 0;
    for (at, _) in line.match_indices(' ') {
        if !commands.iter().any(|command| command.contains(&at)) {
            words.push(&line[begin..=at]);
            begin = at + 1;
        }
    }
    words.push(&line[begin..]);
    words
}

/// The blanks that a line begins with.
fn blanks_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Where the content of a line begins: behind its blanks, or in its second column.
fn hang_of(line: &str) -> usize {
    let blanks = blanks_of(line);
    let rest = &line[blanks..];
    match rest.find("  ") {
        Some(gap) => blanks + shown_width(&rest[..gap]) + blanks_of(&rest[gap..]),
        None => blanks + 2,
    }
}

/// The commands of a line: what it begins with or what ends it behind a colon, up to a second column, and what is in
/// backquotes.
fn commands(line: &str) -> Vec<Range<usize>> {
    let end_of = |begin: usize| {
        let (before, rest) = line.split_at(begin);
        if before.ends_with('`') {
            return rest.find('`');
        }
        let is_command = before.trim().is_empty() || before.trim_end().ends_with(':');
        // Two blanks within quotes are the command's own.
        let is_outside = |at: &usize| rest[..*at].matches('\'').count() % 2 == 0;
        let mut gaps = rest.match_indices("  ").map(|(at, _)| at);
        is_command.then(|| gaps.find(is_outside).unwrap_or(rest.len()))
    };
    let begins = PROGRAMS.iter().flat_map(|name| line.match_indices(name));
    let command = |(begin, _)| Some(begin..begin + end_of(begin)?);
    begins.filter_map(command).collect()
}

/// Columns that a text takes, colours aside.
fn shown_width(text: &str) -> usize {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        let code = &rest[at..];
        rest = code.find('m').map_or("", |end| &code[end + 1..]);
    }
    (plain + rest).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_word_has_its_line_to_itself() {
        let word = "tests::a::long::name".repeat(2);
        assert_eq!(
            wrapped(&format!("  failure              the test {word}"), 48)
                .lines()
                .last(),
            Some(&*format!("        {word}"))
        );
        assert!(
            wrapped(&format!("  failure                   is {word} now"), 48)
                .lines()
                .all(|line| line.len() <= 48)
        );
    }

    #[test]
    fn lines_end_between_words_and_go_on_below_their_content() {
        assert_eq!(
            wrapped("one two three four\nfive\n", 9),
            "one two\n  three\n  four\nfive\n"
        );
        assert_eq!(
            wrapped("  error   one two three\n", 17),
            "  error   one two\n        three\n"
        );
        assert_eq!(
            wrapped("a-word-that-is-too-long is\n", 10),
            "a-word-that-is-too-long\n  is\n"
        );
        assert_eq!(
            wrapped("\x1b[1mone\x1b[0m two\n", 7),
            "\x1b[1mone\x1b[0m two\n"
        );
    }

    #[test]
    fn a_command_stays_whole() {
        for (line, width, expected) in [
            (
                "Next: recover resume --strategy retry_with_context",
                34,
                "Next:\n  recover resume --strategy retry_with_context",
            ),
            (
                "It is closed; recover resume opens it",
                20,
                "It is closed;\n  recover resume\n  opens it",
            ),
            (
                "3. Then resume it: `recover resume --strategy retry_same`, again",
                32,
                "3. Then resume it:\n  `recover resume --strategy retry_same`,\n  again",
            ),
            (
                "see `a long quoted text`",
                12,
                "see `a long\n  quoted\n  text`",
            ),
            (
                "  recover x  keep the work tree as it is",
                30,
                "  recover x  keep the work\n             tree as it is",
            ),
            (
                "Or: recover x -m 'a  b'  and some more",
                30,
                "Or: recover x -m 'a  b'  and\n           some more",
            ),
        ] {
            assert_eq!(wrapped(line, width), expected);
        }
    }
}
