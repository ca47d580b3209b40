//! Invented outputs of many tools, each as short as its point, and what they mean.

mod checks;
mod headlines;
mod kinds;
mod limits;
mod messages;
mod projects;
mod refused;

use std::time::Duration;

use proptest::prelude::*;

use super::{cancelled, classify, supervisor_lost};
use crate::agent;
use crate::model::agent_record::AgentKind;
use crate::model::failure::{
    Cause, CauseDetail, EvidenceSource, Failure, FailureEvidence, FailureType,
};
use crate::model::feedback::CheckKind;
use crate::model::time::Timestamp;
use crate::policy::settings::UserRule;

/// Stage, exit status, output (stdout and stderr alike), `cause` or `cause+` where the same again may succeed.
type Case = (char, i32, &'static str, &'static str);

fn now() -> Timestamp {
    "2026-11-22T14:30:00Z".parse().unwrap()
}

fn stage(letter: char) -> Option<CheckKind> {
    match letter {
        'a' => Some(CheckKind::Agent),
        'b' => Some(CheckKind::Build),
        't' => Some(CheckKind::Test),
        'l' => Some(CheckKind::Lint),
        'c' => Some(CheckKind::Typecheck),
        _ => None,
    }
}

fn evidence(letter: char, code: i32, output: &str, on_stderr: bool) -> FailureEvidence {
    let (stdout, stderr) = if on_stderr {
        ("", output)
    } else {
        (output, "")
    };
    FailureEvidence {
        stage: stage(letter),
        exit_code: Some(code),
        stdout: stdout.into(),
        stderr: stderr.into(),
        ..FailureEvidence::default()
    }
}

fn short(failure: &Failure) -> String {
    let kind = match failure.kind.as_str() {
        "feedback_failure" => "f",
        "system_error" => "s",
        "agent_error" => "a",
        "timeout" => "t",
        "cancellation" => "x",
        _ => "c",
    };
    let retry = if failure.retryable { "+" } else { "" };
    format!("{kind} {}{retry}", failure.cause.as_str())
}

