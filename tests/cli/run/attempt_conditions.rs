//! What is true of an attempt beside its outcome, the fallback, and the budgets of time and money.
//!
//! Circles, flaky and failing checks, weakened tests, productive timeouts.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::attempts::{CHECK, quick};
use crate::run::supervision::{ended, kill, until};

fn attempts(document: &Value, iteration: usize) -> &Vec<Value> {
    document["iterations"][iteration]["attempts"]
        .as_array()
        .unwrap_or_else(|| panic!("{document}"))
}

fn has(of: &Value, condition: &str) -> bool {
    of["conditions"]
        .as_array()
        .is_some_and(|all| all.contains(&condition.into()))
}

/// A1, A2: an agent that toggles between two trees stops after the third attempt, whatever the budget; the run goes on.
#[test]
fn a_circle_is_given_up_after_the_third_attempt() {
    let env = quick();
    env.write("state", "good\n");
    let agent = "if [ $RECOVER_ITERATION = 2 ]; then echo bad$((RECOVER_ATTEMPT % 2)) > state; else echo good > state; fi; echo x >> ../calls";
    let args = [
        "run",
        "--iterations",
        "3",
        "--attempts",
        "6",
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        agent,
    ];
    let document = env.json(8, &args);
    assert_eq!(document["outcome"], "escalated");
    let circular = attempts(&document, 1);
    assert_eq!(circular.len(), 3, "{document}");
    assert!(
        has(&circular[2], "circular_fix") && has(&circular[2]["failure"], "circular_fix"),
        "{document}"
    );
    assert!(!has(&circular[1], "circular_fix"));
    assert_eq!(document["iterations"][1]["status"], "skipped");
    assert_eq!(document["iterations"][2]["status"], "completed");
    assert_eq!(
        document["decision"]["actions"],
        json!(["skip", "escalate"]),
        "{document}"
    );
    assert!(
        document["decision"]["reason"]
            .as_str()
            .unwrap()
            .contains("circle"),
        "{document}"
    );
    assert_eq!(env.sh("wc -l < ../calls").stdout.trim(), "5");
}

/// A1: attempts that each try something else are no circle, and one that fails fewer checks is progress.
#[test]
fn different_approaches_and_progress_are_no_circle() {
    let env = quick();
    let different =
        "for i in 1 2 3 4 5 6; do echo line $RECOVER_ATTEMPT.$i; done > work; echo bad > state";
    let document = env.json(
        8,
        &[
            "run",
            "--attempts",
            "5",
            "--feedback",
            CHECK,
            "--",
            "sh",
            "-c",
            different,
        ],
    );
    assert_eq!(attempts(&document, 0).len(), 5, "{document}");
    assert!(
        attempts(&document, 0)
            .iter()
            .all(|attempt| !has(attempt, "circular_fix")),
        "{document}"
    );

    let env = quick();
    let counting =
        "test=n=$(cat left); echo \"test result: FAILED. 1 passed; $n failed; 0 ignored\"; exit 1";
    let fewer = "echo $((6 - RECOVER_ATTEMPT)) > left; echo always the same > work";
    let document = env.json(
        8,
        &[
            "run",
            "--attempts",
            "4",
            "--feedback",
            counting,
            "--",
            "sh",
            "-c",
            fewer,
        ],
    );
    assert_eq!(attempts(&document, 0).len(), 4, "{document}");
    assert!(
        attempts(&document, 0)
            .iter()
            .all(|attempt| !has(attempt, "circular_fix")),
        "{document}"
    );
}

