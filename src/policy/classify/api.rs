//! Classifies by what the agent's program or API reported, also in records and output that no reader of an agent's records reads.

use serde_json::{Map, Value};

use super::conclusion::Conclusion;
use super::rules::{
    AGENT_NETWORK, AGENT_UNKNOWN, ANY, AUTH, BAD_REQUEST, CANCELLED, COMPARED, CONTEXT, DENIED,
    FAMILIES, Family, MAX_TURNS, NO_MODEL, OVERLOADED, QUOTA, Rule, SERVICE, THROTTLED,
    USAGE_LIMIT, Verdict,
};
use crate::model::agent_record::{AgentError, AgentKind, AgentRecord};
use crate::model::failure::{Cause, CauseDetail, Evidence, EvidenceSource};
use crate::policy::patterns::Single;
use crate::policy::text::{Line, Text, escape};

/// How many of the last lines of stderr are read.
const STDERR_LINES: usize = 60;
/// How many of the last lines of stdout are read: before them is prose.
const STDOUT_LINES: usize = 12;

/// Reads the record: the final error's words, then its code, then its HTTP status.
pub(super) fn from_record(record: &AgentRecord) -> Option<Conclusion> {
    let reported = |rule: &str, verdict, text: String, line| {
        let rule = rule.to_owned();
        let source = EvidenceSource::Record;
        let evidence = Evidence {
            rule,
            source,
            line,
            text,
        };
        Conclusion::new(verdict, evidence)
    };
    if record.interrupted {
        let text = "Interrupted".to_owned();
        return Some(reported("record.interrupted", CANCELLED, text, None));
    }
    let Some(error) = &record.final_error else {
        let denied = !record.permission_denials.is_empty() && !record.is_success;
        let text = format!("Not permitted: {}", record.permission_denials.join(", "));
        return denied.then(|| reported("record.permission-denials", DENIED, text, None));
    };
    let text = if error.message.is_empty() {
        error.code.clone().unwrap_or_default()
    } else {
        error.message.clone()
    };
    // An overload, a throttle or a bad key is what the status says; the words say which kind of 400 it is.
    let mut by_words = matches(error.message.as_bytes());
    let words = by_words
        .next()
        .filter(|rule| agrees(rule.verdict, error.status));
    let by_code = error.code.as_deref().and_then(verdict_of_code);
    let by_status = error.status.and_then(verdict_of_status);
    let by_kind = || error.code.as_deref().and_then(verdict_of_kind);
    // What the program counts itself beats whatever the model said last.
    let counted = by_code.filter(|verdict| verdict.detail == Some(CauseDetail::MaxTurns));
    let result = match (words, by_code, by_status) {
        _ if counted.is_some() => {
            // Nor are the words that it ended in the middle of what happened.
            let said = text.to_ascii_lowercase().contains("turn");
            let code = error.code.clone().filter(|_| !said);
            let reported = reported("record.code", MAX_TURNS, text, Some(error.line));
            Conclusion {
                message: code.unwrap_or_else(|| reported.message.clone()),
                ..reported
            }
        }
        (Some(rule), ..) => reported(rule.id, rule.verdict, text, Some(error.line)),
        (None, Some(verdict), _) => reported("record.code", verdict, text, Some(error.line)),
        (None, None, Some(verdict)) => reported("record.status", verdict, text, Some(error.line)),
        (None, None, None) => match by_kind() {
            Some(verdict) => reported("record.code", verdict, text, Some(error.line)),
            None => reported("record.error", AGENT_UNKNOWN, text, Some(error.line)),
        },
    };
    Some(result.rejecting(by_words))
}

/// Words that only sound like the cause must not beat the status: a 500 whose text says "request".
fn agrees(verdict: Verdict, status: Option<u16>) -> bool {
    match status {
        Some(500 | 502 | 504) => {
            use Cause::{AuthFailed, InvalidInput, NetworkError, ResourceNotFound};
            !matches!(
                verdict.cause,
                InvalidInput | AuthFailed | ResourceNotFound | NetworkError
            )
        }
        Some(429) => !matches!(
            verdict.cause,
            Cause::InvalidInput | Cause::ContextExhausted | Cause::NetworkError
        ),
        Some(401 | 403) => matches!(verdict.cause, Cause::AuthFailed | Cause::RateLimited),
        Some(400) => {
            verdict.cause != Cause::NetworkError
                && verdict.detail != Some(CauseDetail::ServiceError)
        }
        _ => true,
    }
}

