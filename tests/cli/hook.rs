//! `hook …`: what agents and git call, and the settings that make them (S10, L1–L4, B1).

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv};

/// Runs `hook run AGENT` with this on stdin.
fn call_raw(env: &TestEnv, args: &[&str], input: &[u8]) -> Ran {
    let mut child = env
        .recover_command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("recover starts");
    // It may have ended without reading.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    Ran::of(&child.wait_with_output().expect("it ends"))
}

/// Runs it silently, as an agent does.
#[track_caller]
fn call(env: &TestEnv, event: &Value) {
    let ran = call_raw(env, &["hook", "run", "claude"], event.to_string().as_bytes()).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}

/// Runs it and looks at the document.
#[track_caller]
fn told(env: &TestEnv, event: &Value) -> Value {
    call_raw(env, &["--json", "hook", "run", "claude"], event.to_string().as_bytes()).expect(0).json()
}

fn event(session: &str, name: &str) -> Value {
    json!({"session_id": session, "transcript_path": "/t.jsonl", "permission_mode": "default", "hook_event_name": name})
}

fn edit(env: &TestEnv, session: &str, path: &str) -> Value {
    let mut event = event(session, "PreToolUse");
    event["tool_name"] = json!("Edit");
    event["tool_input"] = json!({"file_path": env.work().join(path), "old_string": "a", "new_string": "b"});
    event
}

fn bash(session: &str, command: &str) -> Value {
    let mut event = event(session, "PreToolUse");
    event["tool_name"] = json!("Bash");
    event["tool_input"] = json!({"command": command});
    event
}

fn triggers(env: &TestEnv, run: &str) -> Vec<String> {
    let list = env.json(0, &["checkpoint", "list", "--run", run]);
    let all = list["checkpoints"].as_array().expect("a list").iter();
    all.map(|checkpoint| checkpoint["trigger"].as_str().expect("a word").to_owned()).collect()
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
    call(&env, &bash("s1", "curl -X POST https://example.com -H 'Authorization: Bearer abcdefghijkl'"));
    env.write("a.txt", "three\n");
    call(&env, &event("s1", "PreCompact"));
    assert_eq!(triggers(&env, "claude-s1"), ["initial", "before_edit", "risky", "external", "phase"]);
    let list = env.json(0, &["checkpoint", "list"]);
    let about = |at: usize| list["checkpoints"][at]["description"].as_str().expect("text").to_owned();
    assert_eq!((about(0).as_str(), about(1).as_str()), ("Before Edit a.txt", "Before Edit a.txt"));
    assert_eq!(about(2), "Before Bash rm -rf .");
    assert!(about(3).contains("curl") && !about(3).contains("abcdefghijkl"), "{}", about(3));
    // Taken back like any other: to before the rm.
    std::fs::remove_file(env.work().join("new.txt")).expect("removed");
    env.json(0, &["rollback", "--to", "@3", "--edits", "discard"]);
    assert_eq!((env.read("a.txt").as_str(), env.read("new.txt").as_str()), ("two\n", "new\n"));
    env.json(0, &["rollback", "--full", "--edits", "discard"]);
    assert_eq!((env.read("a.txt").as_str(), env.exists("new.txt")), ("one\n", false));
}

// What only looks, what changed nothing, and a session that did nothing leave nothing behind.
#[test]
fn nothing_is_kept_of_what_changes_nothing() {
    let env = TestEnv::repo();
    let mut read = event("s", "PreToolUse");
    read["tool_name"] = json!("Read");
    for event in [&read, &event("s", "Stop"), &event("s", "SessionEnd"), &event("s", "Notification")] {
        call(&env, event);
    }
    assert!(!env.exists(".ultraplan"));
    call(&env, &edit(&env, "s", "a.txt"));
    let again = told(&env, &edit(&env, "s", "a.txt"));
    assert_eq!((&again["changed"], &again["checkpoint"]["seq"]), (&json!(false), &json!(1)), "{again}");
    let mut elsewhere = edit(&env, "s", "a.txt");
    elsewhere["tool_input"]["file_path"] = json!("/etc/hosts");
    env.write("a.txt", "two\n");
    assert_eq!(told(&env, &elsewhere)["reason"], "the file is not in this work tree");
    assert_eq!(triggers(&env, "claude-s"), ["initial"]);
}