/// A1, A2: the loop's own attempts are looked at as well.
#[test]
fn a_circle_of_recorded_attempts_is_decided_on() {
    let env = quick();
    env.write(
        ".ultraplan/recover.toml",
        "[retry.causes.VERIFICATION_FAILED]\nmax_attempts = 9\n[cooldown]\nduration = \"1ms\"\n",
    );
    env.json(0, &["checkpoint", "create"]);
    let fail = [
        "attempt",
        "fail",
        "--loop",
        "test",
        "--exit-code",
        "1",
        "--message",
        "assert 1 == 2",
    ];
    let mut last = Value::Null;
    for (number, content) in ["one\n", "two\n", "one\n"].into_iter().enumerate() {
        let approach = format!("Approach number {number}");
        env.json(0, &["attempt", "start", "--approach", &approach]);
        env.write("a.txt", content);
        last = env.json(0, &fail);
    }
    assert!(has(&last["failure"], "circular_fix"), "{last}");
    assert_eq!(
        last["decision"]["actions"],
        json!(["skip", "escalate"]),
        "{last}"
    );
    assert_eq!(last["result"]["can_retry"], false);
    // Nothing was tried at all: that is no circle.
    for _ in 0..4 {
        last = env.json(0, &[&fail[..], &["--run", "idle"]].concat());
    }
    assert!(!has(&last["failure"], "circular_fix"), "{last}");
    assert_eq!(last["decision"]["actions"], json!(["retry"]), "{last}");
}

/// A failing loop is run again before it is believed; what passes then is flaky, and the attempt passed.
#[test]
fn a_flaky_check_passes_at_its_second_run() {
    let flaky = "test=echo x >> ../calls; test -e ../failed || { touch ../failed; echo boom; exit 1; }; echo ok";
    let env = quick();
    env.write(".ultraplan/recover.toml", "[checks]\nbaseline = false\n");
    let document = env.json(0, &["run", "--feedback", flaky, "--", "true"]);
    let attempt = &attempts(&document, 0)[0];
    assert_eq!(attempt["outcome"], "passed");
    assert_eq!(attempt["conditions"], json!(["flaky"]), "{attempt}");
    let result = &attempt["feedback_results"]["test"];
    assert_eq!(result["passed"], true);
    assert!(
        result["summary"].as_str().unwrap().contains("flaky"),
        "{result}"
    );
    assert_eq!(env.sh("wc -l < ../calls").stdout.trim(), "2");
    let status = env.recover(&["status", "-v"]).expect(0);
    assert!(status.stdout.contains("flaky"), "{}", status.stdout);

    // Switched off, and for what ran out of time, the first word is the last.
    let env = quick();
    env.write(
        ".ultraplan/recover.toml",
        "[checks]\nbaseline = false\nflaky = false\n[cooldown]\nduration = \"1ms\"\n",
    );
    let document = env.json(
        8,
        &["run", "--attempts", "1", "--feedback", flaky, "--", "true"],
    );
    assert_eq!(
        attempts(&document, 0)[0]["feedback_results"]["test"]["passed"],
        false
    );
    let env = quick();
    env.write(
        ".ultraplan/recover.toml",
        "[checks]\nbaseline = false\n[[feedback]]\nname = 'slow'\ncommand = 'echo x >> ../calls; sleep 60'\ntimeout = '300ms'\n",
    );
    env.json(7, &["run", "--attempts", "1", "--", "true"]);
    assert_eq!(env.sh("wc -l < ../calls").stdout.trim(), "1");
}

/// What fails before the first attempt is known: the initial checkpoint is not good, and nothing is rolled back to it.
#[test]
fn a_check_that_fails_before_the_first_attempt_is_told_apart() {
    let env = quick();
    let build = "build=grep -q fine code || { echo 'error: could not compile `y` (lib) due to 1 previous error'; exit 101; }";
    let document = env.json(
        8,
        &[
            "run",
            "--feedback",
            build,
            "--",
            "sh",
            "-c",
            "echo broken > code",
        ],
    );
    let attempt = &attempts(&document, 0)[0];
    assert!(
        has(attempt, "baseline_failing") && has(&attempt["failure"], "baseline_failing"),
        "{document}"
    );
    assert!(has(&attempt["failure"], "no_checkpoint"), "{document}");
    assert_eq!(
        document["decision"]["actions"],
        json!(["escalate"]),
        "{document}"
    );
    assert!(
        env.events("restored")
            .iter()
            .all(|event| event["payload"]["operation"]["scope"] == "state")
    );
    let list = env.json(0, &["checkpoint", "list"]);
    let initial = &list["checkpoints"][0];
    assert_eq!(
        (&initial["trigger"], &initial["verdict"]),
        (&"initial".into(), &"failed".into()),
        "{list}"
    );
    assert_eq!(initial["feedback_results"]["build"]["passed"], false);
    assert_eq!(
        env.json(0, &["status"])["checkpoints"]["last_good"],
        Value::Null
    );
    assert_eq!(env.events("baseline_verified").len(), 1);
    assert_eq!(document["baseline"]["build"]["passed"], false);
    // Who asks for it gets it all the same.
    env.json(8, &["resume", "--strategy", "rollback_and_retry"]);
    assert_eq!(env.events("baseline_verified").len(), 1, "once a run");
}

