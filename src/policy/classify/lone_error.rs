//! Whether an agent that says it ended well printed nothing but an error of its API at the end.

use crate::policy::escape::escape;
use crate::policy::patterns::Single;
use crate::policy::text::Text;

/// A longer paragraph is an explanation.
const MAX_CHARS: usize = 1_200;

/// So much of the end is read: a paragraph that is longer is no error alone, however often a program tried again.
const MAX_BYTES: usize = 64 << 10;

/// How aider begins what it adds to an error, the same for all of a kind ("… servers are down or overloaded").
const COMMENT: &str = " The API provider";

/// How programs begin to speak of their own trouble; prose that quotes an error begins otherwise.
static HEAD: Single = Single::new(
    r"^\W{0,4}(?:\[?API Error|(?i:error\W)|(?:[A-Za-z_]+\.)*[A-Za-z]*(?:Error|Exception)\b\W|(?i:you(?:'|’)ve (?:hit|reached|exceeded)|you have (?:hit|reached|exhausted|exceeded)|(?:claude ai |5-hour |weekly |session |usage )(?:usage )?limit|credit balance|invalid api key|not logged in|please run /login|oauth token|prompt is too long|conversation (?:is )?too long|unable to connect|connection failed|fetch failed|rate limit|request rejected|overloaded|quota exceeded|insufficient_quota|resource_exhausted|repeated 529|status(?: code)?:? [45]\d\d|[45]\d\d [a-z]))",
);

/// The last paragraph of `output` as one line, where it reads like an error of the program itself and nothing else.
/// Whether it is one that is known is for [`classify`](super::classify) to say.
pub(crate) fn lone_error(output: &[u8]) -> Option<String> {
    let end = &output[output.len().saturating_sub(MAX_BYTES)..];
    let text = Text::new(end);
    // Blank lines are not among them: where a number is left out, a paragraph ends.
    let mut last = Vec::new();
    let mut is_whole = end.len() == output.len();
    for line in text.lines().rev() {
        let said = line.to_text();
        let follows = last
            .last()
            .is_none_or(|(below, _): &(u64, String)| below.saturating_sub(line.number) <= 1);
        if !follows || (!last.is_empty() && !said.chars().any(char::is_alphanumeric)) {
            is_whole = true;
            break;
        }
        if said.chars().any(char::is_alphanumeric) {
            last.push((line.number, said));
        }
    }
    if !is_whole {
        return None;
    }
    // Oldest line first. One error after the other, of a program that tried again: the last one counts.
    let lines: Vec<String> = last.into_iter().rev().map(|(_, said)| said).collect();
    HEAD.first(lines.first()?)?;
    let first_word = |line: &String| line.split_whitespace().next().map(str::to_owned);
    let begins = lines
        .iter()
        .rposition(|line| first_word(line) == first_word(&lines[0]))?;
    let paragraph = lines
        .get(begins..)?
        .join(" ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let error = paragraph.split(COMMENT).next().unwrap_or(&paragraph);
    (error.chars().count() <= MAX_CHARS).then(|| escape(error))
}

#[cfg(test)]
mod tests {
    use super::lone_error;

    #[test]
    fn an_error_alone_is_no_explanation() {
        let aider = b"Aider v0.86.2\nModel: gpt-4o\n\nlitellm.AuthenticationError: AuthenticationError: OpenAIException - Incorrect API\nkey provided: sk-x.\n";
        assert!(
            lone_error(aider)
                .unwrap()
                .ends_with("Incorrect API key provided: sk-x.")
        );
        assert!(
            lone_error("You\u{2019}ve hit your limit · resets 6:41am (UTC)\n\n".as_bytes())
                .is_some()
        );
        assert!(lone_error(b"[API Error: 429 Too Many Requests]").is_some());
        let again = "litellm.InternalServerError: InternalServerError: OpenAIException - The server had an\nerror.\n\
                     The API provider's servers are down or overloaded.\nRetrying in 0.2 seconds...\n";
        let repeated = format!("Repo-map: using 4096 tokens\n\n{}", again.repeat(20));
        let last = "litellm.InternalServerError: InternalServerError: OpenAIException - The server had an error.";
        assert_eq!(lone_error(repeated.as_bytes()).as_deref(), Some(last));
        let late = "words\n".repeat(100_000) + "\nAPI Error: 500\n";
        assert_eq!(
            lone_error(late.as_bytes()).as_deref(),
            Some("API Error: 500")
        );
        assert_eq!(
            lone_error("API Error: 500\n".repeat(100_000).as_bytes()),
            None
        );
        for said in [
            "The test fails with \"API Error: 429\", so I added a retry.",
            "Done.\n\nAll tests pass.",
            "API Error: 500\n\nI worked around it and everything passes now.",
            "",
        ] {
            assert_eq!(lone_error(said.as_bytes()), None, "{said}");
        }
    }
}