// S10: with checkpoints turned off a hook captures nothing and says so; what failed is recorded all the same.
#[test]
fn hooks_capture_nothing_when_checkpoints_are_turned_off() {
    let env = TestEnv::repo();
    env.write(".ultraplan/recover.toml", "[checkpoint]\nenabled = false\n");
    for moment in [edit(&env, "s", "a.txt"), bash("s", "rm -rf ."), bash("s", "make")] {
        let told = told(&env, &moment);
        assert_eq!(told["changed"], false, "{told}");
        assert!(told["reason"].as_str().expect("why").contains("[checkpoint] enabled = false"), "{told}");
    }
    assert!(!env.exists(".ultraplan/state"), "no run is made for nothing");
    let mut failed = event("s", "StopFailure");
    failed["error"] = json!("server_error");
    assert_eq!(told(&env, &failed)["failure"]["type"], "agent_error");
    assert_eq!(triggers(&env, "claude-s"), ["attempt"]);
    // Turns that end well go on being known.
    env.write("a.txt", "two\n");
    told(&env, &event("s", "Stop"));
    told(&env, &event("s", "SessionEnd"));
    assert_eq!(triggers(&env, "claude-s"), ["attempt"]);
    assert_eq!(env.json(0, &["status", "--run", "claude-s"])["run"]["status"], "complete");
}

// Two sessions side by side are two runs; neither ends the other.
#[test]
fn sessions_are_runs_of_their_own() {
    let env = TestEnv::repo();
    call(&env, &edit(&env, "one", "a.txt"));
    env.write("a.txt", "two\n");
    call(&env, &edit(&env, "two", "a.txt"));
    call(&env, &event("one", "SessionEnd"));
    let status = |run: &str| env.json(0, &["status", "--run", run])["run"]["status"].clone();
    assert_eq!((status("claude-one"), status("claude-two")), (json!("complete"), json!("in_progress")));
    assert_eq!(triggers(&env, "claude-one"), ["initial", "session"]);
    // The only open one needs no name; a session that is taken up again is open again.
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "claude-two");
    env.write("a.txt", "three\n");
    call(&env, &edit(&env, "one", "a.txt"));
    assert_eq!(status("claude-one"), "in_progress");
}

/// An agent that calls the hook before an edit, twice, and works on until it is ended. It is no shell to the process table.
fn working_agent(env: &TestEnv, session: &str) -> std::process::Child {
    env.write(&format!("../{session}.json"), edit(env, session, "a.txt").to_string());
    let line = format!("{} hook run claude < ../{session}.json || true", env!("CARGO_BIN_EXE_recover"));
    env.script(
        "../claude",
        &format!("{line}\necho \"$1\" >> a.txt\n{line}\n: > ../$1.ready\nwhile :; do sleep 0.1; done"),
    );
    let mut agent = env.command("../claude").arg(session).spawn().expect("it starts");
    let ready = format!("../{session}.ready");
    let mut tries = 600;
    while tries > 0 && !env.exists(&ready) {
        std::thread::sleep(std::time::Duration::from_millis(100));
        tries -= 1;
    }
    if tries == 0 {
        agent.kill().expect("killed");
        agent.wait().expect("it ended");
        panic!("the agent is not at work");
    }
    agent
}