/// The baseline can be switched off; it passes on the initial checkpoint; its output is not the answer.
#[test]
fn the_baseline_is_run_once_and_can_be_switched_off() {
    let loud = "test=echo $RECOVER_ITERATION.$RECOVER_ATTEMPT >> ../calls; echo a check speaks";
    let env = TestEnv::repo();
    let ran = env
        .recover(&["run", "--iterations", "2", "--feedback", loud, "--", "true"])
        .expect(0);
    assert_eq!(env.sh("cat ../calls").stdout, "1.0\n1.1\n2.1\n");
    assert!(ran.stderr.contains("a check speaks"), "{}", ran.stderr);
    let list = env.json(0, &["checkpoint", "list", "--all-runs"]);
    let initial = &list["checkpoints"][0];
    assert_eq!(
        (
            &initial["verdict"],
            &initial["feedback_results"]["test"]["passed"]
        ),
        (&"unverified".into(), &true.into())
    );
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[checks]\nbaseline = false\n");
    env.json(0, &["run", "--feedback", loud, "--", "true"]);
    assert_eq!(env.sh("cat ../calls").stdout, "1.1\n");
}

/// Interrupted before the first attempt: the run is cancelled, no attempt was made, and resume begins with it again.
#[test]
fn an_interrupted_baseline_cancels_the_run() {
    let env = TestEnv::repo();
    let slow = "test=echo $$ >> ../calls; test -e ../go || exec sleep 60";
    let child = env.start(&["--json", "run", "--feedback", slow, "--", "touch", "made"]);
    until("the baseline runs", || env.sh("test -s ../calls").code == 0);
    kill("-INT", child.id());
    let ran = ended(child).expect(130);
    let document = ran.json();
    assert_eq!(
        (&document["outcome"], &document["run"]["status"]),
        (&"cancelled".into(), &"cancelled".into())
    );
    assert_eq!(document["iterations"], json!([]));
    assert!(!env.exists("made"));
    env.sh("touch ../go");
    assert_eq!(env.json(0, &["resume"])["outcome"], "complete");
    assert_eq!(env.sh("wc -l < ../calls").stdout.trim(), "3");
}

/// An attempt that deletes tests passes with the condition, which is shown, and the next prompt asks for them.
#[test]
fn weakened_tests_are_noticed_in_an_attempt_that_passed() {
    let env = quick();
    env.write(
        "tests/test_sum.py",
        "def test_sum():\n    assert add(1, 2) == 3\n",
    );
    env.write("check.sh", "test ! -e tests/test_sum.py\n");
    let agent = "cat > ../prompt-$RECOVER_ITERATION; [ $RECOVER_ITERATION = 1 ] && rm tests/test_sum.py; true";
    let args = [
        "run",
        "--iterations",
        "2",
        "--prompt",
        "Go.",
        "--feedback",
        "test=sh check.sh",
        "--",
        "sh",
        "-c",
        agent,
    ];
    let document = env.json(0, &args);
    let attempt = &attempts(&document, 0)[0];
    assert_eq!(attempt["conditions"], json!(["tampered"]), "{document}");
    assert_eq!(
        attempt["notes"],
        json!(["tests/test_sum.py: the test file was deleted"])
    );
    assert_eq!(
        attempts(&document, 1)[0]["conditions"],
        json!([]),
        "the next one did nothing of the kind"
    );
    let prompt = env.sh("cat ../prompt-2").stdout;
    assert!(
        prompt.contains("tests were weakened") && prompt.contains("test_sum.py"),
        "{prompt}"
    );
    let status = env.recover(&["status", "-v"]).expect(0);
    assert!(
        status.stdout.contains("tampered") && status.stdout.contains("test_sum.py"),
        "{}",
        status.stdout
    );
}

