//! Classifies by what the agent's program or API reported.

use super::rules::{ANY, COMPARED, FAMILIES, Family, Rule};
use super::verdict::{
    AGENT_NETWORK, AGENT_UNKNOWN, AUTH, BAD_REQUEST, CANCELLED, CONTEXT, DENIED, MAX_TURNS,
    NO_MODEL, OVERLOADED, SERVICE, THROTTLED, Verdict,
};
use crate::model::agent_record::AgentRecord;
use crate::model::failure::{Cause, CauseDetail, EvidenceSource};
use crate::policy::patterns::Single;
use crate::policy::text::{Line, Text};

/// How many of the last lines of stderr are read.
const STDERR_LINES: usize = 60;
/// How many of the last lines of stdout are read: before them is prose.
const STDOUT_LINES: usize = 12;

/// What was concluded, and from what.
pub(super) struct Reported {
    pub rule: &'static str,
    pub verdict: Verdict,
    pub source: EvidenceSource,
    pub line: Option<u64>,
    pub text: String,
    /// Later rules that matched the same text.
    pub lost: Vec<&'static Rule>,
}

/// Reads the record: the final error's words, then its code, then its HTTP status.
pub(super) fn from_record(record: &AgentRecord) -> Option<Reported> {
    let reported = |rule, verdict, text: String, line| Reported {
        rule,
        verdict,
        source: EvidenceSource::Record,
        line,
        text,
        lost: Vec::new(),
    };
    if record.interrupted {
        return Some(reported(
            "record.interrupted",
            CANCELLED,
            "Interrupted".to_owned(),
            None,
        ));
    }
    let Some(error) = &record.final_error else {
        let denied = !record.permission_denials.is_empty() && !record.is_success;
        let tools = record.permission_denials.join(", ");
        return denied.then(|| {
            reported(
                "record.permission-denials",
                DENIED,
                format!("Not permitted: {tools}"),
                None,
            )
        });
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
    let mut result = match (words, by_code, by_status) {
        _ if counted.is_some() => reported("record.code", MAX_TURNS, text, Some(error.line)),
        (Some(rule), ..) => reported(rule.id, rule.verdict, text, Some(error.line)),
        (None, Some(verdict), _) => reported("record.code", verdict, text, Some(error.line)),
        (None, None, Some(verdict)) => reported("record.status", verdict, text, Some(error.line)),
        (None, None, None) => match by_kind() {
            Some(verdict) => reported("record.code", verdict, text, Some(error.line)),
            None => reported("record.error", AGENT_UNKNOWN, text, Some(error.line)),
        },
    };
    result.lost = by_words.collect();
    Some(result)
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
pub(super) fn from_text(stderr: &Text, stdout: &Text) -> Option<Reported> {
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
pub(super) fn from_code(stderr: &Text, stdout: &Text) -> Option<Reported> {
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
    let number = Some(line.number).filter(|number| *number > 0);
    Some(Reported {
        rule: "message.code",
        verdict,
        source,
        line: number,
        text,
        lost: Vec::new(),
    })
}

/// What one line of text reports.
fn reported_by(source: EvidenceSource, line: Line<'_>) -> Option<Reported> {
    let status = status_in(line);
    let mut rules = matches(line.bytes).filter(|rule| agrees(rule.verdict, status));
    let rule = rules.next()?;
    let number = Some(line.number).filter(|number| *number > 0);
    let lost = rules.collect();
    Some(Reported {
        rule: rule.id,
        verdict: rule.verdict,
        source,
        line: number,
        text: line.to_text(),
        lost,
    })
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
        | "billing_error"
        | "insufficient_quota"
        | "ProviderAuthError"
        | "FatalAuthenticationError" => AUTH,
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
pub(super) fn verdict_of_status(status: u16) -> Option<Verdict> {
    Some(match status {
        401..=403 => AUTH,
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
