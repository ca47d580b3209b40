//! What agents' programs say, as text and as records.

use super::{Case, check, evidence, now, short};
use crate::agent;
use crate::model::agent_record::AgentKind;
use crate::model::failure::{CauseDetail, FailureEvidence};
use crate::model::feedback::CheckKind;
use crate::policy::classify::classify;

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
