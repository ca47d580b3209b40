//! The part of an output that says the most: the first error and the last lines.

use super::redact::redact;
use super::text::Text;

/// How long an excerpt is at most, in bytes.
pub(crate) const MAX_BYTES: usize = 8 << 10;
/// How much of it the first error with its surroundings may take.
const ERROR_BYTES: usize = 3 << 10;
/// How many lines follow an error.
const LINES_AFTER: usize = 14;
/// How many lines come before one.
const LINES_BEFORE: usize = 2;

/// Takes the surroundings of the line numbered `error_line` and the last lines of `text`, redacted.
pub(crate) fn of_text(text: &Text, error_line: Option<u64>, max_bytes: usize) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| String::from_utf8_lossy(line.bytes).into_owned())
        .collect();
    let error = error_line.and_then(|number| text.lines().position(|line| line.number == number));
    // What the last lines hold anyway needs no place of its own.
    let whole_tail = tail_start(&lines, 0, max_bytes);
    let error = error.filter(|at| at.saturating_sub(LINES_BEFORE) < whole_tail);
    let mut head = String::new();
    let mut head_end = 0;
    if let Some(at) = error {
        for (index, line) in lines
            .iter()
            .enumerate()
            .skip(at.saturating_sub(LINES_BEFORE))
            .take(LINES_AFTER + LINES_BEFORE)
        {
            if head.len() + line.len() + 1 > ERROR_BYTES.min(max_bytes / 2) {
                break;
            }
            head.push_str(line);
            head.push('\n');
            head_end = index + 1;
        }
    }
    let tail_start = tail_start(&lines, head_end, max_bytes.saturating_sub(head.len() + 8));
    let gap = if head.is_empty() || tail_start <= head_end {
        ""
    } else {
        "[...]\n"
    };
    let tail = lines[tail_start..].join("\n");
    let mut excerpt = redact(&format!("{head}{gap}{tail}")).into_owned();
    cut(&mut excerpt, max_bytes);
    excerpt
}

/// Where the last lines begin that have room, at `first` or behind it.
fn tail_start(lines: &[String], first: usize, mut room: usize) -> usize {
    let mut start = lines.len();
    while start > first && lines[start - 1].len() < room {
        start -= 1;
        room -= lines[start].len() + 1;
    }
    start
}

/// Cuts a text to at most `max_bytes`, at a character.
pub(crate) fn cut(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes {
        let end = (0..=max_bytes)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(output: &[u8], error_line: Option<u64>) -> String {
        of_text(&Text::new(output), error_line, MAX_BYTES)
    }

    #[test]
    fn the_error_and_the_end_are_kept() {
        let mut output = String::from("start\nerror: the reason\n");
        output.extend((0..5000).map(|number| format!("noise {number}\n")));
        output.push_str("password=hunter22 end\n");
        let excerpt = excerpt(output.as_bytes(), Some(2));
        assert!(excerpt.len() <= MAX_BYTES);
        assert!(excerpt.starts_with("start\nerror: the reason\n"));
        assert!(excerpt.contains("[...]") && excerpt.ends_with("[redacted] end"));
    }

    #[test]
    fn short_output_is_kept_whole() {
        assert_eq!(excerpt(b"a\nb\n", Some(1)).trim_end(), "a\nb");
        assert_eq!(
            excerpt(b"1\n2\n3\n4\nerror\n", Some(5)).trim_end(),
            "1\n2\n3\n4\nerror"
        );
        assert_eq!(excerpt(b"", None), "");
    }
}
