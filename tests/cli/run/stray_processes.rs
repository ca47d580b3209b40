//! Processes that leave the attempt's session, and signals that would leave the agent without its supervisor.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::env::{Ran, TestEnv};
use crate::run::supervision::until;

fn is_alive(pid: &str) -> bool {
    let stat =
        std::fs::read_to_string(Path::new("/proc").join(pid).join("stat")).unwrap_or_default();
    !stat.is_empty()
        && !stat
            .rsplit(") ")
            .next()
            .is_some_and(|rest| rest.starts_with('Z'))
}

/// Runs an attempt that leaves a process behind with `folder` as its current one. Returns its number, what the run said,
/// and its record.
fn left(setting: &str, folder: &str) -> (String, Ran, Value) {
    let env = TestEnv::repo();
    if !setting.is_empty() {
        env.write(
            ".ultraplan/recover.toml",
            format!("[run]\nleftovers = \"{setting}\"\n"),
        );
    }
    let line = format!(
        "(cd {folder}; setsid sh -c 'echo $$ > \"$0\"; exec sleep 300' \"$OLDPWD/../pid.tmp\" >/dev/null 2>&1 &); \
         until test -s ../pid.tmp; do sleep 0.02; done; mv ../pid.tmp ../pid; (setsid sleep 0.1 &)"
    );
    let ran = env
        .recover(&["run", "--run", "r", "--", "sh", "-c", &line])
        .expect(0);
    let pid = std::fs::read_to_string(env.root().join("pid"))
        .expect("it began")
        .trim()
        .to_owned();
    let status = env.json(0, &["status", "--run", "r"]);
    let leftovers = status["iterations"][0]["attempts"][0]["leftovers"].clone();
    (pid, ran, leftovers)
}

/// Ends what a test found alive.
fn kill(pid: &str) {
    let pid = rustix::process::Pid::from_raw(pid.parse().expect("a number")).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it was alive");
}

#[test]
fn what_left_the_session_is_told_and_ended_in_the_work_tree() {
    let (pid, ran, leftovers) = left("", ".");
    assert!(!is_alive(&pid));
    assert!(
        ran.stderr.contains(&format!("process {pid} (sleep 300)")),
        "{}",
        ran.stderr
    );
    let expected = serde_json::json!([{"pid": pid.parse::<u32>().unwrap(), "command": "sleep 300", "ended": true}]);
    assert_eq!(leftovers, expected, "what ends by itself is not told of");
}

#[test]
fn what_works_elsewhere_is_told_and_lives() {
    for (setting, folder, lives) in [
        ("", "/", true),
        ("keep", ".", true),
        ("end", "/", false),
        ("auto", "/", true),
    ] {
        let (pid, ran, leftovers) = left(setting, folder);
        assert_eq!(is_alive(&pid), lives, "{setting} {folder}");
        if lives {
            kill(&pid);
        }
        assert!(ran.stderr.contains(&pid), "{}", ran.stderr);
        assert_eq!(
            leftovers[0]["ended"], !lives,
            "{setting} {folder}: {leftovers}"
        );
    }
}

// A variable that people export themselves says nothing.
#[test]
fn the_mark_is_the_attempts_own() {
    let env = TestEnv::repo();
    let mut other = env.command("sleep");
    let mut other = other
        .arg("300")
        .env("RECOVER_RUN_ID", "r")
        .stdout(Stdio::null())
        .spawn()
        .expect("sleep");
    let ran = env.recover(&["run", "--run", "r", "--", "true"]).expect(0);
    let is_story =
        |line: &str| line.starts_with('[') || line.starts_with("note: no check is given");
    let is_all = ran
        .stderr
        .lines()
        .filter(|line| !line.is_empty())
        .all(is_story);
    assert!(
        other.try_wait().expect("its state").is_none() && is_all,
        "{}",
        ran.stderr
    );
    other.kill().expect("killed");
    other.wait().expect("gone");
}

// SIGQUIT, SIGUSR1 and their like end the run as SIGTERM does: nothing runs on without its supervisor.
#[test]
fn no_signal_leaves_the_agent_alone() {
    for signal in ["QUIT", "USR1", "USR2", "ALRM"] {
        let env = TestEnv::repo();
        let mut command = env.recover_command(&[
            "run",
            "--run",
            "r",
            "--",
            "sh",
            "-c",
            "echo $$ > ../pid.tmp; mv ../pid.tmp ../pid; sleep 300",
        ]);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("recover starts");
        let pid = env.root().join("pid");
        until("the agent is up", || pid.exists());
        env.sh(&format!("kill -{signal} {}", child.id())).expect(0);
        let ran = Ran::of(&child.wait_with_output().expect("its end"));
        assert_eq!(ran.code, 143, "{signal}: {}", ran.stderr);
        assert!(
            !is_alive(std::fs::read_to_string(&pid).expect("written").trim()),
            "{signal}"
        );
        let status = env.json(0, &["status", "--run", "r"]);
        assert_eq!(
            status["iterations"][0]["attempts"][0]["outcome"], "cancelled",
            "{signal}: {status}"
        );
        assert_eq!(status["run"]["status"], "cancelled");
    }
}