/// Reads text, last lines first: only lines in which the program speaks of its own trouble.
pub(super) fn from_text(stderr: &Text, stdout: &Text) -> Option<Conclusion> {
    let streams = [
        (EvidenceSource::Stderr, stderr, STDERR_LINES),
        (EvidenceSource::Stdout, stdout, STDOUT_LINES),
    ];
    streams.into_iter().find_map(|(source, text, limit)| {
        let last = || {
            text.lines()
                .rev()
                .filter(|line| !is_record(*line))
                .take(limit)
                .filter(|line| speaks(*line))
        };
        // `status: 400` ends the printout of an error whose words came before it.
        let words = last()
            .filter(|line| !is_bare_status(*line))
            .find_map(|line| reported_by(source, line));
        let vague = words
            .as_ref()
            .is_none_or(|reported| reported.verdict == AGENT_UNKNOWN);
        let status = || last().find_map(|line| reported_by(source, line));
        words.filter(|_| !vague).or_else(status)
    })
}

/// What an API's kind of error means, where no status stands beside it, which says more.
fn verdict_of_kind(code: &str) -> Option<Verdict> {
    match code {
        "invalid_request_error" => Some(BAD_REQUEST),
        "authentication_error" | "permission_error" => Some(AUTH),
        _ => None,
    }
}

/// Reads text whose one line is, or begins with, a code that a record would carry.
pub(super) fn from_code(stderr: &Text, stdout: &Text) -> Option<Conclusion> {
    static CODE: Single = Single::new(
        r"^\W*(?:(?i:error|failed|code|type|reason|cause)(?: (?i:code|type))?\W+)?([A-Za-z]+(?:_[a-z]+)*)\W*(?:$|[:(,]\s)",
    );
    let streams = [
        (EvidenceSource::Stderr, stderr),
        (EvidenceSource::Stdout, stdout),
    ];
    let (source, line) = streams
        .into_iter()
        .find_map(|(source, text)| Some((source, text.lines().next()?)))?;
    let text = line.to_text();
    let code = &text[CODE.first(&text)?.group(1)?];
    let verdict = verdict_of_code(code).or_else(|| verdict_of_kind(code))?;
    Some(Conclusion::of_line("message.code", verdict, source, line))
}

/// What one line of text reports.
fn reported_by(source: EvidenceSource, line: Line<'_>) -> Option<Conclusion> {
    let status = status_in(line);
    let mut rules = matches(line.bytes).filter(|rule| agrees(rule.verdict, status));
    let rule = rules.next()?;
    let reported = Conclusion::of_line(rule.id, rule.verdict, source, line);
    Some(reported.rejecting(rules))
}

/// The HTTP status that a line of text names as the error's.
fn status_in(line: Line<'_>) -> Option<u16> {
    static STATUS: Single = Single::new(
        r"(?:API Error:?|[Ss]tatus(?: [Cc]ode)?:?|HTTP(?:/[\d.]+)?|\x22code\x22:|[Ee]rror:?) \(?([45]\d\d)\b",
    );
    let digits = STATUS.first_in(line.bytes)?.group(1)?;
    std::str::from_utf8(&line.bytes[digits]).ok()?.parse().ok()
}

/// A line that is nothing but a status, such as `status: 400,` or `"code": 429`.
fn is_bare_status(line: Line<'_>) -> bool {
    let text = line.bytes.trim_ascii();
    let letters: Vec<u8> = text
        .iter()
        .copied()
        .filter(u8::is_ascii_alphabetic)
        .collect();
    let digits = text.iter().filter(|byte| byte.is_ascii_digit()).count();
    digits == 3
        && [&b"status"[..], b"code", b"statusCode", b"httpStatus"].contains(&letters.as_slice())
}

/// Whether the line is a JSON record, which the readers have read.
fn is_record(line: Line<'_>) -> bool {
    let text = line.bytes.trim_ascii();
    text.starts_with(b"{\"type\"") || text.len() > 2000 && text.starts_with(b"{")
}

fn speaks(line: Line<'_>) -> bool {
    // The numbers of a comparison are no statuses.
    !compares(line.bytes)
        && !FAMILIES[Family::AgentLine as usize]
            .matches(line.bytes)
            .is_empty()
}

/// Whether a line compares two values, so that its numbers are a check's, not an API's.
pub(super) fn compares(line: &[u8]) -> bool {
    FAMILIES[Family::SummaryAssertion as usize]
        .matches(line)
        .iter()
        .any(|rule| rule.id == COMPARED)
        && !is_of_api(line)
}

