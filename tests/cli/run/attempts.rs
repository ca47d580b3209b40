//! `recover run`: what the child gets, what comes of its attempts, what the document says.

use crate::env::TestEnv;
use crate::run::supervision::NOW;

/// A check that passes when the file `state` says "good", and fails like a test runner otherwise.
pub const CHECK: &str =
    "test=grep -qx good state || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";

/// An environment whose cooldowns are over at once.
pub fn quick() -> TestEnv {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\nduration = \"10ms\"\n[retry]\nbase_delay = \"10ms\"\nmax_delay = \"10ms\"\n",
    );
    env
}

/// B12, B13, A4: a checkpoint before the first iteration and one after each; the last passed one is the good one.
#[test]
fn every_iteration_ends_in_a_checkpoint() {
    let env = TestEnv::repo();
    env.write("state", "good\n");
    let ran = env.recover(&[
        "--json",
        "run",
        "--iterations",
        "2",
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        "echo said; echo $RECOVER_ITERATION > n",
    ]);
    let ran = ran.expect(0);
    assert!(
        ran.stderr.contains("said"),
        "the child's output goes to stderr: {}",
        ran.stderr
    );
    let document = ran.json();
    assert_eq!(document["command"], "run");
    assert_eq!(document["outcome"], "complete");
    assert_eq!(document["run"]["status"], "complete");
    assert_eq!(document["run"]["current_iteration"], 2);
    assert_eq!(document["run"]["iterations_total"], 2);
    let attempt = &document["iterations"][1]["attempts"][0];
    assert_eq!(
        (&attempt["number"], &attempt["exit_code"]),
        (&1.into(), &0.into())
    );
    assert_eq!(attempt["timed_out"], false);
    assert_eq!(attempt["feedback_results"]["test"]["passed"], true);
    assert!(
        attempt["duration_ms"].is_u64()
            && attempt["started_at"].is_string()
            && attempt["log_path"].is_string()
    );

    let list = env.json(0, &["checkpoint", "list", "--all-runs"]);
    let checkpoints = list["checkpoints"].as_array().unwrap();
    let seen: Vec<_> = checkpoints
        .iter()
        .map(|c| {
            (
                c["after_iteration"].as_u64().unwrap(),
                c["verdict"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(seen, [(0, "unverified"), (1, "passed"), (2, "passed")]);
    let status = env.json(0, &["status"]);
    assert_eq!(status["checkpoints"]["last_good"], checkpoints[2]["id"]);
    assert!(
        checkpoints[2]["feedback_results"]["test"]["passed"] == true,
        "{}",
        checkpoints[2]
    );
}

/// B6: the prompt comes on stdin and as a file; the failure's context only from the second attempt on.
#[test]
fn the_child_gets_prompt_and_context() {
    let env = quick();
    env.script(
        "agent.sh",
        "n=$RECOVER_ITERATION-$RECOVER_ATTEMPT; cat > stdin-$n; cat \"$RECOVER_PROMPT_FILE\" > file-$n\n\
         [ -n \"$RECOVER_FAILURE_CONTEXT\" ] && cat \"$RECOVER_FAILURE_CONTEXT\" > context-$n\n\
         echo \"$RECOVER_RUN_ID ${RECOVER_AGENT_SESSION-none}\" > env-$n\n\
         if [ $RECOVER_ATTEMPT = 1 ]; then echo bad > state; else echo good > state; fi",
    );
    env.write("prompt.md", "Do it.\n");
    let args = [
        "run",
        "--run",
        "mine",
        "--prompt-file",
        "prompt.md",
        "--approach",
        "by hand",
        "--feedback",
        CHECK,
        "--",
        "./agent.sh",
    ];
    env.json(0, &args);
    assert_eq!(env.read("stdin-1-1"), "Do it.\n");
    assert_eq!(env.read("file-1-1"), "Do it.\n");
    assert_eq!(env.read("env-1-1"), "mine none\n");
    assert!(!env.exists("context-1-1"));

    let second = env.read("stdin-1-2");
    assert_eq!(second, env.read("file-1-2"));
    for part in [
        "Do it.",
        "## Previous Attempt Failed",
        "assert 1 == 2",
        "Previous attempts: 1",
        "Attempt 1: by hand - FAILED",
        "DIFFERENT approach",
    ] {
        assert!(second.contains(part), "{part} in {second}");
    }
    let context: serde_json::Value = serde_json::from_str(&env.read("context-1-2")).unwrap();
    assert_eq!(context["failure"]["cause"], "VERIFICATION_FAILED");
    assert_eq!(context["attempts"][0]["approach"], "by hand");
}

/// A2, A7, A3: three failed verifications: the iteration is given up, the run goes on, a person is told at the end.
#[test]
fn an_iteration_that_cannot_be_verified_is_given_up_and_the_run_goes_on() {
    let env = quick();
    let agent = "[ $RECOVER_ITERATION = 2 ] && echo bad > state || echo good > state; echo $RECOVER_ITERATION.$RECOVER_ATTEMPT >> ../seen";
    let document = env.json(
        8,
        &[
            "run",
            "--iterations",
            "3",
            "--feedback",
            CHECK,
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    assert_eq!(document["outcome"], "escalated");
    assert_eq!(document["run"]["status"], "escalated");
    let statuses: Vec<_> = (0..3)
        .map(|at| document["iterations"][at]["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses, ["completed", "skipped", "completed"]);
    assert_eq!(env.read("../seen"), "1.1\n2.1\n2.2\n2.3\n3.1\n");
    let list = env.json(0, &["attempt", "list"]);
    let stuck = list["stuck_subtasks"].as_array().unwrap();
    assert_eq!(stuck.len(), 1, "{list}");
    assert_eq!(stuck[0]["attempt_count"], 3);
    assert_eq!(
        env.state_json("attempt_history.json")["stuck_subtasks"],
        list["stuck_subtasks"]
    );
}

/// A2, A5: a broken build: back to the last good checkpoint and again, twice, then a person is needed.
#[test]
fn a_broken_build_is_rolled_back_twice_then_escalates() {
    let env = quick();
    let agent = "if [ $RECOVER_ITERATION = 1 ]; then echo fine > code; else ls > seen-$RECOVER_ATTEMPT; cp seen-* ../ ; echo broken > code; touch junk-$RECOVER_ATTEMPT; fi";
    let build = "build=grep -q fine code || { echo 'error[E0432]: unresolved import `x`'; echo 'error: could not compile `y` (lib) due to 1 previous error'; exit 101; }";
    let document = env.json(
        8,
        &[
            "run",
            "--iterations",
            "2",
            "--feedback",
            build,
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    assert_eq!(document["outcome"], "escalated");
    let attempts = document["iterations"][1]["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 3, "{document}");
    assert!(
        attempts
            .iter()
            .all(|attempt| attempt["failure"]["cause"] == "BROKEN_BUILD"),
        "{document}"
    );
    assert!(
        !env.sh("cat ../seen-3").stdout.contains("junk-2"),
        "rolled back before the third attempt"
    );
    assert_eq!(env.events("restored").len(), 2);
}

/// A2: without a good checkpoint there is nothing to go back to.
#[test]
fn a_broken_build_without_a_good_checkpoint_escalates() {
    let env = quick();
    env.json(0, &["checkpoint", "create", "--run", "r"]);
    let fail = [
        "attempt",
        "fail",
        "--run",
        "r2",
        "--check",
        "--loop",
        "build",
        "--exit-code",
        "101",
        "--message",
        "error: could not compile",
    ];
    let document = env.json(8, &fail);
    assert_eq!(document["failure"]["cause"], "BROKEN_BUILD");
    assert_eq!(
        document["decision"]["actions"],
        serde_json::json!(["escalate"])
    );
    assert!(
        document["failure"]["conditions"]
            .as_array()
            .unwrap()
            .contains(&"no_checkpoint".into()),
        "{document}"
    );
}

/// A8: a full context is no failure of the work: it goes on in a fresh session.
#[test]
fn a_full_context_goes_on_in_a_fresh_session() {
    let env = quick();
    let result = r#"{"type":"result","subtype":"error_during_execution","is_error":true,"session_id":"s-1","result":"Prompt is too long"}"#;
    env.write("result.json", result);
    env.script(
        "claude",
        "echo \"${RECOVER_AGENT_SESSION-none}\" >> sessions\n\
         if [ $RECOVER_ATTEMPT = 1 ]; then cat result.json; exit 1; fi\n\
         echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"s-2\",\"result\":\"done\"}'",
    );
    let document = env.json(
        0,
        &[
            "run",
            "--agent",
            "claude",
            "--",
            "./claude",
            "-p",
            "--output-format",
            "json",
        ],
    );
    assert_eq!(
        document["iterations"][0]["attempts"][0]["failure"]["cause"],
        "CONTEXT_EXHAUSTED"
    );
    assert_eq!(env.read("sessions"), "none\nnone\n");
}

/// An ordinary retry keeps the agent's own session.
#[test]
fn a_retry_names_the_agents_session() {
    let env = quick();
    env.script(
        "claude",
        "echo \"${RECOVER_AGENT_SESSION-none}\" >> sessions\n\
         [ $RECOVER_ATTEMPT = 1 ] && echo bad > state || echo good > state\n\
         echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"s-1\",\"result\":\"done\"}'",
    );
    env.json(
        0,
        &[
            "run",
            "--agent",
            "claude",
            "--feedback",
            CHECK,
            "--",
            "./claude",
        ],
    );
    assert_eq!(env.read("sessions"), "none\ns-1\n");
}

/// S8 (parking): a usage limit uses up no attempt; with `--no-wait` the run is left parked.
#[test]
fn a_usage_limit_parks_the_run() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW)
        .set("RECOVER_TEST_SEED", "1");
    env.script("claude", "echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":true,\"session_id\":\"s\",\"result\":\"Claude AI usage limit reached|1772370000\"}'; exit 1");
    let document = env.json(
        6,
        &["run", "--no-wait", "--agent", "claude", "--", "./claude"],
    );
    assert_eq!(document["outcome"], "parked", "{document}");
    assert_eq!(document["run"]["status"], "parked");
    // 1772370000 is 13:00:00; a minute and up to another are added.
    let after = document["retry_after"].as_str().unwrap();
    assert!(
        ("2026-03-01T13:01:00.000Z".."2026-03-01T13:02:00.001Z").contains(&after),
        "{after}"
    );
    let status = env.json(6, &["retry-status", "--check"]);
    assert_eq!(status["parked"]["until"], after);
    assert_eq!(status["error_count"], 0);
    assert_eq!(status["can_retry"], false);
    assert_eq!(env.json(6, &["resume"])["outcome"], "parked");
}

/// S8 (parking): the wait is taken, then the work goes on; nothing is charged. Past `max_park` a person decides.
#[test]
fn a_parked_run_goes_on_after_the_reset() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW);
    let limited = |reset: &str| {
        format!(
            "{{\"type\":\"result\",\"is_error\":true,\"session_id\":\"s\",\"result\":\"Claude AI usage limit reached|{reset}\"}}"
        )
    };
    env.write("limited", limited("1772370000"));
    env.script("claude", "n=$(cat ../n 2>/dev/null || echo 0); echo $((n + 1)) > ../n; if [ $n = 0 ] || [ -e far ]; then cat limited; exit 1; fi; echo '{\"type\":\"result\",\"is_error\":false,\"result\":\"ok\"}'");
    let document = env.json(
        0,
        &[
            "run",
            "--agent",
            "claude",
            "--attempts",
            "1",
            "--",
            "./claude",
        ],
    );
    assert_eq!(
        document["iterations"][0]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    env.write("far", "");
    env.write("limited", limited("1782370000"));
    assert_eq!(
        env.json(8, &["run", "--agent", "claude", "--", "./claude"])["outcome"],
        "escalated"
    );
}

/// A deadline ends the whole group: TERM, then KILL for what ignores it.
#[test]
fn a_deadline_ends_the_group() {
    let env = quick();
    env.write(
        ".ultraplan/recover.toml",
        "[retry.causes.TOOL_TIMEOUT]\nmax_attempts = 1\n[runner]\ngrace = \"200ms\"\n",
    );
    let agent = "trap '' TERM; sleep 300 & echo $! > pid; wait; sleep 300";
    let document = env.json(7, &["run", "--timeout", "300ms", "--", "sh", "-c", agent]);
    let attempt = &document["iterations"][0]["attempts"][0];
    assert_eq!(attempt["timed_out"], true);
    assert_eq!(attempt["failure"]["type"], "timeout");
    assert_eq!(document["outcome"], "failed");
    let pid = env.read("pid");
    crate::run::supervision::until("the grandchild is gone", || {
        !crate::run::supervision::lives(pid.trim())
    });
}

/// A feedback loop has a deadline of its own.
#[test]
fn a_feedback_loop_that_hangs_is_ended() {
    let env = quick();
    env.write(
        ".ultraplan/recover.toml",
        "[[feedback]]\nname = \"slow\"\ncommand = \"sleep 300\"\ntimeout = \"200ms\"\n",
    );
    let document = env.json(
        7,
        &[
            "run",
            "--attempts",
            "1",
            "--on-failure",
            "policy",
            "--",
            "true",
        ],
    );
    let result = &document["iterations"][0]["attempts"][0]["feedback_results"]["slow"];
    assert_eq!(
        (&result["passed"], &result["summary"]),
        (&false.into(), &"timed out".into()),
        "{document}"
    );
}

/// `--until` stops when its command passes, and gives up after `--iterations`.
#[test]
fn until_stops_when_its_command_passes() {
    let env = TestEnv::repo();
    let agent = "echo x >> count";
    let document = env.json(
        0,
        &[
            "run",
            "--run",
            "a",
            "--until",
            "test $(wc -l < count) -ge 3",
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    assert_eq!(document["iterations"].as_array().unwrap().len(), 3);
    let document = env.json(
        7,
        &[
            "run",
            "--run",
            "b",
            "--iterations",
            "2",
            "--until",
            "false",
            "--",
            "true",
        ],
    );
    assert_eq!(document["outcome"], "failed");
}

/// `--passthrough` leaves output and exit code to the child.
#[test]
fn passthrough_is_the_childs_own_exit_code() {
    let env = TestEnv::repo();
    let ran = env
        .recover(&[
            "run",
            "--passthrough",
            "--on-failure",
            "stop",
            "--",
            "sh",
            "-c",
            "echo out; exit 42",
        ])
        .expect(42);
    assert_eq!(ran.stdout, "out\n");
    env.recover(&["run", "--passthrough", "--json", "--", "true"])
        .expect(2);
}

/// `--attempts N` and `--retries N-1` are the same and override the cause's limit.
#[test]
fn attempts_and_retries_override_limits() {
    for flags in [
        ["--attempts", "5"],
        ["--retries", "4"],
        ["--attempts", "1"],
        ["--retries", "0"],
    ] {
        let env = quick();
        let args = [
            "run",
            flags[0],
            flags[1],
            "--feedback",
            "test=false",
            "--",
            "true",
        ];
        let document = env.json(8, &args);
        let wanted = if flags[1] == "5" || flags[1] == "4" {
            5
        } else {
            1
        };
        assert_eq!(
            document["iterations"][0]["attempts"]
                .as_array()
                .unwrap()
                .len(),
            wanted,
            "{flags:?}"
        );
    }
}

/// B16: what follows a failure can be chosen.
#[test]
fn on_failure_chooses_what_follows() {
    let check = ["--feedback", CHECK];
    let run = |what: &str, code: i32, agent: &str| {
        let mut env = TestEnv::repo();
        env.set("RECOVER_TEST_NOW", NOW);
        env.write("state", "good\n");
        let document = env.json(
            code,
            &[
                "run",
                "--on-failure",
                what,
                check[0],
                check[1],
                "--",
                "sh",
                "-c",
                agent,
            ],
        );
        (env, document)
    };
    let spoil = "ls > ../seen-$RECOVER_ATTEMPT; echo bad > state; touch junk";

    let (env, document) = run("stop", 6, spoil);
    assert_eq!(document["outcome"], "failed");
    assert_eq!(
        document["iterations"][0]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(
        !document["decision"]["actions"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert!(env.exists("junk"));

    let (_env, document) = run("manual-fix", 8, spoil);
    assert_eq!(document["outcome"], "paused");
    assert_eq!(
        document["iterations"][0]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    let (env, document) = run("rollback", 8, spoil);
    assert_eq!(
        document["iterations"][0]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
    assert!(!env.sh("cat ../seen-2").stdout.contains("junk"));

    let (env, _document) = run("retry", 8, spoil);
    assert!(env.sh("cat ../seen-2").stdout.contains("junk"));
    assert!(
        env.events("restored")
            .iter()
            .all(|event| event["payload"]["operation"]["scope"] == "state")
    );
}

/// Of several open runs `--run`, `RECOVER_RUN_ID`, `--lane`, `--task` choose another than the last.
#[test]
fn several_open_runs_are_told_apart() {
    let env = TestEnv::repo();
    for (run, lane, task) in [("one", "a", "t1"), ("two", "b", "t2")] {
        let args = [
            "run",
            "--run",
            run,
            "--lane",
            lane,
            "--phase",
            "p",
            "--task",
            task,
            "--on-failure",
            "stop",
            "--",
            "sh",
            "-c",
            "exit 3",
        ];
        env.recover(&args);
    }
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "two");
    for args in [
        &["--run", "one"][..],
        &["--lane", "a"],
        &["--phase", "p", "--task", "t1"],
    ] {
        assert_eq!(
            env.json(0, &[&["status"], args].concat())["run"]["run_id"],
            "one",
            "{args:?}"
        );
    }
    for args in [&["--run", "two"][..], &["--lane", "b"], &["--task", "t2"]] {
        let status = env.json(0, &[&["status"], args].concat());
        assert_eq!(status["run"]["run_id"], "two", "{args:?}");
        assert_eq!(
            (&status["run"]["lane"], &status["run"]["phase"]),
            (&"b".into(), &"p".into())
        );
    }
    let ran = env
        .recover_with(&[("RECOVER_RUN_ID", "one")], &["--json", "status"])
        .expect(0);
    assert_eq!(ran.json()["run"]["task_id"], "t1");
    assert_eq!(
        env.json(4, &["status", "--run", "three"])["error"]["code"],
        "run_not_found"
    );
}

/// Where a run is at work, another one is refused, and nothing is recorded of it.
#[test]
fn a_run_is_refused_while_another_one_is_at_work() {
    let env = TestEnv::repo();
    let mut first = env
        .recover_command(&[
            "run",
            "--run",
            "first",
            "--",
            "sh",
            "-c",
            "touch ../began; while [ ! -e ../end ]; do sleep 0.02; done",
        ])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("recover starts");
    while !env.root().join("began").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let error = env.error(11, &["run", "--run", "second", "--", "true"]);
    let message = error["message"].as_str().unwrap();
    assert!(
        error["code"] == "locked" && message.contains(&format!("pid {}", first.id())),
        "{error}"
    );
    // What is at work is meant, whatever came before and after it.
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "first");
    assert_eq!(
        env.json(0, &["checkpoint", "create"])["checkpoint"]["run_id"],
        "first"
    );
    std::fs::write(env.root().join("end"), "").unwrap();
    assert!(first.wait().unwrap().success());
    env.json(4, &["status", "--run", "second"]);
    // Within an attempt, a run of its own goes on.
    let inner = format!("{} run --run inner -- true", env!("CARGO_BIN_EXE_recover"));
    env.json(0, &["run", "--run", "outer", "--", "sh", "-c", &inner]);
}

/// The name of a run is used once; nothing is changed by a dry run.
#[test]
fn a_run_is_not_begun_twice_and_a_dry_run_changes_nothing() {
    let env = TestEnv::repo();
    env.json(0, &["run", "--dry-run", "--", "touch", "made"]);
    assert!(!env.exists("made") && !env.exists(".ultraplan/state/events.jsonl"));
    env.json(0, &["run", "--run", "x", "--", "true"]);
    assert_eq!(
        env.json(13, &["run", "--run", "x", "--", "true"])["error"]["code"],
        "already_exists"
    );
    env.json(2, &["run"]);
    env.json(2, &["run", "--iterations", "0", "--", "true"]);
    env.json(2, &["run", "--feedback", "nonsense", "--", "true"]);
}

/// Works without any git repository, in a folder with spaces; hints are commands that work from another folder (C7).
#[test]
fn hints_work_from_another_folder_and_without_git() {
    let env = TestEnv::plain();
    std::fs::create_dir(env.work().join("a folder")).unwrap();
    let document = env.json(
        6,
        &[
            "-C",
            "a folder",
            "run",
            "--no-wait",
            "--feedback",
            "test=test -e fixed",
            "--",
            "touch",
            "made",
        ],
    );
    env.write("a folder/fixed", "");
    let hint = document["resume_hint"].as_str().unwrap().replacen(
        "recover ",
        concat!(env!("CARGO_BIN_EXE_recover"), " "),
        1,
    );
    let ran = env.sh(&format!("cd / && {hint} --wait --json")).expect(0);
    assert_eq!(ran.json()["outcome"], "complete");
    let hint = document["rollback_hint"].as_str().unwrap().replacen(
        "recover ",
        concat!(env!("CARGO_BIN_EXE_recover"), " "),
        1,
    );
    env.sh(&format!("cd / && {hint} --yes")).expect(0);
    assert!(!env.exists("a folder/made"));
}

/// A child that floods its output is bounded in the log, and its end is kept.
#[test]
fn a_flood_of_output_is_bounded() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[run]\nlog_limit = \"64KiB\"\n");
    let flood = "yes 0123456789 | head -c 20000000; echo the end";
    let document = env.json(0, &["-q", "run", "--", "sh", "-c", flood]);
    let log = document["iterations"][0]["attempts"][0]["log_path"]
        .as_str()
        .unwrap();
    let text = std::fs::read(log).unwrap();
    assert!(text.len() < 80 << 10, "{}", text.len());
    assert!(String::from_utf8_lossy(&text).contains("the end"));
}

// Contract: whose command it is and where the run stands is known to the feedback loops too.
#[test]
fn feedback_loops_know_the_iteration() {
    let env = TestEnv::repo();
    let feedback = "seen=echo $RECOVER_RUN_ID $RECOVER_ITERATION $RECOVER_ATTEMPT >> seen.txt";
    env.json(
        0,
        &[
            "--run",
            "r",
            "run",
            "--iterations",
            "2",
            "--feedback",
            feedback,
            "--",
            "true",
        ],
    );
    // Attempt 0 is the state before the first one.
    assert_eq!(env.read("seen.txt"), "r 1 0\nr 1 1\nr 2 1\n");
}

/// `[runner] command` is started where no command is given; `[run] prompt_limit` bounds what a prompt says of a failure.
#[test]
fn the_configured_command_and_the_prompt_limit_hold() {
    let env = TestEnv::repo();
    assert_eq!(env.json(2, &["run"])["error"]["code"], "usage");
    let configured =
        "[runner]\ncommand = \"cat > prompt.$RECOVER_ATTEMPT\"\n[run]\nprompt_limit = 300\n";
    env.write(".ultraplan/recover.toml", configured);
    let noisy = "t=seq 1000 2000; echo the end; test -e prompt.2";
    env.json(
        0,
        &[
            "run",
            "--run",
            "r",
            "--retries",
            "1",
            "--prompt",
            "do it",
            "--feedback",
            noisy,
        ],
    );
    let prompt = env.read("prompt.2");
    assert!(
        prompt.starts_with("do it") && prompt.contains("## Previous Attempt Failed"),
        "{prompt}"
    );
    assert!(
        prompt.contains("the end") && prompt.len() < 400,
        "{} bytes: {prompt}",
        prompt.len()
    );
    // What was begun by attempts alone has no command of its own.
    env.json(0, &["attempt", "fail", "--run", "m", "--exit-code", "1"]);
    env.json(
        0,
        &[
            "resume",
            "--run",
            "m",
            "--wait",
            "--strategy",
            "retry_with_context",
        ],
    );
    assert!(env.read("prompt.2").contains("## Previous Attempt Failed"));
}

/// What is said of an earlier attempt is no input of a program that nobody gave a prompt; an agent reads it.
#[test]
fn a_retry_feeds_no_prompt_to_a_plain_command() {
    let works =
        "cat >> ../input; [ $RECOVER_ATTEMPT = 2 ] || { echo 'error: it broke' >&2; exit 1; }";
    let env = quick();
    env.json(0, &["run", "--", "sh", "-c", works]);
    assert_eq!(env.read("../input"), "");
    // It is in a file for who wants it.
    let env = quick();
    let reads = works.replace("cat >>", "cat $RECOVER_PROMPT_FILE >>");
    env.json(0, &["run", "--", "sh", "-c", &reads]);
    assert!(env.read("../input").contains("it broke"));
    let env = quick();
    env.json(0, &["run", "--prompt", "Do it", "--", "sh", "-c", works]);
    assert_eq!(env.read("../input").matches("Do it").count(), 2);
    assert!(env.read("../input").contains("it broke"));
    let env = quick();
    env.json(0, &["run", "--agent", "claude", "--", "sh", "-c", works]);
    assert!(env.read("../input").contains("it broke"));
}
