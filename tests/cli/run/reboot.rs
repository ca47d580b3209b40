//! What a run does about the machine's sleep, and what is resumed after it went down.

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv};
use crate::run::supervision::until;

/// An agent that hangs while there is a file `hang` beside the work tree.
const AGENT: &str = "echo $RECOVER_RUN_ID >> ../starts; while [ -e ../hang ]; do sleep 0.1; done; echo done > work.txt";

fn env() -> TestEnv {
    let mut env = TestEnv::repo();
    env.set("RECOVER_TEST_BOOT", "first");
    env.put("../hang", "");
    env
}

fn begin(env: &TestEnv, run: &str) -> Child {
    let mut command = env.recover_command(&["run", "--run", run, "--", "sh", "-c", AGENT]);
    let child = command.spawn().expect("recover starts");
    until_started(env);
    child
}

fn until_started(env: &TestEnv) {
    until("an attempt", || env.exists("../starts"));
    std::thread::sleep(Duration::from_millis(300));
}

fn signal(child: &Child, signal: &str) {
    let sent = std::process::Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.expect("kill starts").success());
}

fn in_boot(env: &TestEnv, boot: &str, args: &[&str]) -> Value {
    let args = [&["--json"], args].concat();
    let mut command = env.recover_command(&args);
    command.env("RECOVER_TEST_BOOT", boot);
    Ran::of(&command.output().expect("recover starts"))
        .expect(0)
        .json()
}

const ALL: [&str; 3] = ["resume", "--interrupted", "--all-repos"];

/// A run that the machine took down is resumed once it is up again, from any folder, and not before.
#[test]
fn a_run_that_ended_with_the_machine_is_taken_up() {
    let mut env = env();
    let mut child = begin(&env, "night");
    let early = in_boot(&env, "first", &ALL);
    assert_eq!(early["runs"], json!([]), "it is at work: {early:#}");
    signal(&child, "-KILL");
    child.wait().expect("it ended");
    env.remove("../hang");
    let planned = in_boot(&env, "second", &[&["--dry-run"], &ALL[..]].concat());
    assert_eq!(planned["runs"][0]["exit_code"], Value::Null, "{planned:#}");
    let starts = || env.read("../starts").lines().count();
    assert_eq!(starts(), 1);
    let home = env.root().join("home");
    let mut elsewhere = env.recover_command(&["--json", "resume", "--interrupted", "--all-repos"]);
    elsewhere
        .current_dir(home)
        .env("RECOVER_TEST_BOOT", "second");
    let taken = Ran::of(&elsewhere.output().expect("recover starts"))
        .expect(0)
        .json();
    let run = &taken["runs"][0];
    assert_eq!(
        (&run["run_id"], &run["left"], &run["exit_code"]),
        (&json!("night"), &Value::Null, &json!(0)),
        "{taken:#}"
    );
    assert_eq!((starts(), env.read("work.txt").as_str()), (2, "done\n"));
    assert_eq!(in_boot(&env, "third", &ALL)["runs"], json!([]));

    // With a state directory of its own, and a PATH that only the user's shell has.
    env.script("../bin/agent", "echo again > work.txt");
    let bin = env.root().join("bin");
    let path = std::env::var("PATH").expect("works");
    let state = env.root().join("state").display().to_string();
    env.set("RECOVER_TEST_BOOT", "fourth");
    env.put("../hang", "");
    env.remove("../starts");
    let call = format!("agent; {AGENT}");
    let run = [
        "run",
        "--run",
        "own",
        "--state-dir",
        &state,
        "--",
        "sh",
        "-ec",
        &call,
    ];
    let mut command = env.recover_command(&run);
    let mut child = command
        .env("PATH", format!("{}:{path}", bin.display()))
        .spawn()
        .expect("recover starts");
    until_started(&env);
    signal(&child, "-KILL");
    child.wait().expect("it ended");
    env.remove("../hang");
    let taken = in_boot(&env, "fifth", &ALL);
    let run = &taken["runs"][0];
    assert_eq!(
        (&run["run_id"], &run["left"], &run["exit_code"]),
        (&json!("own"), &Value::Null, &json!(0)),
        "{taken:#}"
    );
    let folder = env.root().join("home/.local/state/recover/at-work");
    assert!(!folder.exists(), "{}", folder.display());
}

