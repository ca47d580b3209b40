//! Text that is fitted to a terminal: lines end between two words, and a command that goes on below is still one.

use std::ops::Range;

use unicode_width::UnicodeWidthStr;

/// The text with lines that end between two words; what follows is set in as far as the line's own content. A word that is
/// longer than a line stays whole, and so does a command that fits on a line; a longer one goes on behind a sign that a shell
/// knows.
pub(super) fn wrapped(text: &str, width: usize) -> String {
    by_line(text, width, |line| wrap(line, width, &spans_of(line)))
}

/// The same for a text in which nothing is a command, whatever it looks like.
pub(super) fn between_words(text: &str, width: usize) -> String {
    by_line(text, width, |line| wrap(line, width, &[]))
}

fn by_line(text: &str, width: usize, wrap: impl Fn(&str) -> String) -> String {
    let line = |line: &str| {
        let content = line.trim_end_matches('\n');
        if shown_width(content) <= width {
            line.to_owned()
        } else {
            wrap(content) + &line[content.len()..]
        }
    };
    text.split_inclusive('\n').map(line).collect()
}

/// A part of a line that belongs together.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    range: Range<usize>,
    /// A shell is to read it.
    is_command: bool,
}

fn wrap(line: &str, width: usize, spans: &[Span]) -> String {
    let content = hang_of(line);
    let beside = beside_command(line, spans).filter(|_| content > width / 2);
    // What stands far to the right of a command goes below it.
    let hang = if beside.is_some() {
        blanks_of(line) + 4
    } else {
        content.min(width / 2)
    };
    // A long word has its line to itself rather than one that runs over.
    let longest = line
        .split(' ')
        .map(shown_width)
        .filter(|word| *word <= width)
        .max()
        .unwrap_or(0);
    let hang = hang.min(width - longest);
    let mut out = String::with_capacity(line.len() + 16);
    let mut columns = 0;
    let mut at = 0;
    let mut quote = None;
    for word in line.split_inclusive(' ') {
        let bare = word.trim_end_matches(' ');
        let end = at + bare.len();
        let span = spans
            .iter()
            .find(|span| span.range.start < end && at < span.range.end);
        let begins = span.is_some_and(|span| span.range.start >= at);
        let command = span.filter(|span| span.is_command);
        if begins {
            quote = None;
        }
        let ends = span.is_none_or(|span| span.range.end <= end);
        let room = if command.is_some() && !ends {
            width.saturating_sub(2)
        } else {
            width
        };
        // What belongs together and fits on a line stays whole.
        let moves = begins
            && span.is_some_and(|span| {
                let whole = shown_width(&line[at..word_end(line, span.range.end)]);
                columns + whole > width && hang + whole <= width
            });
        let is_full = moves || beside == Some(at) || columns + shown_width(bare) > room;
        if quote.is_none() && columns > hang && is_full && !bare.is_empty() {
            let kept = out.trim_end_matches(' ').len();
            out.truncate(kept);
            out.push_str(if command.is_some() && !begins {
                " \\\n"
            } else {
                "\n"
            });
            out.push_str(&" ".repeat(hang));
            columns = hang;
        }
        out.push_str(word);
        columns += shown_width(word);
        quote = if command.is_some() && !ends {
            quote_after(word, quote)
        } else {
            None
        };
        at += word.len();
    }
    out
}

/// The end of the word that has this place in it or at its end.
fn word_end(line: &str, at: usize) -> usize {
    line[at..].find(' ').map_or(line.len(), |end| at + end)
}

/// The quote that is open after a part of a shell's line: a line's end in it would be part of the word.
fn quote_after(part: &str, mut open: Option<char>) -> Option<char> {
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        match (open, c) {
            (None | Some('"'), '\\') => drop(chars.next()),
            (None, '\'' | '"') => open = Some(c),
            (Some(quote), _) if quote == c => open = None,
            _ => {}
        }
    }
    open
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

/// Programs that hints call.
const PROGRAMS: [&str; 3] = ["recover ", "git ", "tail "];