/// Every case on both streams: what is said counts, not where.
fn check(cases: &[Case]) {
    let mut misses = Vec::new();
    for (letter, code, output, wanted) in cases {
        for on_stderr in [false, true] {
            let failure = classify(
                &evidence(*letter, *code, output, on_stderr),
                None,
                &[],
                now(),
            );
            if short(&failure) != *wanted {
                let seen = short(&failure);
                misses.push(format!(
                    "wanted {wanted}, seen {seen} by {:?}\n{output}\n",
                    failure.evidence[0]
                ));
                break;
            }
        }
    }
    assert!(
        misses.is_empty(),
        "{} of {}:\n{}",
        misses.len(),
        cases.len(),
        misses.join("\n")
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_classified_and_always_alike(
        stdout in proptest::collection::vec(any::<u8>(), 0..2000),
        stderr in "(error|FAILED|\\x1b\\[|[\\r\\n]|E   |Permission denied|resets |[0-9]{1,12}|\\{\"type\":|\\PC){0,60}",
        code in any::<i32>(),
        letter in "[abtlc-]",
    ) {
        let evidence = FailureEvidence {
            stage: stage(letter.chars().next().unwrap_or('-')),
            exit_code: Some(code),
            stdout,
            stderr: stderr.into_bytes(),
            ..FailureEvidence::default()
        };
        for kind in [AgentKind::Claude, AgentKind::Codex, AgentKind::Gemini, AgentKind::Opencode, AgentKind::Aider] {
            let record = agent::read(kind, &evidence.stdout, &evidence.stderr);
            let first = classify(&evidence, Some(&record), &[], now());
            let second = classify(&evidence, Some(&record), &[], now());
            prop_assert_eq!(&first, &second);
            prop_assert!(first.details.as_ref().is_none_or(|details| details.len() <= 8 << 10));
            prop_assert!(first.message.len() <= 300 && first.rejected.len() <= 10);
        }
    }
}

#[test]
fn a_deadline_beats_everything() {
    let mut evidence = evidence(
        't',
        0,
        "1 failed, 2 passed in 0.1s\nKeyboardInterrupt",
        false,
    );
    evidence.duration = Some(Duration::from_secs(60));
    evidence.deadline = Some(Duration::from_secs(60));
    assert_eq!(
        short(&classify(&evidence, None, &[], now())),
        "t TOOL_TIMEOUT+"
    );
    evidence.deadline = Some(Duration::from_secs(61));
    assert_eq!(short(&classify(&evidence, None, &[], now())), "x CANCELLED");
}

#[test]
fn timeout1_counts_only_when_its_time_was_up() {
    let run = |command: &str, millis| {
        let mut evidence = evidence('t', 124, "", false);
        evidence.command = Some(command.to_owned());
        evidence.duration = Some(Duration::from_millis(millis));
        short(&classify(&evidence, None, &[], now()))
    };
    assert_eq!(run("timeout 4 cargo test", 4033), "t TOOL_TIMEOUT+");
    assert_eq!(run("timeout 60 ./check.sh", 300), "f UNKNOWN");
    assert_eq!(run("./soak.sh", 300), "t TOOL_TIMEOUT+");
}

#[test]
fn what_cannot_start_is_missing_or_refused() {
    let run = |error: &str| {
        let spawn_error = Some(error.to_owned());
        short(&classify(
            &FailureEvidence {
                spawn_error,
                ..FailureEvidence::default()
            },
            None,
            &[],
            now(),
        ))
    };
    assert_eq!(
        run("No such file or directory (os error 2)"),
        "s RESOURCE_NOT_FOUND"
    );
    assert_eq!(
        run("Permission denied (os error 13)"),
        "s PERMISSION_DENIED"
    );
}

#[test]
fn user_rules_come_first() {
    let rule = UserRule {
        id: "mine".to_owned(),
        pattern: "license server".to_owned(),
        source: Some(EvidenceSource::Stderr),
        stage: Some(CheckKind::Build),
        kind: None,
        cause: Cause::NetworkError,
        retryable: None,
    };
    let evidence = evidence('b', 1, "a.c:1:1: error: x\nno license server today", true);
    let failure = classify(&evidence, None, &[rule], now());
    assert_eq!(
        (short(&failure).as_str(), failure.evidence[0].line),
        ("s NETWORK_ERROR+", Some(2))
    );
}

#[test]
fn a_limit_that_a_user_rule_names_resets_when_its_line_says() {
    let rule = UserRule {
        id: "licences".to_owned(),
        pattern: "all licences are in use".to_owned(),
        source: None,
        stage: None,
        kind: None,
        cause: Cause::RateLimited,
        retryable: None,
    };
    let said = |line: &str| {
        classify(
            &evidence('b', 1, line, true),
            None,
            std::slice::from_ref(&rule),
            now(),
        )
    };
    let waits = said("all licences are in use, try again in 90 seconds").retry_after;
    assert_eq!(waits, Some(now().plus(std::time::Duration::from_secs(90))));
    assert_eq!(said("all licences are in use").retry_after, None);
}

#[test]
fn megabytes_of_noise_hide_nothing() {
    let mut output =
        "2026 GET /a/b?c=1 200 connection pool 17 of 20, 3 retries, error rate 0.1 %\n"
            .repeat(40_000);
    output.push_str("--- FAIL: TestX (0.00s)\nFAIL\tx\t0.1s\n");
    let failure = classify(&evidence('t', 1, &output, false), None, &[], now());
    assert_eq!(short(&failure), "f VERIFICATION_FAILED");
}

#[test]
fn verdicts_say_why_and_hide_secrets() {
    let output = "curl: (6) Could not resolve host: x\nerror: https://me:hunter22@x/y failed\n";
    let failure = classify(&evidence('b', 6, output, true), None, &[], now());
    assert_eq!(failure.evidence[0].rule, "network.name");
    assert_eq!(
        (failure.evidence[0].source, failure.evidence[0].line),
        (EvidenceSource::Stderr, Some(1))
    );
    assert!(!failure.details.unwrap().contains("hunter22"));
}

#[test]
fn what_is_known_is_what_the_questions_would_find() {
    let now = Timestamp::from_millis(0);
    let stopped = FailureEvidence {
        cancelled: true,
        ..FailureEvidence::default()
    };
    assert_eq!(cancelled(), classify(&stopped, None, &[], now));
    let killed = FailureEvidence {
        signal: Some("SIGKILL".to_owned()),
        ..FailureEvidence::default()
    };
    let (lost, found) = (supervisor_lost(), classify(&killed, None, &[], now));
    assert_eq!(
        (lost.kind, lost.cause),
        (FailureType::Crash, Cause::Crashed)
    );
    assert_eq!(
        (&lost.signature, &lost.evidence, lost.severity),
        (&found.signature, &found.evidence, found.severity)
    );
}

const TEXTS: &[Case] = &[
    (
        'a',
        1,
        "You've hit your session limit · resets 3:45pm (Europe/Berlin)",
        "a RATE_LIMITED+",
    ),
    (
        'a',
        1,
        "5-hour limit reached ∙ resets 3am",
        "a RATE_LIMITED+",
    ),
    (
        'a',
        1,
        "ERROR: Your workspace is out of credits. Add credits to continue.",
        "a AUTH_FAILED",
    ),
    (
        'a',
        1,
        "ERROR: Quota exceeded. Check your plan and billing details.",
        "a AUTH_FAILED",
    ),
    (
        'a',
        1,
        "Error: 429 You exceeded your current quota, please check your plan and billing details. RESOURCE_EXHAUSTED. Please retry in 34.07s.",
        "a RATE_LIMITED+",
    ),
    (
        'a',
        1,
        "API Error: Repeated 529 Overloaded errors",
        "a RATE_LIMITED+",
    ),
    (
        'a',
        1,
        "ERROR: We're currently experiencing high demand, which may cause temporary errors.",
        "a RATE_LIMITED+",
    ),
    ('a', 1, "Not logged in · Please run /login", "a AUTH_FAILED"),
    (
        'a',
        41,
        "Please set an Auth method in your settings.json or specify GEMINI_API_KEY",
        "a AUTH_FAILED",
    ),
    (
        'a',
        0,
        "litellm.AuthenticationError: AnthropicException - invalid x-api-key",
        "a AUTH_FAILED",
    ),
    (
        'a',
        0,
        "litellm.RateLimitError: RateLimitError: OpenAIException - Rate limit reached for gpt-4o",
        "a RATE_LIMITED+",
    ),
    (
        'a',
        0,
        "litellm.ContextWindowExceededError: This model's maximum context length is 8192 tokens",
        "a CONTEXT_EXHAUSTED",
    ),
    (
        'a',
        1,
        "API Error: Unable to connect to API (ECONNREFUSED)",
        "a NETWORK_ERROR+",
    ),
    (
        'a',
        1,
        "ERROR: stream disconnected before completion: error sending request for url (http://x/v1/responses)",
        "a NETWORK_ERROR+",
    ),
    ('a', 1, "[API Error: fetch failed]", "a NETWORK_ERROR+"),
    (
        'a',
        1,
        "Error: The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "a CONTEXT_EXHAUSTED",
    ),
    ('a', 1, "Error: Reached max turns (5)", "a UNKNOWN+"),
    (
        'a',
        1,
        "No conversation found with session ID: 1234",
        "a RESOURCE_NOT_FOUND",
    ),
    (
        'a',
        1,
        "No saved session found with title \"01a1ffd1\".",
        "a RESOURCE_NOT_FOUND",
    ),
    (
        'a',
        1,
        "Error: No session, task, or name matched '01a1ffd1'.",
        "a RESOURCE_NOT_FOUND",
    ),
    (
        'a',
        1,
        "Error: Model not found: acme/nope-1",
        "a RESOURCE_NOT_FOUND",
    ),
    (
        'a',
        1,
        "API Error: 502 <html><h1>502 Bad Gateway</h1></html>",
        "a UNKNOWN+",
    ),
    (
        'a',
        1,
        "API Error: 400 {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1: tool_use ids must have results\"}}",
        "a INVALID_INPUT",
    ),
    (
        'a',
        127,
        "bash: line 1: codex: command not found",
        "s RESOURCE_NOT_FOUND",
    ),
    (
        'a',
        1,
        "Error: EACCES: permission denied, open '/home/x/.claude.json'",
        "s PERMISSION_DENIED",
    ),
    ('a', 130, "", "x CANCELLED"),
    ('a', 137, "error: rate limit", "c CRASHED+"),
    ('a', 1, "", "a UNKNOWN+"),
];

#[test]
fn texts() {
    check(TEXTS);
}

fn with_record(kind: AgentKind, code: i32, stdout: &str) -> String {
    let evidence = evidence('a', code, stdout, false);
    let record = agent::read(kind, &evidence.stdout, &evidence.stderr);
    short(&classify(&evidence, Some(&record), &[], now()))
}

#[test]
fn records() {
    use AgentKind::{Claude, Codex, Gemini, Opencode};
    let quoted = r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"No space left on device\nAPI Error: 401"}]},"session_id":"s"}"#;
    for (kind, code, stdout, wanted) in [
        (
            Claude,
            1,
            r#"{"type":"result","subtype":"error_max_turns","is_error":true,"num_turns":4}"#,
            "a UNKNOWN+",
        ),
        (
            Claude,
            1,
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"Invalid bearer token"}"#,
            "a AUTH_FAILED",
        ),
        (
            Claude,
            0,
            r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":500,"result":"API Error: 500 invalid request state"}"#,
            "a UNKNOWN+",
        ),
        (
            Codex,
            0,
            r#"{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}"#,
            "a AUTH_FAILED",
        ),
        (
            Codex,
            1,
            r#"{"type":"turn.failed","error":{"message":"Your input exceeds the context window of this model."}}"#,
            "a CONTEXT_EXHAUSTED",
        ),
        (
            Gemini,
            53,
            r#"{"error":{"type":"FatalTurnLimitedError","message":"Reached max session turns for this session.","code":53}}"#,
            "a UNKNOWN+",
        ),
        (
            Gemini,
            1,
            r#"{"error":{"type":"ApiError","message":"{\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}","code":1}}"#,
            "a RATE_LIMITED+",
        ),
        (
            Opencode,
            1,
            r#"{"type":"error","sessionID":"s","error":{"name":"ProviderAuthError","data":{"message":"no key"}}}"#,
            "a AUTH_FAILED",
        ),
        (
            Opencode,
            1,
            r#"{"type":"error","sessionID":"s","error":{"name":"MessageAbortedError","data":{"message":"aborted"}}}"#,
            "x CANCELLED",
        ),
    ] {
        assert_eq!(with_record(kind, code, stdout), wanted, "{stdout}");
        assert_eq!(
            with_record(kind, code, &format!("{quoted}\n{stdout}\n")),
            wanted,
            "after a quote: {stdout}"
        );
    }
    assert_eq!(with_record(Claude, 1, quoted), "a UNKNOWN+");
}

