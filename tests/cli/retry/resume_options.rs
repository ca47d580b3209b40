//! Other terms for a run that is resumed, and the options that ask for them (B2).

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::attempts::quick;

/// What the run `r` was to do is not done while `../slow` is there.
const SLOW: &str = "echo $RECOVER_ITERATION >> ../log; test ! -e ../slow || sleep 60";

fn timed_out() -> TestEnv {
    let env = quick();
    env.write("../slow", "");
    let run = ["run", "--run", "r", "--timeout", "200ms", "--attempts", "1"];
    env.json(7, &[&run[..], &["--", "sh", "-c", SLOW]].concat());
    env
}

/// The changes that the ledger has, in words.
fn changes(env: &TestEnv) -> Vec<Value> {
    let events = env.events("run_spec_changed");
    events
        .iter()
        .map(|event| event["payload"]["changes"].clone())
        .collect()
}

fn spec(env: &TestEnv) -> Value {
    let events = env.events("run_spec_changed");
    events.last().expect("a change")["payload"]["spec"].clone()
}

fn option<'a>(status: &'a Value, code: &str) -> &'a Value {
    let options = status["options"].as_array().expect("options");
    let is_meant = |option: &&Value| option["strategy"] == code;
    let found = options.iter().find(is_meant);
    found.unwrap_or(&Value::Null)
}

#[test]
fn a_run_that_timed_out_gets_more_time_and_says_so() {
    let env = timed_out();
    let status = env.json(0, &["status"]);
    let offered = option(&status, "adjust_timeout");
    let command = offered["command"].as_str().expect("a command");
    let (_, time) = command.split_once("--timeout ").expect("a time limit");
    assert!(command.contains("resume") && time != "200ms", "{command}");
    let shown = env.recover(&["status", "-v"]).expect(0).stdout;
    assert!(shown.contains("adjust_timeout"), "{shown}");
    assert!(shown.contains("resume --timeout "), "{shown}");
    let report = env.recover(&["report"]).expect(0).stdout;
    assert!(report.contains("resume --timeout "), "{report}");

    env.remove("../slow");
    env.json(0, &["resume", "--timeout", "90s"]);
    assert_eq!(spec(&env)["timeout_ms"], 90_000);
    assert_eq!(changes(&env), [json!(["timeout 200ms -> 90s"])]);
    let status = env.json(0, &["status"]);
    assert_eq!(
        status["term_changes"][0]["changes"][0],
        "timeout 200ms -> 90s"
    );
    for command in [&["status", "-v"][..], &["log"], &["report"]] {
        let shown = env.recover(command).expect(0).stdout;
        assert!(shown.contains("timeout 200ms"), "{command:?}: {shown}");
    }
}

#[test]
fn the_offered_command_works_as_it_is_printed() {
    let env = timed_out();
    env.remove("../slow");
    let status = env.json(0, &["status"]);
    let command = option(&status, "adjust_timeout")["command"].as_str();
    let command = command
        .expect("a command")
        .replacen("recover", env!("CARGO_BIN_EXE_recover"), 1);
    assert_eq!(env.sh(&command).code, 0);
    assert_eq!(env.json(0, &["status"])["run"]["status"], "complete");
}

// What was typed holds against the file, and the environment against what was recorded.
#[test]
fn the_environment_and_the_file_set_the_time_limit_too() {
    let mut env = timed_out();
    env.remove("../slow");
    let config = env.read(".ultraplan/recover.toml");
    let with = |env: &TestEnv| {
        let runner = "[runner]\ntimeout = \"70s\"\n";
        env.write(".ultraplan/recover.toml", format!("{config}{runner}"));
    };
    with(&env);
    env.json(7, &["resume"]);
    env.set("RECOVER_TIMEOUT", "80s");
    env.json(0, &["resume", "--strategy", "retry_same"]);
    assert_eq!(spec(&env)["timeout_ms"], 80_000);

    let env = quick();
    env.write("../failing", "");
    let fails = "test ! -e ../failing";
    env.json(8, &["run", "--attempts", "1", "--", "sh", "-c", fails]);
    with(&env);
    env.remove("../failing");
    env.json(0, &["resume", "--strategy", "retry_same"]);
    assert_eq!(spec(&env)["timeout_ms"], 70_000);
}