/// The commands of a line: what ends it behind a colon, what it begins with, up to a second column, and what stands in
/// backquotes, which belongs together whatever it is.
fn spans_of(line: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some(begin) = line[at..].find('`').map(|begin| at + begin) {
        let Some(end) = line[begin + 1..].find('`').map(|end| begin + 1 + end) else {
            break;
        };
        let is_command = PROGRAMS
            .iter()
            .any(|program| line[begin + 1..end].starts_with(program));
        spans.push(Span {
            range: begin..end + 1,
            is_command,
        });
        at = end + 1;
    }
    let is_quoted = |at: usize| spans.iter().any(|span| span.range.contains(&at));
    let begins = |program: &&str| {
        let mut found = line.match_indices(program).map(|(at, _)| at);
        found.find(|at| {
            let before = line[..*at].trim_end();
            !is_quoted(*at) && (before.is_empty() || before.ends_with(':'))
        })
    };
    if let Some(begin) = PROGRAMS.iter().find_map(begins) {
        let end = begin + column_end(&line[begin..]);
        spans.retain(|span| span.range.end <= begin || span.range.start >= end);
        spans.push(Span {
            range: begin..end,
            is_command: true,
        });
    }
    spans
}

/// Where a shell's line ends because another column begins: before two blanks outside of quotes.
fn column_end(command: &str) -> usize {
    let (mut at, mut quote) = (0, None);
    for word in command.split_inclusive(' ') {
        if word == " " && quote.is_none() && at > 0 {
            return at - 1;
        }
        quote = quote_after(word, quote);
        at += word.len();
    }
    command.len()
}

/// Where a second column begins beside a command, which is all of the first.
fn beside_command(line: &str, spans: &[Span]) -> Option<usize> {
    let first = spans
        .iter()
        .find(|span| span.is_command && span.range.start == blanks_of(line))?;
    let rest = line
        .get(first.range.end..)
        .filter(|rest| !rest.trim().is_empty())?;
    Some(first.range.end + blanks_of(rest)).filter(|at| *at > first.range.end + 1)
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
    fn a_command_that_goes_on_below_is_still_one() {
        let line = "Next: recover resume --strategy retry_with_context";
        assert_eq!(
            wrapped(line, 34),
            "Next: recover resume --strategy \\\n  retry_with_context"
        );
        assert_eq!(
            wrapped(line, 49),
            "Next:\n  recover resume --strategy retry_with_context"
        );
        assert_eq!(
            wrapped("It is closed; recover resume opens it", 20),
            "It is closed;\n  recover resume\n  opens it"
        );
        let line = "look: tail -n 100 -- /a/long/path/of/a/log";
        assert_eq!(
            wrapped(line, 24),
            "look: tail -n 100 -- \\\n  /a/long/path/of/a/log"
        );
    }

    #[test]
    fn a_command_in_backquotes_stays_whole_or_goes_on() {
        let line = "3. Then take it up: `recover resume --strategy retry_same`, again";
        assert_eq!(
            wrapped(line, 45),
            "3. Then take it up:\n  `recover resume --strategy retry_same`,\n  again"
        );
        assert_eq!(
            wrapped(line, 32),
            "3. Then take it up: `recover \\\n  resume --strategy retry_same`,\n  again"
        );
        assert_eq!(
            wrapped("see `a quoted text` here", 18),
            "see\n  `a quoted text`\n  here"
        );
        assert_eq!(
            wrapped("see `a long quoted text`", 12),
            "see `a long\n  quoted\n  text`"
        );
        assert_eq!(wrapped("one ` sign alone", 11), "one ` sign\n  alone");
    }

    #[test]
    fn a_column_beside_a_command_is_none_of_its_words() {
        let line = "  recover checkpoint create      keep the work tree as it is";
        assert_eq!(
            wrapped(line, 40),
            "  recover checkpoint create\n      keep the work tree as it is"
        );
        let line = "  recover x  keep the work tree as it is";
        assert_eq!(
            wrapped(line, 30),
            "  recover x  keep the work\n             tree as it is"
        );
        let line = "  recover x -m 'a  b' and some more";
        assert_eq!(
            wrapped(line, 26),
            "  recover x -m 'a  b' \\\n             and some more"
        );
    }
}
