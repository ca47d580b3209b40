//! `hook run`: what agents and git call (S10, L1–L4, B1).

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::run::supervision::{ended, until};
use crate::seen::back_to;

/// Runs the hook silently, as an agent does.
#[track_caller]
fn call(env: &TestEnv, event: &Value) {
    let ran = env
        .recover_fed(event.to_string(), &["hook", "run", "claude"])
        .expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}

/// Runs it and looks at the document.
#[track_caller]
fn told(env: &TestEnv, event: &Value) -> Value {
    env.recover_fed(event.to_string(), &["--json", "hook", "run", "claude"])
        .expect(0)
        .json()
}

fn event(session: &str, name: &str) -> Value {
    json!({"session_id": session, "transcript_path": "/t.jsonl", "permission_mode": "default", "hook_event_name": name})
}

/// Before a session's agent uses a tool.
fn tool(session: &str, name: &str, input: Value) -> Value {
    let mut event = event(session, "PreToolUse");
    event["tool_name"] = json!(name);
    event["tool_input"] = input;
    event
}

/// Before it edits a file.
pub fn edit(env: &TestEnv, session: &str, path: &str) -> Value {
    tool(
        session,
        "Edit",
        json!({"file_path": env.work().join(path), "old_string": "a", "new_string": "b"}),
    )
}

fn bash(session: &str, command: &str) -> Value {
    tool(session, "Bash", json!({"command": command}))
}

/// Its turn ended by an error.
fn failed(session: &str, error: &str) -> Value {
    let mut event = event(session, "StopFailure");
    event["error"] = json!(error);
    event
}

/// What the checkpoints of a run were taken for.
pub fn triggers(env: &TestEnv, run: &str) -> Vec<String> {
    let list = env.json(0, &["checkpoint", "list", "--run", run]);
    let all = list["checkpoints"].as_array().expect("a list").iter();
    all.map(|checkpoint| checkpoint["trigger"].as_str().expect("a word").to_owned())
        .collect()
}

fn status(env: &TestEnv, run: &str) -> Value {
    env.json(0, &["status", "--run", run])["run"]["status"].take()
}

// S10: before file modifications, risky operations and external calls; the session is the run.
#[test]
fn a_session_has_a_checkpoint_before_whatever_may_destroy_work() {
    let env = TestEnv::repo();
    call(&env, &edit(&env, "s1", "a.txt"));
    env.write("a.txt", "two\n");
    call(&env, &edit(&env, "s1", "a.txt"));
    env.write("new.txt", "new\n");
    call(&env, &bash("s1", "rm -rf ."));
    env.write("new.txt", "newer\n");
    call(
        &env,
        &bash(
            "s1",
            "curl -X POST https://example.com -H 'Authorization: Bearer abcdefghijkl'",
        ),
    );
    env.write("a.txt", "three\n");
    call(&env, &event("s1", "PreCompact"));
    assert_eq!(
        triggers(&env, "claude-s1"),
        ["initial", "before_edit", "risky", "external", "phase"]
    );
    let list = env.json(0, &["checkpoint", "list"]);
    let about = |at: usize| {
        list["checkpoints"][at]["description"]
            .as_str()
            .expect("text")
            .to_owned()
    };
    assert_eq!(
        (about(0).as_str(), about(1).as_str()),
        ("Before Edit a.txt", "Before Edit a.txt")
    );
    assert_eq!(about(2), "Before Bash rm -rf .");
    assert!(
        about(3).contains("curl") && !about(3).contains("abcdefghijkl"),
        "{}",
        about(3)
    );
    // Taken back like any other: to before the rm.
    env.remove("new.txt");
    back_to(&env, "@3");
    assert_eq!(
        (env.read("a.txt").as_str(), env.read("new.txt").as_str()),
        ("two\n", "new\n")
    );
    env.json(0, &["rollback", "--full", "--edits", "discard"]);
    assert_eq!(
        (env.read("a.txt").as_str(), env.exists("new.txt")),
        ("one\n", false)
    );
}

