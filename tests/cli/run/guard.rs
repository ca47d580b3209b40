//! The guard inside an attempt: what stalls, repeats itself, spends the budget or fills the disk is ended.

use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::supervision::ended;

fn configured(more: &str) -> TestEnv {
    let env = TestEnv::repo();
    let quick = "[cooldown]\nduration = '1ms'\n[retry]\nbase_delay = '1ms'\nmax_delay = '1ms'\n";
    env.write(".ultraplan/recover.toml", format!("{quick}{more}"));
    env
}

/// The failures of the first iteration's attempts.
fn failures(document: &Value) -> Vec<&Value> {
    let attempts = document["iterations"][0]["attempts"].as_array();
    let attempts = attempts.expect("attempts").iter();
    attempts.map(|attempt| &attempt["failure"]).collect()
}

/// A stand-in for Claude Code whose records are these lines, and that would work on for a minute.
fn claude(env: &TestEnv, lines: &[Value], then: &str) {
    let lines = lines
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("\n")
        + "\n";
    env.put("../records", lines);
    env.script(
        "claude",
        &format!("cat > /dev/null; echo \"$RECOVER_AGENT_SESSION\" >> ../sessions; echo \"$@\" >> ../args; cat ../records; {then}"),
    );
}

fn call(id: &str) -> Value {
    json!({"type": "assistant", "session_id": "s-1", "message": {"content": [
        {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "npm test"}}]}})
}

fn result(id: &str, said: &str) -> Value {
    json!({"type": "user", "session_id": "s-1", "message": {"content": [
        {"type": "tool_result", "tool_use_id": id, "content": said}]}})
}

fn init() -> Value {
    json!({"type": "system", "subtype": "init", "session_id": "s-1"})
}

const DONE: &str =
    r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","result":"done"}"#;

/// What stalls is ended: for free the first time, and in its session; then it counts.
#[test]
fn an_attempt_that_stalls_is_ended_and_tried_once_more_for_free() {
    let env = configured("");
    claude(&env, &[init()], "echo work > made; sleep 60");
    let begun = Instant::now();
    let args = [
        "run",
        "--idle",
        "500ms",
        "--attempts",
        "1",
        "--",
        "./claude",
        "-p",
    ];
    let document = env.json(7, &args);
    assert!(begun.elapsed() < Duration::from_secs(40), "it was ended");
    let failures = failures(&document);
    assert_eq!(failures.len(), 2, "{document:#}");
    for failure in &failures {
        assert_eq!(
            (&failure["type"], &failure["cause"]),
            (&json!("timeout"), &json!("TOOL_TIMEOUT"))
        );
        assert!(
            failure["conditions"]
                .as_array()
                .expect("works")
                .contains(&json!("stalled"))
        );
    }
    let message = "Stalled for 500ms: no output, no processor time, no changed file";
    assert_eq!(failures[0]["message"], message);
    assert!(
        env.sh(
            "git show $(git for-each-ref --format='%(refname)' 'refs/recover/**' | tail -n 1):made"
        )
        .stdout
        .contains("work")
    );
    assert_eq!(env.sh("cat ../sessions").stdout, "\ns-1\n");
    let events = env.read_state("events.jsonl");
    assert!(events.contains("it stalled for the first time"), "{events}");
}

/// Whatever shows that something happens is enough; `0` switches it off, and only an agent is meant where nothing is said.
#[test]
fn what_works_in_silence_does_not_stall() {
    let busy = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    for (idle, command) in [
        ("400ms", busy),
        (
            "400ms",
            "for i in 1 2 3 4 5 6 7 8; do sleep 0.2; echo $i >&2; done",
        ),
        ("0", "sleep 1.5"),
    ] {
        let env = configured("");
        env.json(0, &["run", "--idle", idle, "--", "sh", "-c", command]);
    }
    // A tool that is at work; without its record the same is ended.
    let env = configured("[run]\nidle = '400ms'\n");
    claude(
        &env,
        &[init(), call("t-1")],
        &format!("sleep 1.5; echo '{DONE}'"),
    );
    env.json(0, &["run", "--", "./claude", "-p"]);
    env.put(
        "../records",
        format!("{}\n{}\n{}\n", init(), call("t-1"), result("t-1", "ok")),
    );
    env.json(7, &["run", "--attempts", "1", "--", "./claude", "-p"]);
    // A process elsewhere works for it.
    let env = configured("");
    let run = env.start(&["run", "--idle", "600ms", "--", "sleep", "2"]);
    for number in 0..24 {
        env.write("built/by-a-server", number.to_string());
        sleep(Duration::from_millis(100));
    }
    ended(run).expect(0);
}