// S10: a session whose agent was killed says no goodbye; it is over all the same, and stands in nobody's way.
#[cfg(target_os = "linux")]
#[test]
fn a_session_whose_agent_was_killed_is_over() {
    let env = TestEnv::repo();
    let mut first = working_agent(&env, "one");
    let mut second = working_agent(&env, "two");
    env.recover(&["status"]).expect(4);
    first.kill().expect("killed");
    first.wait().expect("it ended");
    let status = |run: &str| env.json(0, &["status", "--run", run])["run"]["status"].clone();
    let lines = || env.read(".ultraplan/state/events.jsonl").lines().count();
    let before = lines();
    // Who only looks writes nothing, and knows which session is under way.
    assert_eq!(env.json(0, &["status"])["run"]["run_id"], "claude-two");
    assert_eq!((status("claude-one"), status("claude-two")), (json!("complete"), json!("in_progress")));
    assert_eq!(lines(), before);
    let made = env.json(0, &["checkpoint", "create"]);
    assert_eq!(made["checkpoint"]["run_id"], "claude-two");
    let log = env.json(0, &["log", "--run", "claude-one"]);
    let last = log["events"].as_array().expect("events").last().expect("one").clone();
    assert!(last.to_string().contains("its agent is gone"), "{last}");
    second.kill().expect("killed");
    second.wait().expect("it ended");
    assert_eq!(status("claude-two"), "complete");
    // It is taken up again under the same name.
    env.write("a.txt", "again\n");
    call(&env, &edit(&env, "one", "a.txt"));
    assert_eq!(status("claude-one"), "in_progress");
}

// One call says nothing of who the agent is: such a session is over by its age.
#[test]
fn a_session_that_nobody_speaks_of_is_over_after_a_day() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    call(&env, &edit(&env, "s", "a.txt"));
    env.set("RECOVER_TEST_NOW", "2026-03-02T11:00:00Z");
    assert_eq!(env.json(0, &["status", "--run", "claude-s"])["run"]["status"], "in_progress");
    env.set("RECOVER_TEST_NOW", "2026-03-02T13:00:00Z");
    assert_eq!(env.json(0, &["status", "--run", "claude-s"])["run"]["status"], "complete");
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
    assert_eq!(triggers(&env, "claude-s"), ["initial", "operation", "interval"]);
    let log = env.json(0, &["log", "--run", "claude-s"]);
    let events = log["events"].as_array().expect("events");
    assert_eq!(events.iter().filter(|event| event["type"] == "operation_recorded").count(), 10, "{log}");
}

// L1–L4, B1: a turn that ended by an error is a failed attempt like any other; one that ends well forgives it.
#[test]
fn a_turn_that_fails_is_recorded() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_NOW", "2026-03-01T12:00:00Z");
    let mut failed = event("s", "StopFailure");
    failed["error"] = json!("rate_limit");
    failed["error_details"] = json!("429 Too Many Requests");
    failed["last_assistant_message"] = json!("You've hit your session limit · resets 3:45pm (UTC)");
    let answer = told(&env, &failed);
    assert_eq!(answer["failure"]["cause"], "RATE_LIMITED", "{answer}");
    assert_eq!(answer["failure"]["type"], "agent_error");
    let retry = env.json(0, &["retry-status", "--run", "claude-s"]);
    assert_eq!(retry["can_retry"], false, "{retry}");
    assert!(retry["retry_after"].as_str().is_some_and(|at| at.starts_with("2026-03-01T15:4")), "{retry}");

    let mut server = event("s", "StopFailure");
    server["error"] = json!("server_error");
    server["error_details"] = json!("API Error: 500 Internal server error");
    assert_eq!(told(&env, &server)["failure"]["type"], "agent_error");
    let mut login = event("t", "StopFailure");
    login["error"] = json!("authentication_failed");
    assert_eq!(told(&env, &login)["failure"]["cause"], "AUTH_FAILED");
    assert_eq!(env.state_json("recovery.json")["isRecovering"], true);

    call(&env, &event("s", "Stop"));
    let retry = env.json(0, &["retry-status", "--run", "claude-s"]);
    assert_eq!((&retry["can_retry"], &retry["error_count"]), (&json!(true), &json!(0)), "{retry}");
    // A session that ended by an error stays open.
    call(&env, &event("t", "SessionEnd"));
    assert_eq!(env.json(0, &["status", "--run", "claude-t"])["run"]["status"], "escalated");
}

