//! Signals to `recover`: the group ends, nothing is charged, the run can be resumed.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use crate::env::TestEnv;
use crate::run::attempts::quick;
use crate::run::supervision::{ended, kill, lives, until};

/// Interrupts a run in the middle of its attempt.
fn interrupted(env: &TestEnv, signal: &str) -> (crate::env::Ran, String) {
    env.script(
        "agent.sh",
        "[ -e ../again ] && { echo done > work; exit 0; }\n\
         sleep 300 & echo $! > ../grandchild; echo half > work; echo $$ > ../pid; wait",
    );
    let run = env.start(&["--json", "run", "--prompt", "Do it.", "--", "./agent.sh"]);
    let pid = env.await_line("../pid");
    kill(signal, run.id());
    (ended(run), pid)
}

/// B2 (`cancellation`): exit 130 or 143, one document, no process left, attempt not charged, `resume` works.
#[test]
fn an_interrupted_run_can_be_taken_up() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let env = quick();
        let (ran, pid) = interrupted(&env, signal);
        let document = ran.expect(code).json();
        assert_eq!(document["outcome"], "cancelled");
        assert_eq!(document["run"]["status"], "cancelled");
        assert_eq!(document["iterations"][0]["status"], "cancelled");
        assert_eq!(
            document["iterations"][0]["attempts"][0]["failure"]["type"],
            "cancellation"
        );
        let grandchild = env.sh("cat ../grandchild").stdout;
        until("the group is gone", || {
            !lives(&pid) && !lives(grandchild.trim())
        });
        let status = env.json(0, &["retry-status", "--check"]);
        assert_eq!(
            (&status["error_count"], &status["attempts_left"]),
            (&0.into(), &3.into()),
            "{status}"
        );
        assert_eq!(env.read("work"), "half\n", "the work stays");

        env.sh("touch ../again");
        let resumed = env.json(0, &["resume"]);
        assert_eq!(
            (&resumed["strategy"], &resumed["outcome"]),
            (&"retry_same".into(), &"complete".into())
        );
        // agents.md: what stopped it was not the agent's doing, and nothing is held against it.
        let prompt = "Do it.\n\n## Interrupted\n\nYou were interrupted; go on.\n\n\
                      What interrupted you was not your doing: Cancelled\n";
        assert_eq!(resumed["prompt"], prompt);
    }
}

/// Who begins a new conversation after an interruption is told what it was about: here, and on another machine.
#[test]
fn what_an_interrupted_attempt_was_to_mend_is_said_again() {
    let env = quick();
    let agent = "test -e ../second && { touch ../third; echo $$ > ../pid; exec sleep 300; }; test -e ../third || touch ../second";
    let agent = format!("test -e ../third && exit 0; {agent}");
    let check = "test=test -e ../third || { echo 'a.c:3:1: error: boom'; exit 1; }";
    let words = [
        "--json",
        "run",
        "--attempts",
        "4",
        "--prompt",
        "Do it.",
        "--feedback",
        check,
        "--",
        "sh",
        "-c",
        &agent,
    ];
    let run = env.start(&words);
    env.await_line("../pid");
    kill("-INT", run.id());
    ended(run).expect(130);
    let prompt = env.json(0, &["resume"])["prompt"]
        .as_str()
        .expect("a prompt")
        .to_owned();
    let (interrupted, failed) = (
        prompt.find("## Interrupted"),
        prompt.find("## Previous Attempt Failed"),
    );
    assert!(
        interrupted.is_some() && interrupted < failed && prompt.contains("boom"),
        "{prompt}"
    );
}

/// A signal in a feedback loop is an interruption, not a failed check.
#[test]
fn a_signal_in_a_feedback_loop() {
    let env = quick();
    let run = env.start(&[
        "--json",
        "run",
        "--feedback",
        "test=echo $$ > ../pid; sleep 300",
        "--",
        "true",
    ]);
    let pid = env.await_line("../pid");
    kill("-INT", run.id());
    let document = ended(run).expect(130).json();
    assert_eq!(document["outcome"], "cancelled");
    until("the loop is gone", || !lives(&pid));
    assert_eq!(env.json(0, &["retry-status"])["error_count"], 0);
}

