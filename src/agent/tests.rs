//! Readers of agents' records against output of each program.

use super::{detect, read};
use crate::model::agent_record::AgentKind;

#[test]
fn an_agent_is_found_in_a_command_line() {
    for (command, kind) in [
        ("claude -p x", Some(AgentKind::Claude)),
        ("cd app && FOO=1 timeout 30m codex exec --json x", Some(AgentKind::Codex)),
        ("npx -y @google/gemini-cli -p x", Some(AgentKind::Gemini)),
        ("/usr/local/bin/opencode run x", Some(AgentKind::Opencode)),
        ("cargo test claude", None),
        ("grep codex README.md", None),
    ] {
        assert_eq!(detect(Some(command), None, b""), kind, "{command}");
    }
    assert_eq!(detect(Some("./loop.sh"), Some("aider"), b""), Some(AgentKind::Aider));
    assert_eq!(detect(None, None, b"{\"type\":\"thread.started\",\"thread_id\":\"t\"}\n"), Some(AgentKind::Codex));
}

#[test]
fn is_error_beats_the_subtype_and_quotes_are_not_read() {
    let stdout = br#"{"type":"user","message":{"content":[{"type":"tool_result","content":"[Request interrupted by user]"}]},"session_id":"s"}
{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1790000000}}
{"type":"assist
{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"num_turns":3,"total_cost_usd":0.5,"result":"limit","session_id":"s","permission_denials":[{"tool_name":"Bash"}]}
"#;
    let record = read(AgentKind::Claude, stdout, b"");
    let error = record.final_error.unwrap();
    assert_eq!((error.status, error.line), (Some(429), 4));
    assert!(!record.is_success && !record.interrupted);
    assert_eq!(record.resets_at, Some(1_790_000_000));
    assert_eq!((record.turns, record.session_id.as_deref()), (Some(3), Some("s")));
    assert_eq!(record.permission_denials, ["Bash"]);
}

#[test]
fn an_error_that_was_overcome_is_none() {
    let stdout = br#"{"type":"thread.started","thread_id":"t1"}
{"type":"turn.started"}
{"type":"error","message":"stream disconnected before completion"}
{"type":"turn.completed","usage":{}}"#;
    let record = read(AgentKind::Codex, stdout, b"");
    assert!(record.is_success && record.final_error.is_none());
    let only_reconnecting = read(AgentKind::Codex, br#"{"type":"error","message":"Reconnecting... 1/5"}"#, b"");
    assert!(only_reconnecting.final_error.is_none());
}

#[test]
fn gemini_and_opencode_errors() {
    let stdout = b"Loaded cached credentials.\n{\n  \"session_id\": \"g\",\n  \"error\": {\"type\": \"FatalAuthenticationError\", \"message\": \"no\", \"code\": 41}\n}\n";
    let record = read(AgentKind::Gemini, stdout, b"");
    let error = record.final_error.unwrap();
    assert_eq!((error.code.as_deref(), error.line), (Some("FatalAuthenticationError"), 2));
    let stdout = br#"{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"Overloaded","statusCode":529}}}"#;
    let record = read(AgentKind::Opencode, stdout, b"");
    assert_eq!(record.final_error.unwrap().status, Some(529));
    assert_eq!(record.session_id.as_deref(), Some("ses_1"));
    assert_eq!(
        read(AgentKind::Aider, b"Tokens: 2k sent. Cost: $0.01 message, $0.30 session.\n", b"").cost_usd,
        Some(0.3)
    );
}
