//! Budgets and cooldowns: they hold over rollbacks, restarts and parallel runs.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::run::supervision::{NOW, ended, kill};

const FAIL: [&str; 9] = [
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

/// L4: where nothing is recorded everything is allowed.
#[test]
fn nothing_recorded_means_go() {
    for env in [TestEnv::repo(), TestEnv::plain()] {
        let status = env.json(0, &["retry-status", "--check"]);
        assert_eq!(status["can_retry"], true);
        assert_eq!(
            (
                &status["error_count"],
                &status["max_attempts"],
                &status["attempts_left"]
            ),
            (&0.into(), &3.into(), &3.into())
        );
        for field in [
            "retry_after",
            "last_error",
            "last_error_at",
            "cooldown_until",
            "parked",
            "decision",
        ] {
            assert!(status[field].is_null(), "{field}");
        }
        assert_eq!(
            (&status["is_recovering"], &status["budgets"]),
            (&false.into(), &json!([]))
        );
        assert!(!env.exists(".ultraplan"), "looking writes nothing");
    }
}

/// The retry storm, L6: the state is in the checkpoints and in git, each failure rolls it back; the budget holds.
#[test]
fn a_rollback_of_the_state_does_not_give_attempts_back() {
    for committed in [false, true] {
        let mut env = TestEnv::repo();
        env.set("RECOVER_TEST_NOW", NOW);
        env.write(".ultraplan/state/progress.json", "{\"step\":1}\n");
        env.json(0, &["checkpoint", "create"]);
        if committed {
            env.git(&["add", "-f", ".ultraplan"]);
            env.git(&["commit", "-q", "-m", "with its state"]);
        }
        for code in [6, 6, 8, 8] {
            env.write(".ultraplan/state/progress.json", "{\"step\":2}\n");
            env.json(code, &FAIL);
            assert_eq!(env.read(".ultraplan/state/progress.json"), "{\"step\":1}\n");
        }
        for _ in 0..2 {
            env.json(8, &["retry-status", "--check"]);
            // The loop restores whatever it can.
            env.recover(&[
                "rollback", "--to", "initial", "--scope", "all", "--edits", "discard", "--yes",
            ]);
            env.recover(&["checkpoint", "restore", "latest", "--yes"]);
            if committed {
                env.git(&["reset", "-q", "--hard"]);
            }
        }
        let status = env.json(8, &["retry-status", "--check"]);
        assert_eq!(status["can_retry"], false);
        assert_eq!(status["attempts_left"], 0);
    }
}

/// Promise 4: a full rollback takes the failure back, not the attempts it cost.
#[test]
fn a_full_rollback_keeps_cooldown_and_budget() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW);
    let args = [
        "run",
        "--no-wait",
        "--feedback",
        "test=echo 'assert 1 == 2'; exit 1",
        "--",
        "sh",
        "-c",
        "echo x >> a.txt",
    ];
    env.json(6, &args);
    env.json(0, &["rollback", "--full", "--yes"]);
    let status = env.json(6, &["retry-status", "--check"]);
    assert_eq!(
        status["retry_after"], "2026-03-01T12:00:05.000Z",
        "the cooldown is not over"
    );
    for _ in 0..4 {
        env.recover(&["resume", "--wait"]);
        env.json(0, &["rollback", "--full", "--yes"]);
    }
    let code = env.recover(&["retry-status", "--check"]).code;
    assert!(code == 7 || code == 8, "{code}");
    let attempts = env.json(0, &["status"])["iterations"][0]["attempts"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(attempts, 3);
}

/// The fold of the ledger is not in what a rollback restores, even where the work tree's HEAD has an older one.
#[test]
fn budgets_hold_for_a_supervised_run_whose_state_is_in_git() {
    let env = quick();
    env.json(0, &["checkpoint", "create", "--run", "first"]);
    env.git(&["add", "-f", ".ultraplan"]);
    env.git(&["commit", "-q", "-m", "with its state"]);
    let agent = "echo x >> ../tries; git checkout -q HEAD -- .ultraplan/state 2>/dev/null; echo bad > state";
    let check =
        "test=grep -q good state || { echo 'FAILED t.py::test_a - assert 1 == 2'; exit 1; }";
    let ran = env.recover(&[
        "--json",
        "run",
        "--run",
        "second",
        "--on-failure",
        "rollback",
        "--feedback",
        check,
        "--",
        "sh",
        "-c",
        agent,
    ]);
    assert_eq!(ran.expect(8).json()["outcome"], "escalated");
    assert_eq!(env.sh("cat ../tries").stdout.lines().count(), 3);
}