// What only looks, what changed nothing, and a session that did nothing leave nothing behind.
/// What is kept before an agent deletes something cannot be had afterwards.
#[test]
fn a_broken_configuration_stops_no_checkpoint_of_a_hook() {
    let env = TestEnv::repo();
    env.write("a.txt", "one\n");
    env.put(".ultraplan/recover.toml", "bogus = 1\n");
    let ran = env
        .recover_fed(
            bash("s", "rm -rf a.txt").to_string(),
            &["hook", "run", "claude"],
        )
        .expect(0);
    assert!(
        ran.stderr
            .contains("the project's configuration is ignored")
            && ran.stderr.contains("bogus"),
        "{}",
        ran.stderr
    );
    env.remove("a.txt");
    assert_eq!(env.error(2, &["resume"])["code"], "config");
    env.json(0, &["rollback", "--run", "claude-s", "--edits", "discard"]);
    assert_eq!(env.read("a.txt"), "one\n");
}

#[test]
fn nothing_is_kept_of_what_changes_nothing() {
    let env = TestEnv::repo();
    let mut read = event("s", "PreToolUse");
    read["tool_name"] = json!("Read");
    for event in [
        &read,
        &event("s", "Stop"),
        &event("s", "SessionEnd"),
        &event("s", "Notification"),
    ] {
        call(&env, event);
    }
    assert!(!env.exists(".ultraplan"));
    call(&env, &edit(&env, "s", "a.txt"));
    let again = told(&env, &edit(&env, "s", "a.txt"));
    assert_eq!(
        (&again["changed"], &again["checkpoint"]["seq"]),
        (&json!(false), &json!(1)),
        "{again}"
    );
    let mut elsewhere = edit(&env, "s", "a.txt");
    elsewhere["tool_input"]["file_path"] = json!("/etc/hosts");
    env.write("a.txt", "two\n");
    assert_eq!(
        told(&env, &elsewhere)["reason"],
        "the file is not in this work tree"
    );
    assert_eq!(triggers(&env, "claude-s"), ["initial"]);
}

// The label never gets lost: what comes before a risky command has a checkpoint that says so, whatever was captured just
// before, and however often it is run; it outlives the session and the cleanup after it.
#[test]
fn a_risky_checkpoint_keeps_its_label_and_stays() {
    let env = TestEnv::repo();
    let write = tool(
        "s",
        "Write",
        json!({"file_path": env.work().join("new.txt"), "content": "new\n"}),
    );
    // One turn: both are announced before either has changed anything.
    call(&env, &edit(&env, "s", "a.txt"));
    env.write("a.txt", "two\n");
    call(&env, &write);
    let told_of = told(&env, &bash("s", "rm -r kept"));
    assert_eq!(
        (&told_of["changed"], &told_of["checkpoint"]["trigger"]),
        (&json!(true), &json!("risky")),
        "{told_of}"
    );
    let again = told(&env, &bash("s", "rm -r other"));
    assert_eq!(
        (&again["changed"], &again["checkpoint"]["trigger"]),
        (&json!(false), &json!("risky")),
        "{again}"
    );
    call(&env, &write);
    assert_eq!(
        triggers(&env, "claude-s"),
        ["initial", "before_edit", "risky"]
    );
    let list = env.json(0, &["checkpoint", "list", "--run", "claude-s"]);
    assert_eq!(
        list["checkpoints"][1]["tree"], list["checkpoints"][2]["tree"],
        "{list}"
    );
    env.write("a.txt", "three\n");
    call(&env, &event("s", "Stop"));
    call(&env, &event("s", "SessionEnd"));
    // Even where a run is tidied up as soon as it ends well.
    env.write(
        ".ultraplan/recover.toml",
        "[retention]\nafter_end = \"0s\"\non_success_keep_last = 1\n",
    );
    env.json(0, &["checkpoint", "prune"]);
    assert_eq!(
        triggers(&env, "claude-s"),
        ["initial", "before_edit", "risky", "session"]
    );
    // The first command of a session may be the risky one.
    call(&env, &bash("t", "rm -r kept"));
    assert_eq!(triggers(&env, "claude-t"), ["initial", "risky"]);
}

