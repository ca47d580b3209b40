//! A night on a fake clock: an agent that meets one trouble after the other, and what is decided each time.

use serde_json::Value;

use crate::env::TestEnv;

const EVENING: &str = "2030-03-01T22:00:00.000Z";
/// 02:00 of that night, in seconds since 1970.
const RESET: &str = "1898647200";

/// What the agent does, call by call, in an iteration each line of `plan`.
const AGENT: &str = r#"
count=$(($(cat ../calls 2>/dev/null || echo 0) + 1))
echo $count > ../calls
ok() { echo '{"type":"result","subtype":"success","is_error":false,"session_id":"s","result":"done"}'; exit 0; }
fails() { printf '{"type":"result","subtype":"success","is_error":true,"api_error_status":%s,"session_id":"s","result":"%s"}\n' "$1" "$2"; exit 1; }
case $count in
    1) fails 429 'API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"This request would exceed your rate limit\"}}' ;;
    2) fails null 'Claude AI usage limit reached|RESET' ;;
    3) echo one > work.txt; ok ;;
    4) fails null 'API Error: Unable to connect to API (ECONNREFUSED)' ;;
    5) echo two > work.txt; ok ;;
    6 | 7) echo "int main( {" > main.c; ok ;;
    8) echo "int main(void) { return 0; }" > main.c; ok ;;
    9) echo half > half-done.txt; kill -9 $PPID; sleep 60 ;;
    10) test ! -e half-done.txt && echo four > work.txt && ok ;;
    11 | 13) echo left > side.txt; ok ;;
    12) echo right > side.txt; ok ;;
    14) echo up > side.txt; ok ;;
    *) echo "write failed: No space left on device" >&2; exit 1 ;;
esac
"#;

/// The compiler's check, and one that wants the side to be `up` once there is one.
const CONFIG: &str = r#"
[cooldown]
duration = "5s"

[[feedback]]
name = "build"
kind = "build"
command = "test ! -e main.c || gcc -fsyntax-only main.c"

[[feedback]]
name = "test"
kind = "test"
command = "test ! -e side.txt || grep -qx up side.txt || { echo 'not ok 1 - the side is up'; echo '# fail 1'; exit 1; }"
"#;

/// The ledger: what each event says, with its time and its type.
fn events(env: &TestEnv) -> Vec<Value> {
    let ledger = env.read(".ultraplan/state/events.jsonl");
    let event = |line: &str| {
        let mut event: Value = serde_json::from_str(line).expect("JSON");
        let mut payload = event["payload"].take();
        for name in ["at", "type"] {
            payload[name] = event[name].take();
        }
        payload
    };
    ledger.lines().map(event).collect()
}

/// One line for each end of an attempt: what failed, what was decided, until when, and what is left.
fn told(event: &Value) -> String {
    let (failure, decision) = (&event["failure"], &event["decision"]);
    let actions: Vec<&str> = decision["actions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let conditions: Vec<&str> = event["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    format!(
        "{} {}.{} {:<19} {:<24} -> {} until {} [{}] {}",
        event["at"].as_str().unwrap_or("?"),
        event["iteration"],
        event["attempt"],
        failure["cause"].as_str().unwrap_or("passed"),
        conditions.join(","),
        actions.join("+"),
        decision["not_before"].as_str().unwrap_or("-"),
        if event["charged"] == true {
            "charged"
        } else {
            "free"
        },
        decision["reason"].as_str().unwrap_or_default(),
    )
}

fn summary(event: &Value) -> (u64, &str, String) {
    let actions = event["decision"]["actions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let cause = event["failure"]["cause"].as_str().unwrap_or("passed");
    (
        event["iteration"].as_u64().unwrap_or(0),
        cause,
        actions.collect::<Vec<_>>().join("+"),
    )
}

/// A2, S7, S8, L4: throttling, a usage limit, a network cut, a broken build, a killed supervisor, a circle, a full disk.
#[test]
fn a_night_is_decided_as_an_engineer_would() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", EVENING);
    env.script("agent", &AGENT.replace("RESET", RESET));
    env.write(".ultraplan/recover.toml", CONFIG);
    env.git(&["add", "-A"]);
    env.git(&["commit", "-qm", "an agent"]);

    // Its own agent kills the supervisor in the fourth iteration.
    let args = [
        "run",
        "--run",
        "night",
        "--iterations",
        "7",
        "--agent",
        "claude",
        "--",
        "./agent",
    ];
    assert_eq!(env.recover(&args).code, 128 + 9);
    let last = events(&env).last().unwrap()["at"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        last.as_str() > "2030-03-02T02:01",
        "{last}: it has waited for the reset"
    );
    env.set("RECOVER_TEST_NOW", &last);
    let ended = env.json(8, &["resume", "night"]);
    assert_eq!(ended["outcome"], "escalated", "{ended}");

    let events = events(&env);
    let ends: Vec<&Value> = events
        .iter()
        .filter(|event| event["type"] == "attempt_ended")
        .collect();
    for end in &ends {
        println!("{}", told(end));
    }
    let expected = [
        (1, "RATE_LIMITED", "park"),
        (1, "RATE_LIMITED", "park"),
        (1, "passed", ""),
        (2, "NETWORK_ERROR", "park"),
        (2, "passed", ""),
        (3, "BROKEN_BUILD", "rollback+retry"),
        (3, "BROKEN_BUILD", "rollback+retry"),
        (3, "passed", ""),
        (4, "CRASHED", "rollback+retry"),
        (4, "passed", ""),
        (5, "VERIFICATION_FAILED", "retry"),
        (5, "VERIFICATION_FAILED", "retry"),
        (5, "VERIFICATION_FAILED", "skip+escalate"),
        (6, "passed", ""),
        (7, "DISK_FULL", "escalate"),
    ];
    let found: Vec<_> = ends.iter().map(|end| summary(end)).collect();
    let expected: Vec<_> = expected
        .map(|(iteration, cause, actions)| (iteration, cause, actions.to_owned()))
        .into();
    assert_eq!(found, expected);
    assert!(
        ends[12]["conditions"]
            .as_array()
            .unwrap()
            .contains(&"circular_fix".into()),
        "{}",
        ends[12]
    );

    keeps_to_what_was_decided(&events);
    let budgets = &env.json(0, &["retry-status", "--run", "night"])["budgets"];
    for budget in budgets.as_array().unwrap() {
        assert!(
            budget["used"].as_u64() <= budget["limit"].as_u64().map(|limit| limit.max(1)),
            "{budgets}"
        );
    }
    assert_eq!(env.read("work.txt"), "four\n");
}

/// No attempt begins before it is allowed, none is charged for a wait that was told, and no cause has more than its limit.
fn keeps_to_what_was_decided(events: &[Value]) {
    let (mut not_before, mut charged) = ("", 0);
    for event in events {
        let at = event["at"].as_str().expect("a time");
        match event["type"].as_str().expect("a type") {
            "attempt_started" => assert!(at >= not_before, "{event}: not before {not_before}"),
            "attempt_ended" => {
                let decision = &event["decision"];
                not_before = decision["not_before"].as_str().unwrap_or_default();
                let parks = decision["actions"]
                    .as_array()
                    .is_some_and(|actions| actions.contains(&"park".into()));
                assert!(!(parks && event["charged"] == true), "{event}");
                // A success gives a run its attempts back; six failures in a row are the task's.
                charged = if event["outcome"] == "passed" {
                    0
                } else {
                    charged + u32::from(event["charged"] == true)
                };
                assert!(charged <= 6, "{event}");
            }
            _ => {}
        }
    }
}
