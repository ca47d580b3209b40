//! What agents say of limits, quotas and credit, in text and in records, and when it resets.

use super::{evidence, now, short};
use crate::agent;
use crate::model::agent_record::AgentKind;
use crate::model::failure::{Condition, Failure, FailureEvidence};
use crate::policy::classify::classify;

/// Whose it is, what was printed, the verdict, and the reset.
type Case = (AgentKind, &'static str, &'static str, &'static str);

const LIMIT: &str = "a RATE_LIMITED+ UsageLimit";
const QUOTA: &str = "a AUTH_FAILED Quota";
const CONTEXT: &str = "a CONTEXT_EXHAUSTED";

/// In Berlin, on a Sunday at half past three.
const CASES: &[Case] = &[
    (
        AgentKind::Claude,
        "You're out of usage credits \u{b7} resets 9pm (America/New_York)",
        LIMIT,
        "2026-11-23T02:00:00Z",
    ),
    (
        AgentKind::Claude,
        "You've hit your weekly limit \u{b7} resets Nov 27 at 10am",
        LIMIT,
        "2026-11-27T09:00:00Z",
    ),
    (
        AgentKind::Claude,
        "You've hit your monthly limit \u{b7} resets Dec 1 at 12am",
        QUOTA,
        "",
    ),
    (
        AgentKind::Claude,
        "API Error: 429 {\"error\":{\"code\":\"1308\",\"message\":\"[1308][Usage limit reached for 5 hour. Your limit will reset at 2026-11-22 18:12:13]\"}}",
        LIMIT,
        "2026-11-22T17:12:13Z",
    ),
    (
        AgentKind::Claude,
        "API Error: 429 {\"error\":{\"code\":\"1308\",\"message\":\"\u{5df2}\u{8fbe}\u{5230} 5 \u{5c0f}\u{65f6}\u{7684}\u{4f7f}\u{7528}\u{4e0a}\u{9650}\u{3002}\u{60a8}\u{7684}\u{9650}\u{989d}\u{5c06}\u{5728} 2026-11-22 17:41:44 \u{91cd}\u{7f6e}\u{3002}\"}}",
        LIMIT,
        "2026-11-22T16:41:44Z",
    ),
    (
        AgentKind::Claude,
        "API Error: 429 {\"error\":{\"code\":\"1113\",\"message\":\"\u{4f59}\u{989d}\u{4e0d}\u{8db3}\"}}",
        QUOTA,
        "",
    ),
    (
        AgentKind::Aider,
        "{\"type\":\"error\",\"error\":{\"message\":\"\u{4f7f}\u{7528}\u{4e0a}\u{9650} 2026-11-22 17:41:44\",\"code\":\"1308\"}}",
        LIMIT,
        "2026-11-22T16:41:44Z",
    ),
    (
        AgentKind::Claude,
        "[1310][Weekly/Monthly Limit Exhausted. Your limit will reset at 2026-11-25 10:00:00][2026]",
        LIMIT,
        "2026-11-25T09:00:00Z",
    ),
    (
        AgentKind::Claude,
        r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You've hit your session limit · resets 6:20pm","session_id":"s"}"#,
        LIMIT,
        "2026-11-22T17:20:00Z",
    ),
    (
        AgentKind::Claude,
        r#"{"type":"result","subtype":"success","is_error":true,"result":"Credit balance is too low","session_id":"s"}"#,
        QUOTA,
        "",
    ),
    (
        AgentKind::Codex,
        "You've hit your usage limit. Visit https://x.example/settings to purchase more credits or try again at Nov 24th, 2026 12:27 AM.",
        LIMIT,
        "2026-11-23T23:27:00Z",
    ),
    (
        AgentKind::Codex,
        "You have exceeded your 5 hour session limits. Try again in 3 hours 12 minutes.",
        LIMIT,
        "2026-11-22T17:42:00Z",
    ),
    (
        AgentKind::Codex,
        r#"{"type":"turn.failed","error":{"message":"You've hit your usage limit. Try again at 5:45 PM."}}"#,
        LIMIT,
        "2026-11-22T16:45:00Z",
    ),
    (
        AgentKind::Codex,
        r#"{"type":"turn.failed","error":{"message":"Your workspace is out of credits. Ask your admin to refill."}}"#,
        QUOTA,
        "",
    ),
    (
        AgentKind::Codex,
        "ERROR: The model rejected the prompt as too long.",
        CONTEXT,
        "",
    ),
    (
        AgentKind::Gemini,
        "\u{2715} [API Error: You have exhausted your daily quota on this model.]",
        LIMIT,
        "",
    ),
    (
        AgentKind::Gemini,
        "Error: You have exhausted your capacity on this model. Your quota will reset after 19h12m.",
        LIMIT,
        "2026-11-23T09:42:00Z",
    ),
    (
        AgentKind::Gemini,
        "Usage limit reached for gemini-3-pro. Access resets at 8:57 PM GMT-3.",
        LIMIT,
        "2026-11-22T23:57:00Z",
    ),
    (
        AgentKind::Gemini,
        r#"{"error":{"type":"TerminalQuotaError","message":"You have exhausted your daily quota on this model. Your quota will reset after 8h44m7s.","code":429}}"#,
        LIMIT,
        "2026-11-22T23:14:07Z",
    ),
    (
        AgentKind::Qwen,
        "[API Error: Qwen OAuth quota exceeded: Your free daily quota has been reached.]",
        LIMIT,
        "",
    ),
    (
        AgentKind::Qwen,
        "Error: 429 Free allocated quota exceeded.",
        LIMIT,
        "",
    ),
    (
        AgentKind::Qwen,
        "Error: Qwen OAuth free tier has been discontinued as of 2026-04-15.",
        QUOTA,
        "",
    ),
    (
        AgentKind::Copilot,
        "Monthly usage limit reached \u{b7} resets Mar 31",
        QUOTA,
        "",
    ),
    (
        AgentKind::Claude,
        "Error: prompt rejected as too long (212000 tokens)",
        CONTEXT,
        "",
    ),
    (
        AgentKind::Qwen,
        "Internal error: Qwen OAuth free tier quota exceeded.",
        LIMIT,
        "",
    ),
    (
        AgentKind::Opencode,
        "Free usage exceeded, subscribe to Go\nretrying in 6h16m - attempt #1",
        LIMIT,
        "2026-11-22T20:46:00Z",
    ),
    (
        AgentKind::Opencode,
        "Error: Free usage exceeded, add credits https://x.example/zen [retrying in 17h 42m attempt #1]",
        LIMIT,
        "2026-11-23T08:12:00Z",
    ),
    (
        AgentKind::Opencode,
        r#"{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"Free usage exceeded, subscribe to Go","statusCode":429,"responseHeaders":{"retry-after":"5400"}}}}"#,
        LIMIT,
        "2026-11-22T16:00:00Z",
    ),
    (
        AgentKind::Opencode,
        "You have used all of today\u{2019}s free usage on this account. Come back in 3h 47m.",
        LIMIT,
        "2026-11-22T18:17:00Z",
    ),
    (
        AgentKind::Copilot,
        "\u{2718} Quota exceeded. Upgrade to increase your limit: https://x.example/plans\n\n\u{2718} Execution failed: 402 You have no quota",
        QUOTA,
        "",
    ),
    (
        AgentKind::Copilot,
        "You have reached your monthly limit for premium requests.",
        QUOTA,
        "",
    ),
    (
        AgentKind::Copilot,
        "Error: You have exceeded your premium request allowance.",
        QUOTA,
        "",
    ),
    (
        AgentKind::Copilot,
        r#"{"type":"session.error","data":{"errorType":"quota","message":"402 You have no quota (Request ID: A1:B2)","statusCode":402}}"#,
        QUOTA,
        "",
    ),
    (
        AgentKind::Copilot,
        "You've hit your rate limit. Please try again in 2 Hours 14 Minutes.",
        "a RATE_LIMITED+ Throttled",
        "2026-11-22T16:44:00Z",
    ),
    (
        AgentKind::Aider,
        "litellm.BadRequestError: OpenAIException - The provider rejected the prompt as too long",
        CONTEXT,
        "",
    ),
    (
        AgentKind::Aider,
        "litellm.RateLimitError: RateLimitError: OpenAIException - You exceeded your current quota, insufficient_quota",
        QUOTA,
        "",
    ),
];

fn classified(kind: AgentKind, output: &str) -> Failure {
    let evidence = FailureEvidence {
        time_zone: Some("Europe/Berlin".to_owned()),
        ..evidence('a', 1, output, false)
    };
    let record = agent::read(kind, &evidence.stdout, &evidence.stderr);
    classify(&evidence, Some(&record), &[], now())
}

#[test]
fn limits_of_agents() {
    for (kind, output, verdict, reset) in CASES {
        let failure = classified(*kind, output);
        let mut seen = short(&failure);
        if let Some(detail) = failure.detail {
            seen += &format!(" {detail:?}");
        }
        for condition in &failure.conditions {
            seen += &format!(" {condition:?}");
        }
        let reset = (!reset.is_empty()).then(|| reset.parse().unwrap());
        assert_eq!(
            (seen.as_str(), failure.retry_after),
            (*verdict, reset),
            "{output}\n{:?}",
            failure.evidence
        );
    }
}

#[test]
fn refused_credentials_are_no_quota() {
    let failure = classified(
        AgentKind::Claude,
        "Invalid API key \u{b7} Please run /login",
    );
    assert_eq!(short(&failure), "a AUTH_FAILED");
    assert!(!failure.conditions.contains(&Condition::Quota));
}
