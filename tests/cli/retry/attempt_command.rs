//! `recover attempt`: loops that run their own commands.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::run::supervision::NOW;

const FAIL: [&str; 8] = [
    "attempt",
    "fail",
    "--loop",
    "test",
    "--exit-code",
    "1",
    "--message",
    "assert 1 == 2",
];

fn failing(extra: &[&'static str]) -> Vec<&'static str> {
    [&FAIL[..], extra].concat()
}

/// L1, L2, L5: `recovery.json` has exactly its keys; the events have theirs.
#[test]
fn a_failure_is_counted_and_told() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW);
    let failed = env.json(0, &failing(&["--phase", "build", "--plan", "4"]));
    assert_eq!(failed["failure"]["cause"], "VERIFICATION_FAILED");
    assert_eq!(failed["failure"]["type"], "feedback_failure");
    let result = &failed["result"];
    assert_eq!(
        (&result["success"], &result["can_retry"]),
        (&true.into(), &true.into())
    );
    assert_eq!(result["retry_after"], "2026-03-01T12:00:05.000Z");
    assert_eq!(
        result["action"], "no_checkpoint",
        "there was none before it"
    );
    let keys: Vec<_> = result.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        ["success", "can_retry", "retry_after", "action", "error"]
    );
    assert!(failed["checkpoint_id"].is_string());

    let view = env.state_json("recovery.json");
    let expected = json!({"isRecovering": true, "lastErrorAt": NOW, "errorCount": 1, "lastError": failed["failure"]["message"],
        "cooldownUntil": "2026-03-01T12:00:05.000Z"});
    assert_eq!(view, expected);

    let event = &env.events("rollback_initiated")[0];
    assert_eq!(event["source"], "recovery");
    let payload = json!({"error": failed["failure"]["message"], "phase": "build", "plan": 4, "retryAfter": "2026-03-01T12:00:05.000Z"});
    assert_eq!(event["payload"], payload);

    env.json(6, &failing(&["--phase", "build", "--plan", "4", "--check"]));
    let last = env.json(8, &failing(&["--phase", "build", "--plan", "4", "--check"]));
    assert_eq!(last["result"]["action"], "max_retries_exceeded");
    assert_eq!(
        (&last["result"]["success"], &last["result"]["can_retry"]),
        (&false.into(), &false.into())
    );
    assert_eq!(last["decision"]["actions"], json!(["skip", "escalate"]));
    let event = &env.events("ralph_loop_failed")[0];
    assert_eq!(event["source"], "recovery");
    let payload = json!({"error": last["failure"]["message"], "phase": "build", "plan": 4, "reason": "max_retries"});
    assert_eq!(event["payload"], payload);
}

/// L3, L6: the working memory goes back to the last checkpoint, the loop's own state is cleared, sources stay.
#[test]
fn the_working_memory_goes_back_and_sources_stay() {
    let env = quick();
    env.write(
        ".ultraplan/recover.toml",
        "[memory]\nloop_state = [\"ralph.json\"]\nlong_term = [\"lessons/**\"]\n[cooldown]\nduration = \"10ms\"\n",
    );
    env.write_state("notes.md", "before\n");
    env.write_state("lessons/a.md", "one\n");
    env.json(0, &["checkpoint", "create"]);
    env.json(0, &["attempt", "start"]);
    env.write_state("notes.md", "after\n");
    env.write_state("new.md", "new\n");
    env.write_state("ralph.json", "{}\n");
    env.write_state("lessons/a.md", "two\n");
    env.write("a.txt", "work\n");
    let failed = env.json(0, &FAIL);
    assert_eq!(failed["result"]["action"], "rolled_back", "{failed}");
    assert_eq!(env.read_state("notes.md"), "before\n");
    assert!(!env.exists(".ultraplan/state/new.md") && !env.exists(".ultraplan/state/ralph.json"));
    assert_eq!(
        env.read_state("lessons/a.md"),
        "two\n",
        "long-term memory is never rolled back"
    );
    assert_eq!(env.read("a.txt"), "work\n");
    assert_eq!(
        env.state_json("recovery.json")["errorCount"],
        1,
        "the bookkeeping is not rolled back"
    );
    env.json(0, &["undo"]);
    assert_eq!(
        env.read_state("notes.md"),
        "after\n",
        "and it can be undone"
    );

    env.write_state("notes.md", "kept\n");
    let failed = env.json(0, &failing(&["--no-rollback"]));
    assert_eq!(failed["result"]["action"], "cooldown_set");
    assert_eq!(env.read_state("notes.md"), "kept\n");
}

