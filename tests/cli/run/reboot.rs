//! What a run does about the machine's sleep, and what is resumed after it went down.

use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::env::{Ran, TestEnv};

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
    let begun = Instant::now();
    while !env.exists("../starts") {
        assert!(begun.elapsed() < Duration::from_secs(60), "no attempt");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    child
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
    let env = env();
    let mut child = begin(&env, "night");
    signal(&child, "-KILL");
    child.wait().expect("it ended");
    assert_eq!(in_boot(&env, "first", &ALL)["runs"], json!([]));
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
        let begun = Instant::now();
        while !env.exists("../starts") {
            assert!(begun.elapsed() < Duration::from_secs(60), "no attempt");
            std::thread::sleep(Duration::from_millis(20));
        }
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
