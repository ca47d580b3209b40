//! Many processes at once: captures and rollbacks are serialised, nothing is lost.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::env::{Ran, TestEnv};
use crate::seen::{assert_clean, checkpoint};

// state.md, Concurrency: eight processes capturing and rolling back; each waits for the others.
#[test]
fn captures_and_rollbacks_are_serialised() {
    let env = TestEnv::repo();
    for content in ["1\n", "2\n"] {
        env.write("a.txt", content);
        env.write("b.txt", content);
        checkpoint(&env);
    }
    let commands: [&[&str]; 4] = [
        &["--json", "--lock-timeout", "60s", "checkpoint", "create"],
        &["--json", "--lock-timeout", "60s", "rollback", "--to", "@1"],
        &["--json", "--lock-timeout", "60s", "checkpoint", "create"],
        &["--json", "--lock-timeout", "60s", "rollback", "--to", "@2"],
    ];
    let mut running = Vec::new();
    for _ in 0..2 {
        for args in commands {
            let mut command = env.recover_command(args);
            running.push(
                command
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("recover starts"),
            );
        }
    }
    for child in running {
        let output = child.wait_with_output().expect("ends");
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{text}");
    }
    assert_eq!(env.read("a.txt"), env.read("b.txt"), "never a mix");
    let list = env.json(0, &["checkpoint", "list", "--all-runs"])["checkpoints"].clone();
    let safety = list
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["trigger"] == "safety")
        .count();
    assert_eq!(list.as_array().unwrap().len(), 2 + 4 + safety);
    let report = env.json(0, &["checkpoint", "verify"]);
    assert_eq!(report["checked"], list.as_array().unwrap().len());
    // Every rollback that did something can be undone, one by one, to where it all began.
    for _ in 0..safety {
        env.json(0, &["undo"]);
    }
    env.json(4, &["undo"]);
    assert_eq!(env.read("a.txt"), "2\n");
    assert_clean(&env);
}

// Two undos at once take back two operations, never one of them twice.
#[test]
fn two_undos_take_back_two_operations() {
    let env = TestEnv::repo();
    for content in ["1\n", "2\n", "3\n", "4\n"] {
        env.write("a.txt", content);
        checkpoint(&env);
    }
    for target in ["@3", "@2", "@1"] {
        env.json(0, &["rollback", "--to", target]);
    }
    let mut running: Vec<_> = (0..3)
        .map(|_| {
            let mut command = env.recover_command(&["--json", "--lock-timeout", "60s", "undo"]);
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("recover starts")
        })
        .collect();
    for child in running.drain(..) {
        let output = child.wait_with_output().expect("ends");
        assert_eq!(
            output.status.code(),
            Some(0),
            "{}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
    assert_eq!(env.read("a.txt"), "4\n");
    env.json(4, &["undo"]);
}

// state.md: a held lock is 11 with its holder's pid; reading takes none.
// Whoever waits for a lock ends when asked to, and has changed nothing.
#[test]
fn a_signal_ends_the_wait_for_a_lock() {
    let env = TestEnv::repo();
    checkpoint(&env);
    for lock in [".git/recover/lock", ".ultraplan/state/recover/ledger.lock"] {
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(env.work().join(lock))
            .unwrap();
        file.lock().unwrap();
        let before = env.json(0, &["checkpoint", "list"]);
        let waiting = env
            .recover_command(&["--lock-timeout", "60s", "checkpoint", "create"])
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(500));
        let begun = Instant::now();
        env.sh(&format!("kill -TERM {}", waiting.id())).expect(0);
        let ran = Ran::of(&waiting.wait_with_output().unwrap());
        assert_eq!(ran.code, 143, "{lock}: {ran:?}");
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "{lock}: {:?}",
            begun.elapsed()
        );
        assert_eq!(env.json(0, &["checkpoint", "list"]), before, "{lock}");
        drop(file);
    }
}

#[test]
fn a_held_lock_names_its_holder() {
    let env = TestEnv::repo();
    checkpoint(&env);
    let lock = env.work().join(".git/recover/lock");
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&lock)
        .unwrap();
    file.lock().unwrap();
    std::fs::write(&lock, "4242 recover run -- agent").unwrap();
    let error = env.json(11, &["--lock-timeout", "50ms", "checkpoint", "create"])["error"].clone();
    assert!(
        error["message"].as_str().unwrap().contains("4242"),
        "{error}"
    );
    env.json(0, &["checkpoint", "list"]);
    env.json(0, &["checkpoint", "show", "latest"]);
    drop(file);
    checkpoint(&env);
}