#[test]
fn every_term_can_change_and_grants_an_attempt() {
    let env = quick();
    env.script("agent.sh", "cat >> ../prompts; echo >> ../prompts");
    let run = ["run", "--run", "r", "--prompt", "First.", "--attempts", "1"];
    let check = ["--feedback", "test=test -e ../fixed"];
    let code = env.recover(&[&run[..], &check, &["--", "./agent.sh"]].concat());
    assert!(matches!(code.code, 7 | 8), "{code:?}");
    let again = ["resume", "--prompt", "Second.", "--retries", "4"];
    let more = ["--agent", "codex", "--iterations", "2"];
    let ok = ["--feedback", "test=true"];
    env.json(0, &[&again[..], &more, &ok].concat());
    let expected = [
        "attempts 1 -> 5",
        "iterations 1 -> 2",
        "agent auto -> codex",
        "check test",
        "another prompt",
    ];
    assert_eq!(changes(&env), [json!(expected)]);
    let prompts = env.read("../prompts");
    assert!(
        prompts.starts_with("First.") && prompts.matches("Second.").count() == 2,
        "{prompts}"
    );
    // More iterations than it had take a complete run up again, as often as one likes.
    env.json(0, &["resume", "--iterations", "2"]);
    assert_eq!(env.events("attempt_ended").len(), 3);
    env.json(0, &["resume", "--iterations", "4"]);
    assert_eq!(env.events("attempt_ended").len(), 5);
    assert_eq!(
        env.json(2, &["resume", "--attempts", "2", "--retries", "2"])["error"]["exit_code"],
        2
    );
    assert_eq!(
        env.json(2, &["resume", "--agent", "nobody", "--restart"])["error"]["exit_code"],
        2
    );
}

// A wait is not skipped by it, and what it says to type asks for the same.
#[test]
fn a_cooldown_holds_on_other_terms_too() {
    let env = quick();
    env.write(".ultraplan/recover.toml", "cooldown.duration = \"1h\"\n");
    let check = ["--feedback", "test=echo 'FAILED t.py::a'; false"];
    env.json(
        6,
        &[&["run", "--no-wait"][..], &check, &["--", "true"]].concat(),
    );
    let refused = env.json(6, &["resume", "--timeout", "20s", "--attempts", "9"]);
    let next = refused["next_actions"][0].as_str().expect("a command");
    assert!(next.contains("--timeout 20s --attempts 9"), "{next}");
    assert_eq!(env.events("run_spec_changed").len(), 0);
}

// B2: each type of failure has its own.
#[test]
fn options_differ_by_failure() {
    for (evidence, codes) in [
        (&["--timed-out"][..], &["adjust_timeout"][..]),
        (
            &[
                "--loop",
                "agent",
                "--message",
                "API Error: 529 overloaded_error",
            ],
            &["check_status"],
        ),
        (&["--loop", "test", "--exit-code", "1"], &[]),
        (&["--signal", "SIGKILL"], &[]),
    ] {
        let env = quick();
        env.json(0, &[&["attempt", "fail"][..], evidence].concat());
        let status = env.json(0, &["status"]);
        let all = status["options"].as_array().expect("options");
        let beside: Vec<&str> = all[5..]
            .iter()
            .filter_map(|option| option["strategy"].as_str())
            .collect();
        assert_eq!(beside, [codes, &["start_fresh"]].concat(), "{evidence:?}");
        for option in all {
            let command = option["command"].as_str().expect("a command");
            assert!(command.starts_with("recover "), "{option}");
        }
        let report = env.recover(&["report"]).expect(0).stdout;
        assert!(report.contains("resume --restart"), "{report}");
    }
}