/// What a user killed is seen by the next command, the service or any that writes, and is not taken up after a restart.
#[test]
fn a_run_that_was_killed_is_not_taken_up() {
    for seen_by in [&ALL[..], &["checkpoint", "create"]] {
        let env = env();
        let mut child = begin(&env, "night");
        signal(&child, "-KILL");
        child.wait().expect("it ended");
        in_boot(&env, "first", seen_by);
        let taken = in_boot(&env, "second", &ALL);
        assert_eq!(taken["runs"], json!([]), "seen by {seen_by:?}: {taken:#}");
    }
}

/// One call at a time resumes them, one after the other.
#[test]
fn two_services_do_not_resume_side_by_side() {
    let env = env();
    env.sh("git clone -q . ../other").expect(0);
    let begin = |folder: &str| {
        let mut command = env.recover_command(&["run", "--run", folder, "--", "sh", "-c", AGENT]);
        command.current_dir(env.root().join(folder));
        command.spawn().expect("recover starts")
    };
    let mut runs = ["work", "other"].map(begin);
    let starts = || std::fs::read_to_string(env.root().join("starts")).unwrap_or_default();
    until("both are at work", || starts().lines().count() == 2);
    std::thread::sleep(Duration::from_millis(300));
    for run in &mut runs {
        signal(run, "-KILL");
        run.wait().expect("it ended");
    }
    env.remove("../starts");
    let service = || {
        let mut command = env.recover_command(&ALL);
        command.env("RECOVER_TEST_BOOT", "second");
        command
    };
    let first = service()
        .stdout(Stdio::piped())
        .spawn()
        .expect("recover starts");
    until_started(&env);
    let second = Ran::of(&service().output().expect("recover starts")).expect(11);
    assert!(
        second.stderr.contains("resuming.lock is locked by"),
        "{second:?}"
    );
    assert_eq!(starts().lines().count(), 1);
    env.remove("../hang");
    let done = Ran::of(&first.wait_with_output().expect("it ended")).expect(0);
    let resumed = done
        .stdout
        .matches("resumed; ended with exit code 0")
        .count();
    assert_eq!((resumed, starts().lines().count()), (2, 2), "{done:?}");
    assert!(
        !env.root()
            .join("home/.local/state/recover/at-work")
            .exists()
    );
}

