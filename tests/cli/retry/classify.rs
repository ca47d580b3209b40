//! `classify`: the labelled failures through the binary, and the document.

use base64::Engine as _;

use crate::env::TestEnv;

#[path = "../../failures/mod.rs"]
mod failures;

// A1, B2, S8: the evidence flags carry everything that the classifier needs.
#[test]
fn the_labelled_failures_are_understood_through_the_binary() {
    let env = TestEnv::plain();
    let records = failures::labelled();
    let (mut right, mut misses) = ([0_usize; 3], Vec::new());
    for case in &records {
        for stream in ["stdout", "stderr"] {
            let text = case[stream].as_str().unwrap_or_default();
            let base64 = case["encoding"] == "base64";
            let bytes = if base64 {
                base64::engine::general_purpose::STANDARD
                    .decode(text)
                    .expect("base64")
            } else {
                text.as_bytes().to_vec()
            };
            env.write(stream, bytes);
        }
        let mut args: Vec<String> = ["classify", "--stdout", "stdout", "--stderr", "stderr"]
            .map(str::to_owned)
            .into();
        let mut flag = |name: &str, value: Option<String>| {
            args.extend(value.map(|value| format!("--{name}={value}")));
        };
        flag("loop", case["loop"].as_str().map(str::to_owned));
        flag("command", case["command"].as_str().map(str::to_owned));
        flag(
            "exit-code",
            case["exit_code"].as_i64().map(|code| code.to_string()),
        );
        flag("signal", case["signal"].as_str().map(str::to_owned));
        flag(
            "duration",
            case["duration_ms"]
                .as_u64()
                .map(|millis| format!("{millis}ms")),
        );
        flag(
            "deadline",
            case["timeout_ms"]
                .as_u64()
                .map(|millis| format!("{millis}ms")),
        );
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let failure = env.json(0, &args);
        let checks = ["type", "cause", "retryable"].map(|key| failure[key] == case[key]);
        for (sum, correct) in right.iter_mut().zip(checks) {
            *sum += usize::from(correct);
        }
        if checks != [true; 3] {
            misses.push(format!(
                "{}: {} {} {}",
                case["id"], failure["type"], failure["cause"], failure["retryable"]
            ));
        }
    }
    let percent = right.map(|right| right as f64 * 100.0 / records.len() as f64);
    assert!(
        percent[0] >= 97.0 && percent[1] >= 95.0 && percent[2] >= 96.0,
        "{percent:?}\n{}",
        misses.join("\n")
    );
    assert!(!env.exists(".ultraplan"), "it touches no state");
}

// Contract: all the fields; the rules that lost with --explain only.
#[test]
fn a_verdict_says_why() {
    let env = TestEnv::plain();
    env.write(
        "out",
        "test a ... ok\nFAILED tests/t.py::test_x - assert 1 == 2\n1 failed, 3 passed in 0.1s\n",
    );
    env.write("err", "npm error network read ECONNRESET\nrequests.exceptions.ConnectionError: connection refused\n");
    let args = [
        "classify",
        "--stdout",
        "out",
        "--stderr",
        "err",
        "--exit-code",
        "1",
        "--loop",
        "test",
    ];
    let failure = env.json(0, &args);
    for key in [
        "type",
        "cause",
        "conditions",
        "severity",
        "retryable",
        "recoverable",
        "suggested_action",
        "message",
        "details",
        "retry_after",
        "signature",
        "evidence",
        "rejected",
    ] {
        assert!(failure.get(key).is_some(), "{key}: {failure}");
    }
    assert_eq!(failure["rejected"], serde_json::json!([]));
    for one in failure["evidence"].as_array().unwrap() {
        assert!(one["rule"].is_string() && one["text"].is_string(), "{one}");
        assert!(
            ["process", "record", "stderr", "stdout"].contains(&one["source"].as_str().unwrap()),
            "{one}"
        );
    }
    let explained = env.json(0, &[&args[..], &["--explain"]].concat());
    assert!(
        !explained["rejected"].as_array().unwrap().is_empty(),
        "{explained}"
    );
    assert_eq!(explained["cause"], failure["cause"]);
    let text = env.recover(&args).expect(0).stdout;
    assert!(text.contains("because "), "{text}");
}

// Contract: evidence from the process alone.
#[test]
fn the_process_speaks_for_itself() {
    let env = TestEnv::plain();
    let cause = |args: &[&str]| {
        let failure = env.json(0, &[&["classify"], args].concat());
        format!(
            "{} {}",
            failure["type"].as_str().unwrap(),
            failure["cause"].as_str().unwrap()
        )
    };
    assert_eq!(cause(&["--timed-out"]), "timeout TOOL_TIMEOUT");
    assert_eq!(cause(&["--signal", "9"]), "crash CRASHED");
    assert_eq!(cause(&["--signal", "SIGSEGV"]), "crash CRASHED");
    assert_eq!(cause(&["--exit-code", "130"]), "cancellation CANCELLED");
    assert_eq!(
        cause(&["--message", "No space left on device"]),
        "system_error DISK_FULL"
    );
    env.json(2, &["classify", "--signal", "NOTHING"]);
    env.json(2, &["classify", "--stdout", "missing"]);
}

// Contract: pure, it touches no state; so it works where no run may be.
#[test]
fn a_verdict_needs_no_place_for_a_run() {
    let env = TestEnv::plain();
    let home = env.root().join("home");
    let home = home.to_str().expect("UTF-8");
    for folder in [home, "/"] {
        let verdict = env.json(
            0,
            &[
                "-C",
                folder,
                "classify",
                "--loop",
                "test",
                "--exit-code",
                "1",
                "--message",
                "1 failed",
            ],
        );
        assert_eq!(verdict["cause"], "VERIFICATION_FAILED");
        env.json(13, &["-C", folder, "checkpoint", "create"]);
    }
    assert!(!env.root().join("home/.ultraplan").exists());
}

// Records of an agent that is named count whatever the command is called that printed them.
#[test]
fn the_records_of_a_named_agent_count() {
    let env = TestEnv::plain();
    env.write(
        "log",
        "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"session_id\":\"s\",\"result\":\"Failed to authenticate. API Error: 401 OAuth token \
         has expired\"}\n",
    );
    let args = [
        "classify",
        "--agent",
        "claude",
        "--command",
        "./lint.sh",
        "--exit-code",
        "1",
        "--log",
        "log",
    ];
    let told = env.json(0, &args);
    assert_eq!(told["cause"], "AUTH_FAILED", "{told}");
}
