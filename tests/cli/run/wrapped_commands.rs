//! A supervised command is judged by the programs that it starts, whatever wraps them and whatever its words say.

use serde_json::Value;

use crate::env::TestEnv;

/// A repository with a program `claude` that ends with an error of its API in a record.
fn env_with_claude() -> TestEnv {
    let mut env = TestEnv::repo();
    let bin = env.root().join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    let result = r#"{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"invalid x-api-key","session_id":"s1"}"#;
    std::fs::write(
        bin.join("claude"),
        format!("#!/bin/sh\necho '{result}'\nexit 1\n"),
    )
    .expect("written");
    env.sh("chmod +x ../bin/claude").expect(0);
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").expect("a path")
    );
    env.set("PATH", &path);
    env
}

fn failure(env: &TestEnv, code: i32, args: &[&str]) -> Value {
    let mut words = vec!["run", "--attempts", "1"];
    words.extend(args);
    let run = env.json(code, &words);
    let failure = run["iterations"][0]["attempts"][0]["failure"].clone();
    env.json(0, &["retry-status", "--reset"]);
    failure
}

// A1, B2
#[test]
fn a_wrapper_does_not_switch_the_records_of_an_agent_off() {
    let env = env_with_claude();
    for command in [
        &["claude", "-p", "make the tests pass"][..],
        &[
            "sh",
            "-c",
            "claude -p 'make the tests pass' --output-format stream-json",
        ],
        &["env", "-u", "X", "claude", "-p", "fix the format"],
        &["timeout", "60", "claude", "-p", "npm test"],
        &["sh", "-c", "cd . && claude -p lint 2>&1 | cat; exit 1"],
    ] {
        let mut args = vec!["--"];
        args.extend(command);
        let failure = failure(&env, 8, &args);
        assert_eq!(
            (&failure["type"], &failure["cause"]),
            (&"agent_error".into(), &"AUTH_FAILED".into()),
            "{command:?}"
        );
    }
}

#[test]
fn words_of_a_command_that_is_no_check_are_no_verdict() {
    let env = TestEnv::repo();
    for (line, message) in [
        (
            "echo 'request failed' >&2; exit 1",
            "Exit status 1: request failed",
        ),
        // The last line that happened to be there is no reason.
        ("echo 'Done, everything is fine.'; exit 1", "Exit status 1"),
    ] {
        let failure = failure(&env, 8, &["--", "sh", "-c", line]);
        assert_eq!(
            (&failure["type"], &failure["cause"]),
            (&"agent_error".into(), &"UNKNOWN".into()),
            "{line}"
        );
        assert_eq!(failure["message"], message, "{line}");
    }
    let record =
        r#"echo '{"type":"error","error":{"type":"authentication_error","message":"x"}}'; exit 1"#;
    assert_eq!(
        failure(&env, 8, &["--", "sh", "-c", record])["cause"],
        "AUTH_FAILED"
    );
}

// A1
#[test]
fn a_configured_check_that_fails_says_what_is_wrong_by_its_kind() {
    let env = TestEnv::repo();
    for (check, cause) in [
        ("test=false", "VERIFICATION_FAILED"),
        ("lint=echo; exit 3", "VERIFICATION_FAILED"),
        ("build=false", "BROKEN_BUILD"),
        ("anything=false", "VERIFICATION_FAILED"),
    ] {
        let ran = env.recover(&[
            "run",
            "--json",
            "--attempts",
            "1",
            "--feedback",
            check,
            "--",
            "true",
        ]);
        let failure = ran.json()["iterations"][0]["attempts"][0]["failure"].clone();
        assert_eq!(failure["cause"], cause, "{check}: {failure}");
        env.json(0, &["retry-status", "--reset"]);
    }
}

#[test]
fn a_command_may_be_said_to_be_a_check() {
    let env = TestEnv::repo();
    let line = "echo 'the suite is over'; exit 1";
    let unsaid = failure(&env, 8, &["--", "sh", "-c", line]);
    assert_eq!(unsaid["type"], "agent_error");
    let said = failure(&env, 8, &["--kind", "test", "--", "sh", "-c", line]);
    assert_eq!(
        (&said["cause"], &said["message"]),
        (&"VERIFICATION_FAILED".into(), &"Exit status 1".into())
    );
    // What only a tool prints counts whoever ran it.
    let printed = "echo 'test result: FAILED. 3 passed; 2 failed'; exit 101";
    assert_eq!(
        failure(&env, 8, &["--", "sh", "-c", printed])["cause"],
        "VERIFICATION_FAILED"
    );
    env.recover(&["run", "--kind", "tests", "--", "true"])
        .expect(2);
}

#[test]
fn a_log_of_an_agent_holds_both_streams() {
    let env = TestEnv::repo();
    env.write(
        "log",
        "{\"type\":\"system\",\"session_id\":\"s\"}\nENOSPC: no space left on device, write\n",
    );
    let failure = env.json(
        0,
        &[
            "classify",
            "--agent",
            "claude",
            "--exit-code",
            "1",
            "--log",
            "log",
        ],
    );
    assert_eq!(
        (&failure["cause"], &failure["evidence"][0]["line"]),
        (&"DISK_FULL".into(), &2.into())
    );
}