/// L2: `[rollback] on_error = false` leaves the working memory alone.
#[test]
fn rollback_on_error_can_be_switched_off() {
    let env = quick();
    env.write(".ultraplan/recover.toml", "[rollback]\non_error = false\n");
    env.write_state("notes.md", "before\n");
    env.json(0, &["checkpoint", "create"]);
    env.write_state("notes.md", "after\n");
    assert_eq!(env.json(0, &FAIL)["result"]["action"], "cooldown_set");
    assert_eq!(env.read_state("notes.md"), "after\n");
}

/// L4, A4: success clears the count and takes a good checkpoint.
#[test]
fn a_pass_clears_the_count() {
    let env = quick();
    env.json(0, &FAIL);
    env.json(0, &FAIL);
    env.write("a.txt", "good\n");
    let passed = env.json(0, &["attempt", "pass", "-m", "Green again"]);
    assert_eq!(passed["checkpoint"]["verdict"], "passed");
    assert_eq!(passed["checkpoint"]["description"], "Green again");
    let view = env.state_json("recovery.json");
    assert_eq!(
        view,
        json!({"isRecovering": false, "lastErrorAt": null, "errorCount": 0, "lastError": null, "cooldownUntil": null})
    );
    let status = env.json(0, &["retry-status", "--check"]);
    assert_eq!(
        (&status["can_retry"], &status["error_count"]),
        (&true.into(), &0.into())
    );
    assert_eq!(
        env.json(0, &["status"])["checkpoints"]["last_good"],
        passed["checkpoint_id"]
    );
    env.write("a.txt", "bad\n");
    env.json(0, &["rollback", "--to", "good", "--edits", "discard"]);
    assert_eq!(env.read("a.txt"), "good\n");
}

/// A3, A5: approach, session, time and error of every attempt, over restarts.
#[test]
fn the_history_tells_every_attempt() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW);
    let start = |approach: &str, session: &str| {
        let args = [
            "attempt",
            "start",
            "--subtask",
            "subtask-001",
            "--approach",
            approach,
        ];
        env.recover_with(&[("RECOVER_SESSION", session)], &args)
            .expect(0);
        env.recover_with(&[("RECOVER_SESSION", session)], &FAIL)
            .expect(0);
    };
    start("Using async/await pattern", "s1");
    start("Using callback pattern", "s2");
    let list = env.json(0, &["attempt", "list"]);
    let attempts = list["subtasks"]["subtask-001"]["attempts"]
        .as_array()
        .unwrap();
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0]["approach"], "Using async/await pattern");
    assert_eq!(
        (&attempts[0]["session"], &attempts[1]["session"]),
        (&1.into(), &2.into())
    );
    assert_eq!(
        (&attempts[0]["timestamp"], &attempts[0]["success"]),
        (&NOW.into(), &false.into())
    );
    assert!(
        attempts[0]["error"]
            .as_str()
            .unwrap()
            .contains("assert 1 == 2")
    );
    assert_eq!(list["subtasks"]["subtask-001"]["status"], "failed");
    let view = env.state_json("attempt_history.json");
    assert_eq!(view["subtasks"], list["subtasks"]);
    assert_eq!(view["stuck_subtasks"], json!([]));
}

/// A log that nobody says anything of is the agent's, as in `run`: that it crashed breaks no build.
#[test]
fn a_bare_log_is_the_agents() {
    let env = quick();
    let log = "/w/agent.js:2\n    ^\n\nTypeError: Cannot read properties of undefined (reading 'plan')\n    \
               at load (/w/agent.js:2:36)\n\nNode.js v20.20.2\n";
    let fail = |run: &str, more: &[&str], log: &str| {
        let args = [
            "--json",
            "attempt",
            "fail",
            "--run",
            run,
            "--exit-code",
            "1",
        ];
        let all = [&args[..], more, &["--log", "-"]].concat();
        env.recover_fed(log, &all).expect(0).json()["failure"].clone()
    };
    let failure = fail("a", &[], log);
    assert_eq!(
        (&failure["type"], &failure["cause"]),
        (&json!("agent_error"), &json!("UNKNOWN")),
        "{failure}"
    );
    assert_eq!(
        failure["message"],
        "TypeError: Cannot read properties of undefined (reading 'plan')"
    );
    assert_eq!(
        failure["location"],
        json!({"path": "/w/agent.js", "line": 2, "column": 36})
    );
    let other = log.replace("plan", "moon");
    assert_ne!(fail("b", &[], &other)["signature"], failure["signature"]);
    let moved = log.replace("/w/agent.js:2", "/home/x/agent.js:77");
    assert_eq!(fail("c", &[], &moved)["signature"], failure["signature"]);
    let said = fail("d", &[], "starting\nno licence: the moon is missing\n");
    assert_eq!(
        said["message"],
        "Exit status 1: no licence: the moon is missing"
    );

    let log = "test_sum.py F\nFAILED test_sum.py::test_two - assert 1 == 2\n1 failed in 0.1s\n";
    for (run, more) in [("e", &["--command", "pytest -q"][..]), ("f", &[])] {
        let failure = fail(run, more, log);
        assert_eq!(failure["cause"], "VERIFICATION_FAILED", "{failure}");
        assert_eq!(failure["failing"], json!(["test_sum.py::test_two"]));
    }
}