// L4, S8: a turn that ends well forgives turns of its session, not what else failed, nor a run that the settings name.
#[test]
fn a_good_turn_forgives_nothing_but_turns() {
    let env = TestEnv::repo();
    let stop = serde_json::to_vec(&event("s", "Stop")).expect("JSON");
    env.recover(&["run", "--run", "loop", "--attempts", "1", "--", "sh", "-c", "exit 3"]);
    let before = env.json(0, &["retry-status", "--run", "loop"]);
    assert_eq!(before["can_retry"], false, "{before}");
    call_raw(&env, &["hook", "run", "claude", "--run", "loop"], &stop).expect(0);
    let after = env.json(0, &["retry-status", "--run", "loop"]);
    for field in ["can_retry", "error_count"] {
        assert_eq!(after[field], before[field], "{field}: {after}");
    }
    // The same of the session's own run, where a supervised attempt failed in it.
    env.recover(&["run", "--run", "claude-s", "--attempts", "1", "--", "sh", "-c", "exit 3"]);
    let before = env.json(0, &["retry-status", "--run", "claude-s"]);
    call(&env, &event("s", "Stop"));
    let after = env.json(0, &["retry-status", "--run", "claude-s"]);
    assert_eq!((&after["can_retry"], &after["error_count"]), (&before["can_retry"], &before["error_count"]));
    assert_eq!(after["can_retry"], false, "{after}");
}

// Below `recover run` the checkpoints are the run's, and the failure is its supervisor's to record.
#[test]
fn below_a_supervised_run_the_run_is_that_one() {
    let env = TestEnv::repo();
    // A run that ended well keeps its results only.
    env.write(".ultraplan/recover.toml", "[retention]\non_success_keep_last = \"none\"\n");
    let risky = bash("inner", "rm -rf x").to_string();
    let failed = json!({"hook_event_name": "StopFailure", "session_id": "inner", "error": "server_error"}).to_string();
    env.script(
        "agent.sh",
        &format!(
            "echo two > a.txt\necho '{risky}' | {0} hook run claude || exit 9\n\
             echo '{failed}' | {0} hook run claude || exit 9\necho three > a.txt",
            env!("CARGO_BIN_EXE_recover")
        ),
    );
    let done = env.json(0, &["run", "--run", "outer", "--", "./agent.sh"]);
    assert_eq!(done["iterations"][0]["attempts"].as_array().expect("attempts").len(), 1, "{done}");
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
    env.write(".ultraplan/recover.toml", "[retention]\non_success_keep_last = \"none\"\n");
    let risky = bash("inner", "rm -rf x").to_string();
    env.script(
        "agent.sh",
        &format!("echo $1 > a.txt\necho '{risky}' | {} hook run claude || exit 9", env!("CARGO_BIN_EXE_recover")),
    );
    for lane in ["a", "b"] {
        env.json(0, &["run", "--run", "r", "--lane", lane, "--", "./agent.sh", lane]);
        let list = env.json(0, &["checkpoint", "list", "--run", "r", "--lane", lane]);
        assert_eq!(list["checkpoints"][1]["trigger"], "risky", "{list}");
    }
    call(&env, &edit(&env, "one", "a.txt"));
    call(&env, &edit(&env, "two", "a.txt"));
    env.write("a.txt", "to be pushed\n");
    call_raw(&env, &["hook", "run", "git", "pre-push"], b"").expect(0);
    assert_eq!(triggers(&env, "claude-two"), ["initial", "external"]);
}