#[test]
fn the_same_tool_call_again_and_again_is_given_up() {
    let env = configured("");
    let calls = |most: u32, said: &dyn Fn(u32) -> String| {
        let of = |number: u32| {
            let id = format!("t-{number}");
            [call(&id), result(&id, &said(number))]
        };
        std::iter::once(init())
            .chain((0..most).flat_map(of))
            .collect::<Vec<_>>()
    };
    claude(&env, &calls(12, &|_| "1 failed".to_owned()), "sleep 60");
    let document = env.json(8, &["run", "--", "./claude", "-p"]);
    let failure = failures(&document)[0];
    let message = "The same tool call 12 times in a row, with the same result: Bash: npm test";
    assert_eq!(failure["message"], message, "{document:#}");
    let conditions = failure["conditions"].as_array().expect("works");
    for condition in ["stalled", "circular_fix"] {
        assert!(conditions.contains(&json!(condition)), "{failure}");
    }
    // Other results, fewer calls, or nobody who minds.
    let others = calls(30, &|number| format!("{number} failed"));
    claude(&env, &others, &format!("echo '{DONE}'"));
    env.json(0, &["run", "--", "./claude", "-p"]);
    claude(
        &env,
        &calls(11, &|_| "1 failed".to_owned()),
        &format!("sleep 1; echo '{DONE}'"),
    );
    env.json(0, &["run", "--", "./claude", "-p"]);
    env.json(0, &["run", "--max-repeats", "0", "--", "./claude", "-p"]);
    claude(&env, &calls(11, &|_| "1 failed".to_owned()), "sleep 60");
    env.json(8, &["run", "--max-repeats", "5", "--", "./claude", "-p"]);
}

/// A bound on tokens or cost holds within an attempt, whatever of the output is held in memory.
#[test]
fn a_budget_ends_the_attempt_that_spends_it() {
    let answer = |id: u32| {
        json!({"type": "assistant", "session_id": "s-1", "message": {"id": format!("m-{id}"), "model": "claude-sonnet-5",
            "usage": {"input_tokens": 1000, "output_tokens": 100}, "content": [{"type": "text", "text": "x".repeat(200_000)}]}})
    };
    let lines: Vec<_> = std::iter::once(init()).chain((0..9).map(answer)).collect();
    for (bound, text) in [
        ("max_tokens = 9900", "9900 of 9900 tokens used (max_tokens)"),
        (
            "max_cost_usd = 0.04",
            "4 of 4 cents are spent (max_cost_usd)",
        ),
    ] {
        let env = configured(bound);
        claude(&env, &lines, "sleep 60");
        let begun = Instant::now();
        let document = env.json(7, &["run", "--run", "r", "--", "./claude", "-p"]);
        assert!(begun.elapsed() < Duration::from_secs(40), "it was ended");
        let failure = failures(&document)[0];
        let message = format!("Ended in the middle of its work: {text}");
        assert_eq!(failure["message"], message, "{document:#}");
        assert_eq!(document["run"]["tokens"]["total"], 9900);
        assert!(
            env.json(0, &["checkpoint", "list"])["checkpoints"]
                .as_array()
                .expect("works")
                .len()
                >= 2
        );
        assert!(
            document["decision"]["reason"]
                .as_str()
                .expect("works")
                .contains(text),
            "{document:#}"
        );
    }
    let env = configured("max_tokens = 9901");
    claude(&env, &lines, &format!("echo '{DONE}'"));
    env.json(0, &["run", "--", "./claude", "-p"]);
}

/// An agent whose profile knows a limit of its own is given what is left.
#[test]
fn the_agent_gets_what_is_left_of_the_budget() {
    let mut env = configured("max_cost_usd = 2.5\n");
    let paid = r#"{"type":"result","subtype":"success","is_error":false,"session_id":"s-1","total_cost_usd":0.75,"result":"done"}"#;
    claude(&env, &[init()], &format!("echo '{paid}'"));
    let path = std::env::var("PATH").expect("works");
    let path = format!("{}:{path}", env.work().display());
    env.set("PATH", &path);
    let args = [
        "run",
        "--agent",
        "claude",
        "--prompt",
        "Fix it.",
        "--iterations",
        "2",
    ];
    env.json(0, &args);
    let given = env.sh("cat ../args").stdout;
    let given: Vec<&str> = given.lines().collect();
    assert!(given[0].ends_with("--max-budget-usd 2.50"), "{given:?}");
    assert!(given[1].ends_with("--max-budget-usd 1.75"), "{given:?}");
}

/// Nothing begins where the disk is nearly full, and what fills it is ended before it is.
#[test]
fn a_disk_is_not_filled() {
    let env = configured("[run]\nmin_free = '9000000GiB'\n");
    let error = env.error(14, &["run", "--", "true"]);
    assert!(
        error["message"]
            .as_str()
            .expect("works")
            .contains("run.min_free"),
        "{error}"
    );
    let free = env.sh("df --output=avail -B1 . | tail -n 1").stdout;
    let free: u64 = free.trim().parse().expect("works");
    let least = free.saturating_sub(1 << 30);
    env.write(
        ".ultraplan/recover.toml",
        format!("[run]\nmin_free = {least}\n"),
    );
    let filling = "fallocate -l 2G ../big || exit 0; sleep 60; rm ../big";
    let document = env.json(8, &["run", "--run", "f", "--", "sh", "-c", filling]);
    assert_eq!(
        env.json(0, &["runs", "--all"])["runs"]
            .as_array()
            .expect("works")
            .len(),
        1
    );
    let failure = failures(&document)[0];
    assert_eq!(failure["cause"], "DISK_FULL", "{document:#}");
    assert!(
        failure["message"]
            .as_str()
            .expect("works")
            .starts_with("Ended before the disk was full: ")
    );
    env.sh("rm -f ../big");
}