/// L4: an explicit reset clears count, cooldown and escalation.
#[test]
fn a_reset_allows_again() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW);
    assert_eq!(
        env.json(4, &["retry-status", "--reset"])["error"]["code"],
        "run_not_found"
    );
    assert!(
        !env.exists(".ultraplan"),
        "nothing is made where nothing is recorded"
    );
    env.json(6, &FAIL);
    let status = env.json(0, &["retry-status", "--reset", "--check"]);
    assert_eq!(
        (&status["can_retry"], &status["error_count"]),
        (&true.into(), &0.into()),
        "{status}"
    );
    for code in [6, 6, 8] {
        env.json(code, &FAIL);
    }
    let status = env.json(0, &["retry-status", "--reset", "--check"]);
    assert_eq!(
        (&status["can_retry"], &status["attempts_left"]),
        (&true.into(), &3.into()),
        "{status}"
    );
    assert_eq!(env.state_json("recovery.json")["errorCount"], 0);
    env.json(6, &FAIL);
}

/// A wait is taken at once by a clock that stands; without `--wait` it is told.
#[test]
fn waiting_ends_when_a_retry_is_allowed() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW);
    env.json(6, &FAIL);
    let status = env.json(6, &["retry-status", "--check"]);
    assert_eq!(
        (&status["wait_ms"], &status["can_retry"]),
        (&5000.into(), &false.into())
    );
    assert_eq!(status["cooldown_until"], status["retry_after"]);
    assert_eq!(
        status["budgets"][0],
        json!({"scope": "cause", "used": 1, "limit": 3, "left": 2})
    );
    assert_eq!(env.json(0, &["retry-status", "--wait"])["can_retry"], true);
    assert_eq!(
        env.json(0, &["retry-status", "--wait=10s"])["can_retry"],
        true
    );
    env.json(9, &["retry-status", "--wait=1s"]);
}

/// S8: the session's cap counts over its runs, parallel ones included.
#[test]
fn a_session_shares_its_budget() {
    let mut env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[retry]\nsession_max_attempts = 3\n",
    );
    env.set("RECOVER_SESSION", "night")
        .set("RECOVER_TEST_NOW", NOW);
    for run in ["a", "b"] {
        env.json(6, &[&FAIL[..], &["--run", run]].concat());
    }
    let third = env.json(7, &[&FAIL[..], &["--run", "c"]].concat());
    assert_eq!(third["decision"]["stopped_by"], "session");
    for run in ["a", "b", "c"] {
        let status = env.json(7, &["retry-status", "--check", "--run", run]);
        assert_eq!(status["attempts_left"], 0, "{run}");
    }
}

/// S8: the task's cap counts over its runs; another process's environment does not take a run out of its session.
#[test]
fn a_task_shares_its_budget_over_runs() {
    let mut env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[retry]\ntask_max_attempts = 2\n",
    );
    env.set("RECOVER_TEST_NOW", NOW);
    env.json(6, &[&FAIL[..], &["--run", "a", "--task", "T"]].concat());
    let second = env.json(7, &[&FAIL[..], &["--run", "b", "--task", "T"]].concat());
    assert_eq!(second["decision"]["stopped_by"], "task");
    env.json(7, &["retry-status", "--check", "--run", "a"]);
    env.json(6, &[&FAIL[..], &["--run", "c", "--task", "U"]].concat());
}

/// A run keeps its session when it is resumed without `RECOVER_SESSION`.
#[test]
fn a_resumed_run_stays_in_its_session() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW);
    env.write(
        ".ultraplan/recover.toml",
        "[retry]\nsession_max_attempts = 2\n",
    );
    let args = [
        "run",
        "--no-wait",
        "--feedback",
        "test=echo 'assert 1 == 2'; exit 1",
        "--",
        "true",
    ];
    env.recover_with(&[("RECOVER_SESSION", "night")], &args)
        .expect(6);
    let resumed = env.json(7, &["resume", "--wait"]);
    assert_eq!(resumed["executed"], true);
    assert_eq!(resumed["decision"]["stopped_by"], "session", "{resumed}");
}