// Its own trouble never stops or holds up an agent: the answer is 0, with a line on stderr.
#[test]
fn trouble_is_a_line_on_stderr_and_nothing_else() {
    let env = TestEnv::repo();
    for input in ["", "{", "[]", "{}", "\u{0}", "{\"hook_event_name\": 3}"] {
        let ran = call_raw(&env, &["hook", "run", "claude"], input.as_bytes()).expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1), "{input}: {}", ran.stderr);
    }
    let before = edit(&env, "s", "a.txt").to_string();
    let quiet = |env: &TestEnv, args: &[&str]| {
        let ran = call_raw(env, args, before.as_bytes()).expect(0);
        assert_eq!((ran.stdout.as_str(), ran.stderr.lines().count()), ("", 1), "{}", ran.stderr);
        ran.stderr
    };
    env.write(".ultraplan/recover.toml", "nonsense = [");
    assert!(quiet(&env, &["hook", "run", "claude"]).contains("recover.toml"));
    std::fs::remove_file(env.work().join(".ultraplan/recover.toml")).expect("removed");
    // Wrong words are told too, and never with 2.
    let ran = call_raw(&env, &["hook", "run", "claude", "--bogus"], before.as_bytes());
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    call(&env, &edit(&env, "s", "a.txt"));
    // Somebody holds the ledger's lock for longer than an agent should wait.
    env.write("a.txt", "two\n");
    let lock = env.sh("ls .ultraplan/state/recover/*.lock .ultraplan/state/*.lock 2>/dev/null").stdout;
    let lock = lock.lines().next().expect("a lock file").to_owned();
    let held = std::fs::File::open(env.work().join(&lock)).expect("the lock file");
    held.lock().expect("locked");
    assert!(quiet(&env, &["hook", "run", "claude", "--lock-timeout", "100ms"]).contains("lock"), "{lock}");
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
    let ran = Ran::of(&child.wait_with_output().expect("it ends")).expect(0);
    assert!(ran.stderr.contains("longer than 200ms"), "{}", ran.stderr);
    drop(pipe);
    // No place for a run, and no reason to make one.
    let plain = TestEnv::plain();
    let ran = call_raw(&plain, &["hook", "run", "claude"], before.as_bytes()).expect(0);
    assert!(ran.stderr.contains("no git repository") && !plain.exists(".ultraplan"), "{}", ran.stderr);
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
    let ran = env.sh(&format!("cd / && echo '{}' | {} hook run claude", away, env!("CARGO_BIN_EXE_recover")));
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(triggers(&env, "claude-s"), ["initial", "before_edit"]);
}

// Settings that are there keep everything else, twice is once, and out again is as before.
#[test]
fn settings_are_merged_and_taken_out_again() {
    for (agent, file) in
        [("claude", ".claude/settings.json"), ("codex", ".codex/hooks.json"), ("gemini", ".gemini/settings.json")]
    {
        let env = TestEnv::repo();
        let theirs = "{\n    \"z\": 1.5,\n    \"hooks\": {\n        \"Notification\": [\n            {\n                \
                      \"hooks\": [\n                    {\n                        \"type\": \"command\",\n                        \
                      \"command\": \"true\"\n                    }\n                ]\n            }\n        ]\n    },\n    \
                      \"a\": [\n        1\n    ]\n}";
        env.write(file, theirs);
        let planned = env.json(0, &["--dry-run", "hook", "install", agent]);
        assert_eq!((&planned["changed"], &planned["plan"]["files"][0]["change"]), (&json!(false), &json!("modified")));
        assert_eq!(env.read(file), theirs);
        let done = env.json(0, &["hook", "install", agent, "--program", "recover"]);
        assert_eq!(done["changed"], true, "{done}");
        let installed = env.read(file);
        let value: Value = serde_json::from_str(&installed).expect("JSON");
        assert_eq!((&value["z"], &value["a"]), (&json!(1.5), &json!([1])));
        assert!(installed.contains(&format!("recover hook run {agent} || true")), "{installed}");
        assert!(installed.starts_with("{\n    \"z\": 1.5,\n    \"hooks\": {\n        \"Notification\""), "{installed}");
        let again = env.json(0, &["hook", "install", agent, "--program", "recover"]);
        assert_eq!((&again["changed"], &again["files"][0]["change"]), (&json!(false), &json!("unchanged")));
        env.json(0, &["hook", "uninstall", agent]);
        assert_eq!(env.read(file), theirs, "{agent}");
        assert_eq!(env.json(0, &["hook", "uninstall"])["changed"], false);
    }
}