/// Whether an API speaks of what it was sent.
pub(super) fn is_of_api(line: &[u8]) -> bool {
    static API: Single = Single::new(
        r"\bAPI\b|(?i)\b(?:litellm|openai|anthropic|invalid[_ ]request)|\bmessages\.\d|\btool_use|\x22error\x22",
    );
    API.first_in(line).is_some()
}

fn matches(text: &[u8]) -> impl Iterator<Item = &'static Rule> {
    let found = FAMILIES[Family::Agent as usize].matches(text);
    found.into_iter().filter(|rule| rule.stages & ANY != 0)
}

/// Codes that records carry.
fn verdict_of_code(code: &str) -> Option<Verdict> {
    Some(match code {
        "error_max_turns" | "FatalTurnLimitedError" => MAX_TURNS,
        "rate_limit" | "rate_limit_error" | "rate_limit_exceeded" => THROTTLED,
        "overloaded" | "overloaded_error" => OVERLOADED,
        "authentication_failed"
        | "oauth_org_not_allowed"
        | "ProviderAuthError"
        | "FatalAuthenticationError" => AUTH,
        "billing_error" | "insufficient_quota" | "1113" | "1309" => QUOTA,
        "usage_limit_reached" | "FreeUsageLimitError" | "1304" | "1308" | "1310" => USAGE_LIMIT,
        "server_error" | "api_error" | "error_during_execution" => SERVICE,
        "model_not_found" | "ProviderModelNotFoundError" => NO_MODEL,
        "max_output_tokens"
        | "MessageOutputLengthError"
        | "context_length_exceeded"
        | "ContextOverflowError" => CONTEXT,
        "invalid_request" | "FatalInputError" | "FatalConfigError" => BAD_REQUEST,
        _ => return None,
    })
}

/// HTTP statuses of the API, and the numbers with which one program ends.
fn verdict_of_status(status: u16) -> Option<Verdict> {
    Some(match status {
        402 => QUOTA,
        401 | 403 => AUTH,
        404 => NO_MODEL,
        408 | 499 => AGENT_NETWORK,
        429 => THROTTLED,
        529 => OVERLOADED,
        400..=428 | 430..=498 => BAD_REQUEST,
        500..=599 => SERVICE,
        _ => return None,
    })
}

/// The exit statuses of Gemini CLI.
pub(super) fn verdict_of_gemini_exit(code: i32) -> Option<(&'static str, Verdict)> {
    Some(match code {
        41 => ("gemini.exit-auth", AUTH),
        42 | 52 => ("gemini.exit-input", BAD_REQUEST),
        53 => ("gemini.exit-turns", MAX_TURNS),
        _ => return None,
    })
}

/// How many of the last lines are read: an error that ended the run is at its end.
const LAST_LINES: usize = 12;
/// How deep an error may be in a record.
const MAX_DEPTH: usize = 4;

/// The last error that the records at the end of an output name, if they name one.
pub(super) fn last_error(stdout: &Text) -> Option<AgentRecord> {
    let error = stdout.lines().rev().take(LAST_LINES).find_map(|line| {
        let text = line.bytes.trim_ascii();
        let record: Value = text
            .starts_with(b"{")
            .then(|| serde_json::from_slice(text).ok())
            .flatten()?;
        error_in(&record, MAX_DEPTH).map(|error| AgentError {
            line: line.number,
            ..error
        })
    })?;
    // The kind is of no account: what counts is the error.
    Some(AgentRecord {
        final_error: Some(error),
        ..AgentRecord::new(AgentKind::Claude)
    })
}

fn error_in(value: &Value, depth: usize) -> Option<AgentError> {
    let (record, deeper) = (value.as_object()?, depth.checked_sub(1)?);
    let text = |name: &str| record.get(name).and_then(Value::as_str);
    // What a tool reported is the agent's business, not its end.
    let of_tool = |name: &str| name.to_ascii_lowercase().contains("tool");
    if text("type").is_some_and(of_tool) || text("role").is_some_and(of_tool) {
        return None;
    }
    let is_error = |name: &str| name.to_ascii_lowercase().contains("error");
    let named =
        record
            .iter()
            .filter(|(name, _)| is_error(name))
            .find_map(|(_, error)| match error {
                Value::String(message) if !message.trim().is_empty() => {
                    Some(error_of(message, record))
                }
                Value::Object(error) => error
                    .get("message")
                    .and_then(Value::as_str)
                    .map(|message| error_of(message, error)),
                _ => None,
            });
    let own = || {
        text("message")
            .filter(|_| text("type").is_some_and(is_error))
            .map(|said| error_of(said, record))
    };
    let inner = || {
        ["message", "data", "event", "payload", "result"]
            .iter()
            .find_map(|name| error_in(record.get(*name)?, deeper))
    };
    let last = || error_in(record.get("messages")?.as_array()?.last()?, deeper);
    named.or_else(own).or_else(inner).or_else(last)
}