// The label never gets lost: what would be unchanged has the labels of all that it comes before.
#[test]
fn an_unchanged_checkpoint_gets_the_label() {
    let env = TestEnv::repo();
    call(&env, &edit(&env, "s", "a.txt"));
    env.write("a.txt", "two\n");
    call(&env, &edit(&env, "s", "a.txt"));
    call(&env, &bash("s", "git reset --hard"));
    for _ in 0..2 {
        let told = told(&env, &bash("s", "rm -rf build"));
        let label = "Before Bash git reset --hard; Before Bash rm -rf build";
        assert_eq!(
            (&told["changed"], &told["checkpoint"]["description"]),
            (&json!(false), &json!(label)),
            "{told}"
        );
    }
    assert_eq!(env.events("checkpoint_labelled").len(), 1);
    call(&env, &edit(&env, "s", "b.txt"));
    assert_eq!(
        triggers(&env, "claude-s"),
        ["initial", "before_edit", "risky"]
    );
    // However many there are, all of them are somewhere, and none is cut.
    let commands: Vec<String> = (0..9)
        .map(|number| format!("rm -rf build/{number}/{}", "x".repeat(50)))
        .collect();
    for command in &commands {
        call(&env, &bash("s", command));
    }
    let list = env.json(0, &["checkpoint", "list", "--run", "claude-s"]);
    let described: Vec<&str> = list["checkpoints"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["description"].as_str())
        .collect();
    for command in commands
        .iter()
        .map(String::as_str)
        .chain(["rm -rf build;", "Before Edit b.txt"])
    {
        assert!(
            described.iter().any(|text| text.contains(command)),
            "{command}: {described:?}"
        );
    }
    assert!(described.len() < 8, "{described:?}");
}

// S10: with checkpoints turned off a hook captures nothing and says so; what failed is recorded all the same.
#[test]
fn hooks_capture_nothing_when_checkpoints_are_turned_off() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[checkpoint]\nenabled = false\n");
    for moment in [
        edit(&env, "s", "a.txt"),
        bash("s", "rm -rf ."),
        bash("s", "make"),
    ] {
        let told = told(&env, &moment);
        assert_eq!(told["changed"], false, "{told}");
        assert!(
            told["reason"]
                .as_str()
                .expect("why")
                .contains("[checkpoint] enabled = false"),
            "{told}"
        );
    }
    assert!(
        !env.exists(".ultraplan/state"),
        "no run is made for nothing"
    );
    assert_eq!(
        told(&env, &failed("s", "server_error"))["failure"]["type"],
        "agent_error"
    );
    assert_eq!(triggers(&env, "claude-s"), ["attempt"]);
    // Turns that end well go on being known.
    env.write("a.txt", "two\n");
    told(&env, &event("s", "Stop"));
    told(&env, &event("s", "SessionEnd"));
    assert_eq!(triggers(&env, "claude-s"), ["attempt"]);
    assert_eq!(status(&env, "claude-s"), "complete");
}

// Two sessions side by side are two runs; neither ends the other.
#[test]
fn sessions_are_runs_of_their_own() {
    let env = TestEnv::repo();
    call(&env, &edit(&env, "one", "a.txt"));
    env.write("a.txt", "two\n");
    call(&env, &edit(&env, "two", "a.txt"));
    call(&env, &event("one", "SessionEnd"));
    assert_eq!(
        (status(&env, "claude-one"), status(&env, "claude-two")),
        (json!("complete"), json!("in_progress"))
    );
    assert_eq!(triggers(&env, "claude-one"), ["initial", "session"]);
    // The only open one needs no name; a session that is resumed is open again.
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "claude-two");
    env.write("a.txt", "three\n");
    call(&env, &edit(&env, "one", "a.txt"));
    assert_eq!(status(&env, "claude-one"), "in_progress");
}

/// An agent that calls the hook before an edit, twice, and works on until it is dropped. It is no shell to the process
/// table.
struct Agent(Child);

