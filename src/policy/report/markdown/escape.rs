//! Other people's text in Markdown: it can end no table, list, fence or span, and is shown as it is.

use crate::policy::escape::{escape, escape_lines};

/// Text within a paragraph, a list or a table.
pub(crate) fn text(text: &str) -> String {
    let visible = escape(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let chars: Vec<char> = visible.chars().collect();
    let mut out = String::with_capacity(visible.len() + 8);
    for (at, c) in chars.iter().enumerate() {
        let between_words = |at: usize| {
            let word = |at: Option<usize>| {
                at.and_then(|at| chars.get(at))
                    .is_some_and(|c| c.is_alphanumeric())
            };
            word(at.checked_sub(1)) && word(Some(at + 1))
        };
        let special = match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '|' | '~' | '&' | '$' => true,
            '_' => !between_words(at),
            '#' | '-' | '+' | '=' | '!' => at == 0,
            // `1. ` would begin a list.
            '.' | ')' => at > 0 && chars[..at].iter().all(char::is_ascii_digit),
            _ => false,
        };
        if special {
            out.push('\\');
        }
        out.push(*c);
    }
    out
}

/// A code span: as many backticks around it as it takes. Not for tables, where a bar would end it.
pub(crate) fn code(text: &str) -> String {
    let visible = escape(text);
    if visible.trim().is_empty() {
        return "(empty)".to_owned();
    }
    let ticks = "`".repeat(longest_run(&visible) + 1);
    let apart = if visible.starts_with(['`', ' ']) || visible.ends_with(['`', ' ']) {
        " "
    } else {
        ""
    };
    format!("{ticks}{apart}{visible}{apart}{ticks}")
}

/// A block of lines, fenced with more backticks than it holds.
pub(crate) fn fenced(language: &str, text: &str) -> String {
    let visible = escape_lines(text);
    let fence = "`".repeat(longest_run(&visible).max(2) + 1);
    format!(
        "{fence}{language}\n{}\n{fence}",
        visible.trim_end_matches('\n')
    )
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_starts_nothing_and_ends_nothing() {
        for (given, expected) in [
            (
                "plain, VERIFICATION_FAILED (1).",
                "plain, VERIFICATION_FAILED (1).",
            ),
            ("| a | b |", "\\| a \\| b \\|"),
            (
                "<script>alert(1)</script>",
                "\\<script\\>alert(1)\\</script\\>",
            ),
            ("**bold** _x_ `c`", "\\*\\*bold\\*\\* \\_x\\_ \\`c\\`"),
            ("[a](http://x)", "\\[a\\](http://x)"),
            ("# head", "\\# head"),
            ("- item", "\\- item"),
            ("--- a.rs", "\\--- a.rs"),
            ("12. item", "12\\. item"),
            ("a\n\n# head\r\n| b", "a # head \\| b"),
            ("\u{1b}[31m&lt;", "\\\\u{1b}\\[31m\\&lt;"),
        ] {
            assert_eq!(text(given), expected);
        }
    }

    #[test]
    fn code_and_fences_hold_their_own_marks() {
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("a|b\nc"), "`a|b\\nc`");
        assert_eq!(code(" "), "(empty)");
        assert_eq!(
            fenced("text", "a\n```\n# b\n"),
            "````text\na\n```\n# b\n````"
        );
        assert_eq!(fenced("sh", "x"), "```sh\nx\n```");
    }
}