#[test]
fn a_settings_file_that_cannot_be_read_is_left_alone() {
    let env = TestEnv::repo();
    for broken in ["{ // a comment\n}", "[]", "{\"hooks\": 3}", "{\"hooks\": {\"Stop\": {}}}", "\u{feff}{}"] {
        env.write(".claude/settings.json", broken);
        let refused = env.json(2, &["hook", "install", "claude"]);
        assert_eq!(refused["error"]["code"], "config", "{broken}");
        assert_eq!(env.read(".claude/settings.json"), broken);
    }
    env.write(".claude/settings.json", b"\xff\xfe".as_slice());
    env.json(2, &["hook", "install", "claude"]);
    env.write(".opencode/plugins/recover.js", "// mine\n");
    assert_eq!(env.json(13, &["hook", "install", "opencode"])["error"]["code"], "already_exists");
    env.json(0, &["hook", "uninstall", "opencode"]);
    assert_eq!(env.read(".opencode/plugins/recover.js"), "// mine\n");
    env.json(2, &["hook", "install", "codex", "--local"]);
    assert_eq!(env.recover(&["hook", "install", "aider"]).code, 2);
}

// Nothing else in a settings file changes: what would be written as another number is refused, with the way on.
#[test]
fn what_cannot_be_written_as_it_is_stays() {
    let env = TestEnv::repo();
    let odd = ["{\"a\": 12345678901234567890123}", "{\"a\": 31.2452701914394381}", "{\"a\": 1, \"a\": 2}"];
    for odd in odd {
        env.write(".claude/settings.json", odd);
        let refused = env.json(2, &["hook", "install", "claude"]);
        assert!(refused["error"]["hint"].as_str().is_some_and(|hint| hint.contains("hook print claude")), "{refused}");
        assert_eq!(env.read(".claude/settings.json"), odd);
        assert_eq!(env.json(0, &["hook", "uninstall", "claude"])["changed"], false, "{odd}");
    }
    let other = "{\n  \"hooks\": {\n    \"enabled\": true\n  },\n  \"a\": 0.5\n}\n";
    env.write(".gemini/settings.json", other);
    env.json(0, &["hook", "install", "gemini"]);
    assert!(env.read(".gemini/settings.json").contains("\"enabled\": true"));
    env.json(0, &["hook", "uninstall", "gemini"]);
    assert_eq!(env.read(".gemini/settings.json"), other);
    // A link to nothing is somebody's, and stays one.
    env.sh("rm .claude/settings.json; ln -s ../nowhere/settings.json .claude/settings.json").expect(0);
    assert_eq!(env.json(2, &["hook", "install", "claude"])["error"]["code"], "config");
    assert!(env.work().join(".claude/settings.json").is_symlink() && !env.work().join("nowhere").exists());
}

// Taking the hook out where the files are not as they were left: what holds nothing of ours is not touched, a command that
// was edited goes, a link leads to something afterwards, and one file that is refused keeps nobody else's in.
#[test]
fn the_hook_is_taken_out_of_files_that_were_changed_since() {
    let env = TestEnv::repo();
    for broken in ["", "{ // a comment\n}", "[]", "{\"hooks\": 3}"] {
        env.write(".claude/settings.json", broken);
        assert_eq!(env.json(0, &["hook", "uninstall", "claude"])["changed"], false, "{broken}");
        assert_eq!(env.read(".claude/settings.json"), broken);
    }
    // A flag was added, and the end taken off.
    std::fs::remove_file(env.work().join(".claude/settings.json")).expect("removed");
    env.json(0, &["hook", "install", "claude", "--program", "recover"]);
    let edited = env.read(".claude/settings.json").replace("claude || true", "claude --deadline 9s");
    env.write(".claude/settings.json", edited);
    env.json(0, &["hook", "uninstall", "claude"]);
    assert!(!env.exists(".claude/settings.json"));
    // Somebody keeps the settings elsewhere.
    env.write("dotfiles/claude.json", "{}\n");
    std::os::unix::fs::symlink("../dotfiles/claude.json", env.work().join(".claude/settings.json")).expect("a link");
    env.json(0, &["hook", "install", "claude"]);
    env.json(0, &["hook", "uninstall", "claude"]);
    assert_eq!(env.read(".claude/settings.json"), "{}\n", "the link leads to something");
    env.json(0, &["hook", "install", "opencode"]);
    env.sh("mv .opencode/plugins/recover.js dotfiles/ && ln -s ../../dotfiles/recover.js .opencode/plugins/").expect(0);
    env.json(0, &["hook", "uninstall", "opencode"]);
    assert!(!env.exists(".opencode/plugins/recover.js") && env.exists("dotfiles/recover.js"));
    // One that cannot be read as settings does not keep the others in.
    for agent in ["claude", "codex", "git"] {
        env.json(0, &["hook", "install", agent, "--program", "recover"]);
    }
    let broken = env.read(".claude/settings.json").replacen('{', "{ // mine\n", 1);
    env.write(".claude/settings.json", &broken);
    let refused = env.json(2, &["hook", "uninstall"]);
    assert!(refused["error"]["message"].as_str().expect("text").contains("no JSON"), "{refused}");
    assert_eq!(env.read(".claude/settings.json"), broken);
    assert!(!env.exists(".codex/hooks.json") && !env.exists(".git/hooks/pre-push"));
}