impl Agent {
    fn at_work(env: &TestEnv, session: &str) -> Self {
        env.write(
            &format!("../{session}.json"),
            edit(env, session, "a.txt").to_string(),
        );
        let line = format!(
            "{} hook run claude < ../{session}.json || true",
            env!("CARGO_BIN_EXE_recover")
        );
        env.script(
            "../claude",
            &format!(
                "{line}\necho \"$1\" >> a.txt\n{line}\n: > ../$1.ready\nwhile :; do sleep 0.1; done"
            ),
        );
        let agent = Self(
            env.command("../claude")
                .arg(session)
                .spawn()
                .expect("it starts"),
        );
        until("the agent is at work", || {
            env.exists(&format!("../{session}.ready"))
        });
        agent
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("it ended");
    }
}

// S10: a session whose agent was killed says no goodbye; it is over all the same, and stands in nobody's way.
#[cfg(target_os = "linux")]
#[test]
fn a_session_whose_agent_was_killed_is_over() {
    let env = TestEnv::repo();
    let first = Agent::at_work(&env, "one");
    let second = Agent::at_work(&env, "two");
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "claude-two");
    drop(first);
    let lines = || env.read(".ultraplan/state/events.jsonl").lines().count();
    let before = lines();
    // Who only looks writes nothing, and knows which session is under way.
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "claude-two");
    assert_eq!(
        (status(&env, "claude-one"), status(&env, "claude-two")),
        (json!("complete"), json!("in_progress"))
    );
    assert_eq!(lines(), before);
    let made = env.json(0, &["checkpoint", "create"]);
    assert_eq!(made["checkpoint"]["run_id"], "claude-two");
    let log = env.json(0, &["log", "--run", "claude-one"]);
    let last = log["events"]
        .as_array()
        .expect("events")
        .last()
        .expect("one")
        .clone();
    assert!(last.to_string().contains("its agent is gone"), "{last}");
    drop(second);
    assert_eq!(status(&env, "claude-two"), "complete");
    // It is resumed under the same name.
    env.write("a.txt", "again\n");
    call(&env, &edit(&env, "one", "a.txt"));
    assert_eq!(status(&env, "claude-one"), "in_progress");
}

// One call says nothing of who the agent is: such a session rests once nothing was heard of it for twelve hours.
#[test]
fn a_session_that_nobody_speaks_of_is_paused_after_half_a_day() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    call(&env, &edit(&env, "s", "a.txt"));
    env.set("RECOVER_TEST_NOW", "2026-03-01T23:00:00Z");
    assert_eq!(status(&env, "claude-s"), "in_progress");
    env.set("RECOVER_TEST_NOW", "2026-03-02T01:00:00Z");
    assert_eq!(status(&env, "claude-s"), "paused");
    // It is resumed by its next sign.
    env.write("a.txt", "two\n");
    call(&env, &edit(&env, "s", "a.txt"));
    assert_eq!(status(&env, "claude-s"), "in_progress");
}

// After its turn an agent's edits are known as its own: a rollback does not take them for a person's.
#[test]
fn edits_of_a_turn_are_the_agents() {
    let env = TestEnv::repo();
    call(&env, &edit(&env, "s", "a.txt"));
    env.write("a.txt", "two\n");
    call(&env, &event("s", "Stop"));
    let mut again = event("s", "Stop");
    again["stop_hook_active"] = json!(true);
    call(&env, &again);
    assert_eq!(triggers(&env, "claude-s"), ["initial", "session"]);
    env.json(0, &["rollback", "--to", "initial"]);
    assert_eq!(env.read("a.txt"), "one\n");
}