/// Four runs in four repositories, each in its second iteration, when the machine goes down with all that runs on it.
#[test]
fn four_runs_survive_a_restart() {
    let env = env();
    let agent = "echo $RECOVER_ITERATION >> starts; [ $RECOVER_ITERATION = 1 ] || while [ -e ../hang ]; do sleep 0.1; done; \
                 echo $RECOVER_ITERATION > work.txt";
    let folder = |number: usize| env.root().join(format!("shop{number}"));
    let call = |number: usize, args: &[&str]| {
        let mut command = env.recover_command(args);
        command.current_dir(folder(number));
        command
    };
    let begin = |number: usize| {
        let made = env.sh(&format!(
            "git clone -q . ../shop{number} && echo starts > ../shop{number}/.git/info/exclude"
        ));
        made.expect(0);
        let run = [
            "run",
            "--run",
            "night",
            "--iterations",
            "2",
            "--",
            "sh",
            "-c",
            agent,
        ];
        call(number, &run)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("recover starts")
    };
    let starts = |number: usize| {
        let text = std::fs::read_to_string(folder(number).join("starts"));
        text.unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let mut runs: Vec<Child> = (0..4).map(begin).collect();
    until("each is in its second iteration", || {
        (0..4).all(|number| starts(number) == "1 2")
    });
    let home = env.root().join("home").display().to_string();
    let kill = "for one in /proc/[0-9]*; do tr '\\0' '\\n' < $one/environ | grep -qx \"HOME=$0\" && kill -KILL ${one#/proc/}; done; true";
    let mut killer = std::process::Command::new("sh");
    killer.args(["-c", kill, &home]).stderr(Stdio::null());
    assert!(killer.status().expect("sh starts").success());
    for run in &mut runs {
        run.wait().expect("it ended");
    }
    env.remove("../hang");
    let taken = in_boot(&env, "second", &ALL);
    let all = taken["runs"].as_array().expect("a list");
    assert_eq!(all.len(), 4, "{taken:#}");
    assert!(all.iter().all(|run| run["exit_code"] == 0), "{taken:#}");
    for number in 0..4 {
        assert_eq!(starts(number), "1 2 2");
        let output = call(number, &["--json", "attempt", "list"]).output();
        let list = Ran::of(&output.expect("recover starts")).expect(0).json();
        let subtasks = list["subtasks"].as_object().expect("subtasks");
        let attempts = subtasks
            .values()
            .flat_map(|one| one["attempts"].as_array().expect("a list"));
        let passed: Vec<bool> = attempts.map(|one| one["success"] == true).collect();
        assert_eq!(passed, [true, false, true], "{list:#}");
        let output = call(number, &["--json", "status"]).output();
        let status = Ran::of(&output.expect("recover starts")).expect(0).json();
        assert_eq!(status["run"]["status"], "complete", "{status:#}");
    }
}

/// Who stopped a run while the machine ran on finds it as it was left.
#[test]
fn a_run_that_was_stopped_is_not_taken_up() {
    let env = env();
    let child = begin(&env, "night");
    signal(&child, "-INT");
    child.wait_with_output().expect("it ended");
    assert_eq!(in_boot(&env, "second", &ALL)["runs"], json!([]));
    // A shutdown sends a signal as well.
    env.remove("../starts");
    let mut env = env;
    env.script("../bin/systemctl", "echo stopping; exit 1");
    let path = format!(
        "{}/bin:{}",
        env.root().display(),
        std::env::var("PATH").expect("works")
    );
    env.set("PATH", &path);
    let child = begin(&env, "late");
    signal(&child, "-TERM");
    child.wait_with_output().expect("it ended");
    env.remove("../hang");
    let taken = in_boot(&env, "second", &ALL);
    let run = &taken["runs"][0];
    assert_eq!(
        (&run["run_id"], &run["exit_code"]),
        (&json!("late"), &json!(0)),
        "{taken:#}"
    );
}

/// What takes the machine down each time is not begun for ever.
#[test]
fn a_run_is_taken_up_twice_without_progress() {
    let env = env();
    let mut child = begin(&env, "night");
    signal(&child, "-KILL");
    child.wait().expect("it ended");
    for boot in ["second", "third"] {
        env.remove("../starts");
        let mut command = env.recover_command(&ALL);
        let mut taken = command
            .env("RECOVER_TEST_BOOT", boot)
            .spawn()
            .expect("recover starts");
        until("an attempt", || env.exists("../starts"));
        // All that is below it goes with the machine.
        env.sh(&format!("pkill -KILL -P {}", taken.id()));
        signal(&taken, "-KILL");
        taken.wait().expect("it ended");
    }
    let left = in_boot(&env, "fourth", &ALL);
    let why = left["runs"][0]["left"].as_str().unwrap_or_default();
    assert!(why.contains("resumed 2 times"), "{left:#}");
}

/// Sleep is held off while the run is at work, and no longer.
#[test]
fn the_machine_stays_awake_while_a_run_is_at_work() {
    let mut env = TestEnv::repo();
    env.script(
        "../bin/systemd-inhibit",
        "echo \"$@\" > \"${0%/*}/../held\"; cat; rm \"${0%/*}/../held\"",
    );
    let path = format!(
        "{}/bin:{}",
        env.root().display(),
        std::env::var("PATH").expect("works")
    );
    env.set("PATH", &path);
    let seen = "for i in 1 2 3 4 5 6 7 8 9; do [ -e ../held ] && break; sleep 0.2; done; cp ../held work.txt";
    let run = ["run", "--run", "night", "--", "sh", "-c", seen];
    env.recover(&run).expect(0);
    assert_eq!(
        env.read("work.txt"),
        "--no-ask-password --what=sleep --who=recover --why=run night is at work cat\n"
    );
    assert!(!env.exists("../held"));
    env.write(".ultraplan/recover.toml", "[run]\ninhibit_sleep = false\n");
    env.recover(&[
        "run",
        "--run",
        "off",
        "--",
        "sh",
        "-c",
        "sleep 0.5; test ! -e ../held",
    ])
    .expect(0);
}