// Where the settings go: the project, the user's own of the project, the user's; a link stays one.
#[test]
fn settings_go_where_they_are_wanted() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::repo();
    env.json(0, &["hook", "install", "claude", "--local"]);
    assert!(env.exists(".claude/settings.local.json") && !env.exists(".claude/settings.json"));
    env.json(0, &["hook", "uninstall", "claude", "--local"]);
    assert!(!env.exists(".claude/settings.local.json"), "it was made for the hook");
    env.write("dotfiles/claude.json", "{}\n");
    let kept = env.work().join("dotfiles/claude.json");
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o600)).expect("mode");
    let home = env.work().parent().expect("a folder").join("home/.claude");
    std::fs::create_dir_all(&home).expect("a folder");
    std::os::unix::fs::symlink(&kept, home.join("settings.json")).expect("a link");
    env.json(0, &["hook", "install", "claude", "--user"]);
    assert!(home.join("settings.json").is_symlink());
    let mode = std::fs::metadata(&kept).expect("there").permissions().mode();
    assert!(env.read("dotfiles/claude.json").contains("hook run claude") && mode & 0o777 == 0o600);
    env.json(0, &["hook", "install", "opencode"]);
    assert!(env.read(".opencode/plugins/recover.js").contains("hook run opencode"));
    env.json(0, &["hook", "uninstall", "opencode"]);
    assert!(!env.exists(".opencode/plugins/recover.js"));
}

// What is printed is what is installed, and works when the shell runs it.
#[test]
fn printed_settings_work_as_they_stand() {
    let env = TestEnv::repo();
    let program = env!("CARGO_BIN_EXE_recover");
    let printed = env.recover(&["hook", "print", "claude", "--program", program]).expect(0).stdout;
    let settings: Value = serde_json::from_str(&printed).expect("JSON");
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().expect("a command").to_owned();
    env.json(0, &["hook", "install", "claude", "--program", program]);
    assert_eq!(serde_json::from_str::<Value>(&env.read(".claude/settings.json")).expect("JSON"), settings);
    let ran = env.sh(&format!("echo '{}' | {command}", edit(&env, "s", "a.txt")));
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
    assert_eq!(triggers(&env, "claude-s"), ["initial"]);
    // A machine without the program, or with one that knows no hooks, stops no agent.
    let gone = command.replace(program, "/nonexistent/recover");
    assert_eq!(env.sh(&format!("echo '{{}}' | {gone}")).code, 0);
    for agent in ["codex", "gemini", "opencode", "git"] {
        let text = env.recover(&["hook", "print", agent]).expect(0).stdout;
        assert!(text.contains(&format!("hook run {agent}")), "{text}");
    }
}