/// Evidence from files, stdin, signals and agents' records.
#[test]
fn evidence_comes_in_many_forms() {
    let env = quick();
    let args = [
        "--json",
        "attempt",
        "fail",
        "--run",
        "a",
        "--loop",
        "build",
        "--exit-code",
        "101",
        "--log",
        "-",
    ];
    let log = "error[E0432]: unresolved import `x`\nerror: could not compile `y` (lib) due to 1 previous error\n";
    let failed = env.recover_fed(log, &args).expect(0).json();
    assert_eq!(failed["failure"]["cause"], "BROKEN_BUILD");
    let failed = env.json(0, &["attempt", "fail", "--run", "b", "--signal", "9"]);
    assert_eq!(
        (&failed["failure"]["type"], &failed["failure"]["cause"]),
        (&"crash".into(), &"CRASHED".into()),
        "{failed}"
    );
    let failed = env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "c",
            "--timed-out",
            "--duration",
            "10m",
        ],
    );
    assert_eq!(failed["failure"]["type"], "timeout");
    env.write("out.json", r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s","result":"Prompt is too long"}"#);
    let failed = env.json(
        0,
        &[
            "attempt",
            "fail",
            "--run",
            "d",
            "--agent",
            "claude",
            "--exit-code",
            "1",
            "--log",
            "out.json",
        ],
    );
    assert_eq!(failed["failure"]["cause"], "CONTEXT_EXHAUSTED");
    assert_eq!(failed["decision"]["actions"], json!(["continue"]));
    assert_eq!(failed["run"]["status"], "in_progress");
    let history = env.json(0, &["attempt", "list"]);
    assert_eq!(
        history["subtasks"]["d/iteration-1"]["status"], "in_progress",
        "{history}"
    );
    for (stage, cause) in [
        ("build", "BROKEN_BUILD"),
        ("test", "VERIFICATION_FAILED"),
        ("agent", "UNKNOWN"),
    ] {
        let failed = env.json(
            0,
            &[
                "attempt",
                "fail",
                "--run",
                stage,
                "--loop",
                stage,
                "--exit-code",
                "1",
            ],
        );
        assert_eq!(
            failed["failure"]["cause"], cause,
            "which loop failed says it where nothing else does"
        );
        let args = [
            "--json",
            "attempt",
            "fail",
            "--run",
            "x",
            "--loop",
            stage,
            "--exit-code",
            "1",
            "--log",
            "-",
        ];
        assert_eq!(
            env.recover_fed("\n", &args).expect(0).json()["failure"]["cause"],
            cause,
            "nor does an empty log"
        );
    }
    env.json(
        2,
        &["attempt", "fail", "--run", "e", "--signal", "NONSENSE"],
    );
    env.json(2, &["attempt", "fail", "--run", "e", "--log", "missing"]);
    assert_eq!(
        env.error(4, &["status", "--run", "e"])["code"],
        "run_not_found",
        "nothing was recorded"
    );
}

/// A dry run records nothing.
#[test]
fn a_dry_run_records_nothing() {
    let env = quick();
    env.json(0, &["attempt", "start"]);
    let before = env.read_state("events.jsonl");
    env.json(0, &["attempt", "start", "--dry-run"]);
    env.json(0, &failing(&["--dry-run"]));
    env.json(0, &["attempt", "pass", "--dry-run"]);
    env.json(0, &["retry-status", "--reset", "--dry-run"]);
    assert_eq!(env.read_state("events.jsonl"), before);
}

/// `start` during a cooldown only records; the command that supervises is the one that waits.
#[test]
fn start_is_allowed_in_a_cooldown() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW);
    env.json(0, &FAIL);
    let started = env.json(0, &["attempt", "start"]);
    assert_eq!(
        (&started["iteration"], &started["attempt"]),
        (&1.into(), &2.into())
    );
    let failed = env.json(0, &FAIL);
    assert_eq!(
        failed["failure"]["attempt"], 2,
        "the end of the attempt that was started"
    );
}