// S10: every ten operations, every five minutes.
#[test]
fn commands_of_which_nothing_is_known_count_until_one_is_due() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    call(&env, &bash("s", "make"));
    assert_eq!(triggers(&env, "claude-s"), ["initial"]);
    for number in 1..=9 {
        env.write("a.txt", format!("{number}\n"));
        let told = told(&env, &bash("s", "make"));
        assert_eq!(told["reason"], "no checkpoint is due", "{number}");
    }
    call(&env, &bash("s", "make"));
    assert_eq!(triggers(&env, "claude-s"), ["initial", "operation"]);
    env.write("a.txt", "later\n");
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:04:59Z");
    call(&env, &bash("s", "make"));
    assert_eq!(triggers(&env, "claude-s").len(), 2);
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:05:00Z");
    call(&env, &bash("s", "make"));
    assert_eq!(
        triggers(&env, "claude-s"),
        ["initial", "operation", "interval"]
    );
    let log = env.json(0, &["log", "--run", "claude-s"]);
    let events = log["events"].as_array().expect("events");
    assert_eq!(
        events
            .iter()
            .filter(|event| event["type"] == "operation_recorded")
            .count(),
        10,
        "{log}"
    );
}

// L1–L4, B1: a turn that ended by an error is a failed attempt like any other; one that ends well forgives it.
#[test]
fn a_turn_that_fails_is_recorded() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    let mut limit = failed("s", "rate_limit");
    limit["error_details"] = json!("429 Too Many Requests");
    limit["last_assistant_message"] = json!("You've hit your session limit · resets 3:45pm (UTC)");
    let answer = told(&env, &limit);
    assert_eq!(answer["failure"]["cause"], "RATE_LIMITED", "{answer}");
    assert_eq!(answer["failure"]["type"], "agent_error");
    let retry = env.json(0, &["retry-status", "--run", "claude-s"]);
    assert_eq!(retry["can_retry"], false, "{retry}");
    assert!(
        retry["retry_after"]
            .as_str()
            .is_some_and(|at| at.starts_with("2026-03-01T15:4")),
        "{retry}"
    );

    let mut server = failed("s", "server_error");
    server["error_details"] = json!("API Error: 500 Internal server error");
    assert_eq!(told(&env, &server)["failure"]["type"], "agent_error");
    assert_eq!(
        told(&env, &failed("t", "authentication_failed"))["failure"]["cause"],
        "AUTH_FAILED"
    );
    assert_eq!(env.state_json("recovery.json")["isRecovering"], true);
    // L1: a checkpoint that is taken beside it has no say in it.
    env.json(0, &["checkpoint", "create", "--run", "beside"]);
    assert_eq!(env.state_json("recovery.json")["isRecovering"], true);

    call(&env, &event("s", "Stop"));
    let retry = env.json(0, &["retry-status", "--run", "claude-s"]);
    assert_eq!(
        (&retry["can_retry"], &retry["error_count"]),
        (&json!(true), &json!(0)),
        "{retry}"
    );
    // A session that ended by an error stays open.
    call(&env, &event("t", "SessionEnd"));
    assert_eq!(status(&env, "claude-t"), "escalated");
}

// L4, S8: a turn that ends well forgives turns of its session, not what else failed, nor a run that the settings name.
#[test]
fn a_good_turn_forgives_nothing_but_turns() {
    let env = TestEnv::repo();
    let stop = serde_json::to_vec(&event("s", "Stop")).expect("JSON");
    env.recover(&[
        "run",
        "--run",
        "loop",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        "exit 3",
    ]);
    let before = env.json(0, &["retry-status", "--run", "loop"]);
    assert_eq!(before["can_retry"], false, "{before}");
    env.recover_fed(&stop, &["hook", "run", "claude", "--run", "loop"])
        .expect(0);
    let after = env.json(0, &["retry-status", "--run", "loop"]);
    for field in ["can_retry", "error_count"] {
        assert_eq!(after[field], before[field], "{field}: {after}");
    }
    // The same of the session's own run, where a supervised attempt failed in it.
    env.recover(&[
        "run",
        "--run",
        "claude-s",
        "--attempts",
        "1",
        "--",
        "sh",
        "-c",
        "exit 3",
    ]);
    let before = env.json(0, &["retry-status", "--run", "claude-s"]);
    call(&env, &event("s", "Stop"));
    let after = env.json(0, &["retry-status", "--run", "claude-s"]);
    assert_eq!(
        (&after["can_retry"], &after["error_count"]),
        (&before["can_retry"], &before["error_count"])
    );
    assert_eq!(after["can_retry"], false, "{after}");
}