// git's own hooks: before a rebase and a push; whatever was there keeps running, and its exit code counts.
#[test]
fn git_takes_a_checkpoint_before_a_rebase_and_a_push() {
    let env = TestEnv::repo();
    let program = env!("CARGO_BIN_EXE_recover");
    let theirs = "#!/bin/sh\ncat > ../pushed\ntest ! -e ../forbid\n";
    env.write(".git/hooks/pre-push", theirs);
    env.git(&["config", "core.fileMode", "true"]);
    env.sh("chmod 755 .git/hooks/pre-push").expect(0);
    env.json(0, &["hook", "install", "git", "--program", program]);
    let again = env.json(0, &["hook", "install", "git", "--program", program]);
    assert_eq!(again["changed"], false, "{again}");
    env.git(&["init", "-q", "--bare", "../remote"]);
    env.git(&["remote", "add", "origin", "../remote"]);
    env.write("untracked.txt", "work\n");
    env.git(&["push", "-q", "origin", "main"]);
    let pushed = std::fs::read_to_string(env.work().join("../pushed")).expect("their hook ran");
    assert!(pushed.contains("refs/heads/main"), "its input is its own: {pushed}");
    env.git(&["checkout", "-q", "-b", "topic"]);
    env.write("b.txt", "b\n");
    env.git(&["add", "b.txt"]);
    env.git(&["commit", "-q", "-m", "b"]);
    env.git(&["rebase", "-q", "-f", "main"]);
    let list = env.json(0, &["checkpoint", "list"]);
    let taken: Vec<&Value> =
        list["checkpoints"].as_array().expect("a list").iter().map(|one| &one["trigger"]).collect();
    assert_eq!(taken, [&json!("external"), &json!("risky")], "{list}");
    env.write("../forbid", "");
    assert_ne!(env.sh("git push -q origin topic").code, 0, "their refusal counts");
    env.json(0, &["hook", "uninstall", "git"]);
    assert_eq!(env.read(".git/hooks/pre-push"), theirs);
    assert!(!env.exists(".git/hooks/pre-rebase"));
}

#[test]
fn hooks_of_others_are_respected() {
    let env = TestEnv::repo();
    env.git(&["config", "core.hooksPath", ".githooks"]);
    env.write(".githooks/pre-push", "#!/usr/bin/env python3\nprint('theirs')\n");
    let refused = env.json(13, &["hook", "install", "git"]);
    assert!(refused["error"]["hint"].as_str().is_some_and(|hint| hint.contains("hook run git pre-push")), "{refused}");
    assert!(!env.exists(".githooks/pre-rebase"), "all or nothing");
    std::fs::remove_file(env.work().join(".githooks/pre-push")).expect("removed");
    env.json(0, &["hook", "install", "git"]);
    assert!(env.exists(".githooks/pre-rebase") && !env.exists(".git/hooks/pre-rebase"));
    let outside = env.work().parent().expect("a folder").join("hooks").to_string_lossy().into_owned();
    env.git(&["config", "core.hooksPath", &outside]);
    assert_eq!(env.json(13, &["hook", "install", "git"])["error"]["code"], "unsafe_path");
    // So is a script that is a link to one outside.
    env.git(&["config", "--unset", "core.hooksPath"]);
    env.sh("printf '#!/bin/sh\\n' > ../shared; chmod 755 ../shared; ln -s \"$PWD/../shared\" .git/hooks/pre-push")
        .expect(0);
    assert_eq!(env.json(13, &["hook", "install", "git"])["error"]["code"], "unsafe_path");
    assert_eq!(env.read("../shared"), "#!/bin/sh\n");
    assert_eq!(env.json(0, &["hook", "uninstall", "git"])["changed"], false);
    // git does not run a script that is not executable; that is told, and its mode is its own.
    env.sh("rm .git/hooks/pre-push; cp ../shared .git/hooks/pre-push; chmod 644 .git/hooks/pre-push").expect(0);
    let installed = env.json(0, &["hook", "install", "git"]);
    assert!(installed["notes"].to_string().contains("is not executable"), "{installed}");
}