/// Two attempts that were started and never ended: the earlier one counts as interrupted, not as under way for ever.
#[test]
fn an_attempt_that_never_ended_gives_way_to_the_next() {
    let env = quick();
    env.json(0, &["attempt", "start"]);
    env.json(0, &["attempt", "start"]);
    env.json(0, &["attempt", "pass"]);
    let log = env.json(0, &["status"]);
    let attempts: Vec<&Value> = log["iterations"][0]["attempts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|a| &a["outcome"])
        .collect();
    assert_eq!(attempts, [&json!("cancelled"), &json!("passed")], "{log}");
}

// L3, L5: the phase of the loop's events is not another run.
#[test]
fn a_phase_that_no_run_has_is_that_of_the_events() {
    let env = TestEnv::repo();
    env.write(".ultraplan/state/notes", "before\n");
    env.json(0, &["checkpoint", "create"]);
    env.write(".ultraplan/state/notes", "after\n");
    let fail = [
        "attempt",
        "fail",
        "--message",
        "boom",
        "--phase",
        "P1",
        "--plan",
        "4",
    ];
    let failed = env.json(0, &fail);
    assert_eq!(
        (&failed["result"]["action"], &failed["run"]["phase"]),
        (&"rolled_back".into(), &"-".into())
    );
    assert_eq!(env.read(".ultraplan/state/notes"), "before\n");
    let log = env.json(0, &["log"]);
    let events = log["events"].as_array().unwrap();
    let told = events
        .iter()
        .find(|event| event["type"] == "rollback_initiated")
        .unwrap();
    assert_eq!(
        (&told["payload"]["phase"], &told["payload"]["plan"]),
        (&"P1".into(), &4.into()),
        "{told}"
    );
    assert_eq!(env.json(6, &["retry-status", "--check"])["error_count"], 1);
    // A dry run finds the same, and a run of that phase is taken where there is one.
    assert_eq!(
        env.json(0, &[&["--dry-run"][..], &fail].concat())["run"]["phase"],
        "-"
    );
    env.json(
        0,
        &["checkpoint", "create", "--run", "mine", "--phase", "P1"],
    );
    assert_eq!(env.json(0, &fail)["run"]["run_id"], "mine");
}

// policy.md: --attempts and --retries hold whatever the attempts failed of.
#[test]
fn attempts_are_those_of_all_causes() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\nduration = '0s'\n[retry]\nbase_delay = '1ms'\n",
    );
    let line = "case $RECOVER_ATTEMPT in 1) echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6;; \
                2) echo 'bash: foo: command not found' >&2; exit 127;; *) echo '1 failed, 2 passed'; exit 1;; esac";
    for flags in [["--attempts", "2"], ["--retries", "1"]] {
        let run = env.json(7, &["run", flags[0], flags[1], "--", "sh", "-c", line]);
        assert_eq!(
            run["iterations"][0]["attempts"].as_array().map(Vec::len),
            Some(2),
            "{run}"
        );
        assert_eq!(run["decision"]["stopped_by"], "global", "{run}");
    }
}

// A3: attempts that nobody names a subtask for go on with the one before, until that is done or given up.
#[test]
fn the_subtask_of_an_attempt_is_kept_after_its_end() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[cooldown]\nduration = \"0s\"\n");
    env.json(0, &["attempt", "start", "--subtask", "subtask-001"]);
    let fail = [
        "attempt",
        "fail",
        "--check",
        "--loop",
        "test",
        "--exit-code",
        "1",
        "--message",
        "assert 1 == 2",
    ];
    let decided: Vec<String> = [5, 5, 8]
        .iter()
        .map(|code| env.json(*code, &fail)["decision"]["actions"][0].to_string())
        .collect();
    assert_eq!(decided, ["\"retry\"", "\"retry\"", "\"skip\""]);
    let attempts = |name: &str| {
        let history = env.json(0, &["attempt", "list"]);
        history["subtasks"][name]["attempts"]
            .as_array()
            .map_or(0, Vec::len)
    };
    assert_eq!(attempts("subtask-001"), 3);
    // What was given up is not gone on with.
    env.json(0, &["attempt", "start"]);
    env.json(0, &["attempt", "pass"]);
    assert_eq!(attempts("subtask-001"), 3);
}

// A8: so does one that continues in a fresh session.
#[test]
fn a_subtask_that_continues_stays_in_progress() {
    let env = TestEnv::repo();
    env.json(0, &["attempt", "start", "--subtask", "subtask-001"]);
    let full = "API Error: 400 {\"error\":{\"message\":\"prompt is too long: 210000 tokens > 200000 maximum\"}}";
    let fail = [
        "attempt",
        "fail",
        "--loop",
        "agent",
        "--exit-code",
        "1",
        "--message",
        full,
    ];
    for number in 1..=2 {
        assert_eq!(env.json(0, &fail)["decision"]["actions"][0], "continue");
        let history = env.json(0, &["attempt", "list"]);
        let subtask = &history["subtasks"]["subtask-001"];
        assert_eq!(subtask["status"], "in_progress", "{history}");
        assert_eq!(subtask["attempts"].as_array().map(Vec::len), Some(number));
    }
}