/// A signal in a wait: 130, nothing charged.
#[test]
fn a_signal_in_a_wait() {
    let env = TestEnv::repo();
    env.write(
        ".ultraplan/recover.toml",
        "[cooldown]\nduration = \"60s\"\n",
    );
    env.json(
        6,
        &[
            "run",
            "--no-wait",
            "--feedback",
            "test=echo 'assert 1 == 2'; exit 1",
            "--",
            "true",
        ],
    );
    for args in [["retry-status", "--wait"], ["resume", "--wait"]] {
        let child = env.start(&[&["--json"], &args[..]].concat());
        std::thread::sleep(std::time::Duration::from_millis(500));
        kill("-INT", child.id());
        let ran = ended(child).expect(130);
        assert_eq!(ran.json()["error"]["code"], "interrupted");
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
    assert_eq!(env.json(6, &["retry-status", "--check"])["error_count"], 1);
}

/// A child that leaves a daemon behind: it is ended and the leak is reported.
#[test]
fn what_outlives_an_attempt_is_ended() {
    let env = quick();
    let ran = env
        .recover(&[
            "--json",
            "run",
            "--",
            "sh",
            "-c",
            "sleep 300 >/dev/null 2>&1 & echo $! > ../pid",
        ])
        .expect(0);
    assert!(ran.stderr.contains("outlived"), "{}", ran.stderr);
    let pid = env.sh("cat ../pid").stdout;
    until("it is gone", || !lives(pid.trim()));
}

/// A closed pipe ends quietly.
#[test]
fn a_closed_pipe_ends_quietly() {
    let env = quick();
    env.json(0, &["run", "--", "true"]);
    let recover = env!("CARGO_BIN_EXE_recover");
    let ran = env.sh(&format!(
        "for i in 1 2 3; do {recover} log; done | true; {recover} --json log 2>&1 >&- || true"
    ));
    assert!(
        !ran.stderr.contains("panicked") && !ran.stdout.contains("panicked"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

/// A signal while a run waits for its next attempt: its last words, status, log and report say so.
#[test]
fn a_run_that_is_interrupted_in_its_wait_says_so() {
    for (signal, name, code) in [("-INT", "SIGINT", 130), ("-TERM", "SIGTERM", 143)] {
        let env = TestEnv::repo();
        env.write(
            ".ultraplan/recover.toml",
            "[cooldown]\nduration = \"60s\"\n",
        );
        let child = env.start(&[
            "run",
            "--feedback",
            "test=echo 'assert 1 == 2'; exit 1",
            "--",
            "true",
        ]);
        let is_waiting = || env.json(0, &["status"])["activity"]["what"] == "waiting";
        until("it waits", || {
            env.exists(".ultraplan/state/recovery.json") && is_waiting()
        });
        kill(signal, child.id());
        let said = format!("interrupted by {name} while waiting; no attempt was used");
        let told = ended(child).expect(code).stdout;
        assert!(told.contains(&format!("Stopped: {said}")), "{told}");
        for command in [&["status"][..], &["log"], &["report"]] {
            let told = env.recover(command).expect(0).stdout;
            assert!(told.contains(&said), "{command:?}: {told}");
        }
        assert_eq!(env.json(0, &["status"])["run"]["status"], "paused");
    }
}

// Nothing has begun while the prompt is read, so that the first signal ends it.
#[test]
fn a_signal_ends_the_reading_of_a_prompt() {
    let env = TestEnv::repo();
    let mut child = env
        .recover_command(&["run", "--agent", "claude", "--prompt-file", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("recover starts");
    let stdin = child.stdin.take();
    // Before the signals are taken over, it ends by itself too.
    sleep(Duration::from_millis(500));
    kill("-INT", child.id());
    until("it ends", || child.try_wait().expect("a child").is_some());
    assert_eq!(child.wait().expect("a child").signal(), Some(2));
    drop(stdin);
    assert!(!env.exists(".ultraplan/state/events.jsonl"));
}
