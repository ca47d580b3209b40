//! aider writes no records. It exits with 0 whatever the model did, so its text and the feedback loops have to judge.

use crate::model::agent_record::{AgentKind, AgentRecord, Tokens};

/// Takes the session's cost from the last `Cost:` line and its tokens, rounded as they are, from all `Tokens:` lines.
pub(super) fn read(stdout: &[u8]) -> AgentRecord {
    let mut record = AgentRecord::new(AgentKind::Aider);
    for line in stdout.split(|byte| *byte == b'\n') {
        let Ok(line) = std::str::from_utf8(line) else {
            continue;
        };
        if let Some((_, counts)) = line.split_once("Tokens: ")
            && counts.contains(" sent")
        {
            record.tokens = Some(record.tokens.unwrap_or_default() + tokens(counts));
        }
        if let Some((_, after)) = line.split_once("message, $")
            && line.contains("Cost:")
        {
            record.cost_usd = after
                .split_whitespace()
                .next()
                .and_then(|cost| cost.parse().ok());
        }
    }
    record
}

/// `2.4k sent, 1.1k cache write, 3k cache hit, 512 received. Cost: …`
fn tokens(counts: &str) -> Tokens {
    let counts = counts.split(". ").next().unwrap_or(counts);
    let of = |what: &str| {
        let named = counts
            .split(", ")
            .find_map(|part| part.trim().trim_end_matches('.').strip_suffix(what));
        named.and_then(|number| rounded(number.trim())).unwrap_or(0)
    };
    let (sent, written, hit) = (of("sent"), of("cache write"), of("cache hit"));
    Tokens::new(sent, of("received"), hit, written)
}

/// `512`, `2.4k`, `12k`, `1.2M`.
fn rounded(number: &str) -> Option<u64> {
    let (digits, zeros) = match number.as_bytes().last()? {
        b'k' => (&number[..number.len() - 1], 3),
        b'M' => (&number[..number.len() - 1], 6),
        _ => (number, 0),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let part = format!("{part:0<zeros$}");
    format!("{whole}{}", part.get(..zeros)?).parse().ok()
}