/// S7: exponential, jittered, repeatable by the seed; a full disk is never retried into.
#[test]
fn causes_have_delays_and_limits_of_their_own() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", NOW)
        .set("RECOVER_TEST_SEED", "7");
    let fail = |code, run, message| {
        env.json(
            code,
            &[
                "attempt",
                "fail",
                "--check",
                "--run",
                run,
                "--exit-code",
                "1",
                "--message",
                message,
            ],
        )
    };
    let network = |code| fail(code, "n", "curl: (6) Could not resolve host: example.com");
    let failed = network(6);
    assert_eq!(failed["failure"]["cause"], "NETWORK_ERROR");
    assert_eq!(
        failed["result"]["retry_after"], "2026-03-01T12:00:01.000Z",
        "the first delay is one second"
    );
    for _ in 0..4 {
        network(6);
    }
    network(7);
    env.json(7, &["retry-status", "--check", "--run", "n"]);
    let failed = fail(8, "d", "No space left on device (os error 28)");
    assert_eq!(failed["failure"]["cause"], "DISK_FULL");
    let status = env.json(0, &["status", "--run", "d"]);
    assert!(
        !status["manual_steps"].as_array().unwrap().is_empty(),
        "B5: {status}"
    );
}

/// Two lanes of one session want its last attempt at once: one gets it, the other is told.
#[test]
fn lanes_do_not_both_get_the_sessions_last_attempt() {
    let mut env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[retry]\nsession_max_attempts = 3\n",
    );
    env.set("RECOVER_SESSION", "night")
        .set("RECOVER_TEST_NOW", NOW);
    let agent = "echo x >> ../tries; if [ -e ../slow ]; then touch ../busy; sleep 2; fi; echo 'assert 1 == 2'; exit 1";
    for lane in ["a", "b"] {
        let args = [
            "run",
            "--run",
            "r",
            "--lane",
            lane,
            "--no-wait",
            "--feedback",
            "test=echo 'assert 1 == 2'; exit 1",
            "--",
            "sh",
            "-c",
            &agent.replace("exit 1", "exit 0"),
        ];
        env.json(6, &args);
    }
    env.sh("touch ../slow");
    let first = env.start(&["--json", "resume", "--run", "r", "--lane", "a", "--wait"]);
    crate::run::supervision::until("it is busy", || env.exists("../busy"));
    let second = env.json(7, &["resume", "--run", "r", "--lane", "b", "--wait"]);
    assert!(
        second["error"]["message"]
            .as_str()
            .unwrap()
            .contains("session"),
        "{second}"
    );
    crate::run::supervision::ended(first).expect(7);
    assert_eq!(env.sh("cat ../tries").stdout.lines().count(), 3);
    env.json(7, &["retry-status", "--check", "--run", "r", "--lane", "b"]);
}

/// A loop that carries the skip out by itself goes on with what comes next; what was given up stays on record (A7).
#[test]
fn a_loop_that_skips_goes_on() {
    let env = quick();
    env.json(0, &["attempt", "start", "--subtask", "s1"]);
    for _ in 0..3 {
        env.recover(&[&FAIL[..], &[]].concat());
        env.recover(&["attempt", "start", "--subtask", "s1"]);
    }
    env.json(8, &["retry-status", "--check"]);
    env.json(0, &["attempt", "start", "--subtask", "s2"]);
    env.json(0, &["retry-status", "--check"]);
    env.json(0, &["attempt", "pass"]);
    let list = env.json(0, &["attempt", "list"]);
    assert_eq!(list["stuck_subtasks"][0]["subtask_id"], "s1", "{list}");
    assert_eq!(list["subtasks"]["s2"]["status"], "completed");
}