/// Skip marks, the loop's own script, and an attempt that fails nevertheless.
#[test]
fn weakened_checks_are_noticed_in_an_attempt_that_failed() {
    let env = quick();
    env.write(
        "tests/a.rs",
        "#[test]\nfn adds() {\n    assert_eq!(add(1, 2), 3);\n}\n",
    );
    env.script("check.sh", "grep -qx good state");
    let agent = "sed -i 's/^#.test.$/#[test]\\n#[ignore]/' tests/a.rs; echo true >> check.sh; echo bad > state; cat > ../prompt-$RECOVER_ATTEMPT";
    let args = [
        "run",
        "--attempts",
        "2",
        "--prompt",
        "Go.",
        "--feedback",
        CHECK,
        "--feedback",
        "own=./check.sh",
    ];
    let document = env.json(8, &[&args[..], &["--", "sh", "-c", agent]].concat());
    let attempt = &attempts(&document, 0)[0];
    assert!(
        has(attempt, "tampered") && has(&attempt["failure"], "tampered"),
        "{document}"
    );
    let notes = attempt["notes"].to_string();
    assert!(
        notes.contains("tests/a.rs") && notes.contains("check.sh"),
        "{notes}"
    );
    assert!(
        env.sh("cat ../prompt-2")
            .stdout
            .contains("tests were weakened")
    );
    let env = quick();
    env.write(".ultraplan/recover.toml", "[checks]\ntamper = false\n");
    env.write("test_a.py", "def test_a():\n    assert f()\n");
    let document = env.json(0, &["run", "--", "rm", "test_a.py"]);
    assert_eq!(attempts(&document, 0)[0]["conditions"], json!([]));
}

