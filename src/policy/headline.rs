//! What an agent says it did, in one line.

use super::plain_text;
use super::redact::redact;

/// So many characters of it are enough.
const LONGEST: usize = 100;

/// The first line that says something, without the marks of Markdown, and cut between words; `None` where there is none.
pub(crate) fn headline(text: &str) -> Option<String> {
    let text = plain_text(text.as_bytes());
    let lines = text.lines().map(|line| {
        line.trim()
            .trim_start_matches(['#', '*', '-', '>', ' '])
            .trim()
    });
    let line = lines
        .map(|line| line.replace(['*', '`'], ""))
        .find(|line| line.chars().any(char::is_alphanumeric))?;
    let line = redact(&line).into_owned();
    if line.chars().count() <= LONGEST {
        return Some(line);
    }
    let cut: String = line.chars().take(LONGEST - 1).collect();
    let whole = cut
        .rfind(' ')
        .filter(|at| *at > LONGEST / 2)
        .map_or(cut.as_str(), |at| &cut[..at]);
    Some(format!("{whole}…"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_is_the_first_line_that_says_something() {
        for (text, expected) in [
            (
                "Set up JWT middleware\n\nDetails.",
                Some("Set up JWT middleware"),
            ),
            (
                "\n---\n## **Done:** the `auth` module works\n",
                Some("Done: the auth module works"),
            ),
            ("\n***\n", None),
            ("", None),
        ] {
            assert_eq!(headline(text).as_deref(), expected, "{text}");
        }
        let long = headline(&"a word ".repeat(50)).unwrap();
        assert!(
            long.chars().count() <= LONGEST && long.ends_with("word…"),
            "{long}"
        );
    }
}