/// The words of an error, and the code and status that stand beside them.
fn error_of(message: &str, beside: &Map<String, Value>) -> AgentError {
    let code = ["code", "name", "type"]
        .iter()
        .find_map(|name| beside.get(*name)?.as_str())
        .map(str::to_owned);
    let status = ["status", "statusCode", "status_code", "code"]
        .iter()
        .find_map(|name| beside.get(*name)?.as_u64());
    let status = status.and_then(|status| u16::try_from(status).ok());
    AgentError {
        message: message.to_owned(),
        code,
        status,
        source: EvidenceSource::Record,
        line: 0,
    }
}

/// A longer paragraph is an explanation.
const MAX_CHARS: usize = 1_200;

/// So much of the end is read: a paragraph that is longer is no error alone, however often a program tried again.
const MAX_BYTES: usize = 64 << 10;

/// How aider begins what it adds to an error, the same for all of a kind ("… servers are down or overloaded").
const COMMENT: &str = " The API provider";

/// How programs begin to speak of their own trouble; prose that quotes an error begins otherwise.
static HEAD: Single = Single::new(
    r"^\W{0,4}(?:\[?API Error|(?i:error\W)|(?:[A-Za-z_]+\.)*[A-Za-z]*(?:Error|Exception)\b\W|(?i:you(?:'|’)ve (?:hit|reached|exceeded|exhausted|used)|you have (?:hit|reached|exhausted|exceeded|used|no quota)|you(?:'|’| a)re out of|out of (?:\w+ ){0,2}?(?:usage|credits)|your (?:\w+ ){0,3}?(?:limit|quota|credits|usage)|(?:(?:claude|ai|5-hour|weekly|daily|monthly|opus|session|usage) ){1,3}?limit|free (?:\w+ ){0,2}?(?:usage|quota)|qwen oauth|\[13\d\d\]|credit balance|invalid api key|not logged in|please run /login|oauth token|(?:(?:the )?\w+ (?:\w+ )?rejected the )?prompt (?:\w+ ){0,2}?too long|conversation (?:is )?too long|unable to connect|connection failed|fetch failed|rate limit|request rejected|overloaded|quota exceeded|insufficient_quota|resource_exhausted|repeated 529|status(?: code)?:? [45]\d\d|[45]\d\d [a-z]))",
);

/// What a program does not say of its own trouble, but who reports of work that it is about.
static PROSE: Single = Single::new(
    r"\b(?:I|I'm|I've)\b|(?i)\b(?:add(?:ed|s)|implement(?:s|ed|ation)?|creat(?:ed|es)|wrote|refactored|renamed|fixe[ds]|handl(?:ed|es|er|ing)|shows?|displays?|banner|component|passes|passing|tests?)\b",
);

/// What a program notes of its own surroundings before it fails of something else.
static NOTICE: Single = Single::new(
    r"(?i)\b(?:warn(?:ing)?\b|deprecat|fall(?:ing|s)? ?back\b|not (?:available|found|installed)\W+(?:using|spawn|continuing))",
);

/// A line that is nothing but an address.
static ADDRESS: Single = Single::new(r"^\W*https?://\S+$");

/// What a program advises after its error, with the addresses that it names.
static ADVICE: Single = Single::new(
    r"(?i)^\W*(?:to (?:continue|keep|get|increase|resume|avoid|upgrade)\b|after (?:subscribing|upgrading|that)\b|(?:alternatively\W+)?(?:you can |please )?(?:upgrade|switch|subscribe|run [`'\x22]?/\w+|learn more|see |visit ))",
);