/// A timeout of an attempt that changed files is another than one of an attempt that hung.
#[test]
fn a_timeout_that_changed_files_is_productive() {
    let env = quick();
    let agent = "[ $RECOVER_ATTEMPT = 1 ] && echo work > made; exec sleep 60";
    let document = env.json(
        7,
        &[
            "run",
            "--attempts",
            "2",
            "--timeout",
            "400ms",
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    let all = attempts(&document, 0);
    assert_eq!(all[0]["failure"]["cause"], "TOOL_TIMEOUT", "{document}");
    assert!(
        has(&all[0], "productive") && has(&all[0]["failure"], "productive"),
        "{document}"
    );
    assert!(!has(&all[1], "productive"), "{document}");
}

/// S9, S12: when no retry is allowed any more, the fallback is run once in place of the command, and its outcome decides;
/// what a failed one left behind is put back, and can be had again.
#[test]
fn the_fallback_is_run_once() {
    let agent = "echo agent >> ../calls; echo bad > state";
    let mend = "echo fallback >> ../calls; echo good > state";
    let env = quick();
    let args = [
        "run",
        "--attempts",
        "2",
        "--fallback",
        mend,
        "--feedback",
        CHECK,
        "--",
        "sh",
        "-c",
        agent,
    ];
    let document = env.json(0, &args);
    assert_eq!(document["outcome"], "complete");
    assert_eq!(env.sh("cat ../calls").stdout, "agent\nagent\nfallback\n");
    let all = attempts(&document, 0);
    let fallbacks: Vec<_> = all
        .iter()
        .map(|attempt| attempt["fallback"].as_bool().unwrap())
        .collect();
    assert_eq!(fallbacks, [false, false, true]);
    assert!(has(&all[1], "retries_exhausted"), "{document}");
    assert_eq!(
        env.events("attempt_ended")[1]["payload"]["decision"]["actions"],
        json!(["fallback"])
    );

    let env = quick();
    let failing = "echo fallback >> ../calls; echo worse > state; echo junk > junk; false";
    env.write(
        ".ultraplan/recover.toml",
        format!("[runner]\nfallback = '{failing}'\n[cooldown]\nduration = '1ms'\n"),
    );
    let document = env.json(
        8,
        &[
            "run",
            "--attempts",
            "2",
            "--feedback",
            CHECK,
            "--",
            "sh",
            "-c",
            agent,
        ],
    );
    assert_eq!(env.sh("cat ../calls").stdout, "agent\nagent\nfallback\n");
    assert_eq!(
        document["decision"]["actions"],
        json!(["rollback", "skip", "escalate"]),
        "{document}"
    );
    assert_eq!(
        (env.read("state"), env.exists("junk")),
        ("bad\n".to_owned(), false),
        "{document}"
    );
    env.json(0, &["undo", "--of-run", "--yes"]);
    assert_eq!(
        (env.read("state"), env.read("junk")),
        ("worse\n".to_owned(), "junk\n".to_owned())
    );
    // It was run; taking the run up on request is about its own command again.
    env.json(8, &["resume", "--strategy", "retry_with_context"]);
    assert_eq!(
        env.sh("cat ../calls").stdout,
        "agent\nagent\nfallback\nagent\n"
    );
}

/// S9: a fallback that was cut off is not repeated.
#[test]
fn a_fallback_that_was_cut_off_is_not_repeated() {
    let env = quick();
    let fallback = "echo fallback >> ../calls; exec sleep 60";
    let args = [
        "run",
        "--attempts",
        "1",
        "--fallback",
        fallback,
        "--",
        "sh",
        "-c",
        "echo agent >> ../calls; exit 3",
    ];
    let mut child = env.start(&args);
    until("the fallback runs", || {
        env.sh("cat ../calls").stdout.contains("fallback")
    });
    kill("-KILL", child.id());
    child.wait().unwrap();
    let document = env.json(8, &["resume"]);
    assert_eq!(document["executed"], false, "{document}");
    assert_eq!(env.sh("cat ../calls").stdout, "agent\nfallback\n");
}

/// Time and money, as the agent's records tell it, are budgets too; what stopped the run is said.
#[test]
fn time_and_money_are_budgets() {
    let env = quick();
    env.write(
        ".ultraplan/recover.toml",
        "[retry]\nmax_cost_usd = 1.0\nmax_wall_time = '1h'\n[cooldown]\nduration = '1ms'\n",
    );
    env.script("claude", "echo '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"s\",\"total_cost_usd\":0.6,\"result\":\"done\"}'; date +%N > state");
    let args = [
        "run",
        "--attempts",
        "5",
        "--agent",
        "claude",
        "--feedback",
        CHECK,
        "--",
        "./claude",
        "-p",
    ];
    let document = env.json(7, &args);
    assert_eq!(attempts(&document, 0).len(), 2, "{document}");
    assert_eq!(attempts(&document, 0)[0]["cost_usd"], 0.6);
    assert_eq!(document["decision"]["stopped_by"], "cost", "{document}");
    let status = env.json(7, &["retry-status", "--check"]);
    let budgets = status["budgets"].as_array().unwrap();
    let cost = budgets
        .iter()
        .find(|budget| budget["scope"] == "cost")
        .unwrap();
    assert_eq!(
        *cost,
        json!({"scope": "cost", "used": 120, "limit": 100, "left": 0, "unit": "cents"})
    );
    assert!(
        budgets
            .iter()
            .any(|budget| budget["scope"] == "wall_time" && budget["limit"] == 3600),
        "{status}"
    );

    // Also between iterations that pass.
    let env = quick();
    env.write(".ultraplan/recover.toml", "[retry]\nmax_wall_time = '2s'\n");
    let document = env.json(7, &["run", "--iterations", "9", "--", "sleep", "0.6"]);
    assert!(
        (1..9).contains(&document["iterations"].as_array().unwrap().len()),
        "{document}"
    );
    assert_eq!(
        document["decision"]["stopped_by"], "wall_time",
        "{document}"
    );
}
