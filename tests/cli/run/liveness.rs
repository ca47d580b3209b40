//! Whether a run is alive: known by a lock and a heartbeat, from other PID namespaces too.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::agents_and_hosts::hook_run::edit;
use crate::env::{Ran, TestEnv};
use crate::run::supervision::{ended, kill, until};

/// A command in a PID namespace of its own, which ends with it; `None` where there can be none.
fn in_namespace(env: &TestEnv, line: &str) -> Option<Command> {
    let shared = [
        "--user",
        "--map-root-user",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
    ];
    let tried = Command::new("unshare").args(shared).arg("true").output();
    if !tried.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no PID namespace");
        return None;
    }
    let mut command = env.command("unshare");
    command
        .args(shared)
        .args(["sh", "-c", line])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Some(command)
}

/// A run `n` in another PID namespace whose agent writes a line to `agent` again and again.
fn run_elsewhere(env: &TestEnv) -> Option<Child> {
    let agent = "while :; do echo x >> ../agent; sleep 0.05; done";
    let line = format!(
        "{} run --run n --attempts 2 --no-wait -- sh -c '{agent}'; true",
        env!("CARGO_BIN_EXE_recover")
    );
    let child = in_namespace(env, &line)?.spawn().expect("unshare starts");
    until("the agent works", || lines(env) > 2);
    Some(child)
}

fn lines(env: &TestEnv) -> usize {
    std::fs::read_to_string(env.root().join("agent"))
        .unwrap_or_default()
        .lines()
        .count()
}

fn status(env: &TestEnv) -> Value {
    env.json(0, &["status", "--run", "n"])["run"]["status"].take()
}

fn ended_attempts(env: &TestEnv) -> usize {
    let log = env.json(0, &["log", "--run", "n"]);
    log["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter(|event| event["type"] == "attempt_ended")
        .count()
}

// A container and its host share a folder: a process number of the one says nothing in the other.
#[test]
fn a_run_in_another_pid_namespace_is_alive_until_its_heartbeat_stops() {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_HEARTBEAT", "200");
    let Some(mut child) = run_elsewhere(&env) else {
        return;
    };
    assert_eq!(status(&env), "in_progress");
    env.json(0, &["checkpoint", "create", "--run", "other"]);
    env.recover_fed(
        edit(&env, "s", "a.txt").to_string(),
        &["hook", "run", "claude"],
    )
    .expect(0);
    let refused = env.error(11, &["resume", "--run", "n"]);
    assert!(
        refused["message"]
            .as_str()
            .expect("text")
            .contains("under way"),
        "{refused}"
    );
    env.error(11, &["rollback", "--run", "n", "--to", "initial"]);
    assert_eq!(
        (status(&env), ended_attempts(&env)),
        (Value::from("in_progress"), 0)
    );
    let before = lines(&env);
    until("the agent goes on", || lines(&env) > before + 2);
    child.kill().expect("the namespace ends");
    child.wait().expect("it ends");
    until("the run counts as crashed", || {
        status(&env) != "in_progress"
    });
    env.json(0, &["checkpoint", "create", "--run", "other"]);
    assert_eq!(ended_attempts(&env), 1);
}

// On the same host nothing is waited for.
#[test]
fn a_run_that_was_killed_is_dead_at_once() {
    let env = TestEnv::repo();
    let mut child = env.start(&[
        "run",
        "--run",
        "n",
        "--no-wait",
        "--",
        "sh",
        "-c",
        "echo up > up; exec sleep 1000",
    ]);
    env.await_line("up");
    assert_eq!(status(&env), "in_progress");
    kill("-KILL", child.id());
    child.wait().expect("it ends");
    assert_ne!(status(&env), "in_progress");
    env.json(0, &["checkpoint", "create", "--run", "other"]);
    assert_eq!(ended_attempts(&env), 1);
}

fn heartbeat_file(env: &TestEnv) -> std::path::PathBuf {
    let folder = env.work().join(".ultraplan/state/recover/heartbeats");
    std::fs::read_dir(folder)
        .expect("heartbeats")
        .next()
        .expect("one")
        .expect("an entry")
        .path()
}

// A supervisor that was suspended goes on where nobody took its place, and ends its agent where somebody did.
#[test]
fn a_suspended_supervisor_finds_out_whether_it_was_replaced() {
    for is_replaced in [false, true] {
        let mut env = TestEnv::repo();
        env.set("RECOVER_TEST_HEARTBEAT", "100");
        let agent = "echo $$ > up; while [ ! -e go ]; do sleep 0.05; done; echo done > done";
        let child = env.start(&["run", "--run", "n", "--no-wait", "--", "sh", "-c", agent]);
        let pid: u32 = env.await_line("up").parse().expect("a number");
        kill("-STOP", child.id());
        if is_replaced {
            let file = heartbeat_file(&env);
            std::fs::remove_file(&file).expect("it goes");
            std::fs::write(&file, "replaced\n").expect("it is replaced");
        }
        std::thread::sleep(Duration::from_millis(700));
        kill("-CONT", child.id());
        if is_replaced {
            let ran = ended(child).expect(11);
            assert!(ran.stderr.contains("was suspended"), "{}", ran.stderr);
            assert!(!env.exists("done") && env.sh(&format!("kill -0 {pid}")).code != 0);
        } else {
            std::thread::sleep(Duration::from_millis(300));
            env.write("go", "");
            ended(child).expect(0);
            assert_eq!(env.read("done"), "done\n");
        }
    }
}

// The first process of a container is the parent of whatever loses its own.
#[test]
fn as_the_first_process_orphans_are_waited_for() {
    let env = TestEnv::repo();
    let agent = "(sh -c \"sleep 0.1 & echo \\$!\" > orphan); sleep 1; ps -o stat= -p $(cat orphan) > left; true";
    let line = format!(
        "exec {} run --run n --no-wait -- sh -c '{agent}'",
        env!("CARGO_BIN_EXE_recover")
    );
    let Some(mut command) = in_namespace(&env, &line) else {
        return;
    };
    Ran::of(&command.output().expect("unshare starts")).expect(0);
    assert_eq!(env.read("left"), "", "a zombie is left");
}