/// The last paragraph of `output` as one line, addresses and advice aside, where it reads like an error of the program itself
/// and nothing else. Whether it is one that is known is for [`classify`](super::classify) to say.
pub(crate) fn lone_error(output: &[u8]) -> Option<String> {
    let end = &output[output.len().saturating_sub(MAX_BYTES)..];
    let text = Text::new(end);
    let mut last = Vec::new();
    // Blank lines are not among them: where a number is left out, a paragraph ends.
    let mut below = None;
    let mut is_whole = end.len() == output.len();
    for line in text.lines().rev() {
        let said = line.to_text();
        let says = said.chars().any(char::is_alphanumeric);
        let follows = below.is_none_or(|below: u64| below.saturating_sub(line.number) <= 1);
        if !last.is_empty() && (!follows || !says) {
            if last
                .last()
                .is_none_or(|first: &String| ADVICE.first(first).is_none())
            {
                is_whole = true;
                break;
            }
            last.clear();
        }
        below = Some(line.number);
        if says && ADDRESS.first(&said).is_none() {
            last.push(said);
        }
    }
    if !is_whole {
        return None;
    }
    // Oldest line first. One error after the other, of a program that tried again: the last one counts.
    last.reverse();
    let noticed = last.iter().position(|line| NOTICE.first(line).is_none())?;
    last.drain(..noticed);
    HEAD.first(last.first()?)?;
    let first_word = |line: &String| line.split_whitespace().next().map(str::to_owned);
    let begins = last
        .iter()
        .rposition(|line| first_word(line) == first_word(&last[0]))?;
    let paragraph = last
        .get(begins..)?
        .join(" ")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let error = paragraph.split(COMMENT).next().unwrap_or(&paragraph);
    let is_alone = error.chars().count() <= MAX_CHARS && PROSE.first(error).is_none();
    is_alone.then(|| escape(error))
}

#[cfg(test)]
mod tests {
    use super::{lone_error, *};

    fn error(output: &str) -> Option<(String, Option<u16>)> {
        let error = last_error(&Text::new(output.as_bytes()))?.final_error?;
        Some((error.message, error.status))
    }

    #[test]
    fn errors_are_found_under_many_names() {
        for (output, expected) in [
            (
                r#"{"type":"end","finalError":"529 busy"}"#,
                Some(("529 busy", None)),
            ),
            (
                r#"{"type":"x","error":{"message":"no","status":401}}"#,
                Some(("no", Some(401))),
            ),
            (r#"{"type":"error","message":"late"}"#, Some(("late", None))),
            (
                r#"{"messages":[{"role":"user"},{"role":"assistant","errorMessage":"cut"}]}"#,
                Some(("cut", None)),
            ),
            (
                r#"{"type":"tool_result","error":"permission denied"}"#,
                None,
            ),
            (r#"{"type":"end","isError":true,"text":"x"}"#, None),
            ("{broken", None),
            ("plain error: words", None),
        ] {
            let expected = expected.map(|(message, status)| (message.to_owned(), status));
            assert_eq!(error(output), expected, "{output}");
        }
    }

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
        let noticed = "(node:7) Warning: the module is old\nRipgrep not available: spawn rg EACCES. Falling back to built-in grep.\n\
                       [API Error: 503 The service is temporarily unavailable.]\n";
        let error = lone_error(noticed.as_bytes()).unwrap();
        assert!(error.starts_with("[API Error: 503"), "{error}");
        assert_eq!(lone_error(b"Warning: the cache is old.\n"), None);
        let advised = "Working on it.\n\n[API Error: Qwen OAuth quota exceeded: Your free daily quota has been reached.\n\n\
                       To continue without waiting, upgrade to the Coding Plan:\n  China:  https://x.example/zh\n  \
                       Global: https://x.example/en\n\nAfter subscribing, run /auth to configure your key.]\n";
        let error = lone_error(advised.as_bytes()).unwrap();
        assert!(error.ends_with("daily quota has been reached."), "{error}");
        assert_eq!(
            lone_error(b"I moved the parser.\n\nTo continue, run /test.\n"),
            None
        );
        for said in [
            "You've hit your usage limit.\nhttps://x.example/usage\n",
            "Done.\n\n\u{25a0} You've hit your usage limit.\n\nhttps://x.example/usage\nhttps://x.example/more\n",
        ] {
            let error = lone_error(said.as_bytes()).unwrap();
            assert!(error.ends_with("You've hit your usage limit."), "{error}");
        }
        for said in [
            "Rate limit handling is in src/limit.rs.",
            "You've hit your usage limit: that is what the banner says.",
            "Error: 429 is what the client shows now.",
            "You've hit your usage limit.\n\nDone: https://x.example/pull/1",
            "https://x.example/pull/1",
            "The test fails with \"API Error: 429\", so I added a retry.",
            "Done.\n\nAll tests pass.",
            "API Error: 500\n\nI worked around it and everything passes now.",
            "",
        ] {
            assert_eq!(lone_error(said.as_bytes()), None, "{said}");
        }
    }
}