/// L4: while an attempt is under way no other one is allowed.
#[test]
fn no_attempt_is_allowed_beside_another_one() {
    let env = quick();
    let child = env.start(&["run", "--", "sh", "-c", "echo $$ > ../pid; exec sleep 300"]);
    env.await_line("../pid");
    let status = env.json(11, &["retry-status", "--check"]);
    assert_eq!(status["can_retry"], false, "{status}");
    let told = env.recover(&["retry-status"]).expect(0).stdout;
    assert!(
        told.starts_with(&format!("An attempt is under way (pid {}).", child.id())),
        "{told}"
    );
    kill("-INT", child.id());
    ended(child).expect(130);
    assert_eq!(env.json(0, &["retry-status", "--check"])["can_retry"], true);
}

/// The count of errors, as the command and the loop's file have it.
fn counted(env: &TestEnv, args: &[&str]) -> (Value, Value) {
    let status = env.json(0, &[&["retry-status"][..], args].concat());
    let file = env.state_json("recovery.json")["errorCount"].clone();
    (status["error_count"].clone(), file)
}

// L3, L4, L5: phase and plan say what an error was about; the loop has one count.
#[test]
fn a_loop_has_one_count_whatever_phase_it_is_in() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "preset = \"loop\"\n[cooldown]\nduration = \"0s\"\n",
    );
    let defaults = env.json(0, &["retry-status", "--phase", "05"]);
    assert_eq!(defaults["error_count"], 0, "{defaults}");
    let mut allowed = Vec::new();
    for (phase, plan) in [("05", "1"), ("05", "2"), ("06", "1"), ("07", "1")] {
        let fail = ["attempt", "fail", "--message", "it broke"];
        let about = ["--phase", phase, "--plan", plan];
        let failed = env.json(0, &[&fail[..], &about].concat());
        allowed.push(failed["result"]["can_retry"].clone());
        env.json(0, &["checkpoint", "create"]);
    }
    assert_eq!(allowed, [true, true, false, false]);
    assert_eq!(counted(&env, &[]), (4.into(), 4.into()));
    assert_eq!(counted(&env, &["--phase", "06"]), (4.into(), 4.into()));
    let events = env.events("ralph_loop_failed");
    let about: Vec<_> = events
        .iter()
        .map(|event| (&event["payload"]["phase"], &event["payload"]["plan"]))
        .collect();
    assert_eq!(
        about,
        [(&"06".into(), &1.into()), (&"07".into(), &1.into())]
    );
    // A lane names another loop, and a success clears the one that it is of.
    let lane = ["--phase", "07", "--lane", "SL-1"];
    env.json(
        0,
        &[&["attempt", "fail", "--message", "x"][..], &lane].concat(),
    );
    assert_eq!(counted(&env, &lane).0, 1);
    env.json(0, &["attempt", "pass", "--phase", "08"]);
    assert_eq!(counted(&env, &["--phase", "08"]).0, 0);
    assert_eq!(counted(&env, &lane).0, 1);
}

#[test]
fn a_phase_names_a_run_that_was_made_with_it() {
    let env = quick();
    let run = ["run", "--run", "r", "--phase", "P1", "--attempts", "1"];
    env.json(8, &[&run[..], &["--", "false"]].concat());
    for phase in ["P1", "P2"] {
        let fail = ["attempt", "fail", "--message", "x", "--phase", phase];
        env.json(0, &fail);
    }
    let count = |args: &[&str]| {
        let status = env.json(0, &[&["retry-status"][..], args].concat());
        (
            status["run"]["run_id"].clone(),
            status["error_count"].clone(),
        )
    };
    assert_eq!(count(&["--run", "r"]).1, 2);
    assert_eq!(count(&["--phase", "P1"]), count(&["--run", "r"]));
    assert_eq!(count(&["--phase", "P2"]).1, 1);
}

// A run that the environment names and that nothing was recorded of is one without errors; a name that is typed is none.
#[test]
fn an_unknown_run_of_the_environment_has_no_errors_yet() {
    let mut env = TestEnv::repo();
    for known in [false, true] {
        if known {
            env.json(0, &["attempt", "fail", "--message", "x"]);
        }
        env.json(4, &["retry-status", "--run", "nope"]);
        env.set("RECOVER_RUN_ID", "nope");
        let status = env.json(0, &["retry-status", "--check"]);
        assert_eq!(
            (&status["error_count"], &status["run"]),
            (&0.into(), &Value::Null)
        );
        env.json(4, &["retry-status", "--run", "nope"]);
        env.set("RECOVER_RUN_ID", "");
    }
}