// Below `recover run` the checkpoints are the run's, and the failure is its supervisor's to record.
#[test]
fn below_a_supervised_run_the_run_is_that_one() {
    let env = TestEnv::repo();
    // Even where a run is tidied up as soon as it ends well, what may be the only copy of removed work stays.
    env.write(".ultraplan/recover.toml", "preset = \"state\"\n");
    let risky = bash("inner", "rm -rf x").to_string();
    let failed =
        json!({"hook_event_name": "StopFailure", "session_id": "inner", "error": "server_error"})
            .to_string();
    env.script(
        "agent.sh",
        &format!(
            "echo two > a.txt\necho '{risky}' | {0} hook run claude || exit 9\n\
             echo '{failed}' | {0} hook run claude || exit 9\necho three > a.txt",
            env!("CARGO_BIN_EXE_recover")
        ),
    );
    let done = env.json(0, &["run", "--run", "outer", "--", "./agent.sh"]);
    assert_eq!(
        done["iterations"][0]["attempts"]
            .as_array()
            .expect("attempts")
            .len(),
        1,
        "{done}"
    );
    assert_eq!(triggers(&env, "outer"), ["initial", "risky", "attempt"]);
    let list = env.json(0, &["checkpoint", "list", "--all-runs"]);
    assert!(!list.to_string().contains("claude-inner"), "{list}");
    // What was taken on the way is no end of the iteration before.
    let before = env.json(0, &["checkpoint", "show", "iteration:0", "--run", "outer"]);
    assert_eq!(before["checkpoint"]["trigger"], "initial");
}

// Where several runs fit, the one at work here is meant: a lane of several, a session of several.
#[test]
fn of_several_runs_the_one_at_work_is_meant() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[retention]\non_success_keep_last = \"none\"\n",
    );
    let risky = bash("inner", "rm -rf x").to_string();
    env.script(
        "agent.sh",
        &format!(
            "echo $1 > a.txt\necho '{risky}' | {} hook run claude || exit 9",
            env!("CARGO_BIN_EXE_recover")
        ),
    );
    for lane in ["a", "b"] {
        env.json(
            0,
            &[
                "run",
                "--run",
                "r",
                "--lane",
                lane,
                "--",
                "./agent.sh",
                lane,
            ],
        );
        let list = env.json(0, &["checkpoint", "list", "--run", "r", "--lane", lane]);
        assert_eq!(list["checkpoints"][1]["trigger"], "risky", "{list}");
    }
    call(&env, &edit(&env, "one", "a.txt"));
    call(&env, &edit(&env, "two", "a.txt"));
    env.write("a.txt", "to be pushed\n");
    env.recover_fed(b"", &["hook", "run", "git", "pre-push"])
        .expect(0);
    assert_eq!(triggers(&env, "claude-two"), ["initial", "external"]);
}

