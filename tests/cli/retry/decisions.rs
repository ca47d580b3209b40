//! What is decided of each kind of failure, attempt after attempt, through `attempt fail --check` (A2, S7, S8).

use serde_json::Value;

use crate::env::TestEnv;
use crate::run::supervision::NOW;

/// A kind of failure: what the loop saw of it, what is decided each time, the exit code then, the first wait in ms.
struct Row {
    name: &'static str,
    seen: &'static [&'static str],
    stderr: &'static str,
    cause: &'static str,
    /// `actions exit`, attempt by attempt; the last one is repeated once more and must not change.
    decided: &'static [&'static str],
    first_wait_ms: (u64, u64),
}

const ROWS: [Row; 13] = [
    Row {
        name: "a test fails",
        seen: &["--loop", "test", "--exit-code", "1"],
        stderr: "FAILED tests/test_a.py::test_sum - assert 1 == 2\n1 failed, 3 passed in 0.1s",
        cause: "VERIFICATION_FAILED",
        decided: &["retry 6", "retry 6", "skip+escalate 8"],
        first_wait_ms: (5000, 5000),
    },
    Row {
        name: "it does not compile, and nothing good is there to go back to",
        seen: &["--loop", "build", "--exit-code", "101"],
        stderr: "error[E0308]: mismatched types\n --> src/main.rs:2:5\nerror: could not compile `a`",
        cause: "BROKEN_BUILD",
        decided: &["escalate 8"],
        first_wait_ms: (0, 0),
    },
    Row {
        name: "nobody knows why",
        seen: &["--exit-code", "3"],
        stderr: "",
        cause: "UNKNOWN",
        decided: &["retry 6", "escalate 8"],
        first_wait_ms: (5000, 5000),
    },
    Row {
        name: "the network is away",
        seen: &["--exit-code", "7"],
        stderr: "curl: (7) Failed to connect to example.com port 443: Connection refused",
        cause: "NETWORK_ERROR",
        decided: &[
            "retry 6", "retry 6", "retry 6", "retry 6", "retry 6", "none 7",
        ],
        first_wait_ms: (1000, 1000),
    },
    Row {
        name: "too many requests",
        seen: &["--exit-code", "1", "--loop", "agent"],
        stderr: "API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow down\"}}",
        cause: "RATE_LIMITED",
        // Ten retries are its own, but six failures are the task's.
        decided: &[
            "retry 6", "retry 6", "retry 6", "retry 6", "retry 6", "none 7",
        ],
        first_wait_ms: (1, 1000),
    },
    Row {
        name: "a usage limit with a time",
        seen: &["--exit-code", "1", "--loop", "agent"],
        stderr: "You've hit your session limit · resets 3pm (UTC)",
        cause: "RATE_LIMITED",
        decided: &["park 6", "park 6", "park 6"],
        first_wait_ms: (3 * 3_600_000 + 60_000, 3 * 3_600_000 + 120_000),
    },
    Row {
        name: "the deadline",
        seen: &["--timed-out", "--duration", "30m"],
        stderr: "",
        cause: "TOOL_TIMEOUT",
        decided: &["retry 6", "retry 6", "retry 6", "none 7"],
        first_wait_ms: (1, 1000),
    },
    Row {
        name: "the request is malformed",
        seen: &["--exit-code", "1", "--loop", "agent"],
        stderr: "API Error: 400 {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages: bad\"}}",
        cause: "INVALID_INPUT",
        decided: &["retry 5", "retry 5", "none 7"],
        first_wait_ms: (0, 0),
    },
    Row {
        name: "no right to do it",
        seen: &["--exit-code", "1"],
        stderr: "cp: cannot create regular file '/usr/bin/x': Permission denied",
        cause: "PERMISSION_DENIED",
        decided: &["manual_fix+escalate 8"],
        first_wait_ms: (0, 0),
    },
    Row {
        name: "not logged in",
        seen: &["--exit-code", "1", "--loop", "agent"],
        stderr: "Invalid API key · Please run /login",
        cause: "AUTH_FAILED",
        decided: &["manual_fix+escalate 8"],
        first_wait_ms: (0, 0),
    },
    Row {
        name: "the disk is full",
        seen: &["--exit-code", "1"],
        stderr: "cp: error writing 'b': No space left on device",
        cause: "DISK_FULL",
        decided: &["escalate 8"],
        first_wait_ms: (0, 0),
    },
    Row {
        name: "the conversation is too long",
        seen: &["--exit-code", "1", "--loop", "agent"],
        stderr: "API Error: 400 {\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}",
        cause: "CONTEXT_EXHAUSTED",
        decided: &["continue 5", "continue 5"],
        first_wait_ms: (0, 0),
    },
    Row {
        name: "a process died",
        seen: &["--signal", "SIGSEGV"],
        stderr: "Segmentation fault",
        cause: "CRASHED",
        decided: &["rollback+retry 6", "rollback+retry 6", "none 7"],
        first_wait_ms: (5000, 5000),
    },
];

fn decided(document: &Value) -> String {
    let actions = document["decision"]["actions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    actions.collect::<Vec<_>>().join("+")
}

#[test]
fn every_cause_has_its_limit_its_delay_and_its_end() {
    for row in &ROWS {
        let mut env = TestEnv::repo();
        env.set("RECOVER_TEST_NOW", NOW)
            .set("RECOVER_TEST_SEED", "1");
        env.write("../stderr", row.stderr);
        let args = [
            &["attempt", "fail", "--check", "--stderr", "../stderr"],
            row.seen,
        ]
        .concat();
        let again = row
            .decided
            .last()
            .filter(|last| !last.starts_with("continue") && !last.starts_with("park"));
        for (number, expected) in row.decided.iter().chain(again).enumerate() {
            let (actions, code) = expected.split_once(' ').unwrap();
            let document = env.json(code.parse().unwrap(), &args);
            assert_eq!(
                document["failure"]["cause"], row.cause,
                "{}: {document}",
                row.name
            );
            assert_eq!(
                decided(&document),
                actions,
                "{}, attempt {}: {document:#}",
                row.name,
                number + 1
            );
            let allowed = if code == "5" { "0" } else { code };
            let status = env.json(allowed.parse().unwrap(), &["retry-status", "--check"]);
            for budget in status["budgets"].as_array().unwrap() {
                let (used, limit) = (
                    budget["used"].as_u64().unwrap(),
                    budget["limit"].as_u64().unwrap(),
                );
                assert_eq!(
                    budget["left"].as_u64().unwrap(),
                    limit.saturating_sub(used),
                    "{}: {status}",
                    row.name
                );
            }
            if number == 0 {
                let wait = status["wait_ms"].as_u64().unwrap_or(0);
                let (least, most) = row.first_wait_ms;
                assert!(
                    (least..=most).contains(&wait),
                    "{}: waits {wait} ms",
                    row.name
                );
            }
        }
    }
}

/// L4: success gives the attempts back, whatever they failed of.
#[test]
fn success_gives_the_attempts_back() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW);
    let fail = [
        "attempt",
        "fail",
        "--loop",
        "test",
        "--exit-code",
        "1",
        "--message",
        "1 failed",
    ];
    for _ in 0..4 {
        assert_eq!(decided(&env.json(0, &fail)), "retry");
        assert_eq!(decided(&env.json(0, &fail)), "retry");
        env.json(0, &["attempt", "pass"]);
        assert_eq!(env.json(0, &["retry-status", "--check"])["error_count"], 0);
    }
}