#[test]
fn a_usage_limit_names_its_reset() {
    let evidence = evidence(
        'a',
        1,
        "You've hit your session limit · resets 3:45pm (Europe/Berlin)",
        false,
    );
    let failure = classify(&evidence, None, &[], now());
    assert_eq!(failure.detail, Some(CauseDetail::UsageLimit));
    assert_eq!(
        failure.retry_after,
        Some("2026-11-22T14:45:00Z".parse().unwrap())
    );
    assert_eq!(failure.evidence[0].line, Some(1));
}

#[test]
fn a_bare_message_is_evidence() {
    let classified = |stage, message: &str| {
        let message = Some(message.to_owned());
        short(&classify(
            &FailureEvidence {
                stage,
                message,
                exit_code: Some(1),
                ..FailureEvidence::default()
            },
            None,
            &[],
            now(),
        ))
    };
    assert_eq!(
        classified(Some(CheckKind::Test), "the totals are off"),
        "f VERIFICATION_FAILED"
    );
    assert_eq!(
        classified(Some(CheckKind::Build), "it stops"),
        "f BROKEN_BUILD"
    );
    assert_eq!(classified(None, "it stops"), "f UNKNOWN");
    assert_eq!(
        classified(None, "API Error: 529 Overloaded"),
        "a RATE_LIMITED+"
    );
    assert_eq!(
        classified(None, "cp: cannot create 'a': No space left on device"),
        "s DISK_FULL"
    );
}