// Its own trouble never stops or holds up an agent: the answer is 0, with a line on stderr.
#[test]
fn trouble_is_a_line_on_stderr_and_nothing_else() {
    let env = TestEnv::repo();
    for input in ["", "{", "[]", "{}", "\u{0}", "{\"hook_event_name\": 3}"] {
        let ran = env.recover_fed(input, &["hook", "run", "claude"]).expect(0);
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.lines().count()),
            ("", 1),
            "{input}: {}",
            ran.stderr
        );
    }
    let before = edit(&env, "s", "a.txt").to_string();
    let quiet = |env: &TestEnv, args: &[&str]| {
        let ran = env.recover_fed(&before, args).expect(0);
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.lines().count()),
            ("", 1),
            "{}",
            ran.stderr
        );
        ran.stderr
    };
    env.write(".ultraplan/recover.toml", "nonsense = [");
    assert!(quiet(&env, &["hook", "run", "claude"]).contains("recover.toml"));
    env.remove(".ultraplan/recover.toml");
    // Wrong words are told too, and never with 2.
    let ran = env.recover_fed(&before, &["hook", "run", "claude", "--bogus"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    call(&env, &edit(&env, "s", "a.txt"));
    // Somebody holds the ledger's lock for longer than an agent should wait.
    env.write("a.txt", "two\n");
    let lock = env
        .sh("ls .ultraplan/state/recover/*.lock .ultraplan/state/*.lock 2>/dev/null")
        .stdout;
    let lock = lock.lines().next().expect("a lock file").to_owned();
    let held = std::fs::File::open(env.work().join(&lock)).expect("the lock file");
    held.lock().expect("locked");
    assert!(
        quiet(&env, &["hook", "run", "claude", "--lock-timeout", "100ms"]).contains("lock"),
        "{lock}"
    );
    drop(held);
    call(&env, &edit(&env, "s", "a.txt"));
    // An agent that never closes the pipe.
    let mut child = env
        .recover_command(&["hook", "run", "claude", "--deadline", "200ms"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("recover starts");
    let pipe = child.stdin.take();
    let ran = ended(child).expect(0);
    assert!(ran.stderr.contains("longer than 200ms"), "{}", ran.stderr);
    drop(pipe);
    // No place for a run, and no reason to make one.
    let plain = TestEnv::plain();
    let ran = plain
        .recover_fed(&before, &["hook", "run", "claude"])
        .expect(0);
    assert!(
        ran.stderr.contains("no git repository") && !plain.exists(".ultraplan"),
        "{}",
        ran.stderr
    );
}

// A folder without git that has been used before, and an agent that went elsewhere for a moment.
#[test]
fn the_work_tree_is_the_projects() {
    let mut env = TestEnv::plain();
    env.write("a.txt", "one\n");
    env.json(0, &["checkpoint", "create", "--run", "first"]);
    let mut away = edit(&env, "s", "a.txt");
    away["cwd"] = json!("/");
    call(&env, &away);
    assert_eq!(triggers(&env, "claude-s"), ["initial"]);
    let project = env.work().to_string_lossy().into_owned();
    env.set("CLAUDE_PROJECT_DIR", &project);
    env.write("a.txt", "two\n");
    let ran = env.sh(&format!(
        "cd / && echo '{}' | {} hook run claude",
        away,
        env!("CARGO_BIN_EXE_recover")
    ));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(triggers(&env, "claude-s"), ["initial", "before_edit"]);
}

// A session that is still open after a restore remembers files that are not there any more: its next call hears of it, once.
#[test]
fn an_open_session_hears_what_went_back() {
    let env = TestEnv::repo();
    call(&env, &edit(&env, "s", "a.txt"));
    env.write("a.txt", "the agent's\n");
    env.write("new.txt", "the agent's too\n");
    call(&env, &event("s", "Stop"));
    env.json(
        0,
        &["rollback", "--run", "claude-s", "--to", "initial", "--yes"],
    );

    let heard = |event: &Value| {
        let ran = env
            .recover_fed(event.to_string(), &["hook", "run", "claude"])
            .expect(0);
        let document: Value = serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", ran.stdout));
        let output = &document["hookSpecificOutput"];
        let text = |name: &str| output[name].as_str().expect(name).to_owned();
        (text("hookEventName"), text("additionalContext"))
    };
    let (name, text) = heard(&edit(&env, "s", "a.txt"));
    assert_eq!(name, "PreToolUse");
    for part in [
        "restored by a person",
        "files written: 1, deleted: 1 (a.txt, new.txt)",
        "read the files again",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    call(&env, &edit(&env, "s", "a.txt"));
    call(&env, &event("s", "UserPromptSubmit"));

    env.json(0, &["undo"]);
    let (name, text) = heard(&event("s", "UserPromptSubmit"));
    assert_eq!(name, "UserPromptSubmit");
    assert!(text.contains("files written: 2, deleted: 0"), "{text}");
    call(&env, &event("s", "UserPromptSubmit"));
    // A session that did nothing here hears nothing.
    call(&env, &event("other", "UserPromptSubmit"));
}
